//! Which memory of the device each tensor of a message gets.

use alloc::vec::Vec;

/// Where the tensors of one message go: large ones each in a group of its own, small ones one after
/// the other in a common one.
///
/// Each starts at a multiple of [`ALIGN`] of its group. Places are in the order of the tensors, groups in
/// that of their first.
///
/// ```text
///  tensors      a: 10   b: 0   c: 9000   d: 300      (batch_bytes = 4096)
///  group 0      a ......... d        556 bytes: a at 0, d at 256
///  group 1      b                    0 bytes
///  group 2      c                    9000 bytes
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Plan {
    pub(crate) groups: Vec<Group>,
    pub(crate) places: Vec<Place>,
}

/// Memory that is allocated as one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Group {
    /// In bytes; 0 for tensors without a byte.
    pub(crate) len: usize,
    /// The first tensor in it.
    pub(crate) first: usize,
}

/// The place of a tensor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    pub(crate) group: usize,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Plan {
    /// Plans for tensors of these lengths in bytes; those of up to `batch_bytes` share a group.
    ///
    /// `None` if the sum passes `isize::MAX`.
    pub(crate) fn new(lens: impl IntoIterator<Item = usize>, batch_bytes: usize) -> Option<Self> {
        let lens = lens.into_iter();
        let mut plan = Self {
            groups: Vec::new(),
            places: Vec::with_capacity(lens.size_hint().0),
        };
        let mut total = 0_usize;
        let (mut common, mut empty) = (None, None);
        for (index, len) in lens.enumerate() {
            let mut own = None;
            let shared = match len {
                0 => &mut empty,
                small if small <= batch_bytes => &mut common,
                _ => &mut own,
            };
            let number = *shared.get_or_insert(plan.groups.len());
            if number == plan.groups.len() {
                let (len, first) = (0, index);
                plan.groups.push(Group { len, first });
            }
            let group = plan.groups.get_mut(number)?;
            let offset = group.len.checked_next_multiple_of(ALIGN)?;
            let end = offset.checked_add(len)?;
            total = total.checked_add(end.checked_sub(group.len)?)?;
            group.len = end;
            plan.places.push(Place {
                group: number,
                offset,
                len,
            });
        }
        isize::try_from(total).is_ok().then_some(plan)
    }

    /// The tensors, those of one group one after the other: the order in which neighbours can be copied together.
    #[cfg(any(feature = "cuda", test))]
    pub(crate) fn by_group(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by_key(|&index| self.places.get(index).map(|place| place.group));
        order
    }
}

/// Where tensors start, in device memory and in staging: at multiples of this many bytes.
pub(crate) const ALIGN: usize = 256;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// (lengths, batch_bytes, groups as (len, first), places as (group, offset))
    #[allow(clippy::type_complexity)]
    const PLANS: &[(&[usize], usize, &[(usize, usize)], &[(usize, usize)])] = &[
        (&[], 4096, &[], &[]),
        (&[0], 4096, &[(0, 0)], &[(0, 0)]),
        (&[0, 0], 0, &[(0, 0)], &[(0, 0), (0, 0)]),
        (&[4096], 4096, &[(4096, 0)], &[(0, 0)]),
        (
            &[10, 0, 9000, 300],
            4096,
            &[(556, 0), (0, 1), (9000, 2)],
            &[(0, 0), (1, 0), (2, 0), (0, 256)],
        ),
        (
            &[256, 257, 1],
            4096,
            &[(769, 0)],
            &[(0, 0), (0, 256), (0, 768)],
        ),
        (&[5, 5], 0, &[(5, 0), (5, 1)], &[(0, 0), (1, 0)]),
        (
            &[4097, 5, 4097],
            4096,
            &[(4097, 0), (5, 1), (4097, 2)],
            &[(0, 0), (1, 0), (2, 0)],
        ),
    ];

    #[test]
    fn small_tensors_share_memory_and_large_ones_do_not() {
        for &(lens, batch_bytes, groups, places) in PLANS {
            let plan = Plan::new(lens.iter().copied(), batch_bytes).unwrap();
            let (actual, expected) = (&plan.groups, groups);
            let actual: Vec<_> = actual
                .iter()
                .map(|group| (group.len, group.first))
                .collect();
            assert_eq!(actual, expected, "{lens:?}");
            let actual = plan.places.iter();
            let actual: Vec<_> = actual.map(|place| (place.group, place.offset)).collect();
            assert_eq!(actual, places, "{lens:?}");
            let actual: Vec<_> = plan.places.iter().map(|place| place.len).collect();
            assert_eq!(actual, lens);
        }
    }

    #[test]
    fn sums_that_no_memory_holds_are_refused() {
        let most = isize::MAX.unsigned_abs();
        for (lens, batch_bytes) in [
            (vec![most + 1], 0),
            (vec![most, 1], 0),
            (vec![most, 1], usize::MAX),
            (vec![usize::MAX, 1], usize::MAX),
            (vec![usize::MAX, usize::MAX], 0),
        ] {
            assert_eq!(
                Plan::new(lens.iter().copied(), batch_bytes),
                None,
                "{lens:?}"
            );
        }
        assert!(Plan::new([most], 0).is_some());
    }

    #[test]
    fn the_members_of_a_group_come_one_after_the_other() {
        let plan = Plan::new([1, 9000, 2, 0, 9001, 3], 4096).unwrap();
        assert_eq!(plan.by_group(), [0, 2, 5, 1, 3, 4]);
    }
}
