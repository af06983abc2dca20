//! Pinned memory that the driver allocated.

use core::mem;
use core::ptr::NonNull;
use core::slice;

use alloc::sync::Arc;

use super::driver::Driver;
use super::error::{CudaError, Step};
use crate::device::ErrorKind;

/// Pinned memory of bytes, zeros at first, which starts at a multiple of 256. Dropped, it is freed.
///
/// Who uses which bytes of it when is for whoever asks for the pointer.
#[derive(Debug)]
pub(super) struct Allocation {
    driver: Arc<Driver>,
    /// What the driver gave, and takes back; dangling where there are no bytes.
    base: NonNull<u8>,
    /// Where the bytes start.
    start: NonNull<u8>,
    len: usize,
}

impl Allocation {
    /// Allocates `len` bytes. None take no memory, and no call.
    ///
    /// Errors: `OutOfMemory`; the driver's.
    pub(super) fn new(driver: &Arc<Driver>, len: usize) -> Result<Self, CudaError> {
        if len == 0 {
            return Ok(Self {
                driver: driver.clone(),
                base: NonNull::dangling(),
                start: NonNull::dangling(),
                len,
            });
        }
        let room = len
            .checked_add(ALIGNMENT)
            .filter(|room| isize::try_from(*room).is_ok())
            .ok_or_else(|| {
                CudaError::new(ErrorKind::OutOfMemory { bytes: len }, Step::AllocatePinned)
            })?;
        let base = driver.allocate_pinned(room);
        // Of what was asked for, without the gap.
        let base = base.map_err(|error| error.of_bytes(len))?;
        let gap = base.align_offset(ALIGNMENT).min(ALIGNMENT);
        // SAFETY: `NonNull::add` asks that the result is in the same allocation, or at its end: it has
        // `len + ALIGNMENT` bytes, no more than `isize::MAX`, and the gap is no more than `ALIGNMENT`.
        let start = unsafe { base.add(gap) };
        // SAFETY: `write_bytes` asks for `len` bytes that may be written: they start no more than `ALIGNMENT` into an
        // allocation of `len + ALIGNMENT`, which nobody else knows of yet. Bytes have no alignment.
        unsafe { start.write_bytes(0, len) };
        Ok(Self {
            driver: driver.clone(),
            base,
            start,
            len,
        })
    }

    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Keeps the memory for ever, as it cannot be said that nobody uses it.
    pub(super) fn leak(self) {
        mem::forget(self);
    }

    /// All bytes.
    ///
    /// # Safety
    ///
    /// Nobody writes to them while the slice lives.
    pub(super) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: `from_raw_parts` asks four things.
        // - The pointer is not null, aligned as bytes need to be, and good for `len` bytes of one allocation: `new` saw
        //   to it, also for no bytes.
        // - They hold values: `new` wrote zeros, and then only bytes were written.
        // - Nobody writes to them meanwhile: the caller says so; freed they are when `self` is dropped, which is borrowed.
        // - They are no more than `isize::MAX`: `new` looked.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All bytes, to be written.
    ///
    /// # Safety
    ///
    /// Nobody else uses them while the slice lives.
    pub(super) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; and nobody else uses them, as the caller says.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

// SAFETY: it owns its memory, as a `Box<[u8]>` does, and bytes do not care which thread uses them. Who does so when is for
// whoever asks for them. The driver may be called by any thread.
unsafe impl Send for Allocation {}
// SAFETY: by a shared reference it gives numbers, a pointer and, to who promises that nobody writes, bytes to read.
unsafe impl Sync for Allocation {}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: `free_pinned` asks for memory of `allocate_pinned` of the same driver, once: it is what `new` got.
            // And that nobody uses it any more: whoever owns this sees to it, and leaks it otherwise.
            unsafe { self.driver.free_pinned(self.base) };
        }
    }
}

/// Copies are fastest between addresses of this alignment, and device memory starts at it too.
pub(super) const ALIGNMENT: usize = 256;
