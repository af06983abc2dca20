//! How long a message takes to the other thread and back.

use super::common::compare::show;
use super::common::size;
use super::end::{HighWater, SCHEMES, Sample, bare, ours};
use super::turns::{Measure, take_turns};
use super::{BAR, verdict};

const PAYLOADS: [usize; 4] = [1, 1 << 10, 1 << 16, 1 << 20];

pub(crate) fn run() {
    println!("round trip of a metadata frame and a payload, PUSH and PULL each way; p50 and p99");
    println!("  ratio: turn by turn, median [quartiles]; control: bare libzmq against itself");
    for scheme in SCHEMES {
        for bytes in PAYLOADS {
            let sample = Sample::new(bytes);
            let ways = [bare, ours, bare];
            let times = take_turns(Measure::RoundTrip, &ways, scheme, &sample, HighWater(1000));
            let [bare, ours, control] = times.try_into().ok().unwrap();
            let [low, ratio, high] = ours.ratio(&bare);
            let noise = control.ratio(&bare);
            let [control_low, control, control_high] = noise;
            println!(
                "  {scheme:<6} {:>7}  bare {:>8} {:>8}  ours {:>8} {:>8}  {ratio:.3} [{low:.3} {high:.3}]  control {control:.3} [{control_low:.3} {control_high:.3}]  p99 {:.3}  bar {BAR}: {}",
                size(bytes),
                show(bare.quantile(0.5)),
                show(bare.quantile(0.99)),
                show(ours.quantile(0.5)),
                show(ours.quantile(0.99)),
                ours.quantile(0.99) / bare.quantile(0.99),
                verdict(ratio, noise),
            );
        }
    }
}
