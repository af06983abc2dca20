//! The pool of a segment, as the memory of a region.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use alloc::sync::Arc;

use super::file::Held;
use super::mapping::Mapping;
use crate::plane::Memory;

/// The pool of a segment that this plane made. Dropping it takes the segment's file away.
#[derive(Debug)]
pub(super) struct SegmentMemory {
    mapping: Arc<Mapping>,
    /// The file, for its drop.
    _held: Held,
}

impl SegmentMemory {
    /// `mapping` is of the file that is held, which nobody else in this process knows.
    pub(super) const fn new(mapping: Arc<Mapping>, held: Held) -> Self {
        Self {
            mapping,
            _held: held,
        }
    }
}

// SAFETY: the three rules of `Memory`.
// 1. The mapping is owned, and neither it nor its layout ever changes.
// 2. The pool's bytes are part of the map, which is one mapping of at most `isize::MAX` bytes,
//    readable and writable, for as long as `mapping` lives: the invariant of `Layout`. Their
//    memory was taken when the file was made, so that no access to them fails, as long as nobody
//    cuts the file; bytes of any value are values.
// 3. In this process `Mapping` gives nobody the pool's bytes: it writes to them by
//    `copy_to_pool` alone, and the plane calls that for windows that it has entered, between
//    `open` and a `close` of `OwnWindows` that says `true`. Other processes reach the file if
//    they are of the same user, whom the module's docs say to be trusted; those that
//    keep to the protocol enter windows in the same way.
unsafe impl Memory for SegmentMemory {
    fn as_ptr(&self) -> NonNull<u8> {
        self.mapping.pool()
    }

    fn len(&self) -> usize {
        self.mapping.layout().pool_len()
    }

    fn address(&self) -> u64 {
        self.mapping.layout().base()
    }
}
