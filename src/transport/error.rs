//! What the errors of all transports have in common.

use super::CapExceeded;

/// An error of a transport, sorted.
///
/// Each transport keeps an error type of its own, with its own numbers; code
/// that is generic over transports matches on the kind, or passes the error on
/// as a `Box<dyn Error + Send + Sync>`.
pub trait TransportError: core::error::Error + Send + Sync + 'static {
    /// Returns what kind of failure this is.
    fn kind(&self) -> ErrorKind;

    /// Returns which cap a received message broke, if that is what failed.
    fn refused(&self) -> Option<CapExceeded> {
        None
    }
}

/// What kind of failure an error of a transport is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A received message was larger than the caps allow. It was drained; the
    /// next one is intact.
    ///
    /// Over ipc and tcp the library may cut the peer off instead, and there is no such
    /// error: see [the exception](super#the-contract).
    CapExceeded,
    /// The transport, or the far end of it, is closed for good.
    Closed,
    /// A connection ended while a message was under way. None of that message
    /// arrives; the next one has a fresh start.
    Disconnected,
    /// The call itself is at fault: no frames, an endpoint that is none.
    InvalidInput,
    /// A received message is none: its bytes are not what the transport puts
    /// messages into. It is gone; the next one is intact.
    Malformed,
    /// Anything else; the error has the details.
    Other,
    /// The time to wait was up.
    TimedOut,
    /// There is no peer of that name, as far as the transport knows: one that died
    /// may count as there for a while.
    Unreachable,
    /// It cannot be done now, and the call was not to wait.
    WouldBlock,
}

impl ErrorKind {
    /// Tells whether the call only ran out of time: the same call may succeed later.
    #[must_use]
    pub fn is_wait(self) -> bool {
        matches!(self, Self::TimedOut | Self::WouldBlock)
    }
}
