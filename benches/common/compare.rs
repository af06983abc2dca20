//! Compares ways to do one thing: in turns, so that noise on the machine hits all of them alike.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long a turn takes at least: less than the scheduler lets a thread run,
/// so that on a busy machine most turns are not interrupted.
const TURN: Duration = Duration::from_micros(50);

/// How many turns each contestant has, and how long all of them may take.
const TURNS: usize = 401;
const BUDGET: Duration = Duration::from_millis(1500);
const FEWEST: usize = 9;

/// One way to do it, run as many times as asked.
pub(crate) struct Contestant<'a> {
    name: &'static str,
    run: Box<dyn FnMut(u64) + 'a>,
}

/// Names a way; what `run` gives is not optimized away.
pub(crate) fn contestant<'a, R>(
    name: &'static str,
    mut run: impl FnMut() -> R + 'a,
) -> Contestant<'a> {
    let run = Box::new(move |iterations| {
        for _ in 0..iterations {
            black_box(run());
        }
    });
    Contestant { name, run }
}

/// Nanoseconds per run, for each contestant in order: the lower quartile of its turns.
///
/// Noise only ever adds, so the lower quartile says more than the median of
/// what the code costs, and less by luck than the minimum. Where one run is
/// longer than a turn, a busy machine interrupts nearly all: there it is the minimum.
pub(crate) fn quartiles(contestants: &mut [Contestant<'_>]) -> Vec<(&'static str, f64)> {
    let mut iterations = Vec::new();
    for contestant in contestants.iter_mut() {
        let mut count = 1_u64;
        while time(contestant, count) < TURN && count < 1 << 32 {
            count *= 2;
        }
        iterations.push(count);
    }
    let mut times = vec![Vec::new(); contestants.len()];
    let start = Instant::now();
    for turn in 0..TURNS {
        if turn >= FEWEST && start.elapsed() > BUDGET {
            break;
        }
        for ((contestant, &count), times) in contestants.iter_mut().zip(&iterations).zip(&mut times)
        {
            times.push(time(contestant, count).as_nanos() as f64 / count as f64);
        }
    }
    contestants
        .iter()
        .zip(times.into_iter().zip(&iterations))
        .map(|(contestant, (mut times, &iterations))| {
            times.sort_by(f64::total_cmp);
            let rank = if iterations == 1 { 0 } else { times.len() / 4 };
            (contestant.name, times[rank])
        })
        .collect()
}

fn time(contestant: &mut Contestant<'_>, iterations: u64) -> Duration {
    // The contestant before has had the caches to itself.
    (contestant.run)(1);
    let start = Instant::now();
    (contestant.run)(iterations);
    start.elapsed()
}

/// Whether the tables are wanted: by `cargo bench` without a filter, or alone by `TENSORWIRE_TABLES=1`.
pub(crate) fn tables_wanted() -> bool {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let tables = std::env::var_os("TENSORWIRE_TABLES").is_some();
    tables || arguments == ["--bench"]
}

/// A time for people.
pub(crate) fn show(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e4 => format!("{ns:.0} ns"),
        ns if ns < 1e7 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

/// Whether a bar is met, for people.
pub(crate) fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}
