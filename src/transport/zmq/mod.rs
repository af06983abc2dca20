//! ZeroMQ: messages between threads, processes and hosts.
//!
//! ```text
//!   kind                 sends           receives          peers
//!   Push -> Pull         in turn         -                 many to many
//!   Pair <-> Pair        yes             yes               one to one
//!   Dealer <-> Router    in turn         yes               many to one, answered by envelope
//!   Publish -> Subscribe to all          by topic          one to many, lossy
//! ```
//!
//! A [`Context`] makes sockets, by a [`Builder`] with safe defaults; either side
//! may bind, the other connects, over `inproc://` (within one context), `ipc://`
//! or `tcp://`. What a socket can do is in its type: a [`Pull`] socket has no
//! `send`. libzmq leaves the file of an `ipc://` endpoint behind when it is done,
//! and replaces one that it finds there.
//!
//! # Examples
//!
//! ```
//! use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait, zmq};
//!
//! let context = zmq::Context::new();
//! let mut pull = context.pull().bind("tcp://127.0.0.1:*")?;
//! let mut push = context.push().connect(pull.endpoint())?;
//!
//! push.send(&[b"metadata", b"a small tensor"])?;
//! let mut message = zmq::Message::default();
//! pull.recv_into(&mut message)?;
//! assert_eq!(message.frame(1), Some(&b"a small tensor"[..]));
//!
//! // A large tensor is moved, not copied.
//! let mut parts = vec![Part::from(&b"metadata"[..]), Part::from(vec![0_u8; 1 << 20])];
//! push.send_parts(&mut parts, Wait::Configured)?;
//! pull.recv_into(&mut message)?;
//! assert_eq!(message.frame(1).map(<[u8]>::len), Some(1 << 20));
//! # Ok::<(), zmq::Error>(())
//! ```
//!
//! Tensors from one end to the other: the sender gives its tensor away, and the
//! receiver reads it where libzmq put it.
//!
//! ```
//! use tensorwire::message::{Decoder, Scalar, encode_to_vec};
//! use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait, zmq};
//! use tensorwire::{DType, Descriptor};
//!
//! let context = zmq::Context::new();
//! let mut pull = context.pull().bind("tcp://127.0.0.1:*")?;
//! let mut push = context.push().connect(pull.endpoint())?;
//!
//! // 64 x 64 of bfloat16 in a vector; any other owner of bytes will do.
//! let latents: Vec<u8> = [0x80, 0x3f].repeat(64 * 64);
//! let tensors = [Descriptor::new("latents", DType::BFloat16, &[64, 64])?];
//! let metadata = encode_to_vec(&tensors, &[("request_id", Scalar::from("r1"))])?;
//! let mut parts = vec![Part::from(metadata), Part::from(latents)];
//! push.send_parts(&mut parts, Wait::Configured)?;
//!
//! let mut received = zmq::Message::default();
//! let mut decoder = Decoder::new();
//! pull.recv_into(&mut received)?;
//! let message = decoder.decode(received.frames())?;
//! let latents = message.tensor("latents").ok_or("no latents")?;
//! assert!(latents.dims().eq([64, 64]));
//! assert_eq!(latents.bytes()[..4], [0x80, 0x3f, 0x80, 0x3f]);
//! assert!(message.scalars().field("request_id")?.as_str()? == "r1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Envelopes
//!
//! A ROUTER socket puts the identity of the sender before each message. It is
//! kept apart: [`Routed::envelope`], while the frames are those of the message.
//! The answer goes to [`Socket::to`] that envelope; an identity that no peer has is
//! [`Error::Unreachable`], not a message that vanishes.
//!
//! ```
//! use tensorwire::transport::{Frames, RecvFrames, SendFrames, zmq};
//!
//! let context = zmq::Context::new();
//! let mut router = context.router().bind("inproc://envelopes")?;
//! let mut dealer = context.dealer().identity(b"worker-7").connect("inproc://envelopes")?;
//!
//! dealer.send(&[b"ready"])?;
//! let routed = router.recv()?;
//! assert_eq!(routed.envelope(), b"worker-7");
//! assert_eq!(routed.frame(0), Some(&b"ready"[..]));
//! router.to(routed.envelope()).send(&[b"work"])?;
//! assert_eq!(dealer.recv()?.frame(0), Some(&b"work"[..]));
//! # Ok::<(), zmq::Error>(())
//! ```
//!
//! A peer that is gone is one that nobody has only once libzmq has noticed, by the end
//! of its connection; until then messages queue for it, and are lost with it.
//! After that there are three cases:
//!
//! - Its queue had room: [`Error::Unreachable`], at once.
//! - Its queue was full: [`Error::TimedOut`] or [`Error::WouldBlock`], as while it lived,
//!   until the ROUTER socket has received all that the peer had sent, and tried to receive
//!   more; from then on `Unreachable`. So a service that answers has to
//!   go on receiving (in vain, with [`Wait::Never`](super::Wait::Never), if nothing else
//!   is to be received) while an answer finds no room.
//! - The ROUTER socket itself connected to it: libzmq waits for it to come back, and the
//!   queue goes on taking messages until it is full. It is never `Unreachable`.
//!
//! A REQ peer, which is no kind of this module, puts an empty frame before what
//! it sends and demands one before the answer. Nothing tells that frame from a
//! first frame that is empty by intent, so it stays: frame 0 of what such a peer
//! sends is empty, the message is in `&routed.frames()[1..]`, and an answer is
//! `router.to(routed.envelope()).send(&[b"", b"metadata", b"tensor"])`. DEALER
//! peers send no such frame.
//!
//! # Caps, and what they cannot do
//!
//! [`Caps::frame_bytes`](super::Caps::frame_bytes) is libzmq's `ZMQ_MAXMSGSIZE`,
//! which is set to no less than 512 bytes, as the handshake counts too: over ipc
//! and tcp, a peer that sends a larger frame is disconnected before the frame is
//! read, its message is lost, and no error is seen here; a peer that connected
//! will connect again. Lost with the connection is also what was under way on it: the
//! messages that the peer sent after that one, and what was still to go to it. Nothing
//! tells of that but
//! [`Counters::disconnects`](super::Counters::disconnects), and only where
//! [`Builder::count_connections`] asked for it: no error at either end, no count of
//! refused or lost messages. A service that has to know asks for the count, or has
//! its peers number their messages. Over inproc, for frames within those 512 bytes, and for the
//! caps on the message, the message is received, drained and refused as [`Error::Cap`].
//!
//! libzmq hands a message over when it has the last frame. A peer that sends
//! frame after frame and never the last one makes libzmq hold all of them, caps or
//! not: do not let untrusted peers reach a socket directly. The high-water marks
//! count messages for each peer, so that what may wait here is bounded by
//! peers x mark x [`Caps::message_bytes`](super::Caps::message_bytes).
//!
//! libzmq also speaks ZMTP 1.0, whose peers do not say who they are: bytes that start
//! with no greeting may come as messages, whole and within the caps, of frames that
//! mean nothing. Decoding refuses those; code that reads frames by itself has to.
//!
//! # Owned buffers
//!
//! [`SendFrames::send_parts`](super::SendFrames::send_parts) lends an owned buffer
//! to libzmq, whose threads read it, and drops the owner when the last reader has
//! done: over ipc and tcp, when the bytes are written to the connection; over
//! inproc, when the receiver lets go of the frame, which has the address of the
//! buffer. That also happens to messages that are never delivered. Smaller buffers
//! than [`DEFAULT_COPY_BELOW`] are copied instead, and dropped before the send returns.
//!
//! Lending a `Vec<u8>`, a boxed or shared slice, or a
//! [`PooledBuffer`](super::PooledBuffer) allocates nothing on our side; libzmq asks for
//! 40 bytes of its own. With a [`BufferPool`](super::BufferPool) a sender reuses its
//! buffers for ever.
//!
//! A panic in the `Drop` of a lent owner goes no further, as libzmq is the caller
//! and cannot unwind: the panic hook reports it, nothing else happens. That of a
//! copied one goes through the send, which has handed the message over by then.
//!
//! One case is beyond our reach. If a peer disconnects between two frames of one
//! message, libzmq 4.3 may forget the frames it had already, and never release
//! them: the send is [`Error::Disconnected`], and the buffers are leaked.
//!
//! # What received frames hold on to
//!
//! libzmq reads up to 8 KiB off a connection at once and hands out slices of that batch.
//! A frame keeps its whole batch, as measured with libzmq 4.3.4 on 64-bit targets:
//!
//! | frame | over ipc and tcp | over inproc |
//! |---|---|---|
//! | up to 32 bytes | nothing: it lies in its handle | nothing |
//! | 33 bytes to 8 KiB | 18,160 bytes at most, shared with its neighbours | its bytes and 40 |
//! | more | its bytes and 40 | its bytes and 40, or the sender's owner |
//!
//! While messages are received into the same [`Message`] that is of no account. Where
//! small ones are *kept*, a thousand frames of 64 bytes can hold 18 MB: [`Frames::receipt`](super::Frames::receipt)
//! tells, and [`Message::detach`] copies small frames out.
//!
//! What a message cost is in two places: the [`Receipt`](super::Receipt) is the
//! transport's, the [`Cost`](crate::message::Cost) is the decoder's. A test that wants no
//! copies adds them up:
//!
//! ```
//! use tensorwire::message::{Decoder, NO_SCALARS, encode_to_vec, frames};
//! use tensorwire::transport::{Frames, RecvFrames, SendFrames, zmq};
//! use tensorwire::TensorView;
//!
//! let context = zmq::Context::new();
//! let mut pull = context.pull().bind("inproc://cost")?;
//! let mut push = context.push().connect("inproc://cost")?;
//! let tensors = [TensorView::from_slice("x", &[1000], &[1.0_f32; 1000])?];
//! push.send(&frames(&encode_to_vec(&tensors, &NO_SCALARS)?, &tensors))?;
//!
//! let (received, mut decoder) = (pull.recv()?, Decoder::new());
//! let message = decoder.decode(received.frames())?;
//! let (receipt, cost) = (received.receipt().unwrap_or_default(), message.cost());
//! assert_eq!(receipt.copied_bytes() + cost.misaligned_bytes(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Counters
//!
//! Each socket counts what goes through it: [`Observed::counters`](super::Observed::counters),
//! a few additions a message. Connections are counted where
//! [`Builder::count_connections`] asks for it, which takes a thread for the socket.
//!
//! # Publishing
//!
//! Publish never waits: a subscriber that has no room, or has not connected yet,
//! misses messages, whole ones. A topic is a prefix of the first frame.
//!
//! # Closing
//!
//! Dropping a socket loses nothing of what was sent: it goes on its way in the
//! background, for at most the linger time ([`DEFAULT_LINGER`] after closing,
//! unless set otherwise). Dropping the last handle of a context, which each socket
//! has too, waits until that is done: no longer than the linger time, be the peer
//! gone, silent, or one that does not read. What is lost, then: messages that no peer
//! came to fetch within the linger time, and those in the queues of a process that
//! ends without having dropped its context (by `exit`, or with the context in a
//! `static`). Owners of what is lost are dropped all the same, unless the process
//! ends first.
//!
//! Prefer a linger that is not zero for sockets that send messages of several
//! frames over ipc or tcp. libzmq 4.3 aborts the process if a connection breaks at
//! the very moment when its session gives up a half-written message (zeromq/libzmq
//! issue 3442), and a linger of zero gives up at once.
//!
//! # What aborts the process
//!
//! Besides that race, a system that has no memory or no file descriptors left for
//! a context: libzmq aborts, and there is no way to be told.

mod builder;
mod endpoint;
mod error;
mod kind;
mod lent;
mod message;
mod monitor;
mod raw;
#[cfg(feature = "tokio")]
mod readiness;
mod recv;
mod send;
mod socket;

use core::fmt;
use core::time::Duration;

// What `Socket::poll_item` takes, gives and is for.
pub use ::zmq::{POLLERR, POLLIN, POLLOUT, PollEvents, PollItem, poll};
pub use builder::Builder;
pub use error::Error;
pub use kind::{Dealer, Kind, Pair, Publish, Pull, Push, Receives, Router, Sends, Subscribe};
pub(in crate::transport) use lent::Lent;
pub use message::{Frame, INLINE_BYTES, Message, Routed};
pub use send::Peer;
pub use socket::Socket;

/// A handle to what sockets live in: the I/O threads, and the `inproc` endpoints.
///
/// Clones are handles to the same. The last one, those of the sockets included,
/// waits on dropping for what is still to be sent; see [the module](self) on
/// closing.
///
/// It is not made from, nor lent as, one of the crate `zmq`: sockets of that crate
/// may write into what they receive, and over inproc that is the sender's buffer.
#[derive(Clone)]
pub struct Context {
    inner: ::zmq::Context,
}

impl Context {
    /// Makes a context with one I/O thread, which is good for a gigabyte a second.
    #[must_use]
    pub fn new() -> Self {
        let inner = ::zmq::Context::new();
        Self { inner }
    }

    /// Makes a context with `threads` I/O threads; with none, `inproc` alone works.
    ///
    /// # Errors
    ///
    /// [`Error::System`], if libzmq does not take the number.
    pub fn with_io_threads(threads: u16) -> Result<Self, Error> {
        let inner = ::zmq::Context::new();
        inner.set_io_threads(i32::from(threads))?;
        Ok(Self { inner })
    }

    /// Makes a builder of a DEALER socket.
    pub fn dealer(&self) -> Builder<Dealer> {
        Builder::new(self)
    }

    /// Makes a builder of a PAIR socket.
    pub fn pair(&self) -> Builder<Pair> {
        Builder::new(self)
    }

    /// Makes a builder of a PUB socket.
    pub fn publish(&self) -> Builder<Publish> {
        Builder::new(self)
    }

    /// Makes a builder of a PULL socket.
    pub fn pull(&self) -> Builder<Pull> {
        Builder::new(self)
    }

    /// Makes a builder of a PUSH socket.
    pub fn push(&self) -> Builder<Push> {
        Builder::new(self)
    }

    /// Makes a builder of a ROUTER socket.
    pub fn router(&self) -> Builder<Router> {
        Builder::new(self)
    }

    /// Makes a builder of a SUB socket.
    pub fn subscribe(&self) -> Builder<Subscribe> {
        Builder::new(self)
    }

    pub(in crate::transport) fn inner(&self) -> &::zmq::Context {
        &self.inner
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

/// Owned buffers of fewer bytes are copied.
///
/// Measured from send to receive, over inproc: up to 512 bytes copying is cheaper
/// by a fifth, from 1024 bytes on lending is (by a tenth there, by two thirds at
/// 4 KiB). Over tcp the two differ by less than the noise up to 4 KiB.
pub const DEFAULT_COPY_BELOW: usize = 1024;

/// libzmq's own mark.
pub const DEFAULT_HIGH_WATER: u32 = 1000;

/// How long what was sent goes on its way after its socket is dropped.
///
/// libzmq would wait forever, and a program that talks to a dead peer would not end.
pub const DEFAULT_LINGER: Duration = Duration::from_secs(30);

/// How long a call waits: enough for any healthy peer, and not forever.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
