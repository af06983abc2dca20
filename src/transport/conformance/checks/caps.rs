//! Messages over the caps.

use core::time::Duration;

use alloc::format;
use alloc::vec::Vec;

use std::time::Instant;

use super::super::Backend;
use super::super::support::{
    Bench, During, Stop, borrowed, ensure, expect_eq, expect_frames, failed, message, number_of,
};
use crate::transport::{
    Cap, Caps, ErrorKind, Frames, RecvFrames, SendFrames, TransportError, Wait,
};

pub(super) fn frame_bytes<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    // Not below what a library needs for its own handshake.
    let caps = Caps::new().with_frame_bytes(1000);
    let caps = caps.with_frames(8).with_message_bytes(100_000);
    let bad: &[&[usize]] = &[&[1001], &[8, 1001], &[8, 0, 50_000, 7], &[1001, 1001, 1001]];
    drained(bench, caps, bad, &[4, 0, 1000])
}

pub(super) fn frames<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let caps = Caps::new().with_frames(4);
    let caps = caps.with_frame_bytes(10_000).with_message_bytes(100_000);
    let bad: &[&[usize]] = &[&[1; 5], &[0; 60], &[500; 17]];
    drained(bench, caps, bad, &[4, 0, 1000, 1])
}

pub(super) fn message_bytes<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let caps = Caps::new().with_message_bytes(1000).with_frames(8);
    let caps = caps.with_frame_bytes(1000);
    let bad: &[&[usize]] = &[&[500, 400, 101], &[999, 2, 300, 0], &[1000, 1000, 1000]];
    drained(bench, caps, bad, &[4, 0, 996])
}

/// Sends messages that are over `caps`, each followed by good ones.
fn drained<B: Backend>(
    bench: &Bench<B>,
    caps: Caps,
    bad: &[&[usize]],
    good: &[usize],
) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open(&bench.setup().with_caps(caps))?;
    let mut received: <B::Receiver as RecvFrames>::Message = Default::default();
    let mut sent = 0_u32;
    let mut last = None;
    let mut send_good = |sender: &mut B::Sender, wait: Wait| {
        let frames = numbered(sent, good);
        let result = sender.send_frames(&borrowed(&frames), wait);
        let number = sent;
        if result.is_ok() {
            sent = sent.saturating_add(1);
        }
        result.map(|()| number)
    };
    // The connection stands before anything is refused.
    let first = send_good(&mut sender, Wait::Configured).during("sending a good message")?;
    receiver
        .recv_into(&mut received)
        .during("the first good message")?;
    expect_frames("the first good message", &received, &numbered(first, good))?;
    for &lengths in bad {
        let what = format!("after a message of frames of {lengths:?} bytes");
        let frames = message(0, lengths);
        let frames = borrowed(&frames);
        let refused = match sender.send(&frames) {
            Ok(()) => false,
            // By the sender, which may know the caps too.
            Err(error) if !error.kind().is_wait() => true,
            Err(error) => return Err(error).during("sending a large message"),
        };
        let next = send_good(&mut sender, Wait::Configured).during("sending a good message")?;
        let mut reported = refused;
        let mut lost_connection = false;
        let start = Instant::now();
        loop {
            ensure!(
                start.elapsed() < bench.patience,
                "{what}: no good message within {} s",
                bench.patience.as_secs()
            );
            match receiver.recv_frames(&mut received, Wait::UpTo(A_MOMENT)) {
                Ok(()) => {
                    let number = number_of(&received)?;
                    expect_frames(&what, &received, &numbered(number, good))?;
                    ensure!(
                        last.is_none_or(|last| number > last),
                        "{what}: message {number} after message {last:?}"
                    );
                    last = Some(number);
                    if number < next {
                        continue;
                    }
                    let exact = reported && !lost_connection;
                    ensure!(
                        !exact || number == next,
                        "{what}: message {number} came instead of {next}"
                    );
                    break;
                }
                Err(error) => {
                    let left = received.frames().len();
                    expect_eq(format_args!("{what}: frames left"), &left, &0)?;
                    match error.kind() {
                        ErrorKind::CapExceeded if !reported => {
                            truthful(&error, caps, lengths)?;
                            reported = true;
                        }
                        ErrorKind::Disconnected => lost_connection = true,
                        kind if kind.is_wait() && reported && !lost_connection => {}
                        kind if kind.is_wait() => {
                            // A connection that was cut takes along what was on it.
                            let again = send_good(&mut sender, Wait::UpTo(A_MOMENT));
                            if let Err(error) = again
                                && error.kind() == ErrorKind::Closed
                            {
                                return Err(error).during("sending a good message");
                            }
                        }
                        kind => {
                            return Err(failed(format!("{what}: {kind:?} ({error})")));
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// A good message that tells its number.
fn numbered(number: u32, lengths: &[usize]) -> Vec<Vec<u8>> {
    let index = usize::try_from(number).unwrap_or_default();
    let mut frames = message(index, lengths);
    if let Some(first) = frames.first_mut() {
        first.clear();
        first.extend_from_slice(&number.to_le_bytes());
    }
    frames
}

/// Fails the check unless the error tells what was broken by how much, if it tells.
fn truthful<E: TransportError>(error: &E, caps: Caps, lengths: &[usize]) -> Result<(), Stop> {
    let Some(refused) = error.refused() else {
        return Ok(());
    };
    let sum = lengths.iter().sum::<usize>();
    let (limit, possible) = match refused.cap() {
        Cap::FrameBytes => (caps.frame_bytes(), lengths.to_vec()),
        Cap::Frames => (caps.frames(), Vec::from([lengths.len()])),
        Cap::MessageBytes => (caps.message_bytes(), Vec::from([sum])),
    };
    expect_eq("limit of the cap", &refused.limit(), &limit)?;
    let actual = refused.actual();
    ensure!(
        actual > limit && possible.contains(&actual),
        "frames of {lengths:?} bytes refused as {actual} of {limit} ({:?})",
        refused.cap()
    );
    Ok(())
}

/// How long to look for a message before another one is sent.
const A_MOMENT: Duration = Duration::from_millis(50);
