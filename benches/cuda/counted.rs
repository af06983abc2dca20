//! An allocator that counts, for this thread, and costs next to nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: forwards to `System` unchanged; the count is kept without allocating,
// as the cell is const-initialized and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// How often `f` allocates.
pub(crate) fn allocations<R>(f: impl FnOnce() -> R) -> u64 {
    let before = ALLOCATIONS.get();
    let result = f();
    let count = ALLOCATIONS.get() - before;
    drop(result);
    count
}
