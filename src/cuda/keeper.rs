//! Keeps what a copy uses until it is over.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use cudarc::driver::CudaEvent;

use super::driver::Driver;
use super::error::CudaError;

/// Owners of memory that the device is using, each with the event that says that it has done with it.
///
/// Dropped, it waits for all of them; an owner whose copy cannot be said to be over is leaked.
pub(super) struct Keeper {
    driver: Arc<Driver>,
}

impl Keeper {
    pub(super) fn new(driver: Arc<Driver>) -> Self {
        Self { driver }
    }

    /// Keeps `owner` until `event` has fired.
    pub(super) fn keep(&self, event: Arc<CudaEvent>, owner: Box<dyn Send + Sync>) {
        let _ = (event, owner);
        todo!()
    }

    /// Lets go of what the device has done with.
    pub(super) fn poll(&self) -> Result<(), CudaError> {
        todo!()
    }

    /// How many owners are kept.
    pub(super) fn len(&self) -> usize {
        todo!()
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}
