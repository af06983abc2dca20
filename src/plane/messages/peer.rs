//! One link, and the pushes under way on it.

use core::time::Duration;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use std::time::Instant;

use super::wire::{self, Answer};
use super::{Error, Regions};
use crate::Limits;
use crate::message::{Decoder, Options};
use crate::plane::{Completion, ErrorKind, PushId, Transfer};
use crate::transport::{self, Frames, RecvFrames, SendFrames, TransportError, Wait};

/// A link to a session.
pub(super) struct Peer<L: RecvFrames> {
    pub(super) session: String,
    link: L,
    /// In the order of their ids; those that were sent come first.
    pub(super) flights: VecDeque<Flight>,
    /// When it was used last, as the plane counts.
    pub(super) used: u64,
    /// A push was given up since the last answer: what lies in its queue is not worth
    /// waiting for.
    is_silent: bool,
    message: L::Message,
    decoder: Decoder,
}

/// A push under way.
pub(super) struct Flight {
    id: PushId,
    transfer: Transfer,
    /// Empty once it was sent.
    metadata: Vec<u8>,
    /// `None`: never, as far as the clock goes.
    deadline: Option<Instant>,
    is_sent: bool,
}

impl Flight {
    pub(super) const fn new(
        id: PushId,
        transfer: Transfer,
        metadata: Vec<u8>,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            id,
            transfer,
            metadata,
            deadline,
            is_sent: false,
        }
    }

    /// Ends the push, and gives its slot back.
    pub(super) fn end(self, result: Result<u64, Error>) -> Completion<Error> {
        Completion::new(self.id, self.transfer.into_slot(), result)
    }

    /// Ends the push as the inlet says.
    fn answer(self, answer: Answer) -> Completion<Error> {
        let pushed = self.transfer.byte_len();
        let result = match answer.outcome {
            Ok(written) if written == pushed => Ok(pushed),
            Ok(written) => Err(Error::Amount { pushed, written }),
            Err(refusal) => Err(Error::Refused(refusal)),
        };
        self.end(result)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// Pushes that have ended, to be told of.
type Ended = VecDeque<Completion<Error>>;
