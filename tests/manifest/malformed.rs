//! Whatever a peer sends is read or refused, with one error, at the right byte.

use super::*;
use tensorwire::error::DecodeErrorKind::*;
use tensorwire::error::SchemaKey;
use tensorwire::json::ValueType;

/// Length of the slot that each manifest is held against.
pub(super) const SLOT: usize = 64;

const fn wrong_type(expected: ValueType, actual: ValueType) -> DecodeErrorKind {
    WrongType { expected, actual }
}

const fn out_of_slot(offset: u64, byte_len: usize) -> DecodeErrorKind {
    OutOfSlot {
        offset,
        byte_len,
        slot_len: SLOT,
    }
}

/// (text with a `^` before the byte at which it is wrong, kind, entry)
const MALFORMED: &[(&str, DecodeErrorKind, Option<usize>)] = &[
    // Fields.
    (
        r#"{"x":^{}}"#,
        wrong_type(ValueType::Array, ValueType::Object),
        None,
    ),
    (
        r#"{"x":^null}"#,
        wrong_type(ValueType::Array, ValueType::Null),
        None,
    ),
    (
        r#"{"x": ^0}"#,
        wrong_type(ValueType::Array, ValueType::Number),
        None,
    ),
    (
        r#"{"x":^"[]"}"#,
        wrong_type(ValueType::Array, ValueType::String),
        None,
    ),
    (
        r#"{"x":[^[]]}"#,
        wrong_type(ValueType::Object, ValueType::Array),
        Some(0),
    ),
    (
        r#"{"x":[ ^null]}"#,
        wrong_type(ValueType::Object, ValueType::Null),
        Some(0),
    ),
    (
        r#"{"x":[],"y":[^true]}"#,
        wrong_type(ValueType::Object, ValueType::Bool),
        Some(0),
    ),
    // Names.
    (r#"{^"\ud800":[]}"#, InvalidName, None),
    (r#"{"x":[],^"a\udfff":[]}"#, InvalidName, None),
    // Keys.
    (r#"{"x":[^{}]}"#, MissingKey(SchemaKey::Offset), Some(0)),
    (
        r#"{"x":[^{"shape":[1],"dtype":"bool"}]}"#,
        MissingKey(SchemaKey::Offset),
        Some(0),
    ),
    (
        r#"{"x":[^{"offset":0,"dtype":"bool"}]}"#,
        MissingKey(SchemaKey::Shape),
        Some(0),
    ),
    (
        r#"{"x":[^{"offset":0,"shape":[1],"field_name":"x"}]}"#,
        MissingKey(SchemaKey::DType),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool",^"offset":0}]}"#,
        DuplicateKey,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],^"sh\u0061pe":[1],"dtype":"bool"}]}"#,
        DuplicateKey,
        Some(0),
    ),
    (
        r#"{"x":[{"dtype":"bool",^"dtype":"bool","offset":0,"shape":[1]}]}"#,
        DuplicateKey,
        Some(0),
    ),
    (
        r#"{"x":[{"list_index":0,"offset":0,"shape":[1],"dtype":"bool",^"list_index":0}]}"#,
        DuplicateKey,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","new":{"a":[^NaN]}}]}"#,
        NonFinite,
        Some(0),
    ),
    // Offsets.
    (
        r#"{"x":[{"offset":^-1,"shape":[1],"dtype":"bool"}]}"#,
        BadInteger,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^-0,"shape":[1],"dtype":"bool"}]}"#,
        BadInteger,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^0.0,"shape":[1],"dtype":"bool"}]}"#,
        BadInteger,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^1e1,"shape":[1],"dtype":"bool"}]}"#,
        BadInteger,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^true,"shape":[1],"dtype":"bool"}]}"#,
        wrong_type(ValueType::Number, ValueType::Bool),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^null,"shape":[1],"dtype":"bool"}]}"#,
        wrong_type(ValueType::Number, ValueType::Null),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^"0","shape":[1],"dtype":"bool"}]}"#,
        wrong_type(ValueType::Number, ValueType::String),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^[0],"shape":[1],"dtype":"bool"}]}"#,
        wrong_type(ValueType::Number, ValueType::Array),
        Some(0),
    ),
    (
        r#"{"x":[{"offset": ^NaN,"shape":[1],"dtype":"bool"}]}"#,
        BadInteger,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^-Infinity,"shape":[1],"dtype":"bool"}]}"#,
        BadInteger,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^18446744073709551616,"shape":[1],"dtype":"bool"}]}"#,
        IntegerOverflow,
        Some(0),
    ),
    (
        r#"{"x":[{"shape":[0],"offset":^100000000000000000000000,"dtype":"bool"}]}"#,
        IntegerOverflow,
        Some(0),
    ),
    // Sizes.
    (
        r#"{"x":[{"offset":0,"shape":[^-1],"dtype":"bool"}]}"#,
        BadDim,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1,^2.0],"dtype":"bool"}]}"#,
        BadDim,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[^9223372036854775808],"dtype":"bool"}]}"#,
        DimOverflow,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[^4611686018427387904,2],"dtype":"bool"}]}"#,
        ShapeOverflow,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[^4294967296,4294967296,0],"dtype":"bool"}]}"#,
        ShapeOverflow,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[^2305843009213693952],"dtype":"float32"}]}"#,
        ShapeOverflow,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":^{},"dtype":"bool"}]}"#,
        wrong_type(ValueType::Array, ValueType::Object),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":^"torch.bool"}]}"#,
        UnknownDType,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":^"Bool"}]}"#,
        UnknownDType,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":^1}]}"#,
        wrong_type(ValueType::String, ValueType::Number),
        Some(0),
    ),
    // List indices.
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":^-1}]}"#,
        BadListIndex,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":^-0}]}"#,
        BadListIndex,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":^1.0}]}"#,
        BadListIndex,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":^null}]}"#,
        BadListIndex,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":^4097}]}"#,
        ListIndexLimit { limit: 4096 },
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":^1000000000000000000}]}"#,
        ListIndexLimit { limit: 4096 },
        Some(0),
    ),
    // Outside of the slot.
    (
        r#"{"x":[{"offset":^64,"shape":[1],"dtype":"bool"}]}"#,
        out_of_slot(64, 1),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^65,"shape":[0],"dtype":"bool"}]}"#,
        out_of_slot(65, 0),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^0,"shape":[65],"dtype":"bool"}]}"#,
        out_of_slot(0, 65),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^57,"shape":[],"dtype":"float64"}]}"#,
        out_of_slot(57, 8),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"}],"y":[{"offset":^63,"shape":[2],"dtype":"bool"}]}"#,
        out_of_slot(63, 2),
        Some(1),
    ),
    (
        r#"{"x":[{"dtype":"bool","shape":[9223372036854775807],"offset":^0}]}"#,
        out_of_slot(0, isize::MAX as usize),
        Some(0),
    ),
    // Whose ends wrap around.
    (
        r#"{"x":[{"offset":^18446744073709551615,"shape":[1],"dtype":"bool"}]}"#,
        out_of_slot(u64::MAX, 1),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^18446744073709551615,"shape":[0],"dtype":"bool"}]}"#,
        out_of_slot(u64::MAX, 0),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^18446744073709551608,"shape":[9],"dtype":"bool"}]}"#,
        out_of_slot(u64::MAX - 7, 9),
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^9223372036854775809,"shape":[9223372036854775807],"dtype":"bool"}]}"#,
        out_of_slot(1 << 63 | 1, isize::MAX as usize),
        Some(0),
    ),
];

#[test]
fn what_is_no_manifest_is_refused_where_it_goes_wrong() {
    refused(MALFORMED);
}

/// Holds each case to be refused so, alone and as a part of a message.
pub(super) fn refused(cases: &[(&str, DecodeErrorKind, Option<usize>)]) {
    let mut storage = room();
    for &(marked, kind, entry) in cases {
        let offset = marked.find('^').unwrap();
        let text = marked.replace('^', "");
        let error = decode(&text, SLOT, &mut storage).unwrap_err();
        let told = (error.kind(), error.offset(), error.descriptor());
        assert_eq!(told, (kind, offset, entry), "{marked}: {error}");

        // Inside of a control message the offset is one of its payload.
        let (before, after) = (r#"{"request_id":"r1","manifest":"#, r#","slot_offset":0}"#);
        let payload = [before, text.as_str(), after].concat();
        let manifest = object(&payload).field("manifest").unwrap();
        let manifest = manifest.as_object().unwrap();
        let error = Manifest::decode(manifest, SLOT, &mut storage).unwrap_err();
        let told = (error.kind(), error.offset(), error.descriptor());
        assert_eq!(
            told,
            (kind, before.len() + offset, entry),
            "{marked}: {error}"
        );

        // And nothing stays behind.
        let good = r#"{"x":[{"offset":0,"shape":[64],"dtype":"bool"}]}"#;
        assert_eq!(decode(good, SLOT, &mut storage).unwrap().len(), 1);
    }
}

#[test]
fn errors_say_which_entry_and_which_bytes() {
    let mut storage = room();
    for (text, expected) in [
        (
            r#"{"x":[{"offset":60,"shape":[5],"dtype":"bool"}]}"#,
            "descriptor 0: 5 bytes from 60 on in a slot of 64 bytes at byte 16",
        ),
        (
            r#"{"x":[{"offset":0,"shape":[5],"dtype":"bool"}],"y":[{"offset":4,"shape":[5],"dtype":"bool"}]}"#,
            "descriptor 1: bytes 4..5 are also those of 0 at byte 52",
        ),
        (
            r#"{"x":[{"offset":-1,"shape":[5],"dtype":"bool"}]}"#,
            "descriptor 0: number is not a plain non-negative integer at byte 16",
        ),
        (
            r#"{"x":[{"offset":18446744073709551616}]}"#,
            "descriptor 0: integer over 18446744073709551615 at byte 16",
        ),
        (r#"{"x":[{}]}"#, "descriptor 0: no offset at byte 6"),
    ] {
        assert_eq!(
            decode(text, SLOT, &mut storage).unwrap_err().to_string(),
            expected
        );
    }
    let error = decode("{}", 3, &mut storage)
        .unwrap()
        .attach(&[0; 4])
        .unwrap_err();
    let (expected, actual) = (3, 4);
    assert_eq!(error.kind(), SlotLength { expected, actual });
    assert_eq!(error.to_string(), "4 bytes for a slot of 3 at byte 0");
    assert!(size_of::<DecodeError>() <= 48);
}

#[test]
fn names_in_errors_of_their_own_lie_in_the_payload() {
    let payload = r#"{"manifest":{"caf\u00e9":[{"offset":0,"shape":[1],"dtype":"bool"}]}}"#;
    let manifest = object(payload).field("manifest").unwrap();
    let mut storage = room();
    let manifest = manifest.as_object().unwrap();
    let manifest = Manifest::decode(manifest, 1, &mut storage).unwrap();
    let name = manifest.entry(0).unwrap().descriptor().name();
    let error = name.copy_to(&mut []).unwrap_err();
    assert_eq!(error.offset(), payload.find(r#""caf"#).unwrap());
}
