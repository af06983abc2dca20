//! What the errors of all devices have in common.

use core::fmt;

use crate::dtype::DType;

/// An error of a device, sorted.
///
/// Each device keeps an error type of its own; code that is generic over devices matches on the kind.
pub trait DeviceError: core::error::Error + Send + Sync + 'static {
    /// Returns what kind of failure this is.
    fn kind(&self) -> ErrorKind;

    /// Returns which tensor of the call it was about, by its place in wire order, if it was about one.
    fn tensor(&self) -> Option<usize>;
}

/// What kind of failure an error of a device is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The device or its driver failed; the device's error has the details.
    Backend,
    /// The elements are of another dtype than the place for them.
    DType {
        /// The dtype of the place.
        expected: DType,
        /// The dtype of the tensor.
        actual: DType,
    },
    /// Payload bytes are missing yet.
    Incomplete {
        /// How many.
        missing: usize,
    },
    /// A byte of a bool tensor is neither 0 nor 1.
    InvalidBool {
        /// Which element.
        index: usize,
        /// The byte.
        byte: u8,
    },
    /// There are more or fewer bytes than room for them.
    Length {
        /// Bytes of room.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// The bytes have not arrived yet, and the call was not to wait.
    NotReady,
    /// There is no memory, of the host or of the device, for so many bytes.
    OutOfMemory {
        /// How many.
        bytes: usize,
    },
    /// Too much staging memory is in use, and the call was not to wait.
    RingFull {
        /// Slots needed at once.
        needed: usize,
        /// Slots that were free.
        free: usize,
    },
    /// The time to wait was up.
    TimedOut,
    /// More is to be in staging memory at once than there is.
    TooLarge {
        /// Bytes needed.
        needed: usize,
        /// Bytes there are.
        room: usize,
    },
    /// There is no such device, or no driver for it.
    Unavailable,
    /// An earlier error was one that the device does not come back from.
    Unusable,
}

impl ErrorKind {
    /// Tells whether the same call may succeed later, without anybody's doing.
    #[must_use]
    pub const fn is_wait(self) -> bool {
        matches!(
            self,
            Self::NotReady | Self::RingFull { .. } | Self::TimedOut
        )
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Backend => f.write_str("the device failed"),
            Self::DType { expected, actual } => {
                write!(f, "{actual} where the place holds {expected}")
            }
            Self::Incomplete { missing } => write!(f, "{missing} payload bytes are missing"),
            Self::InvalidBool { index, byte } => {
                write!(f, "element {index} is {byte:#04x}, which is no bool")
            }
            Self::Length { expected, actual } => {
                write!(f, "{actual} bytes where there is room for {expected}")
            }
            Self::NotReady => f.write_str("not there yet"),
            Self::OutOfMemory { bytes } => write!(f, "no memory for {bytes} bytes"),
            Self::RingFull { needed, free } => {
                write!(f, "ring full: {needed} slots needed at once, {free} free")
            }
            Self::TimedOut => f.write_str("timed out"),
            Self::TooLarge { needed, room } => {
                write!(f, "{needed} bytes in staging at once where it has {room}")
            }
            Self::Unavailable => f.write_str("no such device"),
            Self::Unusable => f.write_str("the device is unusable after an earlier error"),
        }
    }
}

impl DeviceError for ErrorKind {
    fn kind(&self) -> ErrorKind {
        *self
    }

    fn tensor(&self) -> Option<usize> {
        None
    }
}

impl core::error::Error for ErrorKind {}
