//! Why something failed.

use core::error::Error as StdError;
use core::fmt;

use std::io;

use super::peers::PeerError;
use super::windows::Refused;
use crate::plane::{ErrorKind, PlaneError};

/// An error of the shared-memory plane.
///
/// Small and `Copy`: the kind, and what the system said, if it did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Error {
    kind: ErrorKind,
    io: Option<io::ErrorKind>,
}

impl Error {
    /// Returns what the system said: [`StorageFull`](io::ErrorKind::StorageFull) where the
    /// folder has no room for a pool.
    #[must_use]
    pub const fn io_kind(&self) -> Option<io::ErrorKind> {
        self.io
    }

    /// Of a push of `len` bytes to `address`.
    pub(super) fn of_peer(error: PeerError, address: u64, len: u64) -> Self {
        match error {
            PeerError::Gone => ErrorKind::PeerGone.into(),
            PeerError::Io(error) => error.into(),
            PeerError::NoPool => ErrorKind::OutOfBounds { address, len }.into(),
            PeerError::UnknownSession => ErrorKind::UnknownSession.into(),
        }
    }

    /// Of a push of `len` bytes.
    pub(super) fn of_window(refused: Refused, len: u64) -> Self {
        match refused {
            Refused::Busy => ErrorKind::Busy.into(),
            Refused::Closed => ErrorKind::Closed.into(),
            Refused::TooShort { room } => ErrorKind::PastWindow { len, room }.into(),
        }
    }
}

impl PlaneError for Error {
    fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, io: None }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self {
            kind: ErrorKind::Backend,
            io: Some(error.kind()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        match self.io {
            Some(io) => write!(f, ": {io}"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {}
