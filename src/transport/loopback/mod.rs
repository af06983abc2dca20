//! Messages between threads of one process, in memory.
//!
//! ```text
//!   Loopback ---- queue, at most `high_water` messages ----> Loopback
//!      A     <--- queue, at most `high_water` messages ----     B
//! ```
//!
//! For embedding two ends of a protocol in one process, and as a test bed: it
//! keeps the contract of [`transport`](super) and can be told to make life hard
//! within it. Frames can be shifted to any alignment, and a script of [`Fault`]s
//! drops, delays, or fails the messages it names.
//!
//! Borrowed frames are copied once, on sending. Owned buffers are moved through
//! and not copied at all, unless frames are to be shifted. Storage goes in
//! circles: what a receive replaces is what a later send fills. A buffer's owner
//! is dropped by whoever drops the message or receives into it again, and a panic
//! in its `Drop` goes through that call.
//!
//! Dropping one end closes the pair. What was sent before can still be
//! received; after that the other end gets [`Error::Closed`].
//!
//! # Examples
//!
//! ```
//! use tensorwire::transport::{Frames, RecvFrames, SendFrames, loopback};
//!
//! let (mut left, mut right) = loopback::pair();
//! left.send(&[b"metadata", b"tensor"])?;
//! let message = right.recv()?;
//! assert_eq!(message.frame(1), Some(&b"tensor"[..]));
//! # Ok::<(), loopback::Error>(())
//! ```

mod message;
mod queue;
#[cfg(feature = "tokio")]
mod readiness;

use core::fmt;
use core::time::Duration;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::deadline::{Deadline, Expired};
use super::{
    CapExceeded, Caps, ErrorKind, Frames, Part, RecvFrames, SendFrames, TransportError, Wait,
};
use queue::Queue;

pub use message::{Frame, Message};
#[cfg(feature = "tokio")]
pub use readiness::Timer;

/// Makes a pair with the default options.
#[must_use]
pub fn pair() -> (Loopback, Loopback) {
    Options::new().pair()
}

/// One end of a pair.
#[derive(Debug)]
pub struct Loopback {
    outgoing: Arc<Queue>,
    incoming: Arc<Queue>,
    options: Options,
    /// How many sends of this end got room, scripted failures included.
    sent: u64,
}

impl Loopback {
    /// Gives this end another script: what happens to the messages it sends.
    ///
    /// Each entry names a message by its number, from 0, counting every send of
    /// this end that got room: not those refused as empty, for want of room, or
    /// because the pair is closed.
    pub fn script(&mut self, script: &[(u64, Fault)]) {
        self.options.script.clear();
        self.options.script.extend_from_slice(script);
    }

    /// Closes this end; the same as dropping it.
    pub fn close(self) {}

    fn put(&mut self, wait: Wait, fill: impl FnOnce(&mut Message)) -> Result<(), Error> {
        let deadline = Deadline::new(wait, self.options.send_timeout);
        let mut message = self.outgoing.wait_for_room(deadline)?;
        let number = self.sent;
        self.sent = number.saturating_add(1);
        let fault = self.options.fault(number);
        if fault == Some(Fault::Fail) {
            self.outgoing.recycle(message);
            return Err(Error::Injected { message: number });
        }
        fill(&mut message);
        match fault {
            Some(Fault::Drop) => self.outgoing.recycle(message),
            Some(Fault::Delay(delay)) => self.outgoing.push(message, Some(delay)),
            _ => self.outgoing.push(message, None),
        }
        Ok(())
    }
}

impl SendFrames for Loopback {
    type SendError = Error;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), Error> {
        if frames.is_empty() {
            return Err(Error::EmptyMessage);
        }
        let shift = self.options.shift;
        self.put(wait, |message| {
            for frame in frames {
                message.push_copy(frame, shift);
            }
        })
    }

    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), Error> {
        if parts.is_empty() {
            return Err(Error::EmptyMessage);
        }
        let shift = self.options.shift;
        self.put(wait, |message| {
            for part in parts.drain(..) {
                match part {
                    Part::Owned(buffer) if shift.is_none() => message.push_owned(buffer),
                    part => message.push_copy(part.as_ref(), shift),
                }
            }
        })
    }
}

impl RecvFrames for Loopback {
    type Message = Message;
    type RecvError = Error;

    fn recv_frames(&mut self, message: &mut Message, wait: Wait) -> Result<(), Error> {
        message.clear();
        let deadline = Deadline::new(wait, self.options.recv_timeout);
        self.incoming.pop(message, deadline)?;
        let mut meter = self.options.caps.meter();
        for frame in message.frames() {
            meter.admit(frame.as_ref().len());
        }
        meter.finish().map_err(|refused| {
            message.clear();
            Error::Cap(refused)
        })
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.outgoing.close();
        self.incoming.close();
    }
}

/// How a pair is set up.
///
/// # Examples
///
/// ```
/// use tensorwire::transport::loopback::{Error, Fault, Options};
/// use tensorwire::transport::{Frames, RecvFrames, SendFrames};
///
/// let (mut left, mut right) = Options::new()
///     .with_shift(3)
///     .with_script(&[(0, Fault::Drop), (1, Fault::Fail)])
///     .pair();
/// left.send(&[b"lost"])?;
/// assert_eq!(left.send(&[b"refused"]), Err(Error::Injected { message: 1 }));
/// left.send(&[b"through, at an odd address"])?;
/// let message = right.recv()?;
/// assert_eq!(message.frame(0).map(|frame| frame.as_ptr() as usize % 64), Some(3));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    caps: Caps,
    high_water: usize,
    recv_timeout: Option<Duration>,
    script: Vec<(u64, Fault)>,
    send_timeout: Option<Duration>,
    shift: Option<usize>,
}

impl Options {
    /// Makes the default options: no faults, frames wherever they come to lie.
    pub const fn new() -> Self {
        Self {
            caps: Caps::new(),
            high_water: DEFAULT_HIGH_WATER,
            recv_timeout: Some(DEFAULT_TIMEOUT),
            script: Vec::new(),
            send_timeout: Some(DEFAULT_TIMEOUT),
            shift: None,
        }
    }

    /// Makes a pair; both ends get these options.
    #[must_use]
    pub fn pair(self) -> (Loopback, Loopback) {
        let one = Arc::new(Queue::new(self.high_water));
        let other = Arc::new(Queue::new(self.high_water));
        let left = Loopback {
            outgoing: one.clone(),
            incoming: other.clone(),
            options: self.clone(),
            sent: 0,
        };
        let right = Loopback {
            outgoing: other,
            incoming: one,
            options: self,
            sent: 0,
        };
        (left, right)
    }

    /// Sets the caps on received messages; [`Caps::new`] unless set.
    pub fn with_caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Sets how many messages may wait in each direction; 1000 unless set, and 0
    /// is taken as 1.
    pub fn with_high_water(mut self, messages: usize) -> Self {
        self.high_water = messages.max(1);
        self
    }

    /// Sets how long a receive waits, unless the call says otherwise.
    ///
    /// `None` waits forever. The default is 30 seconds.
    pub fn with_recv_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.recv_timeout = timeout;
        self
    }

    /// Sets what happens to the messages that each end sends; see
    /// [`Loopback::script`].
    pub fn with_script(mut self, script: &[(u64, Fault)]) -> Self {
        self.script = script.to_vec();
        self
    }

    /// Sets how long a send waits for room, unless the call says otherwise.
    ///
    /// `None` waits forever. The default is 30 seconds.
    pub fn with_send_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.send_timeout = timeout;
        self
    }

    /// Puts every frame at an address that is `offset` past a multiple of 64.
    /// Owned buffers are then copied too.
    pub fn with_shift(mut self, offset: usize) -> Self {
        self.shift = Some(offset);
        self
    }

    fn fault(&self, number: u64) -> Option<Fault> {
        let entry = self.script.iter().find(|(message, _)| *message == number);
        entry.map(|&(_, fault)| fault)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// What can be made to happen to a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// It arrives this much later, and what is sent after it not before it.
    Delay(Duration),
    /// It is sent and never arrives.
    Drop,
    /// Sending it fails with [`Error::Injected`], and it never arrives.
    Fail,
}

/// Why sending or receiving failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A message was larger than the caps allow; it was drained.
    Cap(CapExceeded),
    /// The other end is gone, and nothing it sent is left.
    Closed,
    /// A message has at least one frame.
    EmptyMessage,
    /// The script said that this message fails.
    Injected {
        /// The number of the message, from 0.
        message: u64,
    },
    /// The time to wait was up.
    TimedOut,
    /// It cannot be done now, and the call was not to wait.
    WouldBlock,
}

impl TransportError for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Cap(_) => ErrorKind::CapExceeded,
            Self::Closed => ErrorKind::Closed,
            Self::EmptyMessage => ErrorKind::InvalidInput,
            Self::Injected { .. } => ErrorKind::Other,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::WouldBlock => ErrorKind::WouldBlock,
        }
    }

    fn refused(&self) -> Option<CapExceeded> {
        match self {
            Self::Cap(refused) => Some(*refused),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cap(refused) => refused.fmt(f),
            Self::Closed => f.write_str("other end closed"),
            Self::EmptyMessage => f.write_str("message without frames"),
            Self::Injected { message } => write!(f, "message {message} fails as scripted"),
            Self::TimedOut => f.write_str("timed out"),
            Self::WouldBlock => f.write_str("would block"),
        }
    }
}

impl core::error::Error for Error {}

impl From<Expired> for Error {
    fn from(expired: Expired) -> Self {
        match expired {
            Expired::TimedOut => Self::TimedOut,
            Expired::WouldBlock => Self::WouldBlock,
        }
    }
}

/// As many as libzmq lets wait by default.
const DEFAULT_HIGH_WATER: usize = 1000;

/// Long enough for any healthy peer, short enough to notice one that is not.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
