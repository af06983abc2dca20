//! Memory of this process.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use alloc::alloc::{alloc_zeroed, dealloc};

use super::Memory;
use crate::transfer::pool::PoolError;

/// Where it starts: at a page, so that every slot is aligned to what views ask for.
const ALIGNMENT: usize = 4096;

/// Memory of this process, of zeros at first, which starts at a multiple of 4096.
///
/// The system gives pages as they are touched, so a large one costs nothing yet.
pub struct HostMemory {
    start: NonNull<u8>,
    layout: Layout,
}

impl HostMemory {
    /// Asks for `len` bytes.
    ///
    /// # Errors
    ///
    /// - [`ZeroLength`](PoolError::ZeroLength) for no bytes.
    /// - [`PoolTooLarge`](PoolError::PoolTooLarge) for more than `isize::MAX`, rounded up to a page.
    /// - [`OutOfMemory`](PoolError::OutOfMemory) if the system has not so many.
    pub fn new(len: usize) -> Result<Self, PoolError> {
        if len == 0 {
            return Err(PoolError::ZeroLength);
        }
        let layout = Layout::from_size_align(len, ALIGNMENT);
        let layout = layout.map_err(|_| PoolError::PoolTooLarge { len })?;
        // SAFETY: `alloc_zeroed` asks for a layout of at least one byte: `len` is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(PoolError::OutOfMemory)?;
        Ok(Self { start, layout })
    }
}

// SAFETY: it owns its allocation, as a `Box<[u8]>` does, and bytes do not care which
// thread reads them. Who does so when is for whoever asks for the pointer.
unsafe impl Send for HostMemory {}
// SAFETY: by a shared reference it gives numbers and a pointer, and changes nothing.
unsafe impl Sync for HostMemory {}

// SAFETY: the four rules of `Memory`.
// 1. Pointer and layout never change, and the allocation does not move with the value.
// 2. `start` is one allocation of `layout.size()` bytes, which `Layout` holds to `isize::MAX`; it
//    was made with zeros, and lives until the value is dropped.
// 3. Nobody else knows of the allocation, and this module gives nobody its bytes.
unsafe impl Memory for HostMemory {
    fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: `dealloc` asks for a pointer of this allocator, and the layout that it was made
        // with: both come from `new`, and this is the only place that gives them back.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostMemory")
            .field("len", &self.layout.size())
            .finish_non_exhaustive()
    }
}
