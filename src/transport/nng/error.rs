//! Why a call to an NNG socket failed.

use core::fmt;

use crate::bundle;
use crate::transport::deadline::Expired;
use crate::transport::{CapExceeded, ErrorKind, TransportError};

/// Why a call to an NNG socket failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A message was larger than the caps allow; it was dropped.
    Cap(CapExceeded),
    /// The socket was closed.
    Closed,
    /// The connection ended while its reply was awaited. It will not come.
    Disconnected,
    /// A message has at least one frame.
    EmptyMessage,
    /// The endpoint is none, or of a transport that is not built in.
    Endpoint(::nng::Error),
    /// A received body is no bundle; it was dropped.
    Malformed(bundle::Error),
    /// Not the time for this call: a reply without a request, a second request
    /// before the reply to the first, a receive before the request.
    OutOfTurn,
    /// NNG or the operating system failed otherwise.
    System(::nng::Error),
    /// The time to wait was up.
    TimedOut,
    /// The frames are more, or longer, than one body holds.
    TooLarge(bundle::Error),
    /// It cannot be done now, and the call was not to wait.
    WouldBlock,
}

impl Error {
    /// Sorts an error of `listen` and `dial`.
    pub(super) fn of_endpoint(error: ::nng::Error) -> Self {
        match error {
            ::nng::Error::AddressInvalid
            | ::nng::Error::InvalidInput
            | ::nng::Error::NotSupported => Self::Endpoint(error),
            error => Self::from(error),
        }
    }

    /// Sorts what was wrong with the lengths of frames to be sent.
    pub(super) fn of_lengths(error: bundle::Error) -> Self {
        match error.kind() {
            bundle::ErrorKind::NoFrames => Self::EmptyMessage,
            _ => Self::TooLarge(error),
        }
    }
}

impl TransportError for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Cap(_) => ErrorKind::CapExceeded,
            Self::Closed => ErrorKind::Closed,
            Self::Disconnected => ErrorKind::Disconnected,
            Self::EmptyMessage | Self::Endpoint(_) | Self::OutOfTurn | Self::TooLarge(_) => {
                ErrorKind::InvalidInput
            }
            Self::Malformed(_) => ErrorKind::Malformed,
            Self::System(_) => ErrorKind::Other,
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
            Self::Closed => f.write_str("socket closed"),
            Self::Disconnected => f.write_str("connection ended before the reply"),
            Self::EmptyMessage => f.write_str("message without frames"),
            Self::Endpoint(error) => write!(f, "endpoint refused: {error}"),
            Self::Malformed(error) => write!(f, "body is no bundle: {error}"),
            Self::OutOfTurn => f.write_str("request and reply take turns"),
            Self::System(error) => write!(f, "nng: {error}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::TooLarge(error) => write!(f, "frames make no bundle: {error}"),
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

impl From<::nng::Error> for Error {
    fn from(error: ::nng::Error) -> Self {
        match error {
            ::nng::Error::Closed => Self::Closed,
            ::nng::Error::ConnectionReset => Self::Disconnected,
            ::nng::Error::IncorrectState => Self::OutOfTurn,
            error => Self::System(error),
        }
    }
}
