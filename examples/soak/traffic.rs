//! What is sent, and what has to come.

use std::thread;

use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, TransportError, Wait};

use crate::memory::Trace;
use crate::{Failure, Outcome};

/// The messages of one run; both ends work them out by the number.
#[derive(Clone, Copy)]
pub(crate) struct Traffic {
    messages: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) received: u64,
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) damaged: u64,
}

impl Traffic {
    pub(crate) fn new(messages: u64) -> Self {
        Self { messages }
    }

    /// Sends on a thread of its own and receives on this one.
    pub(crate) fn run<S, R>(self, mut tx: S, mut rx: R) -> Result<Outcome, Failure>
    where
        S: SendFrames + Send,
        R: RecvFrames,
    {
        thread::scope(|scope| {
            let sender = scope.spawn(move || {
                let sent = self.send(&mut tx);
                // Kept until the receiver has them all.
                (tx, sent)
            });
            let outcome = self.receive(&mut rx);
            let (_, sent) = sender.join().map_err(|_| "the sender panicked")?;
            sent?;
            outcome
        })
    }

    fn send<S: SendFrames>(self, tx: &mut S) -> Result<(), Failure> {
        let source: Vec<u8> = (0..LARGEST + 256).map(|index| index as u8).collect();
        let mut list = Vec::new();
        for number in 0..self.messages {
            let head = number.to_le_bytes();
            let mut parts = Part::recycle(list);
            parts.push(Part::from(&head[..]));
            for frame in 0..frames(number) {
                let payload = payload(&source, number, frame);
                // Every third is given away.
                if (number + frame).is_multiple_of(3) {
                    parts.push(Part::from(payload.to_vec()));
                } else {
                    parts.push(Part::from(payload));
                }
            }
            tx.send_parts(&mut parts, Wait::Configured)
                .map_err(|error| format!("message {number}: {error}"))?;
            list = Part::recycle(parts);
        }
        Ok(())
    }

    fn receive<R: RecvFrames>(self, rx: &mut R) -> Result<Outcome, Failure> {
        let source: Vec<u8> = (0..LARGEST + 256).map(|index| index as u8).collect();
        let mut memory = Trace::default();
        let mut verdict = Verdict::default();
        let mut message = R::Message::default();
        let every = (self.messages / SAMPLES).max(1);
        let mut next = 0;
        while next < self.messages {
            match rx.recv_into(&mut message) {
                Ok(()) => {}
                // Nothing comes any more: the rest is lost.
                Err(error) if error.kind().is_wait() => break,
                Err(error) => return Err(format!("before message {next}: {error}").into()),
            }
            let number = message.frame(0).and_then(|head| head.try_into().ok());
            let number = number.map_or(u64::MAX, u64::from_le_bytes);
            verdict.bytes += message.byte_count() as u64;
            verdict.received += 1;
            if number >= self.messages || !is_whole(&message, &source, number) {
                verdict.damaged += 1;
            } else if number < next {
                verdict.repeated += 1;
            } else {
                verdict.lost += number - next;
                next = number + 1;
            }
            if verdict.received.is_multiple_of(every) {
                memory.sample(verdict.received);
            }
        }
        verdict.lost += self.messages - next;
        Ok(Outcome { verdict, memory })
    }
}

fn is_whole<M: Frames>(message: &M, source: &[u8], number: u64) -> bool {
    let frames = frames(number);
    message.frames().len() as u64 == frames + 1
        && (0..frames).all(|frame| {
            let expected = payload(source, number, frame);
            message.frame(frame as usize + 1) == Some(expected)
        })
}

/// How many frames follow the first one.
fn frames(number: u64) -> u64 {
    number % 5
}

/// A payload: from nothing to 256 KiB, small ones more often.
fn payload(source: &[u8], number: u64, frame: u64) -> &[u8] {
    let mixed = (number * 5 + frame).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // One in 64 is large.
    let largest = if mixed >> 58 == 0 {
        LARGEST
    } else {
        1 << (mixed >> 59 & 15)
    };
    let len = (mixed >> 20) as usize % (largest + 1);
    let start = number as usize % 256;
    &source[start..start + len]
}

const LARGEST: usize = 256 << 10;

/// How often memory is looked at.
const SAMPLES: u64 = 200;
