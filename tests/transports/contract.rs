//! The first few promises, for builds without the conformance suite, which has these
//! and all others.

use std::thread;

use tensorwire::transport::{Caps, ErrorKind, Frames, RecvFrames, SendFrames, TransportError};

use crate::{Link, Setup, copied, over_each_link, pattern};

over_each_link! {
    messages_arrive_in_order_and_whole
    too_large_messages_are_drained_to_the_boundary
    closing_loses_nothing_sent
}

/// Lengths about the limits where libzmq changes how it keeps a frame.
const LENGTHS: &[usize] = &[
    0, 1, 12, 29, 30, 32, 33, 34, 64, 255, 256, 4095, 8192, 8193, 20_001,
];

fn message(number: usize) -> Vec<Vec<u8>> {
    let count = number % 64 + 1;
    (0..count)
        .map(|frame| pattern(number, frame, LENGTHS[(number + frame) % LENGTHS.len()]))
        .collect()
}

fn messages_arrive_in_order_and_whole<L: Link>() {
    let (mut tx, mut rx) = L::open(Setup::default());
    let sender = thread::spawn(move || {
        for number in 0..66 {
            let frames = message(number);
            let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            tx.send(&frames).unwrap();
        }
        tx
    });
    let mut received = <L::Rx as RecvFrames>::Message::default();
    for number in 0..66 {
        rx.recv_into(&mut received).unwrap();
        let expected = message(number);
        assert!(
            copied(&received) == expected,
            "{}: message {number}",
            L::NAME
        );
        let sum: usize = expected.iter().map(Vec::len).sum();
        assert_eq!(received.byte_count(), sum);
        assert_eq!(received.frame(expected.len()), None);
    }
    sender.join().unwrap();
}

fn too_large_messages_are_drained_to_the_boundary<L: Link>() {
    let caps = Caps::new().with_frames(4).with_message_bytes(1000);
    let (mut tx, mut rx) = L::open(Setup {
        caps,
        ..Setup::default()
    });
    let refused: &[(&[usize], usize, usize)] = &[
        (&[1, 1, 1, 1, 1], 4, 5),
        (&[0; 60], 4, 60),
        (&[500, 400, 101], 1000, 1001),
        (&[1001], 1000, 1001),
        (&[999, 2, 300, 0], 1000, 1301),
    ];
    let mut received = <L::Rx as RecvFrames>::Message::default();
    for &(lengths, _, _) in refused {
        let frames: Vec<&[u8]> = lengths.iter().map(|&len| &[7; 2000][..len]).collect();
        tx.send(&frames).unwrap();
        tx.send(&[b"good", b"", &[1; 996]]).unwrap();
    }
    for &(lengths, limit, actual) in refused {
        let error = rx.recv_into(&mut received).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CapExceeded, "{lengths:?}");
        let text = error.to_string();
        assert!(text.contains(&actual.to_string()), "{text}");
        assert!(text.contains(&limit.to_string()), "{text}");
        assert!(received.frames().is_empty());
        rx.recv_into(&mut received).unwrap();
        assert_eq!(received.frames().len(), 3);
        assert_eq!(received.frame(0), Some(&b"good"[..]));
    }
}

fn closing_loses_nothing_sent<L: Link>() {
    let (mut tx, mut rx) = L::open(Setup::default());
    let tensor = vec![9_u8; 100_000];
    for number in 0..50_u32 {
        tx.send(&[&number.to_le_bytes(), &tensor]).unwrap();
    }
    // Dropping returns at once: the receiver has not started yet.
    drop(tx);
    let mut received = <L::Rx as RecvFrames>::Message::default();
    for number in 0..50_u32 {
        rx.recv_into(&mut received).unwrap();
        assert_eq!(received.frame(0), Some(&number.to_le_bytes()[..]));
        assert_eq!(received.frame(1).map(<[u8]>::len), Some(tensor.len()));
    }
}
