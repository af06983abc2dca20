//! Publishing and subscribing.

use std::time::{Duration, Instant};

use tensorwire::transport::zmq::{Context, Error, Message, Publish, Socket, Subscribe};
use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait};

use crate::{PATIENCE, copied};

/// Publishes `call` until the subscription is there. Calls may still be about then.
fn call_until_it_answers(
    publish: &mut Socket<Publish>,
    subscribe: &mut Socket<Subscribe>,
    call: &[u8],
) {
    let mut message = Message::default();
    let start = Instant::now();
    loop {
        publish.send(&[call]).unwrap();
        let wait = Wait::UpTo(Duration::from_millis(5));
        if subscribe.recv_frames(&mut message, wait).is_ok() {
            return;
        }
        assert!(start.elapsed() < PATIENCE);
    }
}

#[test]
fn subscribers_get_what_starts_with_their_topic() {
    let context = Context::new();
    let mut publish = context.publish().bind("tcp://127.0.0.1:*").unwrap();
    let mut subscribe = context
        .subscribe()
        .topic(b"latents/")
        .topic(b"done")
        .connect(publish.endpoint())
        .unwrap();
    let mut message = Message::default();
    call_until_it_answers(&mut publish, &mut subscribe, b"done");
    publish.send(&[b"latent", b"not quite"]).unwrap();
    publish.send(&[b"other", b"latents/"]).unwrap();
    publish.send(&[b"latents/1", b"one"]).unwrap();
    let mut parts = vec![Part::from(&b"latents/2"[..]), Part::from(vec![2; 9000])];
    publish.send_parts(&mut parts, Wait::Configured).unwrap();
    // Calls from before may still be about.
    loop {
        subscribe.recv_into(&mut message).unwrap();
        if copied(&message) != [b"done"] {
            break;
        }
    }
    assert_eq!(copied(&message), [&b"latents/1"[..], b"one"]);
    subscribe.recv_into(&mut message).unwrap();
    assert_eq!(message.frame(0), Some(&b"latents/2"[..]));
    assert_eq!(message.frame(1), Some(&[2; 9000][..]));
    assert_eq!(
        subscribe.try_recv_into(&mut message),
        Err(Error::WouldBlock)
    );
}

#[test]
fn a_publisher_drops_whole_messages_and_never_waits() {
    let context = Context::new();
    let publish = context.publish().send_high_water(5);
    let mut publish = publish.bind("inproc://lossy").unwrap();
    let subscribe = context.subscribe().topic(b"").recv_high_water(5);
    let mut subscribe = subscribe.connect("inproc://lossy").unwrap();
    subscribe.subscribe(b"more").unwrap();
    subscribe.unsubscribe(b"more").unwrap();
    call_until_it_answers(&mut publish, &mut subscribe, b"probe");
    for number in 0..500_u32 {
        publish
            .try_send(&[&number.to_le_bytes(), &[1; 100], b"end"])
            .unwrap();
    }
    let mut message = Message::default();
    let mut last = None;
    while subscribe.try_recv_into(&mut message).is_ok() {
        if copied(&message) == [b"probe"] {
            continue;
        }
        assert_eq!(message.frames().len(), 3);
        assert_eq!(message.frame(2), Some(&b"end"[..]));
        let number = u32::from_le_bytes(message.frame(0).unwrap().try_into().unwrap());
        assert!(last < Some(number), "in order");
        last = Some(number);
    }
    assert!(last.is_some());
    assert!(last < Some(499), "no room for all");
}
