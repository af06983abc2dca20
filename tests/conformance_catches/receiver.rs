//! The receiving end and its messages, with what is wrong with them.

use std::mem;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tensorwire::transport::loopback::{Error, Loopback, Message, Options};
use tensorwire::transport::{Caps, Frames, Receipt, RecvFrames, Wait};

use crate::broken::{Link, longest};
use crate::flaws::Flaw;

pub(crate) struct Receiver {
    pub(crate) right: Loopback,
    pub(crate) link: Link,
    pub(crate) flaw: Flaw,
    pub(crate) timeout: Duration,
    pub(crate) storage: Message,
    pub(crate) moved: thread::ThreadId,
    pub(crate) lose_next: bool,
    pub(crate) replay: Option<u32>,
    pub(crate) alive: Arc<()>,
}

impl Receiver {
    fn receive(&mut self, message: &mut Held, wait: Wait) -> Result<(), Error> {
        let wanted = longest(wait, self.timeout);
        let mut actual = wait;
        match self.flaw {
            Flaw::IgnoresForever if wait == Wait::Forever => actual = Wait::Configured,
            Flaw::IgnoresUpTo if wait == Wait::UpTo(wanted) && !wanted.is_zero() => {
                actual = Wait::Configured;
            }
            Flaw::TimesOutEarly => actual = Wait::UpTo(wanted * 9 / 10),
            Flaw::TimesOutLate => actual = Wait::UpTo(wanted + Duration::from_millis(150)),
            Flaw::WaitsWhereItIsNotTo => {
                actual = Wait::UpTo(wanted.max(Duration::from_millis(150)));
            }
            Flaw::NeverWakes if wait == Wait::Forever => loop {
                thread::sleep(Duration::from_secs(1));
            },
            Flaw::PanicsOnceMoved => {
                let here = thread::current().id();
                assert_eq!(mem::replace(&mut self.moved, here), here, "scripted: moved");
            }
            _ => {}
        }
        let result = self.right.recv_frames(&mut self.storage, actual);
        match (self.flaw, &result) {
            (Flaw::DropsTheNextAfterARefusal, Err(Error::Cap(_)))
            | (Flaw::DropsTheNextAfterATimeout, Err(Error::TimedOut)) => self.lose_next = true,
            (Flaw::TimesOutWhereItWouldBlock, Err(Error::WouldBlock)) => {
                return Err(Error::TimedOut);
            }
            (Flaw::WaitsWhereItIsNotTo, Err(Error::TimedOut)) if wait == Wait::Never => {
                return Err(Error::WouldBlock);
            }
            (Flaw::WouldBlockWhereItTimesOut, Err(Error::TimedOut)) => {
                return Err(Error::WouldBlock);
            }
            // A large message takes longer to arrive than the call waits, and its first
            // frames are gone with the call.
            (Flaw::LosesWhatArrives, Ok(()))
                if wanted < Duration::from_millis(10) && self.storage.byte_count() > 500_000 =>
            {
                self.storage.clear();
                return Err(match wait {
                    Wait::Never => Error::WouldBlock,
                    _ => Error::TimedOut,
                });
            }
            (Flaw::MisreportsCaps, Err(Error::Cap(_))) => {
                let mut meter = Caps::new().with_frames(5).meter();
                for _ in 0..6 {
                    meter.admit(0);
                }
                return meter.finish().map_err(Error::Cap);
            }
            (_, Ok(())) if mem::take(&mut self.lose_next) => {
                return self.receive(message, Wait::UpTo(wanted));
            }
            _ => {}
        }
        result?;
        if self.flaw != Flaw::KeepsOldFrames {
            message.frames.clear();
        }
        for (index, frame) in self.storage.frames().iter().enumerate() {
            let frame = frame.as_ref().to_vec();
            match message.frames.get_mut(index) {
                Some(old) => *old = frame,
                None => message.frames.push(frame),
            }
        }
        if let (Some(number), Some(first)) = (self.replay.take(), message.frames.first_mut()) {
            *first = number.to_le_bytes().to_vec();
        }
        message.flaw = self.flaw;
        message.alive = Arc::downgrade(&self.alive);
        // Owners are dropped here, and may panic.
        self.storage.clear();
        Ok(())
    }
}

impl RecvFrames for Receiver {
    type Message = Held;
    type RecvError = Error;

    fn recv_frames(&mut self, message: &mut Held, wait: Wait) -> Result<(), Error> {
        let received = self.receive(message, wait);
        if received.is_err() && self.flaw != Flaw::KeepsStaleFramesOnFailure {
            message.clear();
        }
        received
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if self.flaw == Flaw::LeaksOnClose {
            let (_, right) = Options::new().pair();
            mem::forget(mem::replace(&mut self.right, right));
            let (left, _) = Options::new().pair();
            mem::forget(mem::replace(&mut *self.link.lock().unwrap(), left));
        }
    }
}

/// A received message, all of whose bytes are copies.
pub(crate) struct Held {
    frames: Vec<Vec<u8>>,
    flaw: Flaw,
    alive: Weak<()>,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            flaw: Flaw::None,
            alive: Weak::new(),
        }
    }
}

impl Frames for Held {
    type Frame = Vec<u8>;

    fn frames(&self) -> &[Vec<u8>] {
        if self.flaw == Flaw::MessagesEndWithTheirEnds && self.alive.strong_count() == 0 {
            return &[];
        }
        &self.frames
    }

    fn clear(&mut self) {
        self.frames.clear();
    }

    fn receipt(&self) -> Option<Receipt> {
        let bytes = self.byte_count();
        let receipt = Receipt::new().with_retained_bytes(bytes);
        Some(match self.flaw {
            Flaw::AllocatesEachTime => receipt.with_allocations(1),
            Flaw::ReceiptOfTooMuch => receipt.with_copied_bytes(bytes + 1),
            _ => receipt.with_copied_bytes(bytes),
        })
    }
}
