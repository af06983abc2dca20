//! Peers that send too much.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::{Cap, Caps, Observed, RecvFrames, SendFrames, TransportError};

use crate::raw::Raw;
use crate::{Backend, PATIENCE, Served, assert_bounded, over_each_endpoint, resident};

over_each_endpoint! {
    a_frame_over_the_cap_is_refused_and_the_next_good_message_arrives
    a_million_empty_frames_are_refused_and_the_next_good_message_arrives
    frames_announced_and_never_sent_cost_nothing
}

fn a_frame_over_the_cap_is_refused_and_the_next_good_message_arrives<B: Backend>(endpoint: &str) {
    let caps = Caps::new().with_frame_bytes(1 << 20);
    let mut served = Served::<B>::new(endpoint, caps);
    let before = resident();
    let large = vec![1; (1 << 20) + 1];
    for _ in 0..5 {
        let mut bad = B::connect(&served.endpoint);
        // It may be lost there or refused here, but neither torn nor delivered.
        let _ = bad.send(&[b"head", &large, b"tail"]);
        served.exchange(10);
    }
    let all = if B::TELLS_OF_LARGE_FRAMES { 5 } else { 0 };
    let start = Instant::now();
    while served.refused < all && start.elapsed() < PATIENCE {
        served.exchange(1);
    }
    assert_eq!(served.refused, all);
    drop(large);
    assert_bounded(before, 16 << 20, "frames over the cap");
}

fn a_million_empty_frames_are_refused_and_the_next_good_message_arrives<B: Backend>(
    endpoint: &str,
) {
    let mut served = Served::<B>::new(endpoint, Caps::new());
    let before = resident();
    for round in 1..=2 {
        let endpoint = served.endpoint.clone();
        let bad = thread::spawn(move || {
            let mut bad = B::connect(&endpoint);
            bad.send(&vec![&[][..]; 1_000_000]).unwrap();
        });
        let error = served.rx.recv().map(drop).unwrap_err();
        let refused = error.refused().unwrap();
        assert_eq!((refused.cap(), refused.limit()), (Cap::Frames, 4097));
        assert_eq!(refused.actual(), 1_000_000);
        bad.join().unwrap();
        assert_eq!(served.rx.counters().refused_frames, round);
        served.exchange(10);
    }
    // A handle of 64 bytes for each frame at both ends, of which the system may not
    // get all back at once: but not once for each round.
    assert_bounded(before, 160 << 20, "a million empty frames, twice");
}

/// (how much is announced, whether that is too much)
const ANNOUNCED: &[(&str, u64, bool)] = &[
    ("1 GiB", 1 << 30, false),
    ("2 GiB", 1 << 31, true),
    ("4 GiB", 1 << 32, true),
    ("2^63", 1 << 63, true),
    ("2^64 - 1", u64::MAX, true),
];

fn frames_announced_and_never_sent_cost_nothing<B: Backend>(endpoint: &str) {
    let caps = Caps::new().with_message_bytes(1 << 30);
    let mut served = Served::<B>::new(endpoint, caps);
    let before = resident();
    let mut announced = Vec::new();
    for &(name, len, too_much) in ANNOUNCED {
        announced.push((name, B::announce(&served.endpoint, len), too_much));
    }
    for &(name, start) in B::ANNOUNCED {
        announced.push((name, start.to_vec(), true));
    }
    for (name, start, too_much) in &announced {
        let mut stream = Raw::connect(&served.endpoint);
        B::shake_hands(&mut stream);
        stream.write_all(start).unwrap();
        let _ = stream.write_all(&[0; 1000]);
        served.exchange(10);
        // They hang up, or wait for the rest while others are served.
        let patience = if *too_much { 10_000 } else { 20 };
        stream.set_patience(Duration::from_millis(patience));
        let end = stream.read(&mut [0; 16]);
        let reset = |error: &std::io::Error| error.kind() != std::io::ErrorKind::WouldBlock;
        let hung_up = end.as_ref().map_or_else(reset, |&read| read == 0);
        assert_eq!(hung_up, *too_much, "{name}: {end:?}");
    }
    served.exchange(10);
    assert_bounded(before, 4 << 20, "announced frames");
}
