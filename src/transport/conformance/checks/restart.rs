//! Peers that go and come back.

use core::time::Duration;

use alloc::borrow::ToOwned;
use alloc::format;

use std::thread;
use std::time::Instant;

use super::super::Backend;
use super::super::support::{
    Bench, During, Stop, both, ensure, expect_frames, expect_next, finish, number_of, pattern,
    start,
};
use crate::transport::{ErrorKind, Frames, RecvFrames, SendFrames, TransportError, Wait};

pub(super) fn receiver<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    // What went to a receiver that is gone is not waited for in the end.
    let setup = bench.setup().with_linger(Duration::from_secs(1));
    let (mut sender, mut receiver) = bench.open(&setup)?;
    let mut received: <B::Receiver as RecvFrames>::Message = Default::default();
    let tail = pattern(1, 1, 3000);
    let mut next = 0_u32;
    let mut last = None;
    for round in 0..3 {
        let what = format!("after {round} restarts");
        let start = Instant::now();
        // Numbered from here on: what is received of them, the new receiver has.
        let first = next;
        loop {
            ensure!(
                start.elapsed() < bench.patience,
                "{what}: no message within {} s, {} sent",
                bench.patience.as_secs(),
                next.saturating_sub(first)
            );
            let sent = sender.send_frames(&[&next.to_le_bytes(), &tail], Wait::UpTo(A_MOMENT));
            match sent.map_err(|error| (error.kind(), error)) {
                Ok(()) => next = next.saturating_add(1),
                Err((ErrorKind::Closed, error)) => return Err(error).during(what),
                Err(_) => {}
            }
            let got = receiver.recv_frames(&mut received, Wait::UpTo(A_MOMENT));
            if let Err(error) = got {
                let kind = error.kind();
                let legal = kind.is_wait() || kind == ErrorKind::Disconnected;
                ensure!(legal, "{what}: {kind:?} ({error})");
                continue;
            }
            let number = number_of(&received)?;
            let expected = [&number.to_le_bytes()[..], &tail];
            expect_frames(format!("{what}, message {number}"), &received, &expected)?;
            ensure!(
                last.is_none_or(|last| number > last) && number < next,
                "{what}: message {number} after message {last:?}, {next} sent"
            );
            last = Some(number);
            if number >= first {
                break;
            }
        }
        // A process that is restarted keeps no messages.
        received.clear();
        let restarted = bench.backend.restart_receiver(receiver, &setup);
        let Some(restarted) = restarted.during("restarting the receiver")? else {
            return Err(Stop::Skipped(CANNOT.to_owned()));
        };
        receiver = restarted;
    }
    Ok(())
}

pub(super) fn sender<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let setup = bench.setup();
    let (mut sender, mut receiver) = bench.open(&setup)?;
    let mut received = Default::default();
    let mut next = |receiver: &mut B::Receiver, round: u32, number: u32| {
        let what = format!("message {number} after {round} restarts");
        let expected = [round.to_le_bytes(), number.to_le_bytes()];
        expect_next(what, receiver, &mut received, &expected)
    };
    for round in 0..4_u32 {
        // The first one is received meanwhile: some receivers get to know a sender so.
        sender = thread::scope(|scope| {
            let sending = start(scope, move || {
                for number in 0..10_u32 {
                    let sent = sender.send(&[&round.to_le_bytes(), &number.to_le_bytes()]);
                    let what = format_args!("sending message {number} after {round} restarts");
                    sent.during(what)?;
                }
                Ok(sender)
            });
            let receiving = next(&mut receiver, round, 0);
            both(finish(sending), receiving).map(|(sender, ())| sender)
        })?;
        let restarted = bench.backend.restart_sender(sender, &setup);
        let Some(restarted) = restarted.during("restarting the sender")? else {
            return Err(Stop::Skipped(CANNOT.to_owned()));
        };
        sender = restarted;
        (1..10).try_for_each(|number| next(&mut receiver, round, number))?;
    }
    let more = receiver.recv_frames(&mut received, Wait::UpTo(A_MOMENT));
    ensure!(more.is_err(), "a message that was never sent");
    Ok(())
}

/// How long a peer is waited for, at a time.
const A_MOMENT: Duration = Duration::from_millis(20);

const CANNOT: &str = "its connections end with their peer";
