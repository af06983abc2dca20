//! Which bytes of a slot go where on the device.

use core::ops::Range;

use alloc::vec::Vec;

use crate::device::{ALIGN, Place};
use crate::transfer::manifest::ALIGNMENT;

/// The copies that bring the tensors of a slot to the device.
///
/// Large tensors get memory each, small ones share some. Small ones that are neighbours
/// in the slot keep their distances, and come in one copy with the gaps between them.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Runs {
    /// How many bytes each group of tensors needs.
    pub(super) groups: Vec<usize>,
    /// Ascending in the slot.
    pub(super) copies: Vec<Run>,
    /// In wire order. Of a tensor without bytes, the place is none.
    pub(super) places: Vec<Option<Place>>,
}

/// Bytes in a row, in the slot as on the device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Run {
    /// From the start of the slot.
    pub(super) source: usize,
    pub(super) group: usize,
    /// From the start of the group, a multiple of [`ALIGN`].
    pub(super) target: usize,
    pub(super) len: usize,
}

impl Runs {
    /// Plans for tensors that lie at these places of the slot, no two of which share a byte; those of up to
    /// `batch_bytes` are small.
    pub(super) fn new(ranges: impl IntoIterator<Item = Range<usize>>, batch_bytes: usize) -> Self {
        let ranges: Vec<_> = ranges.into_iter().collect();
        let mut ascending: Vec<_> = ranges.iter().cloned().enumerate().collect();
        ascending.retain(|(_, range)| !range.is_empty());
        ascending.sort_unstable_by_key(|(_, range)| range.start);

        let mut runs = Self {
            places: ranges.iter().map(|_| None).collect(),
            ..Self::default()
        };
        let mut common = None;
        let mut last: Option<Run> = None;
        for (index, range) in ascending {
            let is_small = range.len() <= batch_bytes;
            let neighbour = last.filter(|last| is_small && last.is_neighbour(&range));
            let place = match neighbour {
                Some(before) => runs.lengthen(before, &range),
                None => {
                    let group = match common {
                        Some(group) if is_small => group,
                        _ => runs.add_group(),
                    };
                    if is_small {
                        common = Some(group);
                    }
                    runs.add_run(group, &range)
                }
            };
            if is_small {
                last = runs.copies.last().copied();
            } else {
                last = None;
            }
            if let Some(entry) = runs.places.get_mut(index) {
                *entry = Some(place);
            }
        }
        runs
    }

    /// The first tensor, in wire order, that comes with `run`.
    pub(super) fn first_of(&self, run: &Run) -> usize {
        let is_inside = |place: &Option<Place>| {
            place.as_ref().is_some_and(|place| {
                let distance = place.offset.checked_sub(run.target);
                place.group == run.group && distance.is_some_and(|distance| distance < run.len)
            })
        };
        self.places.iter().position(is_inside).unwrap_or_default()
    }

    fn add_group(&mut self) -> usize {
        self.groups.push(0);
        self.groups.len().saturating_sub(1)
    }

    /// Puts `range` behind what is in `group`.
    fn add_run(&mut self, group: usize, range: &Range<usize>) -> Place {
        let len = range.len();
        let used = self.groups.get(group).copied().unwrap_or_default();
        // No sum saturates: a group has no more than the bytes of the slot, and less than 256 for each tensor.
        let target = used.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX);
        self.copies.push(Run {
            source: range.start,
            group,
            target,
            len,
        });
        self.grow(group, target.saturating_add(len));
        Place {
            group,
            offset: target,
            len,
        }
    }

    /// Puts `range` in the last run, which is `before`.
    fn lengthen(&mut self, before: Run, range: &Range<usize>) -> Place {
        if let Some(run) = self.copies.last_mut() {
            run.len = range.end.saturating_sub(run.source);
        }
        let distance = range.start.saturating_sub(before.source);
        let offset = before.target.saturating_add(distance);
        self.grow(before.group, offset.saturating_add(range.len()));
        Place {
            group: before.group,
            offset,
            len: range.len(),
        }
    }

    fn grow(&mut self, group: usize, len: usize) {
        if let Some(group) = self.groups.get_mut(group) {
            *group = len;
        }
    }
}

impl Run {
    /// Whether `range`, which lies behind it, is near, and aligned on the device if the distance is kept.
    fn is_neighbour(&self, range: &Range<usize>) -> bool {
        let end = self.source.saturating_add(self.len);
        let gap = range.start.saturating_sub(end);
        let distance = range.start.saturating_sub(self.source);
        gap < ALIGNMENT && distance.is_multiple_of(ALIGN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it shows; where the tensors lie; what is planned: groups, copies, places.
    struct Case(
        &'static str,
        &'static [Range<usize>],
        &'static [usize],
        &'static [Run],
        &'static [Option<Place>],
    );

    const fn run(source: usize, group: usize, target: usize, len: usize) -> Run {
        Run {
            source,
            group,
            target,
            len,
        }
    }

    const fn place(group: usize, offset: usize, len: usize) -> Option<Place> {
        Some(Place { group, offset, len })
    }

    const CASES: &[Case] = &[
        Case("none", &[], &[], &[], &[]),
        Case("without bytes", &[7..7, 512..512], &[], &[], &[None, None]),
        Case(
            "as the writer lays them out",
            &[0..100, 512..1024, 1024..1030],
            &[1030],
            &[run(0, 0, 0, 1030)],
            &[place(0, 0, 100), place(0, 512, 512), place(0, 1024, 6)],
        ),
        Case(
            "the other way round on the wire",
            &[1024..1030, 0..0, 512..1024, 0..100],
            &[1030],
            &[run(0, 0, 0, 1030)],
            &[
                place(0, 1024, 6),
                None,
                place(0, 512, 512),
                place(0, 0, 100),
            ],
        ),
        Case(
            "a gap of 511 and one of 512",
            &[0..1, 512..1024, 1536..1540],
            &[1028],
            &[run(0, 0, 0, 1024), run(1536, 0, 1024, 4)],
            &[place(0, 0, 1), place(0, 512, 512), place(0, 1024, 4)],
        ),
        Case(
            "odd distances",
            &[3..10, 11..20, 267..270],
            &[515],
            &[run(3, 0, 0, 7), run(11, 0, 256, 259)],
            &[place(0, 0, 7), place(0, 256, 9), place(0, 512, 3)],
        ),
        Case(
            "a large one between small ones",
            &[0..8, 512..2048, 2048..2050],
            &[258, 1536],
            &[run(0, 0, 0, 8), run(512, 1, 0, 1536), run(2048, 0, 256, 2)],
            &[place(0, 0, 8), place(1, 0, 1536), place(0, 256, 2)],
        ),
        Case(
            "two large ones",
            &[2048..3073, 0..1025],
            &[1025, 1025],
            &[run(0, 0, 0, 1025), run(2048, 1, 0, 1025)],
            &[place(1, 0, 1025), place(0, 0, 1025)],
        ),
    ];

    #[test]
    fn neighbours_come_in_one_copy_and_large_tensors_alone() {
        for &Case(name, ranges, groups, copies, places) in CASES {
            let runs = Runs::new(ranges.iter().cloned(), 1024);
            let expected = Runs {
                groups: groups.into(),
                copies: copies.into(),
                places: places.into(),
            };
            assert_eq!(runs, expected, "{name}");
        }
    }

    #[test]
    fn every_byte_of_a_tensor_is_copied_to_its_place() {
        // Lengths and gaps that are all different modulo 512.
        let mut start = 0;
        let ranges: Vec<_> = (0..600_usize)
            .map(|index| {
                let range = start..start + index * 37 % 3000;
                start = range.end + index * index * 13 % 1400 / 256 * 256;
                range
            })
            .collect();
        let slot: Vec<u8> = (0..start).map(|at| (at % 251) as u8).collect();
        for batch_bytes in [0, 1000, usize::MAX] {
            let runs = Runs::new(ranges.iter().cloned(), batch_bytes);
            let mut groups: Vec<_> = runs.groups.iter().map(|&len| std::vec![0; len]).collect();
            for run in &runs.copies {
                assert_eq!(run.target % ALIGN, 0);
                let target = &mut groups[run.group][run.target..run.target + run.len];
                target.copy_from_slice(&slot[run.source..run.source + run.len]);
            }
            for (range, place) in ranges.iter().zip(&runs.places) {
                let Some(place) = place else {
                    assert!(range.is_empty());
                    continue;
                };
                assert_eq!(place.offset % ALIGN, 0);
                let found = &groups[place.group][place.offset..place.offset + place.len];
                assert_eq!(found, &slot[range.clone()], "{range:?} of {batch_bytes}");
            }
        }
    }
}
