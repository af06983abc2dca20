//! Where a manifest's entries are kept: memory that the caller brings.

use crate::message::order::Place;
use crate::message::storage::Row;

/// Room for the entries of one manifest, up to `N`.
///
/// Holds numbers only and borrows nothing: one storage serves manifest after
/// manifest, on the stack (84 bytes an entry) or in a `static`.
#[derive(Clone, Debug)]
pub struct Storage<const N: usize> {
    entries: [Row; N],
    order: [Place; N],
    offsets: [usize; N],
    by_offset: [u32; N],
}

impl<const N: usize> Storage<N> {
    /// Makes empty storage.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: [Row::EMPTY; N],
            order: [Place::EMPTY; N],
            offsets: [0; N],
            by_offset: [0; N],
        }
    }

    pub(super) const fn table(&mut self) -> Table<'_> {
        Table {
            entries: &mut self.entries,
            order: &mut self.order,
            offsets: &mut self.offsets,
            by_offset: &mut self.by_offset,
        }
    }
}

impl<const N: usize> Default for Storage<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Storage whose size is not known to the compiler; all parts have one length.
#[derive(Debug)]
pub(super) struct Table<'s> {
    /// In wire order, as are the offsets.
    pub(super) entries: &'s mut [Row],
    /// Where the entries come by name and list index.
    pub(super) order: &'s mut [Place],
    pub(super) offsets: &'s mut [usize],
    /// Where they come by offset; of use only while a manifest is checked.
    pub(super) by_offset: &'s mut [u32],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_the_room_that_is_told() {
        assert!(size_of::<Storage<64>>() <= 64 * 84);
    }
}
