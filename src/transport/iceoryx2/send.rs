//! Sending.
#![allow(unsafe_code)]

use core::fmt;
use core::time::Duration;

use alloc::vec::Vec;

use std::thread;
use std::time::Instant;

use ::iceoryx2::port::LoanError;
use ::iceoryx2::port::notifier::{Notifier, NotifierCreateError};
use ::iceoryx2::port::publisher::{Publisher, PublisherCreateError};
use ::iceoryx2::port::update_connections::UpdateConnections;
use ::iceoryx2::prelude::{AllocationStrategy, BackpressureStrategy, ipc_threadsafe};

use super::builder::Options;
use super::channel::{BLOCK, CLEAN_UP_EVERY, Channel, guard, pause};
use super::loan::{Place, Room};
use super::{Error, Lent};
use crate::bundle;
use crate::transport::deadline::Deadline;
use crate::transport::{Counters, LendFrames, Loan, Observed, Part, Recorder, SendFrames, Wait};

/// A sending end of a channel.
///
/// It is used by one thread at a time and may be moved to another. The fields are
/// dropped in this order.
pub struct Sender {
    publisher: Publisher<ipc_threadsafe::Service, [[u8; BLOCK]], ()>,
    notifier: Notifier<ipc_threadsafe::Service>,
    channel: Channel,
    pub(super) options: Options,
    meeting: Meeting,
    /// The lengths of the frames of the message being written.
    pub(super) lengths: Vec<usize>,
    pub(super) recorder: Recorder,
    broken: bool,
}

/// Whether the receiver knows this sender.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Meeting {
    /// It may have been there before, and does not know of it yet.
    Pending,
    /// It was sent a sample of nothing, and knows once that is back.
    Greeted,
    /// It does, as will every later one: it will find the sender there.
    Done,
}

impl Sender {
    pub(super) fn open(name: &str, options: Options) -> Result<Self, Error> {
        let (depth, message_bytes) = (options.depth, options.message_bytes);
        let limit = LARGEST_POOL.checked_div(depth).unwrap_or(0);
        if message_bytes > limit {
            let actual = message_bytes;
            return Err(Error::TooLarge { limit, actual });
        }
        let channel = Channel::open(name, options.directory.as_deref())?;
        let notifier = channel.port(
            (
                NotifierCreateError::ExceedsMaxSupportedNotifiers,
                Error::TooManySenders,
            ),
            "make a notifier",
            || channel.wakes.notifier_builder().create(),
        )?;
        let publisher = channel.port(
            (
                PublisherCreateError::ExceedsMaxSupportedPublishers,
                Error::TooManySenders,
            ),
            "make a publisher",
            || {
                let builder = channel.messages.publisher_builder();
                builder
                    .initial_max_slice_len(message_bytes.div_ceil(BLOCK))
                    .allocation_strategy(AllocationStrategy::Static)
                    // As many places as may be under way or kept: a place that can be
                    // had has room at the receiver too, so that sending never waits.
                    .max_loaned_samples(depth)
                    .override_sample_preallocation(move |_| depth)
                    .backpressure_strategy(BackpressureStrategy::DiscardData)
                    .create()
            },
        )?;
        let meeting = if channel.has_receiver() {
            Meeting::Pending
        } else {
            Meeting::Done
        };
        let mut sender = Self {
            publisher,
            notifier,
            channel,
            options,
            meeting,
            lengths: Vec::new(),
            recorder: Recorder::new("iceoryx2"),
            broken: false,
        };
        // The sooner it is sent, the fewer sends have to wait for it to be back.
        sender.meet()?;
        Ok(sender)
    }

    /// Returns whether the channel has a receiver.
    ///
    /// One that was killed counts until somebody cleans up after it; see [the
    /// module](super) on crashes.
    #[must_use]
    pub fn has_receiver(&self) -> bool {
        self.channel.has_receiver()
    }

    /// Waits for room for one message with frames of the lengths in `lengths`, and
    /// makes it ready to have the frames written.
    fn lend(&mut self, wait: Wait) -> Result<Lent<'_>, Error> {
        let lent = self.room_for_lengths(wait);
        let sample = lent.inspect_err(|error| self.recorder.send_failed(error))?;
        Ok(Lent::new(self, sample))
    }

    fn room_for_lengths(&mut self, wait: Wait) -> Result<Place, Error> {
        if self.lengths.is_empty() {
            return Err(Error::EmptyMessage);
        }
        let limit = self.options.message_bytes;
        let actual = bundle::encoded_len(self.lengths.iter().copied()).unwrap_or(usize::MAX);
        if actual > limit {
            return Err(Error::TooLarge { limit, actual });
        }
        let blocks = actual.div_ceil(BLOCK);
        self.wait_until(wait, |sender| sender.room(blocks))
    }

    /// Returns a place, if the receiver is there, knows this sender, and has freed one.
    fn room(&mut self, blocks: usize) -> Result<Option<Place>, Error> {
        if !self.channel.has_receiver() || !self.meet()? {
            return Ok(None);
        }
        self.place(blocks)
    }

    /// Returns a place, if one is free.
    pub(super) fn place(&mut self, blocks: usize) -> Result<Option<Place>, Error> {
        match self.call(|sender| sender.publisher.loan_slice_uninit(blocks))? {
            // SAFETY: `assume_init` asks that all elements are initialized: the system
            // hands shared memory out filled with zeros, and any byte written since is one.
            Ok(place) => Ok(Some(Place::new(unsafe { place.assume_init() }))),
            Err(LoanError::OutOfMemory | LoanError::ExceedsMaxLoans) => Ok(None),
            Err(_) => Err(Error::Failed {
                doing: "take a place",
            }),
        }
    }

    /// Takes a place that was just freed again, with what was written there.
    pub(super) fn place_again(&mut self, room: Room) -> Result<Option<Place>, Error> {
        let mut place = self.place(room.blocks)?;
        if let Some(place) = &mut place {
            // SAFETY: `Place::write_from` asks two things.
            // - The room was a place of this sender: it was read off one in `try_send`.
            // - It is free, or it is this place: `pass_on` freed it, and one place was
            //   taken since, this one.
            unsafe { place.write_from(&room) };
        }
        Ok(place)
    }

    /// Passes a place on; returns whether somebody got it.
    pub(super) fn pass_on(&mut self, place: Place) -> Result<bool, Error> {
        match self.call(|_| place.send())? {
            Ok(0) => Ok(false),
            Ok(_) => {
                // A wake-up that fails is made up for: sleepers look again by themselves.
                self.call(|sender| sender.notifier.notify())?.ok();
                Ok(true)
            }
            Err(_) => Err(Error::Failed {
                doing: "pass a place on",
            }),
        }
    }

    /// Makes sure that the receiver knows this sender.
    fn meet(&mut self) -> Result<bool, Error> {
        match self.meeting {
            Meeting::Done => {}
            Meeting::Pending => {
                let Some(greeting) = self.place(0)? else {
                    return Ok(false);
                };
                if self.pass_on(greeting)? {
                    self.meeting = Meeting::Greeted;
                }
            }
            Meeting::Greeted => {
                let mut places = Vec::with_capacity(self.options.depth);
                while let Some(place) = self.place(0)? {
                    places.push(place);
                }
                if places.len() == self.options.depth {
                    self.meeting = Meeting::Done;
                }
            }
        }
        Ok(self.meeting == Meeting::Done)
    }

    /// Tries until it works or the time is up: first awake, then with naps.
    pub(super) fn wait_until<T>(
        &mut self,
        wait: Wait,
        mut attempt: impl FnMut(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        if let Some(done) = attempt(self)? {
            return Ok(done);
        }
        // Those who never wait find out too that a receiver is gone.
        self.reconnect()?;
        if let Some(done) = attempt(self)? {
            return Ok(done);
        }
        let deadline = Deadline::new(wait, self.options.send_timeout);
        let start = Instant::now();
        let mut cleaned = start;
        let mut nap = SHORTEST_NAP;
        loop {
            let left = deadline.remaining()?;
            let waited = start.elapsed();
            if waited < self.options.spin {
                pause(waited);
            } else {
                thread::sleep(nap.min(left));
                nap = nap.saturating_mul(2).min(LONGEST_NAP);
            }
            if cleaned.elapsed() >= CLEAN_UP_EVERY {
                let left = deadline.remaining()?;
                self.clean_up(left)?;
                cleaned = Instant::now();
            }
            self.reconnect()?;
            if let Some(done) = attempt(self)? {
                return Ok(done);
            }
        }
    }

    /// Takes note of receivers that came or went; one that is gone gives its places back.
    fn reconnect(&mut self) -> Result<(), Error> {
        // A failure shows in the lack of room.
        self.call(|sender| sender.publisher.update_connections())?
            .ok();
        Ok(())
    }

    /// Removes what dead processes left behind, and starts on no further one after `time`.
    pub(super) fn clean_up(&mut self, time: Duration) -> Result<(), Error> {
        self.call(|sender| sender.channel.clean_up(Duration::ZERO, time))?
    }

    /// Calls into iceoryx2, unless that ended in a panic before.
    fn call<T>(&mut self, call: impl FnOnce(&Self) -> T) -> Result<T, Error> {
        if self.broken {
            return Err(Error::Closed);
        }
        let result = guard(|| call(self));
        self.broken = result.is_err();
        result
    }

    fn send_all<F: AsRef<[u8]>>(&mut self, frames: &[F], wait: Wait) -> Result<(), Error> {
        self.lengths.clear();
        let lengths = frames.iter().map(|frame| frame.as_ref().len());
        self.lengths.extend(lengths);
        let mut lent = self.lend(wait)?;
        for (place, frame) in lent.frames_mut().zip(frames) {
            let frame = frame.as_ref();
            if place.len() != frame.len() {
                return Err(Error::LengthChanged);
            }
            place.copy_from_slice(frame);
        }
        lent.send(wait).map_err(|(_, error)| error)
    }
}

impl SendFrames for Sender {
    type SendError = Error;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), Error> {
        self.send_all(frames, wait)
    }

    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), Error> {
        self.send_all(parts, wait)?;
        parts.clear();
        Ok(())
    }
}

impl LendFrames for Sender {
    type Loan<'a> = Lent<'a>;

    fn lend_frames(&mut self, lengths: &[usize], wait: Wait) -> Result<Lent<'_>, Error> {
        self.lengths.clear();
        self.lengths.extend_from_slice(lengths);
        self.lend(wait)
    }
}

impl Observed for Sender {
    fn counters(&self) -> Counters {
        self.recorder.counters()
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// More than any host has. The system would refuse to map a pool of more, and iceoryx2
/// would leave it behind.
const LARGEST_POOL: usize = match usize::BITS {
    64 => 1 << 44,
    _ => 1 << 30,
};

/// How long a nap is that a sender takes while there is no room: twice the last one.
const SHORTEST_NAP: Duration = Duration::from_micros(50);
const LONGEST_NAP: Duration = Duration::from_millis(1);
