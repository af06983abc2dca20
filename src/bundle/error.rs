//! What can be wrong with a bundle.

use core::fmt;

/// A bundle could not be read or written.
///
/// Small and `Copy`: it outlives the buffer that it is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Error {
    kind: ErrorKind,
    offset: usize,
}

impl Error {
    pub(super) const fn new(kind: ErrorKind, offset: usize) -> Self {
        Self { kind, offset }
    }

    /// Returns what is wrong, with its numbers.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the byte of the bundle at which it is wrong, at most the length
    /// of what there is; 0 where the fault is the caller's.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if self.kind.is_of_the_caller() {
            return Ok(());
        }
        write!(f, " at byte {}", self.offset)
    }
}

impl core::error::Error for Error {}

/// What is wrong with a bundle.
///
/// Numbers that a bundle states are `u64`, as they are there; lengths of what
/// lies in memory are `usize`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The first bytes are not [`MAGIC`](super::MAGIC).
    BadMagic,
    /// The caller's buffer is shorter than the bundle; nothing was written.
    BufferTooSmall {
        /// Bytes that the bundle takes.
        needed: usize,
        /// Bytes that there are.
        capacity: usize,
    },
    /// The header states more frames than the bundle has room for table entries.
    FrameCount {
        /// Entries that there is room for.
        limit: usize,
        /// Frames as stated.
        actual: u32,
    },
    /// A frame reaches past the end of the bundle.
    FrameLength {
        /// Bytes from the frame's start to the end.
        limit: u64,
        /// The frame's length as stated.
        actual: u64,
    },
    /// A frame is not in the one place where it belongs: out of order,
    /// overlapping, after a gap, not at a multiple of 64.
    FrameOffset {
        /// Where it belongs.
        expected: u64,
        /// Its offset as stated.
        actual: u64,
    },
    /// The caller's lengths, asked for twice, were not the same.
    LengthsChanged,
    /// There is no frame at all, and a message has at least one.
    NoFrames,
    /// A byte of the padding is not zero.
    NonZeroPadding {
        /// The byte.
        found: u8,
    },
    /// The caller's storage has not room for all frames.
    StorageFull {
        /// Frames that there are.
        needed: usize,
        /// Frames that there is room for.
        capacity: usize,
    },
    /// The caller's frames make more than `isize::MAX` bytes together.
    TooLarge,
    /// The caller has more than `u32::MAX` frames.
    TooManyFrames,
    /// The total length is not where the last frame ends: the bundle goes on
    /// after it, or ends before a frame begins.
    TotalLength {
        /// Where the last frame ends, or the frame would begin.
        expected: u64,
        /// The total length as stated.
        actual: u64,
    },
    /// Bytes follow the bundle.
    TrailingBytes {
        /// The total length as stated.
        expected: u64,
        /// Bytes that there are.
        actual: usize,
    },
    /// The bytes end before the bundle does.
    Truncated {
        /// Bytes needed: the header, or the total length as stated, or header and table.
        expected: u64,
        /// Bytes that there are.
        actual: usize,
    },
    /// The bundle has a version of the format that this one does not know.
    UnknownVersion {
        /// The version as stated.
        actual: u32,
    },
}

impl ErrorKind {
    /// Whether no bytes of a bundle are at fault.
    const fn is_of_the_caller(self) -> bool {
        match self {
            Self::BufferTooSmall { .. }
            | Self::LengthsChanged
            | Self::StorageFull { .. }
            | Self::TooLarge
            | Self::TooManyFrames => true,
            Self::BadMagic
            | Self::FrameCount { .. }
            | Self::FrameLength { .. }
            | Self::FrameOffset { .. }
            | Self::NoFrames
            | Self::NonZeroPadding { .. }
            | Self::TotalLength { .. }
            | Self::TrailingBytes { .. }
            | Self::Truncated { .. }
            | Self::UnknownVersion { .. } => false,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BadMagic => f.write_str("not the magic of a bundle"),
            Self::BufferTooSmall { needed, capacity } => {
                write!(f, "bundle of {needed} bytes for a buffer of {capacity}")
            }
            Self::FrameCount { limit, actual } => {
                write!(f, "{actual} frames where the table has room for {limit}")
            }
            Self::FrameLength { limit, actual } => {
                write!(f, "frame of {actual} bytes where {limit} are left")
            }
            Self::FrameOffset { expected, actual } => {
                write!(f, "frame at offset {actual} where {expected} is its place")
            }
            Self::LengthsChanged => f.write_str("frames changed their lengths meanwhile"),
            Self::NoFrames => f.write_str("bundle without frames"),
            Self::NonZeroPadding { found } => write!(f, "padding of {found:#04x}"),
            Self::StorageFull { needed, capacity } => {
                write!(f, "storage has room for {capacity} of {needed} frames")
            }
            Self::TooLarge => write!(f, "bundle of more than {} bytes", isize::MAX),
            Self::TooManyFrames => write!(f, "bundle of more than {} frames", u32::MAX),
            Self::TotalLength { expected, actual } => {
                write!(f, "total length {actual} where the frames reach {expected}")
            }
            Self::TrailingBytes { expected, actual } => {
                write!(f, "{actual} bytes where the bundle has {expected}")
            }
            Self::Truncated { expected, actual } => {
                write!(f, "truncated: {actual} bytes of {expected}")
            }
            Self::UnknownVersion { actual } => write!(f, "unknown version {actual}"),
        }
    }
}
