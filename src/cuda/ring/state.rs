//! Which slot is whose: the rules of the ring, without a driver and without a clock.
//!
//! A *run* is a number of adjacent slots that were taken together. It goes through these states as a whole:
//!
//! ```text
//!            take              submit              let_go             complete
//!   Free -----------> Host -------------> Device ---------> Returning ---------> Free
//!     ^                | ^                   |                  ^
//!     +--- let_go -----+ +----- finish ------+                  | recorded
//!                      |                                        |
//!                      +------ doubt ------> InDoubt(stream) ---+
//! ```

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::Statistics;
use crate::convert::to_u64;

/// Adjacent slots that were taken together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Run {
    /// The first of them.
    pub(super) first: usize,
    /// How many they are, at least one.
    pub(super) len: usize,
}

/// A place in the line of those that wait for slots.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Turn(u64);

/// Whose a slot is. `S` is the stream with which a copy was put.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Owner<S> {
    /// The device's, and somebody waits to have it back.
    Device,
    /// Nobody's.
    Free,
    /// The host's.
    Host,
    /// Not known: it is, until an event was recorded on the stream and has fired.
    InDoubt(S),
    /// The device's until its event has fired, then free.
    Returning,
}

#[derive(Clone, Debug)]
struct Slot<S> {
    owner: Owner<S>,
    /// How many slots its run has, if it is the first of one; else 0.
    run: usize,
}

/// What stands between a run and its being free.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Pending<S> {
    /// An event has to be recorded on this stream first.
    Record(Run, S),
    /// The event has to fire.
    Fire(Run),
}

/// The slots of a ring, and who waits for some.
#[derive(Debug)]
pub(super) struct State<S> {
    slots: Box<[Slot<S>]>,
    /// Those that wait, the first to be served in front.
    line: VecDeque<Turn>,
    turns: u64,
    in_use: usize,
    high_water: usize,
    taken: u64,
    bytes: u64,
    stalls: u64,
    refused: u64,
}

impl<S: Clone> State<S> {
    pub(super) fn new(slots: usize) -> Self {
        let free = || Slot {
            owner: Owner::Free,
            run: 0,
        };
        Self {
            slots: (0..slots).map(|_| free()).collect(),
            line: VecDeque::new(),
            turns: 0,
            in_use: 0,
            high_water: 0,
            taken: 0,
            bytes: 0,
            stalls: 0,
            refused: 0,
        }
    }

    /// Takes the first `len` free slots that are adjacent, for `bytes` bytes.
    ///
    /// Who does not wait (`None`) is served if there are any. Who waits is served in turn: a large run would
    /// not get together otherwise while small ones are taken all the time.
    pub(super) fn take(&mut self, len: usize, bytes: usize, turn: Option<Turn>) -> Option<Run> {
        if turn.is_some_and(|turn| self.line.front() != Some(&turn)) {
            return None;
        }
        let first = self.room_for(len)?;
        let run = Run { first, len };
        for slot in self.of_mut(run) {
            *slot = Slot {
                owner: Owner::Host,
                run: 0,
            };
        }
        if let Some(slot) = self.slots.get_mut(first) {
            slot.run = len;
        }
        self.in_use = self.in_use.saturating_add(len);
        self.high_water = self.high_water.max(self.in_use);
        self.taken = self.taken.saturating_add(1);
        self.bytes = self.bytes.saturating_add(to_u64(bytes));
        Some(run)
    }

    /// The host gives `run` to the device; its event is recorded.
    pub(super) fn submit(&mut self, run: Run) -> bool {
        self.change(run, |owner| {
            matches!(owner, Owner::Host).then_some(Owner::Device)
        })
    }

    /// The host gives `run` to the device; no event could be recorded on `stream`.
    pub(super) fn doubt(&mut self, run: Run, stream: &S) -> bool {
        self.change(run, |owner| {
            matches!(owner, Owner::Host).then(|| Owner::InDoubt(stream.clone()))
        })
    }

    /// The event of `run` has fired, and the host has it again.
    pub(super) fn finish(&mut self, run: Run) -> bool {
        self.change(run, |owner| {
            matches!(owner, Owner::Device).then_some(Owner::Host)
        })
    }

    /// Whoever had `run` does not want it any more: the host, then it is free; or who waited for the device, then it
    /// is free when its event has fired.
    pub(super) fn let_go(&mut self, run: Run) -> bool {
        self.change(run, |owner| match owner {
            Owner::Device => Some(Owner::Returning),
            Owner::Host => Some(Owner::Free),
            Owner::Free | Owner::InDoubt(_) | Owner::Returning => None,
        })
    }

    /// An event could be recorded for `run` after all.
    pub(super) fn recorded(&mut self, run: Run) -> bool {
        self.change(run, |owner| {
            matches!(owner, Owner::InDoubt(_)).then_some(Owner::Returning)
        })
    }

    /// The event of `run`, which nobody waited for, has fired.
    pub(super) fn complete(&mut self, run: Run) -> bool {
        self.change(run, |owner| {
            matches!(owner, Owner::Returning).then_some(Owner::Free)
        })
    }

    /// Returns the first run, of those that start at slot `from` or later, that could be free once the device has
    /// done with it.
    pub(super) fn pending(&self, from: usize) -> Option<Pending<S>> {
        let later = self.slots.iter().enumerate().skip(from);
        later
            .filter(|(_, slot)| slot.run > 0)
            .find_map(|(first, slot)| {
                let run = Run {
                    first,
                    len: slot.run,
                };
                match &slot.owner {
                    Owner::InDoubt(stream) => Some(Pending::Record(run, stream.clone())),
                    Owner::Returning => Some(Pending::Fire(run)),
                    Owner::Device | Owner::Free | Owner::Host => None,
                }
            })
    }

    /// Gets in line.
    pub(super) fn line_up(&mut self) -> Turn {
        let turn = Turn(self.turns);
        self.turns = self.turns.wrapping_add(1);
        self.stalls = self.stalls.saturating_add(1);
        self.line.push_back(turn);
        turn
    }

    /// Leaves the line, served or not.
    pub(super) fn leave(&mut self, turn: Turn) {
        self.line.retain(|other| *other != turn);
    }

    /// Tells whether anybody waits.
    pub(super) fn is_awaited(&self) -> bool {
        !self.line.is_empty()
    }

    /// Tells whether `turn` is the next to be served.
    pub(super) fn is_next(&self, turn: Turn) -> bool {
        self.line.front() == Some(&turn)
    }

    /// Notes a call that does not wait, and for which there was too little.
    pub(super) fn stalled(&mut self) {
        self.stalls = self.stalls.saturating_add(1);
    }

    /// Notes a call that went without.
    pub(super) fn refused(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    pub(super) fn free(&self) -> usize {
        self.slots.len().saturating_sub(self.in_use)
    }

    pub(super) fn statistics(&self, slot_bytes: usize) -> Statistics {
        let lost = self
            .slots
            .iter()
            .filter(|slot| matches!(slot.owner, Owner::InDoubt(_)));
        Statistics {
            slots: self.slots.len(),
            slot_bytes,
            in_use: self.in_use,
            high_water: self.high_water,
            lost: lost.count(),
            taken: self.taken,
            bytes: self.bytes,
            stalls: self.stalls,
            refused: self.refused,
        }
    }

    /// Where the first `len` adjacent free slots start.
    fn room_for(&self, len: usize) -> Option<usize> {
        let mut free = 0_usize;
        for (at, slot) in self.slots.iter().enumerate() {
            free = match slot.owner {
                Owner::Free => free.saturating_add(1),
                _ => 0,
            };
            if free >= len.max(1) {
                return at.saturating_add(1).checked_sub(free);
            }
        }
        None
    }

    /// Gives the slots of `run` the owner that `next` says; none of them if it says nothing, or if there is no
    /// such run.
    fn change(&mut self, run: Run, next: impl Fn(&Owner<S>) -> Option<Owner<S>>) -> bool {
        let slot = self.slots.get(run.first);
        // Slots inside of a run have 0 there.
        let Some(slot) = slot.filter(|slot| run.len > 0 && slot.run == run.len) else {
            return false;
        };
        let Some(owner) = next(&slot.owner) else {
            return false;
        };
        let is_free = matches!(owner, Owner::Free);
        for slot in self.of_mut(run) {
            slot.owner = owner.clone();
            if is_free {
                slot.run = 0;
            }
        }
        if is_free {
            self.in_use = self.in_use.saturating_sub(run.len);
        }
        true
    }

    fn of_mut(&mut self, run: Run) -> impl Iterator<Item = &mut Slot<S>> {
        self.slots.iter_mut().skip(run.first).take(run.len)
    }
}

#[cfg(test)]
mod tests;
