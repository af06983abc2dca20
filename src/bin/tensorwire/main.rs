//! `tensorwire`: look at messages, move them, and turn them into files.
//!
//! ```text
//!   files, bundles, stdin ---- frames ----+
//!                                         +--> message --> table (people) or JSON (scripts)
//!   zmq, nng ---------------- endpoint ---+           \--> frames, bundles, the next socket
//! ```
//!
//! What comes from a peer or a file is never trusted: it is decoded by the library, whose
//! errors end up on one line, and text of a peer's is escaped before it reaches a terminal.
//! Results go to stdout, everything else to stderr.

#![deny(unsafe_code)]
#![deny(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod args;
mod bench;
mod convert;
mod endpoint;
mod exit;
mod frames;
mod inspect;
mod json;
mod message;
mod number;
mod output;
mod pretty;
mod progress;
mod record;
mod recv;
mod reencode;
mod relay;
mod safe_text;
mod send;
mod signal;
mod stats;
mod table;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Command, Tool};
use exit::{Done, Failure};
use output::Output;

fn main() -> ExitCode {
    let tool = Tool::try_parse().unwrap_or_else(|error| exit::misused(&error));
    let mut output = Output::new();
    let done = run(tool.command, &mut output);
    exit::report(done, &mut output)
}

/// Runs one subcommand.
fn run(command: Command, output: &mut Output) -> Result<Done, Failure> {
    match command {
        Command::Bench(arguments) => bench::run(&arguments, output),
        Command::BenchPeer(arguments) => bench::peer::run(&arguments),
        Command::Completions { shell } => {
            let mut command = Tool::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "tensorwire", &mut script);
            output.write(&script)?;
            Ok(Done::Whole)
        }
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments, output),
        Command::Man { command } => {
            output.write(&manual(command.as_deref())?)?;
            Ok(Done::Whole)
        }
        Command::Recv(arguments) => recv::run(&arguments, output),
        Command::Reencode(arguments) => reencode::run(&arguments),
        Command::Relay(arguments) => relay::run(&arguments),
        Command::Send(arguments) => send::run(&arguments, output),
    }
}

/// The manual page of the tool, or of one of its commands.
fn manual(name: Option<&str>) -> Result<Vec<u8>, Failure> {
    let mut tool = Tool::command();
    // Gives the commands their full names.
    tool.build();
    let command = match name {
        None => tool,
        Some(name) => match tool.find_subcommand(name) {
            Some(command) if !command.is_hide_set() => {
                command.clone().display_name(format!("tensorwire-{name}"))
            }
            _ => {
                return Err(Failure::Usage(format!(
                    "no command {name}: see tensorwire help"
                )));
            }
        },
    };
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(Failure::writing)?;
    Ok(page)
}
