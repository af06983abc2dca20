//! The conformance suite over every transport there is, as a matrix: backend and
//! endpoint by check.
//!
//! Without the test harness, which would hide the matrix of a run that passes. Words
//! of the command line select what is run: `cargo test --features zmq,conformance
//! --test conformance -- tcp slow_reader` is the checks with the one word in their names
//! over the backends with the other in theirs. `--full` moves payloads of up to 256 MiB.

#[cfg(feature = "tokio")]
mod awaited;
#[cfg(feature = "iceoryx2")]
mod iceoryx2;
mod in_memory;
#[cfg(feature = "nng")]
mod nng;
#[cfg(any(feature = "nng", feature = "zmq"))]
mod place;
#[cfg(feature = "zmq")]
mod zmq;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use tensorwire::transport::conformance::{Backend, Check, Matrix, Report, Scale, Suite};

/// A backend whose type is forgotten.
struct Planned {
    name: String,
    run: Box<dyn FnOnce(&Suite) -> Report + Send>,
}

fn plan<B: Backend>(backend: B) -> Planned {
    let name = backend.name().to_owned();
    let run = Box::new(|suite: &Suite| suite.run(backend));
    Planned { name, run }
}

/// The columns of the matrix. Each transport has a module here that adds its own.
fn backends() -> Vec<Planned> {
    let mut backends = Vec::new();
    backends.extend(in_memory::backends());
    #[cfg(feature = "zmq")]
    backends.extend(zmq::backends());
    #[cfg(feature = "nng")]
    backends.extend(nng::backends());
    #[cfg(feature = "iceoryx2")]
    backends.extend(iceoryx2::backends());
    backends
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let backends = backends();
    if arguments.iter().any(|argument| argument == "--list") {
        for backend in &backends {
            for check in Check::ALL {
                println!("{}::{check}: test", backend.name);
            }
        }
        return ExitCode::SUCCESS;
    }
    let words: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let scale = if arguments.iter().any(|argument| argument == "--full") {
        Scale::Full
    } else {
        Scale::Quick
    };
    let start = Instant::now();
    let planned: VecDeque<_> = backends.into_iter().enumerate().collect();
    let planned = Mutex::new(planned);
    let reports = Mutex::new(Vec::new());
    // Most checks mostly wait.
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let next = planned.lock().unwrap().pop_front();
                    let Some((column, backend)) = next else { break };
                    let checks = selected(&words, &backend.name);
                    if checks.is_empty() {
                        continue;
                    }
                    let suite = Suite::new()
                        .with_checks(&checks)
                        .with_scale(scale)
                        .with_progress(|backend, verdict| println!("{backend}: {verdict}"));
                    let report = (backend.run)(&suite);
                    reports.lock().unwrap().push((column, report));
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap();
    reports.sort_by_key(|&(column, _)| column);
    let reports: Vec<Report> = reports.into_iter().map(|(_, report)| report).collect();
    println!("{}", Matrix::new(&reports));
    let sum = |count: fn(&Report) -> usize| reports.iter().map(count).sum::<usize>();
    let failed = sum(Report::failed);
    // As cargo's harness says it.
    println!(
        "test result: {}. {} passed; {failed} failed; {} ignored; finished in {:.2}s",
        if failed == 0 { "ok" } else { "FAILED" },
        sum(Report::passed),
        sum(Report::skipped),
        start.elapsed().as_secs_f64()
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The checks to run over a backend. A word that no check has in its name is for backends.
fn selected(words: &[&str], backend: &str) -> Vec<Check> {
    let checks = Check::ALL.iter().copied();
    let (of_checks, of_backends): (Vec<&str>, Vec<&str>) = words
        .iter()
        .partition(|word| Check::ALL.iter().any(|check| check.name().contains(*word)));
    if !of_backends.is_empty() && !of_backends.iter().any(|word| backend.contains(*word)) {
        return Vec::new();
    }
    checks
        .filter(|check| {
            of_checks.is_empty() || of_checks.iter().any(|word| check.name().contains(*word))
        })
        .collect()
}

/// How many backends are held to the suite at a time.
const AT_A_TIME: usize = 3;
