//! Keeps what a copy uses until it is over.

use core::fmt;
use core::mem;

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use cudarc::driver::{CudaEvent, CudaStream};

use super::driver::Driver;
use super::error::CudaError;
use super::lock::{Guard, Lock};
use super::ring;

/// Owners of memory that the device is using, each with the event that says that it has done with it.
///
/// Dropped, it waits for all of them; an owner whose copy cannot be said to be over is leaked.
pub(super) struct Keeper {
    kept: Lock<Vec<Kept>>,
    /// Held by who looks, and takes out.
    looks: Lock<()>,
    /// Where those wait that may wait for what is kept here.
    ring: Weak<ring::Shared>,
    driver: Arc<Driver>,
}

/// An owner, which is leaked unless it is let go of.
struct Kept {
    event: Arc<CudaEvent>,
    /// Where the event is still to be recorded.
    unrecorded: Option<Arc<CudaStream>>,
    owner: mem::ManuallyDrop<Box<dyn Send + Sync>>,
}

impl Kept {
    fn let_go(self) {
        drop(mem::ManuallyDrop::into_inner(self.owner));
    }
}

impl Keeper {
    pub(super) const fn new(driver: Arc<Driver>, ring: Weak<ring::Shared>) -> Self {
        Self {
            kept: Lock::new(Vec::new()),
            looks: Lock::new(()),
            ring,
            driver,
        }
    }

    /// Keeps `owner` until `event` has fired, which is recorded by now.
    pub(super) fn keep(&self, event: Arc<CudaEvent>, owner: Box<dyn Send + Sync>) {
        self.push(event, None, owner);
    }

    /// Keeps `owner` until what is on `stream` by now has run. The driver did not record `event` there: each look tries again,
    /// as it fires after what is there now whenever it is recorded.
    pub(super) fn keep_in_doubt(
        &self,
        event: Arc<CudaEvent>,
        stream: &Arc<CudaStream>,
        owner: Box<dyn Send + Sync>,
    ) {
        self.push(event, Some(stream.clone()), owner);
    }

    fn push(
        &self,
        event: Arc<CudaEvent>,
        unrecorded: Option<Arc<CudaStream>>,
        owner: Box<dyn Send + Sync>,
    ) {
        self.kept().push(Kept {
            event,
            unrecorded,
            owner: mem::ManuallyDrop::new(owner),
        });
        if let Some(ring) = self.ring.upgrade() {
            ring.look_again();
        }
    }

    /// Lets go of what the device has done with.
    ///
    /// Errors: the first of the driver's; all are looked at nevertheless, and what it is about stays.
    pub(super) fn poll(&self) -> Result<(), CudaError> {
        if self.is_empty() {
            return Ok(());
        }
        let mut result = Ok(());
        let mut alone = self.looks.lock();
        // No driver is asked under the lock that `keep` needs. It adds at the end, and only who looks takes
        // out, so that what is at a place stays there. An owner is dropped under neither lock: it may be code of the user's, which
        // calls this. Another may look meanwhile, and then what it leaves is left for the next look.
        let mut at = 0_usize;
        loop {
            let found = self
                .kept()
                .get(at)
                .map(|kept| (kept.event.clone(), kept.unrecorded.clone()));
            let Some((event, unrecorded)) = found else {
                return result;
            };
            let recorded = unrecorded.map_or(Ok(()), |stream| self.record(at, &event, &stream));
            match recorded.and_then(|()| self.driver.is_complete(&event)) {
                Ok(true) => {
                    let kept = self.kept().remove(at);
                    drop(alone);
                    kept.let_go();
                    alone = self.looks.lock();
                }
                Ok(false) => at = at.saturating_add(1),
                Err(error) => {
                    at = at.saturating_add(1);
                    result = result.and(Err(error));
                }
            }
        }
    }

    /// Records the event of what is at a place. Only who looks calls this.
    fn record(&self, at: usize, event: &CudaEvent, stream: &CudaStream) -> Result<(), CudaError> {
        self.driver.record(event, stream)?;
        if let Some(kept) = self.kept().get_mut(at) {
            kept.unrecorded = None;
        }
        Ok(())
    }

    /// How many owners are kept.
    pub(super) fn len(&self) -> usize {
        self.kept().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kept(&self) -> Guard<'_, Vec<Kept>> {
        self.kept.lock()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let kept = mem::take(&mut *self.kept());
        for kept in kept {
            let over = match &kept.unrecorded {
                Some(stream) => self.driver.synchronize_stream(stream),
                None => self.driver.synchronize(&kept.event),
            };
            if over.is_ok() {
                kept.let_go();
            }
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
