//! A video model's encoder, denoiser and decoder as three processes over ZeroMQ.
//!
//! ```text
//!          request            embeds              latents             output
//!   head ----------> encoder ----------> denoiser ----------> decoder ----------> head
//!          scalars            8.5 MB               1.0 MB              97 MB
//! ```
//!
//! Each arrow is a PUSH and a PULL socket on loopback TCP. Each process compares
//! every byte it receives with what it must be, and measures its own decoding.
//! The Python codec can stand in for any stage. Afterwards the same frames go
//! through tensorwire and through bare libzmq, in turn.
//!
//! Run it: `cargo run --release --features zmq --example pipeline -- --help`
//!
//! Where to read on: `stage.rs` is a stage and all that a service needs, `inbox.rs`
//! how it looks at what it received, `plan.rs` what the messages hold, `head.rs`
//! the other end of the pipeline, `link.rs` the comparison with libzmq. The rest
//! is arguments, processes and printing.

mod args;
mod children;
mod formula;
mod head;
mod inbox;
mod link;
mod measure;
#[path = "../common/percentile.rs"]
mod percentile;
mod plan;
#[path = "../common/progress.rs"]
mod progress;
mod python;
mod report;
mod stage;

use std::error::Error;
use std::io::{Write, stdout};
use std::process::ExitCode;

use args::{Command, Run};
use progress::Progress;

/// Whatever went wrong, as one line for a person.
type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let command = match args::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("pipeline: {error}; --help says more");
            return ExitCode::from(2);
        }
    };
    let done = match command {
        Command::Help => stdout()
            .write_all(args::HELP.as_bytes())
            .map_err(Into::into),
        Command::Run(run) => head(&run),
        // What follows is run by the head, never by a person.
        Command::Guard { program, args } => return children::guard(&program, &args),
        Command::Sink => return children::reporting(link::sink),
        Command::Stage(run) => return children::reporting(|| stage::run(&run)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pipeline: {error}");
            ExitCode::FAILURE
        }
    }
}

fn head(run: &Run) -> Result<()> {
    let mut progress = Progress::new("pipeline");
    let python = if run.python.is_empty() {
        None
    } else {
        Some(python::find(&mut progress)?)
    };
    let passed = head::run(run, python.as_ref(), &mut progress)?;
    let throughput = link::compare(run.size, &mut progress)?;
    progress.clear();
    let report = report::Report::new(run, &passed, throughput)?;
    let text = if run.json {
        report.json()?
    } else {
        report.table()
    };
    stdout().write_all(text.as_bytes())?;
    match passed.faults.as_slice() {
        [] => Ok(()),
        [first] => Err(first.clone().into()),
        [first, more @ ..] => Err(format!("{first} (and {} more)", more.len()).into()),
    }
}
