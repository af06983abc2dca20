//! How many messages a second go one way.

use super::common::size;
use super::end::{HighWater, SCHEMES, Sample, bare, coded, ours};
use super::turns::{Measure, take_turns};
use super::{BAR, verdict};

/// Bytes of the payload, and how many messages may wait.
const PAYLOADS: [(usize, u32); 3] = [(4 << 10, 1000), (1 << 20, 100), (64 << 20, 2)];

pub(crate) fn run() {
    println!("messages of a metadata frame and a lent payload, PUSH to PULL; messages a second");
    println!("  coded: with the metadata written by the sender, read and checked by the receiver");
    println!(
        "  ratio of times: turn by turn, median [quartiles]; control: bare libzmq against itself"
    );
    for scheme in SCHEMES {
        for (bytes, mark) in PAYLOADS {
            let sample = Sample::new(bytes);
            let ways = [bare, ours, coded, bare];
            let times = take_turns(Measure::Stream, &ways, scheme, &sample, HighWater(mark));
            let [bare, ours, coded, control] = times.try_into().ok().unwrap();
            let second = 1e9;
            let [low, ratio, high] = ours.ratio(&bare);
            let [coded_low, coded_ratio, coded_high] = coded.ratio(&bare);
            let noise = control.ratio(&bare);
            let [control_low, control, control_high] = noise;
            println!(
                "  {scheme:<6} {:>7}  bare {:>8.0}  ours {:>8.0}  {ratio:.3} [{low:.3} {high:.3}]  coded {:>8.0}  {coded_ratio:.3} [{coded_low:.3} {coded_high:.3}]  control {control:.3} [{control_low:.3} {control_high:.3}]  bar {BAR}: {}",
                size(bytes),
                second / bare.quantile(0.5),
                second / ours.quantile(0.5),
                second / coded.quantile(0.5),
                verdict(ratio, noise),
            );
        }
    }
}
