//! Memory of a device, owned.

use alloc::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaEvent, CudaStream};

use super::driver::Driver;
use super::error::CudaError;

/// Memory of a device. Dropped, it is freed in the order of its stream, after the uses that cudarc tracked.
#[derive(Debug)]
pub(super) struct Buffer {
    driver: Arc<Driver>,
    /// Null for no bytes, which take no memory.
    pointer: CUdeviceptr,
    len: usize,
    /// On which it is freed: the transfer stream while it is being filled, then the consumer's.
    stream: Arc<CudaStream>,
    /// What fills it has run. `None` while it is being filled.
    ready: Option<Arc<CudaEvent>>,
    /// The last read that cudarc's safe layer knows of.
    read: Option<CudaEvent>,
}

impl Buffer {
    pub(super) fn allocate(
        driver: &Arc<Driver>,
        len: usize,
        stream: &Arc<CudaStream>,
    ) -> Result<Self, CudaError> {
        let _ = (driver, len, stream);
        todo!()
    }
}
