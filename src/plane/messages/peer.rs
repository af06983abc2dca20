//! One link, and the pushes under way on it.

use core::time::Duration;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use std::time::Instant;

use super::wire::{self, Answer, Id};
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
    id: Id,
    transfer: Transfer,
    /// Empty once it was sent.
    metadata: Vec<u8>,
    /// `None`: never, as far as the clock goes.
    deadline: Option<Instant>,
    is_sent: bool,
}

impl Flight {
    pub(super) const fn new(
        id: Id,
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
        Completion::new(PushId::new(self.id.push), self.transfer.into_slot(), result)
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

    /// Tells whether `answer` is to this push.
    fn is_answered_by(&self, answer: &Answer) -> bool {
        self.is_sent && self.id == answer.id
    }

    fn is_due(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// Pushes that have ended, to be told of.
type Ended = VecDeque<Completion<Error>>;

impl<L: SendFrames + RecvFrames> Peer<L> {
    pub(super) fn new(session: String, link: L) -> Self {
        Self {
            session,
            link,
            flights: VecDeque::new(),
            used: 0,
            is_silent: false,
            message: L::Message::default(),
            decoder: Decoder::with_options(Options::new().with_limits(ANSWER_LIMITS)),
        }
    }

    /// Sends what waits to be sent, as far as there is room.
    ///
    /// # Errors
    ///
    /// The link has failed.
    pub(super) fn send(
        &mut self,
        regions: &Regions,
        ended: &mut Ended,
    ) -> Result<(), transport::ErrorKind> {
        loop {
            let unsent = self.flights.iter().position(|flight| !flight.is_sent);
            let Some(index) = unsent else { return Ok(()) };
            let Some(flight) = self.flights.get_mut(index) else {
                return Ok(());
            };
            let region = regions.owning(flight.transfer.slot());
            let bytes = region
                .as_ref()
                .map(|region| region.bytes(flight.transfer.slot()));
            let Some(Ok(bytes)) = bytes else {
                // The region was dropped meanwhile.
                if let Some(flight) = self.flights.remove(index) {
                    ended.push_back(flight.end(Err(ErrorKind::ForeignSlot.into())));
                }
                continue;
            };
            let pieces = flight.transfer.pieces().iter();
            let pieces = pieces.map(|piece| bytes.get(piece.source()).unwrap_or_default());
            let metadata = core::iter::once(flight.metadata.as_slice());
            let frames: Vec<&[u8]> = metadata.chain(pieces).collect();
            match self.link.send_frames(&frames, Wait::Never) {
                Ok(()) => {
                    flight.is_sent = true;
                    flight.metadata = Vec::new();
                }
                Err(error) if error.kind().is_wait() => return Ok(()),
                Err(error) => return Err(error.kind()),
            }
        }
    }

    /// Takes the answers that are there.
    ///
    /// # Errors
    ///
    /// The link has failed.
    pub(super) fn receive(
        &mut self,
        ended: &mut Ended,
        ignored: &mut u64,
    ) -> Result<(), transport::ErrorKind> {
        for _ in 0..MESSAGES_AT_ONCE {
            if !self.receive_within(Wait::Never, ended, ignored)? {
                break;
            }
        }
        Ok(())
    }

    /// Waits for one answer, for at most `longest`.
    ///
    /// # Errors
    ///
    /// The link has failed.
    pub(super) fn wait(
        &mut self,
        longest: Duration,
        ended: &mut Ended,
        ignored: &mut u64,
    ) -> Result<(), transport::ErrorKind> {
        self.receive_within(Wait::UpTo(longest), ended, ignored)?;
        Ok(())
    }

    /// Takes one message, and tells whether one came.
    fn receive_within(
        &mut self,
        wait: Wait,
        ended: &mut Ended,
        ignored: &mut u64,
    ) -> Result<bool, transport::ErrorKind> {
        match self.link.recv_frames(&mut self.message, wait) {
            Ok(()) => {}
            Err(error) => match error.kind() {
                kind if kind.is_wait() => return Ok(false),
                transport::ErrorKind::CapExceeded | transport::ErrorKind::Malformed => {
                    *ignored = ignored.saturating_add(1);
                    return Ok(true);
                }
                kind => return Err(kind),
            },
        }
        let frame = self.message.frame(0).unwrap_or_default();
        let metadata = self.decoder.decode_metadata(frame).ok();
        let answer = metadata.and_then(|metadata| wire::read_answer(metadata.scalars()).ok());
        let flight = answer.and_then(|answer| {
            let mut flights = self.flights.iter();
            let index = flights.position(|flight| flight.is_answered_by(&answer))?;
            Some((self.flights.remove(index)?, answer))
        });
        self.message.clear();
        match flight {
            Some((flight, answer)) => {
                self.is_silent = false;
                ended.push_back(flight.answer(answer));
            }
            None => *ignored = ignored.saturating_add(1),
        }
        Ok(true)
    }

    /// Ends the pushes whose time was up at `now`; tells whether the link is not to be kept:
    /// a push on it was never answered, and none is under way.
    pub(super) fn expire(&mut self, now: Instant, ended: &mut Ended) -> bool {
        while let Some(index) = self.flights.iter().position(|flight| flight.is_due(now)) {
            if let Some(flight) = self.flights.remove(index) {
                self.is_silent |= flight.is_sent;
                ended.push_back(flight.end(Err(Error::TimedOut)));
            }
        }
        self.is_silent && self.flights.is_empty()
    }

    /// Tells whether nothing waits to be sent.
    pub(super) fn is_all_sent(&self) -> bool {
        self.flights.back().is_none_or(|flight| flight.is_sent)
    }

    /// Returns when the first push times out.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let deadlines = self.flights.iter().filter_map(|flight| flight.deadline);
        deadlines.min()
    }
}

/// So many answers are taken from a link at a time: a peer that sends without end does not
/// keep the plane from the others.
const MESSAGES_AT_ONCE: usize = 64;

/// An answer has no tensors, and some numbers.
const ANSWER_LIMITS: Limits = Limits::new()
    .with_metadata_bytes(4096)
    .with_descriptors(0)
    .with_depth(8);
