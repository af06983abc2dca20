//! The handles: slots of the host, and slots of the device.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;
use core::slice;

use alloc::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream};

use super::Shared;
use super::state::Run;
use crate::cuda::backoff::wait_for;
use crate::cuda::error::{CudaError, Step};
use crate::device::ErrorKind;
use crate::transport::Wait;

/// Who has the slots of a lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Holder {
    /// The device, and this waits for it.
    Device,
    /// The host: nobody else uses the bytes.
    Host,
    /// The ring: this has nothing to do with them any more.
    Ring,
}

/// A run that was taken, and the only one of it. Dropped, it goes where its holder says.
struct Lease {
    shared: Arc<Shared>,
    run: Run,
    holder: Holder,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.let_go(self.run, self.holder);
    }
}

impl Lease {
    fn start(&self) -> NonNull<u8> {
        let Some(memory) = &self.shared.memory else {
            return NonNull::dangling();
        };
        let offset = self.run.first.saturating_mul(self.shared.slot_bytes);
        let offset = offset.min(memory.len());
        // SAFETY: `NonNull::add` asks that the result is in the same allocation, or at its end: the allocation has
        // `memory.len()` bytes from there on.
        unsafe { memory.start().add(offset) }
    }

    /// How many bytes lie there: all slots of the run, which `take` found in the ring.
    fn len(&self) -> usize {
        let Some(memory) = &self.shared.memory else {
            return 0;
        };
        let start = self.run.first.saturating_mul(self.shared.slot_bytes);
        let len = self.run.len.saturating_mul(self.shared.slot_bytes);
        len.min(memory.len().saturating_sub(start))
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("run", &self.run)
            .field("holder", &self.holder)
            .finish_non_exhaustive()
    }
}

/// Adjacent slots that the host reads and writes. Dropped, they are free again.
#[derive(Debug)]
pub(in crate::cuda) struct Slots {
    lease: Lease,
}

impl Slots {
    pub(super) fn new(shared: &Arc<Shared>, run: Run) -> Self {
        Self {
            lease: Lease {
                shared: shared.clone(),
                run,
                holder: Holder::Host,
            },
        }
    }

    /// All bytes of the slots; at a multiple of 256.
    pub(in crate::cuda) fn bytes(&self) -> &[u8] {
        // SAFETY: `from_raw_parts` asks four things.
        // - The pointer is not null, aligned as bytes need to be, and good for so many bytes of one allocation:
        //   `start` and `len` stay inside the ring's, which lives as long as the lease.
        // - They hold values: the ring's memory is zeroed, and then only bytes are written.
        // - Nobody writes to them meanwhile: the run is the host's, by this one handle, which is borrowed.
        // - They are no more than `isize::MAX`: so is the whole allocation.
        unsafe { slice::from_raw_parts(self.lease.start().as_ptr(), self.lease.len()) }
    }

    /// All bytes of the slots, to be written.
    pub(in crate::cuda) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; and nobody else uses them, as this handle is borrowed alone.
        unsafe { slice::from_raw_parts_mut(self.lease.start().as_ptr(), self.lease.len()) }
    }

    /// Where the bytes start, to copy from or to there on a stream. From then on they are to be
    /// [submitted](Self::submit), and no bytes asked for.
    pub(in crate::cuda) fn start(&self) -> NonNull<u8> {
        self.lease.start()
    }

    /// Gives them to the device until what is on `stream` by now has run.
    ///
    /// It is called also after a copy that the driver refused: nobody knows whether it runs.
    ///
    /// On an error they are the ring's, which does not use them again before it knows that the copy is over.
    pub(in crate::cuda) fn submit(
        mut self,
        stream: &Arc<CudaStream>,
    ) -> Result<InFlight, CudaError> {
        let Lease { shared, run, .. } = &self.lease;
        let event = shared.event(*run).cloned();
        // There is one for each slot.
        let event = event.ok_or_else(|| CudaError::new(ErrorKind::Backend, Step::RecordEvent));
        let recorded = event.and_then(|event| {
            shared.driver.record(&event, stream)?;
            Ok(event)
        });
        let mut state = shared.state();
        match recorded {
            Ok(event) => {
                state.submit(*run);
                drop(state);
                self.lease.holder = Holder::Device;
                Ok(InFlight {
                    lease: self.lease,
                    event,
                })
            }
            Err(error) => {
                state.doubt(*run, stream);
                shared.wake(state);
                self.lease.holder = Holder::Ring;
                Err(error)
            }
        }
    }
}

/// Slots that the device reads or writes. Dropped, they are free again when their event has fired.
#[derive(Debug)]
pub(in crate::cuda) struct InFlight {
    lease: Lease,
    event: Arc<CudaEvent>,
}

impl InFlight {
    /// Tells whether the event has fired.
    ///
    /// Errors: the driver's, which may be that of the copy.
    pub(in crate::cuda) fn is_ready(&self) -> Result<bool, CudaError> {
        self.lease.shared.driver.is_complete(&self.event)
    }

    /// Takes them back for the host, if the event has fired by now; `NotReady`, `TimedOut` by `wait`.
    pub(in crate::cuda) fn finish(mut self, wait: Wait) -> Result<Slots, (Self, CudaError)> {
        let shared = &self.lease.shared;
        if let Err(error) = wait_for(&shared.driver, &self.event, wait, shared.timeout) {
            return Err((self, error));
        }
        shared.state().finish(self.lease.run);
        self.lease.holder = Holder::Host;
        Ok(Slots { lease: self.lease })
    }

    /// The event that says so, for a stream to wait for. Once this is gone, it may be recorded again for others.
    pub(in crate::cuda) const fn event(&self) -> &Arc<CudaEvent> {
        &self.event
    }
}
