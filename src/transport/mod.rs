//! Moving messages made of frames, and never looking inside one.
//!
//! ```text
//!              SendFrames                                RecvFrames
//!  &[&[u8]] ---- copied ---->  +-----------------+
//!                              |  a transport's  | ----> Frames: owns the bytes,
//!  Buffer ------ moved ----->  |  queue or wire  |       reused by the next receive
//!                              +-----------------+
//! ```
//!
//! # Examples
//!
//! Received tensors are read where they lie. The message and the decoder are kept
//! for the next one, and with them their storage.
//!
//! ```
//! # #[cfg(feature = "std")] {
//! use tensorwire::message::{NO_SCALARS, encode_to_vec, frames};
//! use tensorwire::transport::{Frames, RecvFrames, SendFrames, loopback};
//! use tensorwire::{Decoder, TensorView};
//!
//! let (mut sender, mut receiver) = loopback::pair();
//! let tensors = [TensorView::from_slice("timesteps", &[2], &[999.0_f32, 500.0])?];
//! let metadata = encode_to_vec(&tensors, &NO_SCALARS)?;
//! sender.send(&frames(&metadata, &tensors))?;
//!
//! let mut received = loopback::Message::default();
//! let mut decoder = Decoder::new();
//! receiver.recv_into(&mut received)?;
//! let message = decoder.decode(received.frames())?;
//! let timesteps = message.tensor("timesteps").ok_or("no timesteps")?;
//! assert!(timesteps.elements::<f32>()?.eq([999.0, 500.0])); // at any alignment
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The contract
//!
//! Every transport promises three things, and the tests run them over each:
//!
//! 1. **Order.** Messages of one sender reach one receiver in the order they
//!    were sent. (A transport that spreads messages over several peers, such
//!    as a ZeroMQ PUSH socket with two connections, keeps it per peer.)
//! 2. **Wholeness.** A message arrives with all its frames or not at all, also
//!    when sending fails half way. A refused, interrupted or oversized message
//!    is drained to its last frame: the next receive starts at a boundary.
//! 3. **Caps.** No received message is larger than its [`Caps`].
//!
//! One exception: a library may cut a peer off rather than read what is far over
//! the caps. Over ipc and tcp libzmq does so at a frame over [`Caps::frame_bytes`] (and over
//! 512 bytes), NNG at a body longer than the caps admit (and than 64 KiB). Then that message
//! is lost, and with the connection the others that were under way on it; no receive fails,
//! and no message counts as refused. A sender that connects again goes on with a
//! later message: there is a gap, never a part of a message, nor another order. The
//! one trace is [`Counters::disconnects`], which zmq counts only if asked to
//! (`zmq::Builder::count_connections`). A service that has to notice watches that count,
//! or has its peers number their messages.
//!
//! Three things it does *not* promise. Frames lie at arbitrary addresses: never
//! assume alignment. A send that returned `Ok` was handed over; whether the
//! peer got it is for the peer to say. And a message has at least one frame:
//! the empty list is refused as [`ErrorKind::InvalidInput`], because no wire
//! here can carry it (one frame of no bytes is fine).
//!
//! # Waiting
//!
//! Each call says how long it may wait, by a [`Wait`]. Not waiting long enough
//! is a value, not a breakdown: [`ErrorKind::WouldBlock`] when the call was
//! not to wait at all, [`ErrorKind::TimedOut`] when its time was up. In both
//! cases nothing was sent, nothing was lost, and the same call may be repeated.
//! A signal (`EINTR`) does not end a call: it goes on with the time left.
//!
//! A send may wait for a peer, or queue for one. Where nobody is there yet:
//!
//! | transport | a send |
//! |---|---|
//! | loopback | both ends are made at once |
//! | zmq | queues for a peer that the socket connects to, up to the high-water mark; waits where it is bound only, or has no endpoint; PUB drops, ROUTER is [`ErrorKind::Unreachable`] |
//! | nng | queues, up to the high-water mark; PUB drops |
//! | iceoryx2 | waits for a receiver |
//!
//! So generic code takes neither an `Ok` for the word of a peer, nor a send that finds no
//! room for a sign that a peer is slow: perhaps nobody came.
//!
//! # Ownership
//!
//! Borrowed frames are copied by the send that takes them. Owned frames are
//! moved into a `Buffer`, so that nothing can touch them in flight; whether
//! the bytes are copied after that is the transport's business. Each owner is
//! dropped exactly once, and not before the transport has done with its bytes. With a
//! `BufferPool` that is how buffers come back to be filled again. Where a message is one
//! buffer, [`LendFrames`] lends its frames out, to be written where they are sent from.
//!
//! A received message owns its bytes: it may outlive the transport it came
//! from. Views borrow from the message, so it is not moved, cleared or
//! received into while one lives. A receive that fails, for whatever reason,
//! leaves the message empty.
//!
//! # Implementing a transport
//!
//! Implement [`SendFrames::send_frames`], [`RecvFrames::recv_frames`], or both,
//! which makes a [`Transport`]; the other methods follow from these two. Check
//! received messages with [`Caps::meter`], fix when a call has to be back with a
//! `Deadline`, count with a [`Recorder`]. The traits need neither `std` nor an
//! allocator.
//!
//! - **Sends need room of their own.** With a high-water mark of *n*, sends of *n*
//!   messages of any size come back though the receiver, which is there, calls nothing
//!   meanwhile. What takes bytes only as fast as they are read, a pipe or a stream, has to
//!   have a queue before it, and a thread that writes from there.
//! - **A send that times out has sent nothing,** also when its time is up half way. So
//!   wait before the first byte, for room for the whole message; and once a byte is
//!   on its way the message is sent: the rest is in the queue, and leaves from
//!   there. If the wire breaks half way, the receiver drops the part it has.
//! - **A receive that times out half way keeps the part it has,** for the next one.
//! - **Try first, and ask the deadline after.** A call that is not to wait, or has no time
//!   to, gets what is there. `Deadline` has the loop.
//!
//! Then hold it to the contract: with feature `conformance`, the module
//! `transport::conformance` has the tests that the transports of this crate pass.
//! Yours opens a pair of ends, and the suite does the rest.

#[cfg(any(feature = "nng", feature = "iceoryx2"))]
mod body;
#[cfg(feature = "alloc")]
mod buffer;
mod caps;
#[cfg(feature = "conformance")]
pub mod conformance;
mod counters;
#[cfg(feature = "std")]
mod deadline;
mod error;
#[cfg(feature = "iceoryx2")]
pub mod iceoryx2;
mod lend;
#[cfg(feature = "std")]
pub mod loopback;
#[cfg(feature = "nng")]
pub mod nng;
#[cfg(feature = "std")]
mod pool;
mod receipt;
#[cfg(feature = "tokio")]
pub mod tokio;
#[cfg(feature = "zmq")]
pub mod zmq;

use core::time::Duration;

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

#[cfg(feature = "alloc")]
pub use buffer::{Buffer, Part};
pub use caps::{Cap, CapExceeded, CapMeter, Caps};
pub use counters::{Counters, Observed, Recorder};
#[cfg(feature = "std")]
pub use deadline::{Deadline, Expired};
pub use error::{ErrorKind, TransportError};
pub use lend::{LendFrames, Loan};
#[cfg(feature = "std")]
pub use pool::{BUFFER_ALIGN, BufferPool, PoolError, PoolStats, PooledBuffer};
pub use receipt::Receipt;

/// A message as a transport received it: it owns the bytes that views borrow.
///
/// [`Default`] makes an empty one to receive into. Keep it and receive into it
/// again: in the steady state that allocates nothing.
///
/// # Implementing it
///
/// The frames are a slice, as decoders go to and fro in them. A transport that
/// receives each frame apart has such a slice anyway. One that receives all of
/// them in one body, a bundle in shared memory say, keeps one small handle for
/// each frame beside it. A handle cannot borrow from the body beside it, so it
/// has a share in the body:
///
/// ```
/// use std::ops::Range;
/// use std::sync::Arc;
/// use tensorwire::transport::Frames;
///
/// #[derive(Default)]
/// struct Bundled {
///     body: Arc<Vec<u8>>,
///     frames: Vec<Slice>,
/// }
///
/// /// One frame: where it is in the body.
/// struct Slice {
///     body: Arc<Vec<u8>>,
///     range: Range<usize>,
/// }
///
/// impl AsRef<[u8]> for Slice {
///     fn as_ref(&self) -> &[u8] {
///         self.body.get(self.range.clone()).unwrap_or_default()
///     }
/// }
///
/// impl Bundled {
///     /// What a receive does with the body that came, and where it has its frames.
///     fn fill(&mut self, came: &[u8], ranges: &[Range<usize>]) {
///         self.clear();
///         // Nobody else has a share now: the room of the last body serves again.
///         let body = Arc::make_mut(&mut self.body);
///         body.clear();
///         body.extend_from_slice(came);
///         for range in ranges {
///             let (body, range) = (self.body.clone(), range.clone());
///             self.frames.push(Slice { body, range });
///         }
///     }
/// }
///
/// impl Frames for Bundled {
///     type Frame = Slice;
///
///     fn frames(&self) -> &[Slice] {
///         &self.frames
///     }
///
///     fn clear(&mut self) {
///         self.frames.clear();
///     }
/// }
///
/// let mut message = Bundled::default();
/// message.fill(b"metadatatensor", &[0..8, 8..14]);
/// assert_eq!(message.frame(1), Some(&b"tensor"[..]));
/// ```
///
/// That is a count up and down for each frame, and in the steady state no
/// allocation. An adapter of foreign functions, which has `unsafe` anyway, can
/// do without the count: its handle is the address and length of a frame in a body
/// that does not move. Then a handle is never cloned nor given away, only lent by
/// [`Frames::frames`], whose borrow keeps the body.
pub trait Frames: Default {
    /// What keeps one frame.
    type Frame: AsRef<[u8]>;

    /// Returns the frames in order, without any envelope.
    fn frames(&self) -> &[Self::Frame];

    /// Lets go of all frames, and keeps the room for the next ones.
    fn clear(&mut self);

    /// Returns the bytes of the frame at `index`, or `None` past the last one.
    fn frame(&self, index: usize) -> Option<&[u8]> {
        self.frames().get(index).map(AsRef::as_ref)
    }

    /// Returns what receiving this message cost; `None` from a transport that does
    /// not keep account.
    fn receipt(&self) -> Option<Receipt> {
        None
    }

    /// Counts the bytes in all frames together.
    fn byte_count(&self) -> usize {
        self.frames().iter().fold(0, |sum: usize, frame| {
            sum.saturating_add(frame.as_ref().len())
        })
    }
}

/// How long one call may wait.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Wait {
    /// As long as the transport, or the device, was set up to wait: its timeout.
    #[default]
    Configured,
    /// As long as it takes.
    Forever,
    /// Not at all: what cannot be done now is [`ErrorKind::WouldBlock`]; devices say `RingFull` or `NotReady`.
    Never,
    /// At most this long, then it is timed out. Zero is as good as
    /// [`Wait::Never`], apart from the kind of the error.
    UpTo(Duration),
}

/// The sending half of a transport.
pub trait SendFrames {
    /// Why sending failed.
    type SendError: TransportError;

    /// Sends `frames`, in order, as one message, copying the bytes.
    ///
    /// # Errors
    ///
    /// The transport's own; then the peer sees none of the frames.
    /// [`ErrorKind::WouldBlock`] and [`ErrorKind::TimedOut`] mean that there was
    /// no room within `wait`; or nobody to send to, if the transport does not queue
    /// for peers to come.
    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), Self::SendError>;

    /// Sends `parts`, in order, as one message, taking the owned ones along.
    ///
    /// When it is sent the list is empty and keeps its room, so that one list
    /// can serve all messages. The provided method copies every part; a
    /// transport that can do better overrides it.
    ///
    /// # Errors
    ///
    /// As [`SendFrames::send_frames`]. The owned buffers come back, the list is
    /// as it was; except when a connection or the transport itself ended
    /// ([`ErrorKind::Disconnected`], [`ErrorKind::Closed`]) with the message
    /// half handed over: then the list is empty and the buffers are released.
    #[cfg(feature = "alloc")]
    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), Self::SendError> {
        let frames: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        self.send_frames(&frames, wait)?;
        parts.clear();
        Ok(())
    }

    /// Sends `frames` as one message, waiting for room as configured.
    ///
    /// # Errors
    ///
    /// As [`SendFrames::send_frames`].
    fn send(&mut self, frames: &[&[u8]]) -> Result<(), Self::SendError> {
        self.send_frames(frames, Wait::Configured)
    }

    /// Sends `frames` as one message if there is room now.
    ///
    /// # Errors
    ///
    /// As [`SendFrames::send_frames`].
    fn try_send(&mut self, frames: &[&[u8]]) -> Result<(), Self::SendError> {
        self.send_frames(frames, Wait::Never)
    }
}

/// The receiving half of a transport.
pub trait RecvFrames {
    /// What a received message is kept in.
    type Message: Frames;

    /// Why receiving failed.
    type RecvError: TransportError;

    /// Receives the next message into `message`, in place of what it held.
    ///
    /// # Errors
    ///
    /// The transport's own; then `message` is empty.
    /// [`ErrorKind::WouldBlock`] and [`ErrorKind::TimedOut`] mean that no message
    /// came within `wait`, [`ErrorKind::CapExceeded`] that one came, was too
    /// large, and is gone.
    fn recv_frames(
        &mut self,
        message: &mut Self::Message,
        wait: Wait,
    ) -> Result<(), Self::RecvError>;

    /// Receives the next message into `message`, waiting as configured.
    ///
    /// # Errors
    ///
    /// As [`RecvFrames::recv_frames`].
    fn recv_into(&mut self, message: &mut Self::Message) -> Result<(), Self::RecvError> {
        self.recv_frames(message, Wait::Configured)
    }

    /// Receives a message into `message` if one is there.
    ///
    /// # Errors
    ///
    /// As [`RecvFrames::recv_frames`].
    fn try_recv_into(&mut self, message: &mut Self::Message) -> Result<(), Self::RecvError> {
        self.recv_frames(message, Wait::Never)
    }

    /// Receives the next message into a new one, waiting as configured.
    ///
    /// # Errors
    ///
    /// As [`RecvFrames::recv_frames`].
    fn recv(&mut self) -> Result<Self::Message, Self::RecvError> {
        let mut message = Self::Message::default();
        self.recv_frames(&mut message, Wait::Configured)?;
        Ok(message)
    }
}

/// Both halves: what sends and receives.
///
/// Never implemented by hand; see [`SendFrames`] and [`RecvFrames`].
pub trait Transport: SendFrames + RecvFrames {}

impl<T: SendFrames + RecvFrames + ?Sized> Transport for T {}

macro_rules! forward {
    ($($pointer:ty),+) => {$(
        impl<T: SendFrames + ?Sized> SendFrames for $pointer {
            type SendError = T::SendError;

            fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), Self::SendError> {
                (**self).send_frames(frames, wait)
            }

            #[cfg(feature = "alloc")]
            fn send_parts(
                &mut self,
                parts: &mut Vec<Part<'_>>,
                wait: Wait,
            ) -> Result<(), Self::SendError> {
                (**self).send_parts(parts, wait)
            }
        }

        impl<T: RecvFrames + ?Sized> RecvFrames for $pointer {
            type Message = T::Message;
            type RecvError = T::RecvError;

            fn recv_frames(
                &mut self,
                message: &mut Self::Message,
                wait: Wait,
            ) -> Result<(), Self::RecvError> {
                (**self).recv_frames(message, wait)
            }
        }
    )+};
}

forward!(&mut T);
#[cfg(feature = "alloc")]
forward!(alloc::boxed::Box<T>);
