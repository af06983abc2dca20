//! What lies where in a segment.

use core::mem::offset_of;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::name::VERSION;
use crate::convert::to_u64;

/// The first bytes of every segment.
const MAGIC: [u8; 8] = *b"TWSHMSEG";

/// Where the windows begin: a page for the header.
const WINDOWS_OFFSET: u64 = 4096;

/// A window has a cache line to itself, so that two writers do not share one.
const WINDOW_LEN: u64 = 64;

/// The pool begins at a multiple of this: a huge page. What lies between is a hole in
/// the file and takes no memory.
const POOL_ALIGNMENT: u64 = 2 << 20;

/// Addresses of a pool are below this, counted from its base.
pub(super) const MAX_POOL_LEN: u64 = 1 << ADDRESS_BITS;

/// The bits of an address that count within a pool; the ones above are the pool's
/// number in its session, from 1.
const ADDRESS_BITS: u32 = 44;

/// The highest number that a pool can have, so that no pool reaches past 2^64.
pub(super) const MAX_NUMBER: u32 = (1 << (u64::BITS - ADDRESS_BITS)) - 2;

/// Returns the number of the pool that `address` is in, and where in it.
pub(super) fn split_address(address: u64) -> (u32, u64) {
    let number = address >> ADDRESS_BITS;
    // 20 bits are left.
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    (number, address % MAX_POOL_LEN)
}

/// The first bytes of a segment, as they lie there, in the byte order of the host.
#[derive(Clone, Copy, Debug, Eq, FromBytes, Immutable, IntoBytes, KnownLayout, PartialEq)]
#[repr(C)]
pub(super) struct Header {
    magic: [u8; 8],
    version: u64,
    base: u64,
    pool_len: u64,
    min_block: u64,
    windows_offset: u64,
    pool_offset: u64,
    total_len: u64,
}

/// The length of a header in bytes.
pub(super) const HEADER_LEN: usize = size_of::<Header>();

/// As the docs of the module draw it.
const _: () = {
    assert!(HEADER_LEN == 64);
    assert!(offset_of!(Header, version) == 8);
    assert!(offset_of!(Header, base) == 16);
    assert!(offset_of!(Header, pool_len) == 24);
    assert!(offset_of!(Header, min_block) == 32);
    assert!(offset_of!(Header, windows_offset) == 40);
    assert!(offset_of!(Header, pool_offset) == 48);
    assert!(offset_of!(Header, total_len) == 56);
};

/// A checked header: what lies where in a segment, as private numbers.
///
/// # Invariant
///
/// `WINDOWS_OFFSET + windows * WINDOW_LEN <= pool_offset`, all of it below `total_len`,
/// `pool_offset + pool_len == total_len <= isize::MAX`, and `pool_offset` is a multiple of 2 MiB.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Layout {
    number: u32,
    min_block: u64,
    windows: usize,
    windows_end: usize,
    pool_offset: usize,
    pool_len: usize,
    total_len: usize,
}

impl Layout {
    /// Lays out the segment of a pool of `pool_len` bytes, pool `number` of its session.
    ///
    /// There is none for a pool of no bytes or of more than 2^44, for blocks that are no
    /// power of two or make no whole number, and for numbers past [`MAX_NUMBER`] or 0.
    pub(super) fn new(number: u32, pool_len: u64, min_block: u64) -> Option<Self> {
        let in_range = pool_len > 0 && pool_len <= MAX_POOL_LEN && min_block.is_power_of_two();
        if !in_range || !pool_len.is_multiple_of(min_block) || !(1..=MAX_NUMBER).contains(&number) {
            return None;
        }
        let windows = pool_len.checked_div(min_block)?;
        let windows_end = windows
            .checked_mul(WINDOW_LEN)?
            .checked_add(WINDOWS_OFFSET)?;
        let pool_offset = windows_end.checked_next_multiple_of(POOL_ALIGNMENT)?;
        let total_len = usize::try_from(pool_offset.checked_add(pool_len)?).ok()?;
        isize::try_from(total_len).ok()?;
        Some(Self {
            number,
            min_block,
            windows: usize::try_from(windows).ok()?,
            windows_end: usize::try_from(windows_end).ok()?,
            pool_offset: usize::try_from(pool_offset).ok()?,
            pool_len: usize::try_from(pool_len).ok()?,
            total_len,
        })
    }

    /// Checks a private copy of the header of pool `number`, in a file of `file_len` bytes.
    ///
    /// A header has one spelling for each pool; any other is refused.
    pub(super) fn decode(header: &[u8; HEADER_LEN], number: u32, file_len: u64) -> Option<Self> {
        let header = Header::read_from_bytes(header).ok()?;
        let layout = Self::new(number, header.pool_len, header.min_block)?;
        (layout.header() == header && header.total_len == file_len).then_some(layout)
    }

    /// Returns the header that says all this.
    pub(super) fn header(&self) -> Header {
        Header {
            magic: MAGIC,
            version: u64::from(VERSION),
            base: self.base(),
            pool_len: to_u64(self.pool_len),
            min_block: self.min_block,
            windows_offset: WINDOWS_OFFSET,
            pool_offset: to_u64(self.pool_offset),
            total_len: to_u64(self.total_len),
        }
    }

    /// Returns the number of the pool in its session.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the address of the pool's first byte: no pointer, a number of this plane's own.
    pub(super) fn base(&self) -> u64 {
        u64::from(self.number) << ADDRESS_BITS
    }

    /// Returns where window `index` lies, its 16 bytes at a multiple of 64.
    pub(super) fn window_offset(&self, index: usize) -> Option<usize> {
        if index >= self.windows {
            return None;
        }
        let offset = to_u64(index)
            .checked_mul(WINDOW_LEN)?
            .checked_add(WINDOWS_OFFSET)?;
        usize::try_from(offset).ok()
    }

    /// Returns the window that covers a pool's byte if it is of one block.
    pub(super) fn window_of(&self, pool_offset: usize) -> usize {
        let index = to_u64(pool_offset).checked_div(self.min_block).unwrap_or(0);
        usize::try_from(index).unwrap_or(usize::MAX)
    }

    /// Returns the first byte of the pool that window `index` covers.
    pub(super) fn start_of(&self, index: usize) -> Option<usize> {
        let start = to_u64(index).checked_mul(self.min_block)?;
        usize::try_from(start).ok()
    }

    /// Returns how many windows there are.
    pub(super) const fn windows(&self) -> usize {
        self.windows
    }

    /// Returns where the last window ends.
    pub(super) const fn windows_end(&self) -> usize {
        self.windows_end
    }

    /// Returns where the pool lies in the segment.
    pub(super) const fn pool_offset(&self) -> usize {
        self.pool_offset
    }

    /// Returns the length of the pool in bytes.
    pub(super) const fn pool_len(&self) -> usize {
        self.pool_len
    }

    /// Returns the length of the segment in bytes.
    pub(super) const fn total_len(&self) -> usize {
        self.total_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn bytes(header: &Header) -> [u8; HEADER_LEN] {
        header.as_bytes().try_into().unwrap()
    }

    #[test]
    fn a_segment_is_laid_out_as_its_header_says() {
        let layout = Layout::new(3, 256 * MIB, MIB).unwrap();
        assert_eq!((layout.windows(), layout.window_of(255 << 20)), (256, 255));
        assert_eq!(layout.window_offset(0), Some(4096));
        assert_eq!(layout.window_offset(255), Some(4096 + 255 * 64));
        assert_eq!(layout.window_offset(256), None);
        assert_eq!(
            (layout.windows_end(), layout.pool_offset()),
            (20480, 2 << 20)
        );
        assert_eq!((layout.base(), layout.total_len()), (3 << 44, 258 << 20));
        assert_eq!(split_address(layout.base() + 77), (3, 77));
        assert_eq!(split_address(u64::MAX), (MAX_NUMBER + 1, MAX_POOL_LEN - 1));
        assert_eq!(split_address(77), (0, 77));
        let decoded = Layout::decode(&bytes(&layout.header()), 3, 258 * MIB);
        assert_eq!(decoded, Some(layout));
        // More windows than fit into the first 2 MiB push the pool back.
        let layout = Layout::new(1, 4 * MIB, 64).unwrap();
        assert_eq!(layout.pool_offset(), 6 << 20);
    }

    #[test]
    fn no_segment_has_sizes_that_do_not_fit() {
        for (number, pool_len, min_block) in [
            (0, MIB, MIB),
            (MAX_NUMBER + 1, MIB, MIB),
            (1, 0, MIB),
            (1, MIB, 0),
            (1, 3 * MIB, 3 * MIB),
            (1, MIB + 1, MIB),
            (1, MIB, 2 * MIB),
            (1, MAX_POOL_LEN + MIB, MIB),
            (1, u64::MAX, MIB),
            (1, 1 << 63, 1 << 63),
        ] {
            let layout = Layout::new(number, pool_len, min_block);
            assert_eq!(layout, None, "{number} {pool_len} {min_block}");
        }
        assert!(Layout::new(MAX_NUMBER, MAX_POOL_LEN, MIB).is_some());
    }

    #[test]
    fn a_header_with_any_byte_changed_is_refused() {
        let layout = Layout::new(1, 2 * MIB, MIB).unwrap();
        let good = bytes(&layout.header());
        let file_len = 4 * MIB;
        assert_eq!(Layout::decode(&good, 1, file_len), Some(layout));
        for at in 0..HEADER_LEN {
            for bit in 0..8 {
                let mut header = good;
                header[at] ^= 1 << bit;
                let decoded = Layout::decode(&header, 1, file_len);
                assert_eq!(decoded, None, "bit {bit} of byte {at}");
            }
        }
        for (number, len) in [(2, file_len), (1, file_len - 1), (1, file_len + 1), (1, 0)] {
            assert_eq!(Layout::decode(&good, number, len), None, "{number} {len}");
        }
    }
}
