//! Checks the CUDA adapter on a real device, and measures it: a table of checks, then a table of figures.
//!
//! The machine needs a driver and nothing else. Build where there is a toolchain (no CUDA needed), and carry the
//! binary:
//!
//! ```sh
//! cargo build --release --features cuda --example gpu_check
//! scp target/release/examples/gpu_check gpu-machine:
//! ssh gpu-machine ./gpu_check                  # checks and bench, under five minutes
//! ssh gpu-machine ./gpu_check --json           # the same, one JSON object
//! ssh gpu-machine ./gpu_check --no-bench       # the checks alone, some seconds
//! ssh gpu-machine ./gpu_check --python python3 # with the Python whose torch is measured as well
//! ```
//!
//! The tests that CI runs on a simulated driver run on the device too. They are a binary as well:
//!
//! ```sh
//! cargo test --release --features cuda --no-run --test cuda_sim     # prints where the binary is
//! scp target/release/deps/cuda_sim-<hash> gpu-machine:cuda_sim
//! ssh gpu-machine TENSORWIRE_CUDA=device ./cuda_sim --test-threads=1
//! ```
//!
//! Exit status: 0 all checks passed and the bars were met, 1 a check failed, 2 wrong arguments, 3 no usable device
//! (one line on stderr says why), 4 all checks passed and a bar was missed.
//!
//! What is measured, and against what, is told at the head of each table, and in `bench.rs`.

mod args;
mod bench;
mod checks;
mod gpu;
mod payload;
mod report;

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use args::{Command, Run};
use gpu::Gpu;
use report::Report;
use tensorwire::cuda;

/// Whatever went wrong, as one line for a person.
type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let run = match args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Help) => {
            print!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Command::Run(run)) => run,
        Err(error) => {
            eprintln!("gpu_check: {error}; --help says more");
            return ExitCode::from(WRONG_ARGUMENTS);
        }
    };
    let device = match cuda::availability(run.device) {
        Ok(device) => device,
        Err(why) => {
            eprintln!("gpu_check: no CUDA device {} to check: {why}", run.device);
            return ExitCode::from(NO_DEVICE);
        }
    };
    let started = Instant::now();
    let mut report = Report::new(&device, run.json);
    if let Err(error) = check_and_measure(&run, &mut report) {
        report.failure("gpu_check itself", &error.to_string());
    }
    report.finish(started.elapsed());
    ExitCode::from(match report.verdict() {
        report::Verdict::CheckFailed => CHECK_FAILED,
        report::Verdict::BarMissed => BAR_MISSED,
        report::Verdict::Passed => 0,
    })
}

fn check_and_measure(run: &Run, report: &mut Report) -> Result<()> {
    let gpu = Gpu::open(run.device)?;
    if run.checks {
        checks::run(&gpu, run, report);
    }
    if run.bench {
        bench::run(&gpu, run, report)?;
    }
    Ok(())
}

const CHECK_FAILED: u8 = 1;
const WRONG_ARGUMENTS: u8 = 2;
const NO_DEVICE: u8 = 3;
const BAR_MISSED: u8 = 4;
