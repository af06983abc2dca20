//! Pinned memory that is the user's.
#![allow(unsafe_code)]

use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::allocation::Allocation;
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
    Allocated(Allocation),
    Registered(Registered),
    Ring(Slots),
}

impl Pinned {
    /// Makes the first `len` bytes of `slots` the user's; all of them if there are not so many.
    pub(super) fn of_slots(slots: Slots, len: usize) -> Self {
        let len = len.min(slots.bytes().len());
        Self {
            backing: Backing::Ring(slots),
            len,
        }
    }

    pub(super) fn allocate(driver: &Arc<Driver>, len: usize) -> Result<Self, CudaError> {
        let allocation = Allocation::new(driver, len)?;
        Ok(Self {
            backing: Backing::Allocated(allocation),
            len,
        })
    }

    pub(super) fn register(
        driver: &Arc<Driver>,
        bytes: Box<[u8]>,
    ) -> Result<Self, (Box<[u8]>, CudaError)> {
        let len = bytes.len();
        let registered = Registered::new(driver, bytes)?;
        Ok(Self {
            backing: Backing::Registered(registered),
            len,
        })
    }

    /// Returns how many bytes there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes it shared: read by many, written by nobody any more.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use tensorwire::cuda::{Cuda, Options};
    /// use tensorwire::transport::Wait;
    ///
    /// let cuda = Cuda::open(0, Options::new())?;
    /// let mut pinned = cuda.take_pinned(3, Wait::Never)?;
    /// assert_eq!(pinned.len(), 3);
    /// pinned.as_mut().copy_from_slice(b"abc");
    /// let bytes = pinned.share();
    /// assert_eq!(bytes.slice(1..3).unwrap().as_ref(), b"bc");
    /// # Ok::<(), tensorwire::cuda::CudaError>(())
    /// ```
    #[must_use]
    pub fn share(self) -> PinnedBytes {
        let range = 0..self.len;
        PinnedBytes {
            memory: Arc::new(self),
            range,
        }
    }

    /// Where the bytes start.
    fn start(&self) -> NonNull<u8> {
        match &self.backing {
            Backing::Allocated(allocation) => allocation.start(),
            Backing::Registered(registered) => registered.bytes.cast(),
            Backing::Ring(slots) => slots.start(),
        }
    }
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        let bytes = match &self.backing {
            // SAFETY: `bytes` asks that nobody writes meanwhile: who writes borrows `self` alone, and devices
            // copy from here, not to here, while `self` is shared.
            Backing::Allocated(allocation) => unsafe { allocation.bytes() },
            Backing::Registered(registered) => registered.bytes(),
            Backing::Ring(slots) => slots.bytes(),
        };
        bytes.get(..self.len).unwrap_or_default()
    }
}

impl AsMut<[u8]> for Pinned {
    fn as_mut(&mut self) -> &mut [u8] {
        let bytes = match &mut self.backing {
            // SAFETY: `bytes_mut` asks that nobody else uses them meanwhile: `self` is borrowed alone, and a
            // device uses them only while a share of them is kept for it.
            Backing::Allocated(allocation) => unsafe { allocation.bytes_mut() },
            Backing::Registered(registered) => registered.bytes_mut(),
            Backing::Ring(slots) => slots.bytes_mut(),
        };
        bytes.get_mut(..self.len).unwrap_or_default()
    }
}

/// Memory of the user's that is pinned in place.
struct Registered {
    driver: Arc<Driver>,
    /// Out of a box, which would claim to be the only one to use the bytes.
    bytes: NonNull<[u8]>,
}

impl Registered {
    /// Pins `bytes`. None are not pinned: the driver would refuse.
    fn new(driver: &Arc<Driver>, bytes: Box<[u8]>) -> Result<Self, (Box<[u8]>, CudaError)> {
        let len = bytes.len();
        let bytes = NonNull::from(Box::leak(bytes));
        if len > 0 {
            // SAFETY: `register` asks for one allocation, which stays until it is unregistered: it was a box, and
            // becomes one again where it is not pinned, here and in `drop`.
            let registered = unsafe { driver.register(bytes.cast(), len) };
            if let Err(error) = registered {
                // SAFETY: `from_raw` asks for what was a box, and is nobody else's: it was leaked above, and is
                // not pinned.
                let bytes = unsafe { Box::from_raw(bytes.as_ptr()) };
                return Err((bytes, error));
            }
        }
        Ok(Self {
            driver: driver.clone(),
            bytes,
        })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `NonNull::as_ref` asks for memory that holds values, and that nobody writes to meanwhile: it
        // was a box, and is written through `bytes_mut` alone, which borrows `self` alone. A device reads it, if
        // anything.
        unsafe { self.bytes.as_ref() }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; nobody else uses it, as `self` is borrowed alone, and a device uses it only while
        // it is shared.
        unsafe { self.bytes.as_mut() }
    }
}

// SAFETY: it owns its memory, as the `Box<[u8]>` did that it came from. The driver may be called by any thread.
unsafe impl Send for Registered {}
// SAFETY: by a shared reference it gives bytes to read, which a `Box<[u8]>` does as well.
unsafe impl Sync for Registered {}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: `unregister` asks for what was registered and is still allocated: `new` saw to it, and only
        // what follows frees it. No copy uses it: who copies keeps a share of it until that is over.
        if !self.bytes.is_empty() && !unsafe { self.driver.unregister(self.bytes.cast()) } {
            // Still pinned: freed, it would be the next owner's and the device's.
            return;
        }
        // SAFETY: `from_raw` asks for what was a box, and is nobody else's: `new` leaked it, and it is not pinned
        // any more.
        drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("len", &self.bytes.len())
            .finish_non_exhaustive()
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
        let start = self.range.start.checked_add(range.start)?;
        let end = self.range.start.checked_add(range.end)?;
        (start <= end && end <= self.range.end).then(|| Self {
            memory: self.memory.clone(),
            range: start..end,
        })
    }

    /// Gives the memory back, all of it, to be written again, if nobody else has bytes of it, and no device does.
    ///
    /// A device has them until its copies are over and that was [looked for](super::Cuda::poll), as other calls do too.
    ///
    /// # Errors
    ///
    /// The bytes as they were.
    pub fn into_pinned(self) -> Result<Pinned, Self> {
        let range = self.range;
        Arc::try_unwrap(self.memory).map_err(|memory| Self { memory, range })
    }

    /// Where the bytes start, for a device to copy from there while it is kept for it.
    pub(super) fn start(&self) -> NonNull<u8> {
        let start = self.range.start.min(self.memory.len);
        // SAFETY: `NonNull::add` asks that the result is in the same allocation, or at its end: it has `len`
        // bytes from there on.
        unsafe { self.memory.start().add(start) }
    }
}

impl AsRef<[u8]> for PinnedBytes {
    fn as_ref(&self) -> &[u8] {
        let bytes = (*self.memory).as_ref();
        bytes.get(self.range.clone()).unwrap_or_default()
    }
}
