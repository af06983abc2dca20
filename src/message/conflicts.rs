//! Two descriptors of one place, which no reader could tell apart.

use core::cmp::Ordering;

use super::order::Place;
use super::storage::Row;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::json::Str;

/// What may have one name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sharing {
    /// The members of a list.
    Members,
    /// The members of a list for which the name is written once.
    WrittenOnce,
}

/// What places are compared by beyond their fingerprints.
#[derive(Clone, Copy)]
pub(super) struct Names<'frame, 'store> {
    pub(super) text: &'frame str,
    pub(super) rows: &'store [Row],
}

impl<'frame, 'store> Names<'frame, 'store> {
    pub(super) fn at(&self, place: Place) -> Str<'frame> {
        self.row(place).name(self.text)
    }

    fn row(&self, place: Place) -> &'store Row {
        self.rows.get(place.index()).unwrap_or(&Row::EMPTY)
    }

    /// Whether two names say the same, found out at once where one text is both.
    fn same(&self, a: Place, b: Place) -> bool {
        self.row(a).name == self.row(b).name || self.at(a) == self.at(b)
    }

    /// The order of any two places.
    fn compare(&self, a: Place, b: Place) -> Ordering {
        let names = || match self.row(a).name == self.row(b).name {
            true => Ordering::Equal,
            false => self.at(a).cmp(&self.at(b)),
        };
        let fingerprints = a.fingerprint.cmp(&b.fingerprint);
        fingerprints
            .then_with(names)
            .then_with(|| (a.key(), a.index).cmp(&(b.key(), b.index)))
    }

    /// Compares each place with the one before it.
    ///
    /// All places of one name are side by side, unless two names have one
    /// fingerprint and `places` are not sorted by name yet.
    fn compare_neighbours(&self, sharing: Sharing, places: &[Place]) -> Neighbours {
        let mut found = Neighbours {
            collide: false,
            conflict: None,
        };
        let mut written = Written::default();
        let mut previous: Option<Place> = None;
        // The plain tensor of the name at hand: it is in conflict with each
        // member of a list, not with its neighbour alone.
        let mut plain: Option<usize> = None;
        for &place in places {
            let twin = previous.filter(|other| other.fingerprint == place.fingerprint);
            let namesake = twin.filter(|other| self.same(*other, place));
            found.collide |= twin.is_some() && namesake.is_none();
            if namesake.is_none() {
                plain = None;
                written = Written::default();
            }
            let row = self.row(place);
            if sharing == Sharing::WrittenOnce
                && let Some(error) = written.push(row)
            {
                found.note(error);
            }
            // Equal places are in the order of the wire.
            let index = place.index();
            match (place.list_index(), plain) {
                (None, None) => plain = Some(index),
                (None, Some(_)) => {
                    found.note(row.error(index, DecodeErrorKind::DuplicateField));
                }
                (Some(_), Some(plain)) => {
                    let later = plain.max(index);
                    let row = self.rows.get(later).unwrap_or(&Row::EMPTY);
                    found.note(row.error(later, DecodeErrorKind::MixedField));
                }
                (Some(_), None) => {}
            }
            if let Some(list_index) = place.list_index()
                && namesake.is_some_and(|other| other.list == place.list)
            {
                let kind = DecodeErrorKind::DuplicateListIndex { list_index };
                found.note(row.error(index, kind));
            }
            previous = Some(place);
        }
        found
    }
}

/// Refuses two places of one name that no reader could tell apart.
#[inline(never)]
pub(super) fn refuse_conflicts(
    names: Names<'_, '_>,
    sharing: Sharing,
    places: &mut [Place],
) -> Result<(), DecodeError> {
    let mut found = names.compare_neighbours(sharing, places);
    if found.collide {
        places.sort_unstable_by(|a, b| names.compare(*a, *b));
        found = names.compare_neighbours(sharing, places);
    }
    found.conflict.map_or(Ok(()), Err)
}

/// What comparing neighbours finds.
struct Neighbours {
    /// Two names have one fingerprint.
    collide: bool,
    /// Of several conflicts the one that a reader of the wire meets first.
    conflict: Option<DecodeError>,
}

impl Neighbours {
    fn note(&mut self, error: DecodeError) {
        if self
            .conflict
            .is_none_or(|first| error.offset() < first.offset())
        {
            self.conflict = Some(error);
        }
    }
}

/// Where one name is written first, and where next.
#[derive(Default)]
struct Written {
    first: Option<usize>,
    next: Option<usize>,
}

impl Written {
    /// Adds a row of the name; the error is that another one has it written elsewhere.
    fn push(&mut self, row: &Row) -> Option<DecodeError> {
        let at = row.name.start();
        let first = self.first.replace(at.min(self.first.unwrap_or(at)))?;
        if first != at {
            let later = first.max(at);
            self.next = Some(self.next.map_or(later, |next| next.min(later)));
        }
        // A string starts at its quote.
        let quote = self.next?.saturating_sub(1);
        Some(DecodeError::new(DecodeErrorKind::DuplicateField, quote))
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::tests::{colliding, metadata};
    use super::*;
    use crate::message::{Options, Storage};
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn of_several_conflicts_the_first_on_the_wire_is_told() {
        let mut storage = Storage::<4>::new();
        let [a, b] = colliding(&mut storage);
        // Every message of up to four tensors, plain (-1) or of a list, of two
        // names that only their text tells apart.
        let places: Vec<(&str, i32)> = [(&*a, -1), (&*a, 0), (&*a, 1), (&*a, 5)]
            .into_iter()
            .chain([(&*b, -1), (&*b, 0)])
            .collect();
        let mut messages = vec![Vec::new()];
        for _ in 0..4 {
            let longer = messages.iter().flat_map(|message: &Vec<(&str, i32)>| {
                places
                    .iter()
                    .map(|place| [message.as_slice(), &[*place]].concat())
            });
            messages.extend(longer.collect::<Vec<_>>());
        }
        for message in messages {
            let expected = (0..message.len()).find_map(|later| {
                let (name, list_index) = message[later];
                let same_name = |other: &&(&str, i32)| other.0 == name;
                let mut earlier = message[..later].iter().filter(same_name);
                let mixed = earlier
                    .clone()
                    .any(|other| (other.1 < 0) != (list_index < 0));
                let same = earlier.any(|other| other.1 == list_index);
                let kind = match usize::try_from(list_index) {
                    _ if mixed => DecodeErrorKind::MixedField,
                    Err(_) if same => DecodeErrorKind::DuplicateField,
                    Ok(list_index) if same => DecodeErrorKind::DuplicateListIndex { list_index },
                    _ => return None,
                };
                Some((kind, Some(later)))
            });
            let frame = metadata(&message);
            let result = Options::new().decode_metadata(frame.as_bytes(), &mut storage);
            let error = result.err().map(|error| (error.kind(), error.descriptor()));
            assert_eq!(error, expected, "{message:?}");
        }
    }
}
