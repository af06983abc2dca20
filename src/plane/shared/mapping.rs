//! A segment in memory.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;

use std::fs::File;
use std::io;

use memmap2::{MmapOptions, MmapRaw};

use super::copy::copy_nonoverlapping;
use super::layout::Layout;

/// A segment, mapped. Other processes may write to any byte of it at any time, so that
/// nothing here makes a reference to one, but to the words of windows.
pub(super) struct Mapping {
    map: MmapRaw,
    layout: Layout,
}

/// A window as it lies in the segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    /// What the window is doing: see `windows`.
    pub(super) state: &'a AtomicU64,
    /// How long it is, from its start, in bytes.
    pub(super) len: &'a AtomicU64,
}

impl Mapping {
    /// Maps the whole of a file that is laid out so; with `prefault` all pages of it at once,
    /// not one by one when they are touched first.
    ///
    /// # Errors
    ///
    /// The system's; [`io::ErrorKind::UnexpectedEof`] if the file has not this length.
    pub(super) fn new(file: &File, layout: Layout, prefault: bool) -> io::Result<Self> {
        if usize::try_from(file.metadata()?.len()) != Ok(layout.total_len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut options = MmapOptions::new();
        options.len(layout.total_len());
        if prefault {
            options.populate();
        }
        let map = options.map_raw(file)?;
        Ok(Self { map, layout })
    }

    /// Returns what lies where.
    pub(super) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the words of window `index`.
    pub(super) fn window(&self, index: usize) -> Option<Words<'_>> {
        let offset = self.layout.window_offset(index)?;
        Some(Words {
            state: self.word(offset)?,
            len: self.word(offset.checked_add(size_of::<u64>())?)?,
        })
    }

    /// Returns where the pool lies in this process.
    pub(super) fn pool(&self) -> NonNull<u8> {
        let start = self
            .map
            .as_mut_ptr()
            .wrapping_add(self.layout.pool_offset());
        // Never: a map is not at address 0, and ends before the address space does.
        NonNull::new(start).unwrap_or(NonNull::dangling())
    }

    /// Copies `bytes` to the pool's byte `offset`. This is the one copy that a push makes.
    ///
    /// `false`, and nothing is written, if they reach past the pool.
    pub(super) fn copy_to_pool(&self, offset: usize, bytes: &[u8]) -> bool {
        let end = offset.checked_add(bytes.len());
        if end.is_none_or(|end| end > self.layout.pool_len()) {
            return false;
        }
        let target = self.pool().as_ptr().wrapping_add(offset);
        // SAFETY: `copy_nonoverlapping` asks four things, for bytes.
        // - The source is valid for reads of `bytes.len()`: it is a slice.
        // - The target is valid for writes of as many: `offset + bytes.len() <= pool_len`,
        //   and the pool's bytes are inside the map, which is writable and which `self`
        //   keeps: the layout's invariant, and `new`, which checked the file's length. Nothing
        //   in this process refers to bytes of a pool at this time: a map of another process's
        //   segment is written through this function alone, and of a pool of this process
        //   the window was open, whose owner looks at it only after it closed it.
        // - Both are aligned: they are bytes.
        // - They do not overlap: `bytes` borrows memory that is no part of this map, whose
        //   bytes nobody has a reference to.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        true
    }

    /// Returns the word at `offset`, which is a multiple of 8 before the end of the windows.
    fn word(&self, offset: usize) -> Option<&AtomicU64> {
        let end = offset.checked_add(size_of::<u64>())?;
        if end > self.layout.windows_end() || !offset.is_multiple_of(align_of::<AtomicU64>()) {
            return None;
        }
        let word = self.map.as_mut_ptr().wrapping_add(offset).cast::<u64>();
        // SAFETY: `AtomicU64::from_ptr` asks three things.
        // - `word` is aligned: a map begins at a page, and `offset` is a multiple of 8.
        // - It is valid for reads and writes for as long as the result lives: it is inside the
        //   map, as above, and the result borrows `self`, which keeps the map.
        // - Nobody accesses it otherwise than by atomics: this crate does so here alone. Another
        //   process that writes to it by other means can change its value, at which
        //   nothing is surprised: every value is one of an `AtomicU64`.
        Some(unsafe { AtomicU64::from_ptr(word) })
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Where it is mapped is nobody's business.
        f.debug_struct("Mapping")
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;

    use alloc::format;
    use alloc::vec;
    use std::fs::OpenOptions;

    use super::*;

    /// A file of a pool of 8 KiB in blocks of 4 KiB, which has no name any more.
    fn file(layout: &Layout) -> File {
        let name = format!("tensorwire-mapping-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = file.open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(layout.total_len() as u64).unwrap();
        file
    }

    #[test]
    fn no_copy_and_no_window_reaches_past_its_place() {
        let layout = Layout::new(1, 8192, 4096).unwrap();
        let file = file(&layout);
        let [first, second] = [false, true].map(|prefault| Mapping::new(&file, layout, prefault));
        let (first, second) = (first.unwrap(), second.unwrap());

        let words = first.window(1).unwrap();
        words.state.store(7, Ordering::Relaxed);
        words.len.store(9, Ordering::Relaxed);
        let words = second.window(1).unwrap();
        assert_eq!(words.state.load(Ordering::Relaxed), 7);
        assert_eq!(words.len.load(Ordering::Relaxed), 9);
        assert!(first.window(2).is_none() && first.window(usize::MAX).is_none());

        assert!(first.copy_to_pool(0, &[1; 8192]));
        assert!(first.copy_to_pool(8191, &[2]) && first.copy_to_pool(8192, &[]));
        for (offset, len) in [
            (8192, 1),
            (8191, 2),
            (0, 8193),
            (usize::MAX, 1),
            (usize::MAX, 0),
        ] {
            assert!(!first.copy_to_pool(offset, &vec![3; len]), "{offset} {len}");
        }
        let mut seen = vec![0; 8192];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut seen, 2 << 20).unwrap();
        assert!(seen[..8191].iter().all(|&byte| byte == 1) && seen[8191] == 2);

        file.set_len(layout.total_len() as u64 - 1).unwrap();
        let error = Mapping::new(&file, layout, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
