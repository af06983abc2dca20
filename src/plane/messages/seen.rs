//! Which pushes came already.

use alloc::vec::Vec;

use super::wire::Id;

/// The newest push of each plane that pushed lately.
///
/// The ids of a plane ascend, and so does the order in which its pushes come. What is
/// no newer than the newest is a duplicate, or late.
#[derive(Debug)]
pub(super) struct Seen {
    /// By how lately they pushed, the latest last.
    newest: Vec<Id>,
    /// Of how many planes it is kept.
    room: usize,
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
    /// The newest push of the plane, if that is no older.
    pub(super) fn note(&mut self, id: Id) -> Result<(), u64> {
        let known = self.newest.iter().rposition(|seen| seen.origin == id.origin);
        if let Some(place) = known
            && let Some(tail) = self.newest.get_mut(place..)
            && let Some(seen) = tail.first_mut()
        {
            if id.push <= seen.push {
                return Err(seen.push);
            }
            seen.push = id.push;
            tail.rotate_left(1);
            return Ok(());
        }
        if self.newest.len() >= self.room && !self.newest.is_empty() {
            self.newest.remove(0);
        }
        self.newest.push(id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(origin: u64, push: u64) -> Id {
        Id { origin, push }
    }

    #[test]
    fn what_is_no_newer_is_refused() {
        let mut seen = Seen::new(8);
        for (origin, push, expected) in [
            (1, 5, Ok(())),
            (1, 5, Err(5)),
            (1, 4, Err(5)),
            (2, 4, Ok(())),
            (1, 6, Ok(())),
            (2, 3, Err(4)),
            (1, u64::MAX, Ok(())),
            (1, 0, Err(u64::MAX)),
        ] {
            assert_eq!(seen.note(id(origin, push)), expected, "{push} of {origin}");
        }
    }

    #[test]
    fn those_who_pushed_longest_ago_are_forgotten() {
        let mut seen = Seen::new(2);
        for (origin, push, expected) in [
            (1, 1, Ok(())),
            (2, 1, Ok(())),
            (1, 2, Ok(())),
            (3, 1, Ok(())),
            // 2 was forgotten for 3, and 3 is for 2.
            (1, 2, Err(2)),
            (2, 1, Ok(())),
            (3, 1, Err(1)),
            (2, 1, Err(1)),
            (1, 1, Ok(())),
        ] {
            assert_eq!(seen.note(id(origin, push)), expected, "{push} of {origin}");
        }
        assert_eq!(seen.newest.len(), 2);
    }
}
