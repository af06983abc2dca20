//! How much of the host's copy is hidden behind that of the device.

use tensorwire::DType;
use tensorwire::Decoder;
use tensorwire::device::{Device, Landing};
use tensorwire::transport::Wait;

use super::{BUDGET, Contestant, median, rate, turns};
use crate::Result;
use crate::args::Run;
use crate::gpu::Gpu;
use crate::payload::{self, Payload};
use crate::report::{Report, Table};

pub(super) fn run(gpu: &Gpu, run: &Run, report: &mut Report) -> Result<()> {
    let len: usize = if run.small { 1 << 20 } else { 256 << 20 };
    let mut table = Table::new(
        "overlap of host copy and DMA",
        "One payload of 256 MiB (--small: 1 MiB). The host's copy alone: into pinned memory as large as the ring, slot by slot.\n\
         DMA alone: a landing whose slots are filled already. upload: both. Hidden: which part of the shorter of the two\n\
         ran while the other did; 1.00 is all of it.",
        &["", "host copy", "DMA", "upload", "hidden"],
    );
    let sent = Payload::new("t", DType::UInt8, len, 1);
    let metadata = payload::metadata(std::slice::from_ref(&sent))?;
    let mut decoder = Decoder::new();
    let metadata = decoder.decode_metadata(&metadata)?;
    let statistics = gpu.cuda.statistics();
    let slot = statistics.slot_bytes;
    let mut ring = gpu.cuda.allocate_pinned(slot * statistics.slots)?;
    let mut contestants: [Contestant<'_>; 3] = [
        Box::new(|| {
            let mut at = 0;
            for chunk in sent.bytes.chunks(slot) {
                let target = ring.as_mut().get_mut(at..at + chunk.len());
                target
                    .ok_or("the ring is too short")?
                    .copy_from_slice(chunk);
                at = (at + slot) % (slot * statistics.slots);
            }
            std::hint::black_box(ring.as_mut());
            Ok(())
        }),
        Box::new(|| {
            let mut landing = gpu.cuda.land(&metadata, &gpu.stream)?;
            while landing.missing() > 0 {
                let len = landing.room(Wait::Forever)?.len();
                landing.filled(len)?;
            }
            drop(landing.finish()?);
            Ok(gpu.stream.synchronize()?)
        }),
        Box::new(|| {
            drop(gpu.cuda.upload(&sent.view()?, &gpu.stream, Wait::Forever)?);
            Ok(gpu.stream.synchronize()?)
        }),
    ];
    let times = turns(&mut contestants, 2 * BUDGET)?;
    let medians: Vec<_> = times.into_iter().map(median).collect();
    if let [copy, dma, both] = medians[..] {
        let hidden = (copy + dma - both) / copy.min(dma);
        let mut cells: Vec<_> = medians.iter().map(|&time| rate(len, time)).collect();
        cells.push(format!("{hidden:.2}"));
        table.row("", cells);
    }
    report.table(&table);
    Ok(())
}
