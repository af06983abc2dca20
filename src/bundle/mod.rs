//! One message in one buffer: for transports without multipart messages, for
//! files, and for shared memory.
//!
//! A *bundle* holds the frames of a message behind a header and a table, each
//! frame at a multiple of 64 from the start. It is read in place: [`Bundle`]
//! borrows the buffer, and its frames go to [`Message::decode`] unchanged. What
//! a frame means is none of its business.
//!
//! [`Message::decode`]: crate::Message::decode
//!
//! # Format, version 1
//!
//! All numbers are little-endian and unsigned; offsets count from the start of
//! the bundle.
//!
//! ```text
//!  0                8        12       16               24
//! +----------------+--------+--------+----------------+
//! | magic          | version| frames | total length   |   header, 24 bytes
//! | "TWBUNDLE"     | u32, 1 | u32, n | u64            |
//! +----------------+--------+--------+----------------+
//!  24               32               40
//! +----------------+----------------+
//! | offset, u64    | length, u64    |                     table, n entries of 16 bytes,
//! +----------------+----------------+                     in the order of the frames
//! | ...                             |
//! +---------------------------------+
//! | zeros up to a multiple of 64    |                     0 to 63 bytes
//! +---------------------------------+
//! | frame 0                         |
//! +---------------------------------+
//! | zeros up to a multiple of 64    |                     0 to 63 bytes
//! +---------------------------------+
//! | frame 1 ...                     |
//! +---------------------------------+
//!                                    ^ total length: nothing follows the last frame
//! ```
//!
//! - A message has at least one frame.
//! - Each frame starts at the first multiple of 64 that is not inside the table
//!   or the frame before it. That holds for a frame of no bytes as well: it has
//!   the offset where its first byte would lie, and if it is the last one the
//!   bundle ends there.
//! - So a message has *one* spelling. Any other, and be it one bit of padding,
//!   is refused with an [`Error`] that names the byte and the numbers.
//!
//! What is aligned is the frame within the bundle: in a buffer that starts at a
//! multiple of 64 (a mapped file, a sample in shared memory) every view is
//! aligned; elsewhere views are read at any alignment, as ever.
//!
//! # Who can change the bytes
//!
//! `&[u8]` says that nobody does, and [`Bundle`] relies on that. Where another
//! process can still write, copy the first bytes (as many as
//! [`Index::len_from_header`] says) and check the copy with [`Index::decode`]:
//! no size and no bound can change after that.
//!
//! # Examples
//!
//! A message becomes a bundle, and is read out of it in place.
//!
//! ```
//! use tensorwire::bundle::{self, Bundle};
//! use tensorwire::message::{Message, NO_SCALARS, Storage, encode_into, encoded_len};
//! use tensorwire::TensorView;
//!
//! let latents = [0.5_f32; 6];
//! let tensors = [TensorView::from_slice("latents", &[2, 3], &latents)?];
//!
//! // Written where it is sent from: the places of the frames are lent and filled.
//! let lengths = [encoded_len(&tensors, &NO_SCALARS)?, tensors[0].bytes().len()];
//! let mut buffer = vec![0xa5; bundle::encoded_len(lengths)?];
//! let mut places = bundle::lend(lengths, &mut buffer)?;
//! encode_into(&tensors, &NO_SCALARS, places.next().ok_or("no place")?)?;
//! places.next().ok_or("no place")?.copy_from_slice(tensors[0].bytes());
//!
//! // And read where it lies.
//! let bundle = Bundle::decode(&buffer)?;
//! let mut frames = [&[][..]; 8];
//! let frames = bundle.frames_in(&mut frames)?;
//! let mut storage = Storage::<8>::new();
//! let message = Message::decode(frames, &mut storage)?;
//! let latents = message.tensor("latents").ok_or("no latents")?;
//! assert!(latents.elements::<f32>()?.eq([0.5; 6]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A file of one message: `write_to` (feature `std`) writes it; mapped into memory
//! (`Mapped` with feature `memmap2`, or a map of your own) it is read without a copy.

mod error;
mod index;
#[cfg(feature = "memmap2")]
mod mapped;
mod writer;

use core::fmt;
use core::iter::FusedIterator;
use core::ops::Range;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub use error::{Error, ErrorKind};
pub use index::{Index, Ranges};
#[cfg(feature = "memmap2")]
pub use mapped::{Mapped, MappedError};
#[cfg(feature = "alloc")]
pub use writer::encode_to_vec;
#[cfg(feature = "std")]
pub use writer::write_to;
pub use writer::{Places, encode_into, encoded_len, lend};

/// Frames start at multiples of this many bytes from the start: a cache line,
/// and as much as any vector instruction asks for.
pub const ALIGNMENT: usize = 64;

/// The first bytes of every bundle.
pub const MAGIC: [u8; 8] = *b"TWBUNDLE";

/// The version of the format that this module writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// The length of the header in bytes.
pub const HEADER_LEN: usize = size_of::<Header>();

/// The length of one table entry in bytes.
pub const ENTRY_LEN: usize = size_of::<Entry>();

/// The first bytes of a bundle, as they lie there.
#[derive(FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: U32,
    frames: U32,
    total_len: U64,
}

/// Where the fields of the header lie.
const VERSION_OFFSET: usize = 8;
const FRAMES_OFFSET: usize = 12;
const TOTAL_LEN_OFFSET: usize = 16;

/// One entry of the table, as it lies there.
#[derive(Clone, Copy, Default, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    offset: U64,
    length: U64,
}

/// Where the length lies in an entry.
const LENGTH_OFFSET: usize = 8;

/// A checked bundle, read where it lies.
///
/// Its frames borrow from the buffer, not from this value, which is two
/// pointers and two lengths.
///
/// # Examples
///
/// ```
/// use tensorwire::bundle::{Bundle, ErrorKind, encode_into};
///
/// let mut buffer = [0xa5; 200];
/// let bytes = encode_into(&["metadata", "payload"], &mut buffer)?;
/// assert_eq!(bytes.len(), 128 + 7); // the second frame starts at 128
///
/// let bundle = Bundle::decode(bytes)?;
/// assert_eq!((bundle.len(), bundle.frame(1)), (2, Some(&b"payload"[..])));
///
/// bytes[127] = 1;
/// let Err(error) = Bundle::decode(bytes) else {
///     return Err("padding is zero".into());
/// };
/// assert_eq!(error.kind(), ErrorKind::NonZeroPadding { found: 1 });
/// assert_eq!(error.to_string(), "padding of 0x01 at byte 127");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Bundle<'a> {
    index: Index<'a>,
    bytes: &'a [u8],
}

impl<'a> Bundle<'a> {
    /// Checks `bytes`, which are the bundle and nothing else.
    ///
    /// The work is linear in the number of frames, and does not look at them.
    ///
    /// # Errors
    ///
    /// What [`Index::decode`] finds wrong with header and table, then
    /// [`NonZeroPadding`](ErrorKind::NonZeroPadding).
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let index = Index::decode(bytes, bytes.len())?;
        index.check_padding(bytes)?;
        Ok(Self { index, bytes })
    }

    /// Takes the `frames` of `bytes` that were decoded before.
    #[cfg(feature = "memmap2")]
    fn checked_before(bytes: &'a [u8], frames: usize) -> Self {
        let index = Index::checked_before(bytes, frames);
        Self { index, bytes }
    }

    /// Returns how many frames there are: at least one.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns whether there are no frames, which is never so.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns where the frames lie.
    #[must_use]
    pub const fn index(&self) -> Index<'a> {
        self.index
    }

    /// Returns the whole bundle.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the frame at `index`, or `None` past the last one.
    #[must_use]
    pub fn frame(&self, index: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.index.range(index)?)
    }

    /// Returns the frames in order.
    #[must_use]
    pub fn frames(&self) -> Frames<'a> {
        Frames {
            ranges: self.index.ranges(),
            bytes: self.bytes,
        }
    }

    /// Puts the frames into the caller's `storage`, as the slice that the message decoder takes.
    ///
    /// # Errors
    ///
    /// [`StorageFull`](ErrorKind::StorageFull) if `storage` has not room for all
    /// of them; then it is as it was.
    pub fn frames_in<'s>(&self, storage: &'s mut [&'a [u8]]) -> Result<&'s [&'a [u8]], Error> {
        let capacity = storage.len();
        let Some(room) = storage.get_mut(..self.len()) else {
            let needed = self.len();
            return Err(Error::new(ErrorKind::StorageFull { needed, capacity }, 0));
        };
        for (place, frame) in room.iter_mut().zip(self.frames()) {
            *place = frame;
        }
        Ok(room)
    }
}

impl fmt::Debug for Bundle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle")
            .field("len", &self.len())
            .field("total_len", &self.bytes.len())
            .finish()
    }
}

impl<'a> IntoIterator for Bundle<'a> {
    type IntoIter = Frames<'a>;
    type Item = &'a [u8];

    fn into_iter(self) -> Frames<'a> {
        self.frames()
    }
}

impl<'a> IntoIterator for &Bundle<'a> {
    type IntoIter = Frames<'a>;
    type Item = &'a [u8];

    fn into_iter(self) -> Frames<'a> {
        self.frames()
    }
}

/// The frames of a [`Bundle`], in order.
#[derive(Clone)]
pub struct Frames<'a> {
    ranges: Ranges<'a>,
    bytes: &'a [u8],
}

impl<'a> Frames<'a> {
    /// The bytes of a range that was checked against them.
    fn at(&self, range: Range<usize>) -> &'a [u8] {
        self.bytes.get(range).unwrap_or_default()
    }
}

impl fmt::Debug for Frames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").field("len", &self.len()).finish()
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let range = self.ranges.next()?;
        Some(self.at(range))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ranges.size_hint()
    }
}

impl DoubleEndedIterator for Frames<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let range = self.ranges.next_back()?;
        Some(self.at(range))
    }
}

impl ExactSizeIterator for Frames<'_> {}

impl FusedIterator for Frames<'_> {}

/// Returns the first multiple of [`ALIGNMENT`] that is not below `end`.
const fn aligned(end: usize) -> Option<usize> {
    end.checked_next_multiple_of(ALIGNMENT)
}

/// Returns the length of header and table for so many frames.
fn table_end(frames: usize) -> Option<usize> {
    frames.checked_mul(ENTRY_LEN)?.checked_add(HEADER_LEN)
}
