//! Pushes: what the head node asks for, what the driver is to do, and what came of it.

use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use super::{Destination, PushOrder, Sender, State};
use crate::json::Str;
use crate::transfer::RequestId;
use crate::transfer::message::Push;
use crate::transfer::pool::Slot;
use crate::transfer::worker::error::{ProtocolError, Step};
use crate::transfer::worker::half::End;
use crate::transfer::worker::job::{Ending, Job};
use crate::transfer::worker::requests::check_len;

impl Sender {
    pub(super) fn handle_push(&mut self, push: &Push<'_>) -> Result<(), ProtocolError> {
        let id = push.request_id;
        let used = match self.half.requests.get(&id) {
            Some(State::Staged { used, .. }) => *used,
            Some(State::Queued { to, .. } | State::Pushing { to, .. }) => {
                let step = Step::Pushing;
                if to.is(push) {
                    return Err(ProtocolError::Duplicate { step });
                }
                return Err(ProtocolError::Unexpected { step });
            }
            Some(State::Working) => {
                let step = Step::Working;
                return Err(ProtocolError::Unexpected { step });
            }
            None => return self.refuse_push(push),
        };
        let session_id = match session_of(push) {
            Ok(session_id) => session_id,
            Err(error) => return self.end_refused(id, error),
        };
        let transfer_size = push.transfer_size;
        if usize::try_from(transfer_size).is_ok_and(|size| size < used) {
            let needed = used;
            let error = ProtocolError::Truncated {
                needed,
                transfer_size,
            };
            return self.end_refused(id, error);
        }
        let Some((job, State::Staged { slot, used })) = self.half.requests.remove(&id) else {
            return Ok(());
        };
        let address = push.dest_addr;
        let to = Destination {
            session_id,
            address,
        };
        match slot {
            Some(slot) if used > 0 => {
                let state = State::Queued { slot, used, to };
                self.half.requests.resume(&job, state, None);
                self.queue(job);
            }
            // There is nothing to move.
            _ => self.end_pushed(job, to, 0),
        }
        Ok(())
    }

    /// A push of nothing that is under way.
    fn refuse_push(&mut self, push: &Push<'_>) -> Result<(), ProtocolError> {
        let id = push.request_id;
        let step = match self.half.requests.ended(&id) {
            Some(End::Pushed(to)) if to.is(push) => {
                let step = Step::Ended;
                return Err(ProtocolError::Duplicate { step });
            }
            Some(End::Answered) => {
                let step = Step::Ended;
                return Err(ProtocolError::Unexpected { step });
            }
            Some(End::Pushed(_) | End::Unasked) => Step::Ended,
            None => Step::Unknown,
        };
        check_len(id, RequestId::MAX_LEN)?;
        let form = self.half.form();
        Err(self
            .half
            .refuse(id, ProtocolError::Unexpected { step }, form))
    }

    /// Ends a staged request whose push would leave garbage.
    fn end_refused(&mut self, id: Str<'_>, error: ProtocolError) -> Result<(), ProtocolError> {
        if let Some(job) = self.half.requests.job(&id) {
            self.fail_job(&job, error.to_string());
            self.half.over(job, Ending::PushFailed);
        }
        Err(error)
    }

    fn end_pushed(&mut self, job: Job, to: Destination, bytes: usize) {
        self.half.requests.end(&job, End::Pushed(to));
        self.half.outbox.pushed(job.request().clone());
        self.half.over(job, Ending::Pushed { bytes });
    }

    pub(super) fn queue(&mut self, job: Job) {
        if self.pushes.len() > self.half.requests.limit().saturating_mul(2) {
            let requests = &self.half.requests;
            self.pushes
                .retain(|job| matches!(requests.of(job), Some(State::Queued { .. })));
        }
        self.pushes.push_back(job);
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
        self.half.advance(now);
        // Before anybody is told that there is room.
        drop(slot);
        let Some(State::Pushing { used, to }) = self.half.requests.of(job) else {
            return;
        };
        let (used, to) = (*used, to.clone());
        let text = match result {
            Ok(bytes) if usize::try_from(bytes).is_ok_and(|bytes| bytes < used) => {
                format!("push failed: {bytes} of {used} bytes moved")
            }
            Ok(_) => {
                self.half.requests.remove(job.request());
                self.end_pushed(job.clone(), to, used);
                return;
            }
            Err(error) => format!("push failed: {error}"),
        };
        self.fail_job(job, text);
        self.half.over(job.clone(), Ending::PushFailed);
    }

    /// Returns the next push to begin.
    pub fn poll_push(&mut self) -> Option<PushOrder> {
        loop {
            let job = self.pushes.pop_front()?;
            if !matches!(self.half.requests.of(&job), Some(State::Queued { .. })) {
                continue;
            }
            let removed = self.half.requests.remove(job.request());
            let Some((job, State::Queued { slot, used, to })) = removed else {
                continue;
            };
            let order = PushOrder {
                job: job.clone(),
                session_id: Arc::clone(&to.session_id),
                address: to.address,
                slot,
                len: used,
            };
            let state = State::Pushing { used, to };
            self.half.requests.resume(&job, state, None);
            return Some(order);
        }
    }
}

/// The session of a push, kept until it is done.
fn session_of(push: &Push<'_>) -> Result<Arc<str>, ProtocolError> {
    check_len(push.dest_session_id, RequestId::MAX_LEN)?;
    let text = push.dest_session_id.to_cow();
    text.map(Arc::from).map_err(|_| ProtocolError::NoText)
}
