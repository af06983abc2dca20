//! Messages in shared memory, between the processes of one host, over iceoryx2. For Linux.
//!
//! ```text
//!  Sender                       a pool in shared memory                    Receiver
//!    | lend a place ----------> [ bundle | bundle |      |      ]              |
//!    | write the frames ------------^                                          |
//!    | send: pass on where it lies ------------------------------------------> |
//!    |                            ^---------------- frames are read there -----|
//!    | <---- the place is free again when the message is dropped --------------|
//! ```
//!
//! A message is one sample that holds a [bundle](crate::bundle). Nothing is copied
//! but by the producer's own write, so that passing a message on takes as long for
//! 64 bytes as for 16 MiB. Frames lie at multiples of 64.
//!
//! # Examples
//!
//! A channel has a name, any number of senders up to [`MAX_SENDERS`], and one
//! receiver.
//!
//! ```
//! use tensorwire::transport::{Frames, LendFrames, Loan, RecvFrames, SendFrames, Wait, iceoryx2};
//!
//! # let name = &format!("doc/mod/{}", std::process::id());
//! # let _ = r#"
//! let name = "denoiser/latents";
//! # "#;
//! let channel = iceoryx2::Builder::new(name);
//! let mut sender = channel.clone().sender()?;
//! let mut receiver = channel.receiver()?;
//!
//! // Copied into the shared memory,
//! sender.send(&[b"metadata", b"tensor"])?;
//! // or written where it will be read.
//! let mut loan = sender.lend_frames(&[8, 4096], Wait::Configured)?;
//! for frame in loan.frames_mut() {
//!     frame.fill(7);
//! }
//! loan.send(Wait::Configured).map_err(|(_, error)| error)?;
//!
//! let mut message = iceoryx2::Message::default();
//! receiver.recv_into(&mut message)?;
//! assert_eq!(message.frame(1), Some(&b"tensor"[..]));
//! receiver.recv_into(&mut message)?;
//! assert_eq!(message.frame(1).map(|frame| frame.as_ptr() as usize % 64), Some(0));
//! # Ok::<(), iceoryx2::Error>(())
//! ```
//!
//! # Room, and what it costs
//!
//! Each sender owns a pool of [`depth`](Builder::depth) places, each of
//! [`message_bytes`](Builder::message_bytes): memory of the product of the two, in
//! `/dev/shm`. It is committed page by page as it is written, and the place freed
//! last is taken first, so that a receiver that keeps up commits one message's
//! worth. **A full `/dev/shm` kills the writer with `SIGBUS`, as with any such
//! memory: give it room for the pools** (containers often have 64 MiB there).
//!
//! A place is taken from when it is lent until the receiver drops or replaces the
//! message. Messages that the receiver keeps are places that its sender lacks.
//! When all are taken there is no room: a send waits, and then fails with
//! [`Error::TimedOut`] or [`Error::WouldBlock`], before anything is written.
//!
//! # Meeting
//!
//! Either end may come first. Without a receiver a send finds no room, and waits
//! for one. A receiver knows all senders that were there when it was opened; it
//! gets to know later ones when it receives, and only then the first send of such
//! a sender finds room. So nothing sent is lost to a sender that is
//! gone before the receiver knew of it. On one thread, open the sender first, or receive
//! once, in vain if need be, between opening it and sending.
//!
//! A receiver that has no descriptors or no address space left for the pool of a sender
//! says so: opening it fails, or, with a sender that comes later, one receive does
//! ([`Error::Failed`]). Then that sender finds no room until the receiver is opened anew.
//! A sender without address space for its pool cannot be opened, and a file remains that
//! takes no memory; the next end that is opened a minute later removes it.
//!
//! What was sent is received also after the sender was dropped. What the receiver
//! has not taken when *it* is dropped or killed is lost.
//!
//! A message may outlive its receiver; the channel has no room for another receiver
//! ([`Error::ReceiverExists`]) until it is dropped. Of several senders
//! the earlier ones are served first; there is no fairness.
//!
//! # Waiting
//!
//! A receive polls for [`spin`](Builder::spin), then sleeps. A sender that finds
//! the receiver awake makes no system call. Sends that wait for room look for it
//! every millisecond at least. Timeouts come at most about a millisecond late on a
//! machine that is not overloaded, and never early; a send that cleans up after a killed
//! process, some tens of them. A receiver can also be waited for
//! together with other things, by its descriptor: [`Receiver::arm`].
//!
//! # Crashes
//!
//! A message is passed on whole or not at all, whenever its sender is killed. What
//! a killed process leaves behind is removed when the next end of any channel in
//! the same directory is opened, or by a send that waits for room for a tenth of a second:
//! then it goes on with the next receiver. Until then a killed receiver looks like one
//! that is slow, and what it is sent is lost with it.
//!
//! # Who is trusted
//!
//! All files of a channel belong to their owner alone (mode 0600), in a directory that is
//! the owner's too and that nobody else may write to; one that is made here has mode 0700.
//! So the ends of a channel are processes of one user. One other file stays in
//! `/dev/shm`; its name ends with `.global_mgmt`. There iceoryx2 counts the ends that
//! were opened; nothing that is sent depends on it. It is open to all for the moment in which
//! the first end makes it, then closed to others. If somebody empties it in that moment, or its
//! maker is killed then, an end that is opened just then hangs until the file is removed;
//! later ends remove it after a second. If somebody else made it beforehand, no end can be
//! opened, and [`Error::Failed`] says what to remove. The receiver maps the
//! pool for reading only, and trusts no byte of a message: header and table of the bundle
//! are copied, and checked on the copy; so is the first frame, the metadata,
//! up to [`METADATA_COPY`] bytes. What was checked cannot change any more. A writer
//! that goes on writing after it sent can garble the values in the other frames, but no
//! size and no bound; check the values where they matter (a checksum in the metadata).
//! The bytes of padding are not looked at.
//!
//! What remains is trust in iceoryx2's own bookkeeping, which lies in shared memory too,
//! the length of each sample among it: a process of the same user that writes there on
//! purpose, or truncates the files, can crash the others. And Rust takes it that what a `&[u8]` shows does not
//! change: a frame that is written while it is read has unspecified values.

mod builder;
mod channel;
mod error;
mod loan;
mod message;
#[cfg(feature = "tokio")]
mod readiness;
mod recv;
mod send;
mod unfinished;

use core::time::Duration;

pub use super::body::Frame;
pub use builder::Builder;
pub use error::{DirectoryFault, Error};
pub use loan::Lent;
pub use message::Message;
#[cfg(feature = "tokio")]
pub use readiness::{Naps, Wakes};
pub use recv::Receiver;
pub use send::Sender;

/// How many senders a channel can have at a time.
pub const MAX_SENDERS: usize = 32;

/// How many messages of one sender can be under way or kept by the receiver, at most.
pub const MAX_DEPTH: usize = 128;

/// How many messages of one sender can be under way or kept by the receiver, unless
/// set: enough to work on some while others come.
pub const DEFAULT_DEPTH: usize = 8;

/// How large a message can be unless set, as a bundle.
pub const DEFAULT_MESSAGE_BYTES: usize = 16 << 20;

/// How long a call waits unless set: long enough for any healthy peer, short enough
/// to notice one that is not.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a receive polls before it sleeps, unless set: about as long as a sleep
/// and a wake-up take.
pub const DEFAULT_SPIN: Duration = Duration::from_micros(20);

/// Up to how many bytes of the first frame are copied on receiving.
///
/// The first frame is the metadata, whose text is validated once and then read again and again:
/// that asks for bytes that do not change. As many as the message decoder admits by default.
pub const METADATA_COPY: usize = 1 << 20;
