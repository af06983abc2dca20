//! Pinned memory that is the user's.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;

use super::driver::Driver;
use super::error::CudaError;
use super::ring::Slots;

/// Pinned memory: a device copies from it and to it directly.
///
/// It comes out of the ring ([`Cuda::take_pinned`](super::Cuda::take_pinned)), is allocated apart
/// ([`Cuda::allocate_pinned`](super::Cuda::allocate_pinned)), or was there and is pinned in place
/// ([`Cuda::register`](super::Cuda::register)). Receive into it, then [share](Self::share) it: an upload out of shared
/// pinned memory copies nothing on the host.
#[derive(Debug)]
pub struct Pinned {
    backing: Backing,
    len: usize,
}

#[derive(Debug)]
enum Backing {
    Ring(Slots),
    // Allocated(..), Registered(..)
}

impl Pinned {
    pub(super) fn of_slots(slots: Slots, len: usize) -> Self {
        Self {
            backing: Backing::Ring(slots),
            len,
        }
    }

    pub(super) fn allocate(driver: &Arc<Driver>, len: usize) -> Result<Self, CudaError> {
        let _ = (driver, len);
        todo!()
    }

    pub(super) fn register(
        driver: &Arc<Driver>,
        bytes: Box<[u8]>,
    ) -> Result<Self, (Box<[u8]>, CudaError)> {
        let _ = (driver, bytes);
        todo!()
    }

    /// Makes it shared: read by many, written by nobody any more.
    #[must_use]
    pub fn share(self) -> PinnedBytes {
        todo!()
    }
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        todo!()
    }
}

impl AsMut<[u8]> for Pinned {
    fn as_mut(&mut self) -> &mut [u8] {
        todo!()
    }
}

/// Bytes in shared pinned memory, which stays as long as any of them: a frame to upload from, or to send.
#[derive(Clone, Debug)]
pub struct PinnedBytes {
    memory: Arc<Pinned>,
    range: Range<usize>,
}

impl PinnedBytes {
    /// Returns some of the bytes, or `None` if `range` is not all inside.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        let _ = range;
        todo!()
    }

    /// Gives the memory back, to be written again, if nobody else has bytes of it, and no device does.
    ///
    /// # Errors
    ///
    /// The bytes as they were.
    pub fn try_into_pinned(self) -> Result<Pinned, Self> {
        todo!()
    }
}

impl AsRef<[u8]> for PinnedBytes {
    fn as_ref(&self) -> &[u8] {
        todo!()
    }
}
