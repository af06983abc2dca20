//! Why a future of a transport failed.

use core::fmt;

use std::io;

use crate::transport::{CapExceeded, ErrorKind, TransportError};

/// Why a future of a transport failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error<E> {
    /// The reactor failed: its runtime is shutting down.
    Reactor(io::ErrorKind),
    /// The time to wait was up.
    TimedOut,
    /// The transport failed.
    Transport(E),
}

impl<E: TransportError> TransportError for Error<E> {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Reactor(_) => ErrorKind::Closed,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::Transport(error) => error.kind(),
        }
    }

    fn refused(&self) -> Option<CapExceeded> {
        match self {
            Self::Transport(error) => error.refused(),
            _ => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reactor(kind) => write!(f, "reactor failed: {kind}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Transport(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            // What it says is said already.
            Self::Transport(error) => error.source(),
            _ => None,
        }
    }
}
