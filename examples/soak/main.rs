//! A long run over each transport: nothing is lost, and memory does not grow.
//!
//! ```sh
//! cargo run --release --features zmq,nng,iceoryx2 --example soak                       # 10^6 messages over each
//! cargo run --release --features zmq,nng,iceoryx2 --example soak -- --messages 20000   # the short form
//! cargo run --release --features zmq --example soak -- --over 'zmq tcp'                # one of them
//! ```
//!
//! One thread sends numbered messages of mixed sizes, lent and given away in turn;
//! another receives them into one message and checks number, shape and bytes. For
//! each transport a line tells the rate, what was lost, repeated or damaged, and how the resident
//! memory went: the slope of a straight line through the second half of the run,
//! in bytes a message. Any loss, or a slope that would add up to more than
//! 16 MiB over the second half, ends it with status 1.

mod links;
mod memory;
mod traffic;

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use memory::Trace;
use traffic::{Traffic, Verdict};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match soak() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

fn soak() -> Result<ExitCode, Failure> {
    let mut messages = 1_000_000;
    let mut over = None;
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--help" {
            println!("{USAGE}");
            return Ok(ExitCode::SUCCESS);
        }
        let value = arguments.next().ok_or(USAGE)?;
        match argument.as_str() {
            "--messages" => messages = value.parse().map_err(|_| USAGE)?,
            "--over" => over = Some(value),
            _ => return Err(USAGE.into()),
        }
    }
    let chosen: Vec<_> = links::ALL
        .iter()
        .filter(|(name, _)| over.as_deref().is_none_or(|over| over == *name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<_> = links::ALL.iter().map(|(name, _)| *name).collect();
        return Err(format!("--over one of: {}", names.join(", ")).into());
    }
    println!(
        "{:<16} {:>9} {:>9} {:>9} {:>6} {:>8} {:>8} {:>10} {:>12}",
        "transport", "messages", "msg/s", "MiB/s", "lost", "repeated", "damaged", "memory", "slope"
    );
    let mut good = true;
    for (name, run) in chosen {
        let start = Instant::now();
        let outcome = run(Traffic::new(messages))?;
        good &= outcome.report(name, start.elapsed());
    }
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

const USAGE: &str = "usage: soak [--messages NUMBER] [--over TRANSPORT]";

/// How a run went.
pub(crate) struct Outcome {
    verdict: Verdict,
    memory: Trace,
}

impl Outcome {
    /// Prints the line, and tells whether all is well.
    fn report(&self, name: &str, took: Duration) -> bool {
        let Verdict {
            received,
            bytes,
            lost,
            repeated,
            damaged,
        } = self.verdict;
        let seconds = took.as_secs_f64();
        let slope = self.memory.slope();
        // A short run has a slope of chance: what it adds up to is what counts.
        let growth = slope * received as f64 / 2.0;
        let good = lost + repeated + damaged == 0 && received > 0 && growth < MOST_GROWTH;
        println!(
            "{name:<16} {received:>9} {:>9.0} {:>9.0} {lost:>6} {repeated:>8} {damaged:>8} {:>6.1} MiB {slope:>8.2} B/msg{}",
            received as f64 / seconds,
            bytes as f64 / seconds / f64::from(1 << 20),
            self.memory.last() / f64::from(1 << 20),
            if good { "" } else { "  FAILED" },
        );
        good
    }
}

/// How much memory may grow in the second half of a run, in bytes: allocators and
/// kernels keep some.
const MOST_GROWTH: f64 = 16.0 * 1024.0 * 1024.0;
