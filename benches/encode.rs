//! How long encoding the metadata takes, beside writing it with serde_json and sonic-rs.
//!
//! `encode_into` also does what the others are not asked for: it refuses two
//! tensors of one place, and writes byte for byte what Python writes (escapes
//! of whatever is not ASCII, floats as Python's `repr`).

mod common;

use std::hint::black_box;

use common::compare::{contestant, quartiles, show, tables_wanted, verdict};
use common::{Described, SCALARS, criterion, sample};
use criterion::{BenchmarkId, Criterion};
use serde::Serialize;
use tensorwire::Descriptor;
use tensorwire::message::{Scalar, encode_into, encode_to_vec};

const COUNTS: [usize; 5] = [1, 4, 16, 64, 1024];

fn main() {
    if tables_wanted() {
        by_count();
    }
    let mut criterion = criterion();
    bench_counts(&mut criterion);
    criterion.final_summary();
}

/// The message as serde's users would declare it.
#[derive(Serialize)]
struct Metadata<'a> {
    tensor_descriptors: Vec<Tensor<'a>>,
    scalar_fields: Scalars<'a>,
}

#[derive(Serialize)]
struct Tensor<'a> {
    field_name: &'a str,
    shape: &'a [usize],
    dtype: &'a str,
    list_index: i64,
}

#[derive(Serialize)]
struct Scalars<'a> {
    request_id: &'a str,
    seed: u64,
    guidance_scale: f64,
    num_inference_steps: u64,
    prompt: &'a str,
}

const PROMPT: &str = "A cat walks on the grass, realistic style.";

fn structs(described: &[Described]) -> Metadata<'_> {
    let tensors = described.iter().map(|tensor| Tensor {
        field_name: tensor.name,
        shape: tensor.dims,
        dtype: tensor.dtype.name(),
        list_index: tensor.list_index.map_or(-1, i64::from),
    });
    Metadata {
        tensor_descriptors: tensors.collect(),
        scalar_fields: Scalars {
            request_id: "wan-test-001",
            seed: 42,
            guidance_scale: 7.5,
            num_inference_steps: 50,
            prompt: PROMPT,
        },
    }
}

fn descriptors(described: &[Described]) -> Vec<Descriptor<'_>> {
    described
        .iter()
        .map(|tensor| {
            let descriptor = Descriptor::new(tensor.name, tensor.dtype, tensor.dims).unwrap();
            match tensor.list_index {
                Some(index) => descriptor.with_list_index(index),
                None => descriptor,
            }
        })
        .collect()
}

fn by_count() {
    println!("encode, by number of descriptors; five scalars");
    for count in COUNTS {
        let described = sample(count).described;
        let descriptors = descriptors(&described);
        let structs = structs(&described);
        let scalars = scalars();
        let expected = common::metadata(&described, SCALARS);
        assert_eq!(encode_to_vec(&descriptors, &scalars).unwrap(), expected);
        assert_eq!(serde_json::to_vec(&structs).unwrap(), expected);
        let mut buffer = vec![0; expected.len()];
        let mut vector = Vec::with_capacity(expected.len());
        let mut other = Vec::with_capacity(expected.len());
        let times = quartiles(&mut [
            contestant("encode_into", || {
                encode_into(black_box(&descriptors), black_box(&scalars), &mut buffer)
                    .unwrap()
                    .len()
            }),
            contestant("serde_json to_writer", || {
                vector.clear();
                serde_json::to_writer(&mut vector, black_box(&structs)).unwrap();
                vector.len()
            }),
            contestant("sonic-rs to_writer", || {
                other.clear();
                sonic_rs::to_writer(&mut other, black_box(&structs)).unwrap();
                other.len()
            }),
            contestant("encode_to_vec", || {
                encode_to_vec(black_box(&descriptors), black_box(&scalars)).unwrap()
            }),
            contestant("serde_json to_vec", || {
                serde_json::to_vec(black_box(&structs)).unwrap()
            }),
        ]);
        let ours = times[0].1;
        for &(name, time) in &times {
            println!(
                "  {count:>4}  {name:<20} {:>10} {:>6.2}x",
                show(time),
                time / ours
            );
        }
        let best = times[1].1.min(times[2].1) / ours;
        println!("  {count:>4}  faster than both: {}", verdict(best >= 1.0));
    }
}

fn scalars() -> [(&'static str, Scalar<'static>); 5] {
    [
        ("request_id", "wan-test-001".into()),
        ("seed", 42.into()),
        ("guidance_scale", 7.5.into()),
        ("num_inference_steps", 50.into()),
        ("prompt", PROMPT.into()),
    ]
}

fn bench_counts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    for count in COUNTS {
        let described = sample(count).described;
        let descriptors = descriptors(&described);
        let structs = structs(&described);
        let scalars = scalars();
        let mut buffer = vec![0; 1 << 18];
        group.bench_function(BenchmarkId::new("encode_into", count), |bencher| {
            bencher.iter(|| {
                encode_into(black_box(&descriptors), black_box(&scalars), &mut buffer)
                    .unwrap()
                    .len()
            });
        });
        let mut vector = Vec::with_capacity(1 << 18);
        group.bench_function(BenchmarkId::new("serde_json", count), |bencher| {
            bencher.iter(|| {
                vector.clear();
                serde_json::to_writer(&mut vector, black_box(&structs)).unwrap();
                vector.len()
            });
        });
    }
    group.finish();
}
