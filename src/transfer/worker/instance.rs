//! A worker of any role: both halves as one.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::error::{CallError, ProtocolError, Step};
use super::half;
use super::job::{Event, Input, Job};
use super::outbox::Outgoing;
use super::output::Output;
use super::receiver::Receiver;
use super::sender::{PushOrder, Sender};
use super::settings::{Settings, Site};
use super::text::Text;
use crate::json::Str;
use crate::message::ScalarFields;
use crate::transfer::message::{Alloc, Push, Ready};
use crate::transfer::pool::Slot;
use crate::transfer::{Control, Role};

/// A worker of any role: a [`Receiver`] unless it is a first one, a [`Sender`] unless it is the last.
///
/// How to drive it, and what each message does in each state, is in the [module's docs](super).
///
/// # Examples
///
/// The part that is the same in every driver, and a request that goes from an encoder to a
/// decoder, for whom this function plays the head node:
///
/// ```
/// use std::collections::HashMap;
/// use std::time::Duration;
///
/// use tensorwire::json::Value;
/// use tensorwire::message::Scalar;
/// use tensorwire::plane::memory::Hub;
/// use tensorwire::plane::{DataPlane, PushId, RegionOptions, Transfer};
/// use tensorwire::transfer::manifest::Storage;
/// use tensorwire::transfer::message::{Alloc, Push, Ready};
/// use tensorwire::transfer::worker::{Event, Input, Job, PushOrder, Settings, Site};
/// use tensorwire::transfer::{Control, Instance, Role};
/// use tensorwire::{Options, TensorView};
///
/// /// Does all that there is to do: pushes, takes back what was pushed, sends.
/// fn drive<P: DataPlane>(
///     instance: &mut Instance,
///     plane: &mut P,
///     pushes: &mut HashMap<PushId, Job>,
///     now: Duration,
///     mut send: impl FnMut(&[&[u8]]),
/// ) {
///     while let Some(order) = instance.poll_push() {
///         let PushOrder { job, session_id, address, slot, len, .. } = order;
///         let mut transfer = Transfer::new(slot, &*session_id);
///         let pushed = match transfer.add_piece(0..len, address) {
///             Ok(()) => plane.push(transfer).map_err(|(transfer, error)| (transfer, error.to_string())),
///             Err(error) => Err((transfer, error.to_string())),
///         };
///         match pushed {
///             Ok(id) => drop(pushes.insert(id, job)),
///             Err((transfer, error)) => {
///                 instance.handle_pushed(&job, transfer.into_slot(), Err(error), now);
///             }
///         }
///     }
///     while let Some(completion) = plane.poll_completion() {
///         let job = pushes.remove(&completion.id());
///         let (slot, result) = completion.into_parts();
///         if let Some(job) = job {
///             instance.handle_pushed(&job, slot, result, now);
///         }
///     }
///     let mut buffer = Vec::new();
///     while let Some(outgoing) = instance.poll_transmit(&mut buffer) {
///         send(&outgoing.frames(&buffer));
///     }
/// }
///
/// let (now, hub, mut pushes) = (Duration::ZERO, Hub::new(), HashMap::new());
/// let (mut ours, mut theirs) = (hub.join("encoder-0")?, hub.join("decoder-0")?);
/// let region = ours.register(RegionOptions::new(1 << 20))?;
/// let far = theirs.register(RegionOptions::new(1 << 20))?;
/// let site = Site::new("encoder-0", region.base(), region.pool().clone(), "tcp://127.0.0.1:5571");
/// let mut encoder = Instance::new(Role::Encoder, site, Settings::new())?;
/// let site = Site::new("decoder-0", far.base(), far.pool().clone(), "tcp://127.0.0.1:5572");
/// let mut decoder = Instance::new(Role::Decoder, site, Settings::new())?;
///
/// // The encoder works.
/// let work = ["r1".as_bytes(), b"pickle"];
/// let Input::Work { job, .. } = encoder.handle_frames(&work, now)? else { return Err("no work".into()) };
/// let tensors = [TensorView::from_slice("latents", &[3], &[1.0_f32, 2.0, 3.0])?];
/// let stored = region.store(&tensors)?;
/// encoder.stage(&job, stored, &[("seed", Scalar::from(7))], now).map_err(|(_output, error)| error)?;
///
/// // The head node asks the decoder for a slot, and lets the encoder push into it.
/// decoder.handle(&Alloc::new("r1", 1 << 20, "encoder").into(), now)?;
/// let mut address = 0;
/// drive(&mut decoder, &mut theirs, &mut pushes, now, |frames| {
///     if let Ok(Control::Allocated(allocated)) = Control::from_frames(frames) {
///         address = allocated.location.pool_ptr + allocated.location.slot_offset;
///     }
/// });
/// encoder.handle(&Push::new("r1", "decoder-0", address, 1 << 20).into(), now)?;
/// let mut is_pushed = false;
/// drive(&mut encoder, &mut ours, &mut pushes, now, |frames| {
///     is_pushed |= matches!(Control::from_frames(frames), Ok(Control::Pushed(_)));
/// });
/// assert!(is_pushed);
///
/// // The decoder reads, gives the slot back, and is through.
/// let manifest = br#"{"latents":[{"offset":0,"shape":[3],"dtype":"float32"}]}"#;
/// let manifest = Value::parse(manifest)?.as_object()?;
/// let scalars = Value::parse(br#"{"seed":7}"#)?.as_object()?;
/// decoder.handle(&Ready::new("r1", manifest, 0, scalars).into(), now)?;
/// let Some(Event::Ready(received)) = decoder.poll_event() else { return Err("not ready".into()) };
/// let mut storage = Storage::<16>::new();
/// let tensors = far.load(received.slot(), received.manifest(), &mut storage, &Options::new())?;
/// let latents = tensors.tensor("latents").ok_or("no latents")?;
/// assert_eq!(latents.as_slice::<f32>()?, [1.0, 2.0, 3.0]);
/// let job = received.job().clone();
/// drop(received);
/// decoder.finish(&job, now)?;
/// assert!(encoder.is_empty() && decoder.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Instance {
    role: Role,
    settings: Settings,
    receiver: Option<Receiver>,
    sender: Option<Sender>,
}

impl Instance {
    /// A worker that registers with `role`, and, if that receives anything, with the
    /// preallocated slots that `settings` ask for.
    ///
    /// # Errors
    ///
    /// [`CallError::Pool`] if the pool has not the preallocated slots.
    pub fn new(role: Role, site: Site, settings: Settings) -> Result<Self, CallError> {
        let (receiver, sender) = if role.is_first() {
            (None, Some(Sender::new(role, site, settings)?))
        } else {
            let site = Arc::new(site);
            let receiver = Receiver::shared(role, Arc::clone(&site), settings)?;
            let sender = (!role.is_last()).then(|| Sender::silent(role, site, settings));
            (Some(receiver), sender)
        };
        Ok(Self {
            role,
            settings,
            receiver,
            sender,
        })
    }

    /// Returns its role.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Handles a control message of the head node.
    ///
    /// # Errors
    ///
    /// As the tables of the [module's docs](super) say; then no other request has changed.
    pub fn handle(&mut self, message: &Control<'_>, now: Duration) -> Result<(), ProtocolError> {
        let role = self.role;
        if let Some(receiver) = &mut self.receiver {
            receiver.advance(now);
        }
        // An output whose received slot is back is the sender's before anything is looked up.
        self.pass_on();
        let handled = match message {
            Control::Alloc(Alloc { request_id, .. }) | Control::Ready(Ready { request_id, .. }) => {
                let sender = self.sender.as_ref();
                let step = sender.map_or(Step::Unknown, |sender| sender.step(*request_id));
                match &mut self.receiver {
                    // Its output is announced: there must be no other.
                    Some(_) if matches!(step, Step::Staged | Step::Pushing) => {
                        Err(ProtocolError::Duplicate { step })
                    }
                    Some(receiver) => receiver.handle(message, now),
                    None => Err(ProtocolError::NotOfRole { role }),
                }
            }
            Control::Push(push) => self.handle_push(message, push, now),
            _ => {
                let receiver = self.receiver.as_mut();
                let sender = self.sender.as_mut();
                // They agree on everything that both are asked.
                let first = receiver.map_or(Ok(()), |receiver| receiver.handle(message, now));
                first.and_then(|()| sender.map_or(Ok(()), |sender| sender.handle(message, now)))
            }
        };
        self.pass_on();
        handled
    }

    fn handle_push(
        &mut self,
        message: &Control<'_>,
        push: &Push<'_>,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let id = push.request_id;
        let Some(sender) = &mut self.sender else {
            let role = self.role;
            return Err(ProtocolError::NotOfRole { role });
        };
        if let Some(receiver) = &self.receiver {
            let step = receiver.step(id);
            let is_forgotten = sender.step(id) == Step::Unknown;
            let is_turned_away = match step {
                Step::Unknown => false,
                // Of those that ended with an answer the sender would know nothing.
                Step::Ended => is_forgotten && receiver.has_answered(id),
                _ => true,
            };
            if is_turned_away {
                return Err(ProtocolError::Unexpected { step });
            }
        }
        sender.handle(message, now)
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
        if let Some(sender) = &mut self.sender
            && half::is_work(frames, self.role)
        {
            return sender.handle_frames(frames, now);
        }
        let Some(message) = half::read(frames, self.role, self.settings.options())? else {
            return Ok(Input::Tensors);
        };
        self.handle(&message, now)?;
        Ok(Input::Control)
    }

    /// Handles what came of a push: `Ok` if so many bytes are in their places.
    ///
    /// The slot is freed. Of a job that is over meanwhile nobody is told.
    pub fn handle_pushed<E: fmt::Display>(
        &mut self,
        job: &Job,
        slot: Slot,
        result: Result<u64, E>,
        now: Duration,
    ) {
        if let Some(sender) = &mut self.sender {
            sender.handle_pushed(job, slot, result, now);
        }
    }

    /// Ends what has waited for too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        if let Some(receiver) = &mut self.receiver {
            receiver.handle_timeout(now);
        }
        self.pass_on();
        if let Some(sender) = &mut self.sender {
            sender.handle_timeout(now);
        }
    }

    /// Announces the output of a job to the head node: it stays in its slot until it is fetched.
    ///
    /// What becomes of it comes as an [`Event::Over`]. The scalars go on to the
    /// next role, but for `_prealloc_slot_id`, which is the head node's. If a received
    /// preallocated slot is still held, the announcement waits for it.
    ///
    /// # Errors
    ///
    /// The output, and [`CallError::NotOfRole`] for the decoder, which [finishes](Self::finish) instead,
    /// [`CallError::Over`], [`CallError::Staged`] or [`CallError::Scalars`].
    pub fn stage<S: ScalarFields + ?Sized>(
        &mut self,
        job: &Job,
        output: impl Into<Output>,
        scalars: &S,
        now: Duration,
    ) -> Result<(), (Output, CallError)> {
        let output = output.into();
        let role = self.role;
        let Some(sender) = &mut self.sender else {
            return Err((output, CallError::NotOfRole { role }));
        };
        let Some(receiver) = &mut self.receiver else {
            return sender.stage(job, output, scalars, now);
        };
        if !receiver.is_working(job, now) {
            let is_staged = sender.has(job) || receiver.is_closing(job);
            let error = if is_staged {
                CallError::Staged
            } else {
                CallError::Over
            };
            return Err((output, error));
        }
        match Text::from_scalars(scalars) {
            Ok(scalars) => receiver.stage(job, output, scalars),
            Err(error) => return Err((output, CallError::Scalars(error))),
        }
        self.pass_on();
        Ok(())
    }

    /// Ends a decoder's job whose output goes to the client: send it after this has returned `Ok`.
    ///
    /// # Errors
    ///
    /// - [`CallError::NotOfRole`] for all other roles, which [stage](Self::stage) their output.
    /// - [`CallError::Over`].
    /// - [`CallError::NotGivenBack`] if the received slot is still held: the head
    ///   node would give it away as soon as it had the output.
    pub fn finish(&mut self, job: &Job, now: Duration) -> Result<(), CallError> {
        let role = self.role;
        match &mut self.receiver {
            Some(receiver) => receiver.finish(job, now),
            None => Err(CallError::NotOfRole { role }),
        }
    }

    /// Ends a job with an error, which the client gets to read: the worker failed, or its
    /// output is withdrawn.
    ///
    /// If a received preallocated slot is still held, it is told when that is given back.
    ///
    /// # Errors
    ///
    /// [`CallError::Over`], or [`CallError::Pushing`] if the output is on its way.
    pub fn fail(&mut self, job: &Job, text: &str, now: Duration) -> Result<(), CallError> {
        if let Some(receiver) = &mut self.receiver {
            let failed = receiver.fail(job, text, now);
            self.pass_on();
            if failed.is_ok() {
                return failed;
            }
        }
        match &mut self.sender {
            Some(sender) => sender.fail(job, text, now),
            None => Err(CallError::Over),
        }
    }

    /// Writes the next message for the head node into `buffer`, and says what it is.
    ///
    /// Call it also after [`Received`](super::Received)s were dropped: it takes their slots back.
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        if let Some(receiver) = &mut self.receiver
            && let Some(outgoing) = receiver.poll_transmit(buffer)
        {
            return Some(outgoing);
        }
        self.pass_on();
        self.sender.as_mut()?.poll_transmit(buffer)
    }

    /// Returns the next push to begin.
    pub fn poll_push(&mut self) -> Option<PushOrder> {
        self.sender.as_mut()?.poll_push()
    }

    /// Returns the next thing that the local worker wants to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.receiver.as_mut().and_then(Receiver::poll_event);
        event.or_else(|| self.sender.as_mut()?.poll_event())
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called, if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let receiver = self.receiver.as_ref().and_then(Receiver::poll_timeout);
        let sender = self.sender.as_ref().and_then(Sender::poll_timeout);
        match (receiver, sender) {
            (Some(receiver), Some(sender)) => Some(receiver.min(sender)),
            (receiver, sender) => receiver.or(sender),
        }
    }

    /// Returns how far a request is.
    #[must_use]
    pub fn step(&self, request: Str<'_>) -> Step {
        let receiver = self.receiver.as_ref();
        let receiver = receiver.map_or(Step::Unknown, |receiver| receiver.step(request));
        let sender = self.sender.as_ref();
        let sender = sender.map_or(Step::Unknown, |sender| sender.step(request));
        match receiver {
            // Then it is with the sender, or was.
            Step::Ended | Step::Unknown => match sender {
                Step::Unknown => receiver,
                _ => sender,
            },
            _ => receiver,
        }
    }

    /// Returns how many requests are under way.
    #[must_use]
    pub fn len(&self) -> usize {
        let receiver = self.receiver.as_ref().map_or(0, Receiver::len);
        let sender = self.sender.as_ref().map_or(0, Sender::len);
        receiver.saturating_add(sender)
    }

    /// Returns whether no request is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes outputs whose received slot is back from the receiving to the sending half.
    fn pass_on(&mut self) {
        let (Some(receiver), Some(sender)) = (&mut self.receiver, &mut self.sender) else {
            return;
        };
        while let Some(released) = receiver.poll_released() {
            sender.adopt(released, receiver.now());
        }
    }
}
