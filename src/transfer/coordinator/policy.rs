//! Which worker gets the next request.

use alloc::vec::Vec;
use core::fmt;

/// How the worker that gets the next request is chosen among those with a free place.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::coordinator::Policy;
///
/// assert_eq!(Policy::from_name("max_free_slots"), Some(Policy::MostFree));
/// assert_eq!(Policy::RoundRobin.to_string(), "round_robin");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Policy {
    /// The one with the most free places; Python's `max_free_slots`.
    ///
    /// Among equals the first, or, when its turn has come, another: a number
    /// that grows with each choice, modulo the workers, says whose turn it is.
    MostFree,
    /// The next in the list after the last that was chosen; Python's `round_robin`.
    RoundRobin,
}

impl Policy {
    /// Returns the policy that the Python head node has under this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let policies = [Self::MostFree, Self::RoundRobin];
        policies.into_iter().find(|policy| policy.name() == name)
    }

    /// Returns the name that the Python head node has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MostFree => "max_free_slots",
            Self::RoundRobin => "round_robin",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The places of one role's workers, and whose turn it is.
#[derive(Debug)]
pub(super) struct Places {
    policy: Policy,
    capacity: u32,
    /// Those of each worker, also of one that is away.
    free: Vec<u32>,
    /// Who gets nothing until it is back.
    away: Vec<bool>,
    total_free: usize,
    turn: usize,
}

impl Places {
    pub(super) fn new(policy: Policy, workers: usize, capacity: u32) -> Self {
        let free = core::iter::repeat_n(capacity, workers).collect();
        let mut places = Self {
            policy,
            capacity,
            free,
            away: core::iter::repeat_n(false, workers).collect(),
            total_free: 0,
            turn: 0,
        };
        places.total_free = places.total();
        places
    }

    /// The places of all workers that are there, taken or not.
    pub(super) fn total(&self) -> usize {
        let present = self.free.len().saturating_sub(self.away());
        present.saturating_mul(self.places(self.capacity))
    }

    /// How many workers are away.
    pub(super) fn away(&self) -> usize {
        self.away.iter().filter(|away| **away).count()
    }

    pub(super) fn is_away(&self, worker: usize) -> bool {
        self.away.get(worker) == Some(&true)
    }

    /// Keeps a worker out of the choice, or lets it in again; tells whether that is news.
    pub(super) fn set_away(&mut self, worker: usize, away: bool) -> bool {
        let (Some(known), Some(free)) = (self.away.get_mut(worker), self.free.get(worker)) else {
            return false;
        };
        if *known == away {
            return false;
        }
        *known = away;
        let free = self.places(*free);
        self.total_free = if away {
            self.total_free.saturating_sub(free)
        } else {
            self.total_free.saturating_add(free)
        };
        true
    }

    fn places(&self, count: u32) -> usize {
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// The free places of a worker that can be chosen.
    fn free_of(&self, worker: usize) -> u32 {
        let free = self.free.get(worker).copied().unwrap_or(0);
        if self.is_away(worker) { 0 } else { free }
    }

    pub(super) const fn total_free(&self) -> usize {
        self.total_free
    }

    /// Chooses a worker with a free place. As with Python's, asking moves the turn on, also in vain.
    pub(super) fn choose(&mut self) -> Option<usize> {
        match self.policy {
            Policy::MostFree => self.most_free(),
            Policy::RoundRobin => self.next_free(),
        }
    }

    fn next_free(&mut self) -> Option<usize> {
        // Once around at most, which ends where it began.
        for _ in 0..self.free.len() {
            let chosen = self.turn;
            let next = chosen.wrapping_add(1);
            self.turn = if next < self.free.len() { next } else { 0 };
            if self.free_of(chosen) > 0 {
                return Some(chosen);
            }
        }
        None
    }

    fn most_free(&mut self) -> Option<usize> {
        let workers = 0..self.free.len();
        let most = workers.clone().map(|worker| self.free_of(worker)).max();
        let most = most.filter(|most| *most > 0);
        let turn = self.turn;
        let next = turn.wrapping_add(1);
        self.turn = if next < self.free.len() { next } else { 0 };
        let most = most?;
        if self.free_of(turn) == most {
            return Some(turn);
        }
        workers
            .into_iter()
            .find(|&worker| self.free_of(worker) == most)
    }

    pub(super) fn take(&mut self, worker: usize) {
        let present = !self.is_away(worker);
        if let Some(free) = self.free.get_mut(worker)
            && let Some(less) = free.checked_sub(1)
        {
            *free = less;
            self.total_free = self.total_free.saturating_sub(usize::from(present));
        }
    }

    pub(super) fn give_back(&mut self, worker: usize) {
        let present = !self.is_away(worker);
        if let Some(free) = self.free.get_mut(worker)
            && *free < self.capacity
        {
            *free = free.saturating_add(1);
            self.total_free = self.total_free.saturating_add(usize::from(present));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `select_with_capacity` of Python's two classes, line by line.
    fn python(policy: Policy, counter: &mut usize, free: &[u32]) -> Option<usize> {
        if policy == Policy::RoundRobin {
            for _ in 0..free.len() {
                let index = *counter;
                *counter = (*counter + 1) % free.len();
                if free[index] > 0 {
                    return Some(index);
                }
            }
            return None;
        }
        let (mut best, mut best_free) = (None, 0);
        for (index, &free_here) in free.iter().enumerate() {
            if free_here > best_free {
                best_free = free_here;
                best = Some(index);
            } else if free_here == best_free && best_free > 0 && index == *counter % free.len() {
                best = Some(index);
            }
        }
        *counter += 1;
        best
    }

    #[test]
    fn workers_are_chosen_in_the_order_of_the_python_head_node() {
        let mut state: u32 = 7;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for policy in [Policy::MostFree, Policy::RoundRobin] {
            for workers in 1..=4 {
                for capacity in 1..=3 {
                    let mut places = Places::new(policy, workers, capacity);
                    let mut counter = 0;
                    for _ in 0..300 {
                        let expected = python(policy, &mut counter, &places.free);
                        assert_eq!(places.choose(), expected);
                        if let Some(worker) = expected {
                            places.take(worker);
                        }
                        if random(3) > 0 {
                            places.give_back(random(workers as u32) as usize);
                        }
                        let free: u32 = places.free.iter().sum();
                        assert_eq!(places.total_free(), free as usize);
                    }
                }
            }
        }
    }

    #[test]
    fn places_are_neither_made_nor_lost() {
        let mut places = Places::new(Policy::RoundRobin, 2, 1);
        places.give_back(0);
        places.give_back(9);
        assert_eq!((places.total_free(), places.total()), (2, 2));
        places.take(1);
        places.take(1);
        places.take(9);
        assert_eq!(places.total_free(), 1);
        places.give_back(1);
        assert_eq!(places.total_free(), 2);
    }

    #[test]
    fn who_is_away_is_not_chosen_and_its_places_do_not_count() {
        for policy in [Policy::MostFree, Policy::RoundRobin] {
            let mut places = Places::new(policy, 3, 2);
            assert!(!places.set_away(3, true) && !places.set_away(1, false));
            places.take(1);
            assert!(places.set_away(1, true) && !places.set_away(1, true));
            assert_eq!(
                (places.total_free(), places.total(), places.away()),
                (4, 4, 1)
            );
            places.give_back(1);
            for _ in 0..4 {
                let chosen = places.choose().unwrap();
                assert_ne!(chosen, 1);
                places.take(chosen);
            }
            assert_eq!((places.choose(), places.total_free()), (None, 0));
            assert!(places.set_away(1, false));
            assert_eq!((places.choose(), places.total_free()), (Some(1), 2));
        }
    }

    #[test]
    fn policies_have_their_python_names() {
        for policy in [Policy::MostFree, Policy::RoundRobin] {
            assert_eq!(Policy::from_name(policy.name()), Some(policy));
        }
        assert_eq!(Policy::from_name("random"), None);
    }
}
