//! Full queues, slow readers, several threads.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use alloc::format;
use alloc::vec::Vec;

use std::thread;
use std::time::Instant;

use super::super::Backend;
use super::super::support::{
    Bench, During, Stop, both, ensure, expect_eq, expect_frames, expect_kind, expect_next, fill,
    filler, finish, number_of, pattern, start,
};
use crate::transport::{ErrorKind, Frames, RecvFrames, SendFrames, Wait};

pub(super) fn back_pressure<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open(&bench.setup().with_high_water(2))?;
    let (sent, error) = fill(&mut sender, Wait::UpTo(A_MOMENT), 0, &filler())?;
    expect_kind("a full queue", Err::<(), _>(error), ErrorKind::TimedOut)?;
    let total = sent.saturating_add(20);
    let patience = bench.patience;
    thread::scope(|scope| {
        let sending = start(scope, move || {
            for number in sent..total {
                // Trying until there is room neither skips a message nor repeats one.
                let start = Instant::now();
                while let Err(error) = sender.try_send(&[&number.to_le_bytes(), &[4; 100]]) {
                    expect_kind("try_send", Err::<(), _>(error), ErrorKind::WouldBlock)?;
                    ensure!(start.elapsed() < patience, "message {number}: no room");
                    thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(sender)
        });
        let mut received = Default::default();
        let receiving = (0..total).try_for_each(|number| {
            let got = receiver.recv_into(&mut received);
            got.during(format_args!("message {number}"))?;
            expect_eq("number", &number_of(&received)?, &number)?;
            expect_eq("frames", &received.frames().len(), &2)
        });
        both(finish(sending), receiving)?;
        let more = receiver.recv_frames(&mut received, Wait::Never);
        ensure!(more.is_err(), "a message that was never sent");
        Ok(())
    })
}

pub(super) fn slow_reader<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    const MESSAGES: u32 = 100_000;
    const HIGH_WATER: u32 = 100;
    const BYTES: usize = 1024;
    // At each end a queue, and what the system has.
    const MOST_UNDER_WAY: u32 = 2 * HIGH_WATER + (16 << 20) / 1024;
    let (mut sender, mut receiver) = bench.open(&bench.setup().with_high_water(HIGH_WATER))?;
    let sent = &AtomicU32::new(0);
    let done = &AtomicBool::new(false);
    let tail = &pattern(1, 1, BYTES.saturating_sub(4));
    thread::scope(|scope| {
        let sending = start(scope, move || {
            let sending = (0..MESSAGES).try_for_each(|number| {
                let result = sender.send(&[&number.to_le_bytes(), tail]);
                sent.store(number.saturating_add(1), Ordering::SeqCst);
                result.during(format_args!("sending message {number}"))
            });
            done.store(true, Ordering::SeqCst);
            sending.map(|()| sender)
        });
        let mut received = Default::default();
        let mut receive = |number: u32| -> Result<(), Stop> {
            // Now and then the reader does nothing until the sender is stuck, or done.
            if number.is_multiple_of(25_000) {
                let stuck = wait_until_still(sent, done, bench.patience);
                let under_way = stuck.saturating_sub(number);
                ensure!(
                    under_way <= MOST_UNDER_WAY,
                    "{under_way} messages of {BYTES} bytes under way, at a high-water mark of \
                     {HIGH_WATER}"
                );
            }
            let got = receiver.recv_into(&mut received);
            got.during(format_args!("message {number}"))?;
            let actual = number_of(&received)?;
            expect_eq("number of the next message", &actual, &number)?;
            let last = received.frame(1).unwrap_or_default();
            ensure!(
                last == tail.as_slice() && received.frames().len() == 2,
                "message {number}: its tail is another"
            );
            Ok(())
        };
        let receiving = (0..MESSAGES).try_for_each(&mut receive);
        if receiving.is_err() {
            // So that the sender is not stuck in vain.
            drop(receiver);
        }
        both(finish(sending), receiving).map(drop)
    })
}

/// Waits until a sender has not sent anything for a while; returns how many it has sent.
fn wait_until_still(sent: &AtomicU32, done: &AtomicBool, patience: Duration) -> u32 {
    let start = Instant::now();
    let mut last = sent.load(Ordering::SeqCst);
    while !done.load(Ordering::SeqCst) && start.elapsed() < patience {
        thread::sleep(A_MOMENT);
        let now = sent.load(Ordering::SeqCst);
        if now == last {
            break;
        }
        last = now;
    }
    sent.load(Ordering::SeqCst)
}

pub(super) fn two_pairs<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    const MESSAGES: u32 = 2000;
    let pairs = [bench.open_default()?, bench.open_default()?];
    thread::scope(|scope| {
        let mut parts = Vec::new();
        for (index, (mut sender, mut receiver)) in (0_u8..).zip(pairs) {
            let sending = start(scope, move || {
                for number in 0..MESSAGES {
                    let sent = sender.send(&[&number.to_le_bytes(), &[index; 40]]);
                    sent.during(format_args!("pair {index}, sending message {number}"))?;
                }
                Ok(sender)
            });
            let receiving = start(scope, move || {
                let mut received = Default::default();
                for number in 0..MESSAGES {
                    let what = format!("pair {index}, message {number}");
                    let expected = [&number.to_le_bytes()[..], &[index; 40]];
                    expect_next(what, &mut receiver, &mut received, &expected)?;
                }
                Ok(receiver)
            });
            parts.push((sending, receiving));
        }
        let ends = parts.into_iter();
        let ends = ends.map(|(sending, receiving)| both(finish(sending), finish(receiving)));
        // All have to end before the first failure is told.
        let ends: Vec<_> = ends.collect();
        ends.into_iter().try_for_each(|end| end.map(drop))
    })
}

pub(super) fn moved_ends<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open_default()?;
    for round in 0..4_u32 {
        (sender, receiver) = thread::scope(|scope| {
            let sending = start(scope, move || {
                let sent = sender.send(&[&round.to_le_bytes(), &[7; 5000]]);
                sent.during(format_args!("sending in round {round}"))?;
                Ok(sender)
            });
            let receiving = start(scope, move || {
                let received = receiver.recv().during(format_args!("round {round}"))?;
                let expected = [&round.to_le_bytes()[..], &[7; 5000]];
                expect_frames(format_args!("round {round}"), &received, &expected)?;
                Ok(receiver)
            });
            both(finish(sending), finish(receiving))
        })?;
    }
    Ok(())
}

/// How long a sender has to make no headway to be stuck.
const A_MOMENT: Duration = Duration::from_millis(60);
