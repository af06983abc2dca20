//! Descriptors by name and list index: what finds them, and finds two of one place.
//!
//! Names are compared by fingerprint first. The first bits of the fingerprints put
//! the descriptors nearly in order, and sorting takes a few moves each. Only names
//! of one fingerprint are compared as text: a peer that made many of them, for
//! which it would have to know the key, would cost the decoder two sorts of
//! n log n comparisons.

use core::cmp::Ordering;
use core::fmt;
use core::ops::Range;

use super::conflicts::{Names, Sharing, refuse_conflicts};
use super::storage::{Row, to_usize};
use crate::error::DecodeError;
use crate::json::Str;

/// The descriptors of a message, sorted.
#[derive(Clone, Copy)]
pub(crate) struct Order<'frame, 'store> {
    /// What the rows are spans of.
    text: &'frame str,
    /// Of the fingerprints.
    key: u64,
    /// In wire order.
    rows: &'store [Row],
    /// By fingerprint, name and list index, a plain tensor before a list.
    places: &'store [Place],
}

impl<'frame, 'store> Order<'frame, 'store> {
    /// Sorts `rows` into `places`, which are as many.
    ///
    /// Of several conflicts the error names the one that a reader of the wire meets first.
    #[inline(always)]
    pub(crate) fn sort(
        text: &'frame str,
        key: u64,
        sharing: Sharing,
        rows: &'store [Row],
        places: &'store mut [Place],
    ) -> Result<Self, DecodeError> {
        if let ([row], [place]) = (rows, &mut *places) {
            *place = Place::new(row, 0);
        } else if arrange(rows, places) {
            refuse_conflicts(Names { text, rows }, sharing, places)?;
        }
        Ok(Self {
            text,
            key,
            rows,
            places,
        })
    }

    /// What the rows are spans of.
    pub(crate) const fn text(&self) -> &'frame str {
        self.text
    }

    /// In wire order.
    pub(crate) const fn rows(&self) -> &'store [Row] {
        self.rows
    }

    /// Which places have this name.
    fn range(&self, name: &str) -> Range<usize> {
        self.range_named(name.into())
    }

    /// Where in the text the quote of this name is first met, if any descriptor has the name.
    pub(crate) fn written_at(&self, name: Str<'_>) -> Option<usize> {
        let index = self.wire_index(self.range_named(name).next()?)?;
        let row = self.rows.get(index)?;
        // A string starts at its quote.
        Some(row.name.start().saturating_sub(1))
    }

    fn range_named(&self, name: Str<'_>) -> Range<usize> {
        let fingerprint = name.fingerprint(self.key);
        let names = Names {
            text: self.text,
            rows: self.rows,
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
    fn range_of(&self, index: usize) -> Option<Range<usize>> {
        Some(self.range_named(self.rows.get(index)?.name(self.text)))
    }

    /// The place in `range`, of one list, that has this list index.
    fn find(&self, range: Range<usize>, list_index: usize) -> Option<usize> {
        let places = self.places.get(range.clone())?;
        let before = places.partition_point(|place| place.list_index() < Some(list_index));
        let place = range.start.checked_add(before)?;
        (self.list_index(place) == Some(list_index) && place < range.end).then_some(place)
    }

    /// What has this name.
    pub(crate) fn named(&self, name: &str) -> Option<Named<'frame, 'store>> {
        self.in_range(self.range(name))
    }

    /// What stands at `index` in wire order: a list stands where its member of the smallest index does.
    pub(crate) fn named_at(&self, index: usize) -> Option<Named<'frame, 'store>> {
        if self.rows.get(index)?.list_index.is_none() {
            return Some(Named::Tensor(index));
        }
        let range = self.range_of(index)?;
        let first = self.wire_index(range.start)?;
        if first == index {
            self.in_range(range)
        } else {
            None
        }
    }

    fn in_range(&self, range: Range<usize>) -> Option<Named<'frame, 'store>> {
        let index = self.wire_index(range.clone().next()?)?;
        Some(match self.rows.get(index)?.list_index {
            None => Named::Tensor(index),
            Some(_) => Named::List(Members {
                order: *self,
                range,
            }),
        })
    }

    /// The list index at `place`.
    fn list_index(&self, place: usize) -> Option<usize> {
        self.places.get(place)?.list_index()
    }

    /// Where the descriptor at `place` is in wire order.
    fn wire_index(&self, place: usize) -> Option<usize> {
        self.places.get(place).map(|place| place.index())
    }
}

/// What a name stands for, by places in wire order.
pub(crate) enum Named<'frame, 'store> {
    List(Members<'frame, 'store>),
    Tensor(usize),
}

/// The members of one list.
#[derive(Clone)]
pub(crate) struct Members<'frame, 'store> {
    order: Order<'frame, 'store>,
    /// Places in the order by name and index.
    range: Range<usize>,
}

impl<'frame, 'store> Members<'frame, 'store> {
    /// The length, holes included: the largest index plus 1.
    pub(crate) fn len(&self) -> usize {
        let last = self.range.clone().next_back();
        last.and_then(|place| self.order.list_index(place))
            .map_or(0, |last| last.saturating_add(1))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// How many there are, holes not counted.
    pub(crate) fn present_len(&self) -> usize {
        self.range.len()
    }

    /// Where the member at `list_index` is in wire order.
    pub(crate) fn position(&self, list_index: usize) -> Option<usize> {
        let place = self.order.find(self.range.clone(), list_index)?;
        self.order.wire_index(place)
    }

    /// By list index, each with its place in wire order, `None` for each hole.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<usize>> + use<'frame, 'store> {
        let length = self.len();
        let mut members = self.present().peekable();
        (0..length).map(move |index| {
            members
                .next_if(|(present, _)| *present == index)
                .map(|(_, position)| position)
        })
    }

    /// List indices, ascending, and places in wire order.
    pub(crate) fn present(&self) -> impl Iterator<Item = (usize, usize)> + use<'frame, 'store> {
        let order = self.order;
        self.range
            .clone()
            .filter_map(move |place| Some((order.list_index(place)?, order.wire_index(place)?)))
    }
}

impl fmt::Debug for Members<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.present()).finish()
    }
}

/// What a row is found by, small enough to be sorted quickly.
///
/// Sorted by the name's fingerprint, names of one fingerprint by name, then by
/// list index: the members of a list are neighbours, in order.
#[derive(Clone, Copy, Debug)]
#[repr(C)] // Together, `list` and `fingerprint` are one word.
pub(crate) struct Place {
    /// 0 for a plain tensor, else the list index and 1.
    pub(super) list: u32,
    /// Of the name.
    pub(super) fingerprint: u32,
    /// In wire order.
    pub(super) index: u32,
}

impl Place {
    pub(crate) const EMPTY: Self = Self {
        fingerprint: 0,
        list: 0,
        index: 0,
    };

    #[inline]
    fn new(row: &Row, index: u32) -> Self {
        Self {
            fingerprint: row.fingerprint,
            // An index is at most `i32::MAX`, and here it only sorts.
            list: row.list_index.map_or(0, |index| index.saturating_add(1)),
            index,
        }
    }

    pub(super) fn index(self) -> usize {
        to_usize(self.index)
    }

    pub(super) fn list_index(self) -> Option<usize> {
        self.list.checked_sub(1).map(to_usize)
    }

    /// The order of all but places of one name and list index, and of two names of one fingerprint.
    #[inline]
    pub(super) fn key(&self) -> u64 {
        (u64::from(self.fingerprint) << 32) | u64::from(self.list)
    }
}

/// Fills `places` from `rows` and sorts them by key, equal ones in wire order.
///
/// Says whether any two have one fingerprint.
#[inline(never)]
fn arrange(rows: &[Row], places: &mut [Place]) -> bool {
    match rows.len() {
        // So few are not worth clearing buckets for.
        ..=8 => {
            for ((index, row), place) in (0..).zip(rows).zip(places.iter_mut()) {
                *place = Place::new(row, index);
            }
        }
        9..=64 => deal::<32>(rows, places),
        _ => deal::<256>(rows, places),
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
fn deal<const BUCKETS: usize>(rows: &[Row], places: &mut [Place]) {
    let shift = u32::BITS.saturating_sub(BUCKETS.ilog2());
    let bucket = |row: &Row| to_usize(row.fingerprint.wrapping_shr(shift));
    let mut next = [0_u32; BUCKETS];
    for row in rows {
        if let Some(count) = next.get_mut(bucket(row)) {
            *count = count.wrapping_add(1);
        }
    }
    let mut start: u32 = 0;
    for count in &mut next {
        (*count, start) = (start, start.wrapping_add(*count));
    }
    for (index, row) in (0..).zip(rows) {
        if let Some(next) = next.get_mut(bucket(row))
            && let Some(place) = places.get_mut(to_usize(*next))
        {
            *place = Place::new(row, index);
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::message::{Message, Storage};
    use std::collections::BTreeMap;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    /// Two names of one fingerprint in this storage; any birthday finds some.
    pub(in crate::message) fn colliding<const N: usize>(storage: &mut Storage<N>) -> [String; 2] {
        let key = storage.table().rows.as_ptr().addr() as u64;
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

    pub(in crate::message) fn metadata(names: &[(&str, i32)]) -> String {
        let descriptor = |&(name, index): &(&str, i32)| {
            let rest = r#""shape":[0],"dtype":"bool""#;
            format!(r#"{{"field_name":"{name}",{rest},"list_index":{index}}}"#)
        };
        let descriptors: Vec<_> = names.iter().map(descriptor).collect();
        format!(r#"{{"tensor_descriptors":[{}]}}"#, descriptors.join(","))
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
