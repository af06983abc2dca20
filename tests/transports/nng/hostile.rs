//! Bodies that are no messages of ours, from peers that know NNG and nothing else.

use std::time::Duration;

use nng::{Protocol, Socket};

use tensorwire::bundle::{self, encode_to_vec};
use tensorwire::transport::nng::{Context, Error, Message};
use tensorwire::transport::{
    Cap, Caps, ErrorKind, Frames, Observed, RecvFrames, SendFrames, TransportError,
};

use super::links::{inproc, ipc, set_up, until};
use crate::{Setup, copied};

/// Longer than any test.
const HOUR: Duration = Duration::from_secs(3600);

fn endpoints() -> [String; 3] {
    [inproc(), ipc(), "tcp://127.0.0.1:0".into()]
}

fn good() -> Vec<u8> {
    encode_to_vec(&[&b"good"[..], b"", &[1; 100]]).unwrap()
}

/// Bodies that are none, by what was done to a good one.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let with = |at: usize, bytes: &[u8]| {
        let mut body = good();
        body[at..at + bytes.len()].copy_from_slice(bytes);
        body
    };
    let mut longer = good();
    longer.push(0);
    let mut all = vec![
        ("empty", vec![]),
        ("one byte", vec![0]),
        ("text", b"hello, is there anybody?".to_vec()),
        (
            "HTTP",
            b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n".to_vec(),
        ),
        ("zeros", vec![0; 4096]),
        ("ones", vec![0xff; 4096]),
        ("other magic", with(0, b"X")),
        ("other version", with(8, &2_u32.to_le_bytes())),
        ("no frames", with(12, &0_u32.to_le_bytes())),
        ("all the frames there can be", with(12, &[0xff; 4])),
        ("total length too large", with(16, &[0xff; 8])),
        ("total length too small", with(16, &9_u64.to_le_bytes())),
        ("offset past the end", with(24, &[0xff; 8])),
        ("offset within the table", with(24, &0_u64.to_le_bytes())),
        ("length past the end", with(32, &[0xff; 8])),
        ("frames that overlap", with(40, &64_u64.to_le_bytes())),
        ("padding that is none", with(24 + 3 * 16, b"!")),
        ("trailing byte", longer),
    ];
    for len in [8, 23, 24, 25, 71, 72, 128, good().len() - 1] {
        all.push(("cut", good()[..len].to_vec()));
    }
    all
}

#[test]
fn bodies_that_are_no_bundles_are_refused_and_the_next_message_arrives() {
    for endpoint in endpoints() {
        let context = Context::new();
        let pull = set_up(context.pull(), Setup::default());
        let mut pull = pull.listen(&endpoint).unwrap();
        let raw = Socket::new(Protocol::Push0).unwrap();
        raw.dial(pull.endpoint()).unwrap();
        let mut message = Message::default();
        let bodies = malformed();
        for (name, body) in &bodies {
            raw.send(&body[..]).unwrap();
            raw.send(&good()).unwrap();
            let error = pull.recv_into(&mut message).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{name}");
            let expected = bundle::Bundle::decode(body).unwrap_err();
            assert_eq!(error, Error::Malformed(expected), "{name}");
            assert!(message.frames().is_empty(), "{name}");
            pull.recv_into(&mut message).unwrap();
            assert_eq!(message.frame(0), Some(&b"good"[..]), "{name}");
            assert_eq!(message.frames().len(), 3, "{name}");
        }
        let counters = pull.counters();
        assert_eq!(counters.refused_malformed, bodies.len() as u64);
        assert_eq!(counters.messages_received, bodies.len() as u64);
    }
}

#[test]
fn bodies_over_the_caps_are_refused_and_the_next_message_arrives() {
    let caps = Caps::new()
        .with_frame_bytes(50_000)
        .with_frames(100)
        .with_message_bytes(60_000);
    for endpoint in endpoints() {
        let context = Context::new();
        let pull = set_up(
            context.pull(),
            Setup {
                caps,
                ..Setup::default()
            },
        );
        let mut pull = pull.listen(&endpoint).unwrap();
        let push = set_up(context.push(), Setup::default());
        let mut push = push.dial(pull.endpoint()).unwrap();
        let refused = [
            (vec![vec![0; 50_001]], Cap::FrameBytes),
            (vec![vec![]; 101], Cap::Frames),
            (vec![vec![0; 30_000], vec![0; 30_001]], Cap::MessageBytes),
        ];
        for (frames, cap) in refused {
            let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            push.send(&frames).unwrap();
            push.send(&[b"good"]).unwrap();
            let error = pull.recv().unwrap_err();
            assert_eq!(error.refused().map(|refused| refused.cap()), Some(cap));
            assert_eq!(copied(&pull.recv().unwrap()), [b"good"]);
        }
        // As large as can be: what NNG allows is not less than the caps.
        let most = [&[0; 10_000][..], &[0; 50_000]];
        push.send(&most).unwrap();
        assert_eq!(pull.recv().unwrap().byte_count(), 60_000);
        let many = vec![&[0_u8; 600][..]; 100];
        push.send(&many).unwrap();
        assert_eq!(pull.recv().unwrap().frames().len(), 100);
    }
}

#[test]
fn a_body_that_nng_will_not_take_costs_its_sender_the_connection() {
    let caps = Caps::new().with_message_bytes(1000);
    for endpoint in [ipc(), "tcp://127.0.0.1:0".into()] {
        let context = Context::new();
        let pull = set_up(
            context.pull(),
            Setup {
                caps,
                ..Setup::default()
            },
        );
        let mut pull = pull.listen(&endpoint).unwrap();
        // It does not come again by itself: were it closed while it connects, that may be
        // the end of NNG's listener (see the module on what is wrong below).
        let push = set_up(context.push(), Setup::default()).reconnect(HOUR, HOUR);
        let mut push = push.dial(pull.endpoint()).unwrap();
        let other = set_up(context.push(), Setup::default());
        let mut other = other.dial(pull.endpoint()).unwrap();
        push.send(&[&vec![0; 1 << 20]]).unwrap();
        other.send(&[b"good"]).unwrap();
        assert_eq!(copied(&pull.recv().unwrap()), [b"good"]);
        until("a disconnect", || push.counters().disconnects > 0);
        push.close(Duration::ZERO);
        let again = set_up(context.push(), Setup::default());
        let mut again = again.dial(pull.endpoint()).unwrap();
        again.send(&[b"next"]).unwrap();
        assert_eq!(copied(&pull.recv().unwrap()), [b"next"]);
    }
}

#[test]
fn a_malformed_request_may_be_answered_and_a_malformed_reply_ends_the_turn() {
    let context = Context::new();
    let mut reply = set_up(context.reply(), Setup::default())
        .listen(&inproc())
        .unwrap();
    let raw = Socket::new(Protocol::Req0).unwrap();
    raw.dial(reply.endpoint()).unwrap();
    raw.send(&b"no bundle"[..]).unwrap();
    assert_eq!(reply.recv().unwrap_err().kind(), ErrorKind::Malformed);
    reply.send(&[b"what was that?"]).unwrap();
    let answer = raw.recv().unwrap();
    let answer = bundle::Bundle::decode(&answer).unwrap();
    assert_eq!(answer.frame(0), Some(&b"what was that?"[..]));

    let raw = Socket::new(Protocol::Rep0).unwrap();
    let endpoint = inproc();
    raw.listen(&endpoint).unwrap();
    let mut request = set_up(context.request(), Setup::default())
        .dial(&endpoint)
        .unwrap();
    let good = good();
    let replies = [
        (&b"no bundle"[..], Err(ErrorKind::Malformed)),
        (&good, Ok(b"good".to_vec())),
    ];
    for (body, expected) in replies {
        request.send(&[b"question"]).unwrap();
        raw.recv().unwrap();
        raw.send(body).unwrap();
        let answer = request.recv().map(|answer| copied(&answer).remove(0));
        assert_eq!(answer.map_err(|error| error.kind()), expected);
    }
}
