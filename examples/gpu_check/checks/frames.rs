//! Frames that are in pinned memory already, payloads that land there, and frames that go out from there.

use tensorwire::cuda::{Cuda, Options, Pinned, PinnedBytes};
use tensorwire::device::{Device, DeviceError, DeviceTensor, Download, ErrorKind, Landing};
use tensorwire::message::{Metadata, NO_SCALARS};
use tensorwire::transport::{Frames, RecvFrames, SendFrames, Wait, loopback};
use tensorwire::{DType, Decoder};

use crate::Result;
use crate::args::Run;
use crate::gpu::{Gpu, PATIENT, eventually, settled};
use crate::payload::{self, Payload, compare};

pub(super) fn allocated(gpu: &Gpu, run: &Run) -> Result<String> {
    let len = large(run);
    in_place(gpu, gpu.cuda.allocate_pinned(len)?)
}

pub(super) fn registered(gpu: &Gpu, run: &Run) -> Result<String> {
    let memory = vec![0; large(run)].into_boxed_slice();
    let pinned = gpu.cuda.register(memory).map_err(|(_, error)| error)?;
    in_place(gpu, pinned)
}

pub(super) fn of_the_ring(gpu: &Gpu, run: &Run) -> Result<String> {
    let len = if run.small { 1 << 20 } else { 16 << 20 };
    in_place(gpu, gpu.cuda.take_pinned(len, PATIENT)?)
}

/// Received into, uploaded from, and back for the next once the device has done with it.
fn in_place(gpu: &Gpu, mut pinned: Pinned) -> Result<String> {
    let len = pinned.as_ref().len();
    for seed in 1..=3 {
        let sent = Payload::new("frame", DType::UInt8, len, seed);
        pinned.as_mut().copy_from_slice(&sent.bytes);
        let before = gpu.cuda.statistics().taken;
        let shared = pinned.share();
        let tensor = gpu
            .cuda
            .upload_pinned(&sent.descriptor()?, shared.clone(), &gpu.stream)?;
        if gpu.cuda.statistics().taken != before {
            return Err("it went through the ring".into());
        }
        compare("uploaded", &sent.bytes, &gpu.fetch(&tensor)?)?;
        let mut again = None;
        let mut shared = Some(shared);
        eventually("the memory comes back", || {
            gpu.cuda.poll()?;
            match shared.take().map(PinnedBytes::try_into_pinned) {
                Some(Ok(pinned)) => again = Some(pinned),
                Some(Err(bytes)) => shared = Some(bytes),
                None => {}
            }
            Ok(again.is_some())
        })?;
        pinned = again.ok_or("the memory did not come back")?;
    }
    Ok(format!("3 times {len} bytes, no slot taken"))
}

pub(super) fn message(gpu: &Gpu, run: &Run) -> Result<String> {
    let payloads = mixed(run);
    let frames = payload::message(&payloads)?;
    let total: usize = frames
        .iter()
        .map(|frame| frame.len().next_multiple_of(64))
        .sum();
    let mut pool = gpu.cuda.allocate_pinned(total)?;
    let mut ranges = Vec::new();
    let mut at = 0;
    for frame in &frames {
        pool.as_mut()[at..at + frame.len()].copy_from_slice(frame);
        ranges.push(at..at + frame.len());
        at += frame.len().next_multiple_of(64);
    }
    let pool = pool.share();
    let frames: Vec<_> = ranges.into_iter().map(|range| pool.slice(range)).collect();
    let frames: Vec<PinnedBytes> = frames.into_iter().collect::<Option<_>>().ok_or("slice")?;
    let mut decoder = Decoder::new();
    let tensors = {
        let message = decoder.decode(&frames)?;
        gpu.cuda.upload_pinned_message(&message, &gpu.stream)?
    };
    drop((frames, pool));
    for (sent, tensor) in payloads.iter().zip(&tensors) {
        compare(&sent.name, &sent.bytes, &gpu.fetch(tensor)?)?;
    }
    Ok(format!("{} tensors", tensors.len()))
}

pub(super) fn landing(gpu: &Gpu, run: &Run) -> Result<String> {
    let payloads = mixed(run);
    let wire: Vec<u8> = payloads
        .iter()
        .flat_map(|sent| sent.bytes.clone())
        .collect();
    let metadata = payload::metadata(&payloads)?;
    let mut pieces = 0;
    for step in [usize::MAX, 100_003] {
        let mut decoder = Decoder::new();
        let mut landing = gpu
            .cuda
            .land(&decoder.decode_metadata(&metadata)?, &gpu.stream)?;
        let mut rest = &wire[..];
        while landing.missing() > 0 {
            let room = landing.room(PATIENT)?;
            let len = room.len().min(step);
            let (piece, left) = rest.split_at(len);
            room[..len].copy_from_slice(piece);
            rest = left;
            landing.filled(len)?;
            pieces += 1;
        }
        let tensors = landing.finish()?;
        for (sent, tensor) in payloads.iter().zip(&tensors) {
            compare(&sent.name, &sent.bytes, &gpu.fetch(tensor)?)?;
        }
    }
    Ok(format!("{} bytes in {pieces} pieces", 2 * wire.len()))
}

pub(super) fn landing_given_up(gpu: &Gpu, run: &Run) -> Result<String> {
    let payloads = mixed(run);
    let metadata = payload::metadata(&payloads)?;
    let mut decoder = Decoder::new();
    let metadata: Metadata<'_, '_> = decoder.decode_metadata(&metadata)?;
    for filled in [0, 1, 300_000] {
        let mut landing = gpu.cuda.land(&metadata, &gpu.stream)?;
        let missing = landing.missing();
        landing.copy_from(&vec![0; filled], PATIENT)?;
        if filled == 1 {
            drop(landing);
            continue;
        }
        match landing.finish() {
            Ok(_) => return Err("finished with bytes missing".into()),
            Err(error)
                if error.kind()
                    == (ErrorKind::Incomplete {
                        missing: missing - filled,
                    }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(String::new())
}

pub(super) fn download_is_sent(gpu: &Gpu, run: &Run) -> Result<String> {
    let cuda = gpu.with(Options::new().with_ring(8, 4 << 20))?;
    let payloads = mixed(run);
    let tensors = uploaded(&cuda, gpu, &payloads)?;
    let (mut sender, mut receiver) = loopback::pair();
    let mut received = loopback::Message::default();
    for _ in 0..3 {
        let all: Vec<_> = tensors.iter().collect();
        let download = cuda.download(&all, &gpu.stream, PATIENT)?;
        let downloaded = download.finish(PATIENT).map_err(|(_, error)| error)?;
        sender.send_parts(&mut downloaded.into_parts(&NO_SCALARS)?, Wait::Never)?;
        receiver.recv_frames(&mut received, Wait::Never)?;
        let mut decoder = Decoder::new();
        let message = decoder.decode(received.frames())?;
        for (sent, view) in payloads.iter().zip(message.tensors()) {
            compare(&sent.name, &sent.bytes, view.bytes())?;
        }
    }
    received.clear();
    settled(&cuda)?;
    Ok(format!(
        "3 times {} tensors over the loopback",
        tensors.len()
    ))
}

fn uploaded(cuda: &Cuda, gpu: &Gpu, payloads: &[Payload]) -> Result<Vec<tensorwire::cuda::Tensor>> {
    let frames = payload::message(payloads)?;
    let mut decoder = Decoder::new();
    let tensors = cuda.upload_message(&decoder.decode(&frames)?, &gpu.stream, PATIENT)?;
    for (sent, tensor) in payloads.iter().zip(&tensors) {
        if tensor.info().byte_len() != sent.bytes.len() {
            return Err(format!("{} has another length", sent.name).into());
        }
    }
    Ok(tensors.into_vec())
}

/// A message such as models send: large and small tensors, and some without a byte.
pub(super) fn mixed(run: &Run) -> Vec<Payload> {
    let large = if run.small { 300 << 10 } else { 11 << 20 };
    vec![
        Payload::new("step", DType::Int64, 8, 1),
        Payload::new("latents", DType::BFloat16, large, 2),
        Payload::new("mask", DType::Bool, 513, 3),
        Payload::new("nothing", DType::Float32, 0, 4),
        Payload::new("sigmas", DType::Float32, 204, 5),
        Payload::new("embeds", DType::Float16, 300 << 10, 6),
        Payload::new("guidance", DType::Float64, 8, 7),
    ]
}

fn large(run: &Run) -> usize {
    if run.small { 1 << 20 } else { 64 << 20 }
}
