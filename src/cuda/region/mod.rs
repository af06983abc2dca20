//! Slots of a data plane, pinned: loaded and stored by manifest.
//!
//! ```text
//!   a peer's push          DMA by manifest, one copy for a run of neighbours         your stream
//!  ==============> slot ------------------------------------------> device memory ------------> kernels
//!                   ^  back when the event has fired: Loading          |
//!                   |                                                  v
//!  <============== slot <------------------------------------------ tensors <------------------ producer
//!   plane.push             Storing: when the event has fired, a Stored
//! ```
#![allow(unsafe_code)]

mod error;
mod in_use;
mod load;
mod runs;
mod store;

use core::fmt;
use core::mem;

use alloc::boxed::Box;
use alloc::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream};

use super::Cuda;
use super::driver::Driver;
use crate::plane::{self, Region};

pub use error::RegionError;
pub use load::Loading;
pub use store::Storing;

/// A region of a data plane whose memory is pinned: a device copies out of its slots and into them.
///
/// It keeps the region, so that dropping the [`Region`] alone does not take it off the plane. Dropped, the
/// memory is unpinned when no copy uses it any more. Clones are handles to the same.
///
/// # Examples
///
/// A hop of a pipeline, from the slot that a peer has filled to the slot that is pushed to the next. A worker of the
/// transfer protocol has [`load_received`](Self::load_received) for it.
///
/// ```
/// use std::sync::Arc;
///
/// use cudarc::driver::CudaStream;
/// use tensorwire::cuda::{PinnedRegion, Source, Tensor};
/// use tensorwire::device::Tensors;
/// use tensorwire::json::Value;
/// use tensorwire::plane::Stored;
/// use tensorwire::transfer::manifest::Storage;
/// use tensorwire::transfer::pool::Slot;
/// use tensorwire::transport::Wait;
/// use tensorwire::{Options, transfer::manifest::Manifest};
///
/// fn hop(
///     region: &PinnedRegion,
///     slot: Slot,
///     manifest: &[u8],
///     stream: &Arc<CudaStream>,
///     model: impl FnOnce(&Tensors<Tensor>) -> Tensor,
/// ) -> Result<Stored, Box<dyn std::error::Error>> {
///     let mut storage = Storage::<64>::new();
///     let manifest = Value::parse(manifest)?.as_object()?;
///     let manifest = Manifest::decode_with(manifest, slot.len(), &mut storage, &Options::new())?;
///     let (tensors, loading) = region.load(slot, &manifest, stream).map_err(|(_, error)| error)?;
///     // Nobody waits for the slot: it goes back to its pool in its time.
///     drop(loading);
///     let output = model(&tensors);
///     let storing = region.store([Source::from(&output)], stream)?;
///     Ok(storing.finish(Wait::Configured).map_err(|(_, error)| error)?)
/// }
/// ```
#[derive(Clone)]
pub struct PinnedRegion {
    body: Arc<Body>,
    cuda: Cuda,
}

/// What every copy keeps until it is over.
struct Body {
    region: Region,
    driver: Arc<Driver>,
}

impl Cuda {
    /// Pins the memory of `region` where it is. It takes long: keep it.
    ///
    /// # Errors
    ///
    /// - [`RegionError::Plane`] for memory that is not the host's.
    /// - [`RegionError::Cuda`] if the driver does not pin it: it is pinned already, say.
    pub fn pin(&self, region: &Region) -> Result<PinnedRegion, RegionError> {
        let driver = &self.shared.driver;
        let start = region.at(0)?;
        let region = region.downgrade().upgrade();
        // Never `None`: it is borrowed.
        let region = region.ok_or(plane::ErrorKind::ForeignSlot)?;
        // SAFETY: `register` asks for a range in one allocation that stays until `unregister`: the pool's bytes are, by
        // rule 2 of `Memory`, for as long as the region lives, which the body keeps until it has unregistered it.
        unsafe { driver.register(start, region.len()) }?;
        let body = Body {
            region,
            driver: driver.clone(),
        };
        Ok(PinnedRegion {
            body: Arc::new(body),
            cuda: self.clone(),
        })
    }
}

impl PinnedRegion {
    /// Returns the region, for its pool, its addresses and the bytes of its slots.
    #[must_use]
    pub fn region(&self) -> &Region {
        &self.body.region
    }

    /// Keeps `slot`, or who holds it, until `event` has fired; then it goes back.
    fn keep<S: Send + Sync + 'static>(&self, slot: S, event: Arc<CudaEvent>) {
        let owners = Box::new((slot, self.body.clone()));
        self.cuda.shared.keeper.keep(event, owners);
    }

    /// Keeps `slot`, or who holds it, until what is on `stream` by now has run, on which `event` could not be recorded; then
    /// it goes back.
    fn keep_in_doubt<S: Send + Sync + 'static>(
        &self,
        slot: S,
        event: Arc<CudaEvent>,
        stream: &Arc<CudaStream>,
    ) {
        let owners = Box::new((slot, self.body.clone()));
        let keeper = &self.cuda.shared.keeper;
        keeper.keep_in_doubt(event, stream, owners);
    }
}

impl fmt::Debug for PinnedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PinnedRegion")
            .field(&self.body.region)
            .finish()
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let start = self.region.at(0).ok();
        let is_unpinned = start.is_some_and(|start| {
            // SAFETY: `unregister` asks for what was given to `register`: `at` answers as it did then. The memory is
            // allocated, as the region is still there. No copy uses it: whatever puts one on a stream keeps the body
            // until the copy is over.
            unsafe { self.driver.unregister(start) }
        });
        if !is_unpinned {
            // Not to be freed.
            mem::forget(self.region.downgrade().upgrade());
        }
    }
}
