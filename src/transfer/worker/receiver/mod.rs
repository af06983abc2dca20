//! The receiving half of a worker: slots to be filled, and tensors in the worker's hands.

mod answer;
mod fill;

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::error::{CallError, ProtocolError, Step};
use super::half::{self, End, Half};
use super::job::{Event, Input, Job};
use super::outbox::Outgoing;
use super::output::Output;
use super::preallocated::Preallocated;
use super::received::Returns;
use super::settings::{Settings, Site};
use super::text::Text;
use crate::json::Str;
use crate::transfer::pool::{Landing, Slot};
use crate::transfer::{Control, RequestId, Role, manifest};

/// The receiving half of a worker.
///
/// All there is to a decoder. The states, and what each message does in each of them, are
/// in the [module's docs](super#the-receiver).
#[derive(Debug)]
pub struct Receiver {
    half: Half<State, ()>,
    preallocated: Preallocated,
    manifests: manifest::Decoder,
    /// Those that wait for room, the longest first.
    waiting: BTreeMap<u64, RequestId>,
    returns: Returns,
    /// Empty: where they are taken to.
    returned: Vec<Job>,
    /// What the worker staged before the slot was back, and is to be announced now.
    released: VecDeque<Released>,
}

/// A job on its way from the receiving to the sending half.
#[derive(Debug)]
pub(super) struct Released {
    pub(super) job: Job,
    pub(super) output: Output,
    pub(super) scalars: Text,
}

#[derive(Debug)]
enum State {
    /// There was no room for so many bytes.
    Waiting { len: usize },
    /// Its slot is open.
    Allocated { landing: Landing },
    /// The local worker has it, and perhaps still the slot.
    Working { held: Option<Held> },
    /// The local worker has answered, and still has the slot.
    Closing { held: Held, answer: Answer },
}

/// A received slot in the hands of the local worker.
#[derive(Debug)]
enum Held {
    Allocated,
    /// The head node takes it for free as soon as it has the answer.
    Preallocated {
        index: usize,
        slot: Arc<Slot>,
    },
}

#[derive(Debug)]
enum Answer {
    Failed(Cow<'static, str>),
    Staged(Output, Text),
}

impl Receiver {
    /// A receiver that registers with `role`, any but the first ones, and with the
    /// preallocated slots that `settings` ask for.
    ///
    /// # Errors
    ///
    /// [`CallError::NotOfRole`]; or [`CallError::Pool`] if the pool has not the preallocated slots.
    pub fn new(role: Role, site: Site, settings: Settings) -> Result<Self, CallError> {
        if role.is_first() {
            return Err(CallError::NotOfRole { role });
        }
        Self::shared(role, Arc::new(site), settings)
    }

    pub(super) fn shared(
        role: Role,
        site: Arc<Site>,
        settings: Settings,
    ) -> Result<Self, CallError> {
        let preallocated = Preallocated::new(&site, &settings).map_err(CallError::Pool)?;
        let mut half = Half::new(role, site, settings);
        half.outbox.register(preallocated.listed(&half.site));
        Ok(Self {
            half,
            preallocated,
            manifests: manifest::Decoder::with_options(*settings.options()),
            waiting: BTreeMap::new(),
            returns: Returns::default(),
            returned: Vec::new(),
            released: VecDeque::new(),
        })
    }

    /// Handles a control message of the head node.
    ///
    /// # Errors
    ///
    /// As the [table](super#the-receiver) says; then no other request has changed.
    pub fn handle(&mut self, message: &Control<'_>, now: Duration) -> Result<(), ProtocolError> {
        self.advance(now);
        let handled = match message {
            Control::Alloc(alloc) => self.handle_alloc(alloc),
            Control::Ready(ready) => self.handle_ready(ready),
            Control::Push(_) => {
                let role = self.half.role;
                Err(ProtocolError::NotOfRole { role })
            }
            Control::RegisterAck(_) => Ok(()),
            Control::Unknown(unknown) => {
                if let Some(abort) = unknown.abort() {
                    self.handle_abort(abort.request_id);
                }
                Ok(())
            }
            _ => Err(ProtocolError::NotForWorker),
        };
        self.serve();
        handled
    }

    /// Handles the frames of a message of the head node.
    ///
    /// # Errors
    ///
    /// As [`handle`](Self::handle), and [`ProtocolError::Invalid`].
    pub fn handle_frames<'f, F: AsRef<[u8]>>(
        &mut self,
        frames: &'f [F],
        now: Duration,
    ) -> Result<Input<'f>, ProtocolError> {
        let Some(message) = half::read(frames, self.half.role, self.half.settings.options())?
        else {
            return Ok(Input::Tensors);
        };
        self.handle(&message, now)?;
        Ok(Input::Control)
    }

    pub(super) const fn now(&self) -> Duration {
        self.half.now
    }

    /// Whether a request has ended here, and the head node was told.
    pub(super) fn has_answered(&self, id: Str<'_>) -> bool {
        matches!(self.half.requests.ended(&id), Some(End::Answered))
    }

    /// Writes the next message for the head node into `buffer`, and says what it is.
    ///
    /// Call it also after [`Received`](crate::transfer::worker::Received)s were dropped: it takes their slots back.
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        self.settle();
        self.half.poll_transmit(buffer)
    }

    /// Returns the next thing that the local worker wants to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.half.events.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called, if nothing comes before.
    ///
    /// That is soon while a request waits for room, or a slot for its writer: both end
    /// without a message.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let deadline = self.half.requests.next_deadline();
        let interval = if !self.waiting.is_empty() || self.preallocated.is_awaited() {
            RETRY_INTERVAL
        } else if self.preallocated.is_draining() {
            STUCK_INTERVAL
        } else {
            return deadline;
        };
        let soon = self.half.after(interval);
        match (deadline, soon) {
            (Some(deadline), Some(soon)) => Some(deadline.min(soon)),
            (deadline, soon) => deadline.or(soon),
        }
    }

    /// Returns how far a request is.
    #[must_use]
    pub fn step(&self, request: Str<'_>) -> Step {
        let state = self.half.requests.get(&request);
        state.map_or_else(|| self.half.end_step(request), State::step)
    }

    /// Returns how many requests are under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.half.requests.len()
    }

    /// Returns whether no request is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes back what is free by now.
    pub(super) fn advance(&mut self, now: Duration) {
        self.half.advance(now);
        self.settle();
    }
}

impl State {
    const fn step(&self) -> Step {
        match self {
            Self::Waiting { .. } => Step::Waiting,
            Self::Allocated { .. } => Step::Allocated,
            Self::Working { .. } => Step::Working,
            Self::Closing { .. } => Step::Closing,
        }
    }
}

/// How soon room, or a writer that is done, is asked for again.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// How soon a writer is asked after whose request has failed meanwhile.
const STUCK_INTERVAL: Duration = Duration::from_secs(1);
