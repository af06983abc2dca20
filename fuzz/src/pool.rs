//! Blocks lie where the Python peers' allocator, written down as plainly as it goes, puts them.
//!
//! The input is a pool and operations on it:
//!
//! ```text
//! byte 0: the smallest block is 1 << (byte % 13)
//! bytes 1, 2: the length asked for, in half smallest blocks
//! then 3 bytes each: what, and a number n of 16 bits
//! ```

use std::collections::BTreeMap;

use tensorwire::transfer::pool::{BuddyAllocator, PoolError};

/// What is done to a pool.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Of so many bytes.
    Allocate(usize),
    /// The block of this number, modulo how many are held.
    FreeHeld(usize),
    /// Whatever is at this offset.
    FreeAt(usize),
    /// The block of this number, modulo how many are held.
    Quarantine(usize),
    /// Blocks in quarantine with an even index, or with an odd one.
    Sweep(usize),
}

pub fn run(data: &[u8]) {
    let [shift, low, high, rest @ ..] = data else {
        return;
    };
    let min_block = 1_usize << (shift % 13);
    let half_blocks = usize::from(u16::from_le_bytes([*low, *high]));
    let mut pair = Pair::new((half_blocks * min_block).div_ceil(2), min_block);
    for operation in rest.chunks_exact(3) {
        let number = usize::from(u16::from_le_bytes([operation[1], operation[2]]));
        pair.apply(match operation[0] % 10 {
            0..=2 => Operation::Allocate(number % 9 * min_block + number % 3),
            3 => Operation::Allocate(number * min_block / 2),
            4 | 5 => Operation::FreeHeld(number),
            6 => Operation::FreeAt(number * min_block / 2),
            7 => Operation::FreeAt(usize::MAX - number),
            8 => Operation::Quarantine(number),
            _ => Operation::Sweep(number),
        });
    }
    pair.empty();
}

/// An allocator, the model, and what both have given out.
pub struct Pair {
    allocator: BuddyAllocator,
    model: Model,
    held: Vec<usize>,
    high_water: usize,
    failures: u64,
}

impl Pair {
    pub fn new(len: usize, min_block: usize) -> Self {
        let allocator = BuddyAllocator::with_min_block(len, min_block).unwrap();
        let model = Model::new(len, min_block);
        assert_eq!(allocator.len(), model.len);
        let mut pair = Self {
            allocator,
            model,
            held: Vec::new(),
            high_water: 0,
            failures: 0,
        };
        pair.check();
        pair
    }

    /// Does the same to both, and asserts that they answer the same.
    pub fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Allocate(len) => self.allocate(len),
            Operation::FreeAt(offset) => self.free(offset),
            Operation::FreeHeld(number) => {
                if let Some(index) = number.checked_rem(self.held.len()) {
                    self.free(self.held[index]);
                }
            }
            Operation::Quarantine(number) => {
                if let Some(index) = number.checked_rem(self.held.len()) {
                    let offset = self.held.swap_remove(index);
                    let block = self.allocator.quarantine(offset).unwrap();
                    assert_eq!(block.len(), self.model.quarantine(offset));
                    assert!(self.allocator.quarantine(offset).is_err());
                }
            }
            Operation::Sweep(number) => self.sweep(|index| index % 2 == number % 2),
        }
        self.check();
    }

    /// Frees all that is held or in quarantine, and asserts that one free block is left.
    pub fn empty(&mut self) {
        self.sweep(|_| true);
        while let Some(&offset) = self.held.last() {
            self.free(offset);
        }
        self.check();
        let stats = self.allocator.stats();
        let whole = (self.allocator.len(), 1);
        assert!(stats.free_blocks_by_size().eq([whole]));
        assert_eq!((stats.allocated_bytes(), stats.blocks()), (0, 1));
    }

    fn allocate(&mut self, len: usize) {
        let found = self.allocator.allocate(len);
        let expected = self.model.allocate(len);
        let found = found.map(|block| (block.offset(), block.len()));
        assert_eq!(found, expected, "{len} bytes");
        match found {
            Ok((offset, block_len)) => {
                assert!(block_len >= len && offset % block_len == 0);
                self.held.push(offset);
            }
            Err(PoolError::ZeroLength) => {}
            Err(_) => self.failures += 1,
        }
    }

    fn free(&mut self, offset: usize) {
        let found = self.allocator.free(offset);
        let expected = self.model.free(offset);
        assert_eq!(found.map(|block| block.len()), expected, "at {offset}");
        let held = self.held.iter().position(|&held| held == offset);
        assert_eq!(held.is_some(), found.is_ok());
        if let Some(index) = held {
            self.held.swap_remove(index);
        }
    }

    fn sweep(&mut self, is_done: impl Fn(usize) -> bool) {
        let min_block = self.model.min_block;
        let mut asked = Vec::new();
        let freed = self.allocator.sweep(|offset| {
            asked.push(offset);
            is_done(offset / min_block)
        });
        assert_eq!(asked, self.model.quarantine);
        assert_eq!(freed, self.model.sweep(is_done));
    }

    fn check(&mut self) {
        let stats = self.allocator.stats();
        let blocks = &self.model.blocks;
        let allocated = || blocks.iter().filter(|(_, block)| block.allocated);
        let bytes: usize = allocated().map(|(_, block)| block.len).sum();
        self.high_water = self.high_water.max(bytes);
        assert_eq!(stats.allocated_bytes(), bytes);
        assert_eq!(stats.free_bytes(), self.model.len - bytes);
        assert_eq!(stats.allocations(), allocated().count());
        assert_eq!(stats.blocks(), blocks.len());
        let quarantine = &self.model.quarantine;
        let bytes: usize = quarantine.iter().map(|offset| blocks[offset].len).sum();
        assert_eq!(stats.quarantined_blocks(), quarantine.len());
        assert_eq!(stats.quarantined_bytes(), bytes);
        assert_eq!(stats.high_water(), self.high_water);
        assert_eq!(stats.failures(), self.failures);
        assert_eq!(stats.largest_free(), self.model.largest());
        let lists = self.model.free.iter().enumerate();
        let lists = lists.filter(|(_, list)| !list.is_empty());
        let sizes = lists.map(|(order, list)| (self.model.min_block << order, list.len()));
        assert!(stats.free_blocks_by_size().eq(sizes));
        let found = |offset: &usize| self.allocator.block_at(*offset).map(|block| block.len());
        for (offset, block) in blocks {
            let is_held = block.allocated && !quarantine.contains(offset);
            assert_eq!(found(offset), is_held.then_some(block.len));
        }
    }
}

/// The allocator of the Python peers: a list for each order, a dictionary of blocks.
struct Model {
    len: usize,
    min_block: usize,
    free: Vec<Vec<usize>>,
    blocks: BTreeMap<usize, Block>,
    /// Offsets, in the order in which they came.
    quarantine: Vec<usize>,
}

struct Block {
    len: usize,
    allocated: bool,
}

impl Model {
    fn new(len: usize, min_block: usize) -> Self {
        let len = len.max(min_block).next_power_of_two();
        let order = (len / min_block).ilog2() as usize;
        let mut free = vec![Vec::new(); order + 1];
        free[order].push(0);
        let allocated = false;
        let blocks = BTreeMap::from([(0, Block { len, allocated })]);
        Self {
            len,
            min_block,
            free,
            blocks,
            quarantine: Vec::new(),
        }
    }

    fn order(&self, len: usize) -> usize {
        (len / self.min_block).ilog2() as usize
    }

    fn largest(&self) -> usize {
        let order = self.free.iter().rposition(|list| !list.is_empty());
        order.map_or(0, |order| self.min_block << order)
    }

    fn allocate(&mut self, len: usize) -> Result<(usize, usize), PoolError> {
        if len == 0 {
            return Err(PoolError::ZeroLength);
        }
        if len > self.len {
            return Err(PoolError::TooLarge {
                needed: len,
                pool: self.len,
            });
        }
        let needed = len.next_power_of_two().max(self.min_block);
        let target = self.order(needed);
        let orders = target..self.free.len();
        let Some(mut order) = orders.into_iter().find(|&x| !self.free[x].is_empty()) else {
            return Err(PoolError::Full {
                needed,
                largest: self.largest(),
            });
        };
        let offset = self.free[order].remove(0);
        while order > target {
            order -= 1;
            let len = self.min_block << order;
            let buddy = Block {
                len,
                allocated: false,
            };
            self.blocks.insert(offset + len, buddy);
            self.free[order].push(offset + len);
        }
        let block = Block {
            len: needed,
            allocated: true,
        };
        self.blocks.insert(offset, block);
        Ok((offset, needed))
    }

    fn free(&mut self, offset: usize) -> Result<usize, PoolError> {
        let block = self.blocks.get(&offset).filter(|block| block.allocated);
        let block = block.filter(|_| !self.quarantine.contains(&offset));
        let freed = block.ok_or(PoolError::NotAllocated { offset })?.len;
        let (mut offset, mut len) = (offset, freed);
        loop {
            let buddy = offset ^ len;
            let is_free = |block: &&Block| !block.allocated && block.len == len;
            if self.blocks.get(&buddy).filter(is_free).is_none() {
                break;
            }
            let order = self.order(len);
            self.free[order].retain(|&free| free != buddy);
            self.blocks.remove(&offset.max(buddy));
            offset = offset.min(buddy);
            len *= 2;
        }
        let allocated = false;
        self.blocks.insert(offset, Block { len, allocated });
        let order = self.order(len);
        self.free[order].push(offset);
        Ok(freed)
    }

    fn quarantine(&mut self, offset: usize) -> usize {
        self.quarantine.push(offset);
        self.blocks[&offset].len
    }

    fn sweep(&mut self, is_done: impl Fn(usize) -> bool) -> usize {
        let before = std::mem::take(&mut self.quarantine);
        let is_done = |offset: &usize| is_done(offset / self.min_block);
        let (done, left): (Vec<_>, _) = before.into_iter().partition(is_done);
        self.quarantine = left;
        for &offset in &done {
            self.free(offset).unwrap();
        }
        done.len()
    }
}
