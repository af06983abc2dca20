//! Why a call failed.

use core::fmt;

use crate::transport::deadline::Expired;
use crate::transport::{CapExceeded, ErrorKind, TransportError};

/// Why sending or receiving failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A message was larger than the caps allow; it was drained.
    Cap(CapExceeded),
    /// The other end is gone, and nothing it sent is left.
    Closed,
    /// The script said that the connection ends half way through this message.
    Disconnected {
        /// The number of the message, from 0.
        message: u64,
    },
    /// A message has at least one frame.
    EmptyMessage,
    /// The script said that this message fails.
    Injected {
        /// The number of the message, from 0.
        message: u64,
    },
    /// The time to wait was up.
    TimedOut,
    /// It cannot be done now, and the call was not to wait.
    WouldBlock,
}

impl TransportError for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Cap(_) => ErrorKind::CapExceeded,
            Self::Closed => ErrorKind::Closed,
            Self::Disconnected { .. } => ErrorKind::Disconnected,
            Self::EmptyMessage => ErrorKind::InvalidInput,
            Self::Injected { .. } => ErrorKind::Other,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::WouldBlock => ErrorKind::WouldBlock,
        }
    }

    fn refused(&self) -> Option<CapExceeded> {
        match self {
            Self::Cap(refused) => Some(*refused),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cap(refused) => refused.fmt(f),
            Self::Closed => f.write_str("other end closed"),
            Self::Disconnected { message } => {
                write!(f, "connection lost in message {message} as scripted")
            }
            Self::EmptyMessage => f.write_str("message without frames"),
            Self::Injected { message } => write!(f, "message {message} fails as scripted"),
            Self::TimedOut => f.write_str("timed out"),
            Self::WouldBlock => f.write_str("would block"),
        }
    }
}

impl core::error::Error for Error {}

impl From<Expired> for Error {
    fn from(expired: Expired) -> Self {
        match expired {
            Expired::TimedOut => Self::TimedOut,
            Expired::WouldBlock => Self::WouldBlock,
        }
    }
}
