//! What a service shows of its head node.

use super::Coordinator;
use super::event::FailureKind;
use super::slots::Slots;
use crate::transfer::Role;

/// How busy the workers of one role are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RoleStatistics {
    /// Workers of the role.
    pub workers: usize,
    /// Those of them that have registered.
    pub registered: usize,
    /// Those of them that are gone, and get nothing until they register again.
    pub lost: usize,
    /// Requests that wait for a worker.
    pub queued: usize,
    /// Places that are taken: requests that a worker has.
    pub running: usize,
    /// Places that are free, of workers that are not lost.
    pub free_places: usize,
    /// Preallocated slots that are free.
    pub free_slots: usize,
    /// Preallocated slots of requests under way.
    pub lent_slots: usize,
    /// Preallocated slots that may still be written to or read, of requests that are over.
    pub quarantined_slots: usize,
    /// Outputs that went, or are to go, into a preallocated slot.
    pub fast_path: u64,
    /// Outputs for which a slot was, or is to be, allocated.
    pub slow_path: u64,
}

/// How many requests there are and were.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Requests under way and queued.
    pub active: usize,
    /// Requests that finished.
    pub finished: u64,
    /// Requests that the service cancelled.
    pub cancelled: u64,
    /// Requests that failed as a worker had nothing for the next.
    pub nothing_staged: u64,
    /// Requests that failed as a worker could not push.
    pub push_failed: u64,
    /// Requests that failed with a worker.
    pub role_failed: u64,
    /// Requests that took too long.
    pub timed_out: u64,
    /// Requests that failed with the loss of a worker.
    pub worker_lost: u64,
    /// Requests that failed with the restart of a worker.
    pub worker_restarted: u64,
    /// Attempts that were followed by another.
    pub retried: u64,
}

impl Statistics {
    pub(super) const fn count_finished(&mut self) {
        self.finished = self.finished.saturating_add(1);
    }

    pub(super) const fn count_retry(&mut self) {
        self.retried = self.retried.saturating_add(1);
    }

    pub(super) const fn count_failure(&mut self, kind: FailureKind) {
        let count = match kind {
            FailureKind::Cancelled => &mut self.cancelled,
            FailureKind::NothingStaged { .. } => &mut self.nothing_staged,
            FailureKind::PushFailed { .. } => &mut self.push_failed,
            FailureKind::RoleFailed { .. } => &mut self.role_failed,
            FailureKind::TimedOut { .. } => &mut self.timed_out,
            FailureKind::WorkerLost { .. } => &mut self.worker_lost,
            FailureKind::WorkerRestarted { .. } => &mut self.worker_restarted,
        };
        *count = count.saturating_add(1);
    }
}

impl Coordinator {
    /// Returns how busy the workers of a role are; `None` if the pipeline has no such role.
    ///
    /// Costs a few additions for each of its workers.
    #[must_use]
    pub fn role_statistics(&self, role: Role) -> Option<RoleStatistics> {
        let stage = self.stages.iter().find(|stage| stage.role == role)?;
        let count = |count: fn(&Slots) -> usize| stage.slots().map(count).sum();
        let free_places = stage.places.total_free();
        Some(RoleStatistics {
            workers: stage.workers(),
            registered: stage.registered(),
            lost: stage.places.away(),
            queued: stage.waiting,
            running: stage.places.total().saturating_sub(free_places),
            free_places,
            free_slots: count(Slots::free),
            lent_slots: count(Slots::lent),
            quarantined_slots: count(Slots::quarantined),
            fast_path: stage.fast,
            slow_path: stage.slow,
        })
    }

    /// Returns how many requests there are and were.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics {
            active: self.clients.len(),
            ..self.totals
        }
    }
}
