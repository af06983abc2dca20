//! What can be wrong with a value that a caller reads.

use core::error::Error;
use core::fmt;

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
