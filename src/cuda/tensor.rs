//! A tensor in a device's memory, and typed views of it.

use core::marker::PhantomData;
use core::ops::Range;

use alloc::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaStream, DevicePtr, DeviceSlice, SyncOnDrop};

use super::backoff::wait_for;
use super::buffer::Buffer;
use super::error::CudaError;
use crate::device::{DeviceTensor, TensorInfo};
use crate::dtype::DType;
use crate::error::CastError;
use crate::tensor::Element;
use crate::transport::Wait;

/// A tensor in a device's memory: dtype, name and shape are kept.
///
/// Small tensors of one message lie in one allocation, which lives as long as any of them.
///
/// # Streams
///
/// It belongs to the stream that it was uploaded for: use it there without a thought. On another stream use it through a
/// [`View`], which sees to the order, or after [`wait_on`](Self::wait_on). Dropped, its memory is freed in the order of
/// its own stream, after the reads through views on others; if cudarc's event tracking is
/// disabled, reads on other streams have to be over, or joined, before the tensor is dropped.
///
/// # Examples
///
/// ```no_run
/// use tensorwire::TensorView;
/// use tensorwire::cuda::{Cuda, Options};
/// use tensorwire::device::Device;
/// use tensorwire::transport::Wait;
///
/// let cuda = Cuda::open(0, Options::new())?;
/// let stream = cuda.context().new_stream()?;
/// let host = TensorView::from_slice("sigmas", &[3], &[1.0_f32, 0.5, 0.25])?;
/// let tensor = cuda.upload(&host, &stream, Wait::Configured)?;
///
/// // A copy on another stream, as a kernel would read it: it waits for the upload, this thread does not.
/// let other = cuda.context().new_stream()?;
/// let mut sigmas = other.alloc_zeros::<f32>(3)?;
/// other.memcpy_dtod(&tensor.view::<f32>()?, &mut sigmas)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tensor {
    info: TensorInfo,
    buffer: Arc<Buffer>,
    /// In bytes of the buffer.
    range: Range<usize>,
    /// The first byte of a bool tensor that is none, as it was staged.
    invalid_bool: Option<CastError>,
}

impl Tensor {
    /// `range` is inside of the buffer, as long as the tensor, and starts at a multiple of 256.
    pub(super) const fn new(
        info: TensorInfo,
        buffer: Arc<Buffer>,
        range: Range<usize>,
        invalid_bool: Option<CastError>,
    ) -> Self {
        Self {
            info,
            buffer,
            range,
            invalid_bool,
        }
    }

    /// Sees its elements, for cudarc's functions that take a [`DevicePtr`], and for kernels.
    ///
    /// # Errors
    ///
    /// [`CastError::WrongDType`]; [`CastError::InvalidBool`] if a byte that was uploaded is neither 0 nor 1.
    pub fn view<T: Element>(&self) -> Result<View<'_, T>, CastError> {
        let (expected, actual) = (T::DTYPE, self.info.dtype());
        if actual != expected {
            return Err(CastError::WrongDType { expected, actual });
        }
        match self.invalid_bool {
            Some(invalid) if actual == DType::Bool => Err(invalid),
            _ => Ok(self.see(self.info.element_count())),
        }
    }

    /// Sees its bytes, whatever the dtype.
    #[must_use]
    pub fn bytes(&self) -> View<'_, u8> {
        self.see(self.info.byte_len())
    }

    const fn see<T>(&self, len: usize) -> View<'_, T> {
        View {
            tensor: self,
            len,
            elements: PhantomData,
        }
    }

    /// Returns where it lies in the device's memory: at a multiple of 256; null without a byte.
    ///
    /// Use it on the stream it was uploaded for, or after [`wait_on`](Self::wait_on), and not longer than the tensor.
    #[must_use]
    pub fn device_pointer(&self) -> CUdeviceptr {
        match self.buffer.pointer() {
            0 => 0,
            start => offset(start, self.range.start),
        }
    }

    /// Tells whether it lies in one allocation with `other`.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer)
    }

    /// Returns the stream that it belongs to.
    #[must_use]
    pub fn stream(&self) -> &Arc<CudaStream> {
        self.buffer.stream()
    }

    /// Makes what comes next on `stream` wait until its bytes are in place; the host does not wait.
    ///
    /// The stream that it was uploaded for does that already.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn wait_on(&self, stream: &CudaStream) -> Result<(), CudaError> {
        match self.buffer.ready() {
            Some(ready) => self.buffer.driver().wait(stream, ready),
            None => Ok(()),
        }
    }

    /// Waits until its bytes are in place.
    ///
    /// [`Wait::Configured`] waits as long as it takes.
    ///
    /// # Errors
    ///
    /// `NotReady`, `TimedOut` by `wait`; the driver's, if the copy failed.
    pub fn wait(&self, wait: Wait) -> Result<(), CudaError> {
        match self.buffer.ready() {
            Some(ready) => wait_for(self.buffer.driver(), ready, wait, None),
            None => Ok(()),
        }
    }

    /// Gives the memory away, for another owner that frees it in the order of the stream: its start, its
    /// length in bytes, and the stream.
    ///
    /// This is for `CudaStream::upgrade_device_ptr`, out of which other crates make their tensors. What is never freed
    /// is leaked.
    ///
    /// # Errors
    ///
    /// The tensor as it was, if it has no bytes, or shares its memory with other tensors
    /// ([`Options::with_batch_bytes`](super::Options::with_batch_bytes)): copy it then.
    pub fn into_raw(self) -> Result<(CUdeviceptr, usize, Arc<CudaStream>), Self> {
        let Self {
            info,
            buffer,
            range,
            invalid_bool,
        } = self;
        let again = |buffer| Self::new(info, buffer, range.clone(), invalid_bool);
        if range.start != 0 || range.end != buffer.len() {
            return Err(again(buffer));
        }
        match Arc::try_unwrap(buffer) {
            Ok(buffer) => match buffer.into_raw() {
                Ok(raw) => Ok(raw),
                Err(buffer) => Err(again(Arc::new(buffer))),
            },
            Err(buffer) => Err(again(buffer)),
        }
    }
}

impl DeviceTensor for Tensor {
    type Error = CudaError;

    fn info(&self) -> &TensorInfo {
        &self.info
    }

    fn is_ready(&self) -> Result<bool, CudaError> {
        match self.buffer.ready() {
            Some(ready) => self.buffer.driver().is_complete(ready),
            None => Ok(true),
        }
    }
}

/// Elements in a device's memory.
///
/// It stands where cudarc takes a [`DevicePtr`]: the stream of the call waits for the upload, and the memory
/// is freed after what the call reads. With cudarc's event tracking disabled the latter is left to the user, as it is for
/// cudarc's own slices.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    tensor: &'a Tensor,
    /// In elements.
    len: usize,
    elements: PhantomData<&'a [T]>,
}

impl<T> DeviceSlice<T> for View<'_, T> {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.tensor.buffer.stream()
    }
}

impl<T> DevicePtr<T> for View<'_, T> {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        let read = self.tensor.buffer.read_on(stream);
        (self.tensor.device_pointer(), read)
    }
}

/// The address `bytes` after `start`; both are of one allocation, whose end is an address.
pub(super) fn offset(start: CUdeviceptr, bytes: usize) -> CUdeviceptr {
    start.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX))
}
