//! What a tensor is called and looks like, read.

use core::fmt;

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::KEYS;
use crate::Limits;
use crate::device::TensorInfo;
use crate::dtype::DType;
use crate::tensor::Descriptor;

impl Serialize for TensorInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.descriptor().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TensorInfo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Descriptor", KEYS, InfoVisitor)
    }
}

struct InfoVisitor;

impl<'de> Visitor<'de> for InfoVisitor {
    type Value = TensorInfo;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("name, shape, dtype and list index of a tensor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TensorInfo, A::Error> {
        fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
            place: &mut Option<T>,
            key: &'static str,
            map: &mut A,
        ) -> Result<(), A::Error> {
            if place.replace(map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(key));
            }
            Ok(())
        }
        let (mut name, mut shape, mut dtype, mut list_index) = (None, None, None, None);
        while let Some(key) = map.next_key()? {
            match key {
                Key::Name => once::<String, A>(&mut name, "field_name", &mut map)?,
                Key::Shape => once::<Extents, A>(&mut shape, "shape", &mut map)?,
                Key::DType => once::<DType, A>(&mut dtype, "dtype", &mut map)?,
                Key::ListIndex => once::<i64, A>(&mut list_index, "list_index", &mut map)?,
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let missing = A::Error::missing_field;
        info(
            &name.ok_or_else(|| missing("field_name"))?,
            &shape.ok_or_else(|| missing("shape"))?,
            dtype.ok_or_else(|| missing("dtype"))?,
            list_index.unwrap_or(-1),
        )
    }

    /// For formats that write no keys.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<TensorInfo, A::Error> {
        let short = |index| A::Error::invalid_length(index, &self);
        let name: String = seq.next_element()?.ok_or_else(|| short(0))?;
        let shape: Extents = seq.next_element()?.ok_or_else(|| short(1))?;
        let dtype = seq.next_element()?.ok_or_else(|| short(2))?;
        let list_index = seq.next_element()?.ok_or_else(|| short(3))?;
        info(&name, &shape, dtype, list_index)
    }
}

fn info<E: Error>(
    name: &str,
    shape: &Extents,
    dtype: DType,
    list_index: i64,
) -> Result<TensorInfo, E> {
    let limits = Limits::new();
    if name.len() > limits.name_bytes() {
        let (actual, limit) = (name.len(), limits.name_bytes());
        return Err(E::custom(format_args!(
            "name of {actual} bytes where {limit} are allowed"
        )));
    }
    let descriptor = Descriptor::new(name, dtype, &shape.0).map_err(E::custom)?;
    if list_index == -1 {
        return Ok(TensorInfo::new(&descriptor));
    }
    let limit = limits.list_index();
    let allowed = |&index: &u32| usize::try_from(index).is_ok_and(|index| index <= limit);
    match u32::try_from(list_index).ok().filter(allowed) {
        Some(index) => Ok(TensorInfo::new(&descriptor.with_list_index(index))),
        None => Err(E::custom(format_args!(
            "list_index {list_index} is neither -1 nor 0 to {limit}"
        ))),
    }
}

enum Key {
    DType,
    ListIndex,
    Name,
    Other,
    Shape,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key of a descriptor")
            }

            fn visit_str<E: Error>(self, key: &str) -> Result<Key, E> {
                Ok(match key {
                    "dtype" => Key::DType,
                    "field_name" => Key::Name,
                    "list_index" => Key::ListIndex,
                    "shape" => Key::Shape,
                    _ => Key::Other,
                })
            }
        }

        deserializer.deserialize_identifier(KeyVisitor)
    }
}

/// The dimensions: no more than a tensor may have.
struct Extents(Vec<usize>);

impl<'de> Deserialize<'de> for Extents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ExtentsVisitor;

        impl<'de> Visitor<'de> for ExtentsVisitor {
            type Value = Extents;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {} dimensions", Limits::new().rank())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Extents, A::Error> {
                let mut dims = Vec::new();
                while let Some(dim) = seq.next_element()? {
                    if dims.len() >= Limits::new().rank() {
                        let more = dims.len().saturating_add(1);
                        return Err(A::Error::invalid_length(more, &self));
                    }
                    dims.push(dim);
                }
                Ok(Extents(dims))
            }
        }

        deserializer.deserialize_seq(ExtentsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::string::ToString;
    use std::vec;

    #[test]
    fn what_is_written_is_read_again() {
        for list_index in [None, Some(0), Some(4096)] {
            let descriptor = Descriptor::new("caf\u{e9}\"\n", DType::Int16, &[2, 0, 3]).unwrap();
            let descriptor = match list_index {
                Some(index) => descriptor.with_list_index(index),
                None => descriptor,
            };
            let info = TensorInfo::new(&descriptor);
            let text = serde_json::to_string(&info).unwrap();
            assert_eq!(text, serde_json::to_string(&descriptor).unwrap());
            let again: TensorInfo = serde_json::from_str(&text).unwrap();
            assert_eq!(again.list_index(), list_index);
            assert!(again.name() == "caf\u{e9}\"\n");
            assert_eq!(
                (again.dtype(), again.shape()),
                (DType::Int16, &[2, 0, 3][..])
            );
            // As a format without keys has it.
            let bare = format!(
                r#"["caf\u00e9\"\n",[2,0,3],"int16",{}]"#,
                list_index.map_or(-1, i64::from)
            );
            let again: TensorInfo = serde_json::from_str(&bare).unwrap();
            assert_eq!(serde_json::to_string(&again).unwrap(), text);
        }
    }

    #[test]
    fn a_binary_format_does_as_well() {
        for &dtype in DType::ALL {
            let descriptor = Descriptor::new("caf\u{e9}", dtype, &[2, 0, 3]).unwrap();
            let info = TensorInfo::new(&descriptor.with_list_index(7));
            let mut bytes = Vec::new();
            ciborium::into_writer(&(&info, dtype), &mut bytes).unwrap();
            let (again, same): (TensorInfo, DType) = ciborium::from_reader(&bytes[..]).unwrap();
            assert_eq!((again.dtype(), same), (dtype, dtype));
            assert_eq!((again.shape(), again.list_index()), (info.shape(), Some(7)));
            assert!(again.name() == "caf\u{e9}");
        }
    }

    #[test]
    fn keys_come_in_any_order_and_others_are_skipped() {
        let text = r#"{"sha256":[{}],"dtype":"bool","shape":[3],"nbytes":3,"field_name":"x"}"#;
        let info: TensorInfo = serde_json::from_str(text).unwrap();
        assert_eq!((info.byte_len(), info.list_index()), (3, None));
    }

    #[test]
    fn what_no_message_may_say_is_refused() {
        let long = "x".repeat(1025);
        let dims = vec!["1"; 65].join(",");
        let of = |name: &str, shape: &str, rest: &str| {
            format!(r#"{{"field_name":"{name}","shape":[{shape}],"dtype":"int8"{rest}}}"#)
        };
        let cases = [
            (of("x", "-1", ""), "invalid value: integer `-1`"),
            (of("x", "1.0", ""), "invalid type: floating point"),
            (of("x", "9223372036854775808", ""), "tensor of more than"),
            (
                of("x", "0,4294967296,4294967296", ""),
                "tensor of more than",
            ),
            (of("x", &dims, ""), "invalid length 65, expected at most 64"),
            (
                of(&long, "1", ""),
                "name of 1025 bytes where 1024 are allowed",
            ),
            (
                of("x", "1", ",\"list_index\":-2"),
                "list_index -2 is neither",
            ),
            (
                of("x", "1", ",\"list_index\":4097"),
                "neither -1 nor 0 to 4096",
            ),
            (of("x", "1", ",\"list_index\":1000000000000"), "neither -1"),
            (of("x", "1", ",\"list_index\":null"), "invalid type: null"),
            (
                of("x", "1", ",\"dtype\":\"int8\""),
                "duplicate field `dtype`",
            ),
            (of("x", "1", ",\"shape\":[]"), "duplicate field `shape`"),
            (
                r#"{"shape":[],"dtype":"int8"}"#.into(),
                "missing field `field_name`",
            ),
            (
                r#"{"field_name":"x","dtype":"int8"}"#.into(),
                "missing field `shape`",
            ),
            (
                r#"{"field_name":"x","shape":[]}"#.into(),
                "missing field `dtype`",
            ),
            (r#"["x",[1]]"#.into(), "invalid length 2"),
            ("7".into(), "name, shape, dtype and list index"),
        ];
        for (text, expected) in cases {
            let error = serde_json::from_str::<TensorInfo>(&text).unwrap_err();
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
