//! A filled slot in the hands of the local worker.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::job::Job;
use super::text::Text;
use crate::json::Object;
use crate::transfer::RequestId;
use crate::transfer::pool::Slot;

/// Tensors that came for a request: their slot, and what the head node said of them.
///
/// While it lives nobody writes to the slot. Dropped, on any thread, it gives the slot back:
/// the machine learns of it at its next call, then frees it or opens it for the next
/// request. So drop it as soon as the tensors are read or copied, at the latest before
/// the answer.
///
/// To bring its tensors to a CUDA device, give it to `PinnedRegion::load_received` (feature `cuda`), which keeps it
/// until the device has read the slot.
///
/// # Examples
///
/// See [`Instance`](crate::transfer::Instance).
pub struct Received {
    // Dropped in this order: the slot is let go of before the machine is told.
    slot: Arc<Slot>,
    notice: Notice,
    manifest: Text,
    scalars: Text,
}

impl Received {
    pub(super) fn new(
        job: Job,
        slot: Arc<Slot>,
        manifest: Text,
        scalars: Text,
        to: &Returns,
    ) -> Self {
        let returns = to.clone();
        Self {
            slot,
            notice: Notice { job, returns },
            manifest,
            scalars,
        }
    }

    /// Returns the job, to be answered by.
    #[must_use]
    pub const fn job(&self) -> &Job {
        &self.notice.job
    }

    /// Returns the request.
    #[must_use]
    pub const fn request(&self) -> &RequestId {
        self.notice.job.request()
    }

    /// Returns the slot: its bytes are with the [region](crate::plane::Region) of the data plane.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Returns which tensors lie where in the slot. It was checked against the slot's length.
    #[must_use]
    pub fn manifest(&self) -> Object<'_> {
        self.manifest.object()
    }

    /// Returns the scalars of the request, without what the head node put among them for the machine.
    #[must_use]
    pub fn scalars(&self) -> Object<'_> {
        self.scalars.object()
    }
}

impl AsRef<Slot> for Received {
    fn as_ref(&self) -> &Slot {
        self.slot()
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("request", self.request())
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}

/// Tells the machine, when dropped, that the slot of a job is back.
struct Notice {
    job: Job,
    returns: Returns,
}

impl Drop for Notice {
    fn drop(&mut self) {
        let job = self.job.clone();
        self.returns.lock().push(job);
    }
}

/// Where the slots that are back are told of: from any thread to the machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Returns {
    jobs: Arc<Mutex<Vec<Job>>>,
}

impl Returns {
    /// Moves those that are told of into `empty`, whose memory is used for the next.
    pub(super) fn take(&self, empty: &mut Vec<Job>) {
        mem::swap(&mut *self.lock(), empty);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Job>> {
        // A push is the only thing done under it.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
