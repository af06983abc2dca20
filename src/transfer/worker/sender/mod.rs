//! The sending half of a worker: outputs that wait to be fetched, and are pushed.

mod push;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::error::{CallError, ProtocolError, Step};
use super::half::{self, ABORTED, End, Half};
use super::job::{Ending, Event, Input, Job};
use super::outbox::Outgoing;
use super::output::Output;
use super::receiver::Released;
use super::settings::{Settings, Site};
use super::text::Text;
use crate::json::Str;
use crate::message::ScalarFields;
use crate::transfer::message::Push;
use crate::transfer::pool::Slot;
use crate::transfer::{Control, Role};

/// The sending half of a worker.
///
/// All there is to an encoder. The states, and what each message does in each of them, are
/// in the [module's docs](super#the-sender).
#[derive(Debug)]
pub struct Sender {
    half: Half<State, Destination>,
    /// Those that are [`Queued`](State::Queued), and some that no longer are.
    pushes: VecDeque<Job>,
}

#[derive(Debug)]
enum State {
    /// The local worker has it.
    Working,
    /// It is announced.
    Staged { slot: Option<Slot>, used: usize },
    /// It is to be pushed, by a driver that was not yet told.
    Queued {
        slot: Slot,
        used: usize,
        to: Destination,
    },
    /// The driver has the slot.
    Pushing { used: usize, to: Destination },
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Destination {
    session_id: Arc<str>,
    address: u64,
}

impl Destination {
    fn is(&self, push: &Push<'_>) -> bool {
        push.dest_session_id == *self.session_id && push.dest_addr == self.address
    }
}

/// Bytes to be pushed over the data plane.
///
/// Push them, and give the slot back with what came of it by `handle_pushed`, whatever it
/// was: the head node waits for the answer.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "the head node waits for what comes of it"]
pub struct PushOrder {
    /// The job whose output it is.
    pub job: Job,
    /// The session to push to.
    pub session_id: Arc<str>,
    /// The address of the first byte there.
    pub address: u64,
    /// The slot to push from.
    pub slot: Slot,
    /// How many bytes of it, from its start.
    pub len: usize,
}

impl Sender {
    /// A sender that registers with `role`, any but the decoder.
    ///
    /// # Errors
    ///
    /// [`CallError::NotOfRole`].
    pub fn new(role: Role, site: Site, settings: Settings) -> Result<Self, CallError> {
        if role.is_last() {
            return Err(CallError::NotOfRole { role });
        }
        let mut sender = Self::silent(role, Arc::new(site), settings);
        sender.half.outbox.register(Box::default());
        Ok(sender)
    }

    /// One that does not register: half of an instance that does.
    pub(super) const fn silent(role: Role, site: Arc<Site>, settings: Settings) -> Self {
        Self {
            half: Half::new(role, site, settings),
            pushes: VecDeque::new(),
        }
    }

    /// Handles a control message of the head node.
    ///
    /// # Errors
    ///
    /// As the [table](super#the-sender) says; then no other request has changed.
    pub fn handle(&mut self, message: &Control<'_>, now: Duration) -> Result<(), ProtocolError> {
        self.half.advance(now);
        match message {
            Control::Push(push) => self.handle_push(push),
            Control::Alloc(_) | Control::Ready(_) => {
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
        }
    }

    /// Handles the frames of a message of the head node, be it control or work.
    ///
    /// # Errors
    ///
    /// As [`handle`](Self::handle), and [`ProtocolError::Invalid`].
    pub fn handle_frames<'f, F: AsRef<[u8]>>(
        &mut self,
        frames: &'f [F],
        now: Duration,
    ) -> Result<Input<'f>, ProtocolError> {
        self.half.advance(now);
        let role = self.half.role;
        if half::is_work(frames, role) {
            return self.handle_work(frames);
        }
        let Some(message) = half::read(frames, role, self.half.settings.options())? else {
            return Ok(Input::Tensors);
        };
        self.handle(&message, now)?;
        Ok(Input::Control)
    }

    /// `[request_id, payload]`, and what is between them in messages of a later time.
    fn handle_work<'f, F: AsRef<[u8]>>(
        &mut self,
        frames: &'f [F],
    ) -> Result<Input<'f>, ProtocolError> {
        let [id, .., payload] = frames else {
            return Err(ProtocolError::NoText);
        };
        let id = core::str::from_utf8(id.as_ref()).map_err(|_| ProtocolError::NoText)?;
        let job = self.begin_job(Str::from(id))?;
        let payload = payload.as_ref();
        Ok(Input::Work { job, payload })
    }

    fn begin_job(&mut self, id: Str<'_>) -> Result<Job, ProtocolError> {
        // Another output would be pushed to where the announced one was to go, and be read
        // as what was said of that.
        if self.half.requests.get(&id).is_some() {
            let step = self.step(id);
            return Err(ProtocolError::Duplicate { step });
        }
        if let Err(error) = self.half.admit(id) {
            let form = self.half.form();
            return Err(self.half.refuse(id, error, form));
        }
        let deadline = self.half.after(self.half.settings.work_timeout());
        Ok(self
            .half
            .requests
            .begin(id.into(), State::Working, deadline))
    }

    /// Begins a request whose work comes in another way than by a message of the head node.
    ///
    /// # Errors
    ///
    /// As for work: [`ProtocolError::Duplicate`], and the head node is told of
    /// [`ProtocolError::Full`].
    pub fn begin(&mut self, request: Str<'_>, now: Duration) -> Result<Job, ProtocolError> {
        self.half.advance(now);
        self.begin_job(request)
    }

    fn fail_job(&mut self, job: &Job, text: impl Into<Cow<'static, str>>) {
        let form = self.half.form();
        self.half.fail(job, text, form);
    }

    pub(super) fn handle_abort(&mut self, id: Str<'_>) {
        let Some(job) = self.half.requests.job(&id) else {
            return;
        };
        match self.half.requests.get(&id) {
            Some(State::Working | State::Queued { .. }) => self.fail_job(&job, ABORTED),
            Some(State::Staged { .. }) => {
                self.half.requests.remove(&id);
                self.half.requests.end(&job, End::Unasked);
            }
            // Too late: it ends with its push, and is answered then.
            Some(State::Pushing { .. }) | None => return,
        }
        self.half.over(job, Ending::Aborted);
    }

    /// Ends what has waited for too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.half.advance(now);
        while let Some(job) = self.half.requests.due(self.half.now) {
            let text = match self.half.requests.of(&job) {
                Some(State::Staged { .. }) => "the output was not fetched in time",
                _ => "the worker took too long",
            };
            self.fail_job(&job, text);
            self.half.over(job, Ending::Expired);
        }
    }

    /// Announces the output of a job to the head node: it stays in its slot until it is fetched.
    ///
    /// What becomes of it comes as an [`Event::Over`]. The scalars go on to the
    /// next role, but for `_prealloc_slot_id`, which is the head node's.
    ///
    /// # Errors
    ///
    /// The output, and [`CallError::Over`], [`CallError::Staged`] or [`CallError::Scalars`].
    pub fn stage<S: ScalarFields + ?Sized>(
        &mut self,
        job: &Job,
        output: impl Into<Output>,
        scalars: &S,
        now: Duration,
    ) -> Result<(), (Output, CallError)> {
        let output = output.into();
        self.half.advance(now);
        let error = match self.half.requests.of(job) {
            Some(State::Working) => match Text::from_scalars(scalars) {
                Ok(scalars) => {
                    self.announce(job, output, scalars);
                    return Ok(());
                }
                Err(error) => CallError::Scalars(error),
            },
            Some(_) => CallError::Staged,
            None => CallError::Over,
        };
        Err((output, error))
    }

    /// Stages the output of a job of the receiving half.
    pub(super) fn adopt(&mut self, released: Released, now: Duration) {
        self.half.advance(now);
        let Released {
            job,
            output,
            scalars,
        } = released;
        self.announce(&job, output, scalars);
    }

    fn announce(&mut self, job: &Job, output: Output, scalars: Text) {
        let request = job.request().clone();
        let (slot, used) = self.half.outbox.staged(request, output, scalars);
        let deadline = self.half.after(self.half.settings.stage_timeout());
        let state = State::Staged { slot, used };
        self.half.requests.resume(job, state, deadline);
    }

    /// Ends a job with an error, which the client gets to read: the worker failed, or its output is withdrawn.
    ///
    /// # Errors
    ///
    /// [`CallError::Over`], or [`CallError::Pushing`] if the output is on its way.
    pub fn fail(&mut self, job: &Job, text: &str, now: Duration) -> Result<(), CallError> {
        self.half.advance(now);
        match self.half.requests.of(job) {
            None => return Err(CallError::Over),
            Some(State::Pushing { .. }) => return Err(CallError::Pushing),
            Some(_) => self.fail_job(job, String::from(text)),
        }
        Ok(())
    }

    /// Writes the next message for the head node into `buffer`, and says what it is.
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        self.half.poll_transmit(buffer)
    }

    /// Returns the next thing that the local worker wants to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.half.events.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called, if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.half.requests.next_deadline()
    }

    /// Returns how far a request is.
    #[must_use]
    pub fn step(&self, request: Str<'_>) -> Step {
        match self.half.requests.get(&request) {
            Some(State::Working) => Step::Working,
            Some(State::Staged { .. }) => Step::Staged,
            Some(State::Queued { .. } | State::Pushing { .. }) => Step::Pushing,
            None => self.half.end_step(request),
        }
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

    pub(super) fn has(&self, job: &Job) -> bool {
        self.half.requests.of(job).is_some()
    }
}
