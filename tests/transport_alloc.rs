//! Receiving and sending allocate nothing once warm.

#![cfg(feature = "std")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tensorwire::transport::{Frames, RecvFrames, SendFrames, loopback};

struct Counting;

thread_local! {
    // Per thread: the test harness allocates on its own threads meanwhile.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
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

fn allocations<R>(f: impl FnOnce() -> R) -> (usize, R) {
    let before = ALLOCATIONS.get();
    let result = f();
    (ALLOCATIONS.get() - before, result)
}

/// Sends and receives until warm, then counts.
fn assert_none_once_warm<S: SendFrames, R: RecvFrames>(tx: &mut S, rx: &mut R, name: &str) {
    let tensor = vec![7_u8; 50_000];
    let frames: [&[u8]; 4] = [b"metadata", b"", &tensor[..33], &tensor];
    let mut message = R::Message::default();
    for round in 0..20 {
        let (sending, sent) = allocations(|| tx.send(&frames));
        sent.unwrap();
        let (receiving, received) = allocations(|| rx.recv_into(&mut message));
        received.unwrap();
        assert_eq!(message.frames().len(), 4);
        let (trying, _) = allocations(|| rx.try_recv_into(&mut message).is_err());
        if round > 4 {
            assert_eq!(
                (sending, receiving, trying),
                (0, 0, 0),
                "{name}, round {round}"
            );
        }
    }
}

#[test]
fn loopback_allocates_nothing_once_warm() {
    let (mut tx, mut rx) = loopback::pair();
    assert_none_once_warm(&mut tx, &mut rx, "loopback");
    let (mut tx, mut rx) = loopback::Options::default().shift(1).pair();
    assert_none_once_warm(&mut tx, &mut rx, "loopback, shifted");
}

#[cfg(feature = "zmq")]
#[test]
fn zmq_allocates_nothing_of_ours_once_warm() {
    use tensorwire::transport::zmq::Context;

    for endpoint in ["inproc://alloc", "tcp://127.0.0.1:*"] {
        let context = Context::new();
        let mut pull = context.pull().bind(endpoint).unwrap();
        let mut push = context.push().connect(pull.endpoint()).unwrap();
        assert_none_once_warm(&mut push, &mut pull, endpoint);
    }
}

#[test]
fn the_counter_counts() {
    let (count, _keep) = allocations(|| Box::new(1));
    assert_eq!(count, 1);
}
