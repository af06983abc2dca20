//! Who sees which bytes when: streams, with cudarc's event tracking and without.

use cudarc::driver::CudaSlice;
use tensorwire::DType;
use tensorwire::cuda::Source;
use tensorwire::device::{Device, DeviceTensor, Download, TensorInfo};

use crate::Result;
use crate::args::Run;
use crate::gpu::{Gpu, PATIENT, fetch};
use crate::payload::{Payload, compare};

pub(super) fn streams(gpu: &Gpu, run: &Run) -> Result<String> {
    let len = large(run);
    let mut target = gpu.stream.alloc_zeros::<u8>(len)?;
    for seed in 1..=5 {
        let sent = Payload::new("t", DType::UInt8, len, seed);
        let tensor = gpu.cuda.upload(&sent.view()?, &gpu.stream, PATIENT)?;
        // What a kernel would do: on the stream, right after the call, without a wait of the host.
        gpu.stream.memcpy_dtod(&tensor.bytes(), &mut target)?;
        compare(
            "the copy on the stream",
            &sent.bytes,
            &fetch_slice(gpu, &target)?,
        )?;
        let other = gpu.context.new_stream()?;
        compare("another stream", &sent.bytes, &fetch(&tensor, &other)?)?;
        tensor.wait(PATIENT)?;
        if !tensor.is_ready()? {
            return Err("waited for, and not ready".into());
        }
    }
    Ok("5 tensors, two streams".into())
}

pub(super) fn without_tracking(gpu: &Gpu, run: &Run) -> Result<String> {
    // SAFETY: `disable_event_tracking` leaves it to the caller to order streams: what is done here is ordered
    // by the adapter's own events, by `wait_on`, and by waiting for the stream before buffers go.
    unsafe { gpu.context.disable_event_tracking() };
    let outcome = untracked(gpu, run);
    // SAFETY: what was made meanwhile is gone.
    unsafe { gpu.context.enable_event_tracking() };
    outcome
}

fn untracked(gpu: &Gpu, run: &Run) -> Result<String> {
    let len = large(run);
    for seed in 1..=5 {
        let sent = Payload::new("t", DType::UInt8, len, seed);
        let mut target = gpu.stream.alloc_zeros::<u8>(len)?;
        let tensor = gpu.cuda.upload(&sent.view()?, &gpu.stream, PATIENT)?;
        gpu.stream.memcpy_dtod(&tensor.bytes(), &mut target)?;
        let other = gpu.context.new_stream()?;
        tensor.wait_on(&other)?;
        compare("another stream", &sent.bytes, &fetch(&tensor, &other)?)?;
        // Zeros and the copy were put on the stream before: the upload comes after them.
        gpu.cuda.upload_into(&sent.view()?, &mut target, PATIENT)?;
        let download = gpu.cuda.download(&[&tensor], &gpu.stream, PATIENT)?;
        drop(tensor);
        let back = download.finish(PATIENT).map_err(|(_, error)| error)?;
        let view = back.tensors().next().ok_or("no tensor came back")?;
        compare("brought back", &sent.bytes, view.bytes())?;
        compare("the buffer", &sent.bytes, &fetch_slice(gpu, &target)?)?;
        gpu.stream.synchronize()?;
    }
    Ok("5 tensors, two streams".into())
}

pub(super) fn producer(gpu: &Gpu, run: &Run) -> Result<String> {
    let len = large(run);
    let mut written = gpu.stream.alloc_zeros::<u8>(len)?;
    for seed in 1..=5 {
        let sent = Payload::new("t", DType::UInt8, len, seed);
        let tensor = gpu.cuda.upload(&sent.view()?, &gpu.stream, PATIENT)?;
        gpu.stream.memcpy_dtod(&tensor.bytes(), &mut written)?;
        drop(tensor);
        let info = TensorInfo::new(&sent.descriptor()?);
        let source = Source::new(info, &written)?;
        let download = gpu.cuda.download_sources([source], &gpu.stream, PATIENT)?;
        // The next write is put on the stream at once.
        gpu.stream.memset_zeros(&mut written)?;
        let back = download.finish(PATIENT).map_err(|(_, error)| error)?;
        let view = back.tensors().next().ok_or("no tensor came back")?;
        compare("brought back", &sent.bytes, view.bytes())?;
    }
    Ok("5 times, overwritten at once".into())
}

fn fetch_slice(gpu: &Gpu, from: &CudaSlice<u8>) -> Result<Vec<u8>> {
    // SAFETY: `alloc_pinned_with_flags` says that the memory holds anything: it is written before it is read.
    let mut pinned = unsafe { gpu.context.alloc_pinned_with_flags::<u8>(from.len(), 0) }?;
    gpu.stream.memcpy_dtoh(from, &mut pinned)?;
    gpu.stream.synchronize()?;
    Ok(pinned.as_slice()?.to_vec())
}

fn large(run: &Run) -> usize {
    if run.small { 1 << 20 } else { 20 << 20 }
}
