//! Sending and receiving neither allocate nor free once warm.

#![cfg(feature = "std")]

#[cfg(feature = "zmq")]
#[path = "common/alone.rs"]
mod alone;
#[path = "steady_state_allocations/coordinator.rs"]
mod coordinator;
#[path = "common/counting.rs"]
mod counting;
#[cfg(feature = "zmq")]
#[path = "steady_state_allocations/zmq.rs"]
mod zmq;

use std::ops::Range;
use std::sync::Arc;

use tensorwire::Decoder;
use tensorwire::transport::{Frames, RecvFrames, SendFrames, loopback};

use counting::{calls, none};

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

#[cfg(feature = "nng")]
#[test]
fn nng_allocates_nothing_of_ours_once_warm() {
    use tensorwire::transport::nng::Context;
    use tensorwire::transport::{LendFrames, Loan, Wait};

    for endpoint in ["inproc://alloc", "tcp://127.0.0.1:0"] {
        let context = Context::new();
        let mut pull = context.pull().listen(endpoint).unwrap();
        let mut push = context.push().dial(pull.endpoint()).unwrap();
        assert_none_once_warm(&mut push, &mut pull, endpoint);
        let mut message = Default::default();
        for round in 0..20 {
            let mut lend = || {
                let mut loan = push.lend_frames(&[100, 5000], Wait::Never).unwrap();
                loan.frames_mut().for_each(|frame| frame.fill(1));
                loan.send(Wait::Never).unwrap();
                pull.recv_into(&mut message).unwrap();
            };
            if round < 5 {
                lend();
                continue;
            }
            none(lend);
            let receipt = message.receipt().unwrap();
            assert_eq!((receipt.copied_bytes(), receipt.allocations()), (0, 0));
        }
    }
    let context = Context::new();
    let mut reply = context.reply().listen("inproc://alloc-reply").unwrap();
    let mut request = context.request().dial(reply.endpoint()).unwrap();
    let mut message = Default::default();
    for round in 0..20 {
        let mut exchange = || {
            request.send(&[b"question", &[1; 5000]]).unwrap();
            reply.recv_into(&mut message).unwrap();
            reply.send(&[b"answer"]).unwrap();
            while request.try_recv_into(&mut message).is_err() {}
        };
        if round < 5 {
            exchange();
        } else {
            none(exchange);
        }
    }
}

#[cfg(feature = "iceoryx2")]
#[test]
fn shared_memory_allocates_nothing_of_ours_once_warm() {
    use tensorwire::transport::iceoryx2::{Builder, Message};
    use tensorwire::transport::{LendFrames, Loan, Wait};

    let channel = Builder::new(&format!("test/alloc/{}", std::process::id()));
    let mut sender = channel.clone().sender().unwrap();
    let mut receiver = channel.receiver().unwrap();
    let tensor = vec![7_u8; 50_000];
    let frames: [&[u8]; 4] = [b"metadata", b"", &tensor[..33], &tensor];
    let lengths = frames.map(<[u8]>::len);
    let mut message = Message::default();
    for round in 0..20 {
        let (sending, sent) = calls(|| match round % 2 {
            0 => sender.send(&frames),
            _ => {
                let mut loan = sender.lend_frames(&lengths, Wait::Never)?;
                loan.frames_mut().for_each(|frame| frame.fill(7));
                loan.send(Wait::Never).map_err(|(_, error)| error)
            }
        });
        sent.unwrap();
        let (receiving, received) = calls(|| receiver.recv_into(&mut message));
        received.unwrap();
        assert_eq!(message.frames().len(), 4);
        let receipt = message.receipt().unwrap();
        let (trying, _) = calls(|| receiver.try_recv_into(&mut message).is_err());
        if round > 4 {
            // iceoryx2 itself makes one small object for a place that is lent, and frees it.
            assert_eq!((sending, receiving, trying), (2, 0, 0), "round {round}");
            assert_eq!((receipt.allocations(), receipt.copied_bytes()), (0, 8));
        }
    }
}

/// A message whose frames share one body, as the docs of [`Frames`] have it.
#[derive(Default)]
struct Bundled {
    body: Arc<Vec<u8>>,
    frames: Vec<Slice>,
}

struct Slice {
    body: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        &self.body[self.range.clone()]
    }
}

impl Bundled {
    fn fill(&mut self, frames: &[&[u8]]) {
        self.clear();
        let body = Arc::make_mut(&mut self.body);
        body.clear();
        frames
            .iter()
            .for_each(|frame| body.extend_from_slice(frame));
        let mut start = 0;
        for frame in frames {
            let range = start..start + frame.len();
            start = range.end;
            let body = self.body.clone();
            self.frames.push(Slice { body, range });
        }
    }
}

impl Frames for Bundled {
    type Frame = Slice;

    fn frames(&self) -> &[Slice] {
        &self.frames
    }

    fn clear(&mut self) {
        self.frames.clear();
    }
}

#[test]
fn frames_that_share_a_body_allocate_nothing_once_warm() {
    let metadata =
        br#"{"tensor_descriptors":[{"field_name":"x","shape":[3],"dtype":"uint8","list_index":-1}]}"#;
    let (mut message, mut decoder) = (Bundled::default(), Decoder::new());
    let mut receive = |payload: &[u8]| {
        message.fill(&[metadata, payload]);
        let decoded = decoder.decode(message.frames()).unwrap();
        assert_eq!(decoded.tensor("x").unwrap().bytes(), payload);
    };
    receive(&[0; 3]);
    for round in 1..10 {
        none(|| receive(&[round; 3]));
    }
}
