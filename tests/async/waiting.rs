//! Waiting, waking, several at a time.

use std::time::{Duration, Instant};

use tensorwire::transport::tokio::{Async, Error, Messages};
use tensorwire::transport::{
    ErrorKind, Frames, RecvFrames, SendFrames, TransportError, Wait, loopback,
};

use crate::links::over_each_link;
use crate::{Link, PATIENCE, number, open, payload, run};

over_each_link! {
    messages_arrive_in_order
    a_receive_in_vain_ends_in_time_and_loses_nothing
    a_full_queue_is_waited_for
}

fn messages_arrive_in_order<L: Link>() {
    for threads in [0, 2] {
        run(threads, async {
            let (mut tx, mut rx) = open::<L>(100);
            let sender = tokio::spawn(async move {
                for next in 0..10_000_u32 {
                    let head = next.to_le_bytes();
                    tx.send(&[&head, &payload(head[0])]).await.unwrap();
                }
                tx
            });
            let mut message = <L::Rx as RecvFrames>::Message::default();
            for next in 0..10_000 {
                rx.recv_into(&mut message).await.unwrap();
                assert_eq!(number(&message), next, "{}", L::NAME);
            }
            sender.await.unwrap();
        });
    }
}

fn a_receive_in_vain_ends_in_time_and_loses_nothing<L: Link>() {
    run(0, async {
        let (mut tx, mut rx) = open::<L>(100);
        let mut message = <L::Rx as RecvFrames>::Message::default();
        let short = Duration::from_millis(30);
        let start = Instant::now();
        let error = rx.recv_frames(&mut message, Wait::UpTo(short)).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::TimedOut);
        let waited = start.elapsed();
        assert!(waited >= short && waited < PATIENCE / 2, "{waited:?}");
        let error = rx.recv_frames(&mut message, Wait::Never).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::WouldBlock);
        let zero = Wait::UpTo(Duration::ZERO);
        let error = rx.recv_frames(&mut message, zero).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(message.frames().is_empty());

        let head = 7_u32.to_le_bytes();
        let receive = async {
            rx.recv_frames(&mut message, Wait::Forever).await.unwrap();
            number(&message)
        };
        let send = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            tx.send(&[&head, &payload(head[0])]).await.unwrap();
        };
        assert_eq!(tokio::join!(receive, send).0, 7);
    });
}

fn a_full_queue_is_waited_for<L: Link>() {
    run(0, async {
        let (mut tx, mut rx) = open::<L>(2);
        let filler = vec![3; 4 << 20];
        let wait = Wait::UpTo(Duration::from_millis(60));
        let mut sent = 0_u32;
        let error = loop {
            match tx.send_frames(&[&sent.to_le_bytes(), &filler], wait).await {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
            assert!(sent < 100, "{}: no back-pressure", L::NAME);
        };
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        // A send that waits does not keep the receive of another task from going on.
        let (head, wait) = (sent.to_le_bytes(), Wait::Forever);
        let frames: [&[u8]; 2] = [&head, &filler];
        let send = tx.send_frames(&frames, wait);
        let receive = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            for next in 0..=sent {
                let message = rx.recv().await.unwrap();
                assert_eq!(message.frame(0), Some(&next.to_le_bytes()[..]));
            }
        };
        tokio::join!(send, receive).0.unwrap();
    });
}

#[test]
fn several_transports_are_awaited_at_a_time() {
    run(0, async {
        let (mut left, right) = loopback::pair();
        let (mut other, another) = loopback::pair();
        let (mut right, mut another) = (Async::new(right).unwrap(), Async::new(another).unwrap());
        let mut seen = Vec::new();
        for round in 0..10_u8 {
            let to = if round % 3 == 0 {
                &mut left
            } else {
                &mut other
            };
            to.send(&[&[round]]).unwrap();
            let message = tokio::select! {
                message = right.recv() => message,
                message = another.recv() => message,
            };
            seen.push(message.unwrap().frame(0).unwrap()[0]);
        }
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    });
}

#[test]
fn a_task_that_only_looks_lets_others_have_their_turn() {
    run(0, async {
        let (_left, right) = loopback::pair();
        let mut right = Async::new(right).unwrap();
        let other = tokio::spawn(tokio::time::sleep(Duration::from_millis(5)));
        let mut message = loopback::Message::default();
        let start = Instant::now();
        while !other.is_finished() {
            let error = right.recv_frames(&mut message, Wait::Never).await;
            assert_eq!(error.unwrap_err().kind(), ErrorKind::WouldBlock);
            assert!(start.elapsed() < PATIENCE / 2, "the other never had a turn");
        }
    });
}

#[test]
fn a_stream_ends_when_the_other_end_closes() {
    run(0, async {
        let (left, right) = loopback::pair();
        let (mut left, mut right) = (Async::new(left).unwrap(), Async::new(right).unwrap());
        left.send(&[b"last"]).await.unwrap();
        drop(left);
        let mut messages = right.messages();
        let last = next(&mut messages).await.unwrap().unwrap();
        assert_eq!(last.frame(0), Some(&b"last"[..]));
        assert!(next(&mut messages).await.is_none());
        assert!(next(&mut messages).await.is_none());
    });
}

async fn next(
    messages: &mut Messages<'_, loopback::Loopback>,
) -> Option<Result<loopback::Message, Error<loopback::Error>>> {
    use futures_core::Stream;

    let mut messages = std::pin::pin!(messages);
    std::future::poll_fn(|cx| messages.as_mut().poll_next(cx)).await
}

#[test]
fn a_delayed_message_wakes_the_task_when_it_is_due() {
    run(0, async {
        let (mut left, right) = loopback::pair();
        let delay = Duration::from_millis(30);
        left.script([(0, loopback::Fault::Delay(delay))]);
        let mut right = Async::new(right).unwrap();
        let start = Instant::now();
        left.send(&[b"late"]).unwrap();
        right.recv().await.unwrap();
        assert!(start.elapsed() >= delay);
    });
}

#[test]
fn outside_of_a_runtime_it_is_an_error() {
    let (left, _right) = loopback::pair();
    assert!(Async::new(left).is_err());
}

#[cfg(feature = "zmq")]
#[test]
fn a_router_answers_by_envelope() {
    use tensorwire::transport::zmq::Context;

    run(2, async {
        let context = Context::new();
        let router = context.router().bind("tcp://127.0.0.1:*").unwrap();
        let endpoint = router.endpoint().to_owned();
        let mut router = Async::new(router).unwrap();
        let peers: Vec<_> = (0..4_u8)
            .map(|peer| {
                let dealer = context.dealer().connect(&endpoint).unwrap();
                tokio::spawn(async move {
                    let mut dealer = Async::new(dealer).unwrap();
                    for round in 0..200_u8 {
                        dealer.send(&[&[peer, round]]).await.unwrap();
                        let answer = dealer.recv().await.unwrap();
                        assert_eq!(answer.frame(0), Some(&[peer, round][..]));
                    }
                })
            })
            .collect();
        for _ in 0..800 {
            let routed = router.recv().await.unwrap();
            let frames = [routed.frame(0).unwrap()];
            let answer = router.send_frames_to(routed.envelope(), &frames, Wait::Configured);
            answer.await.unwrap();
        }
        for peer in peers {
            peer.await.unwrap();
        }
        let error = router.send_frames_to(b"nobody", &[b"x"], Wait::Never).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Unreachable);
    });
}

/// A reply that will not come is no reason to wait forever.
#[cfg(feature = "nng")]
#[test]
fn a_replier_that_goes_wakes_the_one_that_asked() {
    use tensorwire::transport::nng::{Context, Message};

    for endpoint in ["inproc://async-gone", "tcp://127.0.0.1:0"] {
        for threads in [0, 2] {
            for round in 0..5 {
                run(threads, async {
                    let context = Context::new();
                    let mut reply = context.reply().listen(endpoint).unwrap();
                    let request = context.request().dial(reply.endpoint()).unwrap();
                    let mut request = Async::new(request).unwrap();
                    request.send(&[b"how many?"]).await.unwrap();
                    let mut message = Message::default();
                    let receive = request.recv_frames(&mut message, Wait::Forever);
                    let go = async {
                        let asked = tokio::task::spawn_blocking(move || {
                            reply.recv().unwrap();
                            reply
                        });
                        let reply = asked.await.unwrap();
                        tokio::time::sleep(Duration::from_millis(round)).await;
                        drop(reply);
                    };
                    let error = tokio::join!(receive, go).0.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Disconnected, "{endpoint}");
                });
            }
        }
    }
}
