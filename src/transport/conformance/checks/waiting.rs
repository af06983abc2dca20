//! Timeouts, and not waiting at all.

use core::time::Duration;

use alloc::format;
use alloc::string::String;

use std::thread;
use std::time::Instant;

use super::super::Backend;
use super::super::support::{
    Bench, During, Stop, TOLERANCE, TRIES, both, ensure, expect_eq, expect_frames, expect_kind,
    expect_next, failed, fill, filler, finish, number_of, start, timed,
};
use crate::transport::{ErrorKind, Frames, RecvFrames, SendFrames, TransportError, Wait};

pub(super) fn receive_timeout<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open(&bench.setup().with_timeout(SHORT))?;
    let mut received = Default::default();
    for (wait, time) in TIMES {
        expect_time(format!("receive, {wait:?}"), time, || {
            receiver.recv_frames(&mut received, wait)
        })?;
        expect_eq("frames left", &received.frames().len(), &0)?;
    }
    for number in 0_u8..3 {
        let sent = sender.send_frames(&[&[number], b"tail"], Wait::UpTo(bench.patience));
        sent.during("sending after a timeout")?;
    }
    for number in 0_u8..3 {
        let patience = Wait::UpTo(bench.patience);
        let what = format!("message {number} after a timeout");
        receiver
            .recv_frames(&mut received, patience)
            .during(&what)?;
        expect_frames(&what, &received, &[&[number][..], b"tail"])?;
    }
    Ok(())
}

pub(super) fn send_timeout<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let setup = bench.setup().with_timeout(SHORT).with_high_water(1);
    let (mut sender, mut receiver) = bench.open(&setup)?;
    let filler = filler();
    let mut sent = 0;
    for (wait, time) in TIMES {
        (sent, _) = fill(&mut sender, wait, sent, &filler)?;
        let refused = ErrorKind::TimedOut;
        let fastest = fastest_refusal(&mut sender, wait, refused, &mut sent, &filler)?;
        expect_late(format!("send, {wait:?}"), time, fastest)?;
    }
    expect_numbers(bench, &mut receiver, sent)?;
    // And what was refused was not sent.
    let last = sender.send_frames(&[&sent.to_le_bytes(), b"last"], Wait::UpTo(bench.patience));
    last.during("sending when there is room again")?;
    let patience = Wait::UpTo(bench.patience);
    let mut received = Default::default();
    receiver
        .recv_frames(&mut received, patience)
        .during("the last message")?;
    expect_frames(
        "the last message",
        &received,
        &[&sent.to_le_bytes()[..], b"last"],
    )
}

pub(super) fn try_receive<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open_default()?;
    let mut received = Default::default();
    expect_at_once("try_recv_into", ErrorKind::WouldBlock, || {
        receiver.try_recv_into(&mut received)
    })?;
    for number in 0_u8..3 {
        sender.send(&[&[number], b"there"]).during("sending")?;
        let start = Instant::now();
        while let Err(error) = receiver.try_recv_into(&mut received) {
            expect_kind("try_recv_into", Err::<(), _>(error), ErrorKind::WouldBlock)?;
            ensure!(
                start.elapsed() < bench.patience,
                "message {number} never came"
            );
            thread::sleep(Duration::from_millis(1));
        }
        let what = format!("message {number}");
        expect_frames(what, &received, &[&[number][..], b"there"])?;
    }
    expect_at_once("try_recv_into in the end", ErrorKind::WouldBlock, || {
        receiver.try_recv_into(&mut received)
    })
}

pub(super) fn try_send<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    refused_at_once(bench, Wait::Never, ErrorKind::WouldBlock)
}

pub(super) fn zero_wait<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open_default()?;
    let zero = Wait::UpTo(Duration::ZERO);
    let mut received = Default::default();
    expect_at_once("receive, no time to wait", ErrorKind::TimedOut, || {
        receiver.recv_frames(&mut received, zero)
    })?;
    sender.send(&[b"there"]).during("sending")?;
    let start = Instant::now();
    while let Err(error) = receiver.recv_frames(&mut received, zero) {
        expect_kind("receive", Err::<(), _>(error), ErrorKind::TimedOut)?;
        ensure!(start.elapsed() < bench.patience, "the message never came");
        thread::sleep(Duration::from_millis(1));
    }
    expect_frames("what was there", &received, &[b"there"])?;
    refused_at_once(bench, zero, ErrorKind::TimedOut)
}

pub(super) fn wakeup<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    // Forever is longer than what is configured.
    let (mut sender, mut receiver) = bench.open(&bench.setup().with_timeout(SHORT))?;
    thread::scope(|scope| {
        let receiving = start(scope, move || {
            let mut received = Default::default();
            let got = receiver.recv_frames(&mut received, Wait::Forever);
            got.during("receiving")?;
            expect_frames("what woke the receive", &received, &[b"now"])?;
            Ok(receiver)
        });
        thread::sleep(OTHER);
        let sent = sender.send_frames(&[b"now"], Wait::UpTo(bench.patience));
        let sending = sent.during("sending");
        both(sending, finish(receiving)).map(drop)
    })
}

/// Fills a pair until a send with this `wait` is refused, and looks that nothing is lost.
fn refused_at_once<B: Backend>(bench: &Bench<B>, wait: Wait, kind: ErrorKind) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open(&bench.setup().with_high_water(1))?;
    let filler = filler();
    let (mut sent, _) = fill(&mut sender, Wait::UpTo(SHORT), 0, &filler)?;
    let fastest = fastest_refusal(&mut sender, wait, kind, &mut sent, &filler)?;
    let millis = fastest.as_millis();
    ensure!(
        fastest <= TOLERANCE,
        "send, {wait:?}: back after {millis} ms"
    );
    expect_numbers(bench, &mut receiver, sent)?;
    let next = sender.send(&[b"next"]);
    next.during("sending when there is room again")?;
    expect_next("next", &mut receiver, &mut Default::default(), &[b"next"])
}

/// How long the fastest of some sends takes that find no room.
fn fastest_refusal<S: SendFrames>(
    sender: &mut S,
    wait: Wait,
    kind: ErrorKind,
    sent: &mut u32,
    filler: &[u8],
) -> Result<Duration, Stop> {
    let mut fastest = Duration::MAX;
    let mut tries = 0_usize;
    while tries < TRIES {
        let (took, filled) = timed(|| fill(sender, wait, *sent, filler));
        let (next, error) = filled?;
        expect_kind(format!("send, {wait:?}"), Err::<(), _>(error), kind)?;
        if next == *sent {
            fastest = fastest.min(took);
            tries = tries.saturating_add(1);
        }
        // Else the system found room for a message, as it may now and then.
        *sent = next;
    }
    Ok(fastest)
}

/// Receives the messages that [`fill`] sent, and nothing else.
fn expect_numbers<B: Backend>(
    bench: &Bench<B>,
    receiver: &mut B::Receiver,
    sent: u32,
) -> Result<(), Stop> {
    let mut received = Default::default();
    for number in 0..sent {
        let patience = Wait::UpTo(bench.patience);
        let what = format!("message {number} of {sent}");
        receiver.recv_frames(&mut received, patience).during(what)?;
        expect_eq("number", &number_of(&received)?, &number)?;
        expect_eq("frames", &received.frames().len(), &2)?;
    }
    Ok(())
}

/// Fails the check unless `call` times out after `time`, within the tolerance.
fn expect_time<T, E: TransportError>(
    what: String,
    time: Duration,
    mut call: impl FnMut() -> Result<T, E>,
) -> Result<(), Stop> {
    let mut fastest = Duration::MAX;
    for _ in 0..TRIES {
        let (took, result) = timed(&mut call);
        expect_kind(&what, result, ErrorKind::TimedOut)?;
        fastest = fastest.min(took);
    }
    expect_late(what, time, fastest)
}

/// Fails the check unless `took` is `time`, within the tolerance.
fn expect_late(what: String, time: Duration, took: Duration) -> Result<(), Stop> {
    let earliest = time.saturating_sub(ROUNDING);
    let latest = time.saturating_add(TOLERANCE);
    if (earliest..=latest).contains(&took) {
        return Ok(());
    }
    let text = format!("{what}: back after {took:?}, {time:?} asked for");
    Err(failed(text))
}

/// Fails the check unless `call` fails at once.
fn expect_at_once<T, E: TransportError>(
    what: &str,
    kind: ErrorKind,
    mut call: impl FnMut() -> Result<T, E>,
) -> Result<(), Stop> {
    let mut fastest = Duration::MAX;
    for _ in 0..TRIES {
        let (took, result) = timed(&mut call);
        expect_kind(what, result, kind)?;
        fastest = fastest.min(took);
    }
    let millis = fastest.as_millis();
    ensure!(fastest <= TOLERANCE, "{what}: back after {millis} ms");
    Ok(())
}

/// A timeout that is reached.
const SHORT: Duration = Duration::from_millis(50);

/// Another one, so that a call which waits as configured is told from one that says itself.
const OTHER: Duration = Duration::from_millis(120);

/// How a call is to wait, and how long that is where [`SHORT`] is configured.
const TIMES: [(Wait, Duration); 2] = [(Wait::Configured, SHORT), (Wait::UpTo(OTHER), OTHER)];

/// How early a timeout may fire: some libraries count whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);
