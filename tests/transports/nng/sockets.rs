//! Endpoints, kinds, connections, lending.

use std::thread;
use std::time::Duration;

use tensorwire::transport::nng::{Context, Error, Message};
use tensorwire::transport::{
    ErrorKind, Frames, LendFrames, Loan, Observed, RecvFrames, SendFrames, TransportError, Wait,
};

use super::links::{inproc, ipc, push_pull, set_up, until};
use crate::{Setup, copied};

#[test]
fn the_system_chooses_the_port() {
    let context = Context::new();
    let mut pull = context.pull().listen("tcp://127.0.0.1:0").unwrap();
    let first = pull.endpoint().to_owned();
    assert!(first.starts_with("tcp://127.0.0.1:"), "{first}");
    assert!(!first.ends_with(":0"), "{first}");
    let second = pull.listen("tcp://127.0.0.1:0").unwrap().to_owned();
    assert_ne!(first, second);
    for endpoint in [first, second] {
        let mut push = context.push().dial(&endpoint).unwrap();
        push.send(&[endpoint.as_bytes()]).unwrap();
        assert_eq!(pull.recv().unwrap().frame(0), Some(endpoint.as_bytes()));
    }
}

#[test]
fn where_all_addresses_are_listened_at_can_be_dialed() {
    let context = Context::new();
    for endpoint in ["tcp://*:0", "tcp://0.0.0.0:0", "tcp4://*:0"] {
        let mut pull = context.pull().listen(endpoint).unwrap();
        let mut push = context.push().dial(pull.endpoint()).unwrap();
        push.send(&[b"x"]).unwrap();
        assert_eq!(copied(&pull.recv().unwrap()), [b"x"], "{endpoint}");
    }
}

#[test]
fn endpoints_that_are_none_are_refused() {
    let context = Context::new();
    for endpoint in ["", "nowhere", "carrier-pigeon://x", "a\0b"] {
        let error = context.pull().listen(endpoint).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::InvalidInput,
            "{endpoint:?} {error}"
        );
        let error = context.push().dial(endpoint).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::InvalidInput,
            "{endpoint:?} {error}"
        );
    }
    let refused = Error::Endpoint(nng::Error::AddressInvalid);
    for port in ["*", "65536", "-1", "0"] {
        let endpoint = format!("tcp://127.0.0.1:{port}");
        let error = context.push().dial(&endpoint).unwrap_err();
        assert_eq!(error, refused, "{endpoint}");
        let error = context.pull().listen(&endpoint).map(drop);
        let lawful = if port == "0" { Ok(()) } else { Err(refused) };
        assert_eq!(error, lawful, "{endpoint}");
    }
    // Names, of hosts and of ports, are looked up when a connection is tried.
    let error = context.pull().listen("tcp://127.0.0.1:x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let endpoint = inproc();
    let _taken = context.pull().listen(&endpoint).unwrap();
    let error = context.pull().listen(&endpoint).unwrap_err();
    assert_eq!(error, Error::System(nng::Error::AddressInUse));
}

#[test]
fn either_side_may_come_first_and_come_again() {
    for endpoint in [inproc(), ipc()] {
        let context = Context::new();
        let push = set_up(context.push(), Setup::default());
        let mut push = push.dial(&endpoint).unwrap();
        for round in 0_u8..3 {
            push.send(&[&[round]]).unwrap();
            let pull = set_up(context.pull(), Setup::default());
            let mut pull = pull.listen(&endpoint).unwrap();
            assert_eq!(copied(&pull.recv().unwrap()), [[round]], "{endpoint}");
            let connects = u64::from(round) + 1;
            assert_eq!(push.counters().connects, connects, "{endpoint}");
            drop(pull);
            until("a disconnect", || push.counters().disconnects == connects);
        }
    }
}

#[test]
fn both_ends_of_a_pair_send_and_receive() {
    let context = Context::new();
    let mut left = context.pair1().listen("tcp://127.0.0.1:0").unwrap();
    let mut right = context.pair1().dial(left.endpoint()).unwrap();
    for number in 0_u8..5 {
        left.send(&[&[number], b"there"]).unwrap();
        assert_eq!(copied(&right.recv().unwrap())[0], [number]);
        right.send(&[&[number], b"and back"]).unwrap();
        assert_eq!(copied(&left.recv().unwrap())[1], b"and back");
    }
}

#[test]
fn a_lent_message_is_written_where_it_is_sent_from() {
    let (mut push, mut pull) = push_pull(&inproc(), Setup::default());
    let lengths = [3, 0, 200_000];
    let mut loan = push.lend_frames(&lengths, Wait::Never).unwrap();
    assert!(loan.frames_mut().map(|frame| frame.len()).eq(lengths));
    for (frame, value) in loan.frames_mut().zip(7_u8..) {
        frame.fill(value);
    }
    // What is written stays.
    let addresses: Vec<_> = loan
        .frames_mut()
        .map(|frame| frame.as_ptr().addr())
        .collect();
    assert_eq!(loan.frames_mut().next().unwrap(), [7; 3]);
    loan.send(Wait::Never).unwrap();
    let message = pull.recv().unwrap();
    assert_eq!(message.frame(0), Some(&[7; 3][..]));
    assert_eq!(message.frame(2), Some(&[9; 200_000][..]));
    // Over inproc, that is where it is read as well.
    let read = message
        .frames()
        .iter()
        .map(|frame| frame.as_ref().as_ptr().addr());
    assert!(read.eq(addresses));
    assert_eq!(push.counters().bytes_sent, 200_003);

    drop(push.lend_frames(&[10], Wait::Never).unwrap());
    // There is nothing to write into frames of no bytes.
    let loan = push.lend_frames(&[0, 0], Wait::Never).unwrap();
    loan.send(Wait::Never).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [b""; 2]);
    let error = push.lend_frames(&[], Wait::Never).unwrap_err();
    assert_eq!(error, Error::EmptyMessage);
    for lengths in [
        &[usize::MAX][..],
        &[1 << 62, 1 << 62],
        &[isize::MAX as usize],
    ] {
        let error = push.lend_frames(lengths, Wait::Never).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    // More than there is memory for, and not more than can be said.
    let error = push.lend_frames(&[1 << 52], Wait::Never).unwrap_err();
    assert_eq!(error, Error::System(nng::Error::OutOfMemory));
    push.send(&[b"next"]).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [b"next"]);
}

#[test]
fn a_lent_message_without_room_comes_back() {
    let (mut push, mut pull) = push_pull(
        &inproc(),
        Setup {
            high_water: 1,
            ..Setup::default()
        },
    );
    // Until it is full for good: the connection takes some, once it is there.
    let wait = Wait::UpTo(Duration::from_millis(100));
    while push.send_frames(&[b"filler"], wait).is_ok() {}
    let mut loan = push.lend_frames(&[4], Wait::Never).unwrap();
    loan.frames_mut()
        .for_each(|frame| frame.copy_from_slice(b"lent"));
    let (loan, error) = loan.send(Wait::Never).unwrap_err();
    assert_eq!(error, Error::WouldBlock);
    let (loan, error) = loan
        .send(Wait::UpTo(Duration::from_millis(20)))
        .unwrap_err();
    assert_eq!(error, Error::TimedOut);
    let reader = thread::spawn(move || {
        while copied(&pull.recv().unwrap()) != [b"lent"] {}
        pull
    });
    loan.send(Wait::Configured).unwrap();
    reader.join().unwrap();
}

#[test]
fn a_message_outlives_its_socket_and_says_what_it_keeps() {
    let (mut push, mut pull) = push_pull("tcp://127.0.0.1:0", Setup::default());
    let tensor = vec![3_u8; 100_000];
    push.send(&[b"metadata", &tensor]).unwrap();
    let message = pull.recv().unwrap();
    drop((push, pull));
    assert_eq!(message.frame(1), Some(&tensor[..]));
    let receipt = message.receipt().unwrap();
    assert_eq!((receipt.copied_bytes(), receipt.allocations()), (0, 1));
    let retained = receipt.retained_bytes();
    assert!((100_000..101_000).contains(&retained), "{retained}");
    assert_eq!(Message::default().receipt().unwrap().retained_bytes(), 0);
    let moved = thread::spawn(move || copied(&message));
    assert_eq!(moved.join().unwrap()[1], tensor);
}
