//! The workers of one role, and the requests that wait for one of them.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::policy::{Places, Policy};
use super::request::{Lease, WorkerId};
use super::settings::Workers;
use super::slots::Slots;
use crate::json::Str;
use crate::transfer::message::PreallocatedSlot;
use crate::transfer::{RequestId, Role};

/// One step of the pipeline.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) role: Role,
    index: usize,
    endpoints: Vec<String>,
    pub(super) places: Places,
    /// Attempts by id and serial number, also some that wait no longer: they are skipped.
    pub(super) queue: VecDeque<(RequestId, u64)>,
    /// How many in the queue really wait.
    pub(super) waiting: usize,
    peers: Vec<Peer>,
    pub(super) fast: u64,
    pub(super) slow: u64,
}

#[derive(Debug, Default)]
struct Peer {
    /// Registrations so far.
    count: u64,
    registration: Option<Registration>,
}

/// What a worker registered with.
#[derive(Debug)]
pub(super) struct Registration {
    /// Kept as an id is: a text as JSON has it.
    pub(super) session_id: RequestId,
    pub(super) pool_ptr: u64,
    pub(super) pool_size: u64,
    pub(super) slots: Slots,
}

impl Stage {
    pub(super) fn new(role: Role, index: usize, workers: Workers, policy: Policy) -> Self {
        let count = workers.endpoints.len();
        Self {
            role,
            index,
            endpoints: workers.endpoints,
            places: Places::new(policy, count, workers.capacity),
            queue: VecDeque::new(),
            waiting: 0,
            peers: core::iter::repeat_with(Peer::default).take(count).collect(),
            fast: 0,
            slow: 0,
        }
    }

    pub(super) fn worker_at(&self, endpoint: Str<'_>) -> Option<usize> {
        self.endpoints
            .iter()
            .position(|known| endpoint == known.as_str())
    }

    /// The worker whose session it is.
    pub(super) fn worker_of_session(&self, session_id: Str<'_>) -> Option<usize> {
        self.registrations()
            .position(|found| found.is_some_and(|found| found.session_id == session_id))
    }

    fn registrations(&self) -> impl Iterator<Item = Option<&Registration>> {
        self.peers.iter().map(|peer| peer.registration.as_ref())
    }

    pub(super) fn registration(&self, worker: usize) -> Option<&Registration> {
        self.peers.get(worker)?.registration.as_ref()
    }

    /// Takes over a registration in place of the one before; tells whether there was ever one, or the
    /// worker was lost.
    pub(super) fn register(&mut self, worker: usize, registration: Registration) -> bool {
        let Some(peer) = self.peers.get_mut(worker) else {
            return false;
        };
        peer.count = peer.count.wrapping_add(1);
        let was_away = self.places.set_away(worker, false);
        let before = peer.registration.replace(registration);
        was_away || before.is_some()
    }

    /// Forgets a registration, and keeps the worker out until it registers again; tells whether that is news.
    pub(super) fn lose(&mut self, worker: usize) -> bool {
        if let Some(peer) = self.peers.get_mut(worker) {
            peer.registration = None;
        }
        self.places.set_away(worker, true)
    }

    /// Lends the shortest free slot of a worker's that is long enough.
    pub(super) fn lend(
        &mut self,
        worker: usize,
        len: u64,
    ) -> Option<(Lease, PreallocatedSlot, &RequestId)> {
        let peer = self.peers.get_mut(worker)?;
        let registration = peer.registration.as_mut()?;
        let (index, slot) = registration.slots.lend(len)?;
        let lease = Lease {
            owner: WorkerId {
                stage: self.index,
                worker,
            },
            index,
            slot_id: slot.slot_id,
            registration: peer.count,
        };
        Some((lease, slot, &registration.session_id))
    }

    /// The slots that a lease is one of, unless the worker has registered anew since.
    pub(super) fn slots_of(&mut self, lease: Lease) -> Option<&mut Slots> {
        let peer = self.peers.get_mut(lease.owner.worker)?;
        if peer.count != lease.registration {
            return None;
        }
        Some(&mut peer.registration.as_mut()?.slots)
    }

    pub(super) fn workers(&self) -> usize {
        self.peers.len()
    }

    pub(super) fn registered(&self) -> usize {
        self.registrations().flatten().count()
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slots> {
        let registrations = self.registrations().flatten();
        registrations.map(|registration| &registration.slots)
    }
}
