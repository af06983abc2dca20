//! How a request ends, what then comes free, and what must not yet.

use core::time::Duration;

use super::Coordinator;
use super::error::ProtocolError;
use super::event::{Event, Failure, FailureKind};
use super::request::{Lease, Output, Request, State, Use, WorkerId};
use crate::json::Str;
use crate::transfer::RequestId;
use crate::transfer::message::Abort;
use crate::transfer::request::Key;

/// How many outputs' storage waits to be used again: about as many as are under way at a time.
const SPARE: usize = 64;

impl Coordinator {
    /// The last worker is through.
    pub(super) fn finish(&mut self, id: &RequestId) {
        let Some(request) = self.requests.remove(id) else {
            return;
        };
        self.timers.remove(&(request.wake, request.serial));
        self.placed.remove(&request.serial);
        if let State::Working { at, lease } = request.state {
            self.leave(at);
            self.release(lease);
        }
        self.keep_storage(request.output);
        self.clients.remove(&request.client);
        self.totals.count_finished();
        let request = request.client;
        self.events.push_back(Event::Finished { request });
    }

    fn keep_storage(&mut self, mut output: Output) {
        if self.spare.len() < SPARE {
            output.clear();
            self.spare.push(output);
        }
    }

    /// Ends an attempt; `by` is the stage whose worker failed, and so has nothing of it any more.
    pub(super) fn fail(
        &mut self,
        id: &RequestId,
        failure: Failure,
        by: Option<usize>,
        now: Duration,
    ) {
        let Some(mut request) = self.requests.remove(id) else {
            return;
        };
        self.timers.remove(&(request.wake, request.serial));
        self.placed.remove(&request.serial);
        let kind = failure.kind();
        if let State::Queued { stage, .. } = request.state {
            self.unqueue(stage);
        }
        for place in request.state.places().into_iter().flatten() {
            self.leave(place);
        }
        let reason = kind.reason();
        let mut abort = |place: WorkerId| {
            if by != Some(place.stage) {
                self.abort(place, id.text(), reason);
            }
        };
        match request.state {
            // Its answer is still to come, and must not be taken for one to another request.
            State::Allocating { from, to } => {
                abort(from);
                abort(to);
                let over = State::Over {
                    user: to,
                    usage: Use::Allocating,
                    owner: to,
                    lease: None,
                };
                self.settle(id, &request, over, by, kind, now);
            }
            State::Over { .. } | State::Queued { from: None, .. } => {}
            State::Queued {
                from: Some(from), ..
            } => abort(from),
            // The sender may write to it yet, the receiver's slot must not be freed before.
            State::Pushing {
                from, to, lease, ..
            } => {
                abort(from);
                let over = State::Over {
                    user: from,
                    usage: Use::Writing,
                    owner: to,
                    lease,
                };
                self.settle(id, &request, over, by, kind, now);
            }
            // It may read its slot yet; and, as above, its answer is still to come.
            State::Working { at, lease } => {
                abort(at);
                let over = State::Over {
                    user: at,
                    usage: Use::Reading,
                    owner: at,
                    lease,
                };
                self.settle(id, &request, over, by, kind, now);
            }
        }
        let left = request.attempt < self.settings.retries && now < request.deadline;
        let again = left && kind.is_retried();
        if again {
            request.attempt = request.attempt.saturating_add(1);
            self.totals.count_retry();
            self.retry(request, failure);
        } else {
            self.keep_storage(core::mem::take(&mut request.output));
            self.clients.remove(&request.client);
            self.totals.count_failure(kind);
            let request = request.client;
            self.events.push_back(Event::Failed { request, failure });
        }
    }

    /// Starts a request anew, before all others that wait.
    fn retry(&mut self, mut request: Request, failure: Failure) {
        let id = loop {
            let attempt = request.attempt;
            let text = alloc::format!("{}~{attempt}", request.client.text().raw());
            let id = RequestId::from(text.as_str());
            // A client may have chosen the very same.
            if !self.requests.contains_key(&id) && !self.clients.contains_key(&id) {
                break id;
            }
            request.attempt = attempt.saturating_add(1);
        };
        self.events.push_back(Event::Retrying {
            request: request.client.clone(),
            attempt: request.attempt,
            failure,
        });
        request.output.clear();
        request.state = State::Queued {
            stage: 0,
            from: None,
        };
        if let Some(wire) = self.clients.get_mut(&request.client) {
            *wire = id.clone();
        }
        let serial = self.insert(id.clone(), request);
        if let Some(stage) = self.stages.first_mut() {
            stage.queue.push_front((id, serial));
            stage.waiting = stage.waiting.saturating_add(1);
        }
    }

    /// Files a new attempt, and returns its serial number.
    pub(super) fn insert(&mut self, id: RequestId, mut request: Request) -> u64 {
        let serial = self.serial();
        request.serial = serial;
        request.wake = request.deadline;
        let timer = (request.wake, request.serial);
        self.timers.insert(timer, id.clone());
        self.requests.insert(id, request);
        serial
    }

    fn serial(&mut self) -> u64 {
        self.serial = self.serial.wrapping_add(1);
        self.serial
    }

    /// Frees the slot of a request that has ended, or keeps it away, and the id with it, until
    /// its user is through with it. `by` is the stage that failed.
    fn settle(
        &mut self,
        id: &RequestId,
        request: &Request,
        over: State,
        by: Option<usize>,
        kind: FailureKind,
        now: Duration,
    ) {
        let State::Over {
            user,
            usage,
            owner,
            lease,
        } = over
        else {
            return;
        };
        let is_gone = kind.is_end_of(self.role(user.stage), user.worker);
        if usage != Use::Writing && is_gone {
            // It knows nothing of it any more.
            return;
        }
        let patience = self.patience(is_gone);
        if by == Some(user.stage) || patience.is_zero() {
            self.free_slot(id, (owner, usage), lease, by);
            return;
        }
        if let Some(lease) = lease {
            let owner = self.stages.get_mut(owner.stage);
            let Some(slots) = owner.and_then(|stage| stage.slots_of(lease)) else {
                // Of a registration that is gone.
                return;
            };
            slots.quarantine(lease.index);
        } else if by == Some(owner.stage) {
            // It has freed it itself.
            return;
        }
        let wake = now.saturating_add(patience);
        let serial = self.serial();
        self.timers.insert((wake, serial), id.clone());
        self.placed.insert(serial, id.clone());
        let over = Request {
            client: request.client.clone(),
            attempt: request.attempt,
            serial,
            deadline: wake,
            wake,
            work: None,
            output: Output::default(),
            state: over,
        };
        self.requests.insert(id.clone(), over);
    }

    /// How long a slot stays out for the sake of a user that does not say that it is through, or is gone.
    pub(super) fn patience(&self, is_gone: bool) -> Duration {
        let quarantine = self.settings.quarantine;
        if is_gone {
            quarantine.min(self.settings.late_writes)
        } else {
            quarantine
        }
    }

    /// Takes a preallocated slot back, or has an allocated one freed by its owner once it was written to.
    fn free_slot(
        &mut self,
        id: &RequestId,
        (owner, usage): (WorkerId, Use),
        lease: Option<Lease>,
        by: Option<usize>,
    ) {
        if lease.is_some() {
            self.release(lease);
        } else if usage == Use::Writing && by != Some(owner.stage) {
            self.abort(owner, id.text(), "the request is over");
        }
    }

    /// A worker is through with its `usage` of the slot of a request that is over.
    pub(super) fn over(
        &mut self,
        request_id: Str<'_>,
        stage: usize,
        usage: Use,
    ) -> Result<(), ProtocolError> {
        let key: &dyn Key = &request_id;
        let entry = self.requests.get_key_value(key);
        let (id, request) = entry.ok_or(ProtocolError::UnknownRequest)?;
        match request.state {
            State::Over {
                user, usage: of, ..
            } if user.stage == stage && of == usage => {
                let id = id.clone();
                self.free(&id);
                Ok(())
            }
            _ => Err(request.misplaced(stage, self.role(stage))),
        }
    }

    /// Ends the quarantine of a slot, and forgets the request that it was for.
    fn free(&mut self, id: &RequestId) {
        let Some(request) = self.requests.remove(id) else {
            return;
        };
        self.timers.remove(&(request.wake, request.serial));
        self.placed.remove(&request.serial);
        if let State::Over {
            usage,
            owner,
            lease,
            ..
        } = request.state
        {
            self.free_slot(id, (owner, usage), lease, None);
        }
    }

    /// Ends an attempt, or the quarantine of one that is over.
    pub(super) fn expire(&mut self, id: &RequestId, kind: FailureKind, now: Duration) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
        if let State::Over { .. } = request.state {
            self.free(id);
        } else {
            self.fail(id, Failure::new(kind), None, now);
        }
    }

    fn unqueue(&mut self, index: usize) {
        let Some(stage) = self.stages.get_mut(index) else {
            return;
        };
        stage.waiting = stage.waiting.saturating_sub(1);
        // Each id in the queue is looked at a bounded number of times on the whole.
        if stage.queue.len() > stage.waiting.saturating_mul(2).saturating_add(16) {
            let requests = &self.requests;
            stage.queue.retain(|(id, serial)| {
                let request = requests.get(id);
                request.is_some_and(|request| request.waits_for(index, *serial))
            });
        }
    }

    /// A worker is through with a request: its place is free.
    pub(super) fn leave(&mut self, place: WorkerId) {
        if let Some(stage) = self.stages.get_mut(place.stage) {
            stage.places.give_back(place.worker);
        }
    }

    /// Takes a slot back, whole.
    pub(super) fn release(&mut self, lease: Option<Lease>) {
        let Some(lease) = lease else {
            return;
        };
        let stage = self.stages.get_mut(lease.owner.stage);
        if let Some(slots) = stage.and_then(|stage| stage.slots_of(lease)) {
            slots.give_back(lease.index);
        }
    }

    /// Tells a worker to drop what it has of a request that nobody knows any more.
    pub(super) fn drop_stray(&mut self, stage: usize, session_id: Str<'_>, request_id: Str<'_>) {
        let workers = self.stages.get(stage);
        let worker = workers.and_then(|stage| stage.worker_of_session(session_id));
        if let Some(worker) = worker {
            let place = WorkerId { stage, worker };
            self.abort(place, request_id, "unknown request");
        }
    }

    fn abort(&mut self, worker: WorkerId, request_id: Str<'_>, reason: &'static str) {
        let stage = self.stages.get(worker.stage);
        if stage.is_some_and(|stage| stage.places.is_away(worker.worker)) {
            // It has nothing of anything.
            return;
        }
        let abort = Abort::new(request_id, "", reason);
        self.outbox.put_abort(worker, &abort);
    }
}
