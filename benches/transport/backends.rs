//! Every transport beside the bare library under it, and beside a plain socket, in one run.

use super::common::compare::show;
use super::common::size;
use super::end::{self, HighWater, Sample, Way};
use super::turns::{Measure, Times, take_turns};
use super::{BAR, floor, nng, shared};

/// One column of the table.
struct Contestant {
    name: &'static str,
    way: Way,
    /// The column of the bare library under it, if it is one of ours.
    over: Option<usize>,
}

const fn bare(name: &'static str, way: Way) -> Contestant {
    Contestant {
        name,
        way,
        over: None,
    }
}

const fn ours(name: &'static str, way: Way, over: usize) -> Contestant {
    let over = Some(over);
    Contestant { name, way, over }
}

/// (scheme, who takes part)
const FIELDS: [(&str, &[Contestant]); 3] = [
    (
        "inproc",
        &[
            bare("loopback", shared::in_memory),
            bare("bare libzmq", end::bare),
            ours("zmq", end::ours, 1),
            bare("bare nng", nng::bare),
            ours("nng", nng::ours, 3),
        ],
    ),
    (
        "ipc",
        &[
            bare("plain socket", floor::floor),
            bare("bare libzmq", end::bare),
            ours("zmq", end::ours, 1),
            bare("bare nng", nng::bare),
            ours("nng", nng::ours, 3),
            bare("iceoryx2", shared::written),
            bare("iceoryx2, in place", shared::touched),
        ],
    ),
    (
        "tcp",
        &[
            bare("plain socket", floor::floor),
            bare("bare libzmq", end::bare),
            ours("zmq", end::ours, 1),
            bare("bare nng", nng::bare),
            ours("nng", nng::ours, 3),
        ],
    ),
];

const ROUND_TRIPS: [usize; 5] = [1, 1 << 10, 1 << 14, 1 << 17, 1 << 20];

/// Bytes of the payload, and how many messages may wait.
const STREAMS: [(usize, u32); 4] = [
    (4 << 10, 1000),
    (256 << 10, 100),
    (4 << 20, 16),
    (64 << 20, 2),
];

pub(crate) fn run() {
    println!("every transport, in turns between the same two threads");
    println!("  over bare: turn by turn, median [quartiles]; bar {BAR}");
    for (scheme, field) in FIELDS {
        for bytes in ROUND_TRIPS {
            println!("  round trip over {scheme}, {}: p50, p99", size(bytes));
            let times = measure(Measure::RoundTrip, scheme, field, bytes, 1000);
            table(field, &times, |times| {
                let (half, most) = (times.quantile(0.5), times.quantile(0.99));
                format!("{:>9} {:>9}", show(half), show(most))
            });
        }
        for (bytes, mark) in STREAMS {
            println!("  stream over {scheme}, {}: messages/s, GB/s", size(bytes));
            let times = measure(Measure::Stream, scheme, field, bytes, mark);
            table(field, &times, |times| {
                let each = times.quantile(0.5);
                format!("{:>9.0} {:>9.2}", 1e9 / each, bytes as f64 / each)
            });
        }
    }
}

fn measure(
    measure: Measure,
    scheme: &str,
    field: &[Contestant],
    bytes: usize,
    mark: u32,
) -> Vec<Times> {
    let ways: Vec<Way> = field.iter().map(|contestant| contestant.way).collect();
    take_turns(measure, &ways, scheme, &Sample::new(bytes), HighWater(mark))
}

fn table(field: &[Contestant], times: &[Times], figures: impl Fn(&Times) -> String) {
    for (contestant, mine) in field.iter().zip(times) {
        let over = contestant.over.map_or(String::new(), |bare| {
            let [low, ratio, high] = mine.ratio(&times[bare]);
            format!("  over bare {ratio:.3} [{low:.3} {high:.3}]")
        });
        println!("    {:<20} {}{over}", contestant.name, figures(mine));
    }
}
