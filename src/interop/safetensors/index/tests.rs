//! Hostile headers, each with its byte.

use super::*;
use crate::dtype::DType;
use crate::error::DecodeErrorKind;
use crate::interop::safetensors::{Key, SafeTensors, encode_to_vec};
use crate::json::ValueType;
use std::format;
use std::string::ToString;

fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = to_u64(header.len()).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 7);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Index<'_>, Error> {
    Index::decode(bytes, to_u64(bytes.len()))
}

/// (header, bytes of data, what is wrong, at which byte)
fn hostile() -> Vec<(&'static str, usize, ErrorKind, usize)> {
    use DecodeErrorKind::{BadDim, BadInteger, DimOverflow, DuplicateKey, IntegerOverflow};
    use DecodeErrorKind::{NonFinite, ShapeOverflow, Syntax, TrailingData, WrongType};
    use ErrorKind::{
        BadEntry, ByteLength, DuplicateName, Header, LoneSurrogate, MissingKey, MixedField,
        OffsetPair, Offsets, TrailingBytes, Truncated, UnknownDType, UnsupportedDType,
    };
    let wrong = |expected, actual| Header(WrongType { expected, actual });
    let end = Header(Syntax(crate::error::SyntaxError::UnexpectedEnd));
    std::vec![
        ("", 0, end, 8),
        ("[]", 0, wrong(ValueType::Object, ValueType::Array), 8),
        ("{}x", 0, Header(TrailingData), 10),
        (
            "{}",
            1,
            TrailingBytes {
                expected: 10,
                actual: 11
            },
            10
        ),
        (
            r#"{"a":1}"#,
            0,
            wrong(ValueType::Object, ValueType::Number),
            13
        ),
        (r#"{"a":{}}"#, 0, MissingKey(Key::DType), 9),
        (r#"{"a":{"dtype":"U8"}}"#, 0, MissingKey(Key::Shape), 9),
        (
            r#"{"a":{"dtype":"U8","shape":[]}}"#,
            0,
            MissingKey(Key::DataOffsets),
            9
        ),
        (
            r#"{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}"#,
            1,
            UnsupportedDType,
            22
        ),
        (
            r#"{"a":{"dtype":"u8","shape":[2],"data_offsets":[0,2]}}"#,
            2,
            UnknownDType,
            22
        ),
        (
            r#"{"a":{"dtype":7,"shape":[2],"data_offsets":[0,2]}}"#,
            2,
            wrong(ValueType::String, ValueType::Number),
            22
        ),
        (
            r#"{"a":{"dtype":"U8","dtype":"U8"}}"#,
            0,
            Header(DuplicateKey),
            27
        ),
        (r#"{"a":{"shape":[-1]}}"#, 0, Header(BadDim), 23),
        (r#"{"a":{"shape":[1.0]}}"#, 0, Header(BadDim), 23),
        (r#"{"a":{"shape":[NaN]}}"#, 0, Header(NonFinite), 23),
        (
            r#"{"a":{"shape":[9223372036854775808]}}"#,
            0,
            Header(DimOverflow),
            23
        ),
        (
            r#"{"a":{"shape":[99999999999999999999]}}"#,
            0,
            Header(DimOverflow),
            23
        ),
        (
            r#"{"a":{"shape":{}}}"#,
            0,
            wrong(ValueType::Array, ValueType::Object),
            22
        ),
        (r#"{"a":{"data_offsets":[0]}}"#, 0, OffsetPair, 29),
        (r#"{"a":{"data_offsets":[0,1,2]}}"#, 0, OffsetPair, 29),
        (
            r#"{"a":{"data_offsets":[0,-1]}}"#,
            0,
            Header(BadInteger),
            32
        ),
        (
            r#"{"a":{"data_offsets":[0,18446744073709551616]}}"#,
            0,
            Header(IntegerOverflow),
            32
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[1,0]}}"#,
            0,
            OffsetPair,
            54
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,3]}}"#,
            3,
            ByteLength {
                expected: 2,
                actual: 3
            },
            54
        ),
        (
            r#"{"a":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0]}}"#,
            0,
            Header(ShapeOverflow),
            9
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}}"#,
            0,
            Header(ShapeOverflow),
            9
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#,
            1,
            Truncated {
                expected: 63,
                actual: 62
            },
            61
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#,
            3,
            Offsets {
                expected: 0,
                actual: 1
            },
            9
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#,
            3,
            Offsets {
                expected: 2,
                actual: 1
            },
            61,
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#,
            0,
            DuplicateName,
            61,
        ),
        (r#"{"\ud800":{}}"#, 0, LoneSurrogate, 9),
        (
            r#"{"__metadata__":{"k":1}}"#,
            0,
            wrong(ValueType::String, ValueType::Number),
            29
        ),
        (r#"{"__metadata__":{"k":"","k":""}}"#, 0, DuplicateName, 32),
        (
            r#"{"__metadata__":{},"__metadata__":{}}"#,
            0,
            DuplicateName,
            27
        ),
        (r#"{"__metadata__":{"k":"\udc00"}}"#, 0, LoneSurrogate, 29),
        (
            r#"{"__metadata__":{"tensorwire.json":"{}"}}"#,
            0,
            BadEntry,
            43
        ),
        (
            r#"{"__metadata__":{"tensorwire.lists":"[1]"}}"#,
            0,
            BadEntry,
            44
        ),
        (
            r#"{"__metadata__":{"k":"[","tensorwire.json":"[\"k\"]"}}"#,
            0,
            BadEntry,
            29
        ),
        (
            r#"{"__metadata__":{"tensorwire.lists":"[\"a\"]"},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#,
            0,
            MixedField,
            55,
        ),
    ]
}

#[test]
fn a_hostile_header_is_refused_at_its_byte() {
    for (header, data, kind, offset) in hostile() {
        let error = decode(&file(header, data)).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (kind, offset), "{header}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn a_length_is_no_reason_to_take_memory() {
    for (prefix, total) in [
        (u64::MAX, u64::MAX),
        (100_000_001, u64::MAX),
        (100_000_000, 50),
    ] {
        let bytes = prefix.to_le_bytes();
        let error = Index::decode(&bytes, total).unwrap_err();
        let expected = if total == 50 {
            ErrorKind::Truncated {
                expected: 100_000_008,
                actual: 50,
            }
        } else {
            ErrorKind::HeaderLimit {
                limit: 100_000_000,
                actual: prefix,
            }
        };
        assert_eq!(error.kind(), expected);
    }
}

#[test]
fn nothing_shorter_than_the_file_is_one() {
    let whole = file(
        r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#,
        2,
    );
    assert!(decode(&whole).is_ok());
    for length in 0..whole.len() {
        let error = decode(&whole[..length]).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Truncated { .. }),
            "{length}"
        );
        assert!(error.offset() <= whole.len());
    }
}

#[test]
fn deep_nesting_ends_at_the_cap() {
    let deep = format!(r#"{{"a":{{"x":{}"#, "[".repeat(1_000_000));
    let error = decode(&file(&deep, 0)).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Header(DecodeErrorKind::DepthLimit { limit: 128 })
    );
}

#[test]
fn what_others_write_is_read_as_it_stands() {
    let header = r#" {"__metadata__" : null, "layers.0" : {"shape":[ ] , "data_offsets":[8, 12],"dtype":"F32","x":[{}]},
        "\u00e9\u0000/../x":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"":{"dtype":"BF16","shape":[3,0],"data_offsets":[8,8]}}  "#;
    let header = header.trim_start();
    let bytes = file(header, 12);
    let index = decode(&bytes).unwrap();
    let start = to_u64(bytes.len() - 12);
    let seen = index.entries().iter().map(|entry| {
        let descriptor = entry.descriptor();
        assert_eq!(descriptor.list_index(), None);
        let range = entry.range().start - start..entry.range().end - start;
        let name = descriptor.name().to_cow().unwrap().into_owned();
        (
            name,
            descriptor.dtype(),
            descriptor.shape().to_string(),
            range,
        )
    });
    let expected = [
        (
            "layers.0".to_string(),
            DType::Float32,
            "[]".to_string(),
            8..12,
        ),
        (
            "\u{e9}\0/../x".to_string(),
            DType::Int64,
            "[1]".to_string(),
            0..8,
        ),
        (String::new(), DType::BFloat16, "[3, 0]".to_string(), 8..8),
    ];
    assert!(seen.eq(expected));
    assert!(index.scalars().is_empty());
}

#[test]
fn only_the_digits_that_are_written_name_a_member() {
    let member = |name| {
        let (list, index) = member(name)?;
        Some((list.to_cow().unwrap().into_owned(), index))
    };
    let found = |list: &str, index| Some((list.to_string(), index));
    assert_eq!(member("skip.2".into()), found("skip", 2));
    assert_eq!(member("a.b.0".into()), found("a.b", 0));
    assert_eq!(member(".4294967295".into()), found("", u32::MAX));
    assert_eq!(member("\u{e9}.10".into()), found("\u{e9}", 10));
    for name in [
        "skip",
        "skip.",
        "skip.02",
        "skip.+2",
        "skip.-1",
        "skip.4294967296",
        "skip.2x",
        "skip.\u{662}",
        "",
    ] {
        assert_eq!(member(name.into()), None, "{name}");
    }
    // The same texts, escaped by somebody who did not have to.
    let escaped = |name| member(Str::from_json(name, true));
    assert_eq!(escaped(r"skip.\u0032"), found("skip", 2));
    assert_eq!(escaped(r"\u0073kip\u002e\u0031\u0030"), found("skip", 10));
    assert_eq!(escaped(r"\ud83d\ude00.\n\u002E7"), found("\u{1f600}.\n", 7));
    assert_eq!(escaped(r"skip.\u0030\u0032"), None);
    assert_eq!(escaped(r"skip.\\u0032"), None);
}

#[test]
fn members_are_told_however_their_names_are_escaped() {
    let header = r#"{"__metadata__":{"tensorwire.lists":"[\"skip\"]"},
        "skip\u002e2":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
        "sk\u0069p.\u0030":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#;
    let bytes = file(header, 2);
    let file = SafeTensors::decode(&bytes).unwrap();
    for (tensor, index) in file.tensors().iter().zip([2, 0]) {
        assert!(tensor.name() == "skip");
        assert_eq!(tensor.list_index(), Some(index));
    }
    // And so it can be written again.
    assert!(encode_to_vec(file.tensors(), &file.scalars()).is_ok());
}
