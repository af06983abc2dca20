//! The fast path, the general one and the oracles agree.

use serde::Deserialize;
use serde::de::IgnoredAny;
use tensorwire::error::DecodeErrorKind;
use tensorwire::message::Decoder;

use super::case::Case;
use super::check::{self, Summary};
use super::naive::{self, Json, Node, Refusal};

pub fn run(data: &[u8]) {
    let Some(case) = Case::read(data) else {
        return;
    };
    let mut fast = Decoder::with_options(case.options());
    let mut general = Decoder::with_options(case.options().without_speculation());
    let result = fast.decode(&case.frames);
    let slow = general.decode(&case.frames);

    // Verdict, and kind, offset and descriptor of an error.
    let summary = result.map(|message| Summary::of(&message));
    assert_eq!(summary, slow.map(|message| Summary::of(&message)));

    let (limits, strict) = (&case.limits, case.strict);
    let oracle = naive::decode(&case.frames, limits, strict, case.generation);
    match (&summary, &oracle) {
        (Ok(summary), Ok(oracle)) => {
            assert_eq!(summary.scalars, oracle.scalars);
            assert_eq!(summary.tensors.len(), oracle.tensors.len());
            for (tensor, expected) in summary.tensors.iter().zip(&oracle.tensors) {
                assert_eq!(tensor.name, expected.name);
                assert_eq!(tensor.list_index, expected.list_index);
                assert_eq!(tensor.dtype.name(), expected.dtype);
                assert!(
                    tensor
                        .shape
                        .iter()
                        .map(|&dim| dim as u64)
                        .eq(expected.shape.iter().copied())
                );
                assert_eq!(tensor.bytes.len() as u64, expected.byte_len);
            }
            let message = fast.decode(&case.frames).unwrap();
            scalars(message, oracle);
            with_serde(summary, oracle, case.frames[0].as_ref());
        }
        (Err(error), Err(refusal)) => {
            let why = match error.kind() {
                DecodeErrorKind::DuplicateField => "twice",
                DecodeErrorKind::DuplicateListIndex { .. } => "twice",
                DecodeErrorKind::MixedField => "mixed",
                _ => return with_simd(&case),
            };
            // The first on the wire.
            let descriptor = error.descriptor();
            assert_eq!(refusal, &Refusal { why, descriptor });
        }
        _ => panic!("{:?} against {:?}", summary.err(), oracle.err()),
    }
    with_simd(&case);
}

/// Scalars one by one, where they lie.
fn scalars<F: AsRef<[u8]>>(message: tensorwire::Message<'_, '_, F>, oracle: &naive::Message<'_>) {
    let Json::Object(members) = &oracle.document.json else {
        panic!("a message that is no object");
    };
    let whole = oracle.document.raw;
    let at = oracle.document.at;
    for (key, node) in members {
        if naive::text(key).as_deref() == Some("scalar_fields") {
            // Offsets are of the frame, white space before the object included.
            let document = " ".repeat(at) + whole;
            check::value(&document, message.scalars().as_value(), node);
        }
    }
}

#[derive(Deserialize)]
struct Metadata {
    tensor_descriptors: Vec<Descriptor>,
    #[serde(rename = "scalar_fields")]
    _scalar_fields: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Descriptor {
    field_name: String,
    shape: Vec<u64>,
    dtype: String,
    list_index: Option<i64>,
}

/// What is accepted, serde_json reads as the same descriptors.
///
/// Not the other way round: it takes `"shape":[-0]`, `"list_index":null` and
/// -5, any dtype, frames of any length. And it refuses the three tokens of
/// Python's, and a lone surrogate in a key where it looks for fields.
fn with_serde(summary: &Summary, oracle: &naive::Message<'_>, metadata: &[u8]) {
    if !oracle.document.is_strict() || !oracle.document.is_text() {
        return;
    }
    let read: Metadata = serde_json::from_slice(metadata).unwrap();
    assert_eq!(read.tensor_descriptors.len(), summary.tensors.len());
    for (expected, tensor) in read.tensor_descriptors.iter().zip(&summary.tensors) {
        assert_eq!(tensor.name, expected.field_name);
        assert_eq!(tensor.dtype.name(), expected.dtype);
        assert!(
            tensor
                .shape
                .iter()
                .map(|&dim| dim as u64)
                .eq(expected.shape.iter().copied())
        );
        let list_index = tensor.list_index.map_or(-1, i64::from);
        assert_eq!(list_index, expected.list_index.unwrap_or(-1));
    }
}

/// Whether simd-json takes the text that ours takes, and no other.
///
/// It is left out where it has another grammar: numbers that fit neither its
/// integers nor its floats, lone surrogates, the three tokens, nesting past our
/// limit.
fn with_simd(case: &Case) {
    let metadata = case.frames.first().map_or(&[][..], AsRef::as_ref);
    let mut copy = metadata.to_vec();
    let accepted = simd_json::to_tape(&mut copy).is_ok();
    match tensorwire::json::Value::parse_strict(metadata) {
        Ok(value) => {
            let node = Node::parse(value.raw(), usize::MAX).unwrap();
            if node.is_text() && node.all(&mut has_room) {
                assert!(accepted, "simd-json refuses {value:?}");
            }
        }
        Err(error) => {
            let too_deep = matches!(error.kind(), DecodeErrorKind::DepthLimit { .. });
            assert!(!accepted || too_deep, "simd-json takes it: {error}");
        }
    }
}

/// Whether a number is one that simd-json takes.
fn has_room(node: &Node<'_>) -> bool {
    if !matches!(node.json, Json::Number) {
        return true;
    }
    let text = node.raw;
    if text
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_digit())
    {
        return text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    }
    text.parse::<f64>().is_ok_and(f64::is_finite)
}
