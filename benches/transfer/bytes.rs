//! Bytes from process to process: over shared memory, through sockets, and a copy within one process.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::common::compare::{show, verdict};
use super::common::size;
use super::side::{Here, MOST, Took, Way};
use super::{quantile, ratios};

/// How much longer than a copy of the same bytes a push may take until it is seen.
const COPY_BAR: f64 = 1.3;

/// How much faster than zmq over ipc it is to be.
const IPC_BAR: f64 = 5.0;

/// How much is moved.
const SIZES: [usize; 4] = [64 << 10, 1 << 20, 8 << 20, MOST];

/// How often the processes are started anew, how long they are used for one size, and
/// for how many rounds at least.
const PAIRS: usize = 3;
const BUDGET: Duration = Duration::from_millis(1500);
const FEWEST: usize = 9;

/// How often a first push is measured: each needs new processes.
const FIRSTS: usize = 5;

/// The contestants, in order.
const NAMES: [&str; 8] = [
    "copy",
    "copy, control",
    "shared memory",
    "shared memory, back",
    "zmq ipc",
    "zmq ipc, back",
    "zmq tcp",
    "zmq tcp, back",
];

pub(crate) fn run() {
    println!(
        "bytes from process to process, until the other has seen that they are there; by the copy: quartiles"
    );
    println!("| bytes | | median | GB/s | by the copy | and until all is read |");
    println!("|---:|---|---:|---:|---:|---:|");
    let mut copy = Copier::new();
    let mut turns = SIZES.map(|_| NAMES.map(|_| Vec::new()));
    for _ in 0..PAIRS {
        let mut here = Here::start(false);
        for (&len, turns) in SIZES.iter().zip(&mut turns) {
            // What was not touched before is not counted.
            round(&mut here, &mut copy, len, 0);
            let start = Instant::now();
            let mut count = 0;
            while count < FEWEST || start.elapsed() < BUDGET {
                for (turns, took) in turns
                    .iter_mut()
                    .zip(round(&mut here, &mut copy, len, count))
                {
                    turns.push(took);
                }
                count += 1;
            }
        }
        here.finish();
    }
    for (len, turns) in SIZES.into_iter().zip(&turns) {
        print(len, turns);
    }
    firsts(&mut copy);
}

/// Each contestant once, another one first in each round.
fn round(here: &mut Here, copy: &mut Copier, len: usize, round: usize) -> [Took; 8] {
    let mut took = [Took {
        seen: 0.0,
        read: 0.0,
    }; 8];
    for offset in 0..took.len() {
        let index = (round + offset) % took.len();
        took[index] = match index {
            0 | 1 => copy.run(index, len),
            2 => here.there(Way::Shared, len),
            3 => here.back(Way::Shared, len),
            4 => here.there(Way::Ipc, len),
            5 => here.back(Way::Ipc, len),
            6 => here.there(Way::Tcp, len),
            _ => here.back(Way::Tcp, len),
        };
    }
    took
}

fn print(len: usize, turns: &[Vec<Took>; 8]) {
    let seen = turns
        .each_ref()
        .map(|turns| turns.iter().map(|took| took.seen).collect::<Vec<_>>());
    let read = turns
        .each_ref()
        .map(|turns| turns.iter().map(|took| took.read).collect::<Vec<_>>());
    for (index, name) in NAMES.into_iter().enumerate() {
        let [low, median, high] = ratios(&seen[index], &seen[0]);
        let time = quantile(&seen[index], 0.5);
        println!(
            "| {} | {name} | {} | {:.2} | {low:.2}, {median:.2}, {high:.2} | {} |",
            size(len),
            show(time),
            len as f64 / time,
            show(quantile(&read[index], 0.5)),
        );
    }
    if len == MOST {
        for index in [2, 3] {
            let [_, copy, _] = ratios(&seen[index], &seen[0]);
            let [low, ipc, high] = ratios(&seen[index + 2], &seen[index]);
            println!(
                "  {:>7}  {}: {copy:.2} of the copy, bar {COPY_BAR}: {}; {ipc:.1}x zmq ipc ({low:.1} to {high:.1}), bar {IPC_BAR}x: {}",
                size(len),
                NAMES[index],
                verdict(copy <= COPY_BAR),
                verdict(ipc >= IPC_BAR),
            );
        }
    }
}

/// The first push of a pair of processes: pages are mapped meanwhile.
fn firsts(copy: &mut Copier) {
    println!("the first push of {} between two processes", size(MOST));
    for prefault in [false, true] {
        let (mut register, mut seen, mut read, mut ratio) = (vec![], vec![], vec![], vec![]);
        for _ in 0..FIRSTS {
            let mut here = Here::start(prefault);
            let took = here.there(Way::Shared, MOST);
            register.push(here.register());
            seen.push(took.seen);
            read.push(took.read);
            ratio.push(took.seen / copy.run(0, MOST).seen);
            here.finish();
        }
        let [register, seen, read] =
            [register, seen, read].map(|times| show(quantile(&times, 0.5)));
        println!(
            "  prefault {prefault:<5}  register {register:>9}  seen {seen:>9}, {:.2} of a warm copy  read too {read:>9}",
            quantile(&ratio, 0.5)
        );
    }
    let mut fresh = Vec::new();
    for _ in 0..FIRSTS {
        let start = Instant::now();
        black_box(copy.from.clone());
        fresh.push(start.elapsed().as_nanos() as f64);
    }
    println!(
        "  a copy into fresh memory within a process {:>9}",
        show(quantile(&fresh, 0.5))
    );
}

/// Copies between buffers of one process that were written to before.
struct Copier {
    from: Vec<u8>,
    to: [Vec<u8>; 2],
}

impl Copier {
    fn new() -> Self {
        let buffer = |byte| vec![byte; MOST];
        let to = [buffer(2), buffer(3)];
        Self {
            from: buffer(1),
            to,
        }
    }

    fn run(&mut self, index: usize, len: usize) -> Took {
        let (from, to) = (&self.from[..len], &mut self.to[index][..len]);
        let start = Instant::now();
        black_box(&mut *to).copy_from_slice(black_box(from));
        let seen = start.elapsed().as_nanos() as f64;
        let words = to.chunks_exact(8);
        black_box(words.fold(0, |sum: u64, word| {
            sum.wrapping_add(u64::from_ne_bytes(word.try_into().unwrap()))
        }));
        let read = start.elapsed().as_nanos() as f64;
        Took { seen, read }
    }
}
