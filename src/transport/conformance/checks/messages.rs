//! Order, wholeness, frames of all kinds.

use core::time::Duration;

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use super::super::support::{
    Bench, During, Stop, borrowed, both, ensure, expect_eq, expect_frames, expect_kind,
    expect_next, finish, message, start,
};
use super::super::{Backend, Scale};
use crate::transport::{Caps, ErrorKind, RecvFrames, SendFrames, TransportError, Wait};

/// Lengths about the limits where transports change how they keep a frame.
const LENGTHS: &[usize] = &[
    0, 1, 12, 29, 30, 32, 33, 34, 64, 255, 256, 4095, 8192, 8193, 20_001,
];

pub(super) fn order<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let lengths = |number: usize| -> Vec<usize> {
        let lengths = LENGTHS.iter().cycle().skip(number);
        lengths
            .take((number % 64).saturating_add(1))
            .copied()
            .collect()
    };
    const MESSAGES: usize = 66;
    let (mut sender, mut receiver) = bench.open_default()?;
    thread::scope(|scope| {
        let sending = start(scope, move || {
            for number in 0..MESSAGES {
                let frames = message(number, &lengths(number));
                let sent = sender.send(&borrowed(&frames));
                sent.during(format_args!("sending message {number}"))?;
            }
            Ok(sender)
        });
        let mut received = Default::default();
        let receiving = (0..MESSAGES).try_for_each(|number| {
            let expected = message(number, &lengths(number));
            let what = format!("message {number}");
            expect_next(what, &mut receiver, &mut received, &expected)
        });
        both(finish(sending), receiving).map(drop)
    })
}

pub(super) fn wholeness<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    const LENGTHS: [usize; 17] = [
        8, 70_000, 0, 70_000, 70_000, 1, 70_000, 70_000, 33, 70_000, 70_000, 300, 70_000, 70_000,
        70_000, 70_000, 70_000,
    ];
    const MESSAGES: usize = 60;
    let (mut sender, mut receiver) = bench.open(&bench.setup().with_high_water(1))?;
    let patience = bench.patience;
    // Disconnected once the sender was refused, or is through.
    let (refused, first_refusal) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let sending = start(scope, move || {
            let mut refused = Some(refused);
            for number in 0..MESSAGES {
                let frames = message(number, &LENGTHS);
                let frames = borrowed(&frames);
                // Tries in vain first, if the queue is full.
                match sender.try_send(&frames) {
                    Ok(()) => continue,
                    Err(error) if error.kind().is_wait() => drop(refused.take()),
                    Err(error) => return Err(error).during(format_args!("message {number}")),
                }
                let sent = sender.send_frames(&frames, Wait::UpTo(patience));
                sent.during(format_args!("sending message {number}"))?;
            }
            Ok(sender)
        });
        // A reader as fast as the sender would never fill the queue.
        let _ = first_refusal.recv_timeout(patience);
        let mut received = Default::default();
        let receiving = (0..MESSAGES).try_for_each(|number| {
            let expected = message(number, &LENGTHS);
            if number % 2 == 0 {
                let what = format!("message {number}");
                return expect_next(what, &mut receiver, &mut received, &expected);
            }
            // Every other one is asked for in vain, most of the time, while it arrives.
            let what = format!("message {number}, asked for while it arrives");
            let begin = Instant::now();
            let waits = [Wait::Never, Wait::UpTo(Duration::from_millis(1))];
            for wait in waits.into_iter().cycle() {
                match receiver.recv_frames(&mut received, wait) {
                    Ok(()) => break,
                    Err(error) if error.kind().is_wait() => {}
                    Err(error) => return Err(error).during(what),
                }
                ensure!(begin.elapsed() < patience, "{what}: it never came");
            }
            expect_frames(what, &received, &expected)
        });
        both(finish(sending), receiving).map(drop)
    })
}

pub(super) fn empty_frames<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    const EMPTY: &[u8] = b"";
    const MESSAGES: &[&[&[u8]]] = &[
        &[b""],
        &[b"", b""],
        &[b"first", b"", b"last"],
        &[b"", b"behind an empty one"],
        &[b"before an empty one", b""],
        &[b"", b"", b"between", b"", b""],
        &[EMPTY; 63],
        &[b"done"],
    ];
    let (mut sender, mut receiver) = bench.open_default()?;
    let mut received = Default::default();
    for frames in MESSAGES {
        let lengths: Vec<usize> = frames.iter().map(|frame| frame.len()).collect();
        let what = format!("frames of {lengths:?} bytes");
        sender.send(frames).during(&what)?;
        expect_next(&what, &mut receiver, &mut received, frames)?;
    }
    Ok(())
}

pub(super) fn frame_counts<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open_default()?;
    let mut received = Default::default();
    for count in [1_usize, 2, 63, 1024, 4096, 1] {
        let lengths: Vec<usize> = LENGTHS.iter().copied().filter(|&len| len < 1000).collect();
        let lengths: Vec<usize> = lengths.iter().copied().cycle().take(count).collect();
        let frames = message(count, &lengths);
        let what = format!("message of {count} frames");
        sender.send(&borrowed(&frames)).during(&what)?;
        expect_next(&what, &mut receiver, &mut received, &frames)?;
    }
    Ok(())
}

pub(super) fn payload_sizes<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    const MIB: usize = 1 << 20;
    const QUICK: &[usize] = &[
        0,
        1,
        31,
        32,
        33,
        4095,
        4096,
        8193,
        65_535,
        65_536,
        1_000_003,
        MIB,
        16 * MIB,
        1,
    ];
    const FULL: &[usize] = &[64 * MIB, 256 * MIB, 1];
    let sizes = match bench.scale {
        Scale::Quick => QUICK.to_vec(),
        Scale::Full => [QUICK, FULL].concat(),
    };
    let largest = sizes.iter().copied().max().unwrap_or_default();
    let caps = Caps::new().with_frames(2).with_frame_bytes(largest);
    let caps = caps.with_message_bytes(largest.saturating_add(64));
    let (mut sender, mut receiver) =
        bench.open(&bench.setup().with_caps(caps).with_high_water(2))?;
    thread::scope(|scope| {
        let sending = start(scope, {
            let sizes = sizes.clone();
            move || {
                for size in sizes {
                    let frames = message(size, &[9, size]);
                    let sent = sender.send(&borrowed(&frames));
                    sent.during(format_args!("sending {size} bytes"))?;
                }
                Ok(sender)
            }
        });
        let mut received = Default::default();
        let receiving = sizes.iter().try_for_each(|&size| {
            let expected = message(size, &[9, size]);
            let what = format!("payload of {size} bytes");
            expect_next(what, &mut receiver, &mut received, &expected)
        });
        both(finish(sending), receiving).map(drop)
    })
}

pub(super) fn no_frames<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open_default()?;
    let refused = ErrorKind::InvalidInput;
    expect_kind("send of no frames", sender.send(&[]), refused)?;
    expect_kind("try_send of no frames", sender.try_send(&[]), refused)?;
    let mut parts = vec![];
    let sent = sender.send_parts(&mut parts, Wait::Never);
    expect_kind("send_parts of no parts", sent, refused)?;
    expect_eq("parts left", &parts.len(), &0)?;
    sender.send(&[b"next"]).during("sending the next message")?;
    let received = receiver.recv().during("receiving the next message")?;
    expect_frames("the next message", &received, &[b"next"])?;
    let more = receiver.recv_frames(&mut Default::default(), Wait::Never);
    ensure!(more.is_err(), "a message that was never sent");
    Ok(())
}
