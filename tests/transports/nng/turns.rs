//! Request and reply take turns.

use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::nng::{Context, Error, Message, Reply, Request, Socket};
use tensorwire::transport::{Frames, Observed, RecvFrames, SendFrames, Wait};

use super::links::{inproc, ipc, set_up};
use crate::{PATIENCE, Setup, copied};

const SHORT: Duration = Duration::from_millis(40);

fn pair(endpoint: &str) -> (Socket<Request>, Socket<Reply>) {
    let context = Context::new();
    let reply = set_up(context.reply(), Setup::default());
    let reply = reply.listen(endpoint).unwrap();
    let request = set_up(context.request(), Setup::default());
    (request.dial(reply.endpoint()).unwrap(), reply)
}

#[test]
fn each_request_gets_its_reply() {
    for endpoint in [inproc(), ipc(), "tcp://127.0.0.1:0".into()] {
        let (mut request, mut reply) = pair(&endpoint);
        let server = thread::spawn(move || {
            for _ in 0..200 {
                let question = copied(&reply.recv().unwrap());
                reply.send(&[b"answer to", &question[0]]).unwrap();
            }
            reply
        });
        for number in 0..200_u32 {
            request.send(&[&number.to_le_bytes()]).unwrap();
            let answer = request.recv().unwrap();
            assert_eq!(answer.frame(1), Some(&number.to_le_bytes()[..]));
        }
        server.join().unwrap();
    }
}

#[test]
fn out_of_turn_is_an_error_and_changes_nothing() {
    let (mut request, mut reply) = pair(&inproc());
    // Nothing was asked yet.
    assert_eq!(request.recv().unwrap_err(), Error::OutOfTurn);
    assert_eq!(reply.send(&[b"?"]).unwrap_err(), Error::OutOfTurn);

    request.send(&[b"first"]).unwrap();
    assert_eq!(request.send(&[b"second"]).unwrap_err(), Error::OutOfTurn);
    assert_eq!(copied(&reply.recv().unwrap()), [b"first"]);
    reply.send(&[b"reply"]).unwrap();
    assert_eq!(reply.send(&[b"again"]).unwrap_err(), Error::OutOfTurn);
    assert_eq!(copied(&request.recv().unwrap()), [b"reply"]);
    assert_eq!(request.recv().unwrap_err(), Error::OutOfTurn);

    request.send(&[b"second"]).unwrap();
    assert_eq!(copied(&reply.recv().unwrap()), [b"second"]);
}

#[test]
fn a_reply_that_is_waited_for_in_vain_is_not_lost() {
    for endpoint in [inproc(), "tcp://127.0.0.1:0".into()] {
        let (mut request, mut reply) = pair(&endpoint);
        let mut message = Message::default();
        request.send(&[b"question"]).unwrap();
        for round in 0..3 {
            let error = request.try_recv_into(&mut message).unwrap_err();
            assert_eq!(error, Error::WouldBlock, "round {round}");
            let start = Instant::now();
            let wait = Wait::UpTo(SHORT);
            assert_eq!(
                request.recv_frames(&mut message, wait),
                Err(Error::TimedOut)
            );
            assert!(start.elapsed() >= SHORT);
        }
        reply.recv().unwrap();
        reply.send(&[b"answer"]).unwrap();
        let start = Instant::now();
        while let Err(error) = request.try_recv_into(&mut message) {
            assert_eq!(error, Error::WouldBlock);
            assert!(start.elapsed() < PATIENCE);
            thread::yield_now();
        }
        assert_eq!(copied(&message), [b"answer"]);
    }
}

#[test]
fn a_request_that_is_abandoned_makes_room_for_the_next() {
    let (mut request, mut reply) = pair(&inproc());
    let mut message = Message::default();
    request.send(&[b"first"]).unwrap();
    let wait = Wait::UpTo(SHORT);
    assert_eq!(
        request.recv_frames(&mut message, wait),
        Err(Error::TimedOut)
    );
    request.abandon();
    assert_eq!(request.recv().unwrap_err(), Error::OutOfTurn);
    request.send(&[b"second"]).unwrap();
    for question in [b"first".as_slice(), b"second"] {
        assert_eq!(copied(&reply.recv().unwrap()), [question]);
        reply.send(&[b"reply to", question]).unwrap();
    }
    // The reply to the first comes too late, and is dropped.
    assert_eq!(copied(&request.recv().unwrap())[1], b"second");
}

#[test]
fn a_connection_lost_before_the_reply_is_told() {
    for waits in [false, true] {
        let (mut request, mut reply) = pair("tcp://127.0.0.1:0");
        request.send(&[b"question"]).unwrap();
        reply.recv().unwrap();
        let mut message = Message::default();
        if waits {
            let wait = Wait::UpTo(SHORT);
            assert_eq!(
                request.recv_frames(&mut message, wait),
                Err(Error::TimedOut)
            );
        }
        drop(reply);
        assert_eq!(request.recv().unwrap_err(), Error::Disconnected);
        assert_eq!(request.recv().unwrap_err(), Error::OutOfTurn);
        assert_eq!(request.counters().dropped, 1);
    }
}

#[test]
fn a_request_without_a_peer_waits_for_one() {
    let context = Context::new();
    let endpoint = inproc();
    let request = set_up(context.request(), Setup::default());
    let mut request = request.dial(&endpoint).unwrap();
    assert_eq!(request.try_send(&[b"?"]).unwrap_err(), Error::WouldBlock);
    let wait = Wait::UpTo(SHORT);
    assert_eq!(request.send_frames(&[b"?"], wait), Err(Error::TimedOut));
    let reply = set_up(context.reply(), Setup::default());
    let mut reply = reply.listen(&endpoint).unwrap();
    request.send(&[b"question"]).unwrap();
    assert_eq!(copied(&reply.recv().unwrap()), [b"question"]);
}

#[cfg(feature = "tokio")]
#[test]
fn replies_and_lost_connections_wake_the_task_that_awaits_them() {
    use tensorwire::transport::tokio::{Async, Error as Awaiting};

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (request, mut reply) = pair("tcp://127.0.0.1:0");
    let server = thread::spawn(move || {
        for _ in 0..20 {
            let question = copied(&reply.recv().unwrap());
            thread::sleep(Duration::from_millis(2));
            reply.send(&[&question[0]]).unwrap();
        }
        reply.recv().unwrap();
        thread::sleep(SHORT);
        drop(reply);
    });
    runtime.block_on(async {
        let mut request = Async::new(request).unwrap();
        for number in 0_u8..20 {
            request.send(&[&[number]]).await.unwrap();
            assert_eq!(copied(&request.recv().await.unwrap()), [[number]]);
        }
        request.send(&[b"the last one"]).await.unwrap();
        let error = request.recv().await.unwrap_err();
        assert!(
            matches!(error, Awaiting::Transport(Error::Disconnected)),
            "{error}"
        );
    });
    server.join().unwrap();
}
