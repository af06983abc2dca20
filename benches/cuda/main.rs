//! What the CUDA adapter costs on the host, without a device: on a simulated driver whose calls do nothing.
//!
//! ```text
//!   cargo bench --features cuda --bench cuda                     everything
//!   cargo bench --features cuda --bench cuda -- bytes small      parts: allocations, bytes, calls, small
//! ```
//!
//! The bench runs itself again with the driver of `tests/simcuda` on the loader's path, in the mode in which
//! nothing is copied nor checked. So what is measured is the adapter's own work, the host's copies, and what the
//! calls cost there: a lock and a look into a table each. The *bare calls* are those that the adapter cannot do
//! without, made directly. It says nothing about a device: that is for `examples/gpu_check`.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../tests/simulated/mod.rs"]
mod simulated;

mod bare;
mod counted;
mod parts;

use std::process::{Command, ExitCode};

/// The parts of the bench, by the names that choose them.
const PARTS: [(&str, fn()); 4] = [
    ("allocations", parts::allocations),
    ("bytes", parts::bytes),
    ("calls", parts::calls),
    ("small", parts::small),
];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    // `cargo test` runs it without, and is not to wait for it.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    if !simulated::scripted() {
        return again(&arguments);
    }
    common::run_parts(&PARTS, &arguments);
    ExitCode::SUCCESS
}

/// Runs the same on the simulated driver.
fn again(arguments: &[String]) -> ExitCode {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments);
    simulated::with_driver(&mut command, &simulated::folder());
    command
        .env(simulated::CHILD, "1")
        .env("SIMCUDA_MODE", "noop");
    if command.status().unwrap().success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
