//! Payloads of one size, by each way there is.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut, PinnedHostSlice, result};
use tensorwire::DType;
use tensorwire::Decoder;
use tensorwire::cuda::{Cuda, Options, PinnedBytes};
use tensorwire::device::{Device, Download, Landing};
use tensorwire::transport::Wait;

use super::{BUDGET, Contestant, keep_memory, median, rate, size, speed, time, turns};
use crate::Result;
use crate::args::Run;
use crate::gpu::Gpu;
use crate::payload::{self, Payload};
use crate::report::{Report, Table};

/// What a row is measured with: the same bytes in memory of each kind.
struct Bench<'a> {
    stream: &'a Arc<CudaStream>,
    cuda: &'a Cuda,
    sent: Payload,
    metadata: Vec<u8>,
    /// For the bare driver.
    source: PinnedHostSlice<u8>,
    /// For the adapter.
    pinned: PinnedBytes,
    /// How often a turn does it before it waits for the device.
    repeats: usize,
}

impl<'a> Bench<'a> {
    fn new(gpu: &'a Gpu, len: usize, repeats: usize) -> Result<Self> {
        let sent = Payload::new("t", DType::UInt8, len, 1);
        // SAFETY: `alloc_pinned_with_flags` says that the memory holds anything: it is written before it is read.
        let mut source = unsafe { gpu.context.alloc_pinned_with_flags::<u8>(len, 0) }?;
        source.as_mut_slice()?.copy_from_slice(&sent.bytes);
        let mut pinned = gpu.cuda.allocate_pinned(len)?;
        pinned.as_mut().copy_from_slice(&sent.bytes);
        Ok(Self {
            stream: &gpu.stream,
            cuda: &gpu.cuda,
            metadata: payload::metadata(std::slice::from_ref(&sent))?,
            sent,
            source,
            pinned: pinned.share(),
            repeats,
        })
    }

    /// The driver's calls and nothing else, into memory that is there.
    fn bare(&self) -> Result<Contestant<'_>> {
        let mut target = self.target()?;
        Ok(Box::new(move || {
            let bytes = self.source.as_slice()?;
            for _ in 0..self.repeats {
                let (pointer, _record) = target.device_ptr_mut(self.stream);
                // SAFETY: `memcpy_htod_async` asks that both memories are there until the copy is over, that the target
                // has room and that the stream is one: the turn waits, both are as long, the stream is the bench's.
                unsafe { result::memcpy_htod_async(pointer, bytes, self.stream.cu_stream()) }?;
            }
            Ok(self.stream.synchronize()?)
        }))
    }

    /// Straight from pinned memory, into new memory of the device.
    fn pinned(&self) -> Contestant<'_> {
        Box::new(|| {
            let descriptor = self.sent.descriptor()?;
            for _ in 0..self.repeats {
                let bytes = self.pinned.clone();
                drop(self.cuda.upload_pinned(&descriptor, bytes, self.stream)?);
            }
            Ok(self.stream.synchronize()?)
        })
    }

    /// By way of the ring, whose slots a reader has filled that took no time.
    fn landing(&self) -> Contestant<'_> {
        Box::new(|| {
            let mut decoder = Decoder::new();
            let metadata = decoder.decode_metadata(&self.metadata)?;
            for _ in 0..self.repeats {
                let mut landing = self.cuda.land(&metadata, self.stream)?;
                while landing.missing() > 0 {
                    let len = landing.room(Wait::Forever)?.len();
                    landing.filled(len)?;
                }
                drop(landing.finish()?);
            }
            Ok(self.stream.synchronize()?)
        })
    }

    /// From memory that is not pinned, by way of the ring, into new memory.
    fn staged(&self) -> Contestant<'_> {
        Box::new(|| {
            let view = self.sent.view()?;
            for _ in 0..self.repeats {
                drop(self.cuda.upload(&view, self.stream, Wait::Forever)?);
            }
            Ok(self.stream.synchronize()?)
        })
    }

    /// The same, into memory that is there.
    fn staged_into(&self) -> Result<Contestant<'_>> {
        let mut target = self.target()?;
        Ok(Box::new(move || {
            let view = self.sent.view()?;
            for _ in 0..self.repeats {
                self.cuda.upload_into(&view, &mut target, Wait::Forever)?;
            }
            Ok(self.stream.synchronize()?)
        }))
    }

    /// cudarc's copy of a plain slice, into new memory.
    fn pageable(&self) -> Contestant<'_> {
        Box::new(|| {
            for _ in 0..self.repeats {
                drop(self.stream.clone_htod(&self.sent.bytes)?);
            }
            Ok(self.stream.synchronize()?)
        })
    }

    /// The same, into memory that is there.
    fn pageable_into(&self) -> Result<Contestant<'_>> {
        let mut target = self.target()?;
        Ok(Box::new(move || {
            for _ in 0..self.repeats {
                self.stream.memcpy_htod(&self.sent.bytes, &mut target)?;
            }
            Ok(self.stream.synchronize()?)
        }))
    }

    fn target(&self) -> Result<CudaSlice<u8>> {
        Ok(self.stream.alloc_zeros::<u8>(self.sent.bytes.len())?)
    }
}

const WAYS: &[&str] = &[
    "payload",
    "bare driver",
    "upload_pinned",
    "landing",
    "upload",
    "upload_into",
    "plain slice",
    "plain, into",
];

pub(super) fn sustained(gpu: &Gpu, run: &Run, report: &mut Report) -> Result<()> {
    let mut table = Table::new(
        "host to device, sustained",
        "Copies one after the other, 64 MiB or more, then one wait. The bare driver: cuMemcpyHtoDAsync from pinned memory into\n\
         memory that is there. The others: their speed by it, turn by turn; 1.00 is as fast. upload_pinned, landing, upload and\n\
         plain slice also allocate and free device memory. Bar: upload_pinned at 0.95 or more, from 4 MiB up.",
        WAYS,
    );
    for len in sizes(run) {
        let repeats = ((64 << 20) / len).clamp(1, 64);
        rows(gpu, len, repeats, true, &mut table)?;
    }
    report.table(&table);
    Ok(())
}

pub(super) fn single(gpu: &Gpu, run: &Run, report: &mut Report) -> Result<()> {
    let mut table = Table::new(
        "host to device, one at a time",
        "The same, waited for after each: with what the calls cost before the first byte moves. No bar.",
        WAYS,
    );
    for len in sizes(run) {
        rows(gpu, len, 1, false, &mut table)?;
    }
    report.table(&table);
    Ok(())
}

fn rows(gpu: &Gpu, len: usize, repeats: usize, bar: bool, table: &mut Table) -> Result<()> {
    let bench = Bench::new(gpu, len, repeats)?;
    let mut contestants = [
        bench.bare()?,
        bench.pinned(),
        bench.landing(),
        bench.staged(),
        bench.staged_into()?,
        bench.pageable(),
        bench.pageable_into()?,
    ];
    let times = turns(&mut contestants, BUDGET)?;
    let Some((bare, others)) = times.split_first() else {
        return Ok(());
    };
    let each = median(bare.iter().copied());
    let mut cells = vec![if bar {
        rate(len * repeats, each)
    } else {
        time(each)
    }];
    let speeds: Vec<_> = others.iter().map(|times| speed(times, bare)).collect();
    cells.extend(speeds.iter().map(|speed| format!("{speed:.3}")));
    match speeds.first() {
        Some(&pinned) if bar && len >= 4 << 20 => {
            table.row_with_bar(size(len), cells, pinned >= 0.95);
        }
        _ => table.row(size(len), cells),
    }
    Ok(())
}

pub(super) fn to_host(gpu: &Gpu, run: &Run, report: &mut Report) -> Result<()> {
    let mut table = Table::new(
        "device to host, one at a time",
        "The bare driver: cuMemcpyDtoHAsync into pinned memory that is there. download: into slots, to be sent from there.\n\
         Plain slice: cudarc's copy into a new vector. Speeds by the bare driver. No bar.",
        &["payload", "bare driver", "download", "plain slice"],
    );
    for len in sizes(run).into_iter().filter(|len| *len <= 64 << 20) {
        let cuda = gpu.with(Options::new().with_ring(2, len))?;
        let sent = Payload::new("t", DType::UInt8, len, 1);
        let tensor = cuda.upload(&sent.view()?, &gpu.stream, Wait::Forever)?;
        // SAFETY: `alloc_pinned_with_flags` says that the memory holds anything: it is only written.
        let mut target = unsafe { gpu.context.alloc_pinned_with_flags::<u8>(len, 0) }?;
        let stream = &gpu.stream;
        let mut contestants: [Contestant<'_>; 3] = [
            Box::new(|| {
                let bytes = target.as_mut_slice()?;
                let view = tensor.bytes();
                let (pointer, _record) = view.device_ptr(stream);
                // SAFETY: `memcpy_dtoh_async` asks that both memories are there until the copy is over, that the target
                // has room and that the stream is one: the turn waits, both are as long, the stream is the bench's.
                unsafe { result::memcpy_dtoh_async(bytes, pointer, stream.cu_stream()) }?;
                Ok(stream.synchronize()?)
            }),
            Box::new(|| {
                let download = cuda.download(&[&tensor], stream, Wait::Forever)?;
                drop(download.finish(Wait::Forever).map_err(|(_, error)| error)?);
                Ok(())
            }),
            Box::new(|| {
                drop(stream.clone_dtoh(&tensor.bytes())?);
                Ok(stream.synchronize()?)
            }),
        ];
        let times = turns(&mut contestants, BUDGET)?;
        let [bare, download, plain] = &times[..] else {
            return Ok(());
        };
        let each = median(bare.iter().copied());
        table.row(
            size(len),
            vec![
                rate(len, each),
                format!("{:.3}", speed(download, bare)),
                format!("{:.3}", speed(plain, bare)),
            ],
        );
    }
    report.table(&table);
    Ok(())
}

/// What a pool that keeps nothing costs.
pub(super) fn pools(gpu: &Gpu, run: &Run, report: &mut Report) -> Result<()> {
    const TITLE: &str = "memory pools";
    if !keep_memory(gpu, 0)? {
        report.skip_table(TITLE, "the device has no stream-ordered allocation");
        return Ok(());
    }
    let mut table = Table::new(
        TITLE,
        "upload_pinned and one wait, by the release threshold of the device's memory pool: how much freed memory it keeps over\n\
         a wait. 0 is what the driver sets.",
        &["payload", "keeps nothing", "keeps all"],
    );
    for len in sizes(run) {
        let bench = Bench::new(gpu, len, 1)?;
        let mut cells = Vec::new();
        for threshold in [0, u64::MAX] {
            keep_memory(gpu, threshold)?;
            let times = turns(&mut [bench.pinned()], BUDGET / 4)?;
            let each = median(times.into_iter().flatten());
            cells.push(time(each));
        }
        table.row(size(len), cells);
    }
    report.table(&table);
    Ok(())
}

fn sizes(run: &Run) -> Vec<usize> {
    let most = if run.small { 1 << 20 } else { 256 << 20 };
    let mut sizes = vec![
        64 << 10,
        256 << 10,
        1 << 20,
        4 << 20,
        16 << 20,
        64 << 20,
        256 << 20,
    ];
    sizes.retain(|size| *size <= most);
    sizes
}
