//! To the device and back: every dtype, every size, alone and together.

use std::thread;

use cudarc::driver::DeviceSlice;
use tensorwire::cuda::{Options, availability};
use tensorwire::device::{Device, DeviceTensor, Download};
use tensorwire::error::CastError;
use tensorwire::{DType, Decoder};

use crate::Result;
use crate::args::Run;
use crate::gpu::{Gpu, PATIENT, settled};
use crate::payload::{self, Payload, compare};

pub(super) fn no_such_device(gpu: &Gpu, _: &Run) -> Result<String> {
    let count = availability(gpu.context.ordinal())?.device_count;
    match availability(count) {
        Ok(_) => Err(format!("device {count} of {count} is there").into()),
        Err(why) => Ok(why.to_string()),
    }
}

pub(super) fn dtypes(gpu: &Gpu, _: &Run) -> Result<String> {
    for (seed, &dtype) in (1..).zip(DType::ALL) {
        for len in [16, 48 << 10] {
            round(gpu, &Payload::new("t", dtype, len, seed))?;
        }
    }
    Ok(format!("{} dtypes", DType::ALL.len()))
}

pub(super) fn sizes(gpu: &Gpu, run: &Run) -> Result<String> {
    let most = if run.small { 1 << 20 } else { 64 << 20 };
    let mut sizes = vec![0, 1, 2, 255, 256, 257, 4095, 65_537, (1 << 20) - 1];
    sizes.extend((20..=26).map(|power| 1 << power));
    sizes.extend([(8 << 20) + 1, (64 << 20) - 3]);
    sizes.retain(|&size| size <= most);
    for (seed, &size) in (1..).zip(&sizes) {
        round(gpu, &Payload::new("t", DType::UInt8, size, seed))?;
    }
    Ok(format!("{} sizes up to {} MiB", sizes.len(), most >> 20))
}

pub(super) fn chunks(gpu: &Gpu, run: &Run) -> Result<String> {
    let (slots, slot_bytes) = (2, 64 << 10);
    let cuda = gpu.with(Options::new().with_ring(slots, slot_bytes))?;
    let most = if run.small { 1 << 20 } else { 64 << 20 };
    for (seed, len) in (1..).zip([slot_bytes, slot_bytes + 1, 5 * slot_bytes - 7, most]) {
        let sent = Payload::new("t", DType::UInt8, len, seed);
        let tensor = cuda.upload(&sent.view()?, &gpu.stream, PATIENT)?;
        compare("uploaded", &sent.bytes, &gpu.fetch(&tensor)?)?;
    }
    settled(&cuda)?;
    let statistics = cuda.statistics();
    Ok(format!(
        "{} runs of slots, {} stalls, high water {} of {slots}",
        statistics.taken, statistics.stalls, statistics.high_water
    ))
}

pub(super) fn batches(gpu: &Gpu, run: &Run) -> Result<String> {
    let count = if run.small { 100 } else { 1000 };
    let payloads: Vec<_> = (0..count)
        .map(|index| {
            let dtype = DType::ALL[index % DType::ALL.len()];
            Payload::new(format!("t{index}"), dtype, index * 7 % 5000, index as u64)
        })
        .collect();
    let frames = payload::message(&payloads)?;
    let mut decoder = Decoder::new();
    let message = decoder.decode(&frames)?;
    let before = gpu.cuda.statistics();
    let tensors = gpu.cuda.upload_message(&message, &gpu.stream, PATIENT)?;
    let taken = gpu.cuda.statistics().taken - before.taken;
    let mut starts = Vec::new();
    for (sent, tensor) in payloads.iter().zip(&tensors) {
        if tensor.info().byte_len() == 0 {
            continue;
        }
        starts.push(tensor.device_pointer());
        if tensor.device_pointer() % 256 != 0 {
            return Err(format!("{} lies at {:#x}", sent.name, tensor.device_pointer()).into());
        }
        compare(&sent.name, &sent.bytes, &gpu.fetch(tensor)?)?;
    }
    let padded: u64 = payloads
        .iter()
        .map(|sent| (sent.bytes.len() as u64).next_multiple_of(256))
        .sum();
    let (Some(first), Some(last)) = (starts.iter().min(), starts.iter().max()) else {
        return Err("no tensor has bytes".into());
    };
    if last - first > padded {
        return Err(format!("spread over {} bytes of {padded}", last - first).into());
    }
    Ok(format!(
        "{count} tensors, {padded} bytes, {taken} runs of slots"
    ))
}

pub(super) fn bools(gpu: &Gpu, _: &Run) -> Result<String> {
    let good = Payload::new("mask", DType::Bool, 1000, 1);
    let tensor = gpu.cuda.upload(&good.view()?, &gpu.stream, PATIENT)?;
    if tensor.view::<bool>()?.len() != 1000 {
        return Err("1000 bools are not 1000".into());
    }
    let mut bad = Payload::new("mask", DType::Bool, 1000, 1);
    bad.bytes[777] = 2;
    let tensor = gpu.cuda.upload(&bad.view()?, &gpu.stream, PATIENT)?;
    let refused = match tensor.view::<bool>() {
        Ok(_) => return Err("a byte of 2 was taken for a bool".into()),
        Err(CastError::InvalidBool { .. }) => "InvalidBool",
        Err(other) => return Err(format!("unexpected: {other}").into()),
    };
    compare("the bytes of it", &bad.bytes, &gpu.fetch(&tensor)?)?;
    Ok(format!("{refused}, bytes kept"))
}

pub(super) fn threads(gpu: &Gpu, run: &Run) -> Result<String> {
    let rounds = if run.small { 3 } else { 40 };
    let cuda = gpu.with(Options::new().with_ring(4, 1 << 20))?;
    thread::scope(|scope| {
        let threads: Vec<_> = (1..=8_u64)
            .map(|thread| {
                let cuda = &cuda;
                scope.spawn(move || -> Result<()> {
                    let stream = gpu.context.new_stream()?;
                    for round in 0..rounds {
                        let seed = thread * 1000 + round;
                        let len =
                            (seed.wrapping_mul(0x9e37_79b9) % (3 << 20)) as usize >> (seed % 12);
                        let sent = [
                            Payload::new("large", DType::UInt8, len, seed),
                            Payload::new("small", DType::Int16, len % 1000, seed + 1),
                        ];
                        let frames = payload::message(&sent)?;
                        let mut decoder = Decoder::new();
                        let tensors =
                            cuda.upload_message(&decoder.decode(&frames)?, &stream, PATIENT)?;
                        let tensors: Vec<_> = tensors.iter().collect();
                        // One at a time: eight threads that need all slots at once would wait long.
                        for (sent, tensor) in sent.iter().zip(tensors) {
                            let download = cuda.download(&[tensor], &stream, PATIENT)?;
                            let back = download.finish(PATIENT).map_err(|(_, error)| error)?;
                            let view = back.tensors().next().ok_or("no tensor came back")?;
                            compare(&sent.name, &sent.bytes, view.bytes())?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let done = threads.into_iter().map(|thread| thread.join());
        done.map(|done| done.unwrap_or_else(|_| Err("a thread panicked".into())))
            .collect::<Result<Vec<()>>>()
    })?;
    settled(&cuda)?;
    Ok(format!(
        "{} messages, {} stalls",
        8 * rounds,
        cuda.statistics().stalls
    ))
}

pub(super) fn source_is_free(gpu: &Gpu, run: &Run) -> Result<String> {
    let len = if run.small { 1 << 20 } else { 48 << 20 };
    let mut sent = Payload::new("t", DType::UInt8, len, 9);
    let expected = sent.bytes.clone();
    let tensor = gpu.cuda.upload(&sent.view()?, &gpu.stream, PATIENT)?;
    sent.bytes.fill(0xee);
    drop(sent);
    compare("uploaded", &expected, &gpu.fetch(&tensor)?)?;
    Ok(String::new())
}

/// There and back, seen by cudarc on the device and by the adapter on the host.
fn round(gpu: &Gpu, sent: &Payload) -> Result<()> {
    let tensor = gpu.cuda.upload(&sent.view()?, &gpu.stream, PATIENT)?;
    let info = tensor.info();
    if info.dtype() != sent.dtype || info.shape() != sent.dims || info.name() != *sent.name {
        return Err(format!("{info:?} of a {} {:?}", sent.dtype, sent.dims).into());
    }
    let what = format!("{} of {} bytes", sent.dtype, sent.bytes.len());
    compare(&what, &sent.bytes, &gpu.fetch(&tensor)?)?;
    if sent.bytes.len() <= 32 << 20 {
        let download = gpu.cuda.download(&[&tensor], &gpu.stream, PATIENT)?;
        let back = download.finish(PATIENT).map_err(|(_, error)| error)?;
        let view = back.tensors().next().ok_or("no tensor came back")?;
        compare(&what, &sent.bytes, view.bytes())?;
    }
    gpu.stream.synchronize()?;
    Ok(())
}
