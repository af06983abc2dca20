//! How long decoding takes, beside the ways that people decode with today.

mod common;

use std::hint::black_box;

use common::compare::{contestant, quartiles, show, tables_wanted, verdict};
use common::peers::{SimdJson, owned, serde_borrowed, sonic};
use common::{SCALARS, Sample, criterion, python, sample, tiny_sample, wide_limits};
use criterion::{BenchmarkId, Criterion, Throughput};
use safetensors::SafeTensors;
use tensorwire::message::Options;
use tensorwire::{Decoder, Message, Storage};

/// How many descriptors a message has.
const COUNTS: [usize; 5] = [1, 4, 16, 64, 1024];

/// Nanoseconds that decoding may take, by number of descriptors.
const BARS: [(usize, f64); 3] = [(1, 150.0), (4, 300.0), (16, 1000.0)];

/// How much faster than the best of the other libraries decoding is to be.
const RATIO_BAR: f64 = 3.0;

/// How much faster than the Python codec decoding is to be.
const PYTHON_BAR: f64 = 50.0;

/// What 1 MiB of metadata may take, in nanoseconds.
const MEBIBYTE_BAR: f64 = 5e6;

fn main() {
    if tables_wanted() {
        by_count();
        by_payload();
        by_metadata();
        against_python();
    }
    let mut criterion = criterion();
    bench_counts(&mut criterion);
    bench_payload(&mut criterion);
    bench_metadata(&mut criterion);
    criterion.final_summary();
}

/// Decoding by number of descriptors, against everything.
fn by_count() {
    println!("decode, by number of descriptors; five scalars");
    for count in COUNTS {
        let sample = sample(count);
        let frames = sample.frames();
        let frames = frames.as_slice();
        let safetensors = sample.safetensors();
        let mut storage = Storage::<1024>::new();
        let mut decoder = Decoder::new();
        decoder.decode(frames).unwrap();
        let mut simd = SimdJson::new();
        let mut checked = SimdJson::new();
        let times = quartiles(&mut [
            contestant("storage", || {
                black_box(Message::decode(black_box(frames), &mut storage).unwrap());
            }),
            contestant("decoder", || {
                black_box(decoder.decode(black_box(frames)).unwrap());
            }),
            contestant("serde_json borrowed", || {
                serde_borrowed::decode(black_box(frames)).unwrap()
            }),
            contestant("simd-json tape", || {
                simd.decode(black_box(frames), |name, dims, dtype, list_index, bytes| {
                    black_box((name, dims, dtype, list_index, bytes));
                })
                .unwrap()
            }),
            contestant("sonic-rs", || sonic::decode(black_box(frames)).unwrap()),
            contestant("safetensors", || {
                SafeTensors::deserialize(black_box(&safetensors)).unwrap()
            }),
            contestant("simd-json, checked", || {
                let each = |name: &str, dims: &[usize], dtype, list_index, bytes: &[u8]| {
                    black_box((name, dims, dtype, list_index, bytes));
                };
                checked.decode_checked(black_box(frames), each).unwrap()
            }),
            contestant("serde_json, map", || {
                serde_borrowed::decode_mapped(black_box(frames)).unwrap()
            }),
            contestant("owned port", || owned::decode(black_box(frames)).unwrap()),
        ]);
        let ours = times[0].1;
        for &(name, time) in &times {
            println!(
                "  {count:>4}  {name:<20} {:>10} {:>9.2}x",
                show(time),
                time / ours
            );
        }
        // The four that the bar names; they check less.
        let best = times[2..6]
            .iter()
            .map(|(_, time)| time / ours)
            .fold(f64::INFINITY, f64::min);
        println!(
            "  {count:>4}  best of the four: {best:.2}x, bar {RATIO_BAR}x: {}",
            verdict(best >= RATIO_BAR)
        );
        if let Some((_, bar)) = BARS.iter().find(|(of, _)| *of == count) {
            println!(
                "  {count:>4}  {}, bar {}: {}",
                show(ours),
                show(*bar),
                verdict(ours <= *bar)
            );
        }
    }
}

/// One tensor of `bytes` bytes.
fn one_tensor(bytes: usize) -> [Vec<u8>; 2] {
    let metadata = format!(
        r#"{{"tensor_descriptors":[{{"field_name":"latents","shape":[{},1024],"dtype":"uint8","list_index":-1}}],"scalar_fields":{SCALARS}}}"#,
        bytes / 1024
    );
    // Written to, so that the pages are there.
    [metadata.into_bytes(), vec![0xa5; bytes]]
}

const PAYLOADS: [usize; 5] = [1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26];

/// Decoding by size of the payload: flat.
fn by_payload() {
    println!("decode, by size of the payload; one tensor");
    let mut storage = Storage::<4>::new();
    let mut flat = Vec::new();
    for bytes in PAYLOADS {
        let frames = one_tensor(bytes);
        let frames = [frames[0].as_slice(), frames[1].as_slice()];
        let times = quartiles(&mut [
            contestant("storage", || {
                black_box(Message::decode(black_box(&frames), &mut storage).unwrap());
            }),
            contestant("owned port", || owned::decode(black_box(&frames)).unwrap()),
        ]);
        println!(
            "  {:>6} KiB  {:>10}  owned port {:>10}  {:.0}x",
            bytes >> 10,
            show(times[0].1),
            show(times[1].1),
            times[1].1 / times[0].1
        );
        flat.push(times[0].1);
    }
    let spread = flat.iter().copied().fold(0.0, f64::max)
        / flat.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "  slowest by fastest: {spread:.2}, flat: {}",
        verdict(spread < 1.25)
    );
}

/// Metadata of about `bytes` bytes, of the kinds that could make a reader slow.
///
/// Gives each with the payloads that it calls for: none, or as many empty ones.
fn metadata_kinds(bytes: usize) -> Vec<(&'static str, Vec<u8>, usize)> {
    let descriptors = |one: &dyn Fn(usize) -> String| {
        let mut text = String::from(r#"{"tensor_descriptors":["#);
        let mut count = 0;
        while text.len() < bytes {
            if count > 0 {
                text.push(',');
            }
            text.push_str(&one(count));
            count += 1;
        }
        text.push_str(r#"],"scalar_fields":{}}"#);
        (text.into_bytes(), count)
    };
    // A bijection on the low 16 bits without any order to it.
    let scrambled = |index: usize| (index * 40_503) & 0xffff;
    let written = |name: String| {
        format!(r#"{{"field_name":"{name}","shape":[0],"dtype":"uint8","list_index":-1}}"#)
    };
    let scalars = |body: String| {
        let text = format!(r#"{{"tensor_descriptors":[],"scalar_fields":{{"x":{body}}}}}"#);
        (text.into_bytes(), 0)
    };
    let filled = |piece: &str| piece.repeat(bytes / piece.len() + 1);
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));

    let mut kinds = vec![];
    let mut add = |name, (text, count)| kinds.push((name, text, count));
    add(
        "descriptors, in order",
        descriptors(&|index| written(format!("t{index:05}"))),
    );
    add(
        "descriptors, unsorted",
        descriptors(&|index| written(format!("t{:05}", scrambled(index)))),
    );
    add(
        "long names alike at the start",
        descriptors(&|index| written(format!("{}{:05}", "n".repeat(900), scrambled(index)))),
    );
    add(
        "escaped names alike at the start",
        descriptors(&|index| written(format!("{}{:05}", r"\u00e9".repeat(400), scrambled(index)))),
    );
    add(
        "other key order, white space",
        descriptors(&|index| {
            format!(
                "{{ \"list_index\" : {} ,\n  \"dtype\" : \"uint8\" , \"shape\" : [ 0 ] ,\n  \"field_name\" : \"x\" }}\n",
                scrambled(index)
            )
        }),
    );
    add("white space", {
        let space = " ".repeat(bytes);
        (
            format!("{{{space}\"tensor_descriptors\":[]}}").into_bytes(),
            0,
        )
    });
    add("one plain string", scalars(format!("\"{}\"", filled("a"))));
    add(
        "one string of escapes",
        scalars(format!("\"{}\"", filled(r"\n"))),
    );
    add(
        "one string not ASCII",
        scalars(format!("\"{}\"", filled("日本語"))),
    );
    add("one integer", scalars(filled("7")));
    add("small integers", scalars(format!("[{}0]", filled("1,"))));
    add(
        "floats",
        scalars(format!("[{}0]", filled("0.30000000000000004,"))),
    );
    add(
        "deep arrays",
        scalars(format!("[{}0]", filled(&format!("{deep},")))),
    );
    add(
        "small objects",
        scalars(format!("[{}0]", filled(r#"{"a":1},"#))),
    );
    kinds
}

/// Decoding by size of the metadata: linear, whatever is in it.
fn by_metadata() {
    println!("decode, by size and kind of the metadata; ns per byte");
    let options = Options::new().with_limits(wide_limits());
    let mut decoder = Decoder::with_options(options);
    let sizes = [1 << 10, 1 << 14, 1 << 17, 1 << 20];
    let kinds = metadata_kinds(sizes[0]).len();
    let mut worst: f64 = 0.0;
    for kind in 0..kinds {
        let mut line = String::new();
        let mut last = 0.0;
        let mut name = "";
        for size in sizes {
            let (kind_name, metadata, count) = metadata_kinds(size).swap_remove(kind);
            name = kind_name;
            let length = metadata.len();
            let frames: Vec<&[u8]> = std::iter::once(metadata.as_slice())
                .chain(std::iter::repeat_n(&[][..], count))
                .collect();
            let times = quartiles(&mut [contestant("decoder", || {
                black_box(decoder.decode(black_box(&frames)).unwrap());
            })]);
            last = times[0].1;
            line += &format!(" {:>7.3}", last / length as f64);
        }
        worst = worst.max(last);
        println!("  {name:<33}{line}   1 MiB: {:>8}", show(last));
    }
    println!(
        "  slowest: {}, bar {}: {}",
        show(worst),
        show(MEBIBYTE_BAR),
        verdict(worst <= MEBIBYTE_BAR)
    );
}

/// The codec that the peers run, on the same bytes.
///
/// It copies each payload. So that this is not all that is seen, also the same
/// metadata but for the shapes, with payloads of one element each.
fn against_python() {
    println!("decode, against the Python codec");
    for (count, tiny) in [
        (1, false),
        (4, false),
        (16, false),
        (1, true),
        (4, true),
        (16, true),
    ] {
        let sample = if tiny {
            tiny_sample(count)
        } else {
            sample(count)
        };
        let frames = sample.frames();
        let frames = frames.as_slice();
        let python = match python::time(frames, 2000) {
            Ok(times) => times,
            Err(reason) => return println!("  SKIP: {reason}"),
        };
        let mut storage = Storage::<16>::new();
        let times = quartiles(&mut [contestant("storage", || {
            black_box(Message::decode(black_box(frames), &mut storage).unwrap());
        })]);
        let ratio = python.unpack / times[0].1;
        println!(
            "  {count:>4}{}  {:>10}  unpack_tensors {:>10}  (json.loads {})  {ratio:.0}x, bar {PYTHON_BAR}x: {}",
            if tiny { " tiny" } else { "     " },
            show(times[0].1),
            show(python.unpack),
            show(python.json),
            verdict(ratio >= PYTHON_BAR)
        );
    }
}

fn bench_counts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for count in COUNTS {
        let sample: Sample = sample(count);
        let frames = sample.frames();
        let frames = frames.as_slice();
        let safetensors = sample.safetensors();
        let mut storage = Storage::<1024>::new();
        group.bench_function(BenchmarkId::new("storage", count), |bencher| {
            bencher.iter(|| {
                black_box(Message::decode(black_box(frames), &mut storage).unwrap());
            });
        });
        let mut decoder = Decoder::new();
        group.bench_function(BenchmarkId::new("decoder", count), |bencher| {
            bencher.iter(|| {
                black_box(decoder.decode(black_box(frames)).unwrap());
            });
        });
        group.bench_function(BenchmarkId::new("serde_json", count), |bencher| {
            bencher.iter(|| serde_borrowed::decode(black_box(frames)).unwrap());
        });
        let mut simd = SimdJson::new();
        group.bench_function(BenchmarkId::new("simd-json", count), |bencher| {
            bencher.iter(|| {
                simd.decode(black_box(frames), |name, dims, dtype, list_index, bytes| {
                    black_box((name, dims, dtype, list_index, bytes));
                })
                .unwrap()
            });
        });
        group.bench_function(BenchmarkId::new("sonic-rs", count), |bencher| {
            bencher.iter(|| sonic::decode(black_box(frames)).unwrap());
        });
        group.bench_function(BenchmarkId::new("safetensors", count), |bencher| {
            bencher.iter(|| SafeTensors::deserialize(black_box(&safetensors)).unwrap());
        });
    }
    group.finish();
}

fn bench_payload(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode-payload");
    let mut storage = Storage::<4>::new();
    for bytes in PAYLOADS {
        let frames = one_tensor(bytes);
        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
            bencher.iter(|| {
                black_box(Message::decode(black_box(&frames), &mut storage).unwrap());
            });
        });
    }
    group.finish();
}

fn bench_metadata(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode-metadata");
    let options = Options::new().with_limits(wide_limits());
    let mut decoder = Decoder::with_options(options);
    for (name, metadata, count) in metadata_kinds(1 << 20) {
        let frames: Vec<&[u8]> = std::iter::once(metadata.as_slice())
            .chain(std::iter::repeat_n(&[][..], count))
            .collect();
        group.throughput(Throughput::Bytes(metadata.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                black_box(decoder.decode(black_box(&frames)).unwrap());
            });
        });
    }
    group.finish();
}
