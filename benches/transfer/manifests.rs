//! The manifest of a slot, read.

use std::fmt::Write as _;
use std::hint::black_box;

use tensorwire::json::Value;
use tensorwire::transfer::manifest::{ALIGNMENT, Decoder, Manifest, Storage};

use super::common::compare::{contestant, quartiles, show};
use super::common::sample;
use super::json;

/// How many tensors a slot has.
const COUNTS: [usize; 3] = [1, 16, 256];

/// A manifest as Python writes it, and the length of its slot.
fn manifest(count: usize) -> (String, usize) {
    let (mut text, mut end, mut before) = (String::from("{"), 0, None);
    for tensor in sample(count).described {
        if before == Some(tensor.name) {
            text.push(',');
        } else {
            text.push_str(if before.is_some() { "]," } else { "" });
            write!(text, r#""{}":["#, tensor.name).unwrap();
            before = Some(tensor.name);
        }
        let dims: Vec<_> = tensor.dims.iter().map(ToString::to_string).collect();
        let offset = usize::next_multiple_of(end, ALIGNMENT);
        let (dims, dtype) = (dims.join(","), tensor.dtype);
        write!(
            text,
            r#"{{"offset":{offset},"shape":[{dims}],"dtype":"{dtype}""#
        )
        .unwrap();
        if let Some(index) = tensor.list_index {
            write!(text, r#","list_index":{index}"#).unwrap();
        }
        text.push('}');
        end = offset + tensor.byte_len();
    }
    text.push_str("]}");
    (text, end)
}

pub(crate) fn run() {
    println!(
        "manifests, decoded and held against their slot, by number of tensors; the others by our time"
    );
    println!(
        "| tensors | B | `Manifest::decode` | `Decoder` | with the syntax | serde_json borrowed | `Value` |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for count in COUNTS {
        let (text, slot_len) = manifest(count);
        let text = text.as_bytes();
        let object = Value::parse(text).unwrap().as_object().unwrap();
        let (mut first, mut second) = (Storage::<256>::new(), Storage::<256>::new());
        let mut decoder = Decoder::new();
        assert_eq!(decoder.decode(object, slot_len).unwrap().len(), count);
        let times = quartiles(&mut [
            contestant("of a message", || {
                let object = black_box(object);
                let decoded = Manifest::decode(object, slot_len, &mut first);
                black_box(decoded.unwrap());
            }),
            contestant("Decoder", || {
                black_box(decoder.decode(black_box(object), slot_len).unwrap());
            }),
            contestant("syntax checked too", || {
                let object = Value::parse(black_box(text)).unwrap().as_object().unwrap();
                let decoded = Manifest::decode(object, slot_len, &mut second);
                black_box(decoded.unwrap());
            }),
            contestant("serde_json borrowed", || {
                json::decode_manifest(black_box(text), slot_len).unwrap()
            }),
            contestant("Value", || {
                serde_json::from_slice::<serde_json::Value>(black_box(text)).unwrap()
            }),
        ]);
        let ours = times[0].1;
        print!("| {count} | {} | {} |", text.len(), show(ours));
        for (_, time) in &times[1..] {
            print!(" {:.2} |", time / ours);
        }
        println!();
    }
}
