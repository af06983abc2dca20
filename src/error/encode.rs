//! What can be wrong with a message that a caller writes.

use core::error::Error;
use core::fmt;

/// The caller asked for a message that cannot be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The caller's buffer has no room for the metadata, or for the manifest.
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
