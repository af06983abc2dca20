//! Why a call failed.

use core::fmt;

use crate::bundle;
use crate::transport::deadline::Expired;
use crate::transport::{CapExceeded, ErrorKind, TransportError};

/// Why a call to an end of a channel failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A message was larger than the caps allow; it is gone.
    Cap(CapExceeded),
    /// iceoryx2 failed inside an earlier call, and this end cannot be used any more.
    Closed,
    /// The directory cannot be used.
    Directory(DirectoryFault),
    /// A message has at least one frame.
    EmptyMessage,
    /// iceoryx2 or the system failed otherwise.
    Failed {
        /// What was being done.
        doing: &'static str,
    },
    /// A frame had another length when it was to be written than before.
    LengthChanged,
    /// What came is no bundle; it is gone.
    Malformed(bundle::Error),
    /// The name is not 1 to 255 characters of ASCII other than NUL, or it starts with
    /// `iox2://`, as iceoryx2's own names do.
    Name,
    /// The channel has a receiver, or messages of an earlier one are still kept.
    ReceiverExists,
    /// The time to wait was up.
    TimedOut,
    /// The message does not fit into a place of this sender's pool; or, of a sender that
    /// is being opened, places that large make a pool of more than all memory.
    TooLarge {
        /// The bytes in one place, or those that one may have in a pool as deep.
        limit: usize,
        /// The bytes of the message, as a bundle; or those that a place was to have.
        actual: usize,
    },
    /// The channel has [`MAX_SENDERS`](super::MAX_SENDERS) senders.
    TooManySenders,
    /// It cannot be done now, and the call was not to wait.
    WouldBlock,
}

/// What is wrong with a directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DirectoryFault {
    /// It cannot be made or read.
    Inaccessible,
    /// It belongs to another user, or others may write to it.
    Insecure,
    /// Its path is too long, or not one that iceoryx2 takes.
    Path,
}

impl TransportError for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Cap(_) => ErrorKind::CapExceeded,
            Self::Closed => ErrorKind::Closed,
            Self::Directory(_)
            | Self::EmptyMessage
            | Self::LengthChanged
            | Self::Name
            | Self::TooLarge { .. } => ErrorKind::InvalidInput,
            Self::Failed { .. } | Self::ReceiverExists | Self::TooManySenders => ErrorKind::Other,
            Self::Malformed(_) => ErrorKind::Malformed,
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
            Self::Closed => f.write_str("unusable after a failure inside iceoryx2"),
            Self::Directory(fault) => write!(f, "directory {fault}"),
            Self::EmptyMessage => f.write_str("message without frames"),
            Self::Failed { doing } => write!(f, "iceoryx2 failed to {doing}"),
            Self::LengthChanged => f.write_str("length of a frame changed"),
            Self::Malformed(error) => write!(f, "no bundle: {error}"),
            Self::Name => f.write_str(
                "not a name for a channel: 1 to 255 ASCII characters, no nul, not iox2:// first",
            ),
            Self::ReceiverExists => f.write_str("channel has a receiver"),
            Self::TimedOut => f.write_str("timed out"),
            Self::TooLarge { limit, actual } => {
                write!(
                    f,
                    "{actual} bytes for one place of the pool, which has at most {limit}"
                )
            }
            Self::TooManySenders => f.write_str("channel has as many senders as it can"),
            Self::WouldBlock => f.write_str("would block"),
        }
    }
}

impl core::error::Error for Error {}

impl fmt::Display for DirectoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inaccessible => "cannot be made or read",
            Self::Insecure => "is not the user's own, or others may write to it",
            Self::Path => "has a path that is too long or not allowed",
        })
    }
}

impl From<Expired> for Error {
    fn from(expired: Expired) -> Self {
        match expired {
            Expired::TimedOut => Self::TimedOut,
            Expired::WouldBlock => Self::WouldBlock,
        }
    }
}
