//! The receiving half of a worker: slots to be filled, and tensors in the worker's hands.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use super::error::{CallError, ProtocolError, Step};
use super::half::{ABORTED, End, Half};
use super::job::{Ending, Event, Input, Job};
use super::outbox::{Form, Outgoing, to_u64};
use super::output::Output;
use super::preallocated::Preallocated;
use super::received::{Received, Returns};

use super::settings::{Settings, Site};
use super::text::{SLOT_ID, Text};
use crate::json::{Object, Str};
use crate::message::{MessageKind, classify};
use crate::transfer::message::{Alloc, Ready};
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
        match classify(frames) {
            MessageKind::Control { payload } => {
                let options = *self.half.settings.options();
                let message = Control::decode_with(payload, &options);
                let message = message.map_err(ProtocolError::Invalid)?;
                self.handle(&message, now)?;
                Ok(Input::Control)
            }
            MessageKind::Tensors => Ok(Input::Tensors),
            MessageKind::Other => {
                let role = self.half.role;
                Err(ProtocolError::NotOfRole { role })
            }
        }
    }

    fn handle_alloc(&mut self, alloc: &Alloc<'_>) -> Result<(), ProtocolError> {
        let id = alloc.request_id;
        let step = match self.half.requests.get(&id) {
            Some(State::Allocated { landing }) if to_u64(landing.len()) >= alloc.data_size => {
                // The same answer again: the first may be lost.
                let (offset, len) = (landing.offset(), landing.len());
                self.half.outbox.allocated(id.into(), offset, len);
                return Ok(());
            }
            Some(state) => Some(state.step()),
            None => None,
        };
        if let Some(step) = step {
            return Err(ProtocolError::Duplicate { step });
        }
        let needed = alloc.data_size;
        let pool = self.half.site.pool().len();
        let fits = usize::try_from(needed).ok().filter(|&len| len <= pool);
        let too_small = ProtocolError::PoolTooSmall { needed, pool };
        let admitted = self.half.requests.admit(id);
        let len = admitted.and_then(|()| fits.ok_or(too_small));
        // No tensors at all are put into the smallest slot.
        let len = len
            .map_err(|error| self.half.refuse(id, error, Form::Done))?
            .max(1);
        let deadline = self.half.after(self.half.settings.alloc_timeout());
        let job = self
            .half
            .requests
            .begin(id.into(), State::Waiting { len }, deadline);
        self.waiting.insert(job.serial(), job.request().clone());
        Ok(())
    }

    fn handle_ready(&mut self, ready: &Ready<'_>) -> Result<(), ProtocolError> {
        match self.half.requests.get(&ready.request_id) {
            Some(State::Allocated { .. }) => self.fill_allocated(ready),
            Some(State::Waiting { .. }) => {
                let step = Step::Waiting;
                Err(ProtocolError::Unexpected { step })
            }
            Some(state) => {
                let step = state.step();
                Err(ProtocolError::Duplicate { step })
            }
            None => self.fill_preallocated(ready),
        }
    }

    /// The slow path: the request was asked for a slot, and has one.
    fn fill_allocated(&mut self, ready: &Ready<'_>) -> Result<(), ProtocolError> {
        let id = ready.request_id;
        let Some(State::Allocated { landing }) = self.half.requests.get(&id) else {
            return Ok(());
        };
        let (expected, len) = (landing.offset(), landing.len());
        let found = ready.slot_offset;
        if to_u64(expected) != found {
            return Err(ProtocolError::WrongOffset { expected, found });
        }
        let checked = self.check(ready.manifest, len);
        let Some((job, State::Allocated { landing })) = self.half.requests.remove(&id) else {
            return Ok(());
        };
        // A landing that is dropped is freed.
        let closed = checked.and_then(|()| {
            let busy = ProtocolError::Busy {
                slot_offset: expected,
            };
            landing.close().map_err(|_| busy)
        });
        match closed {
            Ok(slot) => {
                self.hand_out(&job, Held::Allocated, Arc::new(slot), ready);
                Ok(())
            }
            Err(error) => {
                let form = self.half.form();
                self.half.fail(&job, error.to_string(), form);
                Err(error)
            }
        }
    }

    /// The fast path: the head node has given a preallocated slot away.
    fn fill_preallocated(&mut self, ready: &Ready<'_>) -> Result<(), ProtocolError> {
        let id = ready.request_id;
        let form = self.half.form();
        let slot_id = match slot_id(ready) {
            Ok(None) => {
                let step = match self.half.requests.ended(&id) {
                    Some(End::Answered | End::Pushed(())) => {
                        let step = Step::Ended;
                        return Err(ProtocolError::Unexpected { step });
                    }
                    Some(End::Unasked) => Step::Ended,
                    None => Step::Unknown,
                };
                Err(ProtocolError::Unexpected { step })
            }
            Ok(Some(slot_id)) => Ok(slot_id),
            Err(error) => Err(error),
        };
        let place = slot_id.and_then(|slot_id| {
            self.half.requests.admit(id)?;
            let (index, len) = self.preallocated.find(slot_id, ready.slot_offset)?;
            self.check(ready.manifest, len)?;
            Ok(index)
        });
        let index = place.map_err(|error| self.half.refuse(id, error, form))?;
        let deadline = self.half.after(DRAIN_TIMEOUT);
        let closed = self.preallocated.close(index, || id.into(), deadline);
        let Some(slot) = closed else {
            // The request is told of it when the slot is open again.
            let slot_offset = usize::try_from(ready.slot_offset).unwrap_or(usize::MAX);
            return Err(ProtocolError::Busy { slot_offset });
        };
        let slot = Arc::new(slot);
        let held = Held::Preallocated {
            index,
            slot: Arc::clone(&slot),
        };
        let state = State::Working { held: None };
        let job = self.half.requests.begin(id.into(), state, None);
        self.hand_out(&job, held, slot, ready);
        Ok(())
    }

    /// Gives a filled slot to the local worker.
    fn hand_out(&mut self, job: &Job, held: Held, slot: Arc<Slot>, ready: &Ready<'_>) {
        let held = Some(held);
        let deadline = self.half.after(self.half.settings.work_timeout());
        self.half
            .requests
            .resume(job, State::Working { held }, deadline);
        let manifest = Text::new(ready.manifest);
        let scalars = Text::without_slot_id(ready.scalar_fields);
        let received = Received::new(job.clone(), slot, manifest, scalars, &self.returns);
        self.half.events.push_back(Event::Ready(received));
    }

    /// Whether the tensors of `manifest` lie in a slot of this length.
    fn check(&mut self, manifest: Object<'_>, len: usize) -> Result<(), ProtocolError> {
        let checked = self.manifests.decode(manifest, len);
        checked.map(drop).map_err(ProtocolError::Manifest)
    }

    pub(super) fn handle_abort(&mut self, id: Str<'_>) {
        let Some(job) = self.half.requests.job(&id) else {
            return;
        };
        match self.half.requests.get(&id) {
            Some(State::Waiting { .. }) => self.fail_waiting(&job, ABORTED),
            Some(State::Allocated { .. }) => {
                self.half.requests.remove(&id);
                self.half.requests.end(&job, End::Unasked);
            }
            Some(State::Working { .. } | State::Closing { .. }) => {
                self.withdraw(&job, Ending::Aborted, ABORTED);
            }
            None => {}
        }
    }

    fn fail_waiting(&mut self, job: &Job, text: &'static str) {
        self.waiting.remove(&job.serial());
        // A decoder's place at the sender is free only when the head node gets this form.
        self.half.fail(job, text, Form::Done);
    }

    /// Ends a job that the local worker has, and tells it so.
    fn withdraw(&mut self, job: &Job, ending: Ending, text: &'static str) {
        let has_failed = matches!(
            self.half.requests.of(job),
            Some(State::Closing {
                answer: Answer::Failed(_),
                ..
            })
        );
        if has_failed {
            return;
        }
        self.answer(job, Answer::Failed(text.into()));
        self.half.over(job.clone(), ending);
    }

    /// Answers a job that the local worker has, as soon as no slot of the head node's depends on it.
    fn answer(&mut self, job: &Job, answer: Answer) {
        let Some((job, state)) = self.half.requests.remove(job.request()) else {
            return;
        };
        match state {
            State::Working {
                held: Some(held @ Held::Preallocated { .. }),
            }
            | State::Closing { held, .. } => {
                let state = State::Closing { held, answer };
                self.half.requests.resume(&job, state, None);
            }
            _ => self.finish_with(job, answer),
        }
    }

    /// Answers a job that was taken out.
    fn finish_with(&mut self, job: Job, answer: Answer) {
        self.half.requests.end(&job, End::Answered);
        match answer {
            Answer::Failed(text) => {
                let form = self.half.form();
                self.half.outbox.failed(job.request().clone(), text, form);
            }
            Answer::Staged(output, scalars) => self.released.push_back(Released {
                job,
                output,
                scalars,
            }),
        }
    }

    /// Ends what has waited for too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.advance(now);
        while let Some(job) = self.half.requests.due(self.half.now) {
            match self.half.requests.of(&job) {
                Some(State::Waiting { .. }) => {
                    self.fail_waiting(&job, "no room in the pool in time");
                }
                Some(State::Allocated { .. }) => {
                    self.half
                        .fail(&job, "the slot was not filled in time", Form::Done);
                }
                _ => self.withdraw(&job, Ending::Expired, "the worker took too long"),
            }
        }
        self.serve();
    }

    /// Ends a job whose output goes to the client: send it after this has returned `Ok`.
    ///
    /// # Errors
    ///
    /// - [`CallError::NotOfRole`] for all roles but the decoder, which [stage](super::Instance::stage) theirs.
    /// - [`CallError::Over`].
    /// - [`CallError::NotGivenBack`] if the received slot is still held: the head
    ///   node would give it away as soon as it had the output.
    pub fn finish(&mut self, job: &Job, now: Duration) -> Result<(), CallError> {
        self.advance(now);
        let role = self.half.role;
        if !role.is_last() {
            return Err(CallError::NotOfRole { role });
        }
        match self.half.requests.of(job) {
            Some(State::Working { held: None }) => {
                self.half.requests.remove(job.request());
                self.half.requests.end(job, End::Answered);
                Ok(())
            }
            Some(State::Working { held: Some(_) }) => Err(CallError::NotGivenBack),
            _ => Err(CallError::Over),
        }
    }

    /// Ends a job with an error, which the client gets to read.
    ///
    /// If a preallocated slot is still held, it is told when that is given back.
    ///
    /// # Errors
    ///
    /// [`CallError::Over`].
    pub fn fail(&mut self, job: &Job, text: &str, now: Duration) -> Result<(), CallError> {
        self.advance(now);
        match self.half.requests.of(job) {
            Some(
                State::Working { .. }
                | State::Closing {
                    answer: Answer::Staged(..),
                    ..
                },
            ) => {}
            _ => return Err(CallError::Over),
        }
        self.answer(job, Answer::Failed(String::from(text).into()));
        Ok(())
    }

    /// Whether the local worker has this job, and has not answered it.
    pub(super) fn is_working(&mut self, job: &Job, now: Duration) -> bool {
        self.advance(now);
        matches!(self.half.requests.of(job), Some(State::Working { .. }))
    }

    /// Whether an output of this job waits for the received slot.
    pub(super) fn is_closing(&self, job: &Job) -> bool {
        let state = self.half.requests.of(job);
        let staged = |state: &State| match state {
            State::Closing { answer, .. } => matches!(answer, Answer::Staged(..)),
            _ => false,
        };
        state.is_some_and(staged)
    }

    pub(super) const fn now(&self) -> Duration {
        self.half.now
    }

    /// Passes an output on to the sending half, by way of [`poll_released`](Self::poll_released).
    pub(super) fn stage(&mut self, job: &Job, output: Output, scalars: Text) {
        self.answer(job, Answer::Staged(output, scalars));
    }

    pub(super) fn poll_released(&mut self) -> Option<Released> {
        self.released.pop_front()
    }

    /// Whether a request has ended here, and the head node was told.
    pub(super) fn has_answered(&self, id: Str<'_>) -> bool {
        matches!(self.half.requests.ended(&id), Some(End::Answered))
    }

    /// Writes the next message for the head node into `buffer`, and says what it is.
    ///
    /// Call it also after [`Received`]s were dropped: it takes their slots back.
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
        if self.waiting.is_empty() && !self.preallocated.is_draining() {
            return deadline;
        }
        let soon = self.half.after(RETRY_INTERVAL);
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

    fn advance(&mut self, now: Duration) {
        self.half.advance(now);
        self.settle();
    }

    /// Takes back what is free by now, and gives it to those who wait.
    pub(super) fn settle(&mut self) {
        for job in self.returns.take() {
            self.take_back(&job);
        }
        while let Some(request) = self.preallocated.poll_drained(self.half.now) {
            let form = self.half.form();
            let text = "somebody was still writing to the filled slot";
            self.half.outbox.failed(request, text, form);
        }
        self.serve();
    }

    /// The local worker has dropped what it received.
    fn take_back(&mut self, job: &Job) {
        let Some(state) = self.half.requests.of_mut(job) else {
            return;
        };
        match state {
            State::Working { held } => {
                let held = mem::take(held);
                self.reopen(held);
            }
            State::Closing { .. } => {
                let removed = self.half.requests.remove(job.request());
                if let Some((job, State::Closing { held, answer })) = removed {
                    // Before the head node hears that it may give it away.
                    self.reopen(Some(held));
                    self.finish_with(job, answer);
                }
            }
            _ => {}
        }
    }

    fn reopen(&mut self, held: Option<Held>) {
        if let Some(Held::Preallocated { index, slot }) = held {
            self.preallocated.reopen(index, Arc::into_inner(slot));
        }
    }

    /// Gives room to those who wait for it, in their order.
    fn serve(&mut self) {
        while let Some(entry) = self.waiting.first_entry() {
            let id = entry.get();
            let Some(State::Waiting { len }) = self.half.requests.get(id) else {
                entry.remove();
                continue;
            };
            let Ok(slot) = self.half.site.pool().allocate(*len) else {
                return;
            };
            let id = entry.remove();
            let Some((job, _)) = self.half.requests.remove(&id) else {
                continue;
            };
            let landing = slot.open();
            self.half
                .outbox
                .allocated(id, landing.offset(), landing.len());
            let deadline = self.half.after(self.half.settings.fill_timeout());
            let state = State::Allocated { landing };
            self.half.requests.resume(&job, state, deadline);
        }
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

/// The number of the preallocated slot; `None` on the slow path.
fn slot_id(ready: &Ready<'_>) -> Result<Option<u64>, ProtocolError> {
    if ready.preallocated_slot.is_some() {
        return Ok(ready.preallocated_slot);
    }
    match ready.scalar_fields.get(SLOT_ID) {
        Some(value) if !value.is_null() => {
            let id = value.as_u64().map_err(|_| ProtocolError::BadSlotId)?;
            Ok(Some(id))
        }
        _ => Ok(None),
    }
}

/// How long a slot is waited for whose writer is still there when it ought to be done.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How soon room, or a writer that is done, is asked for again.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
