//! What can be wrong with a tensor that goes to DLPack, or comes from there.

use core::error::Error;
use core::fmt;

use crate::error::{CastError, EncodeError};

/// A tensor cannot be handed over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DlpackError {
    /// The bytes are no elements of the dtype: misaligned, or no bools.
    Cast(CastError),
    /// There is no such dtype here.
    DType {
        /// DLPack's code for the kind of number.
        code: u8,
        /// Bits of each.
        bits: u8,
        /// Numbers in each element.
        lanes: u16,
    },
    /// The tensor does not lie in memory that the host can read.
    Device {
        /// DLPack's number for the kind of device.
        kind: i32,
        /// Which of these devices.
        id: i32,
    },
    /// Shape, dtype and bytes do not fit together, or the size is over `isize::MAX`.
    Encode(EncodeError),
    /// A dimension is negative.
    NegativeDim {
        /// Which.
        index: usize,
        /// The dimension.
        dim: i64,
    },
    /// A pointer is null that must not be.
    Null(Pointer),
    /// The tensor ends past the end of the address space.
    OutOfMemory {
        /// Where its bytes start, in bytes from its pointer.
        byte_offset: u64,
        /// Its size in bytes.
        byte_len: usize,
    },
    /// More dimensions than [`MAX_RANK`](super::MAX_RANK), or fewer than none.
    Rank {
        /// How many.
        rank: i64,
    },
    /// The elements do not lie in the order of their indices, without gaps.
    Strides {
        /// At which dimension, counted from 0.
        index: usize,
        /// From one element to the next, in elements, if they lay so.
        expected: i64,
        /// From one element to the next, in elements.
        actual: i64,
    },
    /// The structure is of another major version than 1.
    Version {
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
}

impl fmt::Display for DlpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Cast(error) => error.fmt(f),
            Self::DType { code, bits, lanes } => {
                write!(
                    f,
                    "no dtype of code {code} with {bits} bits in {lanes} lanes"
                )
            }
            Self::Device { kind, id } => {
                write!(f, "on device {id} of kind {kind}, not in the host's memory")
            }
            Self::Encode(error) => error.fmt(f),
            Self::NegativeDim { index, dim } => write!(f, "dimension {index} is {dim}"),
            Self::Null(pointer) => write!(f, "null pointer to {pointer}"),
            Self::OutOfMemory {
                byte_offset,
                byte_len,
            } => write!(f, "{byte_len} bytes from {byte_offset} on are no memory"),
            Self::Rank { rank } => {
                write!(f, "{rank} dimensions where {} are allowed", super::MAX_RANK)
            }
            Self::Strides {
                index,
                expected,
                actual,
            } => write!(
                f,
                "stride {actual} of dimension {index} where a contiguous tensor has {expected}"
            ),
            Self::Version { major, minor } => write!(f, "version {major}.{minor} where 1 is known"),
        }
    }
}

impl Error for DlpackError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Cast(error) => Some(error),
            Self::Encode(error) => Some(error),
            _ => None,
        }
    }
}

impl From<CastError> for DlpackError {
    fn from(error: CastError) -> Self {
        Self::Cast(error)
    }
}

impl From<EncodeError> for DlpackError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

/// What a null pointer should have led to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Pointer {
    /// The elements.
    Data,
    /// The dimensions.
    Shape,
    /// The structure itself.
    Tensor,
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "the elements",
            Self::Shape => "the dimensions",
            Self::Tensor => "the tensor",
        })
    }
}
