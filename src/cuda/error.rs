//! What failed, at which step, for which tensor.

use core::fmt;

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUresult;

use super::Unavailable;
use crate::device::{DeviceError, ErrorKind};

/// Something did not work on the way to a device or back.
///
/// It says what kind of failure it is and with which sizes ([`kind`](DeviceError::kind)), at which step,
/// for which tensor of the message, and what the driver said if it was the driver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CudaError {
    kind: ErrorKind,
    step: Step,
    tensor: Option<usize>,
    cause: Option<Cause>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cause {
    Driver(Code),
    Unavailable(Unavailable),
}

impl CudaError {
    pub(super) const fn new(kind: ErrorKind, step: Step) -> Self {
        Self {
            kind,
            step,
            tensor: None,
            cause: None,
        }
    }

    /// The driver refused `step`.
    pub(super) const fn driver(code: Code, step: Step) -> Self {
        Self {
            kind: ErrorKind::Backend,
            step,
            tensor: None,
            cause: Some(Cause::Driver(code)),
        }
    }

    /// Nothing is tried any more, since `code` came at `step`.
    pub(super) const fn unusable(code: Code, step: Step) -> Self {
        Self {
            kind: ErrorKind::Unusable,
            step,
            tensor: None,
            cause: Some(Cause::Driver(code)),
        }
    }

    /// The same, of the tensor at `index` in wire order.
    pub(super) const fn of_tensor(mut self, index: usize) -> Self {
        self.tensor = Some(index);
        self
    }

    /// The same, with `bytes` that there was no memory for, if that is what the driver said.
    pub(super) fn of_bytes(mut self, bytes: usize) -> Self {
        if self.code().is_some_and(Code::is_out_of_memory) && self.kind == ErrorKind::Backend {
            self.kind = ErrorKind::OutOfMemory { bytes };
        }
        self
    }

    /// Returns what was being done; for [`ErrorKind::Unusable`] what was done when the device broke.
    #[must_use]
    pub const fn step(&self) -> Step {
        self.step
    }

    /// Returns which tensor it was about, by its place in wire order.
    #[must_use]
    pub const fn tensor(&self) -> Option<usize> {
        self.tensor
    }

    /// Returns what the driver said; for [`ErrorKind::Unusable`] what it said when the device broke.
    #[must_use]
    pub const fn code(&self) -> Option<Code> {
        match self.cause {
            Some(Cause::Driver(code)) => Some(code),
            _ => None,
        }
    }

    /// Returns why there is no device, for [`ErrorKind::Unavailable`].
    #[must_use]
    pub const fn unavailable(&self) -> Option<Unavailable> {
        match self.cause {
            Some(Cause::Unavailable(unavailable)) => Some(unavailable),
            _ => None,
        }
    }
}

impl DeviceError for CudaError {
    fn kind(&self) -> ErrorKind {
        self.kind
    }

    fn tensor(&self) -> Option<usize> {
        self.tensor
    }
}

impl From<Unavailable> for CudaError {
    fn from(unavailable: Unavailable) -> Self {
        Self {
            kind: ErrorKind::Unavailable,
            step: Step::Open,
            tensor: None,
            cause: Some(Cause::Unavailable(unavailable)),
        }
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.tensor {
            write!(f, "tensor {index}: ")?;
        }
        write!(f, "{}: ", self.step)?;
        match self.cause {
            Some(Cause::Driver(code)) if self.kind == ErrorKind::Backend => code.fmt(f),
            Some(Cause::Driver(code)) => write!(f, "{} ({code})", self.kind),
            Some(Cause::Unavailable(unavailable)) => unavailable.fmt(f),
            None => self.kind.fmt(f),
        }
    }
}

impl core::error::Error for CudaError {}

/// What was being done when something failed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Asking for memory of the device.
    AllocateDevice,
    /// Asking for pinned memory.
    AllocatePinned,
    /// Asking the device for the bytes of a tensor.
    CopyToDevice,
    /// Asking the device to hand out the bytes of a tensor.
    CopyToHost,
    /// Making an event.
    CreateEvent,
    /// Making a stream.
    CreateStream,
    /// Making the context current on this thread; what failed in a drop before comes out here as well.
    Enter,
    /// Freeing memory of the device.
    FreeDevice,
    /// Freeing pinned memory, or unpinning it.
    FreePinned,
    /// Looking for driver and device, and opening the device.
    Open,
    /// Recording an event, after what it is to tell of.
    RecordEvent,
    /// Pinning memory that was there.
    Register,
    /// Copying bytes into staging memory.
    Stage,
    /// Asking an event whether it has fired; what failed on the device comes out here.
    QueryEvent,
    /// Making a stream wait for an event, or waiting for one.
    WaitEvent,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllocateDevice => "allocating device memory",
            Self::AllocatePinned => "allocating pinned memory",
            Self::CopyToDevice => "copying to the device",
            Self::CopyToHost => "copying to the host",
            Self::CreateEvent => "creating an event",
            Self::CreateStream => "creating a stream",
            Self::Enter => "entering the context",
            Self::FreeDevice => "freeing device memory",
            Self::FreePinned => "freeing pinned memory",
            Self::Open => "opening the device",
            Self::RecordEvent => "recording an event",
            Self::Register => "pinning memory",
            Self::Stage => "staging",
            Self::QueryEvent => "querying an event",
            Self::WaitEvent => "waiting for an event",
        })
    }
}

/// What the driver said: a `CUresult`.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Code(CUresult);

impl Code {
    /// Returns the number of the `CUresult`.
    #[must_use]
    pub const fn value(self) -> u32 {
        // A `#[repr(u32)]` enum has no other way to its number.
        #[allow(clippy::as_conversions)]
        {
            self.0 as u32
        }
    }

    /// Tells whether a context does not come back from it: every later call fails as well.
    #[must_use]
    pub const fn is_sticky(self) -> bool {
        matches!(
            self.0,
            CUresult::CUDA_ERROR_ASSERT
                | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
                | CUresult::CUDA_ERROR_DEINITIALIZED
                | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
                | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
                | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
                | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
                | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
                | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
                | CUresult::CUDA_ERROR_INVALID_PC
                | CUresult::CUDA_ERROR_LAUNCH_FAILED
                | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
                | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
                | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
                | CUresult::CUDA_ERROR_UNKNOWN
        )
    }

    pub(super) const fn is_no_device(self) -> bool {
        matches!(self.0, CUresult::CUDA_ERROR_NO_DEVICE)
    }

    pub(super) const fn is_out_of_memory(self) -> bool {
        matches!(self.0, CUresult::CUDA_ERROR_OUT_OF_MEMORY)
    }
}

impl From<DriverError> for Code {
    fn from(error: DriverError) -> Self {
        Self(error.0)
    }
}

/// Its name, `CUDA_ERROR_OUT_OF_MEMORY` say. The driver is not asked: it may be what failed.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
