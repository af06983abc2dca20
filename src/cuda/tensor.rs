//! A tensor in a device's memory, and typed views of it.

use core::marker::PhantomData;
use core::ops::Range;

use alloc::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaStream, DevicePtr, DeviceSlice, SyncOnDrop};

use super::buffer::Buffer;
use super::error::CudaError;
use crate::device::{DeviceTensor, TensorInfo};
use crate::error::CastError;
use crate::tensor::Element;
use crate::transport::Wait;

/// A tensor in a device's memory: dtype, name and shape are kept.
///
/// Small tensors of one message lie in one allocation, which lives as long as any of them.
#[derive(Debug)]
pub struct Tensor {
    info: TensorInfo,
    buffer: Arc<Buffer>,
    range: Range<usize>,
    /// The first byte of a bool tensor that is none, as it was staged.
    invalid_bool: Option<CastError>,
}

impl Tensor {
    /// Sees its elements, for cudarc's functions that take a [`DevicePtr`], and for kernels.
    ///
    /// # Errors
    ///
    /// [`CastError::WrongDType`]; [`CastError::InvalidBool`] if a byte that was uploaded is neither 0 nor 1.
    pub fn view<T: Element>(&self) -> Result<View<'_, T>, CastError> {
        todo!()
    }

    /// Sees its bytes, whatever the dtype.
    #[must_use]
    pub fn bytes(&self) -> View<'_, u8> {
        todo!()
    }

    /// Returns where it lies in the device's memory: at a multiple of 256.
    ///
    /// Use it on the stream it was uploaded for, or after [`wait_on`](Self::wait_on), and not longer than the tensor.
    #[must_use]
    pub fn device_pointer(&self) -> CUdeviceptr {
        todo!()
    }

    /// Makes what comes next on `stream` wait until its bytes are in place; the host does not wait.
    ///
    /// The stream that it was uploaded for does that already.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn wait_on(&self, stream: &CudaStream) -> Result<(), CudaError> {
        let _ = stream;
        todo!()
    }

    /// Waits until its bytes are in place.
    ///
    /// # Errors
    ///
    /// `NotReady`, `TimedOut` by `wait`; the driver's, if the copy failed.
    pub fn wait(&self, wait: Wait) -> Result<(), CudaError> {
        let _ = wait;
        todo!()
    }
}

impl DeviceTensor for Tensor {
    type Error = CudaError;

    fn info(&self) -> &TensorInfo {
        &self.info
    }

    fn is_ready(&self) -> Result<bool, CudaError> {
        todo!()
    }
}

/// Elements in a device's memory.
#[derive(Debug)]
pub struct View<'a, T> {
    pointer: CUdeviceptr,
    len: usize,
    buffer: &'a Arc<Buffer>,
    elements: PhantomData<&'a [T]>,
}

impl<T> DeviceSlice<T> for View<'_, T> {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        todo!()
    }
}

impl<T> DevicePtr<T> for View<'_, T> {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        let _ = stream;
        todo!()
    }
}
