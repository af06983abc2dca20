//! Slots that the head node may give away unasked.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::error::ProtocolError;
use super::settings::{Settings, Site};
use crate::convert::to_u64;
use crate::transfer::RequestId;
use crate::transfer::message::PreallocatedSlot;
use crate::transfer::pool::{Landing, Pool, PoolError, Slot};

/// The preallocated slots of a receiver, and who has them.
///
/// Their numbers are `first`, `first + 1` and so on. `first` comes of what is another in each
/// life of the worker, so that a message about a slot of the life before names none of them.
#[derive(Debug)]
pub(super) struct Preallocated {
    first: u64,
    slots: Vec<Entry>,
    /// The longest slot that the pool can have beside these.
    room: usize,
    /// How many are [`Draining`](State::Draining), and how many of these with a request.
    draining: usize,
    awaited: usize,
}

#[derive(Debug)]
struct Entry {
    offset: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// A writer was still there when it was said to be filled. Once it is done the slot is
    /// opened again. So long the head node is not told that the request failed, but not past the deadline.
    Draining {
        landing: Landing,
        request: Option<RequestId>,
        deadline: Option<Duration>,
    },
    /// It never came back.
    Lost,
    Open(Landing),
    /// A request has it.
    Out,
}

impl Preallocated {
    /// Takes as many slots of the pool as `settings` say.
    pub(super) fn new(site: &Site, settings: &Settings) -> Result<Self, PoolError> {
        let (count, len) = settings.preallocated();
        let mut slots = Vec::new();
        for _ in 0..count {
            let landing = site.pool().allocate(len)?.open();
            let offset = landing.offset();
            let state = State::Open(landing);
            slots.push(Entry { offset, state });
        }
        // 48 bits, so that every reader of JSON takes the number for an integer.
        let first = u64::from(hash(site)) << 16;
        let room = longest(site.pool(), &slots);
        Ok(Self {
            first,
            slots,
            room,
            draining: 0,
            awaited: 0,
        })
    }

    pub(super) const fn room(&self) -> usize {
        self.room
    }

    /// What the registration says of them.
    pub(super) fn listed(&self, site: &Site) -> Box<[PreallocatedSlot]> {
        let slots = (self.first..).zip(&self.slots);
        let listed = slots.filter_map(|(id, place)| {
            let State::Open(landing) = &place.state else {
                return None;
            };
            let offset = to_u64(landing.offset());
            let address = site.pool_ptr().saturating_add(offset);
            let len = to_u64(landing.len());
            Some(PreallocatedSlot::new(offset, len, id, address))
        });
        listed.collect()
    }

    /// Finds the open slot of this number at this place; returns its index and its length.
    pub(super) fn find(&self, slot_id: u64, offset: u64) -> Result<(usize, usize), ProtocolError> {
        let unknown = ProtocolError::UnknownSlot { slot_id };
        let index = slot_id.checked_sub(self.first).ok_or(unknown)?;
        let index = usize::try_from(index).map_err(|_| unknown)?;
        let place = self.slots.get(index).ok_or(unknown)?;
        if to_u64(place.offset) != offset {
            return Err(ProtocolError::WrongOffset {
                expected: place.offset,
                found: offset,
            });
        }
        match &place.state {
            State::Open(landing) => Ok((index, landing.len())),
            State::Lost => Err(unknown),
            State::Draining { .. } | State::Out => Err(ProtocolError::SlotInUse { slot_id }),
        }
    }

    /// Closes an open slot for a request. If somebody writes to it, it drains, and
    /// [`poll_drained`](Self::poll_drained) gives the request back.
    pub(super) fn close(
        &mut self,
        index: usize,
        request: impl FnOnce() -> RequestId,
        deadline: Option<Duration>,
    ) -> Option<Slot> {
        let place = self.slots.get_mut(index)?;
        let State::Open(landing) = core::mem::replace(&mut place.state, State::Out) else {
            return None;
        };
        match landing.close() {
            Ok(slot) => Some(slot),
            Err(busy) => {
                place.state = State::Draining {
                    landing: busy.into_landing(),
                    request: Some(request()),
                    deadline,
                };
                self.count();
                None
            }
        }
    }

    /// Opens a slot again that came back, or gives it up if it did not.
    pub(super) fn reopen(&mut self, index: usize, slot: Option<Slot>) {
        if let Some(place) = self.slots.get_mut(index) {
            place.state = slot.map_or(State::Lost, |slot| State::Open(slot.open()));
        }
    }

    /// A request that failed as its slot drained, which is done now, or has taken too long.
    pub(super) fn poll_drained(&mut self, now: Duration) -> Option<RequestId> {
        if !self.is_draining() {
            return None;
        }
        let request = self.slots.iter_mut().find_map(|place| place.drain(now));
        self.count();
        request
    }

    fn count(&mut self) {
        (self.draining, self.awaited) = (0, 0);
        for place in &self.slots {
            if let State::Draining { request, .. } = &place.state {
                self.draining = self.draining.saturating_add(1);
                let awaited = usize::from(request.is_some());
                self.awaited = self.awaited.saturating_add(awaited);
            }
        }
    }

    /// Whether a slot has to be asked after.
    pub(super) const fn is_draining(&self) -> bool {
        self.draining > 0
    }

    /// Whether that is soon, as a request is to fail by it.
    pub(super) const fn is_awaited(&self) -> bool {
        self.awaited > 0
    }
}

impl Entry {
    fn drain(&mut self, now: Duration) -> Option<RequestId> {
        if !matches!(self.state, State::Draining { .. }) {
            return None;
        }
        let state = core::mem::replace(&mut self.state, State::Lost);
        let State::Draining {
            landing,
            request,
            deadline,
        } = state
        else {
            return None;
        };
        let busy = match landing.close() {
            Ok(slot) => {
                self.state = State::Open(slot.open());
                return request;
            }
            Err(busy) => busy,
        };
        let is_late = deadline.is_some_and(|deadline| deadline <= now);
        let (failed, request) = if is_late {
            (request, None)
        } else {
            (None, request)
        };
        // Given up, it would be lost: the head node counts on it.
        self.state = State::Draining {
            landing: busy.into_landing(),
            request,
            deadline,
        };
        failed
    }
}

/// The length of the longest block of a pool in which none of `slots` lies.
fn longest(pool: &Pool, slots: &[Entry]) -> usize {
    let taken = |place: &Entry| match &place.state {
        State::Open(landing) => (landing.offset(), landing.len()),
        _ => (place.offset, 0),
    };
    let mut len = pool.len();
    while len >= pool.min_block() {
        let order = len.trailing_zeros();
        let blocks = |bytes: usize| bytes.checked_shr(order).unwrap_or(0);
        // One block each for those that are shorter, and several for those that are longer.
        let mut hit: usize = 0;
        let mut short = Vec::new();
        for (offset, taken) in slots.iter().map(taken) {
            match blocks(taken) {
                0 => short.push(blocks(offset)),
                several => hit = hit.saturating_add(several),
            }
        }
        short.sort_unstable();
        short.dedup();
        if hit.saturating_add(short.len()) < blocks(pool.len()) {
            return len;
        }
        len >>= 1;
    }
    0
}

/// FNV-1a, which is the same in each build.
fn hash(site: &Site) -> u32 {
    let pool_ptr = site.pool_ptr().to_le_bytes();
    let generation = site.generation().to_le_bytes();
    let bytes = site.session_id().bytes().chain(pool_ptr);
    bytes
        .chain(generation)
        .fold(0x811c_9dc5, |hash: u32, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        })
}
