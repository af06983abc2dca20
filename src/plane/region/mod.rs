//! Registered memory: a pool, and the bytes of its slots.
#![allow(unsafe_code)]

mod delivery;
mod host;
mod regions;

use core::fmt;
use core::ptr::NonNull;
use core::slice;

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};

use super::push::offset_in;
use super::{ErrorKind, MemoryKind};
use crate::convert::to_u64;
use crate::transfer::pool::{Pool, PoolError, Slot, Windows};

pub(super) use delivery::Delivery;
pub use host::HostMemory;
pub(super) use regions::Regions;

/// Memory that a data plane brings for a region.
///
/// # Safety
///
/// For as long as the value lives, wherever it is moved to,
///
/// 1. `as_ptr`, `len`, `kind` and `address` answer the same each time;
/// 2. if `kind` is [one of the host](MemoryKind::is_host), the `len` bytes from `as_ptr` on lie
///    in one allocation of at most `isize::MAX` bytes, are valid for reads and writes on any
///    thread, and hold values;
/// 3. those bytes are read and written through the [`Region`] that the value becomes, and else
///    by nobody, except by what the data plane lets write into a window: between `open` and a
///    `close` that says `true` of the [`Windows`] that [`Region::new`] is given with it.
pub unsafe trait Memory: fmt::Debug + Send + Sync {
    /// Returns where its first byte lies.
    fn as_ptr(&self) -> NonNull<u8>;

    /// Returns how many bytes there are.
    fn len(&self) -> usize;

    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what kind of memory it is.
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    /// Returns the number by which peers know its first byte.
    fn address(&self) -> u64 {
        to_u64(self.as_ptr().addr().get())
    }
}

/// Registered memory with a pool in it: what slots are places of.
///
/// It gives the bytes of a [`Slot`] to whoever holds that slot. Slots of a pool never overlap, so
/// many of them are read and written at once, from many threads.
///
/// Dropping it takes it off the data plane: pushes to it fail from then on. Slots that are
/// left are numbers without bytes.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tensorwire::plane::{HostMemory, Region};
/// use tensorwire::transfer::pool::WindowTable;
///
/// let memory = Box::new(HostMemory::new(1 << 20)?);
/// let region = Region::new(memory, 4096, Arc::new(WindowTable::new()))?;
/// let mut slot = region.pool().allocate(4)?;
/// region.bytes_mut(&mut slot)?[..4].copy_from_slice(&[1, 2, 3, 4]);
/// assert_eq!(region.bytes(&slot)?[..4], [1, 2, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Region {
    body: Arc<Body>,
}

struct Body {
    pool: Pool,
    /// Of at least `pool.len()` bytes.
    memory: Box<dyn Memory>,
}

impl Region {
    /// For those who implement a plane: makes a region of `memory`, with a pool of slots of at
    /// least `min_block` bytes, whose landings `windows` is told of.
    ///
    /// The pool is as long as the largest power of two that is not more than `memory` has.
    ///
    /// # Errors
    ///
    /// - [`Pool`](ErrorKind::Pool) if the pool cannot be made: `memory` has not one slot,
    ///   or `min_block` is no power of two.
    /// - [`OutOfBounds`](ErrorKind::OutOfBounds) if its addresses pass the last `u64`.
    pub fn new(
        memory: Box<dyn Memory>,
        min_block: usize,
        windows: Arc<dyn Windows>,
    ) -> Result<Self, ErrorKind> {
        let len = memory.len();
        let rounded = len.checked_ilog2().and_then(|log| 1_usize.checked_shl(log));
        let rounded = rounded.filter(|&rounded| rounded >= min_block);
        let rounded = rounded.ok_or(PoolError::TooLarge {
            needed: min_block,
            pool: len,
        })?;
        let pool = Pool::with_windows(rounded, min_block, windows)?;
        let address = memory.address();
        let byte_len = to_u64(rounded);
        if address.checked_add(byte_len).is_none() {
            return Err(ErrorKind::OutOfBounds {
                address,
                len: byte_len,
            });
        }
        let body = Arc::new(Body { pool, memory });
        Ok(Self { body })
    }

    /// Returns the pool that slots of this region come from.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.body.pool
    }

    /// Returns the address of its first byte: `pool_ptr` of control messages.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.body.memory.address()
    }

    /// Returns the address of the byte at `offset` of the pool.
    ///
    /// # Errors
    ///
    /// [`OutOfBounds`](ErrorKind::OutOfBounds) past the end of the pool.
    pub fn address_of(&self, offset: usize) -> Result<u64, ErrorKind> {
        // No saturation for an offset in the pool: `new` has seen that its end has an address.
        let address = self.base().saturating_add(to_u64(offset));
        if offset > self.len() {
            return Err(ErrorKind::OutOfBounds { address, len: 0 });
        }
        Ok(address)
    }

    /// Returns the length of the pool in bytes: `pool_size` of control messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.body.pool.len()
    }

    /// Returns whether it has no bytes, which is never so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what kind of memory it is.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        self.body.memory.kind()
    }

    /// Returns the bytes of `slot`.
    ///
    /// # Errors
    ///
    /// - [`ForeignSlot`](ErrorKind::ForeignSlot) for a slot of another pool.
    /// - [`Unsupported`](ErrorKind::Unsupported) for memory that is not the host's.
    pub fn bytes<'a>(&'a self, slot: &'a Slot) -> Result<&'a [u8], ErrorKind> {
        let start = self.start_of(slot)?;
        // SAFETY: `slice::from_raw_parts` asks four things.
        // - `start` is non-null, aligned for bytes, and valid for reads of `slot.len()` bytes in
        //   one allocation: `start_of` says so.
        // - Those bytes hold values: rule 2 of `Memory`.
        // - Nobody writes to them while the result lives. It borrows `slot`, which can be made
        //   by the pool alone and not copied, so no other `Slot` or `Landing` has one of these
        //   bytes; while it is borrowed it cannot be opened, so there is no window
        //   either, and rule 3 of `Memory` leaves `bytes_mut`, which needs the
        //   slot for itself.
        // - They are at most `isize::MAX` bytes: rule 2 of `Memory`.
        Ok(unsafe { slice::from_raw_parts(start.as_ptr(), slot.len()) })
    }

    /// Returns the bytes of `slot`, to write to.
    ///
    /// They hold whatever was written there last, by anybody: at first zeros.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub fn bytes_mut<'a>(&'a self, slot: &'a mut Slot) -> Result<&'a mut [u8], ErrorKind> {
        let start = self.start_of(slot)?;
        // SAFETY: `slice::from_raw_parts_mut` asks four things.
        // - `start` is non-null, aligned for bytes, and valid for reads and writes of
        //   `slot.len()` bytes in one allocation: `start_of` says so.
        // - Those bytes hold values: rule 2 of `Memory`.
        // - Nobody else reads or writes them while the result lives: as in `bytes`, and as
        //   the slot is borrowed for this alone.
        // - They are at most `isize::MAX` bytes: rule 2 of `Memory`.
        Ok(unsafe { slice::from_raw_parts_mut(start.as_ptr(), slot.len()) })
    }

    /// Returns a way to this region that does not keep it.
    ///
    /// For those who implement a plane, to find the bytes of a slot that is pushed.
    #[must_use]
    pub fn downgrade(&self) -> WeakRegion {
        WeakRegion {
            body: Arc::downgrade(&self.body),
        }
    }

    /// Returns where `slot` starts: a pointer that is valid for reads and writes of `slot.len()`
    /// bytes in one allocation, for as long as the region lives.
    ///
    /// Who holds the slot may use them as [`bytes_mut`](Self::bytes_mut) does, for as long as it is not opened.
    pub(crate) fn start_of(&self, slot: &Slot) -> Result<NonNull<u8>, ErrorKind> {
        if !self.pool().owns(slot) {
            return Err(ErrorKind::ForeignSlot);
        }
        self.at(slot.offset())
    }

    /// Returns a pointer to the byte at `offset`, which is one of the pool's, or to the end.
    ///
    /// It is valid for reads and writes of all bytes of the pool from there on.
    pub(crate) fn at(&self, offset: usize) -> Result<NonNull<u8>, ErrorKind> {
        let memory = &self.body.memory;
        let kind = memory.kind();
        if !kind.is_host() {
            return Err(ErrorKind::Unsupported { kind });
        }
        // `pool.len() <= memory.len()` since the region was made, and slots end inside of their pool.
        offset_in(0, self.len(), to_u64(offset), 0)?;
        // SAFETY: `NonNull::add` asks that the sum of bytes is at most `isize::MAX`, and that
        // the result is inside the allocation of the pointer, or at its end: `offset` is
        // at most the length of the pool, which is at most that of the memory, and that lies in
        // one allocation of at most `isize::MAX` bytes by rule 2 of `Memory`.
        Ok(unsafe { memory.as_ptr().add(offset) })
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("pool", self.pool())
            .field("memory", &self.body.memory)
            .finish()
    }
}

/// A way to a region that does not keep it.
#[derive(Clone)]
pub struct WeakRegion {
    body: Weak<Body>,
}

impl WeakRegion {
    /// Returns the region, unless it was dropped. It is not, for as long as the result lives.
    #[must_use]
    pub fn upgrade(&self) -> Option<Region> {
        let body = self.body.upgrade()?;
        Some(Region { body })
    }
}

impl fmt::Debug for WeakRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakRegion")
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::*;
    use crate::transfer::pool::WindowTable;

    /// Memory that is a number: nobody gets its bytes.
    #[derive(Debug)]
    struct OfDevice {
        address: u64,
        len: usize,
    }

    const KIND: MemoryKind = MemoryKind::Device { ordinal: 2 };

    // SAFETY: the rules of `Memory`.
    // 1. The fields never change.
    // 2. The kind is none of the host.
    // 3. There are no bytes.
    unsafe impl Memory for OfDevice {
        fn as_ptr(&self) -> NonNull<u8> {
            NonNull::dangling()
        }

        fn len(&self) -> usize {
            self.len
        }

        fn kind(&self) -> MemoryKind {
            KIND
        }

        fn address(&self) -> u64 {
            self.address
        }
    }

    fn region(address: u64, len: usize) -> Result<Region, ErrorKind> {
        let memory = Box::new(OfDevice { address, len });
        Region::new(memory, 512, Arc::new(WindowTable::new()))
    }

    #[test]
    fn memory_of_a_device_has_slots_and_addresses_but_no_bytes() {
        let region = region(1 << 63, 4096).unwrap();
        let mut slot = region.pool().allocate(1024).unwrap();
        assert_eq!(region.kind(), KIND);
        assert_eq!(region.address_of(slot.offset() + 8), Ok((1 << 63) + 8));
        let unsupported = ErrorKind::Unsupported { kind: KIND };
        assert_eq!(region.bytes(&slot), Err(unsupported));
        assert_eq!(region.bytes_mut(&mut slot), Err(unsupported));
        assert_eq!(
            unsupported.to_string(),
            "not possible with memory of device 2"
        );
    }

    #[test]
    fn addresses_end_before_they_wrap() {
        let last = u64::MAX - 4096;
        assert_eq!(region(last, 4096).unwrap().address_of(4096), Ok(u64::MAX));
        let out = |address, len| ErrorKind::OutOfBounds { address, len };
        assert_eq!(region(last + 1, 4096).unwrap_err(), out(last + 1, 4096));
        // The pool is what counts: the largest power of two inside.
        assert!(region(last, 8191).is_ok());
        let past = region(last, 4096).unwrap().address_of(4097);
        assert!(past.is_err());
    }
}
