//! Tensors out of a slot to the device.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cudarc::driver::{CudaEvent, CudaStream};

use super::in_use::InUse;
use super::runs::Runs;
use super::{PinnedRegion, RegionError};
use crate::cuda::buffer::Buffer;
use crate::cuda::incoming::check_stream;
use crate::cuda::tensor::offset;
use crate::cuda::{CudaError, Tensor};
use crate::device::{TensorInfo, Tensors};
use crate::dtype::DType;
use crate::error::CastError;
use crate::tensor::TensorView;
use crate::transfer::manifest::{Decoder, Manifest};
use crate::transfer::pool::Slot;
use crate::transfer::worker::Received;
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
    /// - [`Cuda`](RegionError::Cuda) if the device has no memory, or as the driver says; for a stream that
    ///   [tensors cannot belong to](crate::cuda::Cuda#impl-Device-for-Cuda).
    pub fn load(
        &self,
        slot: Slot,
        manifest: &Manifest<'_, '_>,
        stream: &Arc<CudaStream>,
    ) -> Result<(Tensors<Tensor>, Loading), (Option<Slot>, RegionError)> {
        let batch = self.prepare(&slot, manifest, stream);
        self.start(slot, batch, stream)
    }

    /// Brings the tensors that a worker has received to the device, for `stream` to use, straight out of their slot.
    ///
    /// As [`load`](Self::load), by the manifest that came with them. The slot is given back to the
    /// [`Instance`](crate::transfer::Instance) when the [`Received`] is dropped, which the [`Loading`] has meanwhile. What
    /// else it says, its job above all, is to be taken out before.
    ///
    /// Get the slot back by [`Loading::finish`], and drop it, before the job is answered. A `Loading` that is dropped
    /// gives it back at a call of the adapter after the copies, [`Cuda::poll`](crate::cuda::Cuda::poll) say, and
    /// until then [`finish`](crate::transfer::Instance::finish) refuses and the announcement of an output may wait.
    ///
    /// # Errors
    ///
    /// What was received, unless the device may be reading its slot; and
    ///
    /// - [`Plane`](RegionError::Plane) for a slot of another region.
    /// - [`Decode`](RegionError::Decode) if the options of `decoder` refuse the manifest.
    /// - [`Cuda`](RegionError::Cuda) if the device has no memory, or as the driver says; also for a stream that
    ///   [tensors cannot belong to](crate::cuda::Cuda#impl-Device-for-Cuda).
    ///
    /// # Examples
    ///
    /// What a denoiser does at [`Event::Ready`](crate::transfer::worker::Event::Ready):
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    ///
    /// use cudarc::driver::{CudaSlice, CudaStream};
    /// use tensorwire::cuda::{PinnedRegion, Source, Tensor};
    /// use tensorwire::device::{TensorInfo, Tensors};
    /// use tensorwire::message::NO_SCALARS;
    /// use tensorwire::transfer::Instance;
    /// use tensorwire::transfer::manifest::Decoder;
    /// use tensorwire::transfer::worker::Received;
    /// use tensorwire::transport::Wait;
    ///
    /// fn denoise(
    ///     instance: &mut Instance,
    ///     region: &PinnedRegion,
    ///     received: Received,
    ///     stream: &Arc<CudaStream>,
    ///     model: impl FnOnce(&Tensors<Tensor>) -> (TensorInfo, CudaSlice<f32>),
    ///     now: Duration,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     let job = received.job().clone();
    ///     let loaded = region.load_received(received, &mut Decoder::new(), stream);
    ///     let (tensors, loading) = loaded.map_err(|(_, error)| error)?;
    ///     let (info, latents) = model(&tensors); // asynchronous, as the copies are
    ///     let storing = region.store([Source::new(info, &latents)?], stream)?;
    ///     drop(loading.finish(Wait::Configured).map_err(|(_, error)| error)?);
    ///     let stored = storing.finish(Wait::Configured).map_err(|(_, error)| error)?;
    ///     instance.stage(&job, stored, &NO_SCALARS, now).map_err(|(_, error)| error)?;
    ///     Ok(())
    /// }
    /// ```
    #[allow(clippy::type_complexity)]
    pub fn load_received(
        &self,
        received: Received,
        decoder: &mut Decoder,
        stream: &Arc<CudaStream>,
    ) -> Result<(Tensors<Tensor>, Loading<Received>), (Option<Box<Received>>, RegionError)> {
        let slot = received.slot();
        let manifest = decoder.decode(received.manifest(), slot.len());
        let batch = manifest.map_err(RegionError::from);
        let batch = batch.and_then(|manifest| self.prepare(slot, &manifest, stream));
        let started = self.start(received, batch, stream);
        started.map_err(|(received, error)| (received.map(Box::new), error))
    }

    /// Puts the copies of `batch` on the stream, out of the slot that `held` is, or holds until it is dropped.
    #[allow(clippy::result_large_err, clippy::type_complexity)]
    fn start<S: Holds>(
        &self,
        held: S,
        batch: Result<Batch, RegionError>,
        stream: &Arc<CudaStream>,
    ) -> Result<(Tensors<Tensor>, Loading<S>), (Option<S>, RegionError)> {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return Err((Some(held), error)),
        };
        let shared = &self.cuda.shared;
        let (is_begun, begun) = self.begin(held.held(), &batch);
        if !is_begun && let Err(error) = begun {
            return Err((Some(held), error));
        }
        let event = batch.event.clone();
        if let Err(error) = shared.driver.record(&event, &shared.to_device) {
            self.keep_in_doubt(held, event, &shared.to_device);
            return Err((None, begun.err().unwrap_or_else(|| error.into())));
        }
        let slot = InUse::new(held, event.clone(), self.clone());
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
    fn prepare(
        &self,
        slot: &Slot,
        manifest: &Manifest<'_, '_>,
        stream: &CudaStream,
    ) -> Result<Batch, RegionError> {
        let shared = &self.cuda.shared;
        check_stream(shared, stream)?;
        shared.keeper.poll()?;
        let tensors = manifest.attach(self.region().bytes(slot)?)?;
        let ranges = manifest.entries().map(|entry| entry.range());
        let runs = Runs::new(ranges, shared.options.batch_bytes());
        let (driver, to_device) = (&shared.driver, &shared.to_device);
        let groups = runs.groups.iter().enumerate();
        let groups = groups.map(|(group, &len)| {
            let buffer = Buffer::allocate(driver, len, to_device);
            buffer.map_err(|error| error.of_tensor(runs.first_in(group)))
        });
        Ok(Batch {
            groups: groups.collect::<Result<_, _>>()?,
            none: Buffer::allocate(driver, 0, to_device)?,
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
            // region is pinned, and the slot goes from `start` to one that holds it until then. It asks for
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

/// A slot, or what holds one: as long as it lives nobody writes to the slot, nor frees it.
trait Holds: Send + Sync + 'static {
    fn held(&self) -> &Slot;
}

impl Holds for Slot {
    fn held(&self) -> &Slot {
        self
    }
}

impl Holds for Received {
    fn held(&self) -> &Slot {
        self.slot()
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
/// Dropped, the slot goes back to its pool, or to the worker, when the copies are over: at the next call of the adapter, or
/// of [`Cuda::poll`](crate::cuda::Cuda::poll), after that.
#[derive(Debug)]
#[must_use = "dropped, the slot goes back where it came from"]
pub struct Loading<S = Slot> {
    slot: Box<InUse<S>>,
}

impl<S> Loading<S> {
    /// Tells whether the device has done with the slot, without waiting.
    ///
    /// # Errors
    ///
    /// The driver's: a copy failed.
    pub fn is_ready(&self) -> Result<bool, CudaError> {
        self.slot.is_ready()
    }

    /// Waits until the device has done with the slot, as long as `wait` says, and returns it: to be
    /// opened again, say. `S` is what was loaded: a [`Slot`], or a [`Received`] that holds one.
    ///
    /// # Errors
    ///
    /// What is being loaded as it was, and [`NotReady`](crate::device::ErrorKind::NotReady),
    /// [`TimedOut`](crate::device::ErrorKind::TimedOut), or the driver's.
    pub fn finish(self, wait: Wait) -> Result<S, (Self, CudaError)> {
        let finished = self.slot.finish(wait);
        finished.map_err(|(slot, error)| (Self { slot }, error))
    }
}
