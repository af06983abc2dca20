//! A slot that a copy uses.

use core::fmt;

use alloc::boxed::Box;
use alloc::sync::Arc;

use cudarc::driver::CudaEvent;

use super::PinnedRegion;
use crate::cuda::CudaError;
use crate::cuda::backoff::wait_for;
use crate::cuda::error::Step;
use crate::device::ErrorKind;
use crate::transfer::pool::Slot;
use crate::transport::Wait;

/// A slot that the device reads or writes until `event` fires. Dropped, it is kept until then, and goes back to its
/// pool.
pub(super) struct InUse {
    /// `None` once it was taken out.
    slot: Option<Slot>,
    event: Arc<CudaEvent>,
    region: PinnedRegion,
}

impl InUse {
    /// `event` was recorded after all copies from the slot and to it. Boxed, as it comes back with errors.
    pub(super) fn new(slot: Slot, event: Arc<CudaEvent>, region: PinnedRegion) -> Box<Self> {
        Box::new(Self {
            slot: Some(slot),
            event,
            region,
        })
    }

    pub(super) fn is_ready(&self) -> Result<bool, CudaError> {
        self.region.body.driver.is_complete(&self.event)
    }

    pub(super) fn finish(mut self: Box<Self>, wait: Wait) -> Result<Slot, (Box<Self>, CudaError)> {
        let shared = &self.region.cuda.shared;
        let timeout = shared.options.timeout();
        if let Err(error) = wait_for(&shared.driver, &self.event, wait, timeout) {
            return Err((self, error));
        }
        // It is there: this is the only place that takes it, and takes the rest as well.
        let none = CudaError::new(ErrorKind::NotReady, Step::QueryEvent);
        self.slot.take().ok_or((self, none))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.region.keep(slot, self.event.clone());
        }
    }
}

impl fmt::Debug for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InUse").field(&self.slot).finish()
    }
}
