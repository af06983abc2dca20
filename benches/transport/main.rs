//! What the transports cost on top of the bare libraries, and what a peer gains over the Python codec.
//!
//! ```text
//!   cargo bench --features zmq,nng,iceoryx2 --bench transport                  everything
//!   cargo bench --features zmq,nng,iceoryx2 --bench transport -- latency       a part: backends, latency, throughput, threshold, python
//! ```
//!
//! Contestants move the same frames through sockets of the same kinds with the
//! same options, in turns within one process. One of them is bare libzmq once
//! more, under the name `control`: what it differs from itself is the noise.

#[path = "../common/mod.rs"]
mod common;

mod backends;
mod end;
mod floor;
mod latency;
mod nng;
mod peers;
mod shared;
mod threshold;
mod throughput;
mod turns;

/// How much longer than over the bare library the same frames may take.
const BAR: f64 = 1.03;

/// The parts of the bench, by the names that choose them.
const PARTS: [(&str, fn()); 5] = [
    ("backends", backends::run),
    ("latency", latency::run),
    ("throughput", throughput::run),
    ("threshold", threshold::run),
    ("python", peers::run),
];

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [mode, source, out] = arguments.as_slice()
        && mode == peers::ECHO
    {
        return peers::echo(source, out);
    }
    // `cargo test` runs it without, and is not to wait for it.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    common::run_parts(&PARTS, &arguments);
}

/// Whether the bar is met, for people; where bare libzmq differs from itself by
/// more than the bar, only a ratio beyond that says something.
fn verdict(ratio: f64, control: [f64; 3]) -> &'static str {
    let [.., noise] = control;
    if noise > BAR && ratio <= noise {
        "lost in the noise"
    } else {
        common::compare::verdict(ratio <= BAR)
    }
}
