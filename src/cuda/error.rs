//! What failed, at which step, for which tensor.

use core::fmt;
use core::num::NonZeroUsize;

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUresult;

use super::Unavailable;
use crate::device::{DeviceError, ErrorKind};

/// Something did not work on the way to a device or back.
///
/// It says what kind of failure it is, with its sizes ([`kind`](DeviceError::kind)), at which step and of how many bytes,
/// for which tensor of the call ([`tensor`](DeviceError::tensor)), and what the driver said if it was the driver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CudaError {
    kind: ErrorKind,
    step: Step,
    tensor: Option<usize>,
    bytes: Option<NonZeroUsize>,
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
            bytes: None,
            cause: None,
        }
    }

    /// The driver refused `step`.
    pub(super) const fn driver(code: Code, step: Step) -> Self {
        Self {
            kind: ErrorKind::Backend,
            step,
            tensor: None,
            bytes: None,
            cause: Some(Cause::Driver(code)),
        }
    }

    /// Nothing is tried any more, since `code` came at `step`.
    pub(super) const fn unusable(code: Code, step: Step) -> Self {
        Self {
            kind: ErrorKind::Unusable,
            step,
            tensor: None,
            bytes: None,
            cause: Some(Cause::Driver(code)),
        }
    }

    /// The same, of the tensor at `index` in wire order; but what broke the device was not about that one.
    pub(super) const fn of_tensor(mut self, index: usize) -> Self {
        if !matches!(self.kind, ErrorKind::Unusable) {
            self.tensor = Some(index);
        }
        self
    }

    /// The same, of a step over so many bytes; there was no memory for them, if that is what the driver said.
    pub(super) fn of_bytes(mut self, bytes: usize) -> Self {
        self.bytes = NonZeroUsize::new(bytes);
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

    /// Returns how many bytes were to be allocated, pinned or copied, if it was at such a step that the driver failed.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        self.bytes.map(NonZeroUsize::get)
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
            bytes: None,
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
            Some(Cause::Driver(code)) if self.kind == ErrorKind::Backend => match self.bytes {
                Some(bytes) => write!(f, "{code} ({bytes} bytes)"),
                None => code.fmt(f),
            },
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
    /// Asking an event whether it has fired; what failed on the device comes out here.
    QueryEvent,
    /// Recording an event, after what it is to tell of.
    RecordEvent,
    /// Pinning memory that was there.
    Register,
    /// Copying bytes into staging memory.
    Stage,
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
            Self::QueryEvent => "querying an event",
            Self::RecordEvent => "recording an event",
            Self::Register => "pinning memory",
            Self::Stage => "staging",
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
        is_sticky_and_newer(self.value())
            || matches!(
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

/// Whether a context does not come back from it either, of those that cudarc has no names for where it is built for an older
/// CUDA: the driver may be newer.
const fn is_sticky_and_newer(code: u32) -> bool {
    const CONTAINED: u32 = 226;
    const TENSOR_MEMORY_LEAK: u32 = 721;
    const MPS_CLIENT_TERMINATED: u32 = 810;
    matches!(code, CONTAINED | TENSOR_MEMORY_LEAK | MPS_CLIENT_TERMINATED)
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

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn errors_say_tensor_step_and_sizes() {
        let refused = CudaError::driver(Code(CUresult::CUDA_ERROR_INVALID_VALUE), Step::CopyToHost);
        let out_of_memory = Code(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let broken = Code(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        let (needed, free) = (3, 1);
        for (error, bytes, text) in [
            (
                refused,
                None,
                "copying to the host: CUDA_ERROR_INVALID_VALUE",
            ),
            (
                refused.of_tensor(2).of_bytes(4096),
                Some(4096),
                "tensor 2: copying to the host: CUDA_ERROR_INVALID_VALUE (4096 bytes)",
            ),
            (
                CudaError::driver(out_of_memory, Step::AllocateDevice).of_bytes(7),
                Some(7),
                "allocating device memory: no memory for 7 bytes (CUDA_ERROR_OUT_OF_MEMORY)",
            ),
            (
                CudaError::new(ErrorKind::RingFull { needed, free }, Step::Stage).of_tensor(0),
                None,
                "tensor 0: staging: ring full: 3 slots needed at once, 1 free",
            ),
            (
                CudaError::unusable(broken, Step::QueryEvent).of_tensor(0),
                None,
                "querying an event: the device is unusable in this process after an earlier error (CUDA_ERROR_ILLEGAL_ADDRESS)",
            ),
            (
                CudaError::from(Unavailable::NoLibrary),
                None,
                "opening the device: no library of a CUDA driver found",
            ),
        ] {
            assert_eq!(error.to_string(), text);
            assert_eq!(error.bytes(), bytes, "{text}");
        }
    }

    #[test]
    fn a_context_comes_back_from_what_the_call_alone_failed_with() {
        for (code, expected) in [
            (CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, true),
            (CUresult::CUDA_ERROR_ECC_UNCORRECTABLE, true),
            (CUresult::CUDA_ERROR_OUT_OF_MEMORY, false),
            (CUresult::CUDA_ERROR_NOT_READY, false),
            (CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, false),
        ] {
            assert_eq!(Code(code).is_sticky(), expected, "{code:?}");
        }
        assert!([226, 721, 810].into_iter().all(is_sticky_and_newer));
        assert!(
            ![0, 2, 225, 227, 720, 722, 809]
                .into_iter()
                .any(is_sticky_and_newer)
        );
    }
}
