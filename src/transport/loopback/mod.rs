//! Messages between threads of one process, in memory.
//!
//! ```text
//!   Loopback ---- queue, at most `high_water` messages ----> Loopback
//!      A     <--- queue, at most `high_water` messages ----     B
//! ```
//!
//! For embedding two ends of a protocol in one process, and as a test bed: it
//! keeps the contract of [`transport`](super) and can be told to make life hard
//! within it. Frames can be shifted to any alignment, and a [`Script`] of [`Fault`]s,
//! a list or made up of a seed, drops, delays, doubles, cuts or fails messages, or
//! takes the peer away.
//!
//! Borrowed frames are copied once, on sending. Owned buffers are moved through
//! and not copied at all, unless frames are to be shifted. Storage goes in
//! circles: what a receive replaces is what a later send fills. A buffer's owner
//! is dropped by whoever drops the message or receives into it again, and a panic
//! in its `Drop` goes through that call. The [`Receipt`](super::Receipt) of a message
//! tells what was copied for it, and the ends count ([`Observed`]).
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

mod error;
mod loan;
mod message;
mod options;
mod queue;
#[cfg(feature = "tokio")]
mod readiness;
mod script;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::deadline::Deadline;
use super::{Counters, Frames, Observed, Part, Recorder, RecvFrames, SendFrames, Wait};
use queue::{Arrival, Queue};

pub use error::Error;
pub use loan::Lent;
pub use message::{Frame, Message};
pub use options::Options;
#[cfg(feature = "tokio")]
pub use readiness::Timer;
pub use script::{Fault, Script};

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
    recorder: Recorder,
}

impl Loopback {
    fn new(outgoing: Arc<Queue>, incoming: Arc<Queue>, options: Options) -> Self {
        Self {
            outgoing,
            incoming,
            options,
            sent: 0,
            recorder: Recorder::new("loopback"),
        }
    }

    /// Gives this end another script: what happens to the messages it sends.
    ///
    /// It names a message by its number, from 0, counting every send of
    /// this end that got room: not those refused as empty, for want of room, or
    /// because the pair is closed.
    pub fn script(&mut self, script: impl Into<Script>) {
        self.options.script = script.into();
    }

    /// Closes this end; the same as dropping it.
    pub fn close(self) {}

    /// Sends what `fill` makes of an empty message, and counts.
    fn put(&mut self, wait: Wait, fill: impl FnOnce(&mut Message)) -> Result<(), Error> {
        let sent = self.try_put(wait, fill);
        match &sent {
            Ok(bytes) => self.recorder.sent(*bytes),
            Err(error) => self.recorder.send_failed(error),
        }
        sent.map(drop)
    }

    fn try_put(&mut self, wait: Wait, fill: impl FnOnce(&mut Message)) -> Result<usize, Error> {
        let (mut message, number, fault) = self.begin(wait)?;
        fill(&mut message);
        self.deliver(message, number, fault)
    }

    /// Waits for room; gives an empty message, its number and what is to happen to it,
    /// unless that is to fail.
    fn begin(&mut self, wait: Wait) -> Result<(Message, u64, Option<Fault>), Error> {
        let deadline = Deadline::new(wait, self.options.send_timeout);
        let message = self.outgoing.wait_for_room(deadline)?;
        let number = self.sent;
        self.sent = number.saturating_add(1);
        let fault = self.options.script.fault(number);
        match fault {
            Some(Fault::Close) => {
                self.outgoing.close();
                self.incoming.close();
                Err(Error::Closed)
            }
            Some(Fault::Fail) => {
                self.outgoing.recycle(message);
                Err(Error::Injected { message: number })
            }
            _ => Ok((message, number, fault)),
        }
    }

    /// Sends a message that is filled, and does to it what is to happen.
    fn deliver(
        &mut self,
        mut message: Message,
        number: u64,
        fault: Option<Fault>,
    ) -> Result<usize, Error> {
        let bytes = message.byte_count();
        let mut arrival = Arrival::default();
        match fault {
            Some(Fault::Delay(delay)) => arrival.delay = Some(delay),
            Some(Fault::Disconnect) => {
                self.outgoing.recycle(message);
                return Err(Error::Disconnected { message: number });
            }
            Some(Fault::Drop) => {
                self.outgoing.recycle(message);
                return Ok(bytes);
            }
            Some(Fault::Duplicate) => {
                let mut twin = self.outgoing.spare();
                for frame in message.frames() {
                    twin.push_copy(frame.as_ref(), self.options.shift);
                }
                self.outgoing.push(message, arrival);
                self.outgoing.push(twin, arrival);
                return Ok(bytes);
            }
            Some(Fault::FailReceive) => arrival.fails = Some(number),
            Some(Fault::TruncateBytes(bytes)) => message.truncate_bytes(bytes),
            Some(Fault::TruncateFrames(frames)) => message.truncate_frames(frames),
            _ => {}
        }
        if message.frames().is_empty() {
            self.outgoing.recycle(message);
        } else {
            self.outgoing.push(message, arrival);
        }
        Ok(bytes)
    }

    fn take(&mut self, message: &mut Message, wait: Wait) -> Result<(), Error> {
        let deadline = Deadline::new(wait, self.options.recv_timeout);
        self.incoming.pop(message, deadline)?;
        let mut meter = self.options.caps.meter();
        for frame in message.frames() {
            meter.admit(frame.as_ref().len());
        }
        meter.finish().map_err(Error::Cap)
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
        let received = self.take(message, wait);
        match &received {
            Ok(()) => self.recorder.received(message.byte_count()),
            Err(error) => {
                message.clear();
                self.recorder.recv_failed(error);
            }
        }
        received
    }
}

impl Observed for Loopback {
    fn counters(&self) -> Counters {
        self.recorder.counters()
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.outgoing.close();
        self.incoming.close();
    }
}
