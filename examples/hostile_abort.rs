//! The recorded hostile messages, decoded where a panic is the end of the process.
//!
//! The test harness catches panics and needs unwinding; a service built with
//! `panic=abort` has neither. With and without overflow checks:
//!
//! ```text
//! export CARGO_PROFILE_RELEASE_PANIC=abort
//! CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true cargo run --release --features alloc --example hostile_abort
//! CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=false cargo run --release --features alloc --example hostile_abort
//! ```
//!
//! The profile, unlike flags behind `cargo rustc --`, reaches the library too.
//! An argument names another file than `tests/data/hostile.jsonl`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::process::ExitCode;

use common::hostile::{self, CASES, OLDEST, STRICT, Verdict};
use tensorwire::Decoder;
use tensorwire::dtype::Generation;
use tensorwire::message::{Options, Storage};

fn main() -> ExitCode {
    let file = std::env::args_os().nth(1);
    let path = file
        .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/hostile.jsonl").into());
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
    };
    let modes = [
        ("default", Options::new(), &[][..]),
        ("strict", Options::new().with_strict_json(true), STRICT),
        (
            "oldest",
            Options::new().with_generation(Generation::Oldest),
            OLDEST,
        ),
    ];
    let mut seen = 0;
    let mut wrong = 0;
    for (mode, options, changes) in modes {
        let mut decoder = Decoder::with_options(options);
        let mut storage = Storage::<16>::new();
        for line in text.lines() {
            let case: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            let id = case["id"].as_str().expect("an id");
            let frames = hostile::message(&case);
            let expected = hostile::verdict(changes, id);
            let owned = Verdict::of(&decoder.decode(&frames));
            let lent = Verdict::of(&options.decode(&frames, &mut storage));
            if owned != expected || lent != expected {
                eprintln!("{id} {mode}: {owned:?} and {lent:?}, not {expected:?}");
                wrong += 1;
            }
            seen += 1;
        }
    }
    let panics = if cfg!(panic = "abort") {
        "abort"
    } else {
        "unwind"
    };
    println!("{seen} verdicts, {wrong} of them wrong, panic={panics}");
    if wrong == 0 && seen == modes.len() * CASES.len() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
