//! What can be wrong with a file, and with what is to become one.

use core::error::Error as StdError;
use core::fmt;

use crate::DType;
use crate::error::{DecodeErrorKind, EncodeError};

/// A file could not be read.
///
/// Small and `Copy`: it outlives the bytes that it is about.
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

    /// Returns the byte of the file at which that stands.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.offset)
    }
}

impl StdError for Error {}

/// What is wrong with a file.
///
/// Numbers that a file states are `u64`, as they are there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An entry of `__metadata__` that this module writes does not hold what it writes there.
    BadEntry,
    /// The offsets of a tensor span other than the bytes that its shape and dtype say.
    ByteLength {
        /// What shape and dtype say.
        expected: usize,
        /// From the first offset to the second.
        actual: u64,
    },
    /// A tensor has the name of one before it, or `__metadata__` one of its keys twice.
    DuplicateName,
    /// The header is not the JSON that it has to be.
    Header(DecodeErrorKind),
    /// The header is longer than [`MAX_HEADER_LEN`](super::MAX_HEADER_LEN).
    HeaderLimit {
        /// The longest that is read.
        limit: u64,
        /// Its length as stated.
        actual: u64,
    },
    /// A name or an entry of `__metadata__` has a lone surrogate, which no text can hold.
    LoneSurrogate,
    /// A tensor is described without this key.
    MissingKey(Key),
    /// One name is both a tensor and a list.
    MixedField,
    /// The offsets of a tensor are not two, or the second is before the first.
    OffsetPair,
    /// A tensor does not start where the one before it ends: the data would have a hole, or be shared.
    Offsets {
        /// Where it would have to start, from the start of the data.
        expected: u64,
        /// Where it starts.
        actual: u64,
    },
    /// Bytes follow the last tensor.
    TrailingBytes {
        /// How long the file is as its header has it.
        expected: u64,
        /// How long it is.
        actual: u64,
    },
    /// The file ends too early.
    Truncated {
        /// Bytes needed.
        expected: u64,
        /// Bytes that there are.
        actual: u64,
    },
    /// The format has no such dtype.
    UnknownDType,
    /// The format has the dtype, and messages have not: elements of 4 and 6 bits.
    UnsupportedDType,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BadEntry => {
                f.write_str("entry of __metadata__ that does not hold the JSON it has to")
            }
            Self::ByteLength { expected, actual } => {
                write!(
                    f,
                    "offsets span {actual} bytes where the shape says {expected}"
                )
            }
            Self::DuplicateName => f.write_str("name given twice"),
            Self::Header(kind) => write!(f, "header: {kind}"),
            Self::HeaderLimit { limit, actual } => {
                write!(f, "header of {actual} bytes where {limit} is the limit")
            }
            Self::LoneSurrogate => f.write_str("lone surrogate in a text"),
            Self::MissingKey(key) => write!(f, "tensor without {key}"),
            Self::MixedField => f.write_str("name both of a tensor and of a list"),
            Self::OffsetPair => f.write_str("data_offsets are not a start and an end"),
            Self::Offsets { expected, actual } => {
                write!(
                    f,
                    "tensor starts at {actual} of the data where the one before ends at {expected}"
                )
            }
            Self::TrailingBytes { expected, actual } => {
                write!(f, "{actual} bytes where the header says {expected}")
            }
            Self::Truncated { expected, actual } => {
                write!(f, "truncated: {actual} bytes of {expected}")
            }
            Self::UnknownDType => f.write_str("unknown dtype"),
            Self::UnsupportedDType => f.write_str("dtype of elements smaller than a byte"),
        }
    }
}

/// What every tensor has to say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Key {
    /// `data_offsets`.
    DataOffsets,
    /// `dtype`.
    DType,
    /// `shape`.
    Shape,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DataOffsets => "data_offsets",
            Self::DType => "dtype",
            Self::Shape => "shape",
        })
    }
}

/// A message could not be written as a file.
///
/// Tensors and scalars are named by their place, from 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum WriteError {
    /// A tensor's name in the file would be that of another, or be read as that of a member of a
    /// list: a plain tensor `skip.2` beside a list `skip`.
    Clash {
        /// The tensor.
        index: usize,
    },
    /// Two scalars have one key.
    DuplicateScalar {
        /// The second of them.
        index: usize,
    },
    /// The header would be longer than [`MAX_HEADER_LEN`](super::MAX_HEADER_LEN).
    HeaderLimit {
        /// The longest that is read.
        limit: usize,
        /// What it would be.
        actual: usize,
    },
    /// A scalar's key has a lone surrogate, which no text can hold.
    InvalidScalar {
        /// The scalar.
        index: usize,
    },
    /// It is no message either.
    Message(EncodeError),
    /// A tensor is named `__metadata__`, where the format keeps its texts.
    ReservedName {
        /// The tensor.
        index: usize,
    },
    /// A scalar has a key that this module keeps something else under:
    /// [`JSON_ENTRY`](super::JSON_ENTRY) or [`LISTS_ENTRY`](super::LISTS_ENTRY).
    ReservedScalar {
        /// The scalar.
        index: usize,
    },
    /// The scalars are nested too deep to be read again.
    ScalarDepth,
    /// The tensors make more than `u64::MAX` bytes together.
    TooLarge,
    /// The format has no such dtype.
    UnsupportedDType {
        /// The tensor.
        index: usize,
        /// Its dtype.
        dtype: DType,
    },
}

impl WriteError {
    /// Returns the tensor that it is about.
    #[must_use]
    pub const fn tensor(&self) -> Option<usize> {
        match *self {
            Self::Clash { index }
            | Self::Message(
                EncodeError::DuplicateField { index }
                | EncodeError::DuplicateListIndex { index }
                | EncodeError::InvalidName { index }
                | EncodeError::MixedField { index },
            )
            | Self::ReservedName { index }
            | Self::UnsupportedDType { index, .. } => Some(index),
            _ => None,
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Clash { index } => {
                write!(
                    f,
                    "tensor {index} has the name that the file gives to a member of a list"
                )
            }
            Self::DuplicateScalar { index } => {
                write!(f, "scalar {index} has the key of an earlier one")
            }
            Self::HeaderLimit { limit, actual } => {
                write!(f, "header of {actual} bytes where {limit} is the limit")
            }
            Self::InvalidScalar { index } => {
                write!(f, "scalar {index} has a lone surrogate in its key")
            }
            Self::Message(error) => error.fmt(f),
            Self::ReservedName { index } => write!(f, "tensor {index} is named __metadata__"),
            Self::ReservedScalar { index } => {
                write!(
                    f,
                    "scalar {index} has a key that the file keeps something else under"
                )
            }
            Self::ScalarDepth => f.write_str("scalars are nested too deep"),
            Self::TooLarge => write!(f, "tensors of more than {} bytes", u64::MAX),
            Self::UnsupportedDType { index, dtype } => {
                write!(
                    f,
                    "tensor {index} is {dtype}, which the format does not have"
                )
            }
        }
    }
}

impl StdError for WriteError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Message(error) => Some(error),
            _ => None,
        }
    }
}

impl From<EncodeError> for WriteError {
    fn from(error: EncodeError) -> Self {
        Self::Message(error)
    }
}
