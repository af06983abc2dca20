//! Tensors of the host to the device.

use core::mem;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cudarc::driver::{CudaEvent, CudaStream, DevicePtrMut};

use super::adapter::{Cuda, Shared};
use super::error::{CudaError, Step};
use super::incoming::{Incoming, check_stream};
use super::pinned::PinnedBytes;
use super::staging::{Staging, Target, left};
use super::tensor::Tensor;
use crate::device::{ErrorKind, Tensors};
use crate::error::CastError;
use crate::message::Message;
use crate::tensor::{Descriptor, Element, TensorView};
use crate::transport::{Deadline, Wait};

impl Cuda {
    /// Brings a tensor into memory of the device that is there already: a `CudaSlice`, or a mutable view of some of one.
    ///
    /// What was put on any stream before and uses `target` comes first, as cudarc tracks it; with
    /// its event tracking disabled, what was put on the stream of `target`. What comes next on that stream sees the bytes.
    ///
    /// # Errors
    ///
    /// `DType` unless `T` reads the tensor's dtype, `Length` unless `target` is just as long, `InvalidBool`: the
    /// driver has not been called. `RingFull` or `TimedOut` when there was no room within `wait`, the driver's:
    /// some of the bytes may have arrived in `target`, if the tensor is larger than a slot.
    ///
    /// # Examples
    ///
    /// ```
    /// use cudarc::driver::CudaSlice;
    /// use tensorwire::TensorView;
    /// use tensorwire::cuda::{Cuda, CudaError};
    /// use tensorwire::transport::Wait;
    ///
    /// /// Puts what came last where the kernels of a captured graph look for it.
    /// fn refill(cuda: &Cuda, latents: &TensorView<'_>, place: &mut CudaSlice<f32>) -> Result<(), CudaError> {
    ///     cuda.upload_into(latents, place, Wait::Configured)
    /// }
    /// ```
    pub fn upload_into<T, D>(
        &self,
        tensor: &TensorView<'_>,
        target: &mut D,
        wait: Wait,
    ) -> Result<(), CudaError>
    where
        T: Element,
        D: DevicePtrMut<T>,
    {
        let shared = &self.shared;
        fits(tensor, target).map_err(|kind| CudaError::new(kind, Step::Stage).of_tensor(0))?;
        let owner = target.stream().clone();
        check_stream(shared, &owner)?;
        if tensor.byte_len() == 0 {
            return Ok(());
        }
        shared.keeper.poll()?;
        let until = Deadline::new(wait, shared.options.timeout());
        let mut staging = Staging::new(shared.clone());
        let taken = staging.take(tensor.byte_len(), left(until));
        taken.map_err(|error| error.of_tensor(0))?;

        let (context, to_device) = (self.context(), &shared.to_device);
        if !context.is_event_tracking() {
            shared.join(&owner, to_device)?;
        }
        let (address, written) = target.device_ptr_mut(to_device);
        // What went wrong in there was parked by cudarc: the stream may not wait as it has to.
        let parked = shared.driver.check(Step::WaitEvent, context.check_err());
        let copied = parked.and_then(|()| {
            let (bytes, group, tensor) = (tensor.bytes(), 0, 0);
            let place = Target {
                address,
                group,
                tensor,
            };
            // SAFETY: `copy` and `send` ask that the memory of the target is the device's, nobody else's before
            // what is put on the stream has run, and freed after that. It is `target`'s, which has room for just these
            // bytes, and is borrowed alone. `device_ptr_mut`, or the join before, made the stream wait for earlier uses.
            // Later ones come after: `written` tells cudarc, and the owner's stream waits or this thread does, below.
            unsafe { staging.copy(bytes, place, bytes.len(), until, |_, _| ()) }?;
            // SAFETY: as above.
            unsafe { staging.send() }
        });
        drop(written);
        let told = shared.driver.check(Step::RecordEvent, context.check_err());
        let joined = shared.join(to_device, &owner);
        if told.is_err() || joined.is_err() {
            // Nobody else would wait for the copies.
            let over = shared.driver.synchronize_stream(to_device);
            copied.and(told).and(joined)?;
            return over;
        }
        copied
    }

    /// Brings a tensor to the device out of pinned memory, from where it lies: the host copies nothing, the ring is not
    /// used, and the call does not wait. The bytes are kept until the device has done with them.
    ///
    /// # Errors
    ///
    /// `Length` unless there are just as many bytes as the descriptor says. `OutOfMemory`, the driver's.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::io::Read;
    /// use tensorwire::cuda::{Cuda, Options};
    /// use tensorwire::{DType, Descriptor};
    ///
    /// let cuda = Cuda::open(0, Options::new())?;
    /// let stream = cuda.context().new_stream()?;
    /// let latents = Descriptor::new("latents", DType::Float32, &[1, 16, 30, 52])?;
    /// let mut frame = cuda.allocate_pinned(latents.byte_len())?;
    /// std::io::stdin().read_exact(frame.as_mut())?;
    /// let tensor = cuda.upload_pinned(&latents, frame.share(), &stream)?;
    /// # let _ = tensor;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn upload_pinned(
        &self,
        descriptor: &Descriptor<'_>,
        bytes: PinnedBytes,
        stream: &Arc<CudaStream>,
    ) -> Result<Tensor, CudaError> {
        only(self.upload_kept(&[*descriptor], Vec::from([bytes]), stream)?)
    }

    /// Brings all tensors of a message to the device out of the pinned frames that it lies in, as
    /// [`upload_pinned`](Self::upload_pinned) does. Small ones share memory of the device; each frame is a copy of its own.
    ///
    /// # Errors
    ///
    /// `OutOfMemory`, the driver's.
    pub fn upload_pinned_message(
        &self,
        message: &Message<'_, '_, PinnedBytes>,
        stream: &Arc<CudaStream>,
    ) -> Result<Tensors<Tensor>, CudaError> {
        let descriptors: Vec<_> = message.metadata().descriptors().collect();
        let frames = (0..message.len()).filter_map(|index| message.payload(index).cloned());
        self.upload_kept(&descriptors, frames.collect(), stream)
    }

    /// One frame for each descriptor.
    fn upload_kept(
        &self,
        descriptors: &[Descriptor<'_>],
        frames: Vec<PinnedBytes>,
        stream: &Arc<CudaStream>,
    ) -> Result<Tensors<Tensor>, CudaError> {
        let shared = &self.shared;
        for (index, descriptor) in descriptors.iter().enumerate() {
            let actual = frames.get(index).map_or(0, |frame| frame.as_ref().len());
            expect_len(descriptor.byte_len(), actual, index)?;
        }
        shared.keeper.poll()?;
        let mut incoming = Incoming::plan(shared, descriptors.iter().copied(), stream)?;
        incoming.allocate()?;
        if incoming.byte_len() == 0 {
            return incoming.deliver(None);
        }
        // Before the copies, as nothing can be said of them without.
        let event = Arc::new(shared.driver.create_event()?);
        let mut copied = Ok(());
        for (index, frame) in frames.iter().enumerate() {
            let bytes = frame.as_ref();
            let (Some(target), 1..) = (incoming.target(index, 0), bytes.len()) else {
                continue;
            };
            incoming.look_at(index, 0, bytes);
            let (driver, to_device) = (&shared.driver, &shared.to_device);
            let (source, len) = (frame.start(), bytes.len());
            // SAFETY: `copy_to_device` asks two things until the copy has run.
            // - The source is pinned and nobody writes to it or frees it: that is what `PinnedBytes` are while any
            //   are left, and `frames` are kept until an event behind the copy, below.
            // - The target is the device's, of that length, and nobody else's: it is the place of the tensor in
            //   memory of `incoming`, which nobody has before `deliver`, and which is freed behind the copy.
            let put = unsafe { driver.copy_to_device(target.address, source, len, to_device) };
            if let Err(error) = put {
                copied = Err(error.of_tensor(index));
                break;
            }
        }
        // Also after an error: earlier copies use the frames, and who knows about the last.
        let kept = shared.keep(&event, frames);
        copied?;
        kept?;
        incoming.deliver(Some(event))
    }

    /// Brings tensors to the device by way of the ring; `bytes_of` has the bytes of each.
    pub(super) fn upload_staged<'a>(
        &self,
        descriptors: impl IntoIterator<Item = Descriptor<'a>>,
        bytes_of: impl Fn(usize) -> Option<&'a [u8]>,
        stream: &Arc<CudaStream>,
        wait: Wait,
    ) -> Result<Tensors<Tensor>, CudaError> {
        let shared = &self.shared;
        shared.keeper.poll()?;
        let mut incoming = Incoming::plan(shared, descriptors, stream)?;
        let until = Deadline::new(wait, shared.options.timeout());
        let mut ahead = incoming.byte_len();
        // Dropped before `incoming`, on an error.
        let mut staging = Staging::new(shared.clone());
        let mut order = incoming.by_group();
        order.retain(|&index| incoming.len_of(index) > 0);
        if let Some(&first) = order.first() {
            // A full ring is told before the device is asked for memory.
            let taken = staging.take(ahead, left(until));
            taken.map_err(|error| error.of_tensor(first))?;
        }
        incoming.allocate()?;
        for index in order {
            let bytes = bytes_of(index).unwrap_or_default();
            let len = incoming.len_of(index);
            expect_len(len, bytes.len(), index)?;
            let Some(target) = incoming.target(index, 0) else {
                continue;
            };
            let look = |done, bytes: &[u8]| incoming.look_at(index, done, bytes);
            // SAFETY: `copy` and `send` ask that the memory of the targets is the device's, nobody else's before
            // what is put on the stream has run, and freed after that. It is memory of `incoming`, which has room for
            // the whole tensor. Nobody has it before `deliver`, which makes its user wait for the stream; else it is
            // freed on the stream.
            unsafe { staging.copy(bytes, target, ahead, until, look) }?;
            ahead = ahead.saturating_sub(len);
        }
        // SAFETY: as above.
        unsafe { staging.send() }?;
        incoming.deliver(None)
    }
}

impl Shared {
    /// Makes what comes next on `later` wait for what is on `earlier` by now.
    pub(super) fn join(&self, earlier: &CudaStream, later: &CudaStream) -> Result<(), CudaError> {
        let event = self.driver.create_event()?;
        self.driver.record(&event, earlier)?;
        self.driver.wait(later, &event)
    }

    /// Keeps `frames` until what is on the stream to the device by now has run; `event` is recorded there.
    ///
    /// Errors: the driver's. Then this thread has waited for the device, or the frames are leaked.
    pub(super) fn keep(
        &self,
        event: &Arc<CudaEvent>,
        frames: Vec<PinnedBytes>,
    ) -> Result<(), CudaError> {
        let recorded = self.driver.record(event, &self.to_device);
        if recorded.is_ok() {
            self.keeper.keep(event.clone(), Box::new(frames));
        } else if self.driver.synchronize_stream(&self.to_device).is_err() {
            // The device may use them for ever.
            mem::forget(frames);
        }
        recorded
    }
}

/// The only one of `tensors`.
pub(super) fn only(tensors: Tensors<Tensor>) -> Result<Tensor, CudaError> {
    let none = CudaError::new(ErrorKind::Incomplete { missing: 0 }, Step::Stage);
    tensors.into_vec().pop().ok_or(none)
}

fn expect_len(expected: usize, actual: usize, tensor: usize) -> Result<(), CudaError> {
    if actual == expected {
        return Ok(());
    }
    let kind = ErrorKind::Length { expected, actual };
    Err(CudaError::new(kind, Step::Stage).of_tensor(tensor))
}

/// Whether `target` is a place for `tensor`.
fn fits<T: Element, D: DevicePtrMut<T>>(
    tensor: &TensorView<'_>,
    target: &D,
) -> Result<(), ErrorKind> {
    let (actual, expected) = (tensor.byte_len(), target.len());
    let expected = expected.saturating_mul(size_of::<T>());
    match tensor.elements::<T>() {
        Err(CastError::InvalidBool { index, byte }) => Err(ErrorKind::InvalidBool { index, byte }),
        Err(_) => Err(ErrorKind::DType {
            expected: T::DTYPE,
            actual: tensor.dtype(),
        }),
        Ok(_) if actual != expected => Err(ErrorKind::Length { expected, actual }),
        Ok(_) => Ok(()),
    }
}
