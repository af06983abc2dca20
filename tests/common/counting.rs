//! An allocator that counts, for tests that name it by its path.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    // Per thread: the test harness allocates on its own threads meanwhile.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has no cell any more, and nothing to count.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: forwards to `System` unchanged; the count is kept without allocating,
// as the cell is const-initialized and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count();
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// How often `f` allocates and frees, and what it gives.
pub(crate) fn calls<R>(f: impl FnOnce() -> R) -> (usize, R) {
    let before = CALLS.get();
    let result = f();
    (CALLS.get() - before, result)
}

/// Checks that `f` neither allocates nor frees.
#[track_caller]
pub(crate) fn none<R>(f: impl FnOnce() -> R) -> R {
    let (count, result) = calls(f);
    assert_eq!(count, 0, "calls of the allocator");
    result
}

#[test]
fn the_counter_counts() {
    let (count, kept) = calls(|| Box::new(1));
    assert_eq!(count, 1);
    assert_eq!(calls(|| drop(kept)).0, 1);
    let mut grown = Vec::with_capacity(1);
    grown.push(0_u8);
    assert!(calls(|| grown.extend([1; 100])).0 >= 1);
}
