//! The device that is checked, and ways around the adapter to see what it did.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, CudaStream};
use tensorwire::cuda::{Cuda, Options, Tensor};
use tensorwire::transport::Wait;

use crate::Result;

/// One context, an adapter with the ring as it comes, and a stream such as a model computes on.
pub(crate) struct Gpu {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) cuda: Cuda,
    pub(crate) stream: Arc<CudaStream>,
}

impl Gpu {
    pub(crate) fn open(ordinal: usize) -> Result<Self> {
        let cuda = Cuda::open(ordinal, Options::new())?;
        let context = cuda.context().clone();
        let stream = context.new_stream()?;
        Ok(Self {
            context,
            cuda,
            stream,
        })
    }

    /// An adapter of its own for the same context.
    pub(crate) fn with(&self, options: Options) -> Result<Cuda> {
        Ok(Cuda::with_context(self.context.clone(), options)?)
    }

    /// What the device holds, fetched by cudarc and not by the adapter.
    pub(crate) fn fetch(&self, tensor: &Tensor) -> Result<Vec<u8>> {
        fetch(tensor, &self.stream)
    }
}

/// What the device holds as `stream` sees it, fetched by cudarc.
pub(crate) fn fetch(tensor: &Tensor, stream: &Arc<CudaStream>) -> Result<Vec<u8>> {
    use tensorwire::device::DeviceTensor;
    let len = tensor.info().byte_len();
    if len == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: `alloc_pinned_with_flags` says that the memory holds anything: it is written before it is read.
    let mut pinned = unsafe { stream.context().alloc_pinned_with_flags::<u8>(len, 0) }?;
    stream.memcpy_dtoh(&tensor.bytes(), &mut pinned)?;
    // `as_slice` waits only where cudarc tracks.
    stream.synchronize()?;
    Ok(pinned.as_slice()?.to_vec())
}

/// Asks until it is so; gives up after some seconds.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !is_so()? {
        if start.elapsed() > PATIENCE {
            return Err(format!("{what}: not so after {PATIENCE:?}").into());
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// The ring is empty again: nothing was lost on the way.
pub(crate) fn settled(cuda: &Cuda) -> Result<()> {
    eventually("the ring is empty", || {
        cuda.poll()?;
        Ok(cuda.statistics().in_use == 0)
    })?;
    match cuda.statistics().lost {
        0 => Ok(()),
        lost => Err(format!("{lost} slots are lost").into()),
    }
}

/// How long a check waits for room or for bytes.
pub(crate) const PATIENT: Wait = Wait::UpTo(PATIENCE);

const PATIENCE: Duration = Duration::from_secs(30);
