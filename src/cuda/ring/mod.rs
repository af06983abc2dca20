//! A bounded ring of pinned slots.
//!
//! ```text
//!             take                 submit(stream)
//!   free ------------> Slots (host's) ----------> InFlight (the device's) -- drop --> the ring's
//!    ^                   |   ^                        |                                  |
//!    +------ drop -------+   +------- finish ---------+        its event has fired       |
//!    +------------------------------------------------------------------------------------+
//! ```

use core::ptr::NonNull;

use alloc::sync::Arc;

use cudarc::driver::CudaStream;

use super::driver::Driver;
use super::error::CudaError;
use crate::transport::Wait;

/// A bounded number of pinned slots, side by side in one allocation. Clones are handles to the same.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    driver: Arc<Driver>,
}

impl Ring {
    /// Allocates `slots` slots of `slot_bytes`, rounded up to a multiple of 256, and an event for each.
    pub(super) fn new(
        driver: Arc<Driver>,
        slots: usize,
        slot_bytes: usize,
        timeout: Option<core::time::Duration>,
    ) -> Result<Self, CudaError> {
        let _ = (driver, slots, slot_bytes, timeout);
        todo!()
    }

    /// Takes as many adjacent slots as hold `len` bytes, at least one.
    ///
    /// Errors: `RingFull`, `TimedOut` by `wait`; `TooLarge` at once; the driver's, if it says that a copy failed.
    pub(super) fn take(&self, len: usize, wait: Wait) -> Result<Slots, CudaError> {
        let _ = (len, wait);
        todo!()
    }

    /// Takes back the slots whose events have fired.
    pub(super) fn poll(&self) -> Result<(), CudaError> {
        todo!()
    }

    /// Returns how many bytes a slot has.
    pub(super) fn slot_bytes(&self) -> usize {
        todo!()
    }

    pub(super) fn statistics(&self) -> Statistics {
        todo!()
    }
}

/// Adjacent slots that the host reads and writes. Dropped, they are free again.
#[derive(Debug)]
pub(super) struct Slots {
    shared: Arc<Shared>,
}

impl Slots {
    /// All bytes of the slots; at a multiple of 256.
    pub(super) fn bytes(&self) -> &[u8] {
        todo!()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        todo!()
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        todo!()
    }

    /// Gives them to the device until what is on `stream` by now has run.
    ///
    /// On an error they are the ring's, which does not use them again before it knows that the copy is over.
    pub(super) fn submit(self, stream: &Arc<CudaStream>) -> Result<InFlight, CudaError> {
        let _ = stream;
        todo!()
    }
}

/// Slots that the device reads or writes. Dropped, they are free again when their event has fired.
#[derive(Debug)]
pub(super) struct InFlight {
    shared: Arc<Shared>,
}

impl InFlight {
    pub(super) fn is_ready(&self) -> Result<bool, CudaError> {
        todo!()
    }

    /// Takes them back for the host, if the event has fired by now; `NotReady`, `TimedOut` by `wait`.
    pub(super) fn finish(self, wait: Wait) -> Result<Slots, (Self, CudaError)> {
        let _ = wait;
        todo!()
    }

    /// The event that says so, for a stream to wait for.
    pub(super) fn event(&self) -> &cudarc::driver::CudaEvent {
        todo!()
    }
}

/// What a ring has done so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// The slots there are.
    pub slots: usize,
    /// The bytes of each.
    pub slot_bytes: usize,
    /// The slots in use now, by the host or by the device.
    pub in_use: usize,
    /// The most that ever were.
    pub high_water: usize,
    /// The slots that are lost: it is not known whether the device still uses them.
    pub lost: usize,
    /// How often slots were taken.
    pub taken: u64,
    /// The bytes asked for, all times together.
    pub bytes: u64,
    /// How often slots were asked for, and too few were free.
    pub stalls: u64,
    /// How often a call went without, for want of a slot or of time.
    pub refused: u64,
}
