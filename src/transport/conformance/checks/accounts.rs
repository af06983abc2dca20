//! What messages and transports tell of themselves.

use core::time::Duration;

use alloc::borrow::ToOwned;
use alloc::format;

use super::super::Backend;
use super::super::support::{
    Bench, During, Stop, borrowed, ensure, expect_eq, expect_next, fill, filler, message,
};
use crate::convert::to_u64;
use crate::transport::{
    Cap, Caps, Counters, ErrorKind, Frames, Receipt, RecvFrames, SendFrames, TransportError, Wait,
};

pub(super) fn failed_receive<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let caps = bench.setup().caps().with_frames(2);
    let (mut sender, mut receiver) = bench.open(&bench.setup().with_caps(caps))?;
    let mut received = Default::default();
    for wait in [Wait::Never, Wait::UpTo(Duration::from_millis(10))] {
        sender.send(&[b"first", b"message"]).during("sending")?;
        let expected = [&b"first"[..], b"message"];
        expect_next("a message", &mut receiver, &mut received, &expected)?;
        let failed = receiver.recv_frames(&mut received, wait);
        ensure!(failed.is_err(), "a message that was never sent");
        expect_eq(
            format!("frames left, {wait:?}"),
            &received.frames().len(),
            &0,
        )?;
        expect_eq("bytes left", &received.byte_count(), &0)?;
        expect_eq("frame 0", &received.frame(0), &None)?;
    }
    Ok(())
}

pub(super) fn storage_reuse<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    // The largest first, so that nothing has to grow after that.
    const LENGTHS: &[&[usize]] = &[
        &[20_000, 20_000, 20_000, 20_000],
        &[0],
        &[20, 20_000],
        &[1],
        &[33, 0, 33, 5],
        &[0, 0, 0],
        &[8192, 8193],
    ];
    let (mut sender, mut receiver) = bench.open_default()?;
    let mut received: <B::Receiver as RecvFrames>::Message = Default::default();
    for round in 0..20_usize {
        for (index, lengths) in LENGTHS.iter().enumerate() {
            let number = round.saturating_mul(LENGTHS.len()).saturating_add(index);
            let frames = message(number, lengths);
            let what = format!("message {number}");
            sender.send(&borrowed(&frames)).during(&what)?;
            expect_next(&what, &mut receiver, &mut received, &frames)?;
            let allocations = received
                .receipt()
                .map_or(0, |receipt| receipt.allocations());
            ensure!(
                round < 2 || allocations == 0,
                "{what}: {allocations} allocations, after larger ones"
            );
        }
        if round % 5 == 0 {
            received.clear();
            expect_eq("frames of a cleared message", &received.frames().len(), &0)?;
        }
    }
    Ok(())
}

pub(super) fn receipts<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open_default()?;
    let mut received = Default::default();
    for (number, lengths) in [&[0][..], &[10, 100], &[64, 5000, 100_000], &[0, 0]]
        .into_iter()
        .enumerate()
    {
        let frames = message(number, lengths);
        sender.send(&borrowed(&frames)).during("sending")?;
        let what = format!("message of {lengths:?} bytes");
        expect_next(&what, &mut receiver, &mut received, &frames)?;
        let Some(receipt) = received.receipt() else {
            return Err(Stop::Skipped("its messages have no receipt".to_owned()));
        };
        plausible(&what, &receipt, received.byte_count(), lengths.len())?;
    }
    Ok(())
}

fn plausible(what: &str, receipt: &Receipt, bytes: usize, frames: usize) -> Result<(), Stop> {
    let copied = receipt.copied_bytes();
    ensure!(copied <= bytes, "{what}: {copied} bytes copied of {bytes}");
    let retained = receipt.retained_bytes();
    ensure!(
        retained >= bytes,
        "{what}: {retained} bytes retained of {bytes}"
    );
    let allocations = receipt.allocations();
    // For each frame its bytes, and a few for lists to grow.
    let most = frames.saturating_mul(2).saturating_add(8);
    ensure!(
        allocations <= most,
        "{what}: {allocations} allocations for {frames} frames"
    );
    Ok(())
}

pub(super) fn counters<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let caps = Caps::new().with_frames(3).with_frame_bytes(8 << 20);
    // What fills the queue in the end is not waited for.
    let setup = bench.setup().with_linger(Duration::from_millis(50));
    let setup = setup.with_caps(caps.with_message_bytes(8 << 20));
    let (mut sender, mut receiver) = bench.open(&setup.with_high_water(2))?;
    let of = |sender: &B::Sender, receiver: &B::Receiver| {
        let sending = bench.backend.sender_counters(sender);
        let receiving = bench.backend.receiver_counters(receiver);
        (sending, receiving)
    };
    if of(&sender, &receiver) == (None, None) {
        return Err(Stop::Skipped("it does not count".to_owned()));
    }
    let mut received: <B::Receiver as RecvFrames>::Message = Default::default();
    let mut bytes = 0_u64;
    for number in 0..5_usize {
        let frames = message(number, &[number, 100]);
        sender.send(&borrowed(&frames)).during("sending")?;
        expect_next("a message", &mut receiver, &mut received, &frames)?;
        bytes = bytes.saturating_add(to_u64(received.byte_count()));
    }
    // Nothing there, which is no event.
    let _ = receiver.recv_frames(&mut received, Wait::Never);
    let (sending, receiving) = of(&sender, &receiver);
    let whole = |counters: Counters| {
        [
            ("messages sent", counters.messages_sent),
            ("bytes sent", counters.bytes_sent),
            ("messages received", counters.messages_received),
            ("bytes received", counters.bytes_received),
        ]
    };
    let expect = |end: &str, counters: Option<Counters>, expected: [u64; 4]| {
        let Some(counters) = counters else {
            return Ok(());
        };
        let mut pairs = whole(counters).into_iter().zip(expected);
        pairs.try_for_each(|((what, actual), expected)| {
            expect_eq(format!("{end}: {what}"), &actual, &expected)
        })
    };
    expect("sender", sending, [5, bytes, 0, 0])?;
    expect("receiver", receiving, [0, 0, 5, bytes])?;

    // One over a cap, if it is the receiver who refuses it.
    let frames = message(0, &[4; 5]);
    let refused = sender.send(&borrowed(&frames)).is_ok()
        && match receiver.recv_frames(&mut received, Wait::UpTo(Duration::from_millis(100))) {
            Ok(()) => false,
            Err(error) => {
                let cap = error.refused().map(|refused| refused.cap());
                error.kind() == ErrorKind::CapExceeded && cap == Some(Cap::Frames)
            }
        };
    if let (true, Some(receiving)) = (refused, of(&sender, &receiver).1) {
        let count = &receiving.refused_frames;
        expect_eq("receiver: refused for the cap on frames", count, &1)?;
        expect_eq(
            "receiver: messages received",
            &receiving.messages_received,
            &5,
        )?;
    }

    // A queue that is full, if there is one.
    let before = of(&sender, &receiver).0.map(|counters| counters.queue_full);
    let wait = Wait::UpTo(Duration::from_millis(50));
    let filled = fill(&mut sender, wait, 0, &filler());
    let after = of(&sender, &receiver).0.map(|counters| counters.queue_full);
    if let (Ok((_, error)), Some(before), Some(after)) = (filled, before, after)
        && error.kind().is_wait()
    {
        let once = before.saturating_add(1);
        expect_eq("sender: sends that found a full queue", &after, &once)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (what it says, bytes and frames of the message, whether it is possible)
    const RECEIPTS: &[(Receipt, usize, usize, bool)] = &[
        (Receipt::new().with_retained_bytes(10), 10, 1, true),
        (Receipt::new().with_retained_bytes(9), 10, 1, false),
        (
            Receipt::new().with_retained_bytes(10).with_copied_bytes(11),
            10,
            1,
            false,
        ),
        (Receipt::new().with_allocations(11), 0, 1, false),
    ];

    #[test]
    fn impossible_receipts_are_told_from_possible_ones() {
        for (receipt, bytes, frames, possible) in RECEIPTS {
            let result = plausible("test", receipt, *bytes, *frames);
            assert_eq!(result.is_ok(), *possible, "{receipt:?}");
        }
    }
}
