//! Whatever a peer sends is decoded or refused, with one error, at the right byte.

mod common;

use std::borrow::Cow;
use std::cell::Cell;

use common::hostile::{self, CASES, OLDEST, STRICT, Verdict, verdict};
use common::lines;
use tensorwire::dtype::Generation;
use tensorwire::error::{CastError, DecodeError, DecodeErrorKind, SchemaKey, ValueErrorKind};
use tensorwire::error::{DecodeErrorKind::*, SyntaxError};
use tensorwire::json::ValueType;
use tensorwire::message::{Message, Options, Storage};
use tensorwire::{DType, Limits};

use Verdict::{Accept, Reject};

/// Room for any of the cases here.
type Room = Box<Storage<64>>;

fn room() -> Room {
    Box::default()
}

/// A message as good as any, and what it says.
fn check_good<F: AsRef<[u8]>>(message: Result<Message<'_, '_, F>, DecodeError>, after: &str) {
    let message = message.unwrap_or_else(|error| panic!("after {after}: {error}"));
    assert_eq!(message.len(), 3, "after {after}");
    assert_eq!(message.tensor("a").unwrap().bytes(), [1, 2]);
    let list = message.list("l").unwrap();
    assert_eq!((list.len(), list.present_len()), (3, 2));
    assert_eq!(list.get(2).unwrap().bytes(), [5]);
    assert_eq!(message.scalars().field("seed").unwrap().as_i64(), Ok(42));
}

const GOOD: [&[u8]; 4] = [
    br#"{"tensor_descriptors":[{"field_name":"l","shape":[1],"dtype":"uint8","list_index":2},{"field_name":"l","shape":[],"dtype":"int8","list_index":0},{"field_name":"a","shape":[2],"dtype":"uint8","list_index":-1}],"scalar_fields":{"seed":42}}"#,
    &[5],
    &[6],
    &[1, 2],
];

/// Its name, the options that a case is decoded with, and the verdicts that change.
type Mode = (&'static str, Options, &'static [(&'static str, Verdict)]);

const MODES: &[Mode] = &[
    ("default", Options::new(), &[]),
    ("strict", Options::new().with_strict_json(true), STRICT),
    (
        "oldest",
        Options::new().with_generation(Generation::Oldest),
        OLDEST,
    ),
];

#[test]
fn every_recorded_message_meets_the_verdict_written_down() {
    let cases = lines("hostile.jsonl");
    assert_eq!(cases.len(), CASES.len());
    for (mode, options, changes) in MODES {
        let mut storage = room();
        for (case, (id, _)) in cases.iter().zip(CASES) {
            assert_eq!(case["id"].as_str(), Some(*id));
            let frames = hostile::message(case);
            let result = options.decode(&frames, &mut *storage);
            assert_eq!(Verdict::of(&result), verdict(changes, id), "{id} {mode}");
            check_good(options.decode(&GOOD, &mut *storage), id);
        }
    }
}

/// The recorded expectation is prose; this is the part of it that cannot be misread.
#[test]
fn the_verdicts_are_those_that_were_recorded() {
    for case in lines("hostile.jsonl") {
        let id = case["id"].as_str().unwrap();
        let expected = case["expected"].as_str().unwrap().to_lowercase();
        let accept = expected.starts_with("accept");
        let pinned = ["L07"].contains(&id); // "accept as 0 or reject; pin it"
        let actual = verdict(OLDEST, id) == Accept;
        assert!(actual == accept || pinned && !actual, "{id}: {expected}");
    }
}

#[cfg(feature = "alloc")]
#[test]
fn a_decoder_gives_the_same_verdicts_and_survives_them() {
    for (mode, options, changes) in MODES {
        let mut decoder = tensorwire::Decoder::with_options(*options);
        for (case, (id, _)) in lines("hostile.jsonl").iter().zip(CASES) {
            let frames = hostile::message(case);
            let result = decoder.decode(&frames);
            assert_eq!(Verdict::of(&result), verdict(changes, id), "{id} {mode}");
            check_good(decoder.decode(&GOOD), id);
        }
    }
}

#[test]
fn a_verdict_on_the_metadata_alone_is_the_one_on_the_message() {
    let mut storage = room();
    for (case, (id, expected)) in lines("hostile.jsonl").iter().zip(CASES) {
        let frames = hostile::message(case);
        let metadata = Options::new().decode_metadata(&frames[0], &mut storage);
        let expected = match expected {
            Reject(FrameCount { .. } | FrameLength { .. }, ..) => Accept,
            other => *other,
        };
        assert_eq!(Verdict::of(&metadata), expected, "{id}");
        if let Ok(metadata) = metadata {
            let attached = metadata.attach(&frames[1..]);
            assert_eq!(Verdict::of(&attached), verdict(&[], id), "{id}");
        }
    }
}

/// Calls `check` with the message of each accepted case; gives their number.
fn with_accepted(mut check: impl FnMut(&str, &Message<'_, '_, Vec<u8>>)) -> usize {
    let mut storage = room();
    let mut count = 0;
    for (case, (id, expected)) in lines("hostile.jsonl").iter().zip(CASES) {
        if *expected == Accept {
            let frames = hostile::message(case);
            check(id, &Message::decode(&frames, &mut storage).unwrap());
            count += 1;
        }
    }
    count
}

#[test]
fn what_is_accepted_comes_out_as_it_was_sent() {
    // (id, tensors: name, list index, dtype, dims, bytes; scalars: key, text)
    type Tensor = (
        &'static str,
        Option<u32>,
        DType,
        &'static [usize],
        &'static [u8],
    );
    type Comes = (
        &'static str,
        &'static [Tensor],
        &'static [(&'static str, &'static str)],
    );
    const ONE: &[u8] = &[0, 0, 0x80, 0x3f];
    const X: Tensor = ("x", None, DType::Float32, &[1], ONE);
    const SIX: &[u8] = &[
        0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f,
        0, 0, 0x80, 0x3f,
    ];
    let nines = "9".repeat(5000);
    #[rustfmt::skip]
    let expected: &[Comes] = &[
        ("E09", &[], &[]),
        ("E16", &[], &[]),
        ("E21", &[], &[]),
        ("E27", &[], &[("a", "NaN"), ("b", "Infinity"), ("c", "-Infinity")]),
        ("E32", &[("a\0b", None, DType::Float32, &[1], ONE)], &[]),
        ("E37", &[], &[("a", "5000 nines")]),
        ("E38", &[], &[("a", "1e999"), ("b", "-1e999"), ("c", "1e-999")]),
        ("E39", &[X], &[]),
        ("E40", &[X], &[]),
        ("D05", &[("x", None, DType::Float32, &[0], &[])], &[]),
        ("D09", &[("x", None, DType::Float32, &[], ONE)], &[]),
        ("D36", &[("x", None, DType::Float32, &[2, 3], SIX)], &[]),
        ("D37", &[("x", None, DType::Float32, &[1; 64], ONE)], &[]),
        ("D40b", &[("x", None, DType::UInt32, &[1], ONE)], &[]),
        ("D41", &[("x", None, DType::Bool, &[4], &[0, 1, 2, 0xff])], &[]),
        ("D43", &[("x", None, DType::Float16, &[2], &[1, 0x7c, 0xff, 0xff])], &[]),
        ("D51", &[X], &[]),
        ("L01", &[X], &[]),
        ("L14", &[("x", Some(0), DType::Float32, &[1], ONE), ("x", Some(2), DType::Float32, &[1], ONE)], &[]),
        ("L15", &[("x", Some(1), DType::Float32, &[1], ONE), ("x", Some(0), DType::Float32, &[1], &[0; 4])], &[]),
        ("L20", &[X], &[("x", "1")]),
    ];
    let mut rows = expected.iter();
    let count = with_accepted(|id, message| {
        let (row, tensors, scalars) = rows.next().unwrap();
        assert_eq!(id, *row);
        assert_eq!(message.len(), tensors.len(), "{id}");
        for (view, (name, list_index, dtype, dims, bytes)) in message.tensors().zip(*tensors) {
            assert!(view.name() == *name, "{id}");
            assert_eq!(view.list_index(), *list_index, "{id}");
            assert_eq!(view.dtype(), *dtype, "{id}");
            assert!(view.dims().eq(dims.iter().copied()), "{id}");
            assert_eq!(view.bytes(), *bytes, "{id}");
        }
        assert_eq!(message.scalars().iter().count(), scalars.len(), "{id}");
        for ((key, value), (name, text)) in message.scalars().iter().zip(*scalars) {
            let text = if *text == "5000 nines" { &nines } else { *text };
            assert!(key == *name && value.raw() == text, "{id}");
        }
    });
    assert_eq!(count, expected.len());
}

#[test]
fn what_is_accepted_is_read_as_it_can_be() {
    let mut seen = 0;
    with_accepted(|id, message| {
        let kind = |key: &str| {
            let value = message.scalars().field(key).unwrap();
            value.as_i128().unwrap_err().kind()
        };
        let float = |key: &str| message.scalars().field(key).unwrap().as_f64().unwrap();
        seen += 1;
        match id {
            "E27" => {
                assert!(float("a").is_nan());
                assert_eq!((float("b"), float("c")), (f64::INFINITY, f64::NEG_INFINITY));
                assert_eq!(kind("a"), ValueErrorKind::NotAnInteger);
            }
            "E37" => {
                assert_eq!(kind("a"), ValueErrorKind::NumberOutOfRange);
                let error = message.scalars().field("a").unwrap().as_f64().unwrap_err();
                assert_eq!(
                    (error.kind(), error.offset()),
                    (ValueErrorKind::NumberOutOfRange, 46)
                );
            }
            "E38" => {
                assert_eq!(
                    (float("a"), float("b"), float("c")),
                    (f64::INFINITY, f64::NEG_INFINITY, 0.0)
                );
                assert_eq!(kind("a"), ValueErrorKind::NotAnInteger);
            }
            "D05" => {
                let x = message.tensor("x").unwrap();
                assert_eq!((x.element_count(), x.shape().to_array::<1>()), (0, Ok([0])));
                assert_eq!(x.as_slice::<f32>(), Ok(&[][..]));
            }
            "D09" => {
                let x = message.tensor("x").unwrap();
                assert_eq!(
                    (x.rank(), x.element_count(), x.shape().to_array::<0>()),
                    (0, 1, Ok([]))
                );
                assert!(x.elements::<f32>().unwrap().eq([1.0]) && x.index(0).is_none());
            }
            "D36" => {
                let x = message.tensor("x").unwrap();
                assert_eq!(x.shape().to_array::<2>(), Ok([2, 3]));
                assert_eq!(x.index(1).unwrap().bytes(), &x.bytes()[12..]);
            }
            "D41" => {
                let x = message.tensor("x").unwrap();
                let error = CastError::InvalidBool { index: 2, byte: 2 };
                assert_eq!(x.as_slice::<bool>(), Err(error));
                assert_eq!(x.elements::<bool>().unwrap_err(), error);
                assert_eq!(x.copy_to_slice(&mut [false; 4]), Err(error));
                assert_eq!(x.as_slice_or_copy(&mut [false; 4]), Err(error));
                let (expected, actual) = (DType::UInt8, DType::Bool);
                assert_eq!(
                    x.as_slice::<u8>(),
                    Err(CastError::WrongDType { expected, actual })
                );
            }
            "D43" => {
                let x = message.tensor("x").unwrap();
                let bits = x.elements::<half::f16>().unwrap().map(half::f16::to_bits);
                assert!(bits.eq([0x7c01, 0xffff]));
            }
            "L14" => {
                assert!(message.tensor("x").is_none());
                let list = message.list("x").unwrap();
                assert_eq!((list.len(), list.present_len()), (3, 2));
                assert!(list.get(0).is_some() && list.get(1).is_none());
                assert!(list.get(2).is_some() && list.get(3).is_none());
                assert!(
                    list.iter()
                        .map(|member| member.is_some())
                        .eq([true, false, true])
                );
            }
            "L15" => {
                let list = message.list("x").unwrap();
                let bytes = list.iter().map(|member| member.unwrap().bytes().to_vec());
                assert!(bytes.eq([vec![0; 4], vec![0, 0, 0x80, 0x3f]]));
            }
            "L20" => {
                assert!(message.tensor("x").is_some() && message.list("x").is_none());
                assert_eq!(message.scalars().field("x").unwrap().as_u64(), Ok(1));
            }
            _ => seen -= 1,
        }
    });
    assert_eq!(seen, 11);
}

// More of the same kinds. In a text, `|` marks the offset of the error, and
// `@` stands for the members of a good descriptor.

const PLAIN: &str = r#""field_name":"x","shape":[1],"dtype":"uint8""#;

/// The metadata that `text` stands for, and the offset that it marks.
fn marked(text: &[u8]) -> (Vec<u8>, Option<usize>) {
    let mut metadata = Vec::new();
    let mut offset = None;
    for &byte in text {
        match byte {
            b'|' => assert_eq!(offset.replace(metadata.len()), None, "two marks"),
            b'@' => metadata.extend(PLAIN.as_bytes()),
            _ => metadata.push(byte),
        }
    }
    (metadata, offset)
}

const END: DecodeErrorKind = Syntax(SyntaxError::UnexpectedEnd);
const CONTROL: DecodeErrorKind = Syntax(SyntaxError::ControlCharacter);
const ESCAPE: DecodeErrorKind = Syntax(SyntaxError::InvalidEscape);
const NUMBER: DecodeErrorKind = Syntax(SyntaxError::InvalidNumber);

const fn byte(found: u8) -> DecodeErrorKind {
    Syntax(SyntaxError::UnexpectedByte { found })
}

const fn wrong(expected: ValueType, actual: ValueType) -> DecodeErrorKind {
    WrongType { expected, actual }
}

/// (the whole metadata, its error and the descriptor; `None` if it is accepted)
type Case<'a> = (&'a [u8], Option<(DecodeErrorKind, Option<usize>)>);

#[rustfmt::skip]
const WHOLE: &[Case<'_>] = &[
    // Too short.
    (b" \t\r\n|", Some((END, None))),
    (b"{|", Some((END, None))),
    (br#"{"|"#, Some((END, None))),
    (br#"{"a|"#, Some((END, None))),
    (br#"{"a\|"#, Some((END, None))),
    (br#"{"a\u00|"#, Some((END, None))),
    (br#"{"a"|"#, Some((END, None))),
    (br#"{"a":|"#, Some((END, None))),
    (br#"{"a":1|"#, Some((END, None))),
    (br#"{"a":1,|"#, Some((END, None))),
    (br#"{"tensor_descriptors"|"#, Some((END, None))),
    (br#"{"tensor_descriptors":|"#, Some((END, None))),
    (br#"{"tensor_descriptors":[|"#, Some((END, Some(0)))),
    (br#"{"tensor_descriptors":[]|"#, Some((END, None))),
    (br#"{"tensor_descriptors":[{@}|"#, Some((END, None))),
    (br#"{"tensor_descriptors":[{@},|"#, Some((END, Some(1)))),
    (br#"{"tensor_descriptors":[{@|"#, Some((END, Some(0)))),
    // Another byte than there can be.
    (b"|x", Some((byte(b'x'), None))),
    (b"|\0", Some((byte(0), None))),
    (b"{|,}", Some((byte(b','), None))),
    (b"{|1:2}", Some((byte(b'1'), None))),
    (b"{|'a':1}", Some((byte(b'\''), None))),
    (br#"{|tensor_descriptors:[]}"#, Some((byte(b't'), None))),
    (br#"{|/**/"tensor_descriptors":[]}"#, Some((byte(b'/'), None))),
    (br#"{"a"|1}"#, Some((byte(b'1'), None))),
    (br#"{"a":|}"#, Some((byte(b'}'), None))),
    (br#"{"a":1|]"#, Some((byte(b']'), None))),
    (br#"{"a":1 |"b":2}"#, Some((byte(b'"'), None))),
    (br#"{"a":1,|,"b":2}"#, Some((byte(b','), None))),
    (br#"{"a":[1|}"#, Some((byte(b'}'), None))),
    (br#"{"tensor_descriptors":[|,]}"#, Some((byte(b','), Some(0)))),
    (br#"{"tensor_descriptors":[{@},|]}"#, Some((byte(b']'), Some(1)))),
    (br#"{"tensor_descriptors":[{@}|{@}]}"#, Some((byte(b'{'), None))),
    (br#"{"tensor_descriptors":[{@}|}}"#, Some((byte(b'}'), None))),
    (b"{|\xef\xbb\xbf\"tensor_descriptors\":[]}", Some((byte(0xef), None))),
    (b"{|\xc2\xa0\"tensor_descriptors\":[]}", Some((byte(0xc2), None))),
    (b"{|\x0c\"tensor_descriptors\":[]}", Some((byte(0x0c), None))),
    // Something behind it.
    (br#"{"tensor_descriptors":[]}|}"#, Some((TrailingData, None))),
    (br#"{"tensor_descriptors":[]} |{"tensor_descriptors":[]}"#, Some((TrailingData, None))),
    (b"{\"tensor_descriptors\":[]}\n|\0", Some((TrailingData, None))),
    (b"{\"tensor_descriptors\":[]}|\xc2\xa0", Some((TrailingData, None))),
    (b"{\"tensor_descriptors\":[]}|\xe2\x80\xa8", Some((TrailingData, None))),
    (br#"{"a":1}|x"#, Some((TrailingData, None))),
    // No UTF-8, anywhere.
    (b"|\xff", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[]}|\xe2\x82", Some((InvalidUtf8, None))),
    (b"{\"|\xe2\x82\":1,\"tensor_descriptors\":[]}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[{@,\"a\":\"|\xf0\x9f\x98\"}]}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"|\xed\xa0\x80\"}}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"|\xf4\x90\x80\x80\"}}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"|\xe0\x80\x80\"}}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"|\xf0\x80\x80\x80\"}}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"|\x80\"}}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"\xe2\x82\xac|\xff\"}}", Some((InvalidUtf8, None))),
    // The encoding is checked first: of two faults it is the one.
    (b"{,\"|\xff\"}", Some((InvalidUtf8, None))),
    // The first byte says which type a value has, or fails to have.
    (b"|tensor", Some((wrong(ValueType::Object, ValueType::Bool), None))),
    (br#"{"tensor_descriptors":|-}"#, Some((wrong(ValueType::Array, ValueType::Number), None))),
    // Keys that are missing, given twice, or only look like it.
    (b"|{}", Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#" |{"scalar_fields":{}}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"|{"Tensor_descriptors":[]}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"|{"tensor_descriptors\u0000":[]}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"|{"tensor_descriptor":[]}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"|{" tensor_descriptors":[]}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"|{"scalar_fields":{"tensor_descriptors":[]}}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"{"tensor_descriptors":[],|"tensor_descriptors":[]}"#, Some((DuplicateKey, None))),
    (br#"{"tensor_descriptors":[],|"tensor\u005fdescriptors":null}"#, Some((DuplicateKey, None))),
    (br#"{"\u0074ensor_descriptors":[],"a":1, |"tensor_descriptors":[]}"#, Some((DuplicateKey, None))),
    (br#"{"scalar_fields":{},"tensor_descriptors":[],|"scalar_fields":{}}"#, Some((DuplicateKey, None))),
    (br#"{"scalar_fields":{},|"scalar_field\u0073":{},"tensor_descriptors":[]}"#, Some((DuplicateKey, None))),
    (br#"{"a":1,"a":2,"tensor_descriptors":[],"\u0061":3}"#, None),
    (br#"{"\u0074\u0065\u006e\u0073\u006F\u0072\u005f\u0064escriptors":[],"scalar\u005ffields":{}}"#, None),
    // Python's tokens, outside the scalars.
    (br#"{"a":|NaN,"tensor_descriptors":[]}"#, Some((NonFinite, None))),
    (br#"{"tensor_descriptors":[],"a":[{"b":|-Infinity}]}"#, Some((NonFinite, None))),
    (br#"{"tensor_descriptors":[{@,"a":|Infinity}]}"#, Some((NonFinite, Some(0)))),
    (b"|NaN", Some((wrong(ValueType::Object, ValueType::Number), None))),
    (br#"{"tensor_descriptors":|NaN}"#, Some((wrong(ValueType::Array, ValueType::Number), None))),
    // White space wherever it can stand.
    (b" {\n\"tensor_descriptors\" :\t[ { \"field_name\" : \"x\" , \"shape\" : [ 1 , 1 ] ,\r\n\"dtype\" : \"uint8\" , \"list_index\" : -1 } ] , \"scalar_fields\" : { } } ", None),
    (b"{\"tensor_descriptors\":[ ],\"scalar_fields\":{\t}}", None),
    (br#"{"scalar_fields":{"a":[1,{"b":null}]},"x":true,"tensor_descriptors":[{@,"list_index":0},{"dtype":"uint8","list_index":1,"shape":[],"field_name":"x"}]}"#, None),
];

/// Lists of descriptors.
#[rustfmt::skip]
const DESCRIPTORS: &[Case<'_>] = &[
    (b"|{}", Some((MissingKey(SchemaKey::FieldName), Some(0)))),
    (br#"|{"shape":[1],"dtype":"uint8"}"#, Some((MissingKey(SchemaKey::FieldName), Some(0)))),
    (br#"{@}, |{"field_name":"y","dtype":"uint8"}"#, Some((MissingKey(SchemaKey::Shape), Some(1)))),
    (br#"|{"field_name":"x","shape":[1],"list_index":-1}"#, Some((MissingKey(SchemaKey::DType), Some(0)))),
    (br#"|{"field_name":"x","Shape":[1],"dtype":"uint8"}"#, Some((MissingKey(SchemaKey::Shape), Some(0)))),
    (br#"{@,|"field_name":"x"}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,|"shape":[1]}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,|"dtype":"uint8"}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,"list_index":-1,|"list_index":-1}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,|"\u0066ield_name":"y"}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,|"s\u0068ape":[2]}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,|"dtyp\u0065":"int8"}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,"list\u005findex":0,|"list_index":1}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,"a":1,"a":2}"#, None),
    // Dimensions.
    (br#"{"field_name":"x","shape":[|1.5],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[|1e0],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[|1E400],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[1,|-0],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[|-9223372036854775809],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[|NaN],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[2,|-Infinity],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[|[1]],"dtype":"uint8"}"#, Some((wrong(ValueType::Number, ValueType::Array), Some(0)))),
    (br#"{"field_name":"x","shape":[|{}],"dtype":"uint8"}"#, Some((wrong(ValueType::Number, ValueType::Object), Some(0)))),
    (br#"{"field_name":"x","shape":[0|0],"dtype":"uint8"}"#, Some((NUMBER, Some(0)))),
    (br#"{"field_name":"x","shape":[-0|1],"dtype":"uint8"}"#, Some((NUMBER, Some(0)))),
    (br#"{"field_name":"x","shape":[1.|],"dtype":"uint8"}"#, Some((NUMBER, Some(0)))),
    (br#"{"field_name":"x","shape":[0|x1],"dtype":"uint8"}"#, Some((byte(b'x'), Some(0)))),
    (br#"{"field_name":"x","shape":[1|_000],"dtype":"uint8"}"#, Some((byte(b'_'), Some(0)))),
    (br#"{"field_name":"x","shape":[|+1],"dtype":"uint8"}"#, Some((byte(b'+'), Some(0)))),
    (br#"{"field_name":"x","shape":[|.5],"dtype":"uint8"}"#, Some((byte(b'.'), Some(0)))),
    (br#"{"field_name":"x","shape":[1,|],"dtype":"uint8"}"#, Some((byte(b']'), Some(0)))),
    (br#"{"field_name":"x","shape":[|,1],"dtype":"uint8"}"#, Some((byte(b','), Some(0)))),
    (br#"{"field_name":"x","shape":[1|;2],"dtype":"uint8"}"#, Some((byte(b';'), Some(0)))),
    (br#"{"field_name":"x","shape":[1 |2],"dtype":"uint8"}"#, Some((byte(b'2'), Some(0)))),
    (br#"{"field_name":"x","shape":[1|},"dtype":"uint8"}"#, Some((byte(b'}'), Some(0)))),
    (br#"{"field_name":"x","shape":[|9223372036854775808],"dtype":"uint8"}"#, Some((DimOverflow, Some(0)))),
    (br#"{"field_name":"x","shape":[0,|18446744073709551615],"dtype":"uint8"}"#, Some((DimOverflow, Some(0)))),
    (br#"{"field_name":"x","shape":[|99999999999999999999999999999999999999999999999999],"dtype":"uint8"}"#, Some((DimOverflow, Some(0)))),
    // Sizes at `isize::MAX`, which is 7 * 7 * 73 * 127 * 337 * 92737 * 649657.
    (br#"{"field_name":"x","shape":[9223372036854775807],"dtype":"uint8"}"#, None),
    (br#"{"field_name":"x","shape":[7,7,73,127,337,92737,649657,1],"dtype":"bool","list_index":-1}"#, None),
    (br#"{"field_name":"x","shape":[0,9223372036854775807],"dtype":"int8"}"#, None),
    (br#"{"field_name":"x","shape":[4611686018427387903],"dtype":"float16"}"#, None),
    (br#"{"field_name":"x","shape":[|4611686018427387904],"dtype":"float16"}"#, Some((ShapeOverflow, Some(0)))),
    (br#"{"field_name":"x","shape":[|4294967296,2147483648],"dtype":"uint8","list_index":-1}"#, Some((ShapeOverflow, Some(0)))),
    (br#"{"field_name":"x","shape":[|0,9223372036854775807],"dtype":"int16","list_index":-1}"#, Some((ShapeOverflow, Some(0)))),
    (br#"{"field_name":"x","shape":[|9223372036854775807,0,2],"dtype":"int8"}"#, Some((ShapeOverflow, Some(0)))),
    (br#"{"dtype":"complex128","shape":[ 576460752303423487 ],"field_name":"x"}"#, None),
    (br#"{"dtype":"complex128","shape":[|576460752303423488],"field_name":"x"}"#, Some((ShapeOverflow, Some(0)))),
    // Dtypes.
    (br#"{"field_name":"x","shape":[1],"dtype":|"Float32"}"#, Some((UnknownDType, Some(0)))),
    (br#"{"field_name":"x","shape":[1],"dtype":|"float32 ","list_index":-1}"#, Some((UnknownDType, Some(0)))),
    (br#"{"field_name":"x","shape":[1],"dtype":|"float32\u0000","list_index":-1}"#, Some((UnknownDType, Some(0)))),
    (br#"{"field_name":"x","shape":[1],"dtype":|"\ud800","list_index":-1}"#, Some((UnknownDType, Some(0)))),
    (br#"{"field_name":"x","shape":[1],"dtype":|"\u0066\u006c\u006f\u0061\u0074\u0038\u005f\u0065\u0034\u006d\u0033\u0066\u006e\u0075\u007a\u007a"}"#, Some((UnknownDType, Some(0)))),
    (br#"{"field_name":"x","shape":[1],"dtype":"\u0066\u006c\u006f\u0061\u0074\u0038\u005f\u0065\u0034\u006d\u0033\u0066\u006e\u0075\u007a"}"#, None),
    (b"{\"field_name\":\"x\",\"shape\":[1],\"dtype\":|\"f\xc3\xb6oat32\"}", Some((UnknownDType, Some(0)))),
    // List indices.
    (br#"{@,"list_index":|-2}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":|-10}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":|1.0}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":|1e0}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":|-1e0}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":|-Infinity}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":0|0}"#, Some((NUMBER, Some(0)))),
    (br#"{@,"list_index":-|}"#, Some((NUMBER, Some(0)))),
    (br#"{@,"list_index":|}"#, Some((byte(b'}'), Some(0)))),
    (br#"{@,"list_index":-1|x}"#, Some((byte(b'x'), Some(0)))),
    (br#"{@,"list_index":|4097}"#, Some((ListIndexLimit { limit: 4096 }, Some(0)))),
    (br#"{@,"list_index":|4294967296}"#, Some((ListIndexLimit { limit: 4096 }, Some(0)))),
    (br#"{@,"list_index":|340282366920938463463374607431768211456}"#, Some((ListIndexLimit { limit: 4096 }, Some(0)))),
    (br#"{@,"list_index":4096}"#, None),
    // Names.
    (br#"{"field_name":|"\udc00\ud800","shape":[1],"dtype":"uint8"}"#, Some((InvalidName, Some(0)))),
    (br#"{"field_name":|"a\ud83d","shape":[1],"dtype":"uint8"}"#, Some((InvalidName, Some(0)))),
    (br#"{"field_name":|"\ud83d\u0041","shape":[1],"dtype":"uint8"}"#, Some((InvalidName, Some(0)))),
    (br#"{"field_name":"\ud83d\ude00","shape":[1],"dtype":"uint8"}"#, None),
    (br#"{"field_name":"","shape":[1],"dtype":"uint8","list_index":-1}"#, None),
    (b"{\"field_name\":\"\xf0\x9f\x98\x80\x7f\",\"shape\":[1],\"dtype\":\"uint8\",\"list_index\":-1}", None),
    (b"{\"field_name\":\"a|\0\",\"shape\":[1],\"dtype\":\"uint8\"}", Some((CONTROL, Some(0)))),
    (b"{\"field_name\":\"a|\x1f\",\"shape\":[1],\"dtype\":\"uint8\"}", Some((CONTROL, Some(0)))),
    (br#"{"field_name":"a|\'","shape":[1],"dtype":"uint8"}"#, Some((ESCAPE, Some(0)))),
    (br#"{"field_name":"a|\uD80G","shape":[1],"dtype":"uint8"}"#, Some((ESCAPE, Some(0)))),
    (br#"{"field_name":"a|\U0041","shape":[1],"dtype":"uint8"}"#, Some((ESCAPE, Some(0)))),
    // Places.
    (br#"{@},|{"field_name":"\u0078","shape":[1],"dtype":"int8"}"#, Some((DuplicateField, Some(1)))),
    (br#"{@},{"field_name":"y","shape":[1],"dtype":"int8"},|{@}"#, Some((DuplicateField, Some(2)))),
    (br#"{@,"list_index":7},{@,"list_index":3},|{@,"list_index":7}"#, Some((DuplicateListIndex { list_index: 7 }, Some(2)))),
    (br#"{@,"list_index":5},|{@},{@,"list_index":0}"#, Some((MixedField, Some(1)))),
    (br#"{@},|{@,"list_index":3},{@,"list_index":1}"#, Some((MixedField, Some(1)))),
    (br#"{@,"list_index":0},{@,"list_index":1},{@,"list_index":2},|{@}"#, Some((MixedField, Some(3)))),
    (br#"{@},|{@},{@,"list_index":0}"#, Some((DuplicateField, Some(1)))),
    (br#"{@},{"field_name":"X","shape":[1],"dtype":"int8"},{"field_name":"x ","shape":[1],"dtype":"int8"},{"field_name":"x\u0000","shape":[1],"dtype":"int8"}"#, None),
    // Keys that are not of the schema.
    (br#"{@,"strides":[1,{"a":nul|}]}"#, Some((byte(b'}'), Some(0)))),
    (br#"{@,"device":"cuda:0","strides":[1,{"a":[]}],"":null}"#, None),
    (br#"{|,@}"#, Some((byte(b','), Some(0)))),
    (br#"{@,|}"#, Some((byte(b'}'), Some(0)))),
    (br#"{@ |"a":1}"#, Some((byte(b'"'), Some(0)))),
];

/// Values of `scalar_fields`.
#[rustfmt::skip]
const SCALARS: &[Case<'_>] = &[
    (br#"{"a":1,"a":2,"\u0061":3}"#, None),
    (br#"{"\ud800":"\udfff","":""}"#, None),
    (br#"{"a":"\"\\\/\b\f\n\r\t\u0000\uFFFF"}"#, None),
    (b"{\"a\":\"\x7f\xc2\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"}", None),
    (br#"{"a":[NaN,[-Infinity],{"b":Infinity}]}"#, None),
    (br#"{"a":-0,"b":-0.0e-0,"c":1E+400,"d":123456789012345678901234567890}"#, None),
    (br#"{"a":Na|n}"#, Some((byte(b'n'), None))),
    (br#"{"a":n|an}"#, Some((byte(b'a'), None))),
    (br#"{"a":-|NaN}"#, Some((NUMBER, None))),
    (br#"{"a":|+Infinity}"#, Some((byte(b'+'), None))),
    (br#"{"a":Infinit|}"#, Some((byte(b'}'), None))),
    (br#"{"a":-Inf|}"#, Some((byte(b'}'), None))),
    (br#"{"a":NaN|N}"#, Some((byte(b'N'), None))),
    (br#"{"a":tru|}"#, Some((byte(b'}'), None))),
    (br#"{"a":|True}"#, Some((byte(b'T'), None))),
    (br#"{"a":true|e}"#, Some((byte(b'e'), None))),
    (br#"{"a":nul|}"#, Some((byte(b'}'), None))),
    (br#"{"a":fals|E}"#, Some((byte(b'E'), None))),
    (br#"{"a":|undefined}"#, Some((byte(b'u'), None))),
    (br#"{"a":|}"#, Some((byte(b'}'), None))),
    (br#"{"a":|'b'}"#, Some((byte(b'\''), None))),
    (br#"{"a":1|/*b*/}"#, Some((byte(b'/'), None))),
    (br#"{"a":1,|}"#, Some((byte(b'}'), None))),
    (br#"{"a":[1,|]}"#, Some((byte(b']'), None))),
    (br#"{"a":[|,1]}"#, Some((byte(b','), None))),
    (br#"{"a":[1|}}"#, Some((byte(b'}'), None))),
    (br#"{"a":{"b"|]}"#, Some((byte(b']'), None))),
    (br#"{"a":{"b":1|]}"#, Some((byte(b']'), None))),
    (br#"{"a":0|1}"#, Some((NUMBER, None))),
    (br#"{"a":1.|}"#, Some((NUMBER, None))),
    (br#"{"a":1.|e1}"#, Some((NUMBER, None))),
    (br#"{"a":1e|}"#, Some((NUMBER, None))),
    (br#"{"a":1e+|}"#, Some((NUMBER, None))),
    (br#"{"a":-|}"#, Some((NUMBER, None))),
    (br#"{"a":-|-1}"#, Some((NUMBER, None))),
    (br#"{"a":|.5}"#, Some((byte(b'.'), None))),
    (br#"{"a":0|x10}"#, Some((byte(b'x'), None))),
    (b"{\"a\":\"|\n\"}", Some((CONTROL, None))),
    (b"{\"|\t\":1}", Some((CONTROL, None))),
    (br#"{"a":"|\a"}"#, Some((ESCAPE, None))),
    (br#"{"a":"|\u"}"#, Some((ESCAPE, None))),
    (br#"{"a":"\ud83d|\u12"}"#, Some((ESCAPE, None))),
    (br#"{"|\u00g0":1}"#, Some((ESCAPE, None))),
    (br#"{"a":"|\u 123"}"#, Some((ESCAPE, None))),
    (br#"{"a":"|\u-123"}"#, Some((ESCAPE, None))),
    (b"{\"a\":\"|\\u\xc3\xa9\xc3\xa9\"}", Some((ESCAPE, None))),
    (b"{\"a\":\"|\\\xc3\xa9\"}", Some((ESCAPE, None))),
];

/// Every case of the tables as metadata, with its verdict.
fn own_cases() -> Vec<(Vec<u8>, Verdict)> {
    let tables: [(&[Case<'_>], &[u8], &[u8]); 3] = [
        (WHOLE, b"", b""),
        (DESCRIPTORS, br#"{"tensor_descriptors":["#, b"]}"),
        (
            SCALARS,
            br#"{"tensor_descriptors":[],"scalar_fields":"#,
            b"}",
        ),
    ];
    let mut cases = Vec::new();
    for (table, head, tail) in tables {
        for (text, expected) in table {
            let (metadata, offset) = marked(&[head, text, tail].concat());
            let expected = match expected {
                Some((kind, descriptor)) => Reject(*kind, offset.unwrap(), *descriptor),
                None => Accept,
            };
            cases.push((metadata, expected));
        }
    }
    cases
}

fn shown(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[test]
fn more_of_the_same_kinds_meets_the_same_verdicts() {
    let mut storage = room();
    let cases = own_cases();
    assert!(cases.len() > 200, "{}", cases.len());
    let mut wrong = Vec::new();
    for (metadata, expected) in &cases {
        let result = Options::new().decode_metadata(metadata, &mut storage);
        let actual = Verdict::of(&result);
        if actual != *expected {
            let text = shown(metadata);
            wrong.push(format!("{text}\n  {actual:?}, not {expected:?}"));
        }
        check_good(Message::decode(&GOOD, &mut *storage), &shown(metadata));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn strict_json_differs_only_where_a_token_stands_among_the_scalars() {
    let mut storage = room();
    let strict = Options::new().with_strict_json(true);
    let mut differences = 0;
    for (metadata, expected) in &own_cases() {
        let result = strict.decode_metadata(metadata, &mut storage);
        let actual = Verdict::of(&result);
        if actual != *expected {
            let Reject(NonFinite, offset, None) = actual else {
                panic!("{}: {actual:?}", shown(metadata));
            };
            let rest = &metadata[offset..];
            let token = ["NaN", "Infinity", "-Infinity"];
            assert!(token.iter().any(|token| rest.starts_with(token.as_bytes())));
            differences += 1;
        }
    }
    // The row of all three, and `NaNN`, which is refused one token earlier.
    assert_eq!(differences, 2);
}

#[test]
fn each_key_is_refused_with_a_value_of_each_other_type() {
    use ValueType::{Array, Bool, Null, Number, Object, String};
    const VALUES: &[(&str, ValueType)] = &[
        ("[]", Array),
        ("true", Bool),
        ("false", Bool),
        ("null", Null),
        ("1", Number),
        ("-0.5", Number),
        ("NaN", Number),
        ("{}", Object),
        ("\"a\"", String),
    ];
    // (before the value, after it, the type demanded, the descriptor)
    const PLACES: &[(&str, &str, ValueType, Option<usize>)] = &[
        ("", "", Object, None),
        (r#"{"tensor_descriptors":"#, "}", Array, None),
        (
            r#"{"tensor_descriptors":[],"scalar_fields":"#,
            "}",
            Object,
            None,
        ),
        (r#"{"tensor_descriptors":["#, "]}", Object, Some(0)),
        (
            r#"{"tensor_descriptors":[{"shape":[],"dtype":"int8","field_name":"#,
            "}]}",
            String,
            Some(0),
        ),
        (
            r#"{"tensor_descriptors":[{"field_name":"x","dtype":"int8","shape":"#,
            "}]}",
            Array,
            Some(0),
        ),
        (
            r#"{"tensor_descriptors":[{"field_name":"x","shape":[1],"dtype":"#,
            "}]}",
            String,
            Some(0),
        ),
        (
            r#"{"tensor_descriptors":[{"field_name":"x","shape":[1,"#,
            r#"],"dtype":"int8"}]}"#,
            Number,
            Some(0),
        ),
    ];
    let mut storage = room();
    let mut count = 0;
    for (head, tail, expected, descriptor) in PLACES {
        for (value, actual) in VALUES {
            if expected != actual {
                let metadata = format!("{head}{value}{tail}");
                let result = Options::new().decode_metadata(metadata.as_bytes(), &mut storage);
                let kind = wrong(*expected, *actual);
                let verdict = Reject(kind, head.len(), *descriptor);
                assert_eq!(Verdict::of(&result), verdict, "{metadata}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 8 * 9 - 1 - 1 - 1 - 1 - 1 - 1 - 1 - 3);

    // A list index is a number or none at all, and has an error of its own.
    let head = format!(r#"{{"tensor_descriptors":[{{{PLAIN},"list_index":"#);
    for (value, _) in VALUES.iter().filter(|(value, _)| *value != "1") {
        let metadata = format!("{head}{value}}}]}}");
        let result = Options::new().decode_metadata(metadata.as_bytes(), &mut storage);
        let verdict = Reject(BadListIndex, head.len(), Some(0));
        assert_eq!(Verdict::of(&result), verdict, "{metadata}");
    }
}

/// Metadata of the descriptors with these members.
fn metadata_of(descriptors: &[String]) -> String {
    format!(r#"{{"tensor_descriptors":[{}]}}"#, descriptors.join(","))
}

fn descriptor(name: &str, shape: &str) -> String {
    format!(r#"{{"field_name":"{name}","shape":[{shape}],"dtype":"uint8","list_index":-1}}"#)
}

#[test]
fn each_cap_lets_pass_what_is_at_it_and_refuses_what_is_over_it() {
    // (what, caps, metadata at the cap, metadata over it, its verdict)
    let list = |shape: &str, index: &str| {
        format!(
            r#"{{"tensor_descriptors":[{{"field_name":"x","shape":[{shape}],"dtype":"uint8","list_index":{index}}}]}}"#
        )
    };
    let scalars = |text: &str| format!(r#"{{"tensor_descriptors":[],"scalar_fields":{text}}}"#);
    let names = |names: &[&str]| {
        metadata_of(
            &names
                .iter()
                .map(|name| descriptor(name, "3"))
                .collect::<Vec<_>>(),
        )
    };
    let second = 23 + descriptor("a", "3").len() + 1;
    let third = second + descriptor("a", "3").len() + 1;
    let limits = Limits::new();
    let max = usize::MAX;
    #[rustfmt::skip]
    let cases: Vec<(&str, Limits, String, String, Verdict)> = vec![
        ("metadata 25", limits.with_metadata_bytes(25),
            names(&[]), names(&[]) + " ", Reject(MetadataLimit { limit: 25, actual: 26 }, 0, None)),
        ("metadata, default", limits,
            names(&[]) + &" ".repeat((1 << 20) - 25), names(&[]) + &" ".repeat((1 << 20) - 24),
            Reject(MetadataLimit { limit: 1 << 20, actual: (1 << 20) + 1 }, 0, None)),
        ("descriptors 0", limits.with_descriptors(0),
            names(&[]), names(&["a"]), Reject(DescriptorLimit { limit: 0 }, 23, None)),
        ("descriptors 2", limits.with_descriptors(2),
            names(&["a", "b"]), names(&["a", "b", "c"]), Reject(DescriptorLimit { limit: 2 }, third, None)),
        ("rank 0", limits.with_rank(0),
            list("", "-1"), list("1", "-1"), Reject(RankLimit { limit: 0 }, 50, Some(0))),
        ("rank 2", limits.with_rank(2),
            list("1,1", "-1"), list("1,1,1", "-1"), Reject(RankLimit { limit: 2 }, 54, Some(0))),
        ("rank, default", limits,
            list(&["1"; 64].join(","), "-1"), list(&["1"; 65].join(","), "-1"),
            Reject(RankLimit { limit: 64 }, 50 + 128, Some(0))),
        ("depth 2", limits.with_depth(2),
            scalars(r#"{"a":1}"#), scalars(r#"{"a":[]}"#), Reject(DepthLimit { limit: 2 }, 46, None)),
        ("depth 4", limits.with_depth(4),
            scalars(r#"{"a":[{}]}"#), scalars(r#"{"a":[{"b":[]}]}"#), Reject(DepthLimit { limit: 4 }, 52, None)),
        ("depth, default", limits,
            scalars(&format!("{{\"a\":{}{}}}", "[".repeat(126), "]".repeat(126))),
            scalars(&format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127))),
            Reject(DepthLimit { limit: 128 }, 46 + 126, None)),
        ("depth over the most", limits.with_depth(max),
            scalars(&format!("{{\"a\":{}{}}}", "[".repeat(126), "]".repeat(126))),
            scalars(&format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127))),
            Reject(DepthLimit { limit: 128 }, 46 + 126, None)),
        ("depth of an unknown key", limits.with_depth(3),
            r#"{"a":[[]],"tensor_descriptors":[]}"#.into(), r#"{"a":[[[]]],"tensor_descriptors":[]}"#.into(),
            Reject(DepthLimit { limit: 3 }, 7, None)),
        ("depth in a descriptor", limits.with_depth(4),
            format!(r#"{{"tensor_descriptors":[{{"a":[],{PLAIN}}}]}}"#), format!(r#"{{"tensor_descriptors":[{{"a":[[]],{PLAIN}}}]}}"#),
            Reject(DepthLimit { limit: 4 }, 29, Some(0))),
        ("name 0", limits.with_name_bytes(0),
            names(&[""]), names(&["a"]), Reject(NameLimit { limit: 0, actual: 1 }, 37, Some(0))),
        ("name 2", limits.with_name_bytes(2),
            names(&["ab", "a"]), names(&["ab", "abc"]), Reject(NameLimit { limit: 2, actual: 3 }, second + 1 + 14, Some(1))),
        ("name 2, escaped", limits.with_name_bytes(2),
            names(&[r"\u00e9"]), names(&[r"\u20ac"]), Reject(NameLimit { limit: 2, actual: 3 }, 37, Some(0))),
        ("name 4, a pair", limits.with_name_bytes(4),
            names(&[r"\ud83d\ude00"]), names(&[r"\ud83d\ude00\n"]), Reject(NameLimit { limit: 4, actual: 5 }, 37, Some(0))),
        ("name 2, raw", limits.with_name_bytes(2),
            names(&["é"]), names(&["€"]), Reject(NameLimit { limit: 2, actual: 3 }, 37, Some(0))),
        ("name, default", limits,
            names(&[&"n".repeat(1024)]), names(&[&"n".repeat(1025)]), Reject(NameLimit { limit: 1024, actual: 1025 }, 37, Some(0))),
        ("list index 0", limits.with_list_index(0),
            list("1", "0"), list("1", "1"), Reject(ListIndexLimit { limit: 0 }, 82, Some(0))),
        ("list index 10", limits.with_list_index(10),
            list("1", "10"), list("1", "11"), Reject(ListIndexLimit { limit: 10 }, 82, Some(0))),
        ("list index, default", limits,
            list("1", "4096"), list("1", "4097"), Reject(ListIndexLimit { limit: 4096 }, 82, Some(0))),
        ("list index over the most", limits.with_list_index(max),
            list("1", "2147483647"), list("1", "2147483648"), Reject(ListIndexLimit { limit: 0x7fff_ffff }, 82, Some(0))),
        ("tensors 0", limits.with_tensor_bytes(0),
            list("0,5", "-1"), list("1", "-1"), Reject(TensorBytesLimit { limit: 0 }, 23, Some(0))),
        ("tensors 6", limits.with_tensor_bytes(6),
            names(&["a", "b"]), metadata_of(&[descriptor("a", "3"), descriptor("b", "4")]),
            Reject(TensorBytesLimit { limit: 6 }, second, Some(1))),
        ("tensors, unlimited", limits,
            metadata_of(&[descriptor("a", "9223372036854775807"), descriptor("b", "9223372036854775807"), descriptor("c", "1")]),
            metadata_of(&[descriptor("a", "9223372036854775807"), descriptor("b", "9223372036854775807"), descriptor("c", "2")]),
            Reject(TensorBytesLimit { limit: max }, 23 + 2 * (descriptor("a", "9223372036854775807").len() + 1), Some(2))),
    ];
    let mut storage = room();
    for (what, limits, at, over, verdict) in cases {
        let options = Options::new().with_limits(limits);
        let result = options.decode_metadata(at.as_bytes(), &mut storage);
        assert_eq!(Verdict::of(&result), Accept, "{what}, at it");
        let result = options.decode_metadata(over.as_bytes(), &mut storage);
        assert_eq!(Verdict::of(&result), verdict, "{what}, over it");
        // The same where Python's layout does not lead the way.
        let spaced = at.replacen("{\"field_name\"", "{ \"field_name\"", 1);
        if spaced.len() <= limits.metadata_bytes() {
            let result = options.decode_metadata(spaced.as_bytes(), &mut storage);
            assert_eq!(Verdict::of(&result), Accept, "{what}, spaced");
        }
    }
}

/// The four levels that the schema itself takes are not held against the cap.
#[test]
fn the_schema_is_never_too_deep() {
    let metadata = metadata_of(&[descriptor("x", "1")]);
    for depth in 0..5 {
        let options = Options::new().with_limits(Limits::new().with_depth(depth));
        let mut storage = room();
        let result = options.decode_metadata(metadata.as_bytes(), &mut storage);
        assert_eq!(Verdict::of(&result), Accept, "{depth}");
    }
}

#[test]
fn storage_takes_just_as_many_descriptors_as_it_has_room_for() {
    fn check<const N: usize>() {
        let mut storage = Storage::<N>::new();
        let mut descriptors: Vec<_> = (0..N).map(|i| descriptor(&i.to_string(), "")).collect();
        let full = metadata_of(&descriptors);
        let metadata = Options::new().decode_metadata(full.as_bytes(), &mut storage);
        assert_eq!(metadata.unwrap().len(), N);
        descriptors.push(descriptor("x", ""));
        let at = if N == 0 { 23 } else { full.len() - 2 + 1 };
        let over = metadata_of(&descriptors);
        let result = Options::new().decode_metadata(over.as_bytes(), &mut storage);
        let verdict = Reject(StorageFull { capacity: N }, at, None);
        assert_eq!(Verdict::of(&result), verdict);
        // The cap comes first where both are reached.
        let options = Options::new().with_limits(Limits::new().with_descriptors(N));
        let result = options.decode_metadata(over.as_bytes(), &mut storage);
        let verdict = Reject(DescriptorLimit { limit: N }, at, None);
        assert_eq!(Verdict::of(&result), verdict);
    }
    check::<0>();
    check::<1>();
    check::<2>();
    check::<17>();
}

#[test]
fn frames_are_counted_before_they_are_measured() {
    let metadata = metadata_of(&[descriptor("x", "2"), descriptor("y", "0")]);
    let second = 23 + descriptor("x", "2").len() + 1;
    let count = |actual| {
        let expected = 2;
        Reject(FrameCount { expected, actual }, 22, None)
    };
    let length = |expected, actual, at, index| {
        let kind = FrameLength { expected, actual };
        Reject(kind, at, Some(index))
    };
    #[rustfmt::skip]
    let cases: &[(&[&[u8]], Verdict)] = &[
        (&[], count(0)),
        (&[&[1, 2]], count(1)),
        (&[&[1]], count(1)),
        (&[&[1, 2], &[], &[]], count(3)),
        (&[&[1, 2], &[]], Accept),
        (&[&[], &[1, 2]], length(2, 0, 23, 0)),
        (&[&[1, 2, 3], &[]], length(2, 3, 23, 0)),
        (&[&[1, 2], &[1]], length(0, 1, second, 1)),
    ];
    let mut storage = room();
    for (payloads, verdict) in cases {
        let frames: Vec<&[u8]> = [&[metadata.as_bytes()], *payloads].concat();
        let result = Message::decode(&frames, &mut *storage);
        assert_eq!(Verdict::of(&result), *verdict, "{payloads:?}");
    }
    let none: [&[u8]; 0] = [];
    let result = Message::decode(&none, &mut *storage);
    assert_eq!(Verdict::of(&result), Reject(NoFrames, 0, None));
}

/// Every message of up to four tensors on few places, against a reader that compares all pairs.
#[test]
fn of_several_conflicts_the_first_on_the_wire_is_named() {
    // Spelled in two ways each.
    const PLACES: &[(&str, &str, Option<usize>)] = &[
        ("a", "a", None),
        (r"\u0061", "a", Some(0)),
        ("a", "a", Some(1)),
        ("a", "a", Some(2)),
        ("b", "b", None),
        ("b", "b", Some(0)),
    ];
    let mut storage = room();
    let mut verdicts = [0; 2];
    for length in 1..=4 {
        for number in 0..PLACES.len().pow(length) {
            let places: Vec<_> = (0..length)
                .map(|digit| PLACES[number / PLACES.len().pow(digit) % PLACES.len()])
                .collect();
            let mut starts = Vec::new();
            let mut metadata = String::from(r#"{"tensor_descriptors":["#);
            for (spelling, _, index) in &places {
                starts.push(metadata.len());
                let index = index.map_or(-1, |index| index as i64);
                metadata += &format!(
                    r#"{{"field_name":"{spelling}","shape":[1],"dtype":"uint8","list_index":{index}}},"#
                );
            }
            metadata.pop();
            metadata += "]}";
            let conflict = places.iter().enumerate().find_map(|(later, place)| {
                places[..later].iter().find_map(|earlier| {
                    let kind = match (earlier.2, place.2) {
                        _ if earlier.1 != place.1 => return None,
                        (None, None) => DuplicateField,
                        (Some(a), Some(b)) if a == b => DuplicateListIndex { list_index: a },
                        (Some(_), Some(_)) => return None,
                        _ => MixedField,
                    };
                    Some(Reject(kind, starts[later], Some(later)))
                })
            });
            let result = Options::new().decode_metadata(metadata.as_bytes(), &mut storage);
            let expected = conflict.unwrap_or(Accept);
            assert_eq!(Verdict::of(&result), expected, "{metadata}");
            verdicts[usize::from(expected == Accept)] += 1;
        }
    }
    assert!(verdicts[0] > 1000 && verdicts[1] > 100, "{verdicts:?}");
}

/// Thousands of names that differ at their last byte only, in the worst order.
#[test]
fn a_flood_of_names_alike_is_sorted_and_found() {
    const COUNT: usize = 4096;
    let prefix = "p".repeat(150);
    let name = |index: usize| format!("{prefix}{:04x}", COUNT - 1 - index);
    let mut descriptors: Vec<_> = (0..COUNT)
        .map(|index| {
            format!(
                r#"{{"field_name":"{}","shape":[],"dtype":"uint8"}}"#,
                name(index)
            )
        })
        .collect();
    let metadata = metadata_of(&descriptors);
    let mut storage = Box::<Storage<COUNT>>::default();
    let decoded = Options::new()
        .decode_metadata(metadata.as_bytes(), &mut storage)
        .unwrap();
    for index in 0..COUNT {
        assert_eq!(decoded.position(&name(index)), Some(index));
    }
    assert_eq!(decoded.position(&prefix), None);

    // Two of one name as far apart as can be.
    descriptors[COUNT - 1] = descriptors[0].clone();
    let at = metadata.rfind("{\"field_name\"").unwrap();
    let metadata = metadata_of(&descriptors);
    let result = Options::new().decode_metadata(metadata.as_bytes(), &mut storage);
    let verdict = Reject(DuplicateField, at, Some(COUNT - 1));
    assert_eq!(Verdict::of(&result), verdict);
}

/// A frame that counts how often it is looked at.
struct Watched<'a> {
    bytes: &'a [u8],
    looks: &'a Cell<usize>,
}

impl AsRef<[u8]> for Watched<'_> {
    fn as_ref(&self) -> &[u8] {
        self.looks.set(self.looks.get() + 1);
        self.bytes
    }
}

#[test]
fn decoding_looks_at_each_frame_once() {
    const COUNT: usize = 1000;
    let descriptors: Vec<_> = (0..COUNT)
        .map(|index| descriptor(&format!("{:03}", COUNT - index), "1"))
        .collect();
    let metadata = metadata_of(&descriptors);
    let looks = Cell::new(0);
    let watched = |bytes| Watched {
        bytes,
        looks: &looks,
    };
    let mut frames = vec![watched(metadata.as_bytes())];
    frames.extend((0..COUNT).map(|_| watched(&[7])));
    let mut storage = Box::<Storage<COUNT>>::default();
    Message::decode(&frames, &mut *storage).unwrap();
    assert_eq!(looks.get(), 1 + COUNT);
}

/// A message in Python's layout with whatever can be in one.
const EVERYTHING: &str = r#"{"tensor_descriptors":[{"field_name":"latents","shape":[1,16],"dtype":"bfloat16","list_index":-1},{"field_name":"caf\u00e9","shape":[],"dtype":"bool","list_index":12}],"scalar_fields":{"a\n":[1,-2.5e+10,NaN,-Infinity,null],"b":{"c":true,"d":false,"e":{},"f":[]},"g":"\ud83d\ude00"}}"#;

#[test]
fn every_strict_prefix_ends_too_early() {
    let mut storage = room();
    for length in 0..EVERYTHING.len() {
        let prefix = &EVERYTHING.as_bytes()[..length];
        let error = Options::new()
            .decode_metadata(prefix, &mut storage)
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.offset()),
            (END, length),
            "{}",
            shown(prefix)
        );
    }
    assert!(
        Options::new()
            .decode_metadata(EVERYTHING.as_bytes(), &mut storage)
            .is_ok()
    );
}

/// Every message with one byte of it changed, left out or doubled.
fn mutations() -> impl Iterator<Item = Vec<u8>> {
    const BYTES: &[u8] = b"\0 \n\"\\,:[]{}-+.019eENIaftnu/x\x7f\x80\xc3\xed\xf4\xff";
    let whole = EVERYTHING.as_bytes();
    (0..whole.len()).flat_map(move |at| {
        let changed = BYTES.iter().map(move |&byte| {
            let mut mutation = whole.to_vec();
            mutation[at] = byte;
            mutation
        });
        let inserted = BYTES.iter().map(move |&byte| {
            let mut mutation = whole.to_vec();
            mutation.insert(at, byte);
            mutation
        });
        let removed = [[&whole[..at], &whole[at + 1..]].concat()];
        changed.chain(inserted).chain(removed)
    })
}

#[test]
fn errors_lie_inside_the_frame_and_are_safe_to_log() {
    let mut storage = room();
    let mut errors = Vec::new();
    let own = own_cases().into_iter().map(|(metadata, _)| metadata);
    for metadata in own.chain(mutations()) {
        if let Err(error) = Options::new().decode_metadata(&metadata, &mut storage) {
            assert!(error.offset() <= metadata.len(), "{}", shown(&metadata));
            errors.push(error);
        }
    }
    assert!(errors.len() > 10_000);
    for error in errors {
        let text = error.to_string();
        assert!(text.len() <= 100, "{text}");
        assert!(
            text.bytes().all(|byte| matches!(byte, b' '..=b'~')),
            "{text}"
        );
        assert!(!text.ends_with('.'), "{text}");
        assert!(
            text.ends_with(&format!("at byte {}", error.offset())),
            "{text}"
        );
    }
}

#[test]
fn errors_are_small_and_copied() {
    fn copied<T: Copy + Send + Sync + 'static>() -> usize {
        size_of::<T>()
    }
    assert!(copied::<DecodeError>() <= 48);
    assert!(copied::<tensorwire::error::ValueError>() <= 48);
    assert!(copied::<tensorwire::error::EncodeError>() <= 48);
    assert!(copied::<CastError>() <= 48);
}

/// The general way alone, held against the one that tries Python's layout first.
#[cfg(feature = "_differential")]
mod differential {
    use super::*;

    fn compare(options: &Options, metadata: &[u8]) -> Verdict {
        let (mut fast, mut slow) = (room(), room());
        let fast = options.decode_metadata(metadata, &mut fast);
        let slow = options
            .without_speculation()
            .decode_metadata(metadata, &mut slow);
        let verdict = Verdict::of(&fast);
        assert_eq!(verdict, Verdict::of(&slow), "{}", shown(metadata));
        if let (Ok(fast), Ok(slow)) = (fast, slow) {
            assert_eq!(fast.tensor_bytes(), slow.tensor_bytes());
            assert_eq!(
                fast.scalars().as_value().raw(),
                slow.scalars().as_value().raw()
            );
            assert_eq!(fast.len(), slow.len());
            for (a, b) in fast.descriptors().zip(slow.descriptors()) {
                assert!(a.name() == b.name() && a.name().raw() == b.name().raw());
                assert_eq!(a.list_index(), b.list_index());
                assert_eq!(a.dtype(), b.dtype());
                assert_eq!((a.shape(), a.byte_len()), (b.shape(), b.byte_len()));
                assert_eq!(a.element_count(), b.element_count());
            }
        }
        verdict
    }

    #[test]
    fn both_ways_give_one_verdict_on_every_recorded_message() {
        for (mode, options, changes) in MODES {
            for (case, (id, _)) in lines("hostile.jsonl").iter().zip(CASES) {
                let frames = hostile::message(case);
                let (mut storage, mut other) = (room(), room());
                let fast = options.decode(&frames, &mut *storage);
                let slow = options.without_speculation();
                let slow = slow.decode(&frames, &mut *other);
                assert_eq!(Verdict::of(&fast), Verdict::of(&slow), "{id} {mode}");
                assert_eq!(Verdict::of(&slow), verdict(changes, id), "{id} {mode}");
                compare(options, &frames[0]);
            }
        }
    }

    #[test]
    fn both_ways_give_one_verdict_on_more_of_the_same_kinds() {
        let tight = Limits::new()
            .with_rank(1)
            .with_name_bytes(4)
            .with_list_index(5)
            .with_tensor_bytes(8)
            .with_depth(5);
        for (metadata, expected) in own_cases() {
            assert_eq!(compare(&Options::new(), &metadata), expected);
            compare(&Options::new().with_limits(tight), &metadata);
        }
    }

    #[test]
    fn both_ways_give_one_verdict_on_every_mutation() {
        let tight = Limits::new().with_list_index(12).with_name_bytes(7);
        let tight = tight.with_rank(2).with_tensor_bytes(33);
        let mut accepted = 0;
        for metadata in mutations() {
            accepted += usize::from(compare(&Options::new(), &metadata) == Accept);
            compare(&Options::new().with_limits(tight), &metadata);
        }
        assert!(accepted > 1000, "{accepted}");
    }
}
