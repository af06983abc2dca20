//! Errors as maps: what, where, and with which numbers.

use core::fmt::Display;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::bundle;
use crate::error::{
    CastError, DecodeError, DecodeErrorKind, DeserializeError, DeserializeErrorKind, EncodeError,
    SchemaKey, SyntaxError, ValueError, ValueErrorKind,
};
use crate::json::ValueType;

/// A variant of an error, taken apart.
trait Kind {
    /// The variant.
    fn name(&self) -> &'static str;

    /// How many entries it has.
    fn count(&self) -> usize;

    /// Writes what it holds, an entry for each.
    fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// A row for each variant: what it holds, by name; of another kind that it wraps, after a `@`, both the name and what that holds.
macro_rules! kinds {
    ($kind:ty: $($variant:ident $({ $($field:ident),+ })? $(($only:ident))? $(@ $inner:ident)?;)+) => {
        impl Kind for $kind {
            fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => stringify!($variant),)+
                }
            }

            fn count(&self) -> usize {
                match self {
                    $(kinds!(@pattern $variant $({ $($field),+ })? $(($only))? $(@ $inner)?) => {
                        let names: &[&str] = &[
                            $($(stringify!($field),)+)? $(stringify!($only),)? $(stringify!($inner),)?
                        ];
                        $($(let _ = $field;)+)?
                        $(let _ = $only;)?
                        names.len() $(.saturating_add($inner.count()))?
                    })+
                }
            }

            fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $(kinds!(@pattern $variant $({ $($field),+ })? $(($only))? $(@ $inner)?) => {
                        $($(map.serialize_entry(stringify!($field), $field)?;)+)?
                        $(map.serialize_entry(stringify!($only), $only)?;)?
                        $(
                            map.serialize_entry(stringify!($inner), $inner.name())?;
                            $inner.put(map)?;
                        )?
                    })+
                }
                Ok(())
            }
        }
    };
    (@pattern $variant:ident) => { Self::$variant };
    (@pattern $variant:ident { $($field:ident),+ }) => { Self::$variant { $($field),+ } };
    (@pattern $variant:ident ($only:ident)) => { Self::$variant($only) };
    (@pattern $variant:ident @ $inner:ident) => { Self::$variant($inner) };
}

kinds! { CastError:
    InvalidBool { index, byte };
    Length { expected, actual };
    Misaligned { required, actual };
    Rank { expected, actual };
    WrongDType { expected, actual };
}

kinds! { DecodeErrorKind:
    BadDim;
    BadInteger;
    BadListIndex;
    ControlMessage;
    DepthLimit { limit };
    DescriptorLimit { limit };
    DimOverflow;
    DuplicateField;
    DuplicateKey;
    DuplicateListIndex { list_index };
    FrameCount { expected, actual };
    FrameLength { expected, actual };
    IntegerOverflow;
    InvalidName;
    InvalidUtf8;
    ListIndexLimit { limit };
    MetadataLimit { limit, actual };
    MissingKey(key);
    MixedField;
    NameLimit { limit, actual };
    NoFrames;
    NoPayload;
    NonFinite;
    NotControlMessage;
    OutOfSlot { offset, byte_len, slot_len };
    Overlap { other, start, end };
    RankLimit { limit };
    ShapeOverflow;
    SlotLength { expected, actual };
    StorageFull { capacity };
    Syntax @ syntax;
    TensorBytesLimit { limit };
    TrailingData;
    UnknownDType;
    WrongType { expected, actual };
}

kinds! { DeserializeErrorKind:
    DuplicateField(field);
    Message(text);
    MissingField(field);
    NotAVariant;
    TrailingElements;
    Value @ value;
}

kinds! { EncodeError:
    BufferTooSmall { needed, capacity };
    ByteLength { expected, actual };
    DuplicateField { index };
    DuplicateListIndex { index };
    InvalidName { index };
    KeyType;
    MixedField { index };
    Overlap { index, other };
    ScalarsNotAnObject;
    ScatteredList { index };
    Serialize;
    ShapeOverflow;
    SlotOverflow;
    SlotTooSmall { needed, capacity };
}

kinds! { SyntaxError:
    ControlCharacter;
    InvalidEscape;
    InvalidNumber;
    UnexpectedByte { found };
    UnexpectedEnd;
}

kinds! { ValueErrorKind:
    BufferTooSmall { needed, capacity };
    LoneSurrogate;
    Missing;
    NotAnInteger;
    NumberOutOfRange;
    WrongType { expected, actual };
}

kinds! { bundle::ErrorKind:
    BadMagic;
    BufferTooSmall { needed, capacity };
    FrameCount { limit, actual };
    FrameLength { limit, actual };
    FrameOffset { expected, actual };
    LengthsChanged;
    NoFrames;
    NonZeroPadding { found };
    StorageFull { needed, capacity };
    TooLarge;
    TooManyFrames;
    TotalLength { expected, actual };
    TrailingBytes { expected, actual };
    Truncated { expected, actual };
    UnknownVersion { actual };
}

/// The map of an error.
struct Report<K> {
    kind: K,
    offset: Option<usize>,
    descriptor: Option<usize>,
}

impl<K: Kind> Report<K> {
    const fn of(kind: K) -> Self {
        Self {
            kind,
            offset: None,
            descriptor: None,
        }
    }

    fn at(kind: K, offset: usize) -> Self {
        Self {
            offset: Some(offset),
            ..Self::of(kind)
        }
    }

    fn serialize<S: Serializer>(
        &self,
        message: &dyn Display,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let places = [("offset", self.offset), ("descriptor", self.descriptor)];
        let places = || {
            let known = |(key, place): (_, Option<usize>)| Some((key, place?));
            places.into_iter().filter_map(known)
        };
        // Kind, numbers and message.
        let entries = places().count().saturating_add(3);
        let mut map = serializer.serialize_map(Some(entries))?;
        map.serialize_entry("kind", self.kind.name())?;
        for (key, place) in places() {
            map.serialize_entry(key, &place)?;
        }
        map.serialize_entry("numbers", &Numbers(&self.kind))?;
        map.serialize_entry("message", &Text(message))?;
        map.end()
    }
}

struct Numbers<'a, K>(&'a K);

impl<K: Kind> Serialize for Numbers<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.count()))?;
        self.0.put(&mut map)?;
        map.end()
    }
}

struct Text<'a>(&'a dyn Display);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

macro_rules! reports {
    ($($error:ty: |$this:ident| $report:expr;)+) => {$(
        impl Serialize for $error {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $this = self;
                $report.serialize(self, serializer)
            }
        }
    )+};
}

reports! {
    CastError: |this| Report::of(*this);
    DecodeError: |this| Report {
        descriptor: this.descriptor(),
        ..Report::at(this.kind(), this.offset())
    };
    DeserializeError: |this| Report::at(this.kind(), this.offset());
    EncodeError: |this| Report::of(*this);
    ValueError: |this| Report::at(this.kind(), this.offset());
    bundle::Error: |this| Report::at(this.kind(), this.offset());
}

macro_rules! names {
    ($($named:ty),+) => {$(
        impl Serialize for $named {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}

names!(SchemaKey, ValueType);

// Down here, where it sees the macros.
#[cfg(feature = "safetensors")]
mod safetensors;

impl Serialize for crate::error::DeserializeMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    use serde_json::{Value, json, to_value};

    use crate::dtype::DType;
    use crate::json;

    #[test]
    fn what_happened_where_and_with_which_numbers_stands_in_a_map() {
        let kind = DecodeErrorKind::OutOfSlot {
            offset: u64::MAX,
            byte_len: 4,
            slot_len: 8,
        };
        let out_of_slot = DecodeError::new(kind, 7).in_descriptor(3);
        let expected = ValueType::Number;
        let actual = ValueType::String;
        let wrong_type = ValueErrorKind::WrongType { expected, actual };
        let wrong_dtype = CastError::WrongDType {
            expected: DType::Int8,
            actual: DType::Bool,
        };
        let cases: &[(Value, Value)] = &[
            (
                to_value(out_of_slot).unwrap(),
                json!({
                    "kind": "OutOfSlot",
                    "offset": 7,
                    "descriptor": 3,
                    "numbers": { "offset": u64::MAX, "byte_len": 4, "slot_len": 8 },
                    "message": out_of_slot.to_string(),
                }),
            ),
            (
                to_value(DecodeError::new(
                    DecodeErrorKind::MissingKey(SchemaKey::Shape),
                    1,
                ))
                .unwrap(),
                json!({
                    "kind": "MissingKey",
                    "offset": 1,
                    "numbers": { "key": "shape" },
                    "message": "no shape at byte 1",
                }),
            ),
            (
                to_value(json::Value::parse(b"[\\]").unwrap_err()).unwrap(),
                json!({
                    "kind": "Syntax",
                    "offset": 1,
                    "numbers": { "syntax": "UnexpectedByte", "found": 92 },
                    "message": "unexpected byte 0x5c at byte 1",
                }),
            ),
            (
                to_value(ValueError::new(wrong_type, 9)).unwrap(),
                json!({
                    "kind": "WrongType",
                    "offset": 9,
                    "numbers": { "expected": "number", "actual": "string" },
                    "message": "expected number, found string at byte 9",
                }),
            ),
            (
                to_value(DeserializeError::from(ValueError::new(wrong_type, 9))).unwrap(),
                json!({
                    "kind": "Value",
                    "offset": 9,
                    "numbers": { "value": "WrongType", "expected": "number", "actual": "string" },
                    "message": "expected number, found string at byte 9",
                }),
            ),
            (
                to_value(EncodeError::KeyType).unwrap(),
                json!({
                    "kind": "KeyType",
                    "numbers": {},
                    "message": "map key that JSON has no text for",
                }),
            ),
            (
                to_value(wrong_dtype).unwrap(),
                json!({
                    "kind": "WrongDType",
                    "numbers": { "expected": "int8", "actual": "bool" },
                    "message": "tensor of bool read as int8",
                }),
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }

    /// As a format that writes a map's length first.
    fn through_cbor<T: Serialize>(value: &T) -> ciborium::Value {
        let mut bytes = std::vec::Vec::new();
        ciborium::into_writer(value, &mut bytes).unwrap();
        let mut rest = &bytes[..];
        let value = ciborium::from_reader(&mut rest).unwrap();
        assert!(rest.is_empty(), "{rest:?}");
        value
    }

    #[test]
    fn a_map_has_as_many_entries_as_it_says() {
        let kind = DecodeErrorKind::OutOfSlot {
            offset: u64::MAX,
            byte_len: 4,
            slot_len: 8,
        };
        let syntax = json::Value::parse(b"[\\]").unwrap_err();
        let wrong_type = ValueErrorKind::WrongType {
            expected: ValueType::Number,
            actual: ValueType::String,
        };
        let value = ValueError::new(wrong_type, 9);
        let nested = DeserializeError::from(value);
        let cases = [
            (
                through_cbor(&DecodeError::new(kind, 7)),
                to_value(DecodeError::new(kind, 7)),
            ),
            (
                through_cbor(&DecodeError::new(kind, 7).in_descriptor(3)),
                to_value(DecodeError::new(kind, 7).in_descriptor(3)),
            ),
            (through_cbor(&syntax), to_value(syntax)),
            (through_cbor(&nested), to_value(nested)),
            (
                through_cbor(&EncodeError::KeyType),
                to_value(EncodeError::KeyType),
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(to_value(found).unwrap(), expected.unwrap());
        }
    }

    #[test]
    fn what_a_type_complains_about_is_its_text() {
        use serde::de::Error as _;

        let error = DeserializeError::custom("too hot");
        let map = to_value(error).unwrap();
        assert_eq!(map["kind"], "Message");
        assert_eq!(map["numbers"], json!({ "text": "too hot" }));
        let map = to_value(DeserializeError::missing_field("seed").at(4)).unwrap();
        assert_eq!(map["numbers"], json!({ "field": "seed" }));
    }

    #[test]
    fn a_bundle_that_is_none_says_where() {
        let error = bundle::Bundle::decode(b"TWBUNDL0").unwrap_err();
        let map = to_value(error).unwrap();
        assert_eq!(map["offset"], error.offset());
        assert_eq!(map["message"], error.to_string());
        assert!(map["numbers"].is_object());
    }
}
