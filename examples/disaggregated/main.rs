//! A diffusion model's encoder, denoiser and decoder as processes of their own, led by a head node.
//!
//! ```text
//!                       clients
//!                     request | ^ output
//!                             v |
//!   +-----------------------------------------------------------+
//!   |                         head node                         |
//!   +-----------------------------------------------------------+
//!      | ^ PUSH, PULL            | ^                     | ^
//!      v |                       v |                     v |
//!   +---------+             +----------+             +---------+
//!   | encoder |             | denoiser |             | decoder |
//!   +---------+             +----------+             +---------+
//!      slot ================> slot, slot ==============> slot
//!              one copy, from shared memory to shared memory
//! ```
//!
//! Control messages go over ZeroMQ, tensors from the slot of one process to that of
//! the next without passing the head node. It is the protocol of sglang-diffusion:
//! each role here can serve its `DiffusionServer`, and the head node here can lead
//! other workers.
//!
//! Run it: `cargo run --release --features zmq,shared-memory --example disaggregated -- --help`
//!
//! Where to read on: `work.rs` is the trait to put your own model behind, `worker.rs`
//! the loop of a worker and `head.rs` that of a head node, which are for you to take,
//! `builtin.rs` a role that reads and writes tensors in place. The rest is
//! arguments, processes and printing.

mod args;
mod builtin;
mod children;
mod compute;
mod demo;
mod formula;
mod head;
mod load;
mod measure;
#[path = "../common/percentile.rs"]
mod percentile;
#[path = "../common/progress.rs"]
mod progress;
mod report;
mod reporter;
mod stop;
mod work;
mod worker;

use std::error::Error;
use std::io::{Write, stdout};
use std::process::ExitCode;

use args::Command;
use progress::Progress;
use report::Report;
use stop::Stop;

/// Whatever went wrong, as one line for a person.
type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let command = match args::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("disaggregated: {error}; --help says more");
            return ExitCode::from(2);
        }
    };
    let done = match command {
        Command::Demo(demo) => stoppable(|stop| all(&demo, stop)),
        Command::Head(head) => stoppable(|stop| head_node(&head, stop)),
        Command::Help => stdout()
            .write_all(args::HELP.as_bytes())
            .map_err(Into::into),
        Command::Worker(settings) => {
            let work = builtin::builtin(settings.role, settings.size_mib);
            worker::run(&settings, work)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("disaggregated: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs something that looks whether a signal has come.
fn stoppable(run: impl FnOnce(&Stop) -> Result<()>) -> Result<()> {
    run(&Stop::on_signal()?)
}

fn all(demo: &args::Demo, stop: &Stop) -> Result<()> {
    let mut progress = Progress::new("disaggregated");
    let outcome = demo::run(demo, &mut progress, stop)?;
    progress.clear();
    print(&demo.load, Report::of_demo(&demo.load, outcome))
}

fn head_node(run: &args::Head, stop: &Stop) -> Result<()> {
    let mut progress = Progress::new("disaggregated");
    let results = head::Results::bind(&run.result)?;
    let mut head = results.connect(&run.work, load::settings(&run.load))?;
    progress.show("waiting for the workers");
    load::await_workers(&mut head, run.work.len(), stop)?;
    let split = run
        .result
        .iter()
        .any(|(role, _)| role.name() == "image_encoder");
    let passed = load::drive(&mut head, &run.load, split, &mut progress, |_, _| {
        stop.check()
    })?;
    progress.clear();
    print(&run.load, Report::of_head(&run.load, passed))
}

fn print(load: &args::Load, report: Report) -> Result<()> {
    let text = if load.json {
        report.json()?
    } else {
        report.table()
    };
    stdout().write_all(text.as_bytes())?;
    report.into_result()
}
