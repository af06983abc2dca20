//! How a request goes on: one worker's message at a time.

use core::time::Duration;

use super::Coordinator;
use super::error::ProtocolError;
use super::event::{Event, Failure, FailureKind};
use super::request::{Request, State, Use, WorkerId, is_true};
use super::slots::{self, Slots};
use super::stage::Registration;
use crate::json::Str;
use crate::transfer::message::{Alloc, Allocated, Control, Outcome, Push, Ready, Register, Staged};
use crate::transfer::request::Key;
use crate::transfer::{RequestId, Role};

impl Coordinator {
    pub(super) fn control(
        &mut self,
        role: Role,
        control: &Control<'_>,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let stage = self.stage_of(role)?;
        match control {
            Control::Allocated(message) => self.allocated(stage, message),
            Control::Done(done) => match &done.outcome {
                Outcome::Failed(text) => self.role_failed(stage, done.request_id, *text, now),
                Outcome::Finished => self.finished(stage, done.request_id, now),
                Outcome::Staged(message) => self.staged(stage, done.request_id, message),
            },
            Control::Pushed(message) => self.pushed(stage, message.request_id),
            Control::Register(message) => self.register(stage, message, now),
            Control::Staged(message) => self.staged(stage, message.request_id, message),
            Control::Unknown(message) => match message.abort() {
                Some(abort) => self.role_failed(stage, abort.request_id, abort.reason, now),
                None => Err(ProtocolError::UnknownMessage),
            },
            Control::Alloc(_) | Control::Push(_) | Control::Ready(_) | Control::RegisterAck(_) => {
                Err(ProtocolError::NotForHeadNode)
            }
        }
    }

    pub(super) fn stage_of(&self, role: Role) -> Result<usize, ProtocolError> {
        let mut stages = self.stages.iter();
        let found = stages.position(|stage| stage.role == role);
        found.ok_or(ProtocolError::RoleNotHere { role })
    }

    pub(super) fn role(&self, stage: usize) -> Role {
        let last = Role::Decoder;
        self.stages.get(stage).map_or(last, |stage| stage.role)
    }

    /// Gives queued requests to workers with free places, first roles first.
    pub(super) fn dispatch(&mut self, now: Duration) {
        for index in 0..self.stages.len() {
            while self.skip_stale(index) {
                let Some(stage) = self.stages.get_mut(index) else {
                    return;
                };
                let Some(worker) = stage.places.choose() else {
                    break;
                };
                let Some((id, _)) = stage.queue.pop_front() else {
                    break;
                };
                stage.waiting = stage.waiting.saturating_sub(1);
                stage.places.take(worker);
                let stage = index;
                self.assign(id, WorkerId { stage, worker }, now);
            }
        }
    }

    /// Drops ids at the front of a queue that wait no longer; tells whether one is there that does.
    fn skip_stale(&mut self, index: usize) -> bool {
        let Some(stage) = self.stages.get_mut(index) else {
            return false;
        };
        while let Some((id, serial)) = stage.queue.front() {
            let request = self.requests.get(id);
            if request.is_some_and(|request| request.waits_for(index, *serial)) {
                return true;
            }
            stage.queue.pop_front();
        }
        false
    }

    /// Gives a queued request to a worker, whose place is taken already.
    fn assign(&mut self, id: RequestId, to: WorkerId, now: Duration) {
        let source = self.requests.get(&id).and_then(|request| {
            let State::Queued { from, .. } = request.state else {
                return None;
            };
            from.map(|from| self.role(from.stage))
        });
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        let State::Queued { from, .. } = request.state else {
            return;
        };
        let Some(from) = from else {
            let again = request.attempt < self.settings.retries;
            let work = if again {
                request.work.clone()
            } else {
                request.work.take()
            };
            let lease = None;
            request.state = State::Working { at: to, lease };
            if let Some(timeout) = self.settings.attempt_timeout
                && again
            {
                self.timers.remove(&(request.wake, request.serial));
                request.wake = request.deadline.min(now.saturating_add(timeout));
                self.timers
                    .insert((request.wake, request.serial), id.clone());
            }
            self.placed.insert(request.serial, id.clone());
            self.outbox.put_work(to, id, work.unwrap_or_default());
            return;
        };
        let Some(stage) = self.stages.get_mut(to.stage) else {
            return;
        };
        let data_size = request.output.data_size;
        if let Some((lease, slot, session_id)) = stage.lend(to.worker, data_size) {
            let push = Push::new(id.text(), session_id.text(), slot.addr, data_size);
            self.outbox.put(from, &Control::Push(push));
            request.state = State::Pushing {
                from,
                to,
                slot_offset: slot.offset,
                lease: Some(lease),
            };
            stage.fast = stage.fast.saturating_add(1);
        } else {
            let source = source.map_or("", Role::name);
            let alloc = Alloc::new(id.text(), data_size, source);
            self.outbox.put(to, &Control::Alloc(alloc));
            request.state = State::Allocating { from, to };
            stage.slow = stage.slow.saturating_add(1);
        }
    }

    /// The output of `stage` is staged.
    fn staged(
        &mut self,
        stage: usize,
        request_id: Str<'_>,
        message: &Staged<'_>,
    ) -> Result<(), ProtocolError> {
        let role = self.role(stage);
        let key: &dyn Key = &request_id;
        let Some((id, request)) = self.requests.get_key_value(key) else {
            self.drop_stray(stage, message.location.session_id, request_id);
            return Err(ProtocolError::UnknownRequest);
        };
        let (at, lease) = match request.state {
            State::Over { .. } => return self.over(request_id, stage, Use::Reading),
            State::Working { at, lease } if at.stage == stage => (at, lease),
            _ => return Err(request.misplaced(stage, role)),
        };
        let scalars = message.scalar_fields.unwrap_or_default();
        let next = match self.role(stage) {
            Role::PromptEncoder if !scalars.get("image_path").is_some_and(is_true) => {
                // Past the image encoder.
                stage.saturating_add(2)
            }
            _ => stage.saturating_add(1),
        };
        let id = id.clone();
        let Some(following) = self.stages.get_mut(next) else {
            return Err(ProtocolError::NothingFollows { role });
        };
        let Some(request) = self.requests.get_mut(&id) else {
            return Err(ProtocolError::UnknownRequest);
        };
        let data_size = message.data_size;
        request.output.keep(data_size, message.manifest, scalars);
        request.state = State::Queued {
            stage: next,
            from: Some(at),
        };
        following.queue.push_back((id, request.serial));
        following.waiting = following.waiting.saturating_add(1);
        // The worker has its output, and so has read its slot.
        self.release(lease);
        Ok(())
    }

    /// A receiver made a slot.
    fn allocated(&mut self, stage: usize, message: &Allocated<'_>) -> Result<(), ProtocolError> {
        let role = self.role(stage);
        let location = message.location;
        let key: &dyn Key = &message.request_id;
        let Some(request) = self.requests.get_mut(key) else {
            self.drop_stray(stage, location.session_id, message.request_id);
            return Err(ProtocolError::UnknownRequest);
        };
        let (from, to) = match request.state {
            State::Allocating { from, to } if to.stage == stage => (from, to),
            State::Over { .. } => return self.over(message.request_id, stage, Use::Allocating),
            _ => return Err(request.misplaced(stage, role)),
        };
        let registration = self.stages.get(stage);
        let registration = registration.and_then(|stage| stage.registration(to.worker));
        // Otherwise one worker could have another's pool written to.
        if registration.is_some_and(|known| {
            known.session_id != location.session_id || known.pool_ptr != location.pool_ptr
        }) {
            return Err(ProtocolError::OtherPool { role });
        }
        let (offset, len) = (location.slot_offset, message.slot_size);
        let pool_len = registration.map(|known| known.pool_size);
        let addr = slots::check_place(location.pool_ptr, offset, len, pool_len)?;
        let needed = request.output.data_size;
        if len < needed {
            return Err(ProtocolError::AllocationTooSmall { len, needed });
        }
        let push = Push::new(message.request_id, location.session_id, addr, needed);
        self.outbox.put(from, &Control::Push(push));
        request.state = State::Pushing {
            from,
            to,
            slot_offset: offset,
            lease: None,
        };
        Ok(())
    }

    /// A sender's output lies in the receiver's slot.
    fn pushed(&mut self, stage: usize, request_id: Str<'_>) -> Result<(), ProtocolError> {
        let role = self.role(stage);
        let key: &dyn Key = &request_id;
        let request = self.requests.get_mut(key);
        let request = request.ok_or(ProtocolError::UnknownRequest)?;
        let (from, to, slot_offset, lease) = match request.state {
            State::Over { .. } => return self.over(request_id, stage, Use::Writing),
            State::Pushing {
                from,
                to,
                slot_offset,
                lease,
            } if from.stage == stage => (from, to, slot_offset, lease),
            _ => return Err(request.misplaced(stage, role)),
        };
        let output = &request.output;
        let mut ready = Ready::new(request_id, output.manifest(), slot_offset, output.scalars());
        if let Some(lease) = lease {
            ready = ready.with_preallocated_slot(lease.slot_id);
        }
        self.outbox.put(to, &Control::Ready(ready));
        request.output.clear();
        request.state = State::Working { at: to, lease };
        self.leave(from);
        Ok(())
    }

    /// A worker is through, and nothing follows.
    pub(super) fn finished(
        &mut self,
        stage: usize,
        request_id: Str<'_>,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let role = self.role(stage);
        let key: &dyn Key = &request_id;
        let entry = self.requests.get_key_value(key);
        let (id, request) = entry.ok_or(ProtocolError::UnknownRequest)?;
        match request.state {
            State::Over { .. } => return self.over(request_id, stage, Use::Reading),
            State::Working { at, .. } if at.stage == stage => {}
            _ => return Err(request.misplaced(stage, role)),
        }
        let id = id.clone();
        if role.is_last() {
            self.finish(&id);
        } else {
            let kind = FailureKind::NothingStaged { role };
            self.fail(&id, Failure::new(kind), Some(stage), now);
        }
        Ok(())
    }

    /// A worker failed, and has freed what it had.
    pub(super) fn role_failed(
        &mut self,
        stage: usize,
        request_id: Str<'_>,
        text: Str<'_>,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let role = self.role(stage);
        let key: &dyn Key = &request_id;
        let entry = self.requests.get_key_value(key);
        let (id, request) = entry.ok_or(ProtocolError::UnknownRequest)?;
        if !request.state.involves(stage) {
            return Err(request.misplaced(stage, role));
        }
        if let State::Over { usage, .. } = request.state {
            return self.over(request_id, stage, usage);
        }
        let id = id.clone();
        let kind = match request.state {
            State::Pushing { from, .. } if from.stage == stage => FailureKind::PushFailed { role },
            _ => FailureKind::RoleFailed { role },
        };
        let failure = Failure::with_text(kind, text.to_cow_lossy().into_owned());
        self.fail(&id, failure, Some(stage), now);
        Ok(())
    }

    fn register(
        &mut self,
        index: usize,
        message: &Register<'_>,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let expected = self.role(index);
        let found = Role::from_text(message.role).ok_or(ProtocolError::UnknownRole)?;
        if found != expected {
            return Err(ProtocolError::RoleMismatch { expected, found });
        }
        let stage = self.stages.get_mut(index);
        let stage = stage.ok_or(ProtocolError::RoleNotHere { role: found })?;
        let worker = stage
            .worker_at(message.work_endpoint)
            .ok_or(ProtocolError::UnknownEndpoint { role: found })?;
        let len = message.session_id.raw().len();
        let limit = RequestId::MAX_LEN;
        if len > limit {
            return Err(ProtocolError::TextTooLong { len, limit });
        }
        let count = message.preallocated_slots.len();
        let limit = self.settings.max_slots;
        if count > limit {
            return Err(ProtocolError::TooManySlots { count, limit });
        }
        let given: alloc::vec::Vec<_> = message.preallocated_slots.iter().collect();
        let (pool_ptr, pool_size) = (message.pool_ptr, message.pool_size);
        slots::check(&given, pool_ptr, pool_size)?;
        let same = stage.registration(worker).is_some_and(|known| {
            known.session_id == message.session_id
                && (known.pool_ptr, known.pool_size) == (pool_ptr, pool_size)
                && known.slots.are(&given)
        });
        if same {
            return Ok(());
        }
        let again = stage.register(
            worker,
            Registration {
                session_id: message.session_id.into(),
                pool_ptr,
                pool_size,
                slots: Slots::new(given),
            },
        );
        self.events.push_back(Event::Registered {
            role: found,
            worker,
            slots: count,
            again,
        });
        if again {
            let role = found;
            let kind = FailureKind::WorkerRestarted { role, worker };
            let stage = index;
            self.ended(WorkerId { stage, worker }, kind, now);
        }
        Ok(())
    }
}

impl Request {
    /// Tells whether it is this attempt, and in the queue of this stage.
    pub(super) fn waits_for(&self, index: usize, serial: u64) -> bool {
        let waits = matches!(self.state, State::Queued { stage, .. } if stage == index);
        waits && self.serial == serial
    }

    /// What is said of a message that has no place now.
    pub(super) fn misplaced(&self, stage: usize, role: Role) -> ProtocolError {
        let step = self.state.step();
        if self.state.involves(stage) {
            ProtocolError::Unexpected { role, step }
        } else {
            ProtocolError::NotInvolved { role, step }
        }
    }
}
