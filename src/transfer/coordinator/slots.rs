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

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7f00_0000_0000;

    fn slot(offset: u64, size: u64, slot_id: u64) -> PreallocatedSlot {
        PreallocatedSlot::new(offset, size, slot_id, BASE.wrapping_add(offset))
    }

    #[test]
    fn the_shortest_slot_that_is_long_enough_is_lent_and_comes_back_whole() {
        let mut slots = Slots::new([
            slot(0, 8, 10),
            slot(8, 2, 11),
            slot(16, 4, 12),
            slot(24, 4, 13),
        ]);
        let mut lend = |len| slots.lend(len).map(|(index, slot)| (index, slot.slot_id));
        assert_eq!(lend(9), None);
        assert_eq!(lend(u64::MAX), None);
        assert_eq!(lend(0), Some((1, 11)));
        assert_eq!(lend(3), Some((2, 12)));
        assert_eq!(lend(1), Some((3, 13)));
        assert_eq!(lend(1), Some((0, 10)));
        assert_eq!(lend(0), None);
        assert_eq!((slots.free(), slots.lent(), slots.quarantined()), (0, 4, 0));
        slots.give_back(2);
        slots.give_back(3);
        // Of one length the one that rested longest, and as long as it was.
        assert_eq!(
            slots.lend(4).map(|(index, slot)| (index, slot.size)),
            Some((2, 4))
        );
    }

    #[test]
    fn a_slot_is_in_one_state_whatever_is_asked() {
        let mut slots = Slots::new([slot(0, 4, 0), slot(4, 4, 1)]);
        for index in [0, 1, 2, usize::MAX] {
            slots.quarantine(index);
            slots.give_back(index);
        }
        assert_eq!((slots.free(), slots.lent(), slots.quarantined()), (2, 0, 0));
        let (index, _) = slots.lend(4).unwrap();
        slots.quarantine(index);
        slots.quarantine(index);
        assert_eq!((slots.free(), slots.lent(), slots.quarantined()), (1, 0, 1));
        slots.give_back(index);
        slots.give_back(index);
        assert_eq!((slots.free(), slots.lent(), slots.quarantined()), (2, 0, 0));
    }

    #[test]
    fn slots_lie_in_their_pool_and_apart() {
        let top = u64::MAX - 15;
        let check = |slots: &[PreallocatedSlot]| check(slots, BASE, 64);
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[slot(32, 32, 1), slot(0, 32, 7)]), Ok(()));
        assert_eq!(
            check(&[slot(0, 32, 1), slot(16, 0, 2), slot(64, 0, 3)]),
            Ok(())
        );
        let wrapping = [PreallocatedSlot::new(8, 9, 0, u64::MAX - 7)];
        for (error, found) in [
            (
                ProtocolError::OutOfPool {
                    offset: 33,
                    len: 32,
                    pool_len: 64,
                },
                check(&[slot(33, 32, 0)]),
            ),
            (
                ProtocolError::AddressOverflow {
                    pool_ptr: BASE,
                    offset: 1,
                    len: u64::MAX,
                },
                check(&[slot(1, u64::MAX, 0)]),
            ),
            (
                ProtocolError::AddressOverflow {
                    pool_ptr: BASE,
                    offset: u64::MAX,
                    len: 1,
                },
                check(&[slot(u64::MAX, 1, 0)]),
            ),
            (
                ProtocolError::AddressOverflow {
                    pool_ptr: top,
                    offset: 8,
                    len: 9,
                },
                super::check(&wrapping, top, 64),
            ),
            (
                ProtocolError::SlotAddress {
                    addr: BASE + 1,
                    expected: BASE,
                },
                check(&[PreallocatedSlot::new(0, 1, 0, BASE + 1)]),
            ),
            (
                ProtocolError::SlotsOverlap {
                    first: 0,
                    second: 31,
                },
                check(&[slot(31, 2, 0), slot(40, 1, 1), slot(0, 32, 2)]),
            ),
            (
                ProtocolError::SlotsOverlap {
                    first: 8,
                    second: 8,
                },
                check(&[slot(8, 2, 0), slot(8, 2, 1)]),
            ),
            (
                ProtocolError::DuplicateSlotId { slot_id: 5 },
                check(&[slot(0, 8, 5), slot(8, 8, 4), slot(16, 8, 5)]),
            ),
        ] {
            assert_eq!(found, Err(error));
        }
    }
}
