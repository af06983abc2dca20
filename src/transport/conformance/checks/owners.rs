//! Owned buffers: released exactly once, whatever happens.

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use std::panic::{catch_unwind, resume_unwind};
use std::thread;
use std::time::Instant;

use super::super::Backend;
use super::super::support::{
    Bench, During, Stop, ensure, expect_eq, expect_frames, expect_kind, failed, fill, filler,
    number_of, pattern,
};
use crate::transport::{ErrorKind, Frames, Part, RecvFrames, SendFrames, TransportError, Wait};

/// Counts the drops of each owner apart: one dropped twice does not make up for one that
/// never is.
#[derive(Default)]
struct Ledger {
    drops: Vec<Arc<AtomicU32>>,
}

/// Bytes that write their drop down.
struct Owner {
    bytes: Vec<u8>,
    drops: Arc<AtomicU32>,
    panics: bool,
}

impl Ledger {
    fn owner(&mut self, len: usize, panics: bool) -> Owner {
        let drops = Arc::new(AtomicU32::new(0));
        self.drops.push(drops.clone());
        let bytes = pattern(self.drops.len(), 0, len);
        Owner {
            bytes,
            drops,
            panics,
        }
    }

    fn counts(&self) -> Vec<u32> {
        let drops = self.drops.iter();
        drops.map(|drops| drops.load(Ordering::SeqCst)).collect()
    }

    /// Fails the check unless each owner is dropped `expected` times before long, and not
    /// once more a little later.
    #[track_caller]
    fn expect(&self, what: &str, expected: u32, patience: Duration) -> Result<(), Stop> {
        let start = Instant::now();
        let short = |counts: &[u32]| counts.iter().any(|&count| count < expected);
        while short(&self.counts()) && start.elapsed() < patience {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(5));
        let counts = self.counts();
        let mut numbered = counts.iter().enumerate();
        match numbered.find(|&(_, &count)| count != expected) {
            None => Ok(()),
            Some((index, count)) => Err(failed(format!(
                "{what}: owner {index} of {} dropped {count} times instead of {expected}",
                counts.len()
            ))),
        }
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
        if self.panics && !thread::panicking() {
            // A panic without the hook, which would print it.
            resume_unwind(Box::new("an owner panics in its drop"));
        }
    }
}

/// Below and above what a transport may rather copy.
const LENGTHS: [usize; 4] = [0, 100, 5000, 300_000];

/// A message of owners, and the bytes of all its frames.
fn parts(ledger: &mut Ledger) -> (Vec<Part<'static>>, Vec<Vec<u8>>) {
    let owners = LENGTHS.map(|len| ledger.owner(len, false));
    let metadata: &[u8] = b"metadata";
    let mut bytes = Vec::from([metadata.to_vec()]);
    bytes.extend(owners.iter().map(|owner| owner.bytes.clone()));
    let mut parts = Vec::from([Part::from(metadata)]);
    parts.extend(owners.map(Part::owned));
    (parts, bytes)
}

pub(super) fn delivered<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open_default()?;
    let mut ledger = Ledger::default();
    let mut list = Vec::with_capacity(16);
    for round in 0..10 {
        let (mut owned, bytes) = parts(&mut ledger);
        list.append(&mut owned);
        let sent = sender.send_parts(&mut list, Wait::Configured);
        sent.during(format_args!("sending message {round}"))?;
        expect_eq("parts left", &list.len(), &0)?;
        let room = list.capacity();
        ensure!(
            room >= 16,
            "the list has room for {room} parts instead of 16"
        );
        let received = receiver.recv().during(format_args!("message {round}"))?;
        expect_frames(format_args!("message {round}"), &received, &bytes)?;
        drop(received);
        ledger.expect("message dropped", 1, bench.patience)?;
    }
    drop((sender, receiver));
    ledger.expect("ends dropped", 1, bench.patience)
}

pub(super) fn come_back<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let setup = bench.setup().with_high_water(1);
    let (mut sender, mut receiver) = bench.open(&setup.with_linger(A_MOMENT))?;
    let filler = filler();
    let mut received: <B::Receiver as RecvFrames>::Message = Default::default();
    for (wait, kind) in [
        (Wait::Never, ErrorKind::WouldBlock),
        (Wait::UpTo(A_MOMENT), ErrorKind::TimedOut),
    ] {
        let (mut sent, _) = fill(&mut sender, Wait::UpTo(A_MOMENT), 0, &filler)?;
        // The system may still find room for a message, now and then.
        let (ledger, mut list, bytes) = loop {
            let mut ledger = Ledger::default();
            let (mut list, bytes) = parts(&mut ledger);
            let before = addresses(&list);
            let Err(error) = sender.send_parts(&mut list, wait) else {
                sent = sent.saturating_add(1);
                ensure!(sent < 100, "no back-pressure: {sent} messages sent");
                continue;
            };
            expect_kind("send_parts", Err::<(), _>(error), kind)?;
            expect_eq("parts that came back", &list.len(), &bytes.len())?;
            let same = addresses(&list) == before;
            ensure!(same, "other buffers came back than were sent");
            break (ledger, list, bytes);
        };
        ledger.expect("refused", 0, Duration::ZERO)?;
        for number in 0..sent {
            let got = receiver.recv_into(&mut received);
            got.during(format_args!("message {number} of {sent}"))?;
        }
        // The last one may lie in the place that the next one needs.
        received.clear();
        let again = sender.send_parts(&mut list, Wait::Configured);
        again.during("sending what came back")?;
        let received = receiver.recv().during("what came back")?;
        expect_frames("what came back", &received, &bytes)?;
        drop(received);
        ledger.expect("sent again", 1, bench.patience)?;
    }
    Ok(())
}

fn addresses(parts: &[Part<'_>]) -> Vec<*const u8> {
    parts.iter().map(|part| part.as_ref().as_ptr()).collect()
}

pub(super) fn unsent<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    for receiver_first in [true, false] {
        let mut ledger = Ledger::default();
        let (mut sender, receiver) = bench.open(&bench.setup().with_linger(A_MOMENT))?;
        for number in 0..5 {
            let (mut list, _) = parts(&mut ledger);
            let sent = sender.send_parts(&mut list, Wait::Configured);
            sent.during(format_args!("sending message {number}"))?;
        }
        if receiver_first {
            drop(receiver);
            drop(sender);
        } else {
            drop(sender);
            drop(receiver);
        }
        ledger.expect("both ends closed", 1, bench.patience)?;
    }
    Ok(())
}

pub(super) fn panicking<B: Backend>(bench: &Bench<B>) -> Result<(), Stop> {
    let (mut sender, mut receiver) = bench.open_default()?;
    let mut ledger = Ledger::default();
    let mut received: <B::Receiver as RecvFrames>::Message = Default::default();
    for (number, len) in (0_u32..).zip([100, 5000, 300_000, 0]) {
        let marker = number.to_le_bytes();
        let mut list = Vec::from([Part::from(&marker[..])]);
        list.push(Part::owned(ledger.owner(len, true)));
        // The panic may come out of any call that drops the owner: of the send,
        let sent = catch_unwind(AssertUnwindSafe(|| {
            sender.send_parts(&mut list, Wait::Configured)
        }));
        if let Ok(sent) = sent {
            sent.during("sending an owner that panics")?;
        }
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(list)));
        let sent = sender.send(&[&u32::MAX.to_le_bytes(), b"next"]);
        sent.during("sending after an owner that panics")?;
        // of a receive that replaces a message, or of a drop. The message itself may
        // have gone or not when its send panicked, but not the one after it.
        let start = Instant::now();
        loop {
            ensure!(
                start.elapsed() < bench.patience,
                "the next message never came"
            );
            let got = catch_unwind(AssertUnwindSafe(|| {
                receiver.recv_frames(&mut received, Wait::UpTo(bench.patience))
            }));
            match got {
                Err(_panic) => continue,
                Ok(Err(error)) if error.kind().is_wait() => continue,
                Ok(got) => got.during("receiving after an owner that panics")?,
            }
            if number_of(&received)? == u32::MAX {
                expect_frames(
                    "the next message",
                    &received,
                    &[&u32::MAX.to_le_bytes()[..], b"next"],
                )?;
                break;
            }
            expect_eq("number", &number_of(&received)?, &number)?;
            expect_eq("frames", &received.frames().len(), &2)?;
        }
        drop(dropped);
    }
    // The last one may hold an owner yet.
    let _ = catch_unwind(AssertUnwindSafe(|| drop((received, sender, receiver))));
    ledger.expect("all dropped", 1, bench.patience)
}

/// A wait that ends in vain, and a linger of no avail.
const A_MOMENT: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_drops_of_one_owner_do_not_make_up_for_none_of_another() {
        let mut ledger = Ledger::default();
        let (one, other) = (ledger.owner(1, false), ledger.owner(1, false));
        let twice = Owner {
            bytes: Vec::new(),
            drops: one.drops.clone(),
            panics: false,
        };
        drop((one, twice));
        let Err(Stop::Failed(failure)) = ledger.expect("test", 1, Duration::ZERO) else {
            panic!("not seen");
        };
        let text = "test: owner 0 of 2 dropped 2 times instead of 1";
        assert_eq!(failure.what(), text);
        drop(other);
        assert_eq!(ledger.counts(), [2, 1]);
    }
}
