//! Publishing: to all, by topic.

use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::nng::{Context, Error, Message, Publish, Socket, Subscribe};
use tensorwire::transport::{Frames, Observed, RecvFrames, SendFrames, Wait};

use super::links::{inproc, ipc, set_up, until};
use crate::{PATIENCE, Setup, copied};

fn pair(endpoint: &str, topics: &[&[u8]]) -> (Socket<Publish>, Socket<Subscribe>) {
    let context = Context::new();
    let publish = set_up(context.publish(), Setup::default());
    let publish = publish.listen(endpoint).unwrap();
    let mut subscribe = set_up(context.subscribe(), Setup::default());
    for topic in topics {
        subscribe = subscribe.topic(topic);
    }
    let subscribe = subscribe.dial(publish.endpoint()).unwrap();
    until("a connection", || publish.counters().connects > 0);
    // The connection is counted before it is taken up.
    thread::sleep(Duration::from_millis(200));
    (publish, subscribe)
}

#[test]
fn a_topic_is_a_prefix_of_the_first_frame() {
    for endpoint in [inproc(), ipc(), "tcp://127.0.0.1:0".into()] {
        let (mut publish, mut subscribe) = pair(&endpoint, &[b"video/", b"audio"]);
        for topic in [
            &b"video/1"[..],
            b"text",
            b"vide",
            b"",
            b"audio",
            b"TWBUNDLE",
        ] {
            publish.send(&[topic, b"video/"]).unwrap();
        }
        for topic in [&b"video/1"[..], b"audio"] {
            assert_eq!(copied(&subscribe.recv().unwrap())[0], topic);
        }
        let mut message = Message::default();
        let error = subscribe.recv_frames(&mut message, Wait::UpTo(Duration::from_millis(50)));
        assert_eq!(error, Err(Error::TimedOut));
        assert!(message.frames().is_empty());

        subscribe.unsubscribe(b"video/").unwrap();
        subscribe.unsubscribe(b"never subscribed").unwrap();
        publish.send(&[b"video/2"]).unwrap();
        publish.send(&[b"audio/2"]).unwrap();
        assert_eq!(copied(&subscribe.recv().unwrap())[0], b"audio/2");

        subscribe.unsubscribe(b"audio").unwrap();
        publish.send(&[b"audio/3"]).unwrap();
        let error = subscribe.recv_frames(&mut message, Wait::UpTo(Duration::from_millis(50)));
        assert_eq!(error, Err(Error::TimedOut));
        subscribe.subscribe(b"").unwrap();
        publish.send(&[b"all"]).unwrap();
        assert_eq!(copied(&subscribe.recv().unwrap())[0], b"all");
        assert_eq!(subscribe.counters().messages_received, 4, "{endpoint}");
    }
}

#[test]
fn a_publisher_without_subscribers_does_not_wait() {
    let context = Context::new();
    let mut publish = context.publish().listen(&inproc()).unwrap();
    for _ in 0..10_000 {
        publish.try_send(&[b"to nobody"]).unwrap();
    }
    let start = Instant::now();
    drop(publish);
    drop(context);
    assert!(start.elapsed() < PATIENCE / 4);
}

#[test]
fn what_was_published_last_arrives() {
    for endpoint in [inproc(), ipc(), "tcp://127.0.0.1:0".into()] {
        let (mut publish, mut subscribe) = pair(&endpoint, &[b""]);
        let tensor = vec![1_u8; 100_000];
        for number in 0_u8..50 {
            publish.send(&[&[number], &tensor]).unwrap();
        }
        drop(publish);
        for number in 0_u8..50 {
            assert_eq!(subscribe.recv().unwrap().frame(0), Some(&[number][..]));
        }
    }
}
