//! How full a pool is.

use super::buddy::ORDERS;

/// How full a pool is, at one moment.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::pool::BuddyAllocator;
///
/// let mut allocator = BuddyAllocator::with_min_block(4096, 512)?;
/// allocator.allocate(700)?;
/// let stats = allocator.stats();
/// assert_eq!((stats.allocated_bytes(), stats.free_bytes()), (1024, 3072));
/// assert!(stats.free_blocks_by_size().eq([(1024, 1), (2048, 1)]));
/// # Ok::<(), tensorwire::transfer::pool::PoolError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stats {
    pub(super) pool_bytes: usize,
    pub(super) min_block: usize,
    pub(super) allocated_bytes: usize,
    pub(super) allocations: usize,
    pub(super) blocks: usize,
    pub(super) free_blocks: [usize; ORDERS],
    pub(super) high_water: usize,
    pub(super) failures: u64,
    pub(super) quarantined_blocks: usize,
    pub(super) quarantined_bytes: usize,
}

impl Stats {
    pub(super) const fn new(pool_bytes: usize, min_block: usize) -> Self {
        Self {
            pool_bytes,
            min_block,
            allocated_bytes: 0,
            allocations: 0,
            blocks: 0,
            free_blocks: [0; ORDERS],
            high_water: 0,
            failures: 0,
            quarantined_blocks: 0,
            quarantined_bytes: 0,
        }
    }

    /// Returns the length of the pool in bytes.
    #[must_use]
    pub const fn pool_bytes(&self) -> usize {
        self.pool_bytes
    }

    /// Returns the length of the smallest block in bytes.
    #[must_use]
    pub const fn min_block(&self) -> usize {
        self.min_block
    }

    /// Returns how many bytes are not free: those of whole blocks, also of those in quarantine.
    #[must_use]
    pub const fn allocated_bytes(&self) -> usize {
        self.allocated_bytes
    }

    /// Returns how many bytes are free, in blocks of any length.
    #[must_use]
    pub const fn free_bytes(&self) -> usize {
        self.pool_bytes.saturating_sub(self.allocated_bytes)
    }

    /// Returns how many blocks are not free, those in quarantine too.
    #[must_use]
    pub const fn allocations(&self) -> usize {
        self.allocations
    }

    /// Returns into how many blocks the pool is split now, free or not.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns (length in bytes, how many) of the free blocks, shortest first.
    pub fn free_blocks_by_size(&self) -> impl Iterator<Item = (usize, usize)> {
        let lens = (0_u32..).map_while(move |order| self.min_block.checked_shl(order));
        let blocks = lens.zip(self.free_blocks);
        blocks.filter(|&(_, count)| count > 0)
    }

    /// Returns the length in bytes of the largest free block, or 0: what
    /// the next allocation can ask for at most.
    #[must_use]
    pub fn largest_free(&self) -> usize {
        self.free_blocks_by_size().last().map_or(0, |(len, _)| len)
    }

    /// Returns how many bytes were allocated at once, at most, since the pool was made.
    #[must_use]
    pub const fn high_water(&self) -> usize {
        self.high_water
    }

    /// Returns how many allocations failed for want of room, since the pool was made.
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns how many blocks nobody holds any more that a peer still writes to.
    #[must_use]
    pub const fn quarantined_blocks(&self) -> usize {
        self.quarantined_blocks
    }

    /// Returns how many bytes the blocks in quarantine have.
    #[must_use]
    pub const fn quarantined_bytes(&self) -> usize {
        self.quarantined_bytes
    }

    pub(super) fn took(&mut self, len: usize) {
        self.allocated_bytes = self.allocated_bytes.saturating_add(len);
        self.allocations = self.allocations.saturating_add(1);
        self.high_water = self.high_water.max(self.allocated_bytes);
    }

    pub(super) const fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    pub(super) const fn gave_back(&mut self, len: usize) {
        self.allocated_bytes = self.allocated_bytes.saturating_sub(len);
        self.allocations = self.allocations.saturating_sub(1);
    }

    pub(super) const fn quarantined(&mut self, len: usize) {
        self.quarantined_bytes = self.quarantined_bytes.saturating_add(len);
    }

    pub(super) const fn swept(&mut self, len: usize) {
        self.quarantined_bytes = self.quarantined_bytes.saturating_sub(len);
        self.gave_back(len);
    }
}
