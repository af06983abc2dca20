//! Device memory of a message's tensors while it is being filled.

use alloc::sync::Arc;
use alloc::vec::Vec;

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaEvent, CudaStream, DriverError};

use super::adapter::Shared;
use super::buffer::{Buffer, is_per_thread};
use super::error::{Code, CudaError, Step};
use super::staging::Target;
use super::tensor::{Tensor, offset};
use crate::device::{ErrorKind, Place, Plan, TensorInfo, Tensors};
use crate::dtype::DType;
use crate::error::CastError;
use crate::tensor::Descriptor;

/// Memory for tensors that are to come, allocated on the stream to the device, on which it is filled.
///
/// Dropped, the memory is freed behind what is on that stream by then.
#[derive(Debug)]
pub(super) struct Incoming {
    shared: Arc<Shared>,
    /// Who is to use the tensors.
    stream: Arc<CudaStream>,
    tensors: Vec<(TensorInfo, Option<CastError>)>,
    plan: Plan,
    /// One for each group of the plan; none before [`allocate`](Self::allocate).
    buffers: Vec<Buffer>,
}

impl Incoming {
    /// Plans for tensors that `stream` is to use.
    ///
    /// Errors: `OutOfMemory` if no memory holds them; `CUDA_ERROR_INVALID_CONTEXT` for a stream of another context.
    pub(super) fn plan<'a>(
        shared: &Arc<Shared>,
        descriptors: impl IntoIterator<Item = Descriptor<'a>>,
        stream: &Arc<CudaStream>,
    ) -> Result<Self, CudaError> {
        check_stream(shared, stream)?;
        let infos = descriptors.into_iter();
        let tensors: Vec<_> = infos
            .map(|descriptor| (TensorInfo::new(&descriptor), None))
            .collect();
        let lens = tensors.iter().map(|(info, _)| info.byte_len());
        let plan = Plan::new(lens, shared.options.batch_bytes()).ok_or_else(|| {
            let kind = ErrorKind::OutOfMemory { bytes: usize::MAX };
            CudaError::new(kind, Step::AllocateDevice)
        })?;
        Ok(Self {
            shared: shared.clone(),
            stream: stream.clone(),
            tensors,
            plan,
            buffers: Vec::new(),
        })
    }

    /// Allocates the memory.
    ///
    /// Errors: the driver's, of the first tensor that there is none for; what was allocated is freed when this goes.
    pub(super) fn allocate(&mut self) -> Result<(), CudaError> {
        for group in &self.plan.groups {
            let buffer = Buffer::allocate(&self.shared.driver, group.len, &self.shared.to_device);
            let buffer = buffer.map_err(|error| error.of_tensor(group.first))?;
            self.buffers.push(buffer);
        }
        Ok(())
    }

    /// How many bytes a tensor has.
    pub(super) fn len_of(&self, tensor: usize) -> usize {
        self.plan.places.get(tensor).map_or(0, |place| place.len)
    }

    /// How many bytes all tensors have.
    pub(super) fn byte_len(&self) -> usize {
        let lens = self.plan.places.iter().map(|place| place.len);
        lens.fold(0, usize::saturating_add)
    }

    /// How many tensors there are.
    pub(super) const fn len(&self) -> usize {
        self.tensors.len()
    }

    /// The tensors, those of one allocation one after the other.
    pub(super) fn by_group(&self) -> Vec<usize> {
        self.plan.by_group()
    }

    /// Where the bytes of a tensor go from `done` on; `None` if there is no such tensor, or no memory yet.
    pub(super) fn target(&self, tensor: usize, done: usize) -> Option<Target> {
        let &Place {
            group, offset: at, ..
        } = self.plan.places.get(tensor)?;
        let start = self.buffers.get(group)?.pointer();
        Some(Target {
            address: offset(start, at.checked_add(done)?),
            group,
            tensor,
        })
    }

    /// Looks at bytes of a tensor, which start `done` bytes into it: those of bools have to be 0 or 1.
    pub(super) fn look_at(&mut self, tensor: usize, done: usize, bytes: &[u8]) {
        let Some((info, invalid @ None)) = self.tensors.get_mut(tensor) else {
            return;
        };
        if info.dtype() == DType::Bool {
            *invalid = invalid_bool(done, bytes);
        }
    }

    /// Hands the tensors to the stream that is to use them: it waits for what is on the stream to the device by now.
    ///
    /// `ready` is the event that was recorded there, if it was already.
    pub(super) fn deliver(
        mut self,
        ready: Option<Arc<CudaEvent>>,
    ) -> Result<Tensors<Tensor>, CudaError> {
        if self.buffers.iter().any(|buffer| buffer.len() > 0) {
            let (driver, to_device) = (&self.shared.driver, &self.shared.to_device);
            let ready = match ready {
                Some(ready) => ready,
                None => {
                    let ready = Arc::new(driver.create_event()?);
                    driver.record(&ready, to_device)?;
                    ready
                }
            };
            driver.wait(&self.stream, &ready)?;
            for buffer in &mut self.buffers {
                buffer.hand_over(&ready, &self.stream);
            }
        }
        let buffers: Vec<_> = self.buffers.into_iter().map(Arc::new).collect();
        let places = self.plan.places.iter();
        let tensors = places.zip(self.tensors);
        let tensors = tensors.filter_map(|(place, (info, invalid))| {
            let buffer = buffers.get(place.group)?.clone();
            let end = place.offset.saturating_add(place.len);
            Some(Tensor::new(info, buffer, place.offset..end, invalid))
        });
        Ok(Tensors::new(tensors.collect()))
    }
}

/// The first of `bytes` that is no bool, as the tensor has it that they start `done` bytes into.
fn invalid_bool(done: usize, bytes: &[u8]) -> Option<CastError> {
    // All at once, as nearly always all are good.
    if bytes.iter().fold(0, |all, byte| all | byte) <= 1 {
        return None;
    }
    let mut bytes = bytes.iter().copied().enumerate();
    let (index, byte) = bytes.find(|&(_, byte)| byte > 1)?;
    let index = done.saturating_add(index);
    Some(CastError::InvalidBool { index, byte })
}

/// Refuses streams that tensors of this adapter cannot be used on.
pub(super) fn check_stream(shared: &Shared, stream: &CudaStream) -> Result<(), CudaError> {
    check_context(shared, stream)?;
    // One handle for many streams: it cannot be told which of them a tensor belongs to.
    if is_per_thread(stream) {
        return Err(refused(CUresult::CUDA_ERROR_NOT_SUPPORTED));
    }
    Ok(())
}

/// Refuses streams of another context: none of its events are recorded there.
pub(super) fn check_context(shared: &Shared, stream: &CudaStream) -> Result<(), CudaError> {
    if **stream.context() == **shared.driver.context() {
        return Ok(());
    }
    Err(refused(CUresult::CUDA_ERROR_INVALID_CONTEXT))
}

fn refused(code: CUresult) -> CudaError {
    CudaError::driver(Code::from(DriverError(code)), Step::Enter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_is_no_bool_is_found() {
        assert_eq!(invalid_bool(0, &[]), None);
        assert_eq!(invalid_bool(0, &[0, 1, 1, 0]), None);
        for (done, bytes, index, byte) in [
            (0, &[2][..], 0, 2),
            (7, &[0, 1, 255, 2], 9, 255),
            (0, &[0, 1, 128], 2, 128),
        ] {
            let expected = CastError::InvalidBool { index, byte };
            assert_eq!(invalid_bool(done, bytes), Some(expected));
        }
    }
}
