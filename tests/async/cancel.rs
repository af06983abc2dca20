//! Futures that are dropped half way.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tensorwire::transport::{Part, RecvFrames, Wait};

use crate::links::over_each_link;
use crate::{Link, number, open, payload, run};

over_each_link! {
    receives_that_are_dropped_lose_nothing
    sends_that_are_dropped_are_all_or_nothing
}

/// Numbers that look random, the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Polls `future` a few times at most, then drops it.
async fn poll_for_a_while<F: Future>(dice: &mut Dice, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = dice.roll(4);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            if left.is_multiple_of(2) {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        }
    })
    .await
}

const MESSAGES: u32 = 4000;

fn receives_that_are_dropped_lose_nothing<L: Link>() {
    run(2, async {
        let (mut tx, mut rx) = open::<L>(16);
        let sender = tokio::spawn(async move {
            let mut dice = Dice(7);
            for next in 0..MESSAGES {
                let head = next.to_le_bytes();
                tx.send(&[&head, &payload(head[0])]).await.unwrap();
                if dice.roll(50) == 0 {
                    tokio::time::sleep(Duration::from_micros(dice.roll(500))).await;
                }
            }
            tx
        });
        let mut dice = Dice(3);
        let mut message = <L::Rx as RecvFrames>::Message::default();
        let (mut next, mut dropped) = (0, 0);
        while next < MESSAGES {
            let short = Duration::from_micros(dice.roll(300));
            let received = match dice.roll(3) {
                0 => poll_for_a_while(&mut dice, rx.recv_into(&mut message)).await,
                1 => tokio::time::timeout(short, rx.recv_into(&mut message))
                    .await
                    .ok(),
                _ => Some(rx.recv_frames(&mut message, Wait::Forever).await),
            };
            let Some(received) = received else {
                dropped += 1;
                continue;
            };
            received.unwrap();
            assert_eq!(number(&message), next, "{}", L::NAME);
            next += 1;
        }
        assert!(dropped > 10, "{}: {dropped} dropped", L::NAME);
        sender.await.unwrap();
    });
}

fn sends_that_are_dropped_are_all_or_nothing<L: Link>() {
    run(2, async {
        let (mut tx, mut rx) = open::<L>(2);
        let receiver = tokio::spawn(async move {
            let (mut dice, mut received) = (Dice(5), Vec::new());
            loop {
                let message = rx.recv().await.unwrap();
                let next = number(&message);
                if next == u32::MAX {
                    return received;
                }
                received.push(next);
                if dice.roll(20) == 0 {
                    tokio::time::sleep(Duration::from_micros(dice.roll(1000))).await;
                }
            }
        });
        let mut dice = Dice(11);
        let (mut sent, mut dropped) = (Vec::new(), 0);
        for next in 0..MESSAGES {
            let head = next.to_le_bytes();
            let payload = payload(head[0]);
            let frames: [&[u8]; 2] = [&head, &payload];
            let done = if dice.roll(2) == 0 {
                poll_for_a_while(&mut dice, tx.send(&frames)).await
            } else {
                let mut parts = vec![Part::from(&head[..]), Part::from(payload.clone())];
                let send = tx.send_parts(&mut parts, Wait::Configured);
                let done = poll_for_a_while(&mut dice, send).await;
                assert_eq!(parts.len(), if done.is_some() { 0 } else { 2 });
                done
            };
            match done {
                Some(done) => {
                    done.unwrap();
                    sent.push(next);
                }
                None => dropped += 1,
            }
        }
        let last = u32::MAX.to_le_bytes();
        tx.send(&[&last, &payload(last[0])]).await.unwrap();
        assert!(dropped > 10, "{}: {dropped} dropped", L::NAME);
        assert_eq!(receiver.await.unwrap(), sent, "{}", L::NAME);
    });
}
