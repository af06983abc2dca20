//! What a socket says of itself.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::zmq::Context;
use tensorwire::transport::{
    Caps, Counters, ErrorKind, Observed, Part, RecvFrames, SendFrames, TransportError, Wait,
};

use crate::PATIENCE;

#[test]
fn messages_bytes_full_queues_and_refusals_are_counted() {
    let context = Context::new();
    let caps = Caps::new()
        .with_frame_bytes(100)
        .with_frames(3)
        .with_message_bytes(200);
    let pull = context.pull().caps(caps).recv_high_water(1);
    let mut pull = pull.bind("inproc://counted").unwrap();
    let push = context.push().send_high_water(1);
    let mut push = push.connect("inproc://counted").unwrap();

    push.send(&[b"ten bytes.", b"and six"]).unwrap();
    let mut parts = vec![Part::from(&[0; 30][..]), Part::from(vec![0; 70])];
    push.send_parts(&mut parts, Wait::Configured).unwrap();
    let mut full = 0;
    for _ in 0..5 {
        full += u64::from(push.try_send(&[b"x"]).is_err());
    }
    assert_eq!(full, 5, "two may wait over inproc");
    pull.recv().unwrap();
    pull.recv().unwrap();
    assert!(pull.try_recv_into(&mut Default::default()).is_err());
    for (frames, len) in [(1, 101), (4, 0), (3, 90)] {
        let frame = vec![0; len];
        push.send(&vec![&frame[..]; frames]).unwrap();
        assert!(pull.recv().unwrap_err().refused().is_some());
    }
    assert!(push.send(&[]).is_err());

    let mut expected = Counters::default();
    expected.messages_sent = 5;
    expected.bytes_sent = 17 + 100 + 101 + 270;
    expected.queue_full = 5;
    assert_eq!(push.counters(), expected);
    let mut expected = Counters::default();
    expected.messages_received = 2;
    expected.bytes_received = 17 + 100;
    expected.refused_frame_bytes = 1;
    expected.refused_frames = 1;
    expected.refused_message_bytes = 1;
    assert_eq!(pull.counters(), expected);
}

/// Waits until `socket` has counted so many connections made and lost.
#[track_caller]
fn assert_connections(socket: &impl Observed, connects: u64, disconnects: u64) {
    let start = Instant::now();
    let counted = || {
        let counters = socket.counters();
        (counters.connects, counters.disconnects)
    };
    while counted() != (connects, disconnects) && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(counted(), (connects, disconnects));
}

#[test]
fn connections_are_counted_for_those_who_ask() {
    let context = Context::new();
    let pull = context.pull().count_connections(true);
    let mut pull = pull.bind("tcp://127.0.0.1:*").unwrap();
    let unasked = context.pull().bind("tcp://127.0.0.1:*").unwrap();
    for round in 1..=3 {
        let push = context.push().count_connections(true);
        let mut push = push.connect(pull.endpoint()).unwrap();
        push.connect(unasked.endpoint()).unwrap();
        assert_connections(&push, 2, 0);
        assert_connections(&pull, round, round - 1);
        push.send(&[b"hello"]).unwrap();
        drop(push);
        assert_connections(&pull, round, round);
    }
    let stranger = TcpStream::connect(pull.endpoint().strip_prefix("tcp://").unwrap()).unwrap();
    assert_connections(&pull, 4, 3);
    drop(stranger);
    assert_connections(&pull, 4, 4);
    assert_connections(&unasked, 0, 0);
    assert!(pull.recv().is_ok());
}

#[test]
fn a_socket_that_counts_connections_closes_at_once() {
    let start = Instant::now();
    let context = Context::new();
    for _ in 0..50 {
        let pull = context.pull().count_connections(true);
        let pull = pull.bind("tcp://127.0.0.1:*").unwrap();
        let push = context.push().count_connections(true);
        let push = push
            .linger(Duration::ZERO)
            .connect(pull.endpoint())
            .unwrap();
        let open = context.pull().count_connections(true).open().unwrap();
        drop((push, pull, open));
    }
    drop(context);
    assert!(start.elapsed() < PATIENCE / 2);
}

#[test]
fn a_message_to_nobody_is_counted_neither_as_sent_nor_as_dropped() {
    let context = Context::new();
    let mut router = context.router().bind("inproc://dropped").unwrap();
    let error = router.to(b"nobody").send(&[b"x"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(router.counters(), Counters::default());
}
