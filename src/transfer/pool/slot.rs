//! Slots: blocks of a pool that free themselves.

use core::fmt;

use alloc::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{BuddyAllocator, MIN_BLOCK, PoolError, Stats, Windows};

/// A pool of bytes, given out in slots.
///
/// Clones are the same pool; it may be used from any thread. There is no memory in it:
/// that is a [`Region`](crate::plane::Region) of a data plane, which has a pool of its own.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::pool::Pool;
///
/// let pool = Pool::new(256 << 20)?;
/// let slot = pool.allocate(5_000_000)?;
/// assert_eq!((slot.offset(), slot.len()), (0, 8 << 20));
///
/// drop(slot);
/// assert_eq!(pool.stats().allocated_bytes(), 0);
/// # Ok::<(), tensorwire::transfer::pool::PoolError>(())
/// ```
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    book: Mutex<BuddyAllocator>,
    windows: Arc<dyn Windows>,
    /// Length of the pool and of its smallest block, which never change.
    len: usize,
    min_block: usize,
}

impl Shared {
    /// A panic between two steps leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, BuddyAllocator> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees what waits for a writer that is done by now.
    fn sweep(&self, book: &mut BuddyAllocator) -> usize {
        book.sweep(|offset| self.windows.close(offset))
    }
}

impl Pool {
    /// Makes a pool of at least `len` bytes that nobody but its owner writes to, in
    /// blocks of at least 1 MiB.
    ///
    /// # Errors
    ///
    /// As [`BuddyAllocator::with_min_block`], which also says how long the pool is.
    pub fn new(len: usize) -> Result<Self, PoolError> {
        Self::with_windows(len, MIN_BLOCK, Arc::new(Alone))
    }

    /// Makes a pool of at least `len` bytes, in blocks of at least `min_block`, whose peers
    /// are told of landings by way of `windows`.
    ///
    /// # Errors
    ///
    /// As [`BuddyAllocator::with_min_block`], which also says how long the pool is.
    pub fn with_windows(
        len: usize,
        min_block: usize,
        windows: Arc<dyn Windows>,
    ) -> Result<Self, PoolError> {
        let book = BuddyAllocator::with_min_block(len, min_block)?;
        let shared = Shared {
            len: book.len(),
            min_block,
            book: Mutex::new(book),
            windows,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Takes a slot of at least `len` bytes, after what waited for its writer and need not
    /// any more was freed.
    ///
    /// # Errors
    ///
    /// - [`ZeroLength`](PoolError::ZeroLength) for a slot of no bytes.
    /// - [`TooLarge`](PoolError::TooLarge) for more bytes than the pool has.
    /// - [`Full`](PoolError::Full) if there is no room now: try again when a slot was freed.
    pub fn allocate(&self, len: usize) -> Result<Slot, PoolError> {
        let mut book = self.shared.lock();
        self.shared.sweep(&mut book);
        let block = book.allocate(len)?;
        drop(book);
        let held = Held {
            shared: Arc::clone(&self.shared),
            offset: block.offset(),
            len: block.len(),
            is_open: false,
        };
        Ok(Slot { held })
    }

    /// Frees the blocks in quarantine whose writers are done, and returns how many.
    ///
    /// [`allocate`](Self::allocate) does so itself.
    pub fn reclaim(&self) -> usize {
        self.shared.sweep(&mut self.shared.lock())
    }

    /// Tells whether `slot` is one of this pool.
    #[must_use]
    pub fn owns(&self, slot: &Slot) -> bool {
        Arc::ptr_eq(&self.shared, &slot.held.shared)
    }

    /// Tells whether `landing` is one of this pool.
    #[must_use]
    pub fn owns_landing(&self, landing: &Landing) -> bool {
        Arc::ptr_eq(&self.shared, &landing.held.shared)
    }

    /// Returns its length in bytes, a power of two.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len
    }

    /// Returns whether it has no bytes, which is never so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length of the smallest slot in bytes, a power of two.
    #[must_use]
    pub fn min_block(&self) -> usize {
        self.shared.min_block
    }

    /// Returns how full it is.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.lock().stats()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("len", &self.len())
            .field("min_block", &self.min_block())
            .finish_non_exhaustive()
    }
}

/// The windows of a pool that nobody but its owner writes to.
#[derive(Debug)]
struct Alone;

impl Windows for Alone {
    fn open(&self, _offset: usize, _len: usize) {}

    fn close(&self, _offset: usize) -> bool {
        true
    }
}

/// A block that is taken: the one owner of its bytes.
struct Held {
    shared: Arc<Shared>,
    offset: usize,
    len: usize,
    /// Peers may write to it, or still do.
    is_open: bool,
}

impl Held {
    fn debug(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        f.debug_struct(name)
            .field("offset", &self.offset)
            .field("len", &self.len)
            .finish()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let is_done = !self.is_open || self.shared.windows.close(self.offset);
        let mut book = self.shared.lock();
        // Neither can fail: the block is allocated for as long as this lives.
        if is_done {
            let _ = book.free(self.offset);
        } else {
            let _ = book.quarantine(self.offset);
        }
    }
}

/// A slot of a pool, held by its owner: nobody else reads or writes its bytes.
///
/// It cannot be made but by a [`Pool`], and not be copied. Dropped, on any thread, it frees
/// its block, and keeps the pool's book alive until then. Leaked, the block is
/// never given out again.
///
/// It is a place, not bytes: those come of the [`Region`](crate::plane::Region) whose pool it is of.
#[must_use = "dropped, it frees its block"]
pub struct Slot {
    held: Held,
}

impl Slot {
    /// Lets peers write into it: from now on its owner may not look.
    pub fn open(self) -> Landing {
        let mut held = self.held;
        held.is_open = true;
        held.shared.windows.open(held.offset, held.len);
        Landing { held }
    }

    /// Returns its offset in bytes from the start of the pool, a multiple of its length.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.held.offset
    }

    /// Returns its length in bytes, a power of two: at least what was asked for.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.held.len
    }

    /// Returns whether it has no bytes, which is never so.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.debug(f, "Slot")
    }
}

/// A slot that peers may write into.
///
/// [`close`](Self::close) turns it back into a [`Slot`], with what was written; that
/// slot may be opened again, as often as one likes: so a preallocated slot is recycled.
///
/// Dropped, it is closed and freed. If a write is still under way its block goes into
/// *quarantine*: nobody gets it, until a later [`Pool::allocate`] or
/// [`Pool::reclaim`] finds that the write is over.
#[must_use = "dropped, it is closed at once"]
pub struct Landing {
    held: Held,
}

impl Landing {
    /// Closes it: no write begins any more, and none is under way.
    ///
    /// # Errors
    ///
    /// [`Busy`], with the landing, if a write is under way. No other one begins; close
    /// it again later, or drop it.
    pub fn close(self) -> Result<Slot, Busy> {
        let mut held = self.held;
        if !held.shared.windows.close(held.offset) {
            let landing = Self { held };
            return Err(Busy { landing });
        }
        held.is_open = false;
        Ok(Slot { held })
    }

    /// Returns its offset in bytes from the start of the pool, a multiple of its length.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.held.offset
    }

    /// Returns its length in bytes, a power of two.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.held.len
    }

    /// Returns whether it has no bytes, which is never so.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Landing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.debug(f, "Landing")
    }
}

/// A landing could not be closed, as a write into it is under way.
#[derive(Debug)]
pub struct Busy {
    landing: Landing,
}

impl Busy {
    /// Returns the landing, which takes no further write.
    pub fn into_landing(self) -> Landing {
        self.landing
    }
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.landing.offset();
        write!(f, "a write into the slot at offset {offset} is under way")
    }
}

impl core::error::Error for Busy {}
