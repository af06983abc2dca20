//! The preallocated slots of one registration: which are free, which are out.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::error::ProtocolError;
use crate::transfer::message::PreallocatedSlot;

/// The slots of one worker.
///
/// A slot is whole for as long as the registration lasts: it comes back with
/// the length that it had when it was registered, whatever was moved into it.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// (length, turn, index) of those that are free: the shortest first, of one length the one that rested longest.
    free: BTreeSet<(u64, u64, usize)>,
    turn: u64,
    quarantined: usize,
}

#[derive(Debug)]
struct Slot {
    slot: PreallocatedSlot,
    state: State,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Free,
    Lent,
    /// Its request is over, and somebody may still write to it or read it.
    Quarantined,
}

impl Slots {
    /// Takes over the slots of a registration, in the order given.
    pub(super) fn new(slots: impl IntoIterator<Item = PreallocatedSlot>) -> Self {
        let mut taken = Self::default();
        for (index, slot) in slots.into_iter().enumerate() {
            taken.free.insert((slot.size, taken.turn, index));
            taken.turn = taken.turn.wrapping_add(1);
            let state = State::Free;
            taken.slots.push(Slot { slot, state });
        }
        taken
    }

    /// Tells whether these are the slots.
    pub(super) fn are(&self, slots: &[PreallocatedSlot]) -> bool {
        let own = self.slots.iter().map(|slot| &slot.slot);
        own.eq(slots)
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    pub(super) const fn quarantined(&self) -> usize {
        self.quarantined
    }

    pub(super) fn lent(&self) -> usize {
        let elsewhere = self.free.len().saturating_add(self.quarantined);
        self.slots.len().saturating_sub(elsewhere)
    }

    /// Lends the shortest free slot of at least `len` bytes.
    pub(super) fn lend(&mut self, len: u64) -> Option<(usize, PreallocatedSlot)> {
        let &entry = self.free.range((len, 0, 0)..).next()?;
        let (_, _, index) = entry;
        let slot = self.slots.get_mut(index)?;
        self.free.remove(&entry);
        slot.state = State::Lent;
        Some((index, slot.slot))
    }

    /// Keeps a lent slot away until it is given back.
    pub(super) fn quarantine(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index)
            && slot.state == State::Lent
        {
            slot.state = State::Quarantined;
            self.quarantined = self.quarantined.saturating_add(1);
        }
    }

    /// Takes a slot back that was lent.
    pub(super) fn give_back(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        match slot.state {
            State::Free => return,
            State::Lent => {}
            State::Quarantined => self.quarantined = self.quarantined.saturating_sub(1),
        }
        slot.state = State::Free;
        self.free.insert((slot.slot.size, self.turn, index));
        self.turn = self.turn.wrapping_add(1);
    }
}

/// Checks that slots lie in their pool, each with its address, and apart from each other.
///
/// Slots without bytes overlap with none.
pub(super) fn check(
    slots: &[PreallocatedSlot],
    pool_ptr: u64,
    pool_len: u64,
) -> Result<(), ProtocolError> {
    for slot in slots {
        check_place(pool_ptr, slot.offset, slot.size, Some(pool_len))?;
        let expected = pool_ptr.saturating_add(slot.offset);
        if slot.addr != expected {
            let addr = slot.addr;
            return Err(ProtocolError::SlotAddress { addr, expected });
        }
    }
    let mut sorted: Vec<_> = slots.iter().map(|slot| slot.slot_id).collect();
    sorted.sort_unstable();
    let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
    if let Some((&slot_id, _)) = pairs.find(|(one, other)| one == other) {
        return Err(ProtocolError::DuplicateSlotId { slot_id });
    }
    let with_bytes = slots.iter().filter(|slot| slot.size > 0);
    let mut sorted: Vec<_> = with_bytes.map(|slot| (slot.offset, slot.size)).collect();
    sorted.sort_unstable();
    for (&(first, len), &(second, _)) in sorted.iter().zip(sorted.iter().skip(1)) {
        if first.saturating_add(len) > second {
            return Err(ProtocolError::SlotsOverlap { first, second });
        }
    }
    Ok(())
}

/// Checks that a slot ends within the address space, and in its pool if that is known; returns its address.
pub(super) fn check_place(
    pool_ptr: u64,
    offset: u64,
    len: u64,
    pool_len: Option<u64>,
) -> Result<u64, ProtocolError> {
    let overflow = ProtocolError::AddressOverflow {
        pool_ptr,
        offset,
        len,
    };
    let addr = pool_ptr.checked_add(offset).ok_or(overflow)?;
    addr.checked_add(len).ok_or(overflow)?;
    if let Some(pool_len) = pool_len
        && offset.saturating_add(len) > pool_len
    {
        return Err(ProtocolError::OutOfPool {
            offset,
            len,
            pool_len,
        });
    }
    Ok(addr)
}
