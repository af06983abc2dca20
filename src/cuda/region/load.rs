//! Tensors out of a slot to the device.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cudarc::driver::{CudaEvent, CudaStream};

use super::in_use::InUse;
use super::runs::Runs;
use super::{PinnedRegion, RegionError};
use crate::cuda::buffer::Buffer;
use crate::cuda::tensor::offset;
use crate::cuda::{CudaError, Tensor};
use crate::device::{TensorInfo, Tensors};
use crate::dtype::DType;
use crate::error::CastError;
use crate::tensor::TensorView;
use crate::transfer::manifest::Manifest;
use crate::transfer::pool::Slot;
use crate::transport::Wait;

impl PinnedRegion {
    /// Brings the tensors of `slot` to the device, for `stream` to use, straight out of the slot.
    ///
    /// `manifest` is what came with it, [decoded](Manifest::decode) for a slot of its length. Tensors of up to
    /// [`batch_bytes`](crate::cuda::Options::batch_bytes) share memory of the device; those that are neighbours in the slot
    /// come in one copy. Nobody waits: the device has the slot until the [`Loading`] says otherwise.
    ///
    /// # Errors
    ///
    /// The slot, unless the device may be reading it, which then goes back to its pool when that is over; and
    ///
    /// - [`Plane`](RegionError::Plane) for a slot of another region.
    /// - [`Decode`](RegionError::Decode) for a manifest of a slot of another length.
    /// - [`Cuda`](RegionError::Cuda) if the device has no memory, or as the driver says.
    pub fn load(
        &self,
        slot: Slot,
        manifest: &Manifest<'_, '_>,
        stream: &Arc<CudaStream>,
    ) -> Result<(Tensors<Tensor>, Loading), (Option<Slot>, RegionError)> {
        let batch = match self.prepare(&slot, manifest) {
            Ok(batch) => batch,
            Err(error) => return Err((Some(slot), error)),
        };
        let shared = &self.cuda.shared;
        let (is_begun, begun) = self.begin(&slot, &batch);
        if !is_begun && let Err(error) = begun {
            return Err((Some(slot), error));
        }
        let event = batch.event.clone();
        if let Err(error) = shared.driver.record(&event, &shared.to_device) {
            self.abandon(slot, &shared.to_device);
            return Err((None, begun.err().unwrap_or_else(|| error.into())));
        }
        self.settle(&shared.to_device, &event);
        let slot = InUse::new(slot, event.clone(), self.clone());
        let ready = begun.and_then(|()| {
            shared.driver.wait(stream, &event)?;
            Ok(())
        });
        match ready {
            Ok(()) => Ok((batch.into_tensors(stream), Loading { slot })),
            Err(error) => Err((None, error)),
        }
    }

    /// Does everything that can fail before the device has the slot.
    fn prepare(&self, slot: &Slot, manifest: &Manifest<'_, '_>) -> Result<Batch, RegionError> {
        let shared = &self.cuda.shared;
        shared.keeper.poll()?;
        let tensors = manifest.attach(self.region().bytes(slot)?)?;
        let ranges = manifest.entries().map(|entry| entry.range());
        let runs = Runs::new(ranges, shared.options.batch_bytes());
        let (driver, stream) = (&shared.driver, &shared.to_device);
        let groups = runs.groups.iter();
        let groups = groups.map(|&len| Buffer::allocate(driver, len, stream));
        Ok(Batch {
            groups: groups.collect::<Result<_, _>>()?,
            none: Buffer::allocate(driver, 0, stream)?,
            event: Arc::new(driver.create_event()?),
            tensors: tensors.tensors().map(|view| describe(&view)).collect(),
            runs,
        })
    }

    /// Puts the copies of `batch` on the stream to the device, and tells whether the device may be reading the slot.
    fn begin(&self, slot: &Slot, batch: &Batch) -> (bool, Result<(), RegionError>) {
        let shared = &self.cuda.shared;
        let start = match self.region().start_of(slot) {
            Ok(start) => start,
            Err(error) => return (false, Err(error.into())),
        };
        let mut is_begun = false;
        for run in &batch.runs.copies {
            let Some(group) = batch.groups.get(run.group) else {
                continue;
            };
            let target = offset(group.pointer(), run.target);
            // SAFETY: `NonNull::add` asks that the sum stays inside of one allocation of at most `isize::MAX` bytes: the
            // slot is one, or part of one, and the run lies inside of it, as the manifest was held against its length.
            let source = unsafe { start.add(run.source) };
            is_begun = true;
            // SAFETY: `copy_to_device` asks for pinned memory that nobody writes to or frees until the copy has run: the
            // region is pinned, and the slot goes from `load` to one that holds it until then. It asks for
            // memory of the device that nobody else uses, ordered on the stream: it was allocated for this, on that stream.
            let copied = unsafe {
                (shared.driver).copy_to_device(target, source, run.len, &shared.to_device)
            };
            if let Err(error) = copied {
                let error = error.of_tensor(batch.runs.first_of(run));
                return (is_begun, Err(error.into()));
            }
        }
        (is_begun, Ok(()))
    }
}

/// What the tensor is, and its first byte that is no bool if it is to be one.
fn describe(view: &TensorView<'_>) -> (TensorInfo, Option<CastError>) {
    let invalid = match view.dtype() {
        DType::Bool => view.as_slice::<bool>().err(),
        _ => None,
    };
    (TensorInfo::new(&view.descriptor()), invalid)
}

/// Tensors on their way out of a slot.
struct Batch {
    runs: Runs,
    /// Memory for each group of the runs.
    groups: Vec<Buffer>,
    /// That of tensors without bytes.
    none: Buffer,
    /// To be recorded after the copies.
    event: Arc<CudaEvent>,
    /// In wire order.
    tensors: Vec<(TensorInfo, Option<CastError>)>,
}

impl Batch {
    /// The tensors, for `stream`, which waits for the event.
    fn into_tensors(self, stream: &Arc<CudaStream>) -> Tensors<Tensor> {
        let hand_over = |mut buffer: Buffer| {
            buffer.hand_over(&self.event, stream);
            Arc::new(buffer)
        };
        let groups: Vec<_> = self.groups.into_iter().map(hand_over).collect();
        let none = hand_over(self.none);
        let tensors = self.tensors.into_iter().zip(self.runs.places);
        let tensors = tensors.map(|((info, invalid), place)| {
            let place = place.and_then(|place| {
                let end = place.offset.saturating_add(place.len);
                Some((groups.get(place.group)?, place.offset..end))
            });
            let (buffer, range) = place.unwrap_or((&none, 0..0));
            Tensor::new(info, buffer.clone(), range, invalid)
        });
        Tensors::new(tensors.collect())
    }
}

/// A slot that tensors are being loaded out of.
///
/// Dropped, the slot goes back to its pool when the copies are over: at the next call of the adapter, or
/// of [`Cuda::poll`](crate::cuda::Cuda::poll), after that.
#[derive(Debug)]
#[must_use = "dropped, the slot goes back to its pool"]
pub struct Loading {
    slot: Box<InUse>,
}

impl Loading {
    /// Tells whether the device has done with the slot, without waiting.
    ///
    /// # Errors
    ///
    /// The driver's: a copy failed.
    pub fn is_ready(&self) -> Result<bool, CudaError> {
        self.slot.is_ready()
    }

    /// Waits until the device has done with the slot, as long as `wait` says, and returns it: to be
    /// opened again, say.
    ///
    /// # Errors
    ///
    /// What is being loaded as it was, and [`NotReady`](crate::device::ErrorKind::NotReady),
    /// [`TimedOut`](crate::device::ErrorKind::TimedOut), or the driver's.
    pub fn finish(self, wait: Wait) -> Result<Slot, (Self, CudaError)> {
        let finished = self.slot.finish(wait);
        finished.map_err(|(slot, error)| (Self { slot }, error))
    }
}
