//! Aligned memory that is written once.

use core::fmt;
use core::ops::Range;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ALIGN;

/// Memory for `len` bytes that starts at a multiple of [`ALIGN`].
///
/// It is reserved at once and filled from front to back: no byte of it is touched, and no page taken, before there
/// is something to put there.
pub(super) struct Memory {
    /// Its capacity holds all from the beginning: were it to grow, the bytes would move.
    bytes: Vec<u8>,
    /// Where in `bytes` the first aligned one is.
    start: usize,
    len: usize,
}

impl Memory {
    /// Reserves `len` bytes; `None` if there is no memory for them.
    pub(super) fn new(len: usize) -> Option<Self> {
        let mut bytes: Vec<u8> = Vec::new();
        let mut start = 0;
        if len > 0 {
            bytes.try_reserve_exact(len.checked_add(ALIGN)?).ok()?;
            start = bytes.as_ptr().addr().wrapping_neg() % ALIGN;
            bytes.resize(start, 0);
        }
        Some(Self { bytes, start, len })
    }

    /// Returns the bytes in `range`, to be written; zeros where there were none before.
    pub(super) fn room(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        let range = self.within(range)?;
        if self.bytes.len() < range.end {
            self.bytes.resize(range.end, 0);
        }
        self.bytes.get_mut(range)
    }

    /// Puts `source` at `offset`.
    pub(super) fn write(&mut self, offset: usize, source: &[u8]) -> Option<()> {
        let range = self.within(offset..offset.checked_add(source.len())?)?;
        if self.bytes.len() < range.start {
            self.bytes.resize(range.start, 0);
        }
        if self.bytes.len() == range.start {
            // Without zeros first.
            self.bytes.extend_from_slice(source);
            return Some(());
        }
        let end = offset.checked_add(source.len())?;
        self.room(offset..end)?.copy_from_slice(source);
        Some(())
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        let range = self.within(range);
        range
            .and_then(|range| self.bytes.get(range))
            .unwrap_or_default()
    }

    /// The same range in `bytes`, whose capacity it does not pass.
    fn within(&self, range: Range<usize>) -> Option<Range<usize>> {
        if range.end > self.len {
            return None;
        }
        let start = range.start.checked_add(self.start)?;
        Some(start..range.end.checked_add(self.start)?)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// A tensor's share in memory: a frame to send.
#[derive(Clone, Debug)]
pub(super) struct Share {
    memory: Arc<Memory>,
    range: Range<usize>,
}

impl Share {
    pub(super) const fn new(memory: Arc<Memory>, range: Range<usize>) -> Self {
        Self { memory, range }
    }
}

impl AsRef<[u8]> for Share {
    fn as_ref(&self) -> &[u8] {
        self.memory.bytes(self.range.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_aligned_and_does_not_move_while_it_is_filled() {
        for len in [1, 255, 256, 257, 100_000] {
            let mut memory = Memory::new(len).unwrap();
            let first = memory.room(0..1).unwrap().as_ptr().addr();
            assert_eq!(first % ALIGN, 0, "{len}");
            memory.room(0..len).unwrap().fill(7);
            assert_eq!(memory.bytes(0..len).as_ptr().addr(), first, "{len}");
            assert_eq!(memory.bytes(0..len), alloc::vec![7; len]);
        }
    }

    #[test]
    fn bytes_are_written_in_any_order_and_gaps_are_zeros() {
        let mut memory = Memory::new(12).unwrap();
        memory.write(4, b"cd").unwrap();
        memory.write(0, b"a").unwrap();
        memory.write(5, b"efg").unwrap();
        memory.room(9..12).unwrap().copy_from_slice(b"xyz");
        assert_eq!(memory.bytes(0..12), b"a\0\0\0cefg\0xyz");
    }

    #[test]
    fn nothing_is_written_past_its_end() {
        let mut memory = Memory::new(4).unwrap();
        assert!(memory.write(1, b"abcd").is_none());
        assert!(memory.write(usize::MAX, b"ab").is_none());
        assert!(memory.room(3..5).is_none());
        assert_eq!(memory.bytes(3..5), b"");
        assert!(memory.write(4, b"").is_some());
        assert_eq!(memory.bytes(4..4), b"");
    }

    #[test]
    fn memory_that_is_not_there_is_refused() {
        assert!(Memory::new(usize::MAX).is_none());
        assert!(Memory::new(usize::MAX >> 1).is_none());
    }
}
