//! Messages as files and back, with the other implementation on the far side.

use super::*;
use crate::json::Value;
use crate::message::{Decoder, NO_SCALARS, Scalar};
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};

/// What message these bytes are, frame for frame, as a file and back.
fn through(frames: &[&[u8]]) -> Result<Vec<Vec<u8>>, WriteError> {
    let mut decoder = Decoder::new();
    let message = decoder.decode(frames).unwrap();
    let tensors: Vec<_> = message.tensors().collect();
    let bytes = encode_to_vec(&tensors, &message.scalars())?;
    let mut written = Vec::new();
    write_to(&tensors, &message.scalars(), &mut written).unwrap();
    assert_eq!(written, bytes);
    let theirs = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(theirs.len(), tensors.len());

    let file = SafeTensors::decode(&bytes).unwrap();
    for tensor in file.tensors() {
        assert!(lies_in(tensor, &bytes), "{tensor:?} was copied");
    }
    let metadata = file.to_metadata().unwrap();
    Ok(file
        .frames(&metadata)
        .into_iter()
        .map(<[u8]>::to_vec)
        .collect())
}

/// Whether a view lies in the file, aligned as far as the file is.
fn lies_in(tensor: &TensorView<'_>, file: &[u8]) -> bool {
    let at = tensor.bytes().as_ptr();
    let offset = at.addr().wrapping_sub(file.as_ptr().addr());
    tensor.bytes().is_empty()
        || (file.as_ptr_range().contains(&at) && offset.is_multiple_of(tensor.dtype().alignment()))
}

#[test]
fn a_message_comes_back_byte_for_byte_in_its_own_order() {
    let metadata = br#"{"tensor_descriptors":[{"field_name":"mask","shape":[3],"dtype":"bool","list_index":-1},{"field_name":"skip","shape":[2],"dtype":"float32","list_index":2},{"field_name":"skip","shape":[],"dtype":"int64","list_index":0},{"field_name":"\u6f5c\u5728\u0000\"/../x","shape":[1,0],"dtype":"float8_e4m3fn","list_index":-1},{"field_name":"layers.0","shape":[1],"dtype":"complex64","list_index":-1}],"scalar_fields":{"request_id":"r\u00e9\u0000","seed":123456789012345678901234567890,"cfg":[7.5,NaN,{"a":null}],"bad":"\ud800","t":true,"empty":""}}"#;
    let frames: [&[u8]; 6] = [metadata, &[1, 0, 1], &[1; 8], &[2; 8], &[], &[3; 8]];
    let back = through(&frames).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&back[0]),
        String::from_utf8_lossy(metadata)
    );
    assert_eq!(back, frames);
}

#[test]
fn every_dtype_has_a_name_or_is_refused() {
    let mut refused = Vec::new();
    for &dtype in DType::ALL {
        let bytes = std::vec![1; dtype.size() * 2];
        let tensor = TensorView::from_bytes("x", dtype, &[2], &bytes).unwrap();
        let Ok(file) = encode_to_vec(&[tensor], &NO_SCALARS) else {
            assert_eq!(dtype_name(dtype), None);
            refused.push(dtype);
            continue;
        };
        let theirs = ::safetensors::SafeTensors::deserialize(&file).unwrap();
        let theirs = theirs.tensor("x").unwrap();
        assert_eq!(theirs.dtype().to_string(), dtype_name(dtype).unwrap());
        assert_eq!(theirs.data(), bytes);
        let ours = SafeTensors::decode(&file).unwrap();
        assert_eq!(
            (ours.tensors()[0].dtype(), ours.tensors()[0].bytes()),
            (dtype, &*bytes)
        );
    }
    assert_eq!(refused, [DType::Complex128]);
}

#[test]
fn the_other_reader_sees_names_and_texts() {
    let data = [1.0_f32, 2.0];
    let tensors = [TensorView::from_slice("skip", &[2], &data)
        .unwrap()
        .with_list_index(3)];
    let scalars = [
        ("request_id", Scalar::from("r1")),
        ("seed", Scalar::from(42)),
    ];
    let bytes = encode_to_vec(&tensors, &scalars).unwrap();
    let (_, header) = ::safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let texts: BTreeMap<_, _> = header.metadata().clone().unwrap().into_iter().collect();
    let expected = [
        ("request_id", "r1"),
        ("seed", "42"),
        (JSON_ENTRY, r#"["seed"]"#),
        (LISTS_ENTRY, r#"["skip"]"#),
    ];
    let expected = expected.map(|(key, text)| (key.to_string(), text.to_string()));
    assert_eq!(texts, BTreeMap::from(expected));
    assert_eq!(header.offset_keys(), ["skip.3"]);
}

#[test]
fn files_of_the_other_writer_are_read() {
    use ::safetensors::tensor::{Dtype, TensorView as Theirs, serialize};
    let bytes = [7; 24];
    let tensors = [
        (
            "b.1",
            Theirs::new(Dtype::F32, std::vec![2, 3], &bytes).unwrap(),
        ),
        (
            "a/\u{e9}",
            Theirs::new(Dtype::U8, std::vec![], &bytes[..1]).unwrap(),
        ),
    ];
    let texts = [("format".to_string(), "pt".to_string())]
        .into_iter()
        .collect();
    let file = serialize(tensors, Some(texts)).unwrap();
    let ours = SafeTensors::decode(&file).unwrap();
    assert_eq!(ours.tensor("b.1").unwrap().shape(), [2, 3]);
    assert_eq!(ours.tensor("a/\u{e9}").unwrap().bytes(), [7]);
    assert_eq!(ours.scalars().as_value().raw(), r#"{"format":"pt"}"#);
}

#[test]
fn no_change_of_a_byte_makes_a_file_that_only_we_take() {
    let data = [1.0_f32; 4];
    let tensors = [
        TensorView::from_slice("x", &[2, 2], &data).unwrap(),
        TensorView::from_slice("skip", &[1], &data[..1])
            .unwrap()
            .with_list_index(0),
    ];
    let scalars = [("k", Scalar::from("v")), ("n", Scalar::from(1))];
    let whole = encode_to_vec(&tensors, &scalars).unwrap();
    let header = whole.len() - 20;
    let mut taken = 0;
    for at in 0..header {
        for byte in *b"\x00\xff {}[]\",:\\019-eu.\x07" {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let ours = SafeTensors::decode(&bytes);
            let theirs = ::safetensors::SafeTensors::deserialize(&bytes);
            if let Ok(ours) = ours {
                let theirs = theirs.unwrap_or_else(|error| panic!("{at} {byte}: {error}"));
                assert_eq!(ours.tensors().len(), theirs.len());
                taken += 1;
            }
        }
    }
    assert!(taken > 100, "{taken}");
}

/// As the module's docs have it.
#[test]
fn what_the_other_reader_takes_and_this_one_does_not_is_known() {
    use crate::error::{DecodeErrorKind as Json, SyntaxError};
    use crate::json::ValueType::{Array, Object};

    let unexpected = Json::Syntax(SyntaxError::UnexpectedByte { found: b' ' });
    let array = Json::WrongType {
        expected: Object,
        actual: Array,
    };
    let cases = [
        (
            r#"{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0078":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#,
            ErrorKind::DuplicateName,
        ),
        (
            r#"{"__metadata__":{"k":"","k":""}}"#,
            ErrorKind::DuplicateName,
        ),
        (
            r#"{"x":{"dtype":"F4","shape":[0],"data_offsets":[0,0]}}"#,
            ErrorKind::UnsupportedDType,
        ),
        (
            r#"{"x":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}}"#,
            ErrorKind::Header(Json::ShapeOverflow),
        ),
        (
            r#"{"x":{"dtype":"U8","shape":[0,9223372036854775808],"data_offsets":[0,0]}}"#,
            ErrorKind::Header(Json::DimOverflow),
        ),
        (" {}", ErrorKind::Header(unexpected)),
        (r#"{"x":["U8",[0],[0,0]]}"#, ErrorKind::Header(array)),
        (
            r#"{"__metadata__":{"tensorwire.json":"x"}}"#,
            ErrorKind::BadEntry,
        ),
    ];
    for (header, kind) in cases {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        assert!(
            ::safetensors::SafeTensors::deserialize(&file).is_ok(),
            "{header}"
        );
        assert_eq!(SafeTensors::decode(&file).unwrap_err().kind(), kind);
    }
}

#[test]
fn what_could_not_come_back_is_refused() {
    let data = [1_u8];
    let plain = |name| TensorView::from_slice(name, &[1], &data).unwrap();
    let member = |name, index| plain(name).with_list_index(index);
    let clash = |index| WriteError::Clash { index };
    let cases: &[(&[TensorView<'_>], WriteError)] = &[
        (&[plain("skip.2"), member("skip", 2)], clash(0)),
        (&[member("skip", 0), plain("skip.5")], clash(1)),
        (&[member("a", 0), member("a.0", 1)], clash(0)),
        (
            &[plain("__metadata__")],
            WriteError::ReservedName { index: 0 },
        ),
        (
            &[plain("x"), plain("x")],
            EncodeError::DuplicateField { index: 1 }.into(),
        ),
        (
            &[member("x", 1), member("x", 1)],
            EncodeError::DuplicateListIndex { index: 1 }.into(),
        ),
        (
            &[member("x", 1), plain("x")],
            EncodeError::MixedField { index: 1 }.into(),
        ),
    ];
    for (tensors, expected) in cases {
        let error = encode_to_vec(tensors, &NO_SCALARS).unwrap_err();
        assert_eq!(error, *expected);
        assert!(error.tensor().is_some(), "{error}");
    }
    for fine in [
        [plain("skip.02"), member("skip", 2)],
        [plain("skip."), member("skip", 2)],
    ] {
        assert!(encode_to_vec(&fine, &NO_SCALARS).is_ok());
    }
    let scalars: &[(&str, WriteError)] = &[
        (
            r#"{"a":1,"\u0061":2}"#,
            WriteError::DuplicateScalar { index: 1 },
        ),
        (r#"{"\ud800":1}"#, WriteError::InvalidScalar { index: 0 }),
        (
            r#"{"a":1,"tensorwire.json":"[]"}"#,
            WriteError::ReservedScalar { index: 1 },
        ),
        (
            r#"{"tensorwire.lists":"[]"}"#,
            WriteError::ReservedScalar { index: 0 },
        ),
    ];
    for (text, expected) in scalars {
        let value = Value::parse(text.as_bytes()).unwrap();
        assert_eq!(encode_to_vec(&[], &value).unwrap_err(), *expected, "{text}");
    }
}

#[test]
fn scalars_come_back_as_deep_as_a_message_has_them() {
    for (levels, fits) in [(126, true), (127, false)] {
        let text = format!(r#"{{"k":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        let value = Value::parse(text.as_bytes());
        let bytes = value.map(|value| encode_to_vec(&[], &value));
        let back = bytes.ok().and_then(Result::ok).map(|bytes| {
            let file = SafeTensors::decode(&bytes).unwrap();
            file.scalars().as_value().raw().to_string()
        });
        assert_eq!(back, fits.then_some(text), "{levels}");
    }
}

#[test]
fn names_of_any_length_are_kept() {
    let name = "\u{e9}\\n".repeat(23_000);
    let tensor = TensorView::from_slice(&name, &[1], &[1_u8]).unwrap();
    let bytes = encode_to_vec(&[tensor], &NO_SCALARS).unwrap();
    let file = SafeTensors::decode(&bytes).unwrap();
    assert_eq!(file.tensor(&name).unwrap().bytes(), [1]);
}
