//! From which size on lending a buffer is cheaper than copying it.

use tensorwire::transport::zmq::DEFAULT_COPY_BELOW;

use super::common::compare::show;
use super::common::size;
use super::end::{HighWater, Sample, copying, lending};
use super::turns::{Measure, take_turns};

const PAYLOADS: [usize; 6] = [256, 512, 1 << 10, 1 << 11, 1 << 12, 1 << 14];

pub(crate) fn run() {
    println!("payloads copied or lent, a stream of messages; time by message");
    println!("  the default is to lend from {DEFAULT_COPY_BELOW} bytes on");
    for scheme in ["inproc", "tcp"] {
        for bytes in PAYLOADS {
            let sample = Sample::new(bytes);
            let ways = [copying, lending];
            let times = take_turns(Measure::Stream, &ways, scheme, &sample, HighWater(1000));
            let [copying, lending] = times.try_into().ok().unwrap();
            let [low, ratio, high] = lending.ratio(&copying);
            println!(
                "  {scheme:<6} {:>7}  copied {:>8}  lent {:>8}  lent by copied {ratio:.3} [{low:.3} {high:.3}]",
                size(bytes),
                show(copying.quantile(0.5)),
                show(lending.quantile(0.5)),
            );
        }
    }
}
