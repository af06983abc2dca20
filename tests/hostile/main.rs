//! Whatever a peer sends is decoded or refused, with one error, at the right byte.

mod caps;
#[path = "../common/mod.rs"]
mod common;
mod conflicts;
#[cfg(feature = "_differential")]
mod differential;
mod errors;
mod more;

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
