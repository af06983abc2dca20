//! What the adapter costs on a device, against the bare driver and against what else there is.
//!
//! Contestants take turns, so that whatever disturbs the machine disturbs all of them; a ratio is the median of
//! the ratios turn by turn. A turn ends when the device has done its work, unless the column says otherwise.

mod copies;
mod overlap;
mod small;
mod sweeps;
mod torch;

use std::time::{Duration, Instant};

use cudarc::driver::result;
use cudarc::driver::sys::CUmemPool_attribute;

use crate::Result;
use crate::args::Run;
use crate::gpu::Gpu;
use crate::report::Report;

/// Makes a table, and hands it in.
type Bench = fn(&Gpu, &Run, &mut Report) -> Result<()>;

const TABLES: &[(&str, Bench)] = &[
    ("host to device, sustained", copies::sustained),
    ("host to device, one at a time", copies::single),
    ("device to host", copies::to_host),
    ("against torch", torch::run),
    ("chunk sizes", sweeps::chunks),
    ("slot alignment", sweeps::alignment),
    ("overlap", overlap::run),
    ("1000 small tensors", small::run),
];

pub(crate) fn run(gpu: &Gpu, run: &Run, report: &mut Report) -> Result<()> {
    if run.wants("memory pools") {
        copies::pools(gpu, run, report)?;
    }
    // As the guide says: else each wait for the device gives memory back, and the next upload asks for it again.
    keep_memory(gpu, u64::MAX)?;
    for (name, table) in TABLES {
        if run.wants(name) {
            table(gpu, run, report)?;
        }
    }
    Ok(())
}

/// Sets how many bytes of freed memory the device's pool keeps over a wait; nothing where there are no pools.
fn keep_memory(gpu: &Gpu, mut bytes: u64) -> Result<bool> {
    if !gpu.context.has_async_alloc() {
        return Ok(false);
    }
    // SAFETY: `get_default_mem_pool` asks for a device: the one of a context that is there.
    let pool = unsafe { result::device::get_default_mem_pool(gpu.context.cu_device()) }?;
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: `set_attribute` asks for a pool, which the device just named, and for a value of the type of the
    // attribute, which is a `cuuint64_t`.
    unsafe { result::mem_pool::set_attribute(pool, attribute, (&raw mut bytes).cast()) }?;
    Ok(true)
}

/// One way to do it, once.
type Contestant<'a> = Box<dyn FnMut() -> Result<()> + 'a>;

/// The seconds of each turn, for each contestant in order.
fn turns(contestants: &mut [Contestant<'_>], budget: Duration) -> Result<Vec<Vec<f64>>> {
    let mut times = vec![Vec::new(); contestants.len()];
    // Twice: the first time memory is mapped and code is loaded.
    for contestant in contestants.iter_mut() {
        contestant()?;
        contestant()?;
    }
    let start = Instant::now();
    for turn in 0..MOST_TURNS {
        if turn >= FEWEST_TURNS && start.elapsed() > budget {
            break;
        }
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            let start = Instant::now();
            contestant()?;
            times.push(start.elapsed().as_secs_f64());
        }
    }
    Ok(times)
}

/// The value in the middle.
fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How fast `of` is by `to`: above 1 is faster. The median turn by turn.
fn speed(of: &[f64], to: &[f64]) -> f64 {
    median(of.iter().zip(to).map(|(of, to)| to / of))
}

/// Bytes in seconds, for people.
fn rate(bytes: usize, seconds: f64) -> String {
    format!("{:.2} GB/s", bytes as f64 / seconds / 1e9)
}

/// A time, for people.
fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1e-5 => format!("{:.0} ns", seconds * 1e9),
        seconds if seconds < 1e-2 => format!("{:.1} us", seconds * 1e6),
        seconds => format!("{:.2} ms", seconds * 1e3),
    }
}

/// A number of bytes, for people.
fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// How long the turns of one row take, at most.
const BUDGET: Duration = Duration::from_secs(2);
const MOST_TURNS: usize = 101;
const FEWEST_TURNS: usize = 7;
