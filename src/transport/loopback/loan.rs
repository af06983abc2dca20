//! Frames that are written where they are received.

use core::mem;

use super::{Error, Fault, Loopback, Message};
use crate::transport::{Frames, LendFrames, Loan, Wait};

/// A message that is being written; made by [`Loopback`]'s
/// [`lend_frames`](LendFrames::lend_frames).
///
/// The other end receives the very memory, at the same address.
#[derive(Debug)]
#[must_use = "a message that is dropped is not sent"]
pub struct Lent<'a> {
    end: &'a mut Loopback,
    message: Message,
}

impl LendFrames for Loopback {
    type Loan<'a> = Lent<'a>;

    /// Room is made at once; sending is what may wait.
    fn lend_frames(&mut self, lengths: &[usize], _wait: Wait) -> Result<Lent<'_>, Error> {
        if lengths.is_empty() {
            return Err(Error::EmptyMessage);
        }
        let mut message = self.outgoing.spare();
        for &len in lengths {
            message.push_place(len, self.options.shift);
        }
        Ok(Lent { end: self, message })
    }
}

impl Loan for Lent<'_> {
    type Error = Error;

    fn frames_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.message.places_mut()
    }

    fn send(mut self, wait: Wait) -> Result<(), (Self, Error)> {
        let sent = match self.end.begin(wait) {
            Ok((spare, number, fault)) => {
                self.end.outgoing.recycle(spare);
                if fault == Some(Fault::Disconnect) {
                    Err(Error::Disconnected { message: number })
                } else {
                    let message = mem::take(&mut self.message);
                    self.end.deliver(message, number, fault)
                }
            }
            Err(error) => Err(error),
        };
        match sent {
            Ok(bytes) => {
                self.end.recorder.sent(bytes);
                Ok(())
            }
            Err(error) => {
                self.end.recorder.send_failed(&error);
                Err((self, error))
            }
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if !self.message.frames().is_empty() {
            self.end.outgoing.recycle(mem::take(&mut self.message));
        }
    }
}
