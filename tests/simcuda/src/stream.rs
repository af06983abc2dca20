//! Streams: threads with queues. Copies run late, and in chunks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::clock::Clock;
use crate::memory::{Block, Copies, Hash, PENDING};
use crate::script::Random;
use crate::state::{Code, State, lock, sim, wait};

#[derive(Debug)]
pub(crate) struct Stream {
    /// In the order of their creation, over all contexts.
    pub(crate) number: usize,
    pub(crate) context: usize,
    /// Ordered with the default stream.
    pub(crate) blocking: bool,
    pub(crate) is_default: bool,
    pub(crate) destroyed: bool,
    pub(crate) excused: bool,
    pub(crate) clock: Clock,
    pub(crate) queue: VecDeque<Operation>,
    pub(crate) running: bool,
    /// How many more operations may run; `None` for all.
    pub(crate) allowance: Option<u64>,
}

/// Fires once: all before it is over.
#[derive(Debug, Default)]
pub(crate) struct Token(AtomicBool);

impl Token {
    pub(crate) fn has_fired(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn fire(&self) {
        self.0.store(true, Ordering::Release);
    }
}

#[derive(Debug)]
pub(crate) enum Operation {
    Copy(Copy),
    Fill { to: Place, len: usize, value: u8 },
    Fire(Arc<Token>),
    Free { address: u64 },
    Wait(Arc<Token>),
}

#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) len: usize,
    /// What the source held when the copy was asked for.
    pub(crate) hash: Option<Hash>,
    /// The target was filled with [`PENDING`], and is to hold it still.
    pub(crate) pending: bool,
    pub(crate) what: String,
}

/// Where a copy reads or writes, which stays allocated until it has.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) start: *mut u8,
    /// Held, and nothing else.
    pub(crate) _block: Option<Arc<Block>>,
    pub(crate) copies: Option<Arc<Copies>>,
}

// SAFETY: as for `Block`, which it points into, or memory that the host promised to leave there.
unsafe impl Send for Place {}

impl Place {
    fn cancelled(&self) -> bool {
        let copies = self.copies.as_ref();
        copies.is_some_and(|copies| copies.cancelled.load(Ordering::SeqCst))
    }

    fn run(&self, by: usize) {
        if let Some(copies) = &self.copies {
            // Plus or minus one.
            copies.running.fetch_add(by, Ordering::SeqCst);
        }
    }
}

/// Starts the thread of the stream `handle`.
pub(crate) fn start(handle: usize) {
    thread::Builder::new()
        .name(format!("simcuda stream {handle:#x}"))
        .spawn(move || work(handle))
        .expect("a thread for a stream");
}

fn work(handle: usize) {
    let mut random = Random(lock().script.random.next());
    while let Some((context, operation)) = next(handle) {
        // Late, now and then: whoever does not wait for an event is to be found out.
        match random.below(8) {
            0 => thread::sleep(Duration::from_micros(random.below(300))),
            1..4 => thread::yield_now(),
            _ => {}
        }
        let outcome = run(operation, &mut random);
        let mut state = lock();
        match outcome {
            Ok(()) => {}
            Err(Failed::Violation(text)) => state.violation(text),
            Err(Failed::Fault(code)) => {
                state.contexts[context].fault.get_or_insert(code);
            }
        }
        if let Some(stream) = state.streams.get_mut(&handle) {
            stream.running = false;
        }
        drop(state);
        sim().changed.notify_all();
    }
}

/// The next operation of a stream, when it may run; `None` when there will be none.
fn next(handle: usize) -> Option<(usize, Operation)> {
    let mut state = lock();
    loop {
        let stream = state.streams.get_mut(&handle)?;
        let ready = match stream.queue.front() {
            Some(_) if stream.allowance == Some(0) => false,
            // It does not wait in `run`: the stream is to be seen as idle, not as running.
            Some(Operation::Wait(token)) => token.has_fired(),
            Some(_) => true,
            None => false,
        };
        if ready {
            let context = stream.context;
            let operation = stream.queue.pop_front()?;
            if let Some(allowance) = &mut stream.allowance {
                *allowance -= 1;
            }
            stream.running = true;
            // After a fault nothing runs any more; but nobody waits for ever.
            if state.contexts[context].fault.is_some()
                && !matches!(operation, Operation::Fire(_) | Operation::Wait(_))
            {
                state.streams.get_mut(&handle)?.running = false;
                sim().changed.notify_all();
                continue;
            }
            return Some((context, operation));
        }
        if stream.destroyed && stream.queue.is_empty() {
            state.streams.remove(&handle);
            drop(state);
            sim().changed.notify_all();
            return None;
        }
        state = wait(state);
    }
}

enum Failed {
    Fault(Code),
    Violation(String),
}

fn run(operation: Operation, random: &mut Random) -> Result<(), Failed> {
    match operation {
        Operation::Copy(copy) => {
            if let Some(code) = lock().script.copy() {
                return Err(Failed::Fault(code));
            }
            copy.from.run(1);
            copy.to.run(1);
            let outcome = copy.run(random);
            copy.from.run(usize::MAX);
            copy.to.run(usize::MAX);
            outcome.map_err(Failed::Violation)
        }
        Operation::Fill { to, len, value } => {
            // SAFETY: the range was checked when this was asked for, and the block is kept.
            unsafe { to.start.write_bytes(value, len) };
            Ok(())
        }
        Operation::Fire(token) => {
            token.fire();
            Ok(())
        }
        Operation::Free { address } => {
            free(&mut lock(), address);
            Ok(())
        }
        Operation::Wait(_) => Ok(()),
    }
}

/// Gives the bytes back; that the memory is freed was noted when it was asked for.
pub(crate) fn free(state: &mut State, address: u64) {
    if let Some(memory) = state.device.get_mut(&address) {
        memory.block = None;
        let (context, len) = (memory.context, memory.len);
        state.contexts[context].allocated -= len;
    }
}

impl Copy {
    fn run(&self, random: &mut Random) -> Result<(), String> {
        let mut hash = Hash::new();
        let mut done = 0;
        let mut overwritten = false;
        while done < self.len {
            if self.from.cancelled() || self.to.cancelled() {
                return Ok(());
            }
            let chunk = 4096 << random.below(9);
            let chunk = chunk.min(self.len - done);
            // SAFETY: both ranges were checked when this was asked for, and the blocks are kept; of registered
            // memory its owner is to keep it, which is looked after when he says that he no longer does.
            unsafe {
                let from = self.from.start.add(done);
                let to = self.to.start.add(done);
                if self.pending {
                    let target = std::slice::from_raw_parts(to, chunk);
                    overwritten |= target.iter().fold(0, |all, byte| all | (byte ^ PENDING)) != 0;
                }
                std::ptr::copy(from, to, chunk);
                hash.update(std::slice::from_raw_parts(to, chunk));
            }
            done += chunk;
            if random.below(4) == 0 {
                thread::yield_now();
            }
        }
        if self.hash.is_some_and(|asked| asked != hash) {
            return Err(format!(
                "{}: its source changed between the call and the copy",
                self.what
            ));
        }
        if overwritten {
            return Err(format!(
                "{}: its target was written to between the call and the copy",
                self.what
            ));
        }
        Ok(())
    }
}
