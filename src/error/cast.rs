//! What can be wrong with a tensor that a caller looks into.

use core::error::Error;
use core::fmt;

use crate::dtype::DType;

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
