//! Descriptors by name and list index: what finds them, and finds two of one place.
//!
//! Names are compared by fingerprint first. The first bits of the fingerprints put
//! the descriptors nearly in order, and sorting takes a few moves each. Only names
//! of one fingerprint are compared as text: a peer that made many of them, for
//! which it would have to know the key, would cost the decoder two sorts of
//! n log n comparisons.

use core::cmp::Ordering;
use core::ops::Range;

use super::storage::{Slot, to_usize};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::json::Str;

/// The descriptors of a message, sorted.
#[derive(Clone, Copy)]
pub(crate) struct Order<'frame, 'store> {
    /// What the slots are spans of.
    text: &'frame str,
    /// Of the fingerprints.
    key: u64,
    /// In wire order.
    slots: &'store [Slot],
    /// By fingerprint, name and list index, a plain tensor before a list.
    places: &'store [Place],
}

impl<'frame, 'store> Order<'frame, 'store> {
    /// Sorts `slots` into `places`, which are as many.
    ///
    /// Of several conflicts the error names the one that a reader of the wire meets first.
    #[inline(always)]
    pub(crate) fn sort(
        text: &'frame str,
        key: u64,
        slots: &'store [Slot],
        places: &'store mut [Place],
    ) -> Result<Self, DecodeError> {
        if let ([slot], [place]) = (slots, &mut *places) {
            *place = Place::new(slot, 0);
        } else if arrange(slots, places) {
            refuse_conflicts(Names { text, slots }, places)?;
        }
        Ok(Self {
            text,
            key,
            slots,
            places,
        })
    }

    /// What the slots are spans of.
    pub(crate) const fn text(&self) -> &'frame str {
        self.text
    }

    /// In wire order.
    pub(crate) const fn slots(&self) -> &'store [Slot] {
        self.slots
    }

    /// Which places have this name.
    pub(crate) fn range(&self, name: &str) -> Range<usize> {
        self.range_named(name.into())
    }

    fn range_named(&self, name: Str<'_>) -> Range<usize> {
        let fingerprint = name.fingerprint(self.key);
        let names = Names {
            text: self.text,
            slots: self.slots,
        };
        let start = self.places.partition_point(|place| {
            let order = place.fingerprint.cmp(&fingerprint);
            order.then_with(|| names.at(*place).cmp(&name)) == Ordering::Less
        });
        let tail = self.places.get(start..).unwrap_or_default();
        let same = |place: &Place| place.fingerprint == fingerprint && names.at(*place) == name;
        start..start.saturating_add(tail.partition_point(same))
    }

    /// Which places have the name of the descriptor at `index` in wire order.
    pub(crate) fn range_of(&self, index: usize) -> Option<Range<usize>> {
        Some(self.range_named(self.slots.get(index)?.name(self.text)))
    }

    /// The place in `range`, of one list, that has this list index.
    pub(crate) fn find(&self, range: Range<usize>, list_index: usize) -> Option<usize> {
        let places = self.places.get(range.clone())?;
        let before = places.partition_point(|place| place.list_index() < Some(list_index));
        let place = range.start.checked_add(before)?;
        (self.list_index(place) == Some(list_index) && place < range.end).then_some(place)
    }

    /// The list index at `place`.
    pub(crate) fn list_index(&self, place: usize) -> Option<usize> {
        self.places.get(place)?.list_index()
    }

    /// Where the descriptor at `place` is in wire order.
    pub(crate) fn wire_index(&self, place: usize) -> Option<usize> {
        self.places.get(place).map(|place| place.index())
    }
}

/// What a slot is found by, small enough to be sorted quickly.
///
/// Sorted by the name's fingerprint, names of one fingerprint by name, then by
/// list index: the members of a list are neighbours, in order.
#[derive(Clone, Copy, Debug)]
#[repr(C)] // Together, `list` and `fingerprint` are one word.
pub(crate) struct Place {
    /// 0 for a plain tensor, else the list index and 1.
    list: u32,
    /// Of the name.
    fingerprint: u32,
    /// In wire order.
    index: u32,
}

impl Place {
    pub(crate) const EMPTY: Self = Self {
        fingerprint: 0,
        list: 0,
        index: 0,
    };

    #[inline]
    fn new(slot: &Slot, index: u32) -> Self {
        Self {
            fingerprint: slot.fingerprint,
            // An index is at most `i32::MAX`, and here it only sorts.
            list: slot.list_index.map_or(0, |index| index.saturating_add(1)),
            index,
        }
    }

    fn index(self) -> usize {
        to_usize(self.index)
    }

    fn list_index(self) -> Option<usize> {
        self.list.checked_sub(1).map(to_usize)
    }

    /// The order of all but places of one name and list index, and of two names of one fingerprint.
    #[inline]
    fn key(&self) -> u64 {
        (u64::from(self.fingerprint) << 32) | u64::from(self.list)
    }
}

/// Fills `places` from `slots` and sorts them by key, equal ones in wire order.
///
/// Says whether any two have one fingerprint.
#[inline(never)]
fn arrange(slots: &[Slot], places: &mut [Place]) -> bool {
    match slots.len() {
        // So few are not worth clearing buckets for.
        ..=8 => {
            for ((index, slot), place) in (0..).zip(slots).zip(places.iter_mut()) {
                *place = Place::new(slot, index);
            }
        }
        9..=64 => deal::<32>(slots, places),
        _ => deal::<256>(slots, places),
    }
    // Fingerprints are spread evenly, unless a peer chose the names for theirs not to be.
    if !settle(places) {
        places.sort_unstable_by_key(|place| (place.key(), place.index));
    }
    let next = places.get(1..).unwrap_or_default();
    let mut pairs = places.iter().zip(next);
    pairs.any(|(a, b)| a.fingerprint == b.fingerprint)
}

/// Fills `places` by the first bits of the fingerprint, and of one such bucket in wire order.
fn deal<const BUCKETS: usize>(slots: &[Slot], places: &mut [Place]) {
    let shift = u32::BITS.saturating_sub(BUCKETS.ilog2());
    let bucket = |slot: &Slot| to_usize(slot.fingerprint.wrapping_shr(shift));
    let mut next = [0_u32; BUCKETS];
    for slot in slots {
        if let Some(count) = next.get_mut(bucket(slot)) {
            *count = count.wrapping_add(1);
        }
    }
    let mut start: u32 = 0;
    for count in &mut next {
        (*count, start) = (start, start.wrapping_add(*count));
    }
    for (index, slot) in (0..).zip(slots) {
        if let Some(next) = next.get_mut(bucket(slot))
            && let Some(place) = places.get_mut(to_usize(*next))
        {
            *place = Place::new(slot, index);
            *next = next.wrapping_add(1);
        }
    }
}

/// Sorts by insertion; gives up, and says so, where that takes more than a few moves each.
fn settle(places: &mut [Place]) -> bool {
    let mut moves = places.len().saturating_mul(8);
    for end in 1..places.len() {
        let Some((last, sorted)) = places.get_mut(..=end).and_then(<[_]>::split_last_mut) else {
            break;
        };
        let place = *last;
        let mut hole = last;
        for other in sorted.iter_mut().rev() {
            if other.key() <= place.key() {
                break;
            }
            *hole = *other;
            hole = other;
            moves = moves.saturating_sub(1);
        }
        *hole = place;
        if moves == 0 {
            return false;
        }
    }
    true
}

/// What places are compared by beyond their fingerprints.
#[derive(Clone, Copy)]
struct Names<'frame, 'store> {
    text: &'frame str,
    slots: &'store [Slot],
}

impl<'frame> Names<'frame, '_> {
    fn at(&self, place: Place) -> Str<'frame> {
        let slot = self.slots.get(place.index()).unwrap_or(&Slot::EMPTY);
        slot.name(self.text)
    }

    /// The order of any two places.
    fn compare(&self, a: Place, b: Place) -> Ordering {
        let names = || self.at(a).cmp(&self.at(b));
        let fingerprints = a.fingerprint.cmp(&b.fingerprint);
        fingerprints
            .then_with(names)
            .then_with(|| (a.key(), a.index).cmp(&(b.key(), b.index)))
    }

    /// Compares each place with the one before it.
    ///
    /// All places of one name are side by side, unless two names have one
    /// fingerprint and `places` are not sorted by name yet.
    fn compare_neighbours(&self, places: &[Place]) -> Neighbours {
        let mut found = Neighbours {
            collide: false,
            conflict: None,
        };
        let mut previous: Option<Place> = None;
        // The plain tensor of the name at hand: it is in conflict with each
        // member of a list, not with its neighbour alone.
        let mut plain: Option<usize> = None;
        for &place in places {
            let twin = previous.filter(|other| other.fingerprint == place.fingerprint);
            let namesake = twin.filter(|other| self.at(*other) == self.at(place));
            found.collide |= twin.is_some() && namesake.is_none();
            if namesake.is_none() {
                plain = None;
            }
            // Equal places are in the order of the wire.
            let index = place.index();
            match (place.list_index(), plain) {
                (None, None) => plain = Some(index),
                (None, Some(_)) => found.note(index, DecodeErrorKind::DuplicateField),
                (Some(_), Some(plain)) => {
                    found.note(plain.max(index), DecodeErrorKind::MixedField);
                }
                (Some(_), None) => {}
            }
            if let Some(list_index) = place.list_index()
                && namesake.is_some_and(|other| other.list == place.list)
            {
                found.note(index, DecodeErrorKind::DuplicateListIndex { list_index });
            }
            previous = Some(place);
        }
        found
    }
}

/// Refuses two places of one name that no reader could tell apart.
#[inline(never)]
fn refuse_conflicts(names: Names<'_, '_>, places: &mut [Place]) -> Result<(), DecodeError> {
    let mut found = names.compare_neighbours(places);
    if found.collide {
        places.sort_unstable_by(|a, b| names.compare(*a, *b));
        found = names.compare_neighbours(places);
    }
    match found.conflict {
        None => Ok(()),
        Some((index, kind)) => {
            let slot = names.slots.get(index).unwrap_or(&Slot::EMPTY);
            Err(slot.error(index, kind))
        }
    }
}

/// What comparing neighbours finds.
struct Neighbours {
    /// Two names have one fingerprint.
    collide: bool,
    /// Of several conflicts the one that a reader of the wire meets first.
    conflict: Option<(usize, DecodeErrorKind)>,
}

impl Neighbours {
    fn note(&mut self, index: usize, kind: DecodeErrorKind) {
        if self.conflict.is_none_or(|(first, _)| index < first) {
            self.conflict = Some((index, kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, Options, Storage};
    use std::collections::BTreeMap;
    use std::string::String;
    use std::vec::Vec;
    use std::{format, vec};

    /// Two names of one fingerprint in this storage; any birthday finds some.
    fn colliding<const N: usize>(storage: &mut Storage<N>) -> [String; 2] {
        let key = storage.table().slots.as_ptr().addr() as u64;
        let mut seen = BTreeMap::new();
        (0..)
            .find_map(|number| {
                let name = format!("t{number}");
                let fingerprint = Str::from(&*name).fingerprint(key);
                let other = seen.insert(fingerprint, name.clone())?;
                Some([other, name])
            })
            .unwrap()
    }

    fn metadata(names: &[(&str, i32)]) -> String {
        let descriptor = |&(name, index): &(&str, i32)| {
            let rest = r#""shape":[0],"dtype":"bool""#;
            format!(r#"{{"field_name":"{name}",{rest},"list_index":{index}}}"#)
        };
        let descriptors: Vec<_> = names.iter().map(descriptor).collect();
        format!(r#"{{"tensor_descriptors":[{}]}}"#, descriptors.join(","))
    }

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

    #[test]
    fn names_of_one_fingerprint_are_told_apart() {
        let mut storage = Storage::<8>::new();
        let [a, b] = colliding(&mut storage);
        let text = metadata(&[(&a, 1), (&b, -1), (&a, 0), (&a, 3), ("c", -1)]);
        let frames = [text.as_str(), "", "", "", "", ""];
        let message = Message::decode(&frames, &mut storage).unwrap();
        let list = message.list(&a).unwrap();
        assert!(list.present().map(|(index, _)| index).eq([0, 1, 3]));
        assert!(message.tensor(&b).is_some() && message.tensor("c").is_some());
        assert!(message.list(&b).is_none() && message.tensor("d").is_none());
    }
}
