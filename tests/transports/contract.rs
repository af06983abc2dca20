//! Order, wholeness, waiting, caps, back-pressure, closing.

use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::{
    Caps, ErrorKind, Frames, RecvFrames, SendFrames, TransportError, Wait,
};

use crate::{Link, PATIENCE, Setup, copied, over_each_link, pattern};

over_each_link! {
    messages_arrive_in_order_and_whole
    a_message_without_frames_is_refused
    a_receive_that_waits_in_vain_loses_nothing
    too_large_messages_are_drained_to_the_boundary
    a_full_queue_pushes_back_and_loses_nothing
    closing_loses_nothing_sent
    a_receive_is_woken_by_a_later_send
    a_failed_receive_leaves_the_message_empty
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

fn a_message_without_frames_is_refused<L: Link>() {
    let (mut tx, mut rx) = L::open(Setup::default());
    assert_eq!(tx.send(&[]).unwrap_err().kind(), ErrorKind::InvalidInput);
    let error = tx.send_parts(&mut Vec::new(), Wait::Never).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    tx.send(&[b""]).unwrap();
    assert_eq!(copied(&rx.recv().unwrap()), [b""]);
}

fn a_receive_that_waits_in_vain_loses_nothing<L: Link>() {
    let short = Duration::from_millis(30);
    let (mut tx, mut rx) = L::open(Setup {
        timeout: short,
        ..Setup::default()
    });
    let mut received = <L::Rx as RecvFrames>::Message::default();

    let error = rx.try_recv_into(&mut received).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    for wait in [Wait::Configured, Wait::UpTo(short)] {
        let start = Instant::now();
        let error = rx.recv_frames(&mut received, wait).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(error.kind().is_wait());
        let waited = start.elapsed();
        assert!(waited >= short, "{}: back after {waited:?}", L::NAME);
        assert!(waited < PATIENCE, "{}: back after {waited:?}", L::NAME);
    }
    let zero = Wait::UpTo(Duration::ZERO);
    let error = rx.recv_frames(&mut received, zero).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);

    for number in 0_u8..3 {
        tx.send(&[&[number], b"tail"]).unwrap();
    }
    for number in 0_u8..3 {
        rx.recv_frames(&mut received, Wait::Forever).unwrap();
        assert_eq!(copied(&received), [&[number][..], b"tail"]);
    }
    // A message that is there needs no time to wait, only to get there.
    tx.send(&[b"there"]).unwrap();
    let start = Instant::now();
    while let Err(error) = rx.try_recv_into(&mut received) {
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(start.elapsed() < PATIENCE, "{}", L::NAME);
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(copied(&received), [b"there"]);
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

fn a_full_queue_pushes_back_and_loses_nothing<L: Link>() {
    let (mut tx, mut rx) = L::open(Setup {
        high_water: 2,
        ..Setup::default()
    });
    // Over ipc and tcp the system has buffers too: large frames fill them.
    let filler = vec![3_u8; 4 << 20];
    let mut sent = 0_u32;
    let error = loop {
        match tx.send_frames(
            &[&sent.to_le_bytes(), &filler],
            Wait::UpTo(Duration::from_millis(60)),
        ) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent < 100, "{}: no back-pressure", L::NAME);
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    // The system may still find room for one, now and then.
    let error = loop {
        match tx.try_send(&[&sent.to_le_bytes(), &filler]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);

    let total = sent + 20;
    let sender = thread::spawn(move || {
        for number in sent..total {
            // Trying until there is room neither skips a message nor repeats one.
            let filler = [4_u8; 100];
            while let Err(error) = tx.try_send(&[&number.to_le_bytes(), &filler]) {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                thread::sleep(Duration::from_millis(1));
            }
        }
        tx
    });
    let mut received = <L::Rx as RecvFrames>::Message::default();
    for number in 0..total {
        rx.recv_into(&mut received).unwrap();
        assert_eq!(
            received.frame(0),
            Some(&number.to_le_bytes()[..]),
            "{}",
            L::NAME
        );
        assert_eq!(received.frames().len(), 2);
    }
    sender.join().unwrap();
    assert!(rx.try_recv_into(&mut received).is_err());
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

fn a_receive_is_woken_by_a_later_send<L: Link>() {
    let (mut tx, mut rx) = L::open(Setup::default());
    let receiver = thread::spawn(move || copied(&rx.recv().unwrap()));
    thread::sleep(Duration::from_millis(20));
    tx.send(&[b"now"]).unwrap();
    assert_eq!(receiver.join().unwrap(), [b"now"]);
}

fn a_failed_receive_leaves_the_message_empty<L: Link>() {
    let (mut tx, mut rx) = L::open(Setup::default());
    tx.send(&[b"first", b"message"]).unwrap();
    let mut received = rx.recv().unwrap();
    assert_eq!(received.frames().len(), 2);
    assert!(rx.try_recv_into(&mut received).is_err());
    assert!(received.frames().is_empty());
    assert_eq!(received.frame(0), None);
}
