//! Bare calls of the driver, for programs that do wrong: the driver's functions as they are.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdeviceptr};
use cudarc::driver::{CudaContext, CudaStream};

pub(crate) const LEN: usize = 100_000;

/// A context, and two streams.
pub(crate) struct Bare {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) a: Arc<CudaStream>,
    pub(crate) b: Arc<CudaStream>,
}

impl Bare {
    pub(crate) fn new() -> Self {
        let context = CudaContext::new(0).unwrap();
        let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        Self { context, a, b }
    }

    /// Pinned memory of `LEN` bytes.
    pub(crate) fn pinned(&self) -> *mut u8 {
        // SAFETY: the context is current on this thread: `new` made it so.
        unsafe { result::malloc_host(LEN, 0) }.unwrap().cast()
    }

    /// Device memory of `LEN` bytes.
    pub(crate) fn device(&self, stream: &CudaStream) -> CUdeviceptr {
        // SAFETY: the stream exists.
        unsafe { result::malloc_async(stream.cu_stream(), LEN) }.unwrap()
    }
}

pub(crate) fn upload(
    to: CUdeviceptr,
    from: *const u8,
    len: usize,
    stream: &CudaStream,
) -> Result<(), DriverError> {
    // SAFETY: none: that the driver notices is what is tested. It touches nothing that is not there.
    unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.cast(), len, stream.cu_stream()) }.result()
}

pub(crate) fn download(
    to: *mut u8,
    from: CUdeviceptr,
    len: usize,
    stream: &CudaStream,
) -> Result<(), DriverError> {
    // SAFETY: as for `upload`.
    unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, len, stream.cu_stream()) }.result()
}

pub(crate) fn free(memory: CUdeviceptr, stream: &CudaStream) -> Result<(), DriverError> {
    // SAFETY: as for `upload`.
    unsafe { sys::cuMemFreeAsync(memory, stream.cu_stream()) }.result()
}

pub(crate) fn free_pinned(memory: *mut u8) -> Result<(), DriverError> {
    // SAFETY: as for `upload`.
    unsafe { sys::cuMemFreeHost(memory.cast()) }.result()
}

pub(crate) fn register(bytes: &mut [u8]) -> Result<(), DriverError> {
    let start: *mut c_void = bytes.as_mut_ptr().cast();
    // SAFETY: the bytes are there; when they go is what is tested.
    unsafe { sys::cuMemHostRegister_v2(start, bytes.len(), 0) }.result()
}

pub(crate) fn unregister(start: *mut u8) -> Result<(), DriverError> {
    // SAFETY: as for `upload`.
    unsafe { sys::cuMemHostUnregister(start.cast()) }.result()
}
