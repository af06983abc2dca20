//! Closing, with messages under way and with messages kept.

use core::time::Duration;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;

use super::super::Backend;
use super::super::support::{
    Bench, During, Stop, TOLERANCE, TRIES, ensure, expect_eq, expect_frames, failed, number_of,
    pattern, timed,
};
use crate::transport::{ErrorKind, Frames, Part, RecvFrames, SendFrames, TransportError, Wait};

pub(super) fn close_in_flight<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    const MESSAGES: u32 = 50;
    let (mut sender, mut receiver) = bench.open_default()?;
    let tensor = pattern(1, 1, 100_000);
    for number in 0..MESSAGES {
        let sent = sender.send(&[&number.to_le_bytes(), &tensor]);
        sent.during(format_args!("sending message {number}"))?;
    }
    // The receiver has not started yet.
    drop(sender);
    let mut received = Default::default();
    for number in 0..MESSAGES {
        let what = format!("message {number} of {MESSAGES}, its sender closed");
        receiver.recv_into(&mut received).during(&what)?;
        expect_eq("number", &number_of(&received)?, &number)?;
        expect_frames(what, &received, &[&number.to_le_bytes()[..], &tensor])?;
    }
    let after = receiver.recv_frames(&mut received, Wait::UpTo(A_MOMENT));
    match after.map_err(|error| (error.kind(), error)) {
        Ok(()) => return Err(failed("a message that was never sent".to_owned())),
        Err((ErrorKind::Closed | ErrorKind::Disconnected, _)) => {}
        Err((kind, error)) => ensure!(kind.is_wait(), "after the last one: {kind:?} ({error})"),
    }
    expect_eq("frames left", &received.frames().len(), &0)
}

pub(super) fn messages_outlive<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open_default()?;
    let lengths = [0_usize, 5, 33, 1000, 100_000];
    let frames = |round: usize| -> Vec<Vec<u8>> {
        let lengths = (0..).zip(lengths);
        lengths
            .map(|(frame, len)| pattern(round, frame, len))
            .collect()
    };
    let mut kept = Vec::new();
    for round in 0..4 {
        let mut parts: Vec<Part<'_>> = frames(round).into_iter().map(Part::from).collect();
        let sent = sender.send_parts(&mut parts, Wait::Configured);
        sent.during(format_args!("sending message {round}"))?;
        kept.push(receiver.recv().during(format_args!("message {round}"))?);
    }
    drop(sender);
    drop(receiver);
    for (round, message) in kept.iter().enumerate() {
        let what = format!("message {round} after its ends are gone");
        expect_frames(what, message, &frames(round))?;
    }
    Ok(())
}

pub(super) fn receiver_gone<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let setup = bench.setup().with_high_water(1).with_linger(A_MOMENT);
    let (mut sender, mut receiver) = bench.open(&setup)?;
    sender.send(&[b"there"]).during("sending")?;
    receiver.recv().during("receiving")?;
    drop(receiver);
    let frame = pattern(1, 1, 100_000);
    let mut fastest = Duration::MAX;
    for _ in 0..TRIES {
        let (took, _) = timed(|| sender.send_frames(&[&frame], Wait::UpTo(A_MOMENT)));
        fastest = fastest.min(took);
    }
    ensure!(
        fastest <= A_MOMENT.saturating_add(TOLERANCE),
        "a send to nobody that was to wait 50 ms took {} ms",
        fastest.as_millis()
    );
    let (took, ()) = timed(|| drop(sender));
    ensure!(
        took < A_MOMENT.saturating_add(bench.patience),
        "closing with a linger of 50 ms took {} ms",
        took.as_millis()
    );
    Ok(())
}

/// A wait that ends in vain.
const A_MOMENT: Duration = Duration::from_millis(50);
