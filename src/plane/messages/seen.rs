//! Which pushes came already.

use alloc::vec::Vec;

use super::Refusal;
use super::wire::Id;

/// The newest push of each plane that pushed lately.
///
/// The ids of a plane ascend, and so does the order in which its pushes come. What is
/// no newer than the newest is a duplicate, or late.
#[derive(Debug)]
pub(super) struct Seen {
    /// By how lately they pushed, the latest last.
    newest: Vec<Newest>,
    /// Of how many planes it is kept.
    room: usize,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    id: Id,
    outcome: Result<u64, Refusal>,
}

/// A push that is no newer than the newest that came of its plane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Old {
    /// It is the newest one again, which had this outcome.
    Again(Result<u64, Refusal>),
    /// It is older than this one.
    Overtaken(u64),
}

impl Seen {
    pub(super) const fn new(room: usize) -> Self {
        Self {
            newest: Vec::new(),
            room,
        }
    }

    /// Notes a push that came.
    ///
    /// # Errors
    ///
    /// It is an old one.
    pub(super) fn note(&mut self, id: Id) -> Result<(), Old> {
        let mut newest = self.newest.iter();
        let noted = Newest {
            id,
            // Until it has one: a panic in between leaves it refused.
            outcome: Err(Refusal::Other),
        };
        if let Some(place) = newest.rposition(|seen| seen.id.origin == id.origin)
            && let Some(tail) = self.newest.get_mut(place..)
            && let Some(seen) = tail.first_mut()
        {
            if id.push < seen.id.push {
                return Err(Old::Overtaken(seen.id.push));
            }
            if id == seen.id {
                return Err(Old::Again(seen.outcome));
            }
            *seen = noted;
            tail.rotate_left(1);
            return Ok(());
        }
        if self.newest.len() >= self.room && !self.newest.is_empty() {
            self.newest.remove(0);
        }
        self.newest.push(noted);
        Ok(())
    }

    /// Notes the outcome of the push noted last.
    pub(super) fn settle(&mut self, outcome: Result<u64, Refusal>) {
        if let Some(latest) = self.newest.last_mut() {
            latest.outcome = outcome;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(origin: u64, push: u64) -> Id {
        Id { origin, push }
    }

    #[test]
    fn what_is_no_newer_is_told_apart() {
        let mut seen = Seen::new(8);
        for (origin, push, expected) in [
            (1, 5, Ok(())),
            (1, 5, Err(Old::Again(Ok(5)))),
            (1, 4, Err(Old::Overtaken(5))),
            (2, 4, Ok(())),
            (1, 5, Err(Old::Again(Ok(5)))),
            (1, 6, Ok(())),
            (2, 3, Err(Old::Overtaken(4))),
            (2, 4, Err(Old::Again(Ok(4)))),
            (1, u64::MAX, Ok(())),
            (1, 0, Err(Old::Overtaken(u64::MAX))),
        ] {
            let noted = seen.note(id(origin, push));
            assert_eq!(noted, expected, "{push} of {origin}");
            if noted.is_ok() {
                seen.settle(Ok(push));
            }
        }
    }

    #[test]
    fn those_who_pushed_longest_ago_are_forgotten() {
        let mut seen = Seen::new(2);
        for (origin, push, is_new) in [
            (1, 1, true),
            (2, 1, true),
            (1, 2, true),
            // For it 2 is forgotten, and for 2 then 1.
            (3, 1, true),
            (1, 2, false),
            (2, 1, true),
            (3, 1, false),
            (1, 1, true),
        ] {
            let noted = seen.note(id(origin, push));
            assert_eq!(noted.is_ok(), is_new, "{push} of {origin}");
        }
        assert_eq!(seen.newest.len(), 2);
    }
}
