//! The tables.

use tensorwire::cuda::{Cuda, Options};
use tensorwire::device::{Device, Download, Landing};
use tensorwire::message::{NO_SCALARS, encode_to_vec, frames};
use tensorwire::transport::Wait;
use tensorwire::{DType, Decoder, Descriptor, TensorView};

use super::bare::Bare;
use super::common::compare::{Contestant, contestant, quartiles, show};
use super::common::size;
use super::counted;

/// Staging, by the byte: what the host does of an upload, beside a copy of the same bytes into memory that is as large.
pub(crate) fn bytes() {
    println!(
        "\nstaging, slots of 8 MiB, four of them; times by the copy into as many bytes of pinned memory, slot by slot"
    );
    println!(
        "{:>9} {:>11} {:>9} {:>9} {:>9} {:>11} {:>9}",
        "payload", "copy", "again", "upload", "bool", "copy_from", "into"
    );
    let cuda = open(Options::new());
    let stream = cuda.context().new_stream().unwrap();
    for len in [4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20] {
        let plain = vec![1_u8; len];
        let shape = [len];
        let view = tensor(DType::UInt8, &shape, &plain);
        let bools = tensor(DType::Bool, &shape, &plain);
        let metadata = encode_to_vec([view.descriptor()], &NO_SCALARS).unwrap();
        let mut decoder = Decoder::new();
        let metadata = decoder.decode_metadata(&metadata).unwrap();
        let mut target = stream.alloc_zeros::<u8>(len).unwrap();
        let mut slots = [
            Bare::new(cuda.context(), SLOTS, SLOT),
            Bare::new(cuda.context(), SLOTS, SLOT),
        ];
        let [first, second] = &mut slots;
        let (cuda, stream) = (&cuda, &stream);
        let times = quartiles(&mut [
            copy("copy", &plain, first),
            copy("again", &plain, second),
            contestant("upload", || {
                cuda.upload(&view, stream, Wait::Forever).unwrap()
            }),
            contestant("bool", || {
                cuda.upload(&bools, stream, Wait::Forever).unwrap()
            }),
            contestant("copy_from", || {
                let mut landing = cuda.land(&metadata, stream).unwrap();
                landing.copy_from(&plain, Wait::Forever).unwrap();
                landing.finish().unwrap()
            }),
            contestant("into", || {
                cuda.upload_into(&view, &mut target, Wait::Forever).unwrap();
            }),
        ]);
        print!("{:>9} {:>11}", size(len), show(times[0].1));
        for ((_, time), width) in times[1..].iter().zip([9, 9, 9, 11, 9]) {
            print!(" {:>width$.3}", time / times[0].1);
        }
        println!();
    }
}

/// Copies all bytes into the slots, one after the other and over again.
fn copy<'a>(name: &'static str, bytes: &'a [u8], slots: &'a mut Bare) -> Contestant<'a> {
    contestant(name, move || {
        for chunk in bytes.chunks(SLOT) {
            slots.slot()[..chunk.len()].copy_from_slice(chunk);
            slots.go_on();
        }
    })
}

/// One small tensor: what the adapter adds to the calls.
pub(crate) fn calls() {
    println!(
        "\none tensor of 64 bytes: nanoseconds of the bare calls and of the adapter's, dropping the tensor included"
    );
    println!(
        "{:<34} {:>10} {:>10} {:>7} {:>10}",
        "", "bare", "ours", "ratio", "overhead"
    );
    let cuda = open(Options::new());
    let stream = cuda.context().new_stream().unwrap();
    let plain = [1; 64];
    let view = tensor(DType::UInt8, &[64], &plain);
    let descriptor = view.descriptor();
    let pinned = cuda.allocate_pinned(64).unwrap().share();
    let mut bare = Bare::new(cuda.context(), SLOTS, SLOT);
    {
        let times = quartiles(&mut [
            contestant("bare", || {
                bare.slot()[..64].copy_from_slice(&plain);
                let pointer = bare.allocate_and_copy(0, 64);
                bare.record_slot();
                let ready = bare.hand_over();
                bare.free([pointer], ready);
            }),
            contestant("ours", || {
                cuda.upload(&view, &stream, Wait::Forever).unwrap()
            }),
        ]);
        overhead("upload", &times, 1);
    }
    {
        let times = quartiles(&mut [
            contestant("bare", || {
                let pointer = bare.allocate_and_copy_from(pinned.as_ref());
                let ready = bare.hand_over();
                bare.free([pointer], ready);
            }),
            contestant("ours", || {
                cuda.upload_pinned(&descriptor, pinned.clone(), &stream)
                    .unwrap()
            }),
        ]);
        overhead("upload_pinned", &times, 1);
    }
    {
        let kept = cuda.upload(&view, &stream, Wait::Forever).unwrap();
        let mut back = Bare::new(cuda.context(), SLOTS, SLOT);
        let times = quartiles(&mut [
            contestant("bare", || back.fetch(kept.device_pointer(), 64)),
            contestant("ours", || {
                let download = cuda.download(&[&kept], &stream, Wait::Forever).unwrap();
                download
                    .finish(Wait::Forever)
                    .map_err(|(_, error)| error)
                    .unwrap()
            }),
        ]);
        overhead("download, and its frame let go", &times, 1);
    }
}

/// A message of 1000 small tensors, batched and not.
pub(crate) fn small() {
    const COUNT: usize = 1000;
    println!("\na message of {COUNT} tensors: by tensor, dropping them included");
    println!(
        "{:<34} {:>10} {:>10} {:>7} {:>10}",
        "", "bare", "ours", "ratio", "overhead"
    );
    for len in [64, 4096] {
        let cuda = open(Options::new());
        let single = open(Options::new().with_batch_bytes(0));
        let stream = cuda.context().new_stream().unwrap();
        let single_stream = single.context().new_stream().unwrap();
        let sent = Sent::new(COUNT, len);
        let frames = sent.frames();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        let mut bare = Bare::new(cuda.context(), SLOTS, SLOT);
        let mut each = Bare::new(cuda.context(), SLOTS, SLOT);
        let times = quartiles(&mut [
            // Copied to where they lie in the slot, then one copy of all.
            contestant("bare", || {
                let mut rest = bare.slot();
                for bytes in &sent.payloads {
                    let (room, next) = rest.split_at_mut(len.next_multiple_of(256));
                    room[..len].copy_from_slice(bytes);
                    rest = next;
                }
                let pointer = bare.allocate_and_copy(0, COUNT * len.next_multiple_of(256));
                bare.record_slot();
                let ready = bare.hand_over();
                bare.free([pointer], ready);
            }),
            contestant("ours", || {
                cuda.upload_message(&message, &stream, Wait::Forever)
                    .unwrap()
            }),
        ]);
        overhead(&format!("batched, of {len} B"), &times, COUNT);
        let times = quartiles(&mut [
            contestant("bare", || {
                let mut pointers = Vec::with_capacity(COUNT);
                let mut at = 0;
                for bytes in &sent.payloads {
                    each.slot()[at..at + len].copy_from_slice(bytes);
                    pointers.push(each.allocate_and_copy(at, len));
                    at += len.next_multiple_of(256);
                }
                each.record_slot();
                let ready = each.hand_over();
                each.free(pointers, ready);
            }),
            contestant("ours", || {
                single
                    .upload_message(&message, &single_stream, Wait::Forever)
                    .unwrap()
            }),
        ]);
        overhead(&format!("memory each, of {len} B"), &times, COUNT);
        let views: Vec<_> = message.tensors().collect();
        let times = quartiles(&mut [
            contestant("bare", || {
                let mut all = Vec::with_capacity(COUNT);
                for bytes in &sent.payloads {
                    each.slot()[..len].copy_from_slice(bytes);
                    let pointer = each.allocate_and_copy(0, len);
                    each.record_slot();
                    all.push((pointer, each.hand_over()));
                }
                for (pointer, ready) in all {
                    each.free([pointer], ready);
                }
            }),
            contestant("ours", || {
                let tensors = views
                    .iter()
                    .map(|view| cuda.upload(view, &stream, Wait::Forever));
                tensors.collect::<Result<Vec<_>, _>>().unwrap()
            }),
        ]);
        overhead(&format!("a call each, of {len} B"), &times, COUNT);
    }
}

/// How often each call allocates.
pub(crate) fn allocations() {
    println!("\nallocations of the host, by call, the tenth time");
    let cuda = open(Options::new());
    let stream = cuda.context().new_stream().unwrap();
    let plain = vec![1; 1 << 20];
    let small = tensor(DType::UInt8, &[64], &plain[..64]);
    let large = tensor(DType::UInt8, &[1 << 20], &plain);
    let descriptor = small.descriptor();
    let pinned = cuda.allocate_pinned(64).unwrap().share();
    let kept = cuda.upload(&small, &stream, Wait::Forever).unwrap();
    let mut target = stream.alloc_zeros::<u8>(64).unwrap();
    let told = |name: &str, run: &mut dyn FnMut()| {
        for _ in 0..9 {
            run();
        }
        println!("{name:<40} {:>8}", counted::allocations(run));
    };
    told("upload, 64 B", &mut || {
        drop(cuda.upload(&small, &stream, Wait::Forever).unwrap())
    });
    told("upload, 1 MiB", &mut || {
        drop(cuda.upload(&large, &stream, Wait::Forever).unwrap())
    });
    told("upload_into, 64 B", &mut || {
        cuda.upload_into(&small, &mut target, Wait::Forever)
            .unwrap();
    });
    told("upload_pinned, 64 B", &mut || {
        drop(
            cuda.upload_pinned(&descriptor, pinned.clone(), &stream)
                .unwrap(),
        );
    });
    told("download, 64 B, with its frame", &mut || {
        let download = cuda.download(&[&kept], &stream, Wait::Forever).unwrap();
        drop(
            download
                .finish(Wait::Forever)
                .map_err(|(_, error)| error)
                .unwrap(),
        );
    });
    for count in [1, 10, 100, 1000] {
        let sent = Sent::new(count, 64);
        let frames = sent.frames();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        told(&format!("upload_message, {count} tensors"), &mut || {
            drop(
                cuda.upload_message(&message, &stream, Wait::Forever)
                    .unwrap(),
            );
        });
    }
}

fn overhead(name: &str, times: &[(&str, f64)], tensors: usize) {
    let [bare, ours] = [times[0].1, times[1].1].map(|time| time / tensors as f64);
    println!(
        "{name:<34} {bare:>7.0} ns {ours:>7.0} ns {:>7.2} {:>7.0} ns",
        ours / bare,
        ours - bare
    );
}

fn open(options: Options) -> Cuda {
    Cuda::open(0, options.with_ring(SLOTS, SLOT)).unwrap()
}

fn tensor<'a>(dtype: DType, shape: &'a [usize], bytes: &'a [u8]) -> TensorView<'a> {
    let descriptor = Descriptor::new("t", dtype, shape).unwrap();
    TensorView::new(descriptor, bytes).unwrap()
}

/// Tensors of one size.
struct Sent {
    names: Vec<String>,
    payloads: Vec<Vec<u8>>,
}

impl Sent {
    fn new(count: usize, len: usize) -> Self {
        Self {
            names: (0..count).map(|index| format!("tensor_{index}")).collect(),
            payloads: vec![vec![1; len]; count],
        }
    }

    fn frames(&self) -> Vec<Vec<u8>> {
        let shapes: Vec<_> = self.payloads.iter().map(|bytes| [bytes.len()]).collect();
        let parts = self.names.iter().zip(&shapes).zip(&self.payloads);
        let views: Vec<_> = parts
            .map(|((name, shape), bytes)| {
                let descriptor = Descriptor::new(&**name, DType::UInt8, &shape[..]).unwrap();
                TensorView::new(descriptor, bytes).unwrap()
            })
            .collect();
        let metadata = encode_to_vec(&views, &NO_SCALARS).unwrap();
        frames(&metadata, &views)
            .iter()
            .map(|frame| frame.to_vec())
            .collect()
    }
}

const SLOTS: usize = 4;
const SLOT: usize = 8 << 20;
