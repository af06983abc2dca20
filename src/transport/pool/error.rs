//! Why a pool gave no buffer.

use core::fmt;

use crate::transport::deadline::Expired;
use crate::transport::{ErrorKind, TransportError};

/// Why a pool gave no buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PoolError {
    /// There is no memory for a further slot.
    OutOfMemory,
    /// No buffer came back in time.
    TimedOut,
    /// More bytes than a slot holds.
    TooLarge {
        /// The bytes asked for.
        len: usize,
        /// The bytes in a slot.
        slot_bytes: usize,
    },
    /// All buffers are in use, and the call was not to wait.
    WouldBlock,
}

impl TransportError for PoolError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::OutOfMemory => ErrorKind::Other,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::TooLarge { .. } => ErrorKind::InvalidInput,
            Self::WouldBlock => ErrorKind::WouldBlock,
        }
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("no memory for a further buffer"),
            Self::TimedOut => f.write_str("no buffer came back in time"),
            Self::TooLarge { len, slot_bytes } => {
                write!(f, "buffer of {len} bytes, a slot holds {slot_bytes}")
            }
            Self::WouldBlock => f.write_str("all buffers in use"),
        }
    }
}

impl core::error::Error for PoolError {}

impl From<Expired> for PoolError {
    fn from(expired: Expired) -> Self {
        match expired {
            Expired::TimedOut => Self::TimedOut,
            Expired::WouldBlock => Self::WouldBlock,
        }
    }
}
