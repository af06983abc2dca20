//! What can be wrong with what a peer sent, and with what the caller asked for.
//!
//! The peer's faults ([`DecodeError`], and [`ValueError`] for a scalar of an
//! unexpected type) are apart from the caller's ([`EncodeError`],
//! [`CastError`]). All are small and `Copy`, and hold numbers and at most one
//! byte of the peer's text (with feature `serde`, `DeserializeError` up to 88
//! bytes of it, escaped): an error outlives the buffer it describes and is safe
//! to log.

mod decode;
#[cfg(feature = "serde")]
mod deserialize;

use core::error::Error;
use core::fmt;

pub use decode::{DecodeError, DecodeErrorKind, SchemaKey, SyntaxError};
#[cfg(feature = "serde")]
pub use deserialize::{DeserializeError, DeserializeErrorKind, DeserializeMessage};

use crate::dtype::DType;
use crate::json::ValueType;

/// A scalar is not what the caller wanted to read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ValueError {
    kind: ValueErrorKind,
    offset: usize,
}

impl ValueError {
    pub(crate) const fn new(kind: ValueErrorKind, offset: usize) -> Self {
        Self { kind, offset }
    }

    /// Returns what is wrong, with its numbers.
    #[must_use]
    pub const fn kind(&self) -> ValueErrorKind {
        self.kind
    }

    /// Returns where the value starts: a byte of the document it was read from.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.offset)
    }
}

impl Error for ValueError {}

/// Why a scalar cannot be read as what the caller wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ValueErrorKind {
    /// The caller's buffer has no room for the text.
    BufferTooSmall {
        /// Bytes that the text needs.
        needed: usize,
        /// Bytes that the buffer has.
        capacity: usize,
    },
    /// The string holds a lone surrogate, which no text can hold.
    LoneSurrogate,
    /// There is no such key.
    Missing,
    /// A number with a fraction or an exponent where an integer was asked for.
    NotAnInteger,
    /// The number does not fit the type asked for.
    NumberOutOfRange,
    /// The value has another JSON type.
    WrongType {
        /// The type asked for.
        expected: ValueType,
        /// The type it has.
        actual: ValueType,
    },
}

impl fmt::Display for ValueErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BufferTooSmall { needed, capacity } => {
                write!(f, "text of {needed} bytes for a buffer of {capacity}")
            }
            Self::LoneSurrogate => f.write_str("lone surrogate in a string"),
            Self::Missing => f.write_str("no such key"),
            Self::NotAnInteger => f.write_str("number is not an integer"),
            Self::NumberOutOfRange => f.write_str("number out of range"),
            Self::WrongType { expected, actual } => {
                write!(f, "expected {expected}, found {actual}")
            }
        }
    }
}

/// Bytes cannot be seen as elements of the type asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CastError {
    /// A byte of a bool tensor is neither 0 nor 1.
    InvalidBool {
        /// Which element.
        index: usize,
        /// The byte.
        byte: u8,
    },
    /// The caller's slice has another length than the tensor.
    Length {
        /// Elements of the tensor.
        expected: usize,
        /// Elements of the slice.
        actual: usize,
    },
    /// The bytes do not start where the type's values may start.
    Misaligned {
        /// The type's alignment in bytes.
        required: usize,
        /// The largest power of two that divides the address.
        actual: usize,
    },
    /// The tensor has more or fewer dimensions than asked for.
    Rank {
        /// Rank of the tensor.
        expected: usize,
        /// Rank, or room for one, asked for.
        actual: usize,
    },
    /// The tensor holds elements of another dtype.
    WrongDType {
        /// The dtype of the Rust type asked for.
        expected: DType,
        /// The dtype of the tensor.
        actual: DType,
    },
}

impl fmt::Display for CastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::InvalidBool { index, byte } => {
                write!(f, "element {index} is {byte:#04x}, which is no bool")
            }
            Self::Length { expected, actual } => {
                write!(f, "{actual} elements where the tensor has {expected}")
            }
            Self::Misaligned { required, actual } => {
                write!(f, "aligned to {actual} bytes where {required} are needed")
            }
            Self::Rank { expected, actual } => {
                write!(f, "{actual} dimensions where the tensor has {expected}")
            }
            Self::WrongDType { expected, actual } => {
                write!(f, "tensor of {actual} read as {expected}")
            }
        }
    }
}

impl Error for CastError {}

/// The caller asked for a message that cannot be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The caller's buffer has no room for the metadata, the manifest, or the payload of a control message.
    BufferTooSmall {
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that the buffer has.
        capacity: usize,
    },
    /// The payload is longer or shorter than shape and dtype say.
    ByteLength {
        /// Product of the dimensions times the item size, in bytes.
        expected: usize,
        /// Length of the payload in bytes.
        actual: usize,
    },
    /// Two plain tensors have one name.
    DuplicateField {
        /// Which tensor is the second.
        index: usize,
    },
    /// Two members of one list have one index.
    DuplicateListIndex {
        /// Which tensor is the second.
        index: usize,
    },
    /// A name holds a lone surrogate, which every reader of this crate refuses.
    InvalidName {
        /// Which tensor has it.
        index: usize,
    },
    /// A serialized map has a key that JSON, as Python writes it, has no text for.
    KeyType,
    /// One name is both a plain tensor and a list.
    MixedField {
        /// Which tensor is the second.
        index: usize,
    },
    /// Two tensors of a manifest share bytes of the slot.
    Overlap {
        /// Which tensor is the second.
        index: usize,
        /// Which is the first.
        other: usize,
    },
    /// The scalars are not one JSON object.
    ScalarsNotAnObject,
    /// The members of a list do not follow one another, as they do in a manifest.
    ScatteredList {
        /// Which tensor stands apart from the members before it.
        index: usize,
    },
    /// A `Serialize` implementation failed for a reason of its own.
    Serialize,
    /// The size in bytes, or the same without the zero dimensions, is over `isize::MAX`.
    ShapeOverflow,
    /// A tensor ends past byte `isize::MAX` of the slot.
    SlotOverflow,
    /// The slot has no room for the tensors.
    SlotTooSmall {
        /// Bytes that they need, gaps included.
        needed: usize,
        /// Bytes that the slot has.
        capacity: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BufferTooSmall { needed, capacity } => {
                write!(f, "{needed} bytes of JSON for a buffer of {capacity}")
            }
            Self::ByteLength { expected, actual } => {
                write!(
                    f,
                    "payload of {actual} bytes where the shape says {expected}"
                )
            }
            Self::DuplicateField { index } => {
                write!(f, "tensor {index} has the name of an earlier one")
            }
            Self::DuplicateListIndex { index } => {
                write!(
                    f,
                    "tensor {index} has name and list index of an earlier one"
                )
            }
            Self::InvalidName { index } => {
                write!(f, "tensor {index} has a lone surrogate in its name")
            }
            Self::KeyType => f.write_str("map key that JSON has no text for"),
            Self::MixedField { index } => {
                write!(
                    f,
                    "tensor {index} makes one name both a plain tensor and a list"
                )
            }
            Self::Overlap { index, other } => {
                write!(f, "tensor {index} has bytes of tensor {other}")
            }
            Self::ScalarsNotAnObject => f.write_str("scalars are not one JSON object"),
            Self::ScatteredList { index } => {
                write!(f, "tensor {index} stands apart from the list that it is of")
            }
            Self::Serialize => f.write_str("a value refused to be serialized"),
            Self::ShapeOverflow => write!(f, "tensor of more than {} bytes", isize::MAX),
            Self::SlotOverflow => write!(f, "slot of more than {} bytes", isize::MAX),
            Self::SlotTooSmall { needed, capacity } => {
                write!(f, "tensors of {needed} bytes for a slot of {capacity}")
            }
        }
    }
}

impl Error for EncodeError {}
