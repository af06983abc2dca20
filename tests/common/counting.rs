//! An allocator that counts, for tests that name it by its path.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

/// Of all threads: for a test that has the process to itself.
static ALL_CALLS: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    // Per thread: the test harness allocates on its own threads meanwhile.
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has no cell any more, and nothing to count.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
    ALL_CALLS.fetch_add(1, Ordering::Relaxed);
}

// SAFETY: forwards to `System` unchanged; the count is kept without allocating,
// as the cell is const-initialized and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get().saturating_add(layout.size())));
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
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

/// How many bytes `f` asks for in all, freed again or not, and what it gives.
pub(crate) fn allocated_bytes<R>(f: impl FnOnce() -> R) -> (usize, R) {
    let before = BYTES.get();
    let result = f();
    (BYTES.get() - before, result)
}

/// How often all threads together have allocated and freed so far.
pub(crate) fn all_calls() -> usize {
    ALL_CALLS.load(Ordering::SeqCst)
}

/// How many bytes any thread asked for at most, at once, while `f` ran.
pub(crate) fn largest<R>(f: impl FnOnce() -> R) -> (usize, R) {
    LARGEST.store(0, Ordering::SeqCst);
    let result = f();
    (LARGEST.load(Ordering::SeqCst), result)
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
    assert_eq!(allocated_bytes(|| vec![0_u8; 1000]).0, 1000);
    let before = all_calls();
    let (size, _) = largest(|| std::thread::spawn(|| vec![1_u8; 1 << 20]).join().unwrap());
    assert!(size >= 1 << 20);
    assert!(all_calls() > before);
}
