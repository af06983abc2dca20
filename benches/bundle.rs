//! How long it takes to read a bundle, and to write one, beside copying the same bytes.

mod common;

use std::hint::black_box;

use common::compare::{contestant, quartiles, show, tables_wanted, verdict};
use common::{criterion, sample, tiny_sample};
use criterion::{BenchmarkId, Criterion};
use tensorwire::bundle::{Bundle, encode_into, encode_to_vec, lend};
use tensorwire::{Message, Storage};

/// How many tensors a message has: one frame less than there are.
const COUNTS: [usize; 4] = [1, 4, 16, 1024];

/// Nanoseconds that decoding may take, up to this many frames.
const BAR: (usize, f64) = (5, 60.0);

/// How much longer than the bare copy writing may take, from 64 KiB on.
const COPY_BAR: f64 = 1.03;

fn main() {
    if tables_wanted() {
        decoding();
        encoding();
    }
    let mut criterion = criterion();
    bench(&mut criterion);
    criterion.final_summary();
}

/// Reading the bundle, and the message in it, against the message in frames.
fn decoding() {
    println!("decode a bundle, by number of frames");
    for count in COUNTS {
        let sample = tiny_sample(count);
        let frames = sample.frames();
        let bytes = encode_to_vec(&frames).unwrap();
        let mut room = vec![&[][..]; count + 1];
        let mut storage = Box::new(Storage::<1024>::new());
        let mut other = Box::new(Storage::<1024>::new());
        let times = quartiles(&mut [
            contestant("Bundle::decode", || {
                Bundle::decode(black_box(&bytes)).unwrap().len()
            }),
            contestant("and each frame", || {
                let bundle = Bundle::decode(black_box(&bytes)).unwrap();
                bundle.frames().map(<[u8]>::len).sum::<usize>()
            }),
            contestant("and the message", || {
                let bundle = Bundle::decode(black_box(&bytes)).unwrap();
                let frames = bundle.frames_in(&mut room).unwrap();
                black_box(Message::decode(frames, &mut storage).unwrap()).len()
            }),
            contestant("the message alone", || {
                black_box(Message::decode(black_box(&frames), &mut other).unwrap()).len()
            }),
        ]);
        for (name, time) in &times {
            println!("  {:>4}  {name:<20} {:>10}", count + 1, show(*time));
        }
        if count < BAR.0 {
            let met = verdict(times[0].1 <= BAR.1);
            println!("  {:>4}  bar {}: {met}", count + 1, show(BAR.1));
        }
    }
    // The size of the frames does not matter.
    let large = encode_to_vec(&sample(4).frames()).unwrap();
    let times = quartiles(&mut [contestant("large", || {
        Bundle::decode(black_box(&large)).unwrap().len()
    })]);
    let mebibytes = large.len() >> 20;
    println!("     5  of {mebibytes} MiB in all: {}", show(times[0].1));
}

const PAYLOADS: [usize; 6] = [64, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 26];

/// Writing a metadata frame and four payloads, against copying them one after the other.
fn encoding() {
    println!("encode a bundle of five frames, by size of the payload");
    let metadata = tiny_sample(4).frames.swap_remove(0);
    for size in PAYLOADS {
        let payloads: Vec<_> = (0..4_u8).map(|value| vec![value; size / 4]).collect();
        let frames: Vec<&[u8]> = std::iter::once(&metadata)
            .chain(&payloads)
            .map(Vec::as_slice)
            .collect();
        let length = encode_to_vec(&frames).unwrap().len();
        // The same buffer for each: where it lies decides on how fast it is written.
        let buffer = std::cell::RefCell::new(vec![1; length]);
        let times = quartiles(&mut [
            contestant("copy", || {
                copy(black_box(&frames), &mut buffer.borrow_mut())
            }),
            contestant("encode_into", || {
                let buffer = &mut *buffer.borrow_mut();
                encode_into(black_box(&frames), buffer).unwrap().len()
            }),
            contestant("copy, again", || {
                copy(black_box(&frames), &mut buffer.borrow_mut())
            }),
            contestant("lend", || {
                let buffer = &mut *buffer.borrow_mut();
                let lengths = black_box(&frames).iter().map(|frame| frame.len());
                lend(lengths, buffer).unwrap().map(black_box).count()
            }),
            contestant("encode_to_vec", || {
                encode_to_vec(black_box(&frames)).unwrap()
            }),
        ]);
        let copy = times[0].1;
        for (name, time) in &times {
            let (time, ratio) = (show(*time), time / copy);
            println!(
                "  {:>8} KiB  {name:<20} {time:>10} {ratio:>6.2}x",
                size as f64 / 1024.0
            );
        }
        if size >= 1 << 16 {
            // Two equal contestants differ by the noise of the machine.
            let met = verdict(times[1].1 <= copy.max(times[2].1) * COPY_BAR);
            println!("  {:>8} KiB  bar {COPY_BAR}x: {met}", size >> 10);
        }
    }
}

/// The frames one after the other, and nothing between; what is left of the buffer.
fn copy(frames: &[&[u8]], buffer: &mut [u8]) -> usize {
    let mut rest = buffer;
    for frame in frames {
        let (place, after) = rest.split_at_mut(frame.len());
        place.copy_from_slice(frame);
        rest = after;
    }
    rest.len()
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bundle");
    for count in COUNTS {
        let sample = tiny_sample(count);
        let frames = sample.frames();
        let bytes = encode_to_vec(&frames).unwrap();
        group.bench_function(BenchmarkId::new("decode", count + 1), |bencher| {
            bencher.iter(|| Bundle::decode(black_box(&bytes)).unwrap().len());
        });
        let mut buffer = vec![0; bytes.len()];
        group.bench_function(BenchmarkId::new("encode_into", count + 1), |bencher| {
            bencher.iter(|| encode_into(black_box(&frames), &mut buffer).unwrap().len());
        });
    }
    group.finish();
}
