//! Whatever a peer sends is read or refused, with one error, at the right byte.

use super::*;
use tensorwire::error::DecodeErrorKind::*;
use tensorwire::error::SchemaKey;
use tensorwire::json::ValueType;

/// Length of the slot that each manifest is held against.
const SLOT: usize = 64;

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

const fn overlap(other: usize, start: usize, end: usize) -> DecodeErrorKind {
    Overlap { other, start, end }
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
        BadOffset,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^-0,"shape":[1],"dtype":"bool"}]}"#,
        BadOffset,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^0.0,"shape":[1],"dtype":"bool"}]}"#,
        BadOffset,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^1e1,"shape":[1],"dtype":"bool"}]}"#,
        BadOffset,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^true,"shape":[1],"dtype":"bool"}]}"#,
        BadOffset,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^null,"shape":[1],"dtype":"bool"}]}"#,
        BadOffset,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^"0","shape":[1],"dtype":"bool"}]}"#,
        BadOffset,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^[0],"shape":[1],"dtype":"bool"}]}"#,
        BadOffset,
        Some(0),
    ),
    (
        r#"{"x":[{"offset": ^NaN,"shape":[1],"dtype":"bool"}]}"#,
        BadOffset,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^-Infinity,"shape":[1],"dtype":"bool"}]}"#,
        BadOffset,
        Some(0),
    ),
    (
        r#"{"x":[{"offset":^18446744073709551616,"shape":[1],"dtype":"bool"}]}"#,
        OffsetOverflow,
        Some(0),
    ),
    (
        r#"{"x":[{"shape":[0],"offset":^100000000000000000000000,"dtype":"bool"}]}"#,
        OffsetOverflow,
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
    // Names that two entries have.
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"},^{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DuplicateField,
        Some(1),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"},^{"offset":1,"shape":[1],"dtype":"bool","list_index":0}]}"#,
        MixedField,
        Some(1),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":3},^{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        MixedField,
        Some(1),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":3},{"offset":1,"shape":[1],"dtype":"bool","list_index":0},^{"offset":2,"shape":[1],"dtype":"bool","list_index":3}]}"#,
        DuplicateListIndex { list_index: 3 },
        Some(2),
    ),
    // Names that are written twice.
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"}],^"x":[{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"}],^"\u0078":[{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":0}],^"x":[{"offset":1,"shape":[1],"dtype":"bool","list_index":1}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":0}],^"x":[{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":0}],"y":[],^"x":[{"offset":1,"shape":[1],"dtype":"bool","list_index":7}],"x":[{"offset":1,"shape":[1],"dtype":"bool","list_index":1}]}"#,
        DuplicateField,
        None,
    ),
    // The later field stands first among the list's members.
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":5}],^"x":[{"offset":1,"shape":[1],"dtype":"bool","list_index":4},{"offset":2,"shape":[1],"dtype":"bool","list_index":6}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[],^"x":[{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[{"offset":1,"shape":[1],"dtype":"bool"}],"y":[],^"x":[ ]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"y":[],"\u0078":[],"x":[],^"x":[{"offset":1,"shape":[1],"dtype":"bool"}],"y":[]}"#,
        DuplicateField,
        None,
    ),
    // Of several conflicts the first on the wire.
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":0},^{"offset":1,"shape":[1],"dtype":"bool","list_index":0}],"x":[]}"#,
        DuplicateListIndex { list_index: 0 },
        Some(1),
    ),
    // Bytes that two tensors have.
    (
        r#"{"x":[{"offset":0,"shape":[4],"dtype":"bool"}],"y":[^{"offset":3,"shape":[2],"dtype":"bool"}]}"#,
        overlap(0, 3, 4),
        Some(1),
    ),
    (
        r#"{"x":[{"offset":3,"shape":[2],"dtype":"bool"}],"y":[^{"offset":0,"shape":[4],"dtype":"bool"}]}"#,
        overlap(0, 3, 4),
        Some(1),
    ),
    (
        r#"{"x":[{"offset":8,"shape":[4],"dtype":"bool"}],"y":[^{"offset":8,"shape":[4],"dtype":"bool"}]}"#,
        overlap(0, 8, 12),
        Some(1),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[8],"dtype":"float64"}],"y":[{"offset":0,"shape":[0],"dtype":"bool"}],"z":[^{"offset":63,"shape":[1],"dtype":"bool"}]}"#,
        overlap(0, 63, 64),
        Some(2),
    ),
    // The lowest of two, inside of another, after one without bytes.
    (
        r#"{"x":[{"offset":40,"shape":[4],"dtype":"bool","list_index":0},{"offset":42,"shape":[4],"dtype":"bool","list_index":1}],"a":[{"offset":0,"shape":[20],"dtype":"bool"}],"b":[{"offset":9,"shape":[0],"dtype":"bool"}],"c":[^{"offset":10,"shape":[3],"dtype":"bool"}]}"#,
        overlap(2, 10, 13),
        Some(4),
    ),
];

#[test]
fn what_is_no_manifest_is_refused_where_it_goes_wrong() {
    let mut storage = room();
    for &(marked, kind, entry) in MALFORMED {
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
        let error = Manifest::decode(manifest, SLOT, &mut storage, &Limits::new()).unwrap_err();
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
            "descriptor 0: offset is not a plain non-negative integer at byte 16",
        ),
        (
            r#"{"x":[{"offset":18446744073709551616}]}"#,
            "descriptor 0: offset over 18446744073709551615 at byte 16",
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
    let manifest = Manifest::decode(manifest, 1, &mut storage, &Limits::new()).unwrap();
    let name = manifest.entry(0).unwrap().descriptor().name();
    let error = name.copy_to(&mut []).unwrap_err();
    assert_eq!(error.offset(), payload.find(r#""caf"#).unwrap());
}

/// (limits, text with a `^` at what is over them, kind, entry)
const LIMITED: &[(Limits, &str, DecodeErrorKind, Option<usize>)] = &[
    (
        Limits::new().with_metadata_bytes(46),
        r#"^{"x":[{"offset":0,"shape":[1],"dtype":"bool"}]}"#,
        MetadataLimit {
            limit: 46,
            actual: 47,
        },
        None,
    ),
    (
        Limits::new().with_descriptors(1),
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"}],"y":[],"z":[^{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DescriptorLimit { limit: 1 },
        None,
    ),
    (
        Limits::new().with_rank(2),
        r#"{"x":[{"offset":0,"shape":[1,1,^1],"dtype":"bool"}]}"#,
        RankLimit { limit: 2 },
        Some(0),
    ),
    (
        Limits::new().with_name_bytes(4),
        r#"{"four":[],^"caf\u00e9":[]}"#,
        NameLimit {
            limit: 4,
            actual: 5,
        },
        None,
    ),
    (
        Limits::new().with_list_index(1),
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":1},{"offset":1,"shape":[1],"dtype":"bool","list_index":^2}]}"#,
        ListIndexLimit { limit: 1 },
        Some(1),
    ),
    (
        Limits::new().with_tensor_bytes(3),
        r#"{"x":[{"offset":0,"shape":[3],"dtype":"bool"}],"y":[^{"offset":9,"shape":[1],"dtype":"bool"}]}"#,
        TensorBytesLimit { limit: 3 },
        Some(1),
    ),
    (
        Limits::new().with_depth(5),
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","new":[[]]},{"offset":1,"new":[[^[]]]}]}"#,
        DepthLimit { limit: 5 },
        Some(1),
    ),
];

#[test]
fn each_cap_refuses_what_is_over_it() {
    let mut storage = room();
    for (limits, marked, kind, entry) in LIMITED {
        let offset = marked.find('^').unwrap();
        let text = marked.replace('^', "");
        let result = Manifest::decode(object(&text), SLOT, &mut storage, limits);
        let error = result.unwrap_err();
        let told = (error.kind(), error.offset(), error.descriptor());
        assert_eq!(told, (*kind, offset, *entry), "{marked}: {error}");
    }
    let text = r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"}],"y":[{"offset":1,"shape":[1],"dtype":"bool"}]}"#;
    let small = Manifest::decode(object(text), SLOT, &mut Storage::<1>::new(), &Limits::new())
        .map(|manifest| manifest.len());
    assert_eq!(small.unwrap_err().kind(), StorageFull { capacity: 1 });
    let none = Manifest::decode(object("{}"), 0, &mut Storage::<0>::new(), &Limits::new())
        .map(|manifest| manifest.len());
    assert_eq!(none, Ok(0));
}

/// A list of this many members, in descending order of offsets and of indices.
#[cfg(feature = "alloc")]
fn descending(count: usize, overlap: usize) -> String {
    let mut text = String::from(r#"{"l":["#);
    for at in (0..count).rev() {
        let comma = if at + 1 == count { "" } else { "," };
        let offset = at * 2;
        let shape = 2 + if at == 0 { overlap } else { 0 };
        text += &format!(
            r#"{comma}{{"offset":{offset},"shape":[{shape}],"dtype":"int8","list_index":{at}}}"#
        );
    }
    text + "]}"
}

#[cfg(feature = "alloc")]
#[test]
fn a_hundred_thousand_entries_are_refused_or_sorted() {
    use tensorwire::Options;
    use tensorwire::transfer::manifest::Decoder;

    const COUNT: usize = 100_000;
    let (text, overlapping) = (descending(COUNT, 0), descending(COUNT, 1));
    let text = object(&text);
    let limits = Limits::new()
        .with_metadata_bytes(1 << 24)
        .with_list_index(COUNT);
    let refused = Decoder::with_options(Options::new().with_limits(limits))
        .decode(text, 2 * COUNT)
        .map(drop);
    assert_eq!(refused.unwrap_err().kind(), DescriptorLimit { limit: 4096 });

    let limits = limits.with_descriptors(COUNT);
    let mut decoder = Decoder::with_options(Options::new().with_limits(limits));
    let manifest = decoder.decode(text, 2 * COUNT).unwrap();
    assert_eq!((manifest.len(), manifest.used_len()), (COUNT, 2 * COUNT));
    let slot = vec![7; 2 * COUNT];
    let list = manifest.attach(&slot).unwrap().list("l").unwrap();
    assert_eq!((list.len(), list.present_len()), (COUNT, COUNT));
    assert!((0..COUNT).all(|at| list.position(at) == Some(COUNT - 1 - at)));

    let error = decoder.decode(object(&overlapping), 2 * COUNT).unwrap_err();
    assert_eq!(error.kind(), overlap(COUNT - 2, 2, 3));
    assert_eq!(error.descriptor(), Some(COUNT - 1));
}

/// Fields whose names differ in the last byte alone, or in their spelling.
#[cfg(feature = "alloc")]
#[test]
fn names_that_are_much_alike_are_told_apart() {
    use tensorwire::transfer::manifest::Decoder;

    let name = "n".repeat(200);
    let field = |at: usize, spelled: &str| {
        format!(r#""{name}{spelled}":[{{"offset":{at},"shape":[1],"dtype":"int8"}}]"#)
    };
    let plain: Vec<_> = (0..2000).map(|at| field(at, &format!("{at:04}"))).collect();
    let text = format!("{{{}}}", plain.join(","));
    let mut decoder = Decoder::new();
    let manifest = decoder.decode(object(&text), 2000).unwrap();
    assert!((0..2000).all(|at| manifest.position(&format!("{name}{at:04}")) == Some(at)));

    let mut twice = plain;
    twice.push(field(2000, r"\u0031999"));
    let text = format!("{{{}}}", twice.join(","));
    let error = decoder.decode(object(&text), 2001).unwrap_err();
    let at = text.rfind(&format!("\"{name}\\")).unwrap();
    assert_eq!((error.kind(), error.offset()), (DuplicateField, at));
}
