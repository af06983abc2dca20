//! Tensors of the device into a slot.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cudarc::driver::CudaStream;

use super::in_use::InUse;
use super::{PinnedRegion, RegionError};
use crate::cuda::{CudaError, Source};
use crate::plane::{self, Region, Stored};
use crate::transfer::manifest::{Entry, Plan};
use crate::transfer::pool::Slot;
use crate::transport::Wait;

impl PinnedRegion {
    /// Takes a slot that is large enough for `sources`, gaps included, and brings them there as `producer` leaves them.
    ///
    /// What comes of it is what [`Region::store`](crate::plane::Region::store) makes of the same tensors, byte for byte. Nobody waits:
    /// when it returns the copies are under way, and the sources can be dropped, as
    /// [`download_sources`](crate::cuda::Cuda::download_sources) says.
    ///
    /// # Errors
    ///
    /// - [`Encode`](RegionError::Encode) if [`Plan::new`] refuses the tensors.
    /// - [`Plane`](RegionError::Plane) if the pool has no such slot now.
    /// - [`Cuda`](RegionError::Cuda) as the driver says; the error tells which source. The slot goes back to its pool.
    pub fn store<'a, I>(&self, sources: I, producer: &CudaStream) -> Result<Storing, RegionError>
    where
        I: IntoIterator<Item = Source<'a>>,
    {
        let sources: Vec<_> = sources.into_iter().collect();
        let shared = &self.cuda.shared;
        shared.keeper.poll()?;
        let plan = Plan::new(sources.iter().map(|source| source.info().descriptor()))?;
        let used_len = plan.slot_len();
        let mut manifest = vec![0; plan.encoded_len()];
        plan.encode_into(&mut manifest)?;
        let region = self.region();
        let slot = region.pool().allocate(used_len.max(1));
        let mut slot = slot.map_err(plane::ErrorKind::from)?;
        let offsets = clear_gaps(region, &mut slot, plan.entries())?;
        let event = Arc::new(shared.driver.create_event()?);
        let start = region.start_of(&slot)?;
        // SAFETY: `begin_copies` asks for pinned memory with room for each source, which nobody uses or frees until the copies
        // have run: the region is pinned, the slot has room for what the plan says, and is held by this function
        // alone; it is given to one that holds it until the copies are over, with or without an error.
        // No gap is copied: the slot is moved with its gaps, and what the device has in its own is not for peers to see.
        let begun = unsafe { shared.begin_copies(&sources, &offsets, 0, start, producer) };
        if !begun.is_begun {
            begun.result?;
        }
        let recorded = shared.driver.record(&event, &shared.to_host);
        let known = recorded.is_ok().then_some(&*event);
        let released = shared.release(&sources, producer, known, &begun);
        if let Err(error) = recorded {
            self.abandon(slot, &shared.to_host);
            begun.result?;
            return Err(error.into());
        }
        self.settle(&shared.to_host, &event);
        // Dropped on an error, it keeps the slot until the event.
        let slot = InUse::new(slot, event, self.clone());
        begun.result?;
        released?;
        Ok(Storing {
            slot,
            used_len,
            manifest,
        })
    }
}

/// Writes zeros between the tensors, as a slot is moved with its gaps, and returns where the tensors start.
fn clear_gaps<'t>(
    region: &Region,
    slot: &mut Slot,
    entries: impl Iterator<Item = Entry<'t>>,
) -> Result<Vec<usize>, plane::ErrorKind> {
    let bytes = region.bytes_mut(slot)?;
    let mut used = 0;
    let offsets = entries.map(|entry| {
        let gap = bytes.get_mut(used..entry.offset());
        gap.unwrap_or_default().fill(0);
        used = entry.range().end;
        entry.offset()
    });
    Ok(offsets.collect())
}

/// Tensors on their way into a slot.
///
/// Dropped, the slot goes back to its pool when the copies are over.
#[derive(Debug)]
#[must_use = "dropped, what is stored is thrown away"]
pub struct Storing {
    slot: Box<InUse>,
    used_len: usize,
    manifest: Vec<u8>,
}

impl Storing {
    /// Tells whether all bytes have arrived, without waiting.
    ///
    /// # Errors
    ///
    /// The driver's: a copy failed.
    pub fn is_ready(&self) -> Result<bool, CudaError> {
        self.slot.is_ready()
    }

    /// Waits for all bytes to arrive, as long as `wait` says, and returns the slot with its manifest: what a worker
    /// [stages](crate::transfer::Instance::stage).
    ///
    /// # Errors
    ///
    /// What is being stored as it was, and [`NotReady`](crate::device::ErrorKind::NotReady),
    /// [`TimedOut`](crate::device::ErrorKind::TimedOut), or the driver's.
    pub fn finish(self, wait: Wait) -> Result<Stored, (Self, CudaError)> {
        let Self {
            slot,
            used_len,
            manifest,
        } = self;
        match slot.finish(wait) {
            Ok(slot) => Ok(Stored::from_parts(slot, used_len, manifest)),
            Err((slot, error)) => {
                let storing = Self {
                    slot,
                    used_len,
                    manifest,
                };
                Err((storing, error))
            }
        }
    }
}
