//! The same payload by slots of different sizes, and from places that are aligned differently.

use cudarc::driver::{DevicePtrMut, result};
use tensorwire::DType;
use tensorwire::Decoder;
use tensorwire::cuda::Options;
use tensorwire::device::{Device, Landing};
use tensorwire::transport::Wait;

use super::{BUDGET, Contestant, median, rate, size, turns};
use crate::Result;
use crate::args::Run;
use crate::gpu::Gpu;
use crate::payload::{self, Payload};
use crate::report::{Report, Table};

pub(super) fn chunks(gpu: &Gpu, run: &Run, report: &mut Report) -> Result<()> {
    let len: usize = if run.small { 1 << 20 } else { 64 << 20 };
    let mut table = Table::new(
        "chunk sizes",
        "One payload of 64 MiB (--small: 1 MiB) through rings of four and of two slots. upload: the host copies into the slots.\n\
         landing: the slots are filled already, so it is the copies of the device alone.",
        &["slot", "upload, 4", "landing, 4", "upload, 2", "landing, 2"],
    );
    let sent = Payload::new("t", DType::UInt8, len, 1);
    let metadata = payload::metadata(std::slice::from_ref(&sent))?;
    let mut decoder = Decoder::new();
    let metadata = decoder.decode_metadata(&metadata)?;
    for slot in (16..=25)
        .map(|power| 1 << power)
        .filter(|slot| *slot <= len)
    {
        let rings = [4, 2].map(|slots| gpu.with(Options::new().with_ring(slots, slot)));
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for cuda in rings {
            let cuda = cuda?;
            let landing = cuda.clone();
            let (sent, metadata) = (&sent, &metadata);
            contestants.push(Box::new(move || {
                drop(cuda.upload(&sent.view()?, &gpu.stream, Wait::Forever)?);
                Ok(gpu.stream.synchronize()?)
            }));
            contestants.push(Box::new(move || {
                let mut landing = landing.land(metadata, &gpu.stream)?;
                while landing.missing() > 0 {
                    let len = landing.room(Wait::Forever)?.len();
                    landing.filled(len)?;
                }
                drop(landing.finish()?);
                Ok(gpu.stream.synchronize()?)
            }));
        }
        let times = turns(&mut contestants, BUDGET)?;
        let cells = times.into_iter().map(|times| rate(len, median(times)));
        table.row(size(slot), cells.collect());
    }
    report.table(&table);
    Ok(())
}

pub(super) fn alignment(gpu: &Gpu, run: &Run, report: &mut Report) -> Result<()> {
    let len: usize = if run.small { 256 << 10 } else { 16 << 20 };
    let mut table = Table::new(
        "slot alignment",
        "One payload of 16 MiB (--small: 256 KiB) out of pinned memory, from so many bytes past a page. The bare driver into\n\
         memory at a multiple of 256, and into memory as far past one; upload_pinned.",
        &["offset", "bare driver", "both ends off", "upload_pinned"],
    );
    let sent = Payload::new("t", DType::UInt8, len, 1);
    let descriptor = sent.descriptor()?;
    // SAFETY: `alloc_pinned_with_flags` says that the memory holds anything: it is zeroed.
    let mut source = unsafe { gpu.context.alloc_pinned_with_flags::<u8>(len + ROOM, 0) }?;
    source.as_mut_slice()?.fill(0);
    let pinned = gpu.cuda.allocate_pinned(len + ROOM)?.share();
    for offset in [0, 1, 4, 16, 64, 128, 256, 512, 4095] {
        let bytes = source
            .as_slice()?
            .get(offset..offset + len)
            .ok_or("offset")?;
        let frame = pinned.slice(offset..offset + len).ok_or("offset")?;
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for shift in [0, offset] {
            let mut target = gpu.stream.alloc_zeros::<u8>(len + ROOM)?;
            contestants.push(Box::new(move || {
                let mut target = target.slice_mut(shift..shift + len);
                let (pointer, _record) = target.device_ptr_mut(&gpu.stream);
                // SAFETY: `memcpy_htod_async` asks that both memories are there until the copy is over, that the target
                // has room and that the stream is one: the turn waits, both are as long, the stream is the bench's.
                unsafe { result::memcpy_htod_async(pointer, bytes, gpu.stream.cu_stream()) }?;
                Ok(gpu.stream.synchronize()?)
            }));
        }
        contestants.push(Box::new(|| {
            drop(
                gpu.cuda
                    .upload_pinned(&descriptor, frame.clone(), &gpu.stream)?,
            );
            Ok(gpu.stream.synchronize()?)
        }));
        let times = turns(&mut contestants, BUDGET / 4)?;
        let cells = times.into_iter().map(|times| rate(len, median(times)));
        table.row(format!("{offset} B"), cells.collect());
    }
    report.table(&table);
    Ok(())
}

/// For offsets.
const ROOM: usize = 8192;
