//! What goes wrong between slots and a device.

use core::fmt;

use crate::cuda::CudaError;
use crate::device::DeviceError;
use crate::error::{DecodeError, EncodeError};
use crate::plane;
use crate::transfer::pool::PoolError;

/// Tensors could not be brought from a slot to the device, or the other way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RegionError {
    /// The device or its driver failed.
    Cuda(CudaError),
    /// The manifest is of a slot of another length, or refused.
    Decode(DecodeError),
    /// The tensors cannot be told apart, or are too large.
    Encode(EncodeError),
    /// The slot is of another region, there is none, or the memory is not the host's.
    Plane(plane::ErrorKind),
}

impl RegionError {
    /// Tells whether the same call may succeed later, without its caller's doing: there is no room on the way, or no free slot.
    #[must_use]
    pub fn is_wait(&self) -> bool {
        match self {
            Self::Cuda(error) => error.kind().is_wait(),
            Self::Plane(plane::ErrorKind::Pool(PoolError::Full { .. })) => true,
            Self::Plane(kind) => kind.is_wait(),
            Self::Decode(_) | Self::Encode(_) => false,
        }
    }
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(error) => error.fmt(f),
            Self::Decode(error) => error.fmt(f),
            Self::Encode(error) => error.fmt(f),
            Self::Plane(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RegionError {}

impl From<CudaError> for RegionError {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error)
    }
}

impl From<DecodeError> for RegionError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<EncodeError> for RegionError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

impl From<plane::ErrorKind> for RegionError {
    fn from(error: plane::ErrorKind) -> Self {
        Self::Plane(error)
    }
}
