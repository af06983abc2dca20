//! Messages that the Python codec wrote are read as it meant them, and written as it wrote them.

#![cfg(feature = "alloc")]

mod common;

use common::{frames, lines, sha256, text};
use tensorwire::json::Value;
use tensorwire::message::{Decoder, NO_TENSORS, Scalar, encode_into, encode_to_vec};
use tensorwire::{Descriptor, TensorView};

#[test]
fn every_message_decodes_to_the_tensors_that_python_sent() {
    let messages = lines("tensors.jsonl");
    assert_eq!(messages.len(), 269);
    let mut decoder = Decoder::new();
    for line in &messages {
        let name = line["name"].as_str().unwrap();
        let frames = frames(line);
        let message = decoder.decode(&frames).unwrap();
        let expected = line["tensors"].as_array().unwrap();
        assert_eq!(message.len(), expected.len(), "{name}");
        for (tensor, expected) in message.tensors().zip(expected) {
            assert!(
                tensor.name() == expected["field_name"].as_str().unwrap(),
                "{name}"
            );
            assert_eq!(
                tensor.dtype().name(),
                expected["dtype"].as_str().unwrap(),
                "{name}"
            );
            let shape: Vec<_> = expected["shape"]
                .as_array()
                .unwrap()
                .iter()
                .map(|dim| dim.as_u64().unwrap())
                .collect();
            assert!(tensor.dims().map(|dim| dim as u64).eq(shape), "{name}");
            let list_index = tensor.list_index().map_or(-1, i64::from);
            assert_eq!(
                list_index,
                expected["list_index"].as_i64().unwrap(),
                "{name}"
            );
            assert_eq!(
                sha256(tensor.bytes()),
                expected["sha256"].as_str().unwrap(),
                "{name}"
            );
        }
        let keys = line["scalar_keys"].as_array().unwrap();
        assert_eq!(message.scalars().iter().count(), keys.len(), "{name}");
        for ((key, _), expected) in message.scalars().iter().zip(keys) {
            assert!(key == expected.as_str().unwrap(), "{name}");
        }
    }
}

#[test]
fn every_message_encodes_to_the_bytes_that_python_sent() {
    let mut decoder = Decoder::new();
    for line in lines("tensors.jsonl") {
        let name = line["name"].as_str().unwrap();
        let frames = frames(&line);
        let message = decoder.decode(&frames).unwrap();
        let views: Vec<TensorView<'_>> = message.tensors().collect();
        let again = encode_to_vec(&views, &message.scalars()).unwrap();
        assert_eq!(again, frames[0], "{name}");

        // From the caller's own parts, in place of what was received.
        let names: Vec<_> = views
            .iter()
            .map(|view| view.name().to_cow().unwrap())
            .collect();
        let shapes: Vec<Vec<usize>> = views.iter().map(|view| view.dims().collect()).collect();
        let rebuilt: Vec<_> = (0..views.len())
            .map(|i| {
                let shape = shapes[i].as_slice();
                let descriptor = Descriptor::new(&*names[i], views[i].dtype(), shape).unwrap();
                match views[i].list_index() {
                    Some(index) => descriptor.with_list_index(index),
                    None => descriptor,
                }
            })
            .collect();
        let keys: Vec<_> = message
            .scalars()
            .iter()
            .map(|(key, _)| key.to_cow().unwrap())
            .collect();
        let scalars: Vec<_> = keys
            .iter()
            .zip(message.scalars())
            .map(|(key, (_, value))| (key.as_ref(), Scalar::Json(value)))
            .collect();
        let again = encode_to_vec(&rebuilt, scalars.as_slice()).unwrap();
        assert_eq!(again, frames[0], "{name}");
    }
}

#[test]
fn floats_are_written_as_python_writes_them() {
    let text = text("floats.tsv");
    let cases = text.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for case in cases {
        let (bits, expected) = case.split_once('\t').unwrap();
        let value = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
        assert_eq!(scalar_text(Scalar::Float(value)), expected);
        let read = Value::parse(expected.as_bytes()).unwrap().as_f64().unwrap();
        assert!(read.to_bits() == value.to_bits() || read.is_nan() && value.is_nan());
        count += 1;
    }
    assert_eq!(count, 18_021);
}

#[test]
fn strings_are_written_as_python_writes_them() {
    let cases = lines("strings.jsonl");
    assert_eq!(cases.len(), 1500);
    for case in cases {
        let points: Vec<u32> = case["code_points"]
            .as_array()
            .unwrap()
            .iter()
            .map(|point| point.as_u64().unwrap() as u32)
            .collect();
        let expected = case["json"].as_str().unwrap();
        let value = Value::parse(expected.as_bytes()).unwrap();
        let read = value.as_str().unwrap();
        assert!(read.code_points().eq(points.iter().copied()), "{expected}");
        assert_eq!(scalar_text(Scalar::Str(read)), expected);
        // A lone surrogate is the one thing that no Rust text holds.
        let whole: Option<String> = points.iter().copied().map(char::from_u32).collect();
        if let Some(whole) = whole {
            assert_eq!(scalar_text(Scalar::from(whole.as_str())), expected);
        }
    }
}

/// What a scalar looks like on the wire.
fn scalar_text(scalar: Scalar<'_>) -> String {
    let mut buffer = [0; 8192];
    let metadata = encode_into(NO_TENSORS, &[("x", scalar)], &mut buffer).unwrap();
    let text = str::from_utf8(metadata).unwrap();
    let text = text.strip_prefix(r#"{"tensor_descriptors":[],"scalar_fields":{"x":"#);
    text.and_then(|text| text.strip_suffix("}}"))
        .unwrap()
        .to_string()
}
