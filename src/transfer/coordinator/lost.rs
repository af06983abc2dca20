//! The end of a worker: it registers anew, or whoever knows says that it is gone.

use alloc::vec::Vec;
use core::time::Duration;

use super::Coordinator;
use super::event::FailureKind;
use super::request::{State, Use, WorkerId};
use crate::transfer::{RequestId, Role};

impl Coordinator {
    /// Takes note that a worker is gone: its process has ended, or its host is away.
    ///
    /// For a service that can tell, by a child's exit status or by an event of its
    /// sockets. Until it [registers](super::Event::Registered) again the worker gets nothing: no
    /// work, no slot of it is lent, and its places are not counted. Requests that
    /// hang on it fail with [`FailureKind::WorkerLost`] or are retried, its slots are
    /// forgotten, those that it wrote to come back (after
    /// [`Settings::with_late_writes`](super::Settings::with_late_writes)), and what is to
    /// be sent to it and was not asked for yet is dropped.
    ///
    /// Call it before another worker can have registered in its place: that one would
    /// be taken for gone, and wait in vain. What the one that is gone said before is still
    /// to be handled as any other message; only a late registration of its would bring it
    /// back, until the next one comes.
    ///
    /// Tells whether that is news: it is not if there is no such worker, or it was lost already.
    pub fn handle_lost(&mut self, role: Role, worker: usize, now: Duration) -> bool {
        let Ok(stage) = self.stage_of(role) else {
            return false;
        };
        let workers = self.stages.get_mut(stage);
        if !workers.is_some_and(|workers| workers.lose(worker)) {
            return false;
        }
        let place = WorkerId { stage, worker };
        self.outbox.forget(place);
        self.ended(place, FailureKind::WorkerLost { role, worker }, now);
        self.dispatch(now);
        true
    }

    /// Requests that hang on a worker end with it, and so does its use of the slots of others.
    pub(super) fn ended(&mut self, worker: WorkerId, kind: FailureKind, now: Duration) {
        let hangs = |id: &&RequestId| {
            let request = self.requests.get(*id);
            request.is_some_and(|request| match request.state {
                State::Over { user, owner, .. } => user == worker || owner == worker,
                state => state.places().contains(&Some(worker)),
            })
        };
        // The newest first: each that is retried goes before all others.
        let placed = self.placed.values().rev();
        let ended: Vec<_> = placed.filter(hangs).cloned().collect();
        let patience = self.patience(true);
        for id in ended {
            let request = self.requests.get_mut(&id);
            match request.map(|request| (request.state, request)) {
                // What it pushed may still be on its way.
                Some((State::Over { user, usage, .. }, request))
                    if usage == Use::Writing && user == worker && !patience.is_zero() =>
                {
                    let wake = request.wake.min(now.saturating_add(patience));
                    self.timers.remove(&(request.wake, request.serial));
                    self.timers.insert((wake, request.serial), id);
                    request.wake = wake;
                }
                _ => self.expire(&id, kind, now),
            }
        }
    }
}
