//! What the checks are made of.

use core::fmt;
use core::time::Duration;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;

use super::suite::text_of;
use super::{Backend, Failure, Scale, Setup};
use crate::transport::{ErrorKind, Frames, RecvFrames, SendFrames, TransportError, Wait};

/// What a check works on.
pub(super) struct Bench<B> {
    pub(super) backend: Arc<B>,
    pub(super) scale: Scale,
    /// How long a call may take that is to succeed.
    pub(super) patience: Duration,
}

/// Why a check does not go on.
pub(super) enum Stop {
    Failed(Failure),
    Skipped(String),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl<B: Backend> Bench<B> {
    pub(super) fn new(backend: Arc<B>, scale: Scale, patience: Duration) -> Self {
        Self {
            backend,
            scale,
            patience,
        }
    }

    /// The setup that most checks start from.
    pub(super) fn setup(&self) -> Setup {
        let setup = Setup::new().with_timeout(self.patience);
        setup.with_linger(self.patience)
    }

    #[track_caller]
    pub(super) fn open(&self, setup: &Setup) -> Result<(B::Sender, B::Receiver), Stop> {
        self.backend.open(setup).during("opening")
    }

    /// Opens a pair with the default setup.
    #[track_caller]
    pub(super) fn open_default(&self) -> Result<(B::Sender, B::Receiver), Stop> {
        self.open(&self.setup())
    }
}

/// Makes a failed check of a text.
#[track_caller]
pub(super) fn failed(what: String) -> Stop {
    Stop::Failed(Failure::new(what))
}

/// Fails the check with a text unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::transport::conformance::support::failed(
                alloc::format!($($text)+),
            ));
        }
    };
}
pub(super) use ensure;

/// Fails the check unless two values are the same.
#[track_caller]
pub(super) fn expect_eq<T: PartialEq + fmt::Debug>(
    what: impl fmt::Display,
    actual: &T,
    expected: &T,
) -> Result<(), Stop> {
    if actual == expected {
        return Ok(());
    }
    let text = format!("{what}: {actual:?} instead of {expected:?}");
    Err(failed(text))
}

/// Fails the check unless `result` is an error of this kind.
#[track_caller]
pub(super) fn expect_kind<T, E: TransportError>(
    what: impl fmt::Display,
    result: Result<T, E>,
    expected: ErrorKind,
) -> Result<(), Stop> {
    match result {
        Ok(_) => Err(failed(format!("{what}: Ok instead of {expected:?}"))),
        Err(error) if error.kind() == expected => Ok(()),
        Err(error) => {
            let kind = error.kind();
            let text = format!("{what}: {kind:?} ({error}) instead of {expected:?}");
            Err(failed(text))
        }
    }
}

/// Makes the error of a step a failed check.
pub(super) trait During<T> {
    /// Says what was being done.
    #[track_caller]
    fn during(self, what: impl fmt::Display) -> Result<T, Stop>;
}

impl<T, E: fmt::Display> During<T> for Result<T, E> {
    #[track_caller]
    fn during(self, what: impl fmt::Display) -> Result<T, Stop> {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(failed(format!("{what}: {error}"))),
        }
    }
}

/// Starts a part of a check on a thread of its own.
pub(super) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    part: impl FnOnce() -> Result<T, Stop> + Send + 'scope,
) -> ScopedJoinHandle<'scope, Result<T, Stop>> {
    scope.spawn(part)
}

/// Waits for a part of a check. A panic there is a failed check here.
#[track_caller]
pub(super) fn finish<T>(part: ScopedJoinHandle<'_, Result<T, Stop>>) -> Result<T, Stop> {
    match part.join() {
        Ok(result) => result,
        Err(payload) => Err(failed(format!("panicked: {}", text_of(&*payload)))),
    }
}

/// Ends both parts of a check, and tells of the one that comes first in time, as far as
/// that can be told: a failed sender makes its receiver wait in vain.
pub(super) fn both<T, U>(
    sending: Result<T, Stop>,
    receiving: Result<U, Stop>,
) -> Result<(T, U), Stop> {
    match (sending, receiving) {
        (Ok(sending), Ok(receiving)) => Ok((sending, receiving)),
        (Err(Stop::Failed(sending)), Err(Stop::Failed(receiving))) => {
            let text = format!("sending: {sending}; receiving: {receiving}");
            Err(failed(text))
        }
        (Err(stop), _) | (_, Err(stop)) => Err(stop),
    }
}

/// A frame of `len` bytes that tell which frame of which message it is.
pub(super) fn pattern(message: usize, frame: usize, len: usize) -> Vec<u8> {
    let seed = message
        .wrapping_mul(31)
        .wrapping_add(frame.wrapping_mul(7))
        .to_le_bytes();
    let [first, second, ..] = seed;
    // A block of an odd length, so that no shift by a power of two looks the same.
    let block: Vec<u8> = (0..=250_u8)
        .map(|index| index.wrapping_add(first) ^ second)
        .collect();
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let left = len.saturating_sub(bytes.len());
        let block = block.get(..left.min(block.len())).unwrap_or_default();
        bytes.extend_from_slice(block);
    }
    bytes
}

/// Message `number` of frames with these lengths.
pub(super) fn message(number: usize, lengths: &[usize]) -> Vec<Vec<u8>> {
    let frames = lengths.iter().enumerate();
    frames
        .map(|(frame, &len)| pattern(number, frame, len))
        .collect()
}

/// The frames as a send takes them.
pub(super) fn borrowed(frames: &[Vec<u8>]) -> Vec<&[u8]> {
    frames.iter().map(Vec::as_slice).collect()
}

/// Fails the check unless `received` has these frames, and no others.
#[track_caller]
pub(super) fn expect_frames<M: Frames, F: AsRef<[u8]>>(
    what: impl fmt::Display,
    received: &M,
    expected: &[F],
) -> Result<(), Stop> {
    let count = received.frames().len();
    if count != expected.len() {
        let expected = expected.len();
        return Err(failed(format!(
            "{what}: {count} frames instead of {expected}"
        )));
    }
    let mut sum = 0_usize;
    for (index, expected) in expected.iter().enumerate() {
        let expected = expected.as_ref();
        let actual = received.frame(index).unwrap_or_default();
        sum = sum.saturating_add(expected.len());
        if actual.len() != expected.len() {
            return Err(failed(format!(
                "{what}: frame {index} has {} bytes instead of {}",
                actual.len(),
                expected.len()
            )));
        }
        if actual != expected {
            let mut pairs = actual.iter().zip(expected);
            let at = pairs.position(|(actual, expected)| actual != expected);
            let at = at.unwrap_or_default();
            return Err(failed(format!(
                "{what}: frame {index} of {} bytes differs at byte {at}",
                actual.len()
            )));
        }
    }
    expect_eq(
        format_args!("{what}: byte_count"),
        &received.byte_count(),
        &sum,
    )?;
    let past = received.frame(count).map(<[u8]>::len);
    expect_eq(format_args!("{what}: frame past the last"), &past, &None)
}

/// Receives the next message, which has to be there within the patience.
#[track_caller]
pub(super) fn expect_next<R: RecvFrames, F: AsRef<[u8]>>(
    what: impl fmt::Display,
    receiver: &mut R,
    received: &mut R::Message,
    expected: &[F],
) -> Result<(), Stop> {
    if let Err(error) = receiver.recv_into(received) {
        return Err(failed(format!("{what}: {error}")));
    }
    expect_frames(what, received, expected)
}

/// The number in the first four bytes of frame 0.
#[track_caller]
pub(super) fn number_of<M: Frames>(received: &M) -> Result<u32, Stop> {
    let frame = received.frame(0).unwrap_or_default();
    let Some(bytes) = frame.first_chunk::<4>() else {
        let (count, len) = (received.frames().len(), frame.len());
        return Err(failed(format!(
            "a message that was never sent: {count} frames, the first of {len} bytes"
        )));
    };
    Ok(u32::from_le_bytes(*bytes))
}

/// Sends numbered messages until there is no room for one within `wait`: returns how many
/// were sent, and the error.
pub(super) fn fill<S: SendFrames>(
    sender: &mut S,
    wait: Wait,
    from: u32,
    filler: &[u8],
) -> Result<(u32, S::SendError), Stop> {
    let most = from.saturating_add(MOST_TO_FILL);
    let mut number = from;
    loop {
        match sender.send_frames(&[&number.to_le_bytes(), filler], wait) {
            Ok(()) => number = number.saturating_add(1),
            Err(error) => return Ok((number, error)),
        }
        ensure!(
            number < most,
            "no back-pressure: {MOST_TO_FILL} messages of {} bytes sent, and none received",
            filler.len()
        );
    }
}

/// How long `call` takes, and what it gives.
pub(super) fn timed<R>(call: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = call();
    (start.elapsed(), result)
}

/// A frame that fills the system's buffers, of which ipc and tcp have some.
pub(super) fn filler() -> Vec<u8> {
    pattern(0, 1, 4 << 20)
}

/// How often something is timed.
pub(super) const TRIES: usize = 5;

/// How late the fastest of [`TRIES`] may be, on a machine with other things to do.
pub(super) const TOLERANCE: Duration = Duration::from_millis(100);

/// Many more large messages than any high-water mark of a check that fills.
const MOST_TO_FILL: u32 = 100;
