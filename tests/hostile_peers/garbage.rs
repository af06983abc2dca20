//! What no peer of ours would say.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use tensorwire::transport::{Caps, Frames, Observed, RecvFrames, SendFrames};

use crate::raw::Raw;
use crate::{Backend, PATIENCE, Served, assert_bounded, over_each_endpoint, resident};

over_each_endpoint! {
    garbage_disturbs_nobody
    ten_thousand_connections_disturb_nobody
}

/// Greetings of other protocols, and none.
const SAID: &[(&str, &[u8])] = &[
    ("nothing", b""),
    ("http", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("nng's pair0", b"\0SP\0\0\x10\0\0"),
    ("nng's push0", b"\0SP\0\0\x50\0\0"),
    ("zmtp 1", b"\x01\0"),
    ("zmtp 2", b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x08"),
    ("zmtp 3, cut", b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NUL"),
    ("zmtp 3, plain", b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0PLAIN"),
    ("tls", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"),
    ("ssh", b"SSH-2.0-OpenSSH_9.2p1\r\n"),
    ("redis", b"*1\r\n$4\r\nPING\r\n"),
    ("one byte", b"\xff"),
];

/// Bytes by the kilobyte, from a seed.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn garbage_disturbs_nobody<B: Backend>(endpoint: &str) {
    let caps = Caps::new().with_frame_bytes(1 << 20);
    let mut served = Served::<B>::new(endpoint, caps);
    let before = resident();
    let mut said: Vec<(String, Vec<u8>)> = Vec::new();
    for &(name, bytes) in SAID {
        said.push((name.into(), bytes.into()));
        let cut = &bytes[..bytes.len() / 2];
        said.push((format!("{name}, half"), cut.into()));
    }
    for seed in 0..20 {
        said.push((format!("noise {seed}"), noise(seed, 10_000)));
        let mut late = B::GREETING.to_vec();
        late.extend(noise(seed, 2000));
        said.push((format!("noise {seed} after the greeting"), late));
    }
    said.push(("noise of zeros".into(), vec![0; 100_000]));
    said.push(("noise of ones".into(), vec![0xff; 100_000]));
    // None of them hangs up by itself, while the good peer is served.
    let mut held = Vec::new();
    for (name, bytes) in &said {
        let mut stream = Raw::connect(&served.endpoint);
        // The other side may hang up at any byte.
        let _ = stream.write_all(bytes);
        served.exchange(5);
        stream.set_patience(Duration::from_millis(2));
        let _ = stream.read(&mut [0; 512]);
        served.exchange(5);
        held.push(stream);
        let heard = served.strangers;
        assert!(heard == 0 || name.starts_with("noise"), "{name} was heard");
    }
    drop(held);
    served.exchange(20);
    println!("{} messages made of noise", served.strangers);
    // For each connection a batch to read into, and the session around it.
    assert_bounded(before, 8 << 20, "strangers");
}

/// How many connect in all: those over tcp use up ports for a minute each.
fn connections(endpoint: &str) -> usize {
    if cfg!(debug_assertions) && endpoint.starts_with("tcp") {
        2500
    } else {
        10_000
    }
}

/// How many descriptors this process has open, or 0 where the system does not tell.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn ten_thousand_connections_disturb_nobody<B: Backend>(endpoint: &str) {
    let mut served = Served::<B>::new(endpoint, Caps::new());
    let few = descriptors() + 5;
    let mut before = 0;
    let mut made = 0;
    while made < connections(endpoint) {
        let mut held: Vec<_> = (0..B::AT_ONCE)
            .map(|_| Raw::connect(&served.endpoint))
            .collect();
        for (index, stream) in held.iter_mut().enumerate() {
            let (_, said) = SAID[index % SAID.len()];
            let _ = stream.write_all(said);
        }
        made += held.len();
        served.exchange(3);
        held.iter_mut().for_each(B::before_the_end);
        drop(held);
        served.exchange(3);
        if before == 0 {
            // The first of them have made it as large as it will be.
            before = resident();
        }
    }
    // All of them are let go.
    let start = Instant::now();
    while descriptors() > few && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(descriptors() <= few, "{} descriptors", descriptors());
    if B::COUNTS_STRANGERS {
        let counted = || served.rx.counters();
        // The good peer is one more.
        let expected = made as u64 + 1;
        while counted().disconnects + 1 < expected && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(
            (counted().connects, counted().disconnects),
            (expected, expected - 1)
        );
    }
    // And who comes now is welcome.
    let mut late = B::connect(&served.endpoint);
    late.send(&[b"late"]).unwrap();
    let message = served.rx.recv().unwrap();
    assert_eq!(message.frame(0), Some(&b"late"[..]));
    drop(message);
    served.exchange(20);
    assert_eq!(served.strangers, 0);
    assert_bounded(before, 16 << 20, "connections");
}
