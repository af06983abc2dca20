//! Which bytes of a pool are free: a buddy allocator that places as the Python peers do.

use core::fmt;

use super::PoolError;
use super::nodes::{List, NONE, Nodes, State};
use super::stats::Stats;

/// The length of the smallest block, unless another is asked for: 1 MiB.
pub const MIN_BLOCK: usize = 1 << 20;

/// One list of free blocks for each power of two that a `usize` holds.
pub(super) const ORDERS: usize = 64;

/// Tells which bytes of a pool are free, and which block the next caller gets.
///
/// A block is a power of two long, at least [`min_block`](Self::min_block) bytes, and
/// starts at a multiple of its length. There is no memory behind it: an allocator
/// does sums with offsets, and whose bytes they are is the caller's business.
///
/// Placement is that of the Python peers, offset by offset:
///
/// - Of the free blocks of a length, the one that has been free for longest is taken.
/// - If none is of the right length, the shortest longer one is split. Its lowest part is
///   taken; the others, largest first, go to the back of the list of their length.
/// - A block that is freed merges with its other half, its *buddy*, if that is free
///   and whole; so does the result, and so on. What remains goes to the back of its list.
///
/// Taking and freeing are O(log n) in the number of smallest blocks, and neither asks
/// for memory: the one list of blocks, 24 bytes for each smallest block (256 of
/// them in a pool of 256 MiB), is made with the allocator.
///
/// # How much memory to bring
///
/// The length of a pool is a power of two. What is asked for is rounded up, and *all* of
/// [`len`](Self::len) is handed out: bring that much memory, not what you asked for. For
/// memory that is there already and is no power of two long, ask for the largest
/// power of two inside.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::pool::{BuddyAllocator, PoolError};
///
/// let mut allocator = BuddyAllocator::with_min_block(3000, 512)?;
/// assert_eq!(allocator.len(), 4096);
///
/// let first = allocator.allocate(600)?;
/// let second = allocator.allocate(1)?;
/// assert_eq!((first.offset(), first.len()), (0, 1024));
/// assert_eq!((second.offset(), second.len()), (1024, 512));
/// assert_eq!(
///     allocator.allocate(4096),
///     Err(PoolError::Full { needed: 4096, largest: 2048 })
/// );
///
/// allocator.free(first.offset())?;
/// assert_eq!(allocator.free(0), Err(PoolError::NotAllocated { offset: 0 }));
/// # Ok::<(), PoolError>(())
/// ```
pub struct BuddyAllocator {
    /// One for each smallest block of the pool.
    nodes: Nodes,
    /// The free blocks of each order: order 0 is the smallest block.
    free: [List; ORDERS],
    /// Bit `n` is set if `free[n]` is not empty.
    not_empty: u64,
    /// Blocks that nobody holds, but that are written to.
    quarantine: List,
    /// The length of the smallest block is `1 << shift`.
    shift: u32,
    max_order: u32,
    stats: Stats,
}

/// A block of a pool: where it starts, and how long it is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Block {
    offset: usize,
    len: usize,
}

impl Block {
    /// Returns its offset in bytes from the start of the pool, a multiple of its length.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns its length in bytes, a power of two.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it has no bytes, which is never so.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl BuddyAllocator {
    /// Makes the allocator of a pool of at least `len` bytes, in blocks of at least 1 MiB.
    ///
    /// # Errors
    ///
    /// As [`with_min_block`](Self::with_min_block).
    pub fn new(len: usize) -> Result<Self, PoolError> {
        Self::with_min_block(len, MIN_BLOCK)
    }

    /// Makes the allocator of a pool of at least `len` bytes, in blocks of at least `min_block`.
    ///
    /// The pool is as long as the next power of two, and at least as one block.
    ///
    /// # Errors
    ///
    /// - [`BadMinBlock`](PoolError::BadMinBlock) if `min_block` is no power of two.
    /// - [`PoolTooLarge`](PoolError::PoolTooLarge) for more than `isize::MAX` bytes.
    /// - [`OutOfMemory`](PoolError::OutOfMemory) if there is no room for the list of blocks.
    pub fn with_min_block(len: usize, min_block: usize) -> Result<Self, PoolError> {
        let rounded = rounded_len(len, min_block)?;
        let shift = min_block.trailing_zeros();
        let count = rounded.checked_shr(shift).unwrap_or(0);
        let mut allocator = Self {
            nodes: Nodes::new(count)?,
            free: [List::EMPTY; ORDERS],
            not_empty: 0,
            quarantine: List::EMPTY,
            shift,
            max_order: count.trailing_zeros(),
            stats: Stats::new(rounded, min_block),
        };
        allocator.push_free(0, allocator.max_order);
        allocator.stats.blocks = 1;
        Ok(allocator)
    }

    /// Takes a block of at least `len` bytes.
    ///
    /// # Errors
    ///
    /// - [`ZeroLength`](PoolError::ZeroLength) for a block of no bytes.
    /// - [`TooLarge`](PoolError::TooLarge) for more bytes than the pool has.
    /// - [`Full`](PoolError::Full) if no free block is large enough now.
    pub fn allocate(&mut self, len: usize) -> Result<Block, PoolError> {
        if len == 0 {
            return Err(PoolError::ZeroLength);
        }
        let block = self.take(len);
        match block {
            Ok(block) => self.stats.took(block.len),
            Err(_) => self.stats.failed(),
        }
        block
    }

    /// Frees the block that starts at `offset`.
    ///
    /// # Errors
    ///
    /// [`NotAllocated`](PoolError::NotAllocated) if no allocated block starts there: it is
    /// free already, or `offset` is inside of a block or outside the pool.
    pub fn free(&mut self, offset: usize) -> Result<Block, PoolError> {
        let (index, order) = self.allocated(offset)?;
        let block = self.block(index, order);
        self.stats.gave_back(block.len);
        self.merge(index, order);
        Ok(block)
    }

    /// Keeps the block that starts at `offset` from everybody, its owner too, until it is
    /// [swept](Self::sweep) away.
    ///
    /// For a block that nobody holds any more, but that a peer still writes to.
    ///
    /// # Errors
    ///
    /// [`NotAllocated`](PoolError::NotAllocated) as [`free`](Self::free), also if it is in quarantine.
    pub fn quarantine(&mut self, offset: usize) -> Result<Block, PoolError> {
        let (index, order) = self.allocated(offset)?;
        let block = self.block(index, order);
        self.stats.quarantined(block.len);
        let state = State::Quarantined(order);
        self.nodes.push(&mut self.quarantine, index, state);
        Ok(block)
    }

    /// Frees those blocks in quarantine of whose offsets `is_done` says so, and returns how many.
    ///
    /// It is asked once for each block there, the one that has been there for longest first.
    pub fn sweep(&mut self, mut is_done: impl FnMut(usize) -> bool) -> usize {
        let mut freed: usize = 0;
        let mut next = self.quarantine.head;
        while let State::Quarantined(order) = self.nodes.at(next).state {
            let index = next;
            next = self.nodes.at(index).next;
            let block = self.block(index, order);
            if !is_done(block.offset) {
                continue;
            }
            self.nodes.unlink(&mut self.quarantine, index);
            self.stats.swept(block.len);
            self.merge(index, order);
            freed = freed.saturating_add(1);
        }
        freed
    }

    /// Returns the allocated block that starts at `offset`, if one does.
    #[must_use]
    pub fn block_at(&self, offset: usize) -> Option<Block> {
        let (index, order) = self.allocated(offset).ok()?;
        Some(self.block(index, order))
    }

    /// Returns the length of the pool in bytes, a power of two.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.stats.pool_bytes
    }

    /// Returns whether the pool has no bytes, which is never so.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length of the smallest block in bytes, a power of two.
    #[must_use]
    pub const fn min_block(&self) -> usize {
        self.stats.min_block
    }

    /// Returns how full the pool is.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = self.stats;
        for (count, list) in stats.free_blocks.iter_mut().zip(&self.free) {
            *count = list.len;
        }
        stats.quarantined_blocks = self.quarantine.len;
        stats
    }

    /// Takes a free block of at least `len` bytes, which are not 0, out of its list.
    fn take(&mut self, len: usize) -> Result<Block, PoolError> {
        let pool = self.len();
        let too_large = PoolError::TooLarge { needed: len, pool };
        let needed = len.checked_next_power_of_two().ok_or(too_large)?;
        let needed = needed.max(self.min_block());
        if needed > pool {
            return Err(too_large);
        }
        let target = needed.trailing_zeros().saturating_sub(self.shift);
        // The lists of the orders from `target` on.
        let enough = self.not_empty & u64::MAX.checked_shl(target).unwrap_or(0);
        let mut order = enough.trailing_zeros();
        let full = PoolError::Full {
            needed,
            largest: self.largest_free(),
        };
        let index = self.front(order).ok_or(full)?;
        self.remove_free(index, order);
        while order > target {
            order = order.saturating_sub(1);
            // The upper half: `index` is a multiple of twice the length.
            self.push_free(index | units(order), order);
            self.stats.blocks = self.stats.blocks.saturating_add(1);
        }
        self.nodes.set(index, State::Allocated(order));
        Ok(self.block(index, order))
    }

    /// Makes the block at `index`, which is in no list, free, after it has merged with
    /// its buddy as often as that is free.
    fn merge(&mut self, mut index: usize, mut order: u32) {
        while order < self.max_order {
            let buddy = index ^ units(order);
            if self.nodes.at(buddy).state != State::Free(order) {
                break;
            }
            self.remove_free(buddy, order);
            // The lower of the two starts the merged block.
            self.nodes.set(index.max(buddy), State::Inner);
            index = index.min(buddy);
            order = order.saturating_add(1);
            self.stats.blocks = self.stats.blocks.saturating_sub(1);
        }
        self.push_free(index, order);
    }

    /// Returns index and order of the allocated block that starts at `offset`.
    fn allocated(&self, offset: usize) -> Result<(usize, u32), PoolError> {
        let index = offset.checked_shr(self.shift).unwrap_or(NONE);
        match self.nodes.at(index).state {
            State::Allocated(order) if offset.trailing_zeros() >= self.shift => Ok((index, order)),
            _ => Err(PoolError::NotAllocated { offset }),
        }
    }

    fn block(&self, index: usize, order: u32) -> Block {
        Block {
            offset: index.checked_shl(self.shift).unwrap_or(0),
            len: self.len_of(order),
        }
    }

    /// Returns the length in bytes of a block of `order`.
    fn len_of(&self, order: u32) -> usize {
        self.min_block().checked_shl(order).unwrap_or(0)
    }

    /// Returns the length of the largest free block, or 0.
    fn largest_free(&self) -> usize {
        let order = self.not_empty.checked_ilog2();
        order.map_or(0, |order| self.len_of(order))
    }

    /// Returns the block that has been free for longest.
    fn front(&self, order: u32) -> Option<usize> {
        let list = self.free.get(usize::try_from(order).ok()?)?;
        (list.head != NONE).then_some(list.head)
    }

    fn push_free(&mut self, index: usize, order: u32) {
        if let Some(list) = usize::try_from(order)
            .ok()
            .and_then(|x| self.free.get_mut(x))
        {
            self.nodes.push(list, index, State::Free(order));
            self.not_empty |= bit(order);
        }
    }

    fn remove_free(&mut self, index: usize, order: u32) {
        if let Some(list) = usize::try_from(order)
            .ok()
            .and_then(|x| self.free.get_mut(x))
        {
            self.nodes.unlink(list, index);
            if list.len == 0 {
                self.not_empty &= !bit(order);
            }
        }
    }
}

impl fmt::Debug for BuddyAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuddyAllocator")
            .field("len", &self.len())
            .field("min_block", &self.min_block())
            .field("allocated_bytes", &self.stats.allocated_bytes)
            .finish_non_exhaustive()
    }
}

/// Returns how long a pool is that is to have `len` bytes at least: a power of two.
///
/// It is what to bring as memory, known before there is an allocator.
///
/// # Errors
///
/// [`BadMinBlock`](PoolError::BadMinBlock) and [`PoolTooLarge`](PoolError::PoolTooLarge),
/// as [`BuddyAllocator::with_min_block`].
pub fn rounded_len(len: usize, min_block: usize) -> Result<usize, PoolError> {
    if !min_block.is_power_of_two() {
        return Err(PoolError::BadMinBlock { min_block });
    }
    let rounded = len.max(min_block).checked_next_power_of_two();
    let rounded = rounded.filter(|&rounded| isize::try_from(rounded).is_ok());
    rounded.ok_or(PoolError::PoolTooLarge { len })
}

/// Returns how many smallest blocks a block of `order` is long.
fn units(order: u32) -> usize {
    1_usize.checked_shl(order).unwrap_or(0)
}

fn bit(order: u32) -> u64 {
    1_u64.checked_shl(order).unwrap_or(0)
}
