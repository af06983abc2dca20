//! What the transfer protocol costs: its messages, the bytes it moves, and a request from end to end.
//!
//! ```text
//!   cargo bench --features zmq,shared-memory --bench transfer                    everything
//!   cargo bench --features zmq,shared-memory --bench transfer -- bytes latency   parts: messages, bytes, machines, latency
//! ```
//!
//! Contestants take turns, so that noise on the machine hits all of them alike; a ratio is
//! of each turn to the turn beside it.

#[path = "../common/mod.rs"]
mod common;

mod bytes;
mod cluster;
mod json;
mod latency;
mod machines;
mod manifests;
mod messages;
mod python;
mod side;
mod worker;

/// The parts of the bench, by the names that choose them.
const PARTS: [(&str, fn()); 4] = [
    ("messages", all_messages),
    ("bytes", bytes::run),
    ("machines", machines::run),
    ("latency", latency::run),
];

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(side::THERE) => return side::there(&arguments[1..]),
        Some(worker::WORKER) => return worker::process(&arguments[1..]),
        _ => {}
    }
    // `cargo test` runs it without, and is not to wait for it.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    common::run_parts(&PARTS, &arguments);
}

fn all_messages() {
    messages::run();
    manifests::run();
}

/// The value that so large a part of the samples does not exceed.
fn quantile(samples: &[f64], quantile: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * quantile).round() as usize]
}

/// Quartiles of the ratios, turn by turn.
fn ratios(of: &[f64], to: &[f64]) -> [f64; 3] {
    let ratios: Vec<_> = of.iter().zip(to).map(|(of, to)| of / to).collect();
    [0.25, 0.5, 0.75].map(|at| quantile(&ratios, at))
}
