//! ZeroMQ: what is asked for by us, and what its messages keep in memory.

use std::thread;
use std::time::Duration;

use tensorwire::Decoder;
use tensorwire::message::{NO_SCALARS, encode_to_vec, frames};
use tensorwire::tensor::TensorView;
use tensorwire::transport::zmq::{Context, Message, Pull, Push, Socket};
use tensorwire::transport::{BufferPool, Frames, Part, Receipt, RecvFrames, SendFrames, Wait};

use crate::alone::{self, SocketFile};
use crate::assert_none_once_warm;
use crate::counting::{all_calls, calls};

fn push_pull(endpoint: &str) -> (Socket<Push>, Socket<Pull>) {
    let context = Context::new();
    let pull = context.pull().bind(endpoint).unwrap();
    let push = context.push().connect(pull.endpoint()).unwrap();
    (push, pull)
}

#[test]
fn zmq_allocates_nothing_of_ours_once_warm() {
    let file = SocketFile::new();
    for endpoint in ["inproc://alloc", "tcp://127.0.0.1:*", &file.endpoint()] {
        let (mut push, mut pull) = push_pull(endpoint);
        assert_none_once_warm(&mut push, &mut pull, endpoint);
    }
    let context = Context::new();
    let mut router = context.router().bind("inproc://routed").unwrap();
    let mut dealer = context.dealer().connect("inproc://routed").unwrap();
    assert_none_once_warm(&mut dealer, &mut router, "router");
}

#[test]
fn detaching_allocates_nothing_once_warm() {
    let (mut push, mut pull) = push_pull("tcp://127.0.0.1:*");
    let mut message = Message::default();
    for round in 0..20 {
        push.send(&[&[1; 64], &[2; 20], &[3; 3000], &[4; 5000]])
            .unwrap();
        let (count, ()) = calls(|| {
            pull.recv_into(&mut message).unwrap();
            message.detach(4096);
        });
        let receipt = message.receipt().unwrap();
        assert_eq!(receipt.copied_bytes(), 3064);
        if round > 4 {
            assert_eq!((count, receipt.allocations()), (0, 0), "round {round}");
        }
        for (index, len) in [64, 20, 3000, 5000].into_iter().enumerate() {
            let frame = message.frame(index).unwrap();
            assert_eq!(frame.len(), len);
            assert!(frame.iter().all(|&byte| usize::from(byte) == index + 1));
        }
    }
}

/// How many messages each endpoint is to carry.
const MESSAGES: u64 = if cfg!(debug_assertions) {
    100_000
} else {
    1_000_000
};

#[test]
fn messages_out_of_a_pool_allocate_nothing_in_the_whole_process_once_warm() {
    let file = SocketFile::new();
    for endpoint in ["inproc://pool", "tcp://127.0.0.1:*", &file.endpoint()] {
        let [calls, sent, slots] = alone::run("zmq::pooled", &[endpoint]).try_into().unwrap();
        assert_eq!((calls, sent, slots), (0, MESSAGES, 8), "{endpoint}");
    }
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn pooled() {
    let arguments = alone::arguments();
    let [endpoint] = arguments.as_slice() else {
        return;
    };
    let (mut push, mut pull) = push_pull(endpoint);
    let pool = BufferPool::new(8, 4096);
    let mut message = Message::default();
    let mut list = Vec::new();
    let mut exchange = |number: u64| {
        // Eight are under way.
        let mut buffer = pool.take(4096, Wait::Configured).unwrap();
        let bytes = buffer.as_mut();
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes[4088..].copy_from_slice(&number.to_le_bytes());
        let mut parts = Part::recycle(std::mem::take(&mut list));
        parts.push(Part::from(&b"metadata"[..]));
        parts.push(Part::from(buffer));
        push.send_parts(&mut parts, Wait::Configured).unwrap();
        list = Part::recycle(parts);
        if number < 7 {
            return;
        }
        pull.recv_into(&mut message).unwrap();
        let came = (number - 7).to_le_bytes();
        let frame = message.frame(1).unwrap();
        assert_eq!((&frame[..8], &frame[4088..]), (&came[..], &came[..]));
        message.clear();
    };
    const WARM_UP: u64 = 100;
    (0..WARM_UP).for_each(&mut exchange);
    // The harness too: its thread has things to do when a test starts.
    thread::sleep(Duration::from_millis(200));
    let before = all_calls();
    (WARM_UP..WARM_UP + MESSAGES).for_each(&mut exchange);
    let counted = all_calls() - before;
    let stats = pool.stats();
    alone::tell(&[counted as u64, stats.taken - WARM_UP, stats.made as u64]);
}

/// (frame lengths, what they keep over inproc, what they keep at most over tcp)
///
/// A batch of libzmq 4.3.4 is 8 + 8192 + 249 * 40 bytes; a frame of its own has 40 more
/// than its length; up to 32 bytes keep nothing.
const KEPT: &[(&[usize], usize, usize)] = &[
    (&[0, 32], 0, 0),
    (&[33], 73, 18_160),
    (&[64], 104, 18_160),
    (&[64, 64, 0, 20, 300], 548, 18_160),
    (&[300, 64, 256], 740, 18_160),
    (&[9000], 9040, 9040),
    (&[64, 9000, 64], 9248, 45_360),
];

#[test]
fn a_receipt_says_what_a_message_keeps_in_memory() {
    for (endpoint, tcp) in [("inproc://kept", false), ("tcp://127.0.0.1:*", true)] {
        let (mut push, mut pull) = push_pull(endpoint);
        for &(lengths, inproc, batched) in KEPT {
            let frames: Vec<_> = lengths.iter().map(|&len| vec![1; len]).collect();
            let frames: Vec<_> = frames.iter().map(Vec::as_slice).collect();
            push.send(&frames).unwrap();
            let message = pull.recv().unwrap();
            let receipt = message.receipt().unwrap();
            let expected = if tcp { batched } else { inproc };
            assert_eq!(receipt.retained_bytes(), expected, "{endpoint} {lengths:?}");
            assert_eq!(receipt.copied_bytes(), 0);
        }
    }
}

/// Messages of one frame of 64 bytes, each read apart, that are kept.
const KEPT_MESSAGES: usize = 1000;

/// glibc's account of what is allocated, in all arenas.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn in_use() -> u64 {
    #[repr(C)]
    struct Account([i32; 10]);
    unsafe extern "C" {
        safe fn mallinfo() -> Account;
    }
    // `uordblks`, which wraps at 4 GiB.
    mallinfo().0[7] as u32 as u64
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn small_frames_keep_their_batches_unless_they_are_detached() {
    for (detach, expected) in [("0", 18_160), ("4096", 64)] {
        let kept = alone::run("zmq::keeper", &[detach]);
        let [grown, told]: [u64; 2] = kept.try_into().unwrap();
        let each = |bytes: u64| bytes / KEPT_MESSAGES as u64;
        println!(
            "detached below {detach}: {} bytes each, {} told",
            each(grown),
            each(told)
        );
        assert_eq!(each(told), expected);
        // The allocator's own, and the message's list of frames.
        let most = each(told) + 700;
        assert!(each(grown) <= most, "{} of {most}", each(grown));
        assert!(
            each(grown) >= expected * 9 / 10,
            "{} of {expected}",
            each(grown)
        );
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
#[ignore = "run by the test above, in a process of its own"]
fn keeper() {
    let arguments = alone::arguments();
    let [detach] = arguments.as_slice() else {
        return;
    };
    let detach = detach.parse().unwrap();
    let (mut push, mut pull) = push_pull("tcp://127.0.0.1:*");
    let mut one = || -> Message {
        push.send(&[&[7; 64]]).unwrap();
        let mut message = pull.recv().unwrap();
        message.detach(detach);
        message
    };
    drop(one());
    let mut kept = Vec::with_capacity(KEPT_MESSAGES);
    let before = in_use();
    kept.extend((0..KEPT_MESSAGES).map(|_| one()));
    let after = in_use();
    let told = kept
        .iter()
        .map(|message| message.receipt().unwrap().retained_bytes());
    alone::tell(&[after.saturating_sub(before), told.sum::<usize>() as u64]);
}

/// What a user's own test asserts who wants no copies.
#[test]
fn a_receipt_and_a_cost_show_that_nothing_was_copied() {
    let (mut push, mut pull) = push_pull("inproc://receipt");
    let tensors = [TensorView::from_slice("x", &[1000], &[1.0_f32; 1000]).unwrap()];
    let metadata = encode_to_vec(&tensors, &NO_SCALARS).unwrap();
    let (mut message, mut decoder) = (Message::default(), Decoder::new());
    for round in 0..10 {
        push.send(&frames(&metadata, &tensors)).unwrap();
        pull.recv_into(&mut message).unwrap();
        let decoded = decoder.decode(message.frames()).unwrap();
        let (receipt, cost) = (message.receipt().unwrap(), decoded.cost());
        assert_eq!(receipt.copied_bytes() + cost.misaligned_bytes(), 0);
        if round > 0 {
            assert_eq!(receipt.allocations() + cost.allocations(), 0);
        }
    }
    // Copies are seen, so that such a test can fail.
    message.detach(usize::MAX);
    let receipt: Receipt = message.receipt().unwrap();
    assert_eq!(receipt.copied_bytes(), metadata.len() + 4000);
}
