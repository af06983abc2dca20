//! Header and table: where the frames lie.

use core::fmt;
use core::iter::FusedIterator;
use core::ops::Range;
use core::slice;

use zerocopy::FromBytes;

use super::{
    ENTRY_LEN, Entry, Error, ErrorKind, FRAMES_OFFSET, HEADER_LEN, Header, LENGTH_OFFSET, MAGIC,
    TOTAL_LEN_OFFSET, VERSION, VERSION_OFFSET, aligned, table_end,
};
use crate::convert::to_u64;

/// A checked header and table, apart from the frames.
///
/// It works on a private copy of the first bytes where the rest lies in memory
/// that others can write: what was checked is then what is used.
///
/// # Examples
///
/// ```
/// use tensorwire::bundle::{HEADER_LEN, Index, encode_into};
///
/// let mut shared = [0; 200];
/// let total = encode_into(&["metadata", "payload"], &mut shared)?.len();
///
/// let mut copy = [0; 64];
/// copy[..HEADER_LEN].copy_from_slice(&shared[..HEADER_LEN]);
/// let length = Index::len_from_header(&copy[..HEADER_LEN], total)?;
/// copy[HEADER_LEN..length].copy_from_slice(&shared[HEADER_LEN..length]);
///
/// let index = Index::decode(&copy[..length], total)?;
/// index.check_padding(&shared[..total])?;
/// assert!(index.ranges().eq([64..72, 128..135]));
/// # Ok::<(), tensorwire::bundle::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Index<'a> {
    table: &'a [Entry],
    total_len: usize,
}

impl<'a> Index<'a> {
    /// Returns how many bytes header and table take, at most `total`.
    ///
    /// So a reader of shared memory knows how much to copy. `header` begins with
    /// the first [`HEADER_LEN`] bytes of a bundle; `total` is how many bytes there are
    /// in all, which is to be the bundle and nothing else.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ErrorKind::Truncated), [`BadMagic`](ErrorKind::BadMagic),
    /// [`UnknownVersion`](ErrorKind::UnknownVersion),
    /// [`TrailingBytes`](ErrorKind::TrailingBytes), [`NoFrames`](ErrorKind::NoFrames),
    /// [`FrameCount`](ErrorKind::FrameCount), in this order.
    pub fn len_from_header(header: &[u8], total: usize) -> Result<usize, Error> {
        Ok(Prefix::read(header, total)?.table_end)
    }

    /// Checks header and table.
    ///
    /// `prefix` begins with them; `total` is the length of the whole bundle, or of
    /// the body that is to be one and nothing else.
    ///
    /// # Errors
    ///
    /// As [`len_from_header`](Self::len_from_header), or `Truncated` if `prefix` ends
    /// within the table; then [`FrameOffset`](ErrorKind::FrameOffset) and
    /// [`FrameLength`](ErrorKind::FrameLength) by frame, and
    /// [`TotalLength`](ErrorKind::TotalLength).
    pub fn decode(prefix: &'a [u8], total: usize) -> Result<Self, Error> {
        let Prefix { frames, table_end } = Prefix::read(prefix, total)?;
        let table = prefix.get(HEADER_LEN..table_end);
        let table =
            table.and_then(|table| <[Entry]>::ref_from_bytes_with_elems(table, frames).ok());
        let Some(table) = table else {
            let (expected, actual) = (to_u64(table_end), prefix.len());
            let kind = ErrorKind::Truncated { expected, actual };
            return Err(Error::new(kind, actual));
        };
        let mut end = table_end;
        for (index, entry) in table.iter().enumerate() {
            end = entry.end(end, total).map_err(|kind| {
                let entry = entry_offset(index);
                let offset = match kind {
                    ErrorKind::FrameLength { .. } => entry.saturating_add(LENGTH_OFFSET),
                    ErrorKind::TotalLength { .. } => TOTAL_LEN_OFFSET,
                    _ => entry,
                };
                Error::new(kind, offset)
            })?;
        }
        if end != total {
            let (expected, actual) = (to_u64(end), to_u64(total));
            let kind = ErrorKind::TotalLength { expected, actual };
            return Err(Error::new(kind, TOTAL_LEN_OFFSET));
        }
        Ok(Self {
            table,
            total_len: total,
        })
    }

    /// Takes the table of `frames` entries that was decoded from `bytes` before.
    #[cfg(feature = "memmap2")]
    pub(super) fn checked_before(bytes: &'a [u8], frames: usize) -> Self {
        let table = bytes.get(HEADER_LEN..).unwrap_or_default();
        let table = <[Entry]>::ref_from_prefix_with_elems(table, frames);
        Self {
            table: table.map_or(&[], |(table, _)| table),
            total_len: bytes.len(),
        }
    }

    /// Returns how many frames there are: at least one.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether there are no frames, which is never so.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the length of the whole bundle in bytes.
    #[must_use]
    pub const fn total_len(&self) -> usize {
        self.total_len
    }

    /// Returns where the frame at `index` lies, from the start of the bundle and
    /// within [`total_len`](Self::total_len), or `None` past the last one.
    #[must_use]
    pub fn range(&self, index: usize) -> Option<Range<usize>> {
        self.table.get(index).map(Entry::range)
    }

    /// Returns where the frames lie, in order: ascending, and not overlapping.
    #[must_use]
    pub fn ranges(&self) -> Ranges<'a> {
        Ranges {
            entries: self.table.iter(),
        }
    }

    /// Checks that the padding in `body` is zero, reading each byte of it once and no other.
    ///
    /// `body` begins with the bundle.
    ///
    /// # Errors
    ///
    /// [`NonZeroPadding`](ErrorKind::NonZeroPadding) with the first such byte;
    /// [`Truncated`](ErrorKind::Truncated) if `body` is shorter than
    /// [`total_len`](Self::total_len).
    pub fn check_padding(&self, body: &[u8]) -> Result<(), Error> {
        let Some(body) = body.get(..self.total_len) else {
            let (expected, actual) = (to_u64(self.total_len), body.len());
            let kind = ErrorKind::Truncated { expected, actual };
            return Err(Error::new(kind, actual));
        };
        let mut end = entry_offset(self.len());
        for range in self.ranges() {
            let padding = body.get(end..range.start).unwrap_or_default();
            if let Some((at, found)) = first_non_zero(padding) {
                let kind = ErrorKind::NonZeroPadding { found };
                return Err(Error::new(kind, end.saturating_add(at)));
            }
            end = range.end;
        }
        Ok(())
    }
}

impl fmt::Debug for Index<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("len", &self.len())
            .field("total_len", &self.total_len)
            .finish()
    }
}

/// Where the frames of a bundle lie, in order.
#[derive(Clone)]
pub struct Ranges<'a> {
    entries: slice::Iter<'a, Entry>,
}

impl fmt::Debug for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranges").field("len", &self.len()).finish()
    }
}

impl Iterator for Ranges<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        self.entries.next().map(Entry::range)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl DoubleEndedIterator for Ranges<'_> {
    fn next_back(&mut self) -> Option<Range<usize>> {
        self.entries.next_back().map(Entry::range)
    }
}

impl ExactSizeIterator for Ranges<'_> {}

impl FusedIterator for Ranges<'_> {}

/// What the header says, checked against how many bytes there are.
struct Prefix {
    frames: usize,
    /// `HEADER_LEN + frames * ENTRY_LEN`, at most the bytes there are.
    table_end: usize,
}

impl Prefix {
    fn read(prefix: &[u8], total: usize) -> Result<Self, Error> {
        let prefix = prefix.get(..total).unwrap_or(prefix);
        let Ok((header, _)) = Header::ref_from_prefix(prefix) else {
            let (expected, actual) = (to_u64(HEADER_LEN), prefix.len());
            let kind = ErrorKind::Truncated { expected, actual };
            return Err(Error::new(kind, actual));
        };
        if header.magic != MAGIC {
            let pairs = header.magic.iter().zip(MAGIC);
            let same = pairs.take_while(|&(found, expected)| *found == expected);
            return Err(Error::new(ErrorKind::BadMagic, same.count()));
        }
        if header.version != VERSION {
            let actual = header.version.get();
            let kind = ErrorKind::UnknownVersion { actual };
            return Err(Error::new(kind, VERSION_OFFSET));
        }
        let expected = header.total_len.get();
        let actual = total;
        if expected > to_u64(total) {
            let kind = ErrorKind::Truncated { expected, actual };
            return Err(Error::new(kind, total));
        }
        if expected < to_u64(total) {
            let kind = ErrorKind::TrailingBytes { expected, actual };
            let offset = usize::try_from(expected).unwrap_or(total);
            return Err(Error::new(kind, offset));
        }
        let actual = header.frames.get();
        if actual == 0 {
            return Err(Error::new(ErrorKind::NoFrames, FRAMES_OFFSET));
        }
        let frames = usize::try_from(actual).ok();
        let sizes = frames.and_then(|frames| Some((frames, table_end(frames)?)));
        match sizes {
            Some((frames, table_end)) if table_end <= total => Ok(Self { frames, table_end }),
            _ => {
                let limit = total.saturating_sub(HEADER_LEN) / ENTRY_LEN;
                let kind = ErrorKind::FrameCount { limit, actual };
                Err(Error::new(kind, FRAMES_OFFSET))
            }
        }
    }
}

impl Entry {
    /// Checks an entry of a table against the `end` of what lies before its
    /// frame, and returns the frame's own.
    fn end(&self, end: usize, total: usize) -> Result<usize, ErrorKind> {
        let (offset, length) = (self.offset.get(), self.length.get());
        // `end` is at most `total`, which is the length of a slice.
        let start = aligned(end).unwrap_or(usize::MAX);
        if offset != to_u64(start) {
            let (expected, actual) = (to_u64(start), offset);
            return Err(ErrorKind::FrameOffset { expected, actual });
        }
        let Some(left) = total.checked_sub(start) else {
            let (expected, actual) = (to_u64(start), to_u64(total));
            return Err(ErrorKind::TotalLength { expected, actual });
        };
        match usize::try_from(length) {
            Ok(bytes) if bytes <= left => Ok(start.saturating_add(bytes)),
            _ => {
                let (limit, actual) = (to_u64(left), length);
                Err(ErrorKind::FrameLength { limit, actual })
            }
        }
    }

    /// The frame's place, of an entry that was checked: its end is at most an `usize`.
    fn range(&self) -> Range<usize> {
        let start = usize::try_from(self.offset.get()).unwrap_or(usize::MAX);
        let length = usize::try_from(self.length.get()).unwrap_or(usize::MAX);
        start..start.saturating_add(length)
    }
}

/// Where the entry at `index` lies, of a table that was read; past the last one, where the table ends.
fn entry_offset(index: usize) -> usize {
    table_end(index).unwrap_or(usize::MAX)
}

/// The first byte that is not zero, and where it is; reads each byte once.
fn first_non_zero(bytes: &[u8]) -> Option<(usize, u8)> {
    let (head, words) = bytes.as_rchunks::<8>();
    for (at, byte) in head.iter().enumerate() {
        if *byte != 0 {
            return Some((at, *byte));
        }
    }
    for (index, word) in words.iter().enumerate() {
        let word = *word;
        if u64::from_le_bytes(word) != 0 {
            let (at, byte) = word.into_iter().enumerate().find(|(_, byte)| *byte != 0)?;
            let before = index.saturating_mul(8).saturating_add(head.len());
            return Some((before.saturating_add(at), byte));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_is_not_zero_is_found_wherever_it_is() {
        for length in 0..64 {
            assert_eq!(first_non_zero(&[0; 64][..length]), None);
            for at in 0..length {
                let mut bytes = [0; 64];
                bytes[at] = 7;
                bytes[at + 1..length].fill(9);
                assert_eq!(first_non_zero(&bytes[..length]), Some((at, 7)));
            }
        }
    }
}
