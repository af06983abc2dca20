//! Why a pool gave no slot.

use core::fmt;

/// Why a pool could not be made, gave no block, or did not take one back.
///
/// Nothing has changed then, except for the count of failures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PoolError {
    /// The smallest block is not a power of two.
    BadMinBlock {
        /// The length of the smallest block in bytes.
        min_block: usize,
    },
    /// No free block is large enough; a smaller one may be there, and some may be freed.
    Full {
        /// The length in bytes of the block that is needed.
        needed: usize,
        /// The length in bytes of the largest free block; 0 if there is none.
        largest: usize,
    },
    /// No allocated block starts at this offset: it is free already, inside another
    /// block, or outside the pool.
    NotAllocated {
        /// The offset in bytes from the start of the pool.
        offset: usize,
    },
    /// There is no memory for the list of blocks.
    OutOfMemory,
    /// A pool of this length is more than the address space holds.
    PoolTooLarge {
        /// The length of the pool in bytes, as it was asked for.
        len: usize,
    },
    /// More bytes than the whole pool has.
    TooLarge {
        /// The bytes asked for.
        needed: usize,
        /// The length of the pool in bytes.
        pool: usize,
    },
    /// A block of no bytes was asked for.
    ZeroLength,
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BadMinBlock { min_block } => {
                write!(f, "smallest block of {min_block} bytes is no power of two")
            }
            Self::Full { needed, largest } => {
                write!(
                    f,
                    "pool is full: {needed} bytes needed, {largest} free in one block"
                )
            }
            Self::NotAllocated { offset } => write!(f, "no block is allocated at offset {offset}"),
            Self::OutOfMemory => f.write_str("no memory for the list of blocks"),
            Self::PoolTooLarge { len } => {
                write!(
                    f,
                    "pool of {len} bytes, rounded up, is more than {}",
                    isize::MAX
                )
            }
            Self::TooLarge { needed, pool } => {
                write!(f, "block of {needed} bytes out of a pool of {pool}")
            }
            Self::ZeroLength => f.write_str("block of no bytes"),
        }
    }
}

impl core::error::Error for PoolError {}
