//! Why a push failed, and what is wrong with a message.

use core::fmt;

use super::Refusal;
use crate::error::{DecodeError, ValueError};
use crate::plane::{ErrorKind, PlaneError};
use crate::transport;

/// Why a push was not begun, or has failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The inlet says that it wrote another number of bytes than were pushed.
    Amount {
        /// How many bytes were pushed.
        pushed: u64,
        /// How many it says that it wrote.
        written: u64,
    },
    /// The link failed, and whether the push arrived is not known.
    Link(transport::ErrorKind),
    /// There is no link to the session.
    NoLink(transport::ErrorKind),
    /// The push was not begun, for a reason that all planes have.
    Plane(ErrorKind),
    /// The inlet wrote nothing.
    Refused(Refusal),
    /// No answer came within the timeout, and whether the push arrived is not known.
    TimedOut,
    /// The push has more bytes than [`with_max_push_bytes`] admits.
    ///
    /// [`with_max_push_bytes`]: super::Plane::with_max_push_bytes
    TooLarge {
        /// How many are admitted.
        limit: u64,
        /// How many there are.
        actual: u64,
    },
    /// The push has more pieces than a message has tensors.
    TooManyPieces {
        /// How many are admitted.
        limit: usize,
        /// How many there are.
        actual: usize,
    },
}

impl PlaneError for Error {
    fn kind(&self) -> ErrorKind {
        match *self {
            Self::Amount { .. } | Self::TooLarge { .. } | Self::TooManyPieces { .. } => {
                ErrorKind::Backend
            }
            Self::Link(_) => ErrorKind::PeerGone,
            Self::NoLink(kind) => match kind {
                transport::ErrorKind::InvalidInput | transport::ErrorKind::Unreachable => {
                    ErrorKind::UnknownSession
                }
                _ => ErrorKind::PeerGone,
            },
            Self::Plane(kind) => kind,
            Self::Refused(refusal) => match refusal {
                Refusal::Busy => ErrorKind::Busy,
                Refusal::Closed => ErrorKind::Closed,
                Refusal::OutOfBounds { address, len } => ErrorKind::OutOfBounds { address, len },
                Refusal::PastWindow { len, room } => ErrorKind::PastWindow { len, room },
                Refusal::UnknownSession => ErrorKind::UnknownSession,
                _ => ErrorKind::Backend,
            },
            Self::TimedOut => ErrorKind::TimedOut,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount { pushed, written } => {
                write!(f, "{written} bytes written of {pushed} pushed")
            }
            Self::Link(kind) => write!(f, "link failed ({kind:?}) before the answer came"),
            Self::NoLink(kind) => write!(f, "no link to the session ({kind:?})"),
            Self::Plane(kind) => kind.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::TimedOut => f.write_str("no answer came in time"),
            Self::TooLarge { limit, actual } => {
                write!(f, "push of {actual} bytes, at most {limit} allowed")
            }
            Self::TooManyPieces { limit, actual } => {
                write!(f, "push of {actual} pieces, at most {limit} allowed")
            }
        }
    }
}

impl core::error::Error for Error {}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self::Plane(kind)
    }
}

/// What is wrong with a message that is not what it should be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Malformed {
    /// It is no tensor message.
    Decode(DecodeError),
    /// It is a tensor message of another kind.
    Kind,
    /// A scalar is missing.
    Missing {
        /// Its name.
        key: &'static str,
    },
    /// A scalar is not of its type, or out of range.
    Scalar {
        /// Its name.
        key: &'static str,
        /// What is wrong with it, and where in the metadata.
        error: ValueError,
    },
    /// A scalar is there twice.
    Twice {
        /// Its name.
        key: &'static str,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(error) => error.fmt(f),
            Self::Kind => f.write_str("message of another kind"),
            Self::Missing { key } => write!(f, "no scalar \"{key}\""),
            Self::Scalar { key, error } => write!(f, "scalar \"{key}\": {error}"),
            Self::Twice { key } => write!(f, "scalar \"{key}\" twice"),
        }
    }
}

impl core::error::Error for Malformed {}

impl From<DecodeError> for Malformed {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

/// Why nothing was written of a message that came in, or none came in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum InletError<E> {
    /// The message is no push. It was answered if an id could be read.
    Malformed(Malformed),
    /// The push cannot be written, and was answered so.
    Refused(Refusal),
    /// Receiving failed. What [`TransportError::kind`] says is not to be tried again, will
    /// fail again.
    ///
    /// [`TransportError::kind`]: crate::transport::TransportError::kind
    Transport(E),
}

impl<E: fmt::Display> fmt::Display for InletError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(malformed) => write!(f, "no push: {malformed}"),
            Self::Refused(refusal) => write!(f, "push refused: {refusal}"),
            Self::Transport(error) => write!(f, "receiving failed: {error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for InletError<E> {}
