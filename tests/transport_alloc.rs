//! Sending and receiving neither allocate nor free once warm.

#![cfg(feature = "std")]

#[path = "common/counting.rs"]
mod counting;

use tensorwire::transport::{Frames, RecvFrames, SendFrames, loopback};

use counting::calls;

/// Sends and receives until warm, then counts.
fn assert_none_once_warm<S: SendFrames, R: RecvFrames>(tx: &mut S, rx: &mut R, name: &str) {
    let tensor = vec![7_u8; 50_000];
    let frames: [&[u8]; 4] = [b"metadata", b"", &tensor[..33], &tensor];
    let mut message = R::Message::default();
    for round in 0..20 {
        let (sending, sent) = calls(|| tx.send(&frames));
        sent.unwrap();
        let (receiving, received) = calls(|| rx.recv_into(&mut message));
        received.unwrap();
        assert_eq!(message.frames().len(), 4);
        let (trying, _) = calls(|| rx.try_recv_into(&mut message).is_err());
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
    let (mut tx, mut rx) = loopback::Options::new().with_shift(1).pair();
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
