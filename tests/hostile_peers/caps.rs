//! Peers that send too much.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use tensorwire::transport::{Cap, Caps, Observed, RecvFrames, SendFrames, TransportError};

use crate::raw::Raw;
use crate::{Backend, Served, assert_bounded, over_each_endpoint, resident};

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

/// (what is announced, as a peer of ZeroMQ writes it)
const ANNOUNCED: &[(&str, &[u8])] = &[
    ("2 GiB", b"\x02\0\0\0\0\x80\0\0\0"),
    ("2 GiB, with more to come", b"\x03\0\0\0\0\x80\0\0\0"),
    ("one over the cap", b"\x02\0\0\0\0\x40\0\0\x01"),
    ("2^63", b"\x02\x80\0\0\0\0\0\0\0"),
    ("2^64 - 1", b"\x02\xff\xff\xff\xff\xff\xff\xff\xff"),
    (
        "2 GiB, behind a whole frame",
        b"\x01\x04head\x02\0\0\0\0\x80\0\0\0",
    ),
];

fn frames_announced_and_never_sent_cost_nothing<B: Backend>(endpoint: &str) {
    let mut served = Served::<B>::new(endpoint, Caps::new());
    let before = resident();
    for (name, announced) in ANNOUNCED {
        let mut stream = Raw::connect(&served.endpoint);
        stream.shake_hands_as_push();
        stream.write_all(announced).unwrap();
        let _ = stream.write_all(&[0; 1000]);
        served.exchange(10);
        // They hang up.
        stream.set_patience(Duration::from_secs(10));
        let end = stream.read(&mut [0; 16]);
        let reset = |error: &std::io::Error| error.kind() != std::io::ErrorKind::WouldBlock;
        assert!(
            end.as_ref().map_or_else(reset, |&read| read == 0),
            "{name}: {end:?}"
        );
    }
    assert_bounded(before, 4 << 20, "announced frames");
}
