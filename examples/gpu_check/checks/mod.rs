//! The checks: each is a sentence about the adapter, and true or not.

mod bounds;
mod frames;
mod order;
mod rounds;
mod slots;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::Result;
use crate::args::Run;
use crate::gpu::{Gpu, settled};
use crate::report::{Outcome, Report};

/// What was seen, for people; or what is wrong.
type Check = fn(&Gpu, &Run) -> Result<String>;

const CHECKS: &[(&str, Check)] = &[
    (
        "a device number that is not there is refused",
        rounds::no_such_device,
    ),
    ("every dtype comes back as it went", rounds::dtypes),
    ("every size comes back as it went", rounds::sizes),
    (
        "large tensors go in chunks through a small ring",
        rounds::chunks,
    ),
    (
        "small tensors of a message share one allocation",
        rounds::batches,
    ),
    (
        "bools are looked at, and bytes that are none are kept",
        rounds::bools,
    ),
    ("random messages from eight threads", rounds::threads),
    ("the source may change at once", rounds::source_is_free),
    (
        "a frame in allocated pinned memory is uploaded in place",
        frames::allocated,
    ),
    (
        "a frame in registered memory is uploaded in place",
        frames::registered,
    ),
    (
        "a frame in the ring's memory is uploaded in place",
        frames::of_the_ring,
    ),
    (
        "a message of pinned frames is uploaded in place",
        frames::message,
    ),
    (
        "payloads land in pinned slots, in pieces of any size",
        frames::landing,
    ),
    (
        "a landing that is given up gives everything back",
        frames::landing_given_up,
    ),
    (
        "a download is sent and received, and its slots come back",
        frames::download_is_sent,
    ),
    (
        "a caller's buffer is filled, the exact length alone",
        bounds::into_buffers,
    ),
    (
        "a full ring is an error, and then has room again",
        bounds::exhaustion,
    ),
    ("what can never fit is refused at once", bounds::too_large),
    (
        "an adapter may go while copies are under way",
        bounds::drop_in_flight,
    ),
    (
        "the stream sees the bytes, and so does another",
        order::streams,
    ),
    (
        "the same without cudarc's event tracking",
        order::without_tracking,
    ),
    (
        "what a stream wrote is what a download brings",
        order::producer,
    ),
    (
        "slots of a plane are loaded and stored by manifest",
        slots::load_and_store,
    ),
];

pub(crate) fn run(gpu: &Gpu, run: &Run, report: &mut Report) {
    for (name, check) in CHECKS.iter().filter(|(name, _)| run.wants(name)) {
        let start = Instant::now();
        // A panic is a failed check, and the next ones are still worth a try.
        let outcome = catch_unwind(AssertUnwindSafe(|| check(gpu, run)));
        let outcome = outcome.unwrap_or_else(|_| Err("it panicked".into()));
        let outcome = outcome.and_then(|said| {
            settled(&gpu.cuda)?;
            Ok(said)
        });
        let outcome = match outcome {
            Ok(said) => Outcome::Passed(said),
            Err(error) => Outcome::Failed(error.to_string()),
        };
        report.check(name, &outcome, start.elapsed());
    }
}
