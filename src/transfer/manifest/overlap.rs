//! Two tensors that share bytes of the slot.

use crate::error::{DecodeError, DecodeErrorKind};
use crate::message::storage::{Row, to_usize};

/// The entries of a manifest, each known to lie in the slot.
#[derive(Clone, Copy)]
pub(super) struct Extents<'s> {
    /// In wire order, as are the offsets.
    pub(super) entries: &'s [Row],
    pub(super) offsets: &'s [usize],
}

impl Extents<'_> {
    /// Refuses tensors that share bytes; those without bytes share none.
    ///
    /// Of several overlaps the error is about the one lowest in the slot, and
    /// names the later tensor on the wire. `by_offset` has room for all.
    pub(super) fn refuse_overlap(&self, by_offset: &mut [u32]) -> Result<(), DecodeError> {
        // Writers lay tensors out as they write them: then nothing is to be sorted.
        if self.ascend() {
            return Ok(());
        }
        let full = (0..)
            .zip(self.entries)
            .filter(|(_, row)| row.layout.byte_len() > 0);
        let mut count: usize = 0;
        for ((index, _), place) in full.zip(by_offset.iter_mut()) {
            *place = index;
            count = count.saturating_add(1);
        }
        let sorted = by_offset.get_mut(..count).unwrap_or_default();
        sorted.sort_unstable_by_key(|&index| (self.extent(index).0, index));

        let mut previous = None;
        for &index in &*sorted {
            let (start, end) = self.extent(index);
            if let Some((other, other_end)) = previous
                && start < other_end
            {
                let end = end.min(other_end);
                return Err(self.error(index, other, start, end));
            }
            previous = Some((index, end));
        }
        Ok(())
    }

    /// Whether each tensor starts where all before it have ended.
    fn ascend(&self) -> bool {
        let mut end = 0;
        for (row, &offset) in self.entries.iter().zip(self.offsets) {
            let byte_len = row.layout.byte_len();
            if byte_len > 0 {
                if offset < end {
                    return false;
                }
                end = offset.saturating_add(byte_len);
            }
        }
        true
    }

    /// First byte and first byte past the end of the tensor at `index`.
    fn extent(&self, index: u32) -> (usize, usize) {
        let index = to_usize(index);
        let start = self.offsets.get(index).copied().unwrap_or_default();
        let row = self.entries.get(index).unwrap_or(&Row::EMPTY);
        // Does not saturate: the end lies in the slot.
        (start, start.saturating_add(row.layout.byte_len()))
    }

    #[cold]
    fn error(&self, a: u32, b: u32, start: usize, end: usize) -> DecodeError {
        let (other, later) = (to_usize(a.min(b)), to_usize(a.max(b)));
        let row = self.entries.get(later).unwrap_or(&Row::EMPTY);
        row.error(later, DecodeErrorKind::Overlap { other, start, end })
    }
}
