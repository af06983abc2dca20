//! What can go wrong on a device that is the host.

use core::fmt;

use crate::device::{DeviceError, ErrorKind};

/// Tensors could not be brought to the host's own memory.
///
/// There is little that can fail: memory runs out ([`ErrorKind::OutOfMemory`]), or the bytes are not as many, or the
/// elements not of the dtype, as was said before ([`ErrorKind::Length`], [`ErrorKind::Incomplete`], [`ErrorKind::DType`]).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HostError {
    kind: ErrorKind,
    tensor: Option<usize>,
}

impl HostError {
    pub(super) const fn new(kind: ErrorKind) -> Self {
        Self { kind, tensor: None }
    }

    /// The same, of the tensor at `index` in wire order.
    pub(super) const fn of_tensor(self, index: usize) -> Self {
        let tensor = Some(index);
        Self { tensor, ..self }
    }
}

impl DeviceError for HostError {
    fn kind(&self) -> ErrorKind {
        self.kind
    }

    fn tensor(&self) -> Option<usize> {
        self.tensor
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        match self.tensor {
            Some(index) => write!(f, ", at tensor {index}"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for HostError {}
