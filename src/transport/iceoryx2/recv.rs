//! Receiving.
#![allow(unsafe_code)]

use core::fmt;
use core::mem;
use core::slice;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use alloc::sync::Arc;
use alloc::vec::Vec;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use ::iceoryx2::port::listener::{Listener, ListenerCreateError};
use ::iceoryx2::port::subscriber::{Subscriber, SubscriberCreateError};
use ::iceoryx2::port::update_connections::UpdateConnections;
use ::iceoryx2::port::{DegradationAction, ReceiveError};
use ::iceoryx2::prelude::{FileDescriptorBased, ipc_threadsafe};
use ::iceoryx2::sample::Sample;

use super::builder::Options;
use super::channel::{BLOCK, Channel, LONGEST_SLEEP, guard, pause};
use super::{Error, Message};
use crate::bundle::{ENTRY_LEN, HEADER_LEN, Index};
use crate::transport::deadline::Deadline;
use crate::transport::{Counters, Frames, Observed, Recorder, RecvFrames, Wait};

/// The receiving end of a channel.
///
/// It is used by one thread at a time and may be moved to another.
pub struct Receiver {
    /// What lay behind the last message; dropped before the inlet.
    ahead: Option<Taken>,
    inlet: Arc<Inlet>,
    pub(super) options: Options,
    /// The private copy of header and table.
    prefix: Vec<u8>,
    recorder: Recorder,
    broken: bool,
}

/// A sample that was taken from its sender's queue.
struct Taken(Sample<ipc_threadsafe::Service, [[u8; BLOCK]], ()>);

/// What lives as long as the receiver and all messages it gave out. The fields are
/// dropped in this order.
pub(super) struct Inlet {
    subscriber: Subscriber<ipc_threadsafe::Service, [[u8; BLOCK]], ()>,
    listener: Listener<ipc_threadsafe::Service>,
    channel: Channel,
    unreached: Arc<Unreached>,
}

/// The senders whose pool could not be mapped, since they were last asked for. iceoryx2
/// does not try again, nor tell who sends to it.
#[derive(Default)]
struct Unreached {
    any: AtomicBool,
    senders: Mutex<Vec<u128>>,
}

impl Unreached {
    fn note(&self, sender: u128) {
        let senders = self.senders.lock();
        senders.unwrap_or_else(PoisonError::into_inner).push(sender);
        self.any.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<u128> {
        if !self.any.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.any.store(false, Ordering::Relaxed);
        let senders = self.senders.lock();
        mem::take(&mut *senders.unwrap_or_else(PoisonError::into_inner))
    }
}

impl Receiver {
    pub(super) fn open(name: &str, options: Options) -> Result<Self, Error> {
        let channel = Channel::open(name, options.directory.as_deref())?;
        let listener = channel.port(
            (
                ListenerCreateError::ExceedsMaxSupportedListeners,
                Error::ReceiverExists,
            ),
            "make a listener",
            || channel.wakes.listener_builder().create(),
        )?;
        let unreached = Arc::new(Unreached::default());
        let subscriber = subscribe(&channel, &unreached)?;
        let missing = unreached.take();
        let mut tries_left = 3_u8;
        while guard(|| channel.has_sender(&missing))? {
            // One that was killed may just be cleaned up after.
            if tries_left == 0 {
                return Err(UNREACHED);
            }
            tries_left = tries_left.saturating_sub(1);
            channel.clean_up(Duration::from_secs(1), Duration::MAX)?;
        }
        Ok(Self {
            ahead: None,
            inlet: Arc::new(Inlet {
                subscriber,
                listener,
                channel,
                unreached,
            }),
            options,
            prefix: Vec::new(),
            recorder: Recorder::new("iceoryx2"),
            broken: false,
        })
    }

    /// Makes the descriptor that [`AsFd`] gives tell of messages that come from now on.
    ///
    /// For those who wait by other means, for many things at a time: arm, try to receive, and
    /// if there was nothing wait until the descriptor is readable. In this order
    /// no message is missed; and the descriptor may be readable without one.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub fn arm(&mut self) -> Result<(), Error> {
        // Interrupted, it stays readable, and that is all.
        self.call(|inlet| inlet.listener.try_wait(|_| {}))?.ok();
        Ok(())
    }

    /// Receives a message if one is there.
    fn look(&mut self, message: &mut Message) -> Result<bool, Error> {
        let ahead = self.ahead.take();
        let Some(Taken(sample)) = ahead.map_or_else(|| self.next(), |taken| Ok(Some(taken)))?
        else {
            let missing = self.inlet.unreached.take();
            return match self.call(|inlet| inlet.channel.has_sender(&missing))? {
                true => Err(UNREACHED),
                false => Ok(false),
            };
        };
        // The length lies in shared memory too, and is read each time it is asked for: what
        // follows uses this one alone.
        let blocks = sample.payload();
        let (data, len) = (blocks.as_ptr(), blocks.len());
        // SAFETY: `slice::from_raw_parts` asks four things.
        // - The address and length are those of a slice, the payload's. That it lies in
        //   the pool is iceoryx2's own bookkeeping, which is trusted; see the module's docs.
        // - The bytes are initialized: the system hands shared memory out filled with
        //   zeros, and any byte that was written since is one.
        // - They live as long as `sample`, which `take` either keeps beside what it
        //   makes of them or drops after its last look at them. That nobody writes to them is what
        //   the sender is trusted for; see the module's docs.
        // - They are at most `isize::MAX` bytes: they are a slice's.
        let body = unsafe { slice::from_raw_parts(data, len) }.as_flattened();
        self.take(sample, body, message).map(|()| true)
    }

    /// Takes the next sample that is more than a greeting, if one is there.
    fn next(&mut self) -> Result<Option<Taken>, Error> {
        // Bounded, for the sake of a sender that does nothing but greet.
        for _ in 0..MAX_GREETINGS {
            match self.call(|inlet| inlet.subscriber.receive())? {
                // A sample of nothing is how a sender makes itself known.
                Ok(Some(sample)) if sample.payload().is_empty() => {}
                Ok(Some(sample)) => return Ok(Some(Taken(sample))),
                // With all that a sender can have under way kept by the user, nothing comes.
                Ok(None) | Err(ReceiveError::ExceedsMaxBorrows) => return Ok(None),
                Err(ReceiveError::ConnectionFailure(_)) => return Err(UNREACHED),
            }
        }
        Ok(None)
    }

    /// Makes a message of `sample`, whose bytes are `body`.
    fn take(
        &mut self,
        sample: Sample<ipc_threadsafe::Service, [[u8; BLOCK]], ()>,
        body: &[u8],
        message: &mut Message,
    ) -> Result<(), Error> {
        let room = self.prefix.capacity();
        self.prefix.clear();
        self.prefix
            .extend_from_slice(body.get(..HEADER_LEN).unwrap_or(body));
        // A sample is made of whole blocks: the last one need not be full.
        let body = match total_len(&self.prefix) {
            Some(total) if total.div_ceil(BLOCK).checked_mul(BLOCK) == Some(body.len()) => {
                body.get(..total).unwrap_or(body)
            }
            _ => body,
        };
        let prefix_len =
            Index::len_from_header(&self.prefix, body.len()).map_err(Error::Malformed)?;
        let frames = prefix_len.saturating_sub(HEADER_LEN) / ENTRY_LEN;
        let mut meter = self.options.caps.meter();
        if frames > self.options.caps.frames() {
            // Too many to have their table copied.
            (0..frames).for_each(|_| {
                meter.admit(0);
            });
            return meter.finish().map_err(Error::Cap);
        }
        let table = body.get(HEADER_LEN..prefix_len).unwrap_or_default();
        self.prefix.extend_from_slice(table);
        let index = Index::decode(&self.prefix, body.len()).map_err(Error::Malformed)?;
        for range in index.ranges() {
            meter.admit(range.len());
        }
        meter.finish().map_err(Error::Cap)?;
        let grown = usize::from(self.prefix.capacity() != room);
        // SAFETY: `Message::fill` asks that `body` are bytes of `sample`: `look` took
        // them from it.
        unsafe { message.fill(&index, body, sample, self.inlet.clone(), grown) };
        Ok(())
    }

    /// Waits for a message, first awake and then asleep.
    fn wait(&mut self, message: &mut Message, wait: Wait) -> Result<(), Error> {
        if self.look(message)? {
            // A sender that greeted behind what lay there is known now: on one thread
            // no other receive may come before it sends. Who has to poll for each
            // message, and is in a hurry, does not get here.
            if self.ahead.is_none() {
                // A failure does not undo what was received. It is met again.
                self.ahead = self.next().unwrap_or(None);
            }
            return Ok(());
        }
        let deadline = Deadline::new(wait, self.options.recv_timeout);
        let mut left = deadline.remaining()?;
        let start = Instant::now();
        loop {
            let waited = start.elapsed();
            if waited >= self.options.spin.min(left) {
                break;
            }
            pause(waited);
            if self.look(message)? {
                return Ok(());
            }
        }
        loop {
            // Told of all that came so far: whatever comes after this look wakes.
            self.arm()?;
            if self.look(message)? {
                return Ok(());
            }
            left = deadline.remaining()?;
            match left.checked_sub(TICK) {
                Some(longest) if !longest.is_zero() => {
                    let longest = longest.min(LONGEST_SLEEP);
                    // Interrupted or failed, it is looked at again all the same.
                    let woken = self.call(|inlet| inlet.listener.timed_wait(|_| {}, longest))?;
                    if woken.is_err() {
                        thread::sleep(NAP.min(left));
                    }
                }
                _ => thread::sleep(NAP.min(left)),
            }
        }
    }

    /// Calls into iceoryx2, unless that ended in a panic before.
    fn call<T>(&mut self, call: impl FnOnce(&Inlet) -> T) -> Result<T, Error> {
        if self.broken {
            return Err(Error::Closed);
        }
        let result = guard(|| call(&self.inlet));
        self.broken = result.is_err();
        result
    }
}

impl RecvFrames for Receiver {
    type Message = Message;
    type RecvError = Error;

    fn recv_frames(&mut self, message: &mut Message, wait: Wait) -> Result<(), Error> {
        message.clear();
        let received = self.wait(message, wait);
        match &received {
            Ok(()) => self.recorder.received(message.byte_count()),
            Err(error) => self.recorder.recv_failed(error),
        }
        received
    }
}

impl AsFd for Receiver {
    /// Returns a descriptor to wait on, never to read from; see [`Receiver::arm`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: `native_handle` asks that nobody stores the number or closes it. It is
        // borrowed for as long as the receiver is, which keeps the listener.
        let raw = unsafe { self.inlet.listener.file_descriptor().native_handle() };
        // SAFETY: `borrow_raw` asks for a number that is not -1 and stays open while the
        // result lives: the listener's socket, as above.
        unsafe { BorrowedFd::borrow_raw(raw) }
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Observed for Receiver {
    fn counters(&self) -> Counters {
        self.recorder.counters()
    }
}

/// Makes a subscriber that notes the senders that it cannot reach.
fn subscribe(
    channel: &Channel,
    unreached: &Arc<Unreached>,
) -> Result<Subscriber<ipc_threadsafe::Service, [[u8; BLOCK]], ()>, Error> {
    let subscriber = channel.port(
        (
            SubscriberCreateError::ExceedsMaxSupportedSubscribers,
            Error::ReceiverExists,
        ),
        "make a subscriber",
        || {
            let unreached = unreached.clone();
            let builder = channel.messages.subscriber_builder();
            builder
                .set_degradation_handler(move |_, info| {
                    unreached.note(info.sender_port_id);
                    DegradationAction::Ignore
                })
                .create()
        },
    )?;
    // A sender that came between the subscriber's own look at the senders and its
    // entry in the list counts on being known.
    guard(|| subscriber.update_connections())?.map_err(|_| UNREACHED)?;
    Ok(subscriber)
}

/// A sender counts on being known, and its pool could not be mapped.
const UNREACHED: Error = Error::Failed {
    doing: "connect to a sender",
};

/// Reads the total length out of a header, where it is the last field.
fn total_len(header: &[u8]) -> Option<usize> {
    let digits = header.get(..HEADER_LEN)?.last_chunk()?;
    usize::try_from(u64::from_le_bytes(*digits)).ok()
}

/// How many samples of nothing a look passes over: more than there are senders.
const MAX_GREETINGS: u8 = 64;

/// The system's timeouts end with a tick of its clock, of 4 ms and often one more: the
/// last bit of a wait is slept through in naps.
const TICK: Duration = Duration::from_millis(9);

const NAP: Duration = Duration::from_micros(100);
