//! What has bounds: buffers, the ring, and the life of an adapter.

use std::time::Duration;

use tensorwire::DType;
use tensorwire::cuda::{CudaError, Options};
use tensorwire::device::{Device, DeviceError, Download, ErrorKind};
use tensorwire::transport::Wait;

use crate::Result;
use crate::args::Run;
use crate::gpu::{Gpu, PATIENT, settled};
use crate::payload::{Payload, compare};

pub(super) fn into_buffers(gpu: &Gpu, run: &Run) -> Result<String> {
    let count = if run.small { 100_000 } else { 5_000_000 };
    let sent = Payload::new("t", DType::Float32, 4 * count, 3);
    let mut target = gpu.stream.alloc_zeros::<f32>(count)?;
    gpu.cuda.upload_into(&sent.view()?, &mut target, PATIENT)?;
    let fetched = fetch(gpu, &target, count)?;
    compare("the buffer", &sent.bytes, &fetched)?;
    for (room, expected) in [(count - 1, 4 * (count - 1)), (count + 1, 4 * (count + 1))] {
        let mut target = gpu.stream.alloc_zeros::<f32>(room)?;
        let refused = gpu.cuda.upload_into(&sent.view()?, &mut target, PATIENT);
        let actual = sent.bytes.len();
        expect(refused, ErrorKind::Length { expected, actual })?;
    }
    let mut target = gpu.stream.alloc_zeros::<i32>(count)?;
    let refused = gpu.cuda.upload_into(&sent.view()?, &mut target, PATIENT);
    let (expected, actual) = (DType::Int32, DType::Float32);
    expect(refused, ErrorKind::DType { expected, actual })?;
    // A part of a buffer is one too.
    let mut target = gpu.stream.alloc_zeros::<f32>(count + 10)?;
    gpu.cuda
        .upload_into(&sent.view()?, &mut target.slice_mut(5..5 + count), PATIENT)?;
    let mut whole = vec![0; 20];
    whole.extend_from_slice(&sent.bytes);
    whole.extend([0; 20]);
    compare(
        "a part of a buffer",
        &whole,
        &fetch(gpu, &target, count + 10)?,
    )?;
    Ok("longer, shorter and other dtypes refused".into())
}

fn fetch(gpu: &Gpu, from: &cudarc::driver::CudaSlice<f32>, count: usize) -> Result<Vec<u8>> {
    // SAFETY: `alloc_pinned_with_flags` says that the memory holds anything: it is written before it is read.
    let mut pinned = unsafe { gpu.context.alloc_pinned_with_flags::<f32>(count, 0) }?;
    gpu.stream.memcpy_dtoh(from, &mut pinned)?;
    gpu.stream.synchronize()?;
    let floats = pinned.as_slice()?;
    Ok(floats
        .iter()
        .flat_map(|float| float.to_le_bytes())
        .collect())
}

pub(super) fn exhaustion(gpu: &Gpu, _: &Run) -> Result<String> {
    let cuda = gpu.with(Options::new().with_ring(2, 64 << 10))?;
    let sent = Payload::new("t", DType::UInt8, 1000, 1);
    let held = [
        cuda.take_pinned(1, Wait::Never)?,
        cuda.take_pinned(1, Wait::Never)?,
    ];
    let refused = cuda.upload(&sent.view()?, &gpu.stream, Wait::Never);
    expect(refused, ErrorKind::RingFull { needed: 1, free: 0 })?;
    let brief = Wait::UpTo(Duration::from_millis(5));
    expect(
        cuda.upload(&sent.view()?, &gpu.stream, brief),
        ErrorKind::TimedOut,
    )?;
    let refused = cuda.statistics().refused;
    drop(held);
    let tensor = cuda.upload(&sent.view()?, &gpu.stream, Wait::Never)?;
    compare("uploaded then", &sent.bytes, &gpu.fetch(&tensor)?)?;
    settled(&cuda)?;
    let statistics = cuda.statistics();
    if (statistics.high_water, refused) != (2, 2) {
        return Err(format!("{statistics:?}").into());
    }
    Ok("RingFull, TimedOut, then room".into())
}

pub(super) fn too_large(gpu: &Gpu, _: &Run) -> Result<String> {
    let cuda = gpu.with(Options::new().with_ring(2, 64 << 10))?;
    let (needed, room) = ((128 << 10) + 1, 128 << 10);
    expect(
        cuda.take_pinned(needed, Wait::Forever),
        ErrorKind::TooLarge { needed, room },
    )?;
    let sent = Payload::new("t", DType::UInt8, needed, 1);
    let tensor = cuda.upload(&sent.view()?, &gpu.stream, PATIENT)?;
    match cuda.download(&[&tensor], &gpu.stream, Wait::Forever) {
        Err(error) if matches!(error.kind(), ErrorKind::TooLarge { .. }) => Ok(error.to_string()),
        Err(error) => Err(error.into()),
        Ok(_) => Err("more than the ring has was downloaded".into()),
    }
}

pub(super) fn drop_in_flight(gpu: &Gpu, run: &Run) -> Result<String> {
    let len = if run.small { 1 << 20 } else { 24 << 20 };
    let sent = Payload::new("t", DType::UInt8, len, 5);
    for _ in 0..5 {
        let cuda = gpu.with(Options::new())?;
        let mut pinned = cuda.allocate_pinned(len)?;
        pinned.as_mut().copy_from_slice(&sent.bytes);
        let in_place = cuda.upload_pinned(&sent.descriptor()?, pinned.share(), &gpu.stream)?;
        let staged = cuda.upload(&sent.view()?, &gpu.stream, PATIENT)?;
        let unfinished = cuda.download(&[&staged], &gpu.stream, PATIENT)?;
        let finished = cuda.download(&[&staged], &gpu.stream, Wait::Never);
        drop(cuda);
        drop(unfinished);
        compare("in place", &sent.bytes, &gpu.fetch(&in_place)?)?;
        compare("staged", &sent.bytes, &gpu.fetch(&staged)?)?;
        if let Ok(download) = finished {
            let back = download.finish(PATIENT).map_err(|(_, error)| error)?;
            let view = back.tensors().next().ok_or("no tensor came back")?;
            compare("brought back", &sent.bytes, view.bytes())?;
        }
    }
    Ok("5 times; tensors and frames outlive it".into())
}

/// It was refused, and for this reason.
fn expect<T>(result: Result<T, CudaError>, kind: ErrorKind) -> Result<()> {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => Err(format!("{error}, expected: {kind}").into()),
        Ok(_) => Err(format!("no error, expected: {kind}").into()),
    }
}
