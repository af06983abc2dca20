//! Many small tensors: batched, and not.

use std::time::Instant;

use cudarc::driver::{DevicePtrMut, result};
use tensorwire::DType;
use tensorwire::Decoder;
use tensorwire::cuda::Options;
use tensorwire::device::Device;
use tensorwire::transport::Wait;

use super::{BUDGET, median, time};
use crate::Result;
use crate::args::Run;
use crate::gpu::Gpu;
use crate::payload::{self, Payload};
use crate::report::{Report, Table};

/// Once: the seconds until the calls have returned.
type Contestant<'a> = (&'static str, Box<dyn FnMut() -> Result<f64> + 'a>);

pub(super) fn run(gpu: &Gpu, _: &Run, report: &mut Report) -> Result<()> {
    const COUNT: usize = 1000;
    const LEN: usize = 4096;
    let mut table = Table::new(
        "1000 small tensors",
        "Of 4 KiB each, to new device memory. Returned: until the calls are back. Done: until the device is, too. Then both by\n\
         tensor. The bare calls: cuMemAllocAsync (or cuMemAlloc) and cuMemcpyHtoDAsync from pinned memory, for each tensor\n\
         and for all at once.",
        &["", "returned", "done", "a tensor", "a tensor, done"],
    );
    let payloads: Vec<_> = (0..COUNT)
        .map(|index| Payload::new(format!("t{index}"), DType::Float32, LEN, index as u64))
        .collect();
    let frames = payload::message(&payloads)?;
    let views = payloads
        .iter()
        .map(Payload::view)
        .collect::<Result<Vec<_>>>()?;
    let mut decoder = Decoder::new();
    let message = decoder.decode(&frames)?;
    let single = gpu.with(Options::new().with_batch_bytes(0))?;
    // SAFETY: `alloc_pinned_with_flags` says that the memory holds anything: it is zeroed.
    let mut source = unsafe { gpu.context.alloc_pinned_with_flags::<u8>(COUNT * LEN, 0) }?;
    source.as_mut_slice()?.fill(0);
    let source = source.as_slice()?;
    let stream = &gpu.stream;
    let bare = |len: usize| -> Result<f64> {
        let start = Instant::now();
        let mut targets = Vec::with_capacity(COUNT);
        for bytes in source.chunks(len) {
            // SAFETY: `alloc` says that the memory holds anything: nothing reads it.
            let mut target = unsafe { stream.alloc::<u8>(len) }?;
            {
                let (pointer, _record) = target.device_ptr_mut(stream);
                // SAFETY: `memcpy_htod_async` asks that both memories are there until the copy is over, that the target
                // has room and that the stream is one: the turn waits, both are as long, the stream is the bench's.
                unsafe { result::memcpy_htod_async(pointer, bytes, stream.cu_stream()) }?;
            }
            targets.push(target);
        }
        Ok(start.elapsed().as_secs_f64())
    };
    let mut contestants: [Contestant<'_>; 6] = [
        ("bare calls, each", Box::new(|| bare(LEN))),
        ("bare calls, all at once", Box::new(|| bare(COUNT * LEN))),
        (
            "upload_message, batched",
            Box::new(|| {
                let start = Instant::now();
                let _tensors = gpu.cuda.upload_message(&message, stream, Wait::Forever)?;
                Ok(start.elapsed().as_secs_f64())
            }),
        ),
        (
            "upload_message, not batched",
            Box::new(|| {
                let start = Instant::now();
                let _tensors = single.upload_message(&message, stream, Wait::Forever)?;
                Ok(start.elapsed().as_secs_f64())
            }),
        ),
        (
            "upload, 1000 times",
            Box::new(|| {
                let start = Instant::now();
                let tensors = views
                    .iter()
                    .map(|view| gpu.cuda.upload(view, stream, Wait::Forever));
                let _tensors = tensors.collect::<Result<Vec<_>, _>>()?;
                Ok(start.elapsed().as_secs_f64())
            }),
        ),
        (
            "cudarc's plain slice, 1000 times",
            Box::new(|| {
                let start = Instant::now();
                let tensors = payloads.iter().map(|sent| stream.clone_htod(&sent.bytes));
                let _tensors = tensors.collect::<Result<Vec<_>, _>>()?;
                Ok(start.elapsed().as_secs_f64())
            }),
        ),
    ];
    let mut times = vec![(Vec::new(), Vec::new()); contestants.len()];
    let begun = Instant::now();
    for turn in 0..200 {
        if turn > 10 && begun.elapsed() > 2 * BUDGET {
            break;
        }
        for ((_, contestant), (returned, done)) in contestants.iter_mut().zip(&mut times) {
            let start = Instant::now();
            returned.push(contestant()?);
            stream.synchronize()?;
            done.push(start.elapsed().as_secs_f64());
        }
    }
    for ((name, _), (returned, done)) in contestants.iter().zip(times) {
        // The first turns map memory.
        let (returned, done) = (
            median(returned.into_iter().skip(2)),
            median(done.into_iter().skip(2)),
        );
        let each = |seconds: f64| time(seconds / COUNT as f64);
        table.row(
            *name,
            vec![time(returned), time(done), each(returned), each(done)],
        );
    }
    report.table(&table);
    Ok(())
}
