//! A data plane over any message transport: the fallback between hosts.
//!
//! ```text
//!        Plane                       a Connect's link -> a Listen           Inlet
//!  push: slot of a region  --- metadata, one frame a piece --->  checked, then copied into the
//!                                                                open windows of a region
//!  completion: the slot   <---- ok, or why not --------------   answered
//! ```
//!
//! [`Plane`] pushes, and is the [`DataPlane`](super::DataPlane). An [`Inlet`] receives: it is made of
//! the plane whose regions it writes into, and polled by whoever likes, on the same thread or on one
//! of its own. Neither has a thread, and neither waits unless asked to.
//!
//! # A push
//!
//! An ordinary tensor message, which any peer with the Python codec can read and write:
//!
//! ```text
//!  frame 0  {"tensor_descriptors":[
//!              {"field_name":"pieces","shape":[1024],"dtype":"uint8","list_index":0}, ...],
//!            "scalar_fields":{"_plane":"push","session":"tcp://10.0.0.7:5555#8f0c...",
//!              "origin":9731620954811837411,"push":7,"addresses":[139637976727552, ...]}}
//!  frame 1  the bytes of piece 0, which go to address 0
//!  ...
//! ```
//!
//! - `session` is whom it is for, `origin` a random number of the plane that pushes, and
//!   `push` which of its pushes it is: each has a larger number than the one before.
//! - Piece *i* is tensor *i* of the message, and member *i* of the list `pieces`: bytes in one
//!   dimension. There are as many addresses as pieces. None at all is fine, see
//!   [below](#what-is-promised).
//! - Other scalars are skipped. One of these that comes twice is refused.
//!
//! # An answer
//!
//! A tensor message without tensors:
//!
//! ```text
//!  {"tensor_descriptors":[],"scalar_fields":{"_plane":"answer",
//!    "origin":9731620954811837411,"push":7,"written":1024}}
//!  {"tensor_descriptors":[],"scalar_fields":{"_plane":"answer",
//!    "origin":9731620954811837411,"push":7,"refused":"past_window","numbers":[1024,512]}}
//! ```
//!
//! | `refused` | `numbers` | |
//! |---|---|---|
//! | `busy` | | another push is being written into the same window |
//! | `closed` | | a piece begins where no window is open |
//! | `count` | tensors, addresses | not as many of the one as of the other |
//! | `malformed` | | scalars or frames are not those of a push |
//! | `other` | | |
//! | `out_of_bounds` | address, length | a piece is not in the pool |
//! | `past_window` | length, bytes left | a piece goes past the end of its window |
//! | `piece` | which, from 0 | it is not `uint8` of one dimension, or not in its place |
//! | `stale` | the newest push | that one came before, and is newer |
//! | `too_many` | limit, pieces | |
//! | `unknown_session` | | the push is for another session |
//!
//! # What an inlet does
//!
//! It checks all of a message before it writes a byte of it: the metadata, the session, the id, that
//! tensors and addresses agree, that each piece lies in one pool with all its bytes, and
//! in an open window that nobody else writes to. Then it copies each payload once, from the received
//! frame to its place, while no window of it can be closed. Then it answers.
//!
//! A message that fails a check is answered if its id can be read, and not else; either
//! way it is a typed error of [`Inlet::poll`], and the next message is taken. Nothing is
//! allocated, nor repeated, by a number of a peer's: only by what came.
//!
//! # What is promised
//!
//! 1. **A completion is true.** `Ok` is the inlet's word that all bytes are in their places. With
//!    [`Error::Refused`] none are, and none will be; but [`Stale`](Refusal::Stale) says of
//!    this message alone that it came too late.
//! 2. **A push is written at most once.** A plane's pushes to a session go over one link, in the order
//!    of their ids, and an inlet takes none that is not newer than the newest it has seen of that
//!    plane. So a duplicate is not written, nor what was overtaken. A duplicate of the newest
//!    push is answered as that was.
//! 3. **A push that succeeds settles those before it.** Once a push is `Ok`, no
//!    earlier one of this plane to this session will be written any more. To be
//!    sure after a timeout, push a [`Transfer`](super::Transfer) without pieces: it moves
//!    nothing, and its `Ok` says so.
//!
//! Not promised: with [`Error::TimedOut`] and [`Error::Link`] it is not known whether the bytes arrived, or
//! will: the message may be on its way. It is harmless where its window is closed by then. If
//! the same place is open again for another request, the late bytes are written there,
//! as an address has no generation; unless a later push of the same plane came first (3). So whoever
//! gives a place away again after a failed push has the pusher settle it; and lets its
//! inlet take what is there before it opens the window. A pusher that has died settles nothing: a head
//! node waits instead, for
//! [`Settings::with_late_writes`](crate::transfer::coordinator::Settings::with_late_writes). 2 and 3 hold as long as the inlet remembers the
//! plane: among [the last 1024](Inlet::with_remembered_planes) that pushed.
//!
//! There is no authentication: whoever reaches the inlet may write into any open window, and
//! may use the `origin` of another if it knows it. Keep inlets where untrusted peers are not.
//!
//! # What goes wrong
//!
//! | | the push ends with | the link |
//! |---|---|---|
//! | the message is lost, or the peer is silent | [`TimedOut`](Error::TimedOut), after [`with_timeout`](Plane::with_timeout) | is dropped when nothing is under way on it |
//! | the answer is lost | `TimedOut`, though the bytes arrived | as above |
//! | there is no room to send | it waits in its slot, and then `TimedOut` | stays |
//! | the link fails | [`Link`](Error::Link), as do all that are under way on it | is dropped |
//! | an answer comes late, or twice, or is none | nothing: it is [counted](Plane::ignored) | stays |
//!
//! The next push to that session makes another link. Nothing is pushed again unasked.
//!
//! # Transports
//!
//! - **ZeroMQ**: an inlet listens on a `ROUTER` socket, which many pushers reach, each by a `DEALER`
//!   socket of `Dealers` (feature `zmq`). `PUSH` and `PULL` sockets go one way, and would need an endpoint for
//!   answers at each pusher. libzmq does not tell that a peer is gone: its pushes time out.
//! - **Others**: [`Links`] listens on links that have one peer each, such as loopback and PAIR
//!   sockets of NNG.
//!
//! The receiver's [`Caps`](crate::transport::Caps) have to admit a whole push: with the default ones 1 GiB in a
//! frame, 2 GiB in all.
//!
//! # Examples
//!
//! Two workers in one process:
//!
//! ```
//! use std::time::Duration;
//! use tensorwire::plane::messages::{Links, Plane};
//! use tensorwire::plane::{DataPlane, RegionOptions, Transfer};
//! use tensorwire::transport::loopback;
//!
//! let options = RegionOptions::new(1 << 20).with_min_block(4096);
//!
//! // The receiver opens a window, and tells its session and address (by way of the head node).
//! let listen = Links::new();
//! let adder = listen.adder();
//! let nobody = |_: &str| Err::<loopback::Loopback, _>(loopback::Error::Closed);
//! let mut decoder = Plane::new("decoder", nobody);
//! let received = decoder.register(options)?;
//! let mut inlet = decoder.inlet(listen);
//! let landing = received.pool().allocate(4096)?.open();
//! let address = received.address_of(landing.offset())?;
//!
//! // The sender connects at its first push: here, by giving the far end of a pair away.
//! let mut denoiser = Plane::new("denoiser", move |_: &str| {
//!     let (near, far) = loopback::pair();
//!     adder.add(far);
//!     Ok::<_, loopback::Error>(near)
//! });
//! let region = denoiser.register(options)?;
//! let mut slot = region.pool().allocate(4096)?;
//! region.bytes_mut(&mut slot)?[..3].copy_from_slice(&[1, 2, 3]);
//! let mut transfer = Transfer::new(slot, "decoder");
//! transfer.add_piece(0..3, address)?;
//! denoiser.push(transfer).map_err(|(_, error)| error)?;
//!
//! let written = inlet.poll().ok_or("no push")??;
//! let completion = denoiser.wait_completion(Duration::from_secs(1)).ok_or("no answer")?;
//! assert_eq!((written.bytes(), completion.result()), (3, Ok(3)));
//! let slot = landing.close()?;
//! assert_eq!(received.bytes(&slot)?[..3], [1, 2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Over ZeroMQ the two ends are `Plane::new(session_id(router.endpoint()), ..)` with
//! `inlet(router)`, and `Plane::new("", Dealers::new(&context))`.

mod connect;
mod error;
mod inlet;
mod links;
mod peer;
mod pusher;
mod refusal;
mod seen;
mod session;
mod wire;
#[cfg(feature = "zmq")]
mod zmq;

pub use connect::{Connect, Listen};
pub use error::{Error, InletError, Malformed};
pub use inlet::{Inlet, Written};
pub use links::{Adder, Linked, Links, LinksError};
pub use pusher::Plane;
pub use refusal::Refusal;
pub use session::session_id;
#[cfg(feature = "zmq")]
pub use zmq::Dealers;

use super::region::Regions;

/// The most pieces of a push: as many tensors as a message has by default.
const MAX_PIECES: usize = 4096;
