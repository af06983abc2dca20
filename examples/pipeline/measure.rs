//! Counting allocations and timing decodes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tensorwire::error::DecodeError;
use tensorwire::{Decoder, Message};

use crate::percentile::percentile;

/// How often a received message is decoded to be timed.
pub(crate) const REPEATS: usize = 200;

struct Counting;

thread_local! {
    // Per thread: others allocate meanwhile.
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

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// What decoding one message cost.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Timing {
    /// The decode that follows the receive, in nanoseconds.
    pub(crate) first_ns: u64,
    /// Allocations in that one.
    pub(crate) first_allocations: u64,
    /// The same message again, time after time.
    pub(crate) repeats_ns: Vec<u64>,
    /// Allocations in all of those.
    pub(crate) repeats_allocations: u64,
}

/// Decodes a message once, and then again and again, each time timed by itself.
pub(crate) fn decode<'frame, 'store, F: AsRef<[u8]>>(
    decoder: &'store mut Decoder,
    frames: &'frame [F],
) -> Result<(Message<'frame, 'store, F>, Timing), DecodeError> {
    let mut timing = Timing {
        repeats_ns: Vec::with_capacity(REPEATS),
        ..Timing::default()
    };
    (timing.first_ns, timing.first_allocations) = decode_once(decoder, frames)?;
    for _ in 0..REPEATS {
        let (ns, allocations) = decode_once(decoder, frames)?;
        timing.repeats_ns.push(ns);
        timing.repeats_allocations += allocations;
    }
    Ok((decoder.decode(frames)?, timing))
}

/// Nanoseconds and allocations.
fn decode_once<F: AsRef<[u8]>>(
    decoder: &mut Decoder,
    frames: &[F],
) -> Result<(u64, u64), DecodeError> {
    let allocations = ALLOCATIONS.get();
    let start = Instant::now();
    let decoded = black_box(decoder.decode(black_box(frames)));
    let ns = elapsed_ns(start);
    let allocations = ALLOCATIONS.get() - allocations;
    decoded.map(|_| (ns, allocations))
}

/// What the clock itself adds to each time.
pub(crate) fn clock_ns() -> u64 {
    let samples: Vec<u64> = (0..1000).map(|_| elapsed_ns(Instant::now())).collect();
    percentile(&samples, 50)
}

fn elapsed_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
