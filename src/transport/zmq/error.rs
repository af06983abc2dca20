//! Why a call to a ZeroMQ socket failed.

use core::fmt;

use crate::transport::deadline::Expired;
use crate::transport::{CapExceeded, ErrorKind, TransportError};

/// Why a call to a ZeroMQ socket failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A message was larger than the caps allow; it was drained.
    Cap(CapExceeded),
    /// The context was terminated.
    Closed,
    /// The connection ended while a message was under way. None of it arrives.
    Disconnected,
    /// A message has at least one frame.
    EmptyMessage,
    /// The endpoint is none, or not for this type of socket.
    Endpoint {
        /// The error number, as `zmq_errno` gave it.
        errno: i32,
    },
    /// The endpoint holds a NUL byte.
    EndpointWithNul,
    /// The identity does not have 1 to 255 bytes, or the first of them is zero.
    Identity {
        /// How many bytes it has.
        len: usize,
    },
    /// libzmq or the operating system failed otherwise.
    System {
        /// The error number, as `zmq_errno` gave it.
        errno: i32,
    },
    /// The time to wait was up.
    TimedOut,
    /// No peer has the identity that the envelope names; see
    /// [the module](super#envelopes) on peers that are gone.
    Unreachable,
    /// It cannot be done now, and the call was not to wait.
    WouldBlock,
}

impl Error {
    /// Sorts an error number of `bind` and `connect`.
    pub(super) fn of_endpoint(errno: i32) -> Self {
        match errno {
            zmq_sys::errno::EINVAL
            | zmq_sys::errno::ENOCOMPATPROTO
            | zmq_sys::errno::ENODEV
            | zmq_sys::errno::EPROTONOSUPPORT => Self::Endpoint { errno },
            errno => Self::from_errno(errno),
        }
    }

    /// Sorts an error number of a call that was not refused for the moment.
    pub(super) fn from_errno(errno: i32) -> Self {
        match errno {
            zmq_sys::errno::ETERM => Self::Closed,
            zmq_sys::errno::EHOSTUNREACH => Self::Unreachable,
            errno => Self::System { errno },
        }
    }
}

impl TransportError for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Cap(_) => ErrorKind::CapExceeded,
            Self::Closed => ErrorKind::Closed,
            Self::Disconnected => ErrorKind::Disconnected,
            Self::EmptyMessage
            | Self::Endpoint { .. }
            | Self::EndpointWithNul
            | Self::Identity { .. } => ErrorKind::InvalidInput,
            Self::System { .. } => ErrorKind::Other,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::Unreachable => ErrorKind::Unreachable,
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
            Self::Closed => f.write_str("context terminated"),
            Self::Disconnected => f.write_str("connection ended within a message"),
            Self::EmptyMessage => f.write_str("message without frames"),
            Self::Endpoint { errno } => {
                f.write_str("endpoint refused: ")?;
                describe(*errno, f)
            }
            Self::EndpointWithNul => f.write_str("endpoint with a nul byte"),
            Self::Identity { len } => write!(
                f,
                "identity of {len} bytes refused: 1 to 255 are allowed, the first not zero"
            ),
            Self::System { errno } => describe(*errno, f),
            Self::TimedOut => f.write_str("timed out"),
            Self::Unreachable => f.write_str("no peer with this identity"),
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

impl From<::zmq::Error> for Error {
    fn from(error: ::zmq::Error) -> Self {
        Self::from_errno(error.to_raw())
    }
}

/// Says what an error number means.
fn describe(errno: i32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match errno {
        zmq_sys::errno::ENOCOMPATPROTO => f.write_str("protocol not for this type of socket"),
        // libzmq's own numbers; those of the system have a text.
        errno if errno >= ZMQ_ERRNO_BASE => {
            write!(f, "libzmq error {}", errno.saturating_sub(ZMQ_ERRNO_BASE))
        }
        errno => write!(f, "{}", std::io::Error::from_raw_os_error(errno)),
    }
}

/// `ZMQ_HAUSNUMERO` of zmq.h: libzmq counts its own errors from here.
const ZMQ_ERRNO_BASE: i32 = 156_384_712;
