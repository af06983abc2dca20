//! What the errors of all planes have in common.

use core::fmt;

use super::MemoryKind;
use crate::convert::to_u64;
use crate::transfer::pool::{PoolError, WindowError};

/// An error of a data plane, sorted.
///
/// Each plane keeps an error type of its own, with its own numbers; code that is generic
/// over planes matches on the kind.
pub trait PlaneError: core::error::Error + Send + Sync + 'static {
    /// Returns what kind of failure this is.
    fn kind(&self) -> ErrorKind;
}

/// What kind of failure an error of a data plane is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Anything else; the plane's error has the details.
    Backend,
    /// Too much is under way: as many pushes as the plane has room for, or another one into
    /// the same window. It may succeed later.
    Busy,
    /// No window is open at the address, or none any more: the push is late, or its
    /// address made up.
    Closed,
    /// The slot is of no region of this plane, or its region was dropped.
    ForeignSlot,
    /// The bytes do not lie in a pool of the session.
    OutOfBounds {
        /// The address of the first byte.
        address: u64,
        /// How many bytes.
        len: u64,
    },
    /// The bytes begin inside an open window, and go on past its end.
    PastWindow {
        /// How many bytes.
        len: u64,
        /// How many bytes of the window are left from where they begin.
        room: u64,
    },
    /// The session was there, and is not any more.
    PeerGone,
    /// There is no such pool, or none was to be had.
    Pool(PoolError),
    /// The bytes to read are not all in the slot.
    SourceOutOfBounds {
        /// Where they end, in bytes from the start of the slot.
        end: usize,
        /// The length of the slot.
        slot_len: usize,
    },
    /// The time to wait was up.
    TimedOut,
    /// No session of that name was ever heard of.
    UnknownSession,
    /// What was asked for does not work with this kind of memory.
    Unsupported {
        /// The kind of memory.
        kind: MemoryKind,
    },
}

impl ErrorKind {
    /// Tells whether the same push may succeed later, without anybody's doing.
    #[must_use]
    pub const fn is_wait(self) -> bool {
        matches!(self, Self::Busy | Self::TimedOut)
    }
}

impl PlaneError for ErrorKind {
    fn kind(&self) -> ErrorKind {
        *self
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Backend => f.write_str("the data plane failed"),
            Self::Busy => f.write_str("too many pushes under way"),
            Self::Closed => f.write_str("no window is open at the address"),
            Self::ForeignSlot => f.write_str("slot of no region of this plane"),
            Self::OutOfBounds { address, len } => {
                write!(f, "{len} bytes at address {address:#x} are in no pool")
            }
            Self::PastWindow { len, room } => {
                write!(f, "{len} bytes where {room} are left of the window")
            }
            Self::PeerGone => f.write_str("the session is gone"),
            Self::Pool(error) => error.fmt(f),
            Self::SourceOutOfBounds { end, slot_len } => {
                write!(f, "bytes up to {end} of a slot of {slot_len}")
            }
            Self::TimedOut => f.write_str("timed out"),
            Self::UnknownSession => f.write_str("unknown session"),
            Self::Unsupported { kind } => write!(f, "not possible with {kind}"),
        }
    }
}

impl core::error::Error for ErrorKind {}

impl From<PoolError> for ErrorKind {
    fn from(error: PoolError) -> Self {
        Self::Pool(error)
    }
}

impl From<WindowError> for ErrorKind {
    fn from(error: WindowError) -> Self {
        match error {
            WindowError::Busy { .. } => Self::Busy,
            WindowError::Closed { .. } => Self::Closed,
            WindowError::PastEnd { len, room } => Self::PastWindow {
                len: to_u64(len),
                room: to_u64(room),
            },
        }
    }
}
