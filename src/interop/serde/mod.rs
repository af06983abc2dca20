//! What is said of tensors, and what went wrong, for [`serde`].
//!
//! | type | is written as | is read |
//! |---|---|---|
//! | [`DType`] | its name | yes, these names alone |
//! | [`Descriptor`] | a map of `field_name`, `shape`, `dtype`, `list_index`, in this order: as on the wire | as a `TensorInfo` |
//! | `TensorInfo` (`std`) | the same | yes, keys in any order, others skipped; without `list_index` it is -1 |
//! | the errors of [`error`](crate::error), of [`bundle`](crate::bundle) and, where it is, of `safetensors` | a map of `kind`, `offset`, `descriptor`, `numbers`, `message` | no |
//!
//! A `Descriptor` borrows its shape as numbers, which no text has: so it is not read, and its owned form is. A `TensorInfo`
//! is held to the default [`Limits`](crate::Limits) and to what a message says of a tensor, and a size over `isize::MAX` is refused.
//! With `serde_json` a descriptor is written byte for byte as in a message, but for names that are not ASCII, which Python
//! escapes.
//!
//! Of an error, `kind` is the variant's name, `numbers` a map of what it holds, empty where that is nothing, and `message` its text.
//! `offset` is there where the error knows a byte, `descriptor` where it is about one. These maps are for logs and for scripts; more
//! kinds and more numbers come with new versions.
//!
//! # Examples
//!
//! ```
//! # #[cfg(feature = "std")] {
//! use tensorwire::DType;
//! use tensorwire::device::TensorInfo;
//! use tensorwire::message::{Message, Storage};
//! use tensorwire::tensor::Descriptor;
//!
//! let latents = Descriptor::new("latents", DType::BFloat16, &[1, 16])?;
//! let text = serde_json::to_string(&latents)?;
//! assert_eq!(text, r#"{"field_name":"latents","shape":[1,16],"dtype":"bfloat16","list_index":-1}"#);
//! let kept: TensorInfo = serde_json::from_str(&text)?;
//! assert_eq!(kept.byte_len(), 32);
//!
//! let frames = [r#"{"tensor_descriptors":[{"field_name":"x","shape":[4],"dtype":"int8"}]}"#, "abc"];
//! let error = Message::decode(&frames, &mut Storage::<4>::new()).unwrap_err();
//! assert_eq!(
//!     serde_json::to_value(error)?,
//!     serde_json::json!({
//!         "kind": "FrameLength",
//!         "offset": 23,
//!         "descriptor": 0,
//!         "numbers": { "expected": 4, "actual": 3 },
//!         "message": "descriptor 0: frame of 3 bytes where the shape says 4 at byte 23",
//!     })
//! );
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod errors;
#[cfg(feature = "std")]
mod info;

use core::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::dtype::DType;
use crate::json::Str;
use crate::tensor::{Descriptor, Shape};

impl Serialize for DType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for DType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = DType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a dtype")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<DType, E> {
        DType::from_name(name).ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
    }
}

impl Serialize for Descriptor<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Descriptor", KEYS.len())?;
        let list_index = self.list_index().map_or(-1, i64::from);
        map.serialize_field("field_name", &Name(self.name()))?;
        map.serialize_field("shape", &Extents(self.shape()))?;
        map.serialize_field("dtype", &self.dtype())?;
        map.serialize_field("list_index", &list_index)?;
        map.end()
    }
}

/// As they are written.
const KEYS: &[&str] = &["field_name", "shape", "dtype", "list_index"];

struct Name<'a>(Str<'a>);

impl Serialize for Name<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_plain() {
            Some(name) => serializer.serialize_str(name),
            None if self.0.decoded_len().is_err() => Err(serde::ser::Error::custom(
                "a lone surrogate in a field name",
            )),
            None => serializer.collect_str(&self.0),
        }
    }
}

struct Extents<'a>(Shape<'a>);

impl Serialize for Extents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.dims())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};

    use crate::message::{NO_SCALARS, encode_into};

    #[test]
    fn every_dtype_is_its_name_and_nothing_else_is_one() {
        for &dtype in DType::ALL {
            let text = serde_json::to_string(&dtype).unwrap();
            assert_eq!(text, std::format!("\"{dtype}\""));
            assert_eq!(serde_json::from_str::<DType>(&text).unwrap(), dtype);
        }
        for text in ["\"F32\"", "\"\"", "null", "4", "\"torch.float32\""] {
            let error = serde_json::from_str::<DType>(text).unwrap_err();
            assert!(error.to_string().contains("the name of a dtype"), "{error}");
        }
        // Escaped, and so not borrowed.
        let escaped = serde_json::from_str::<DType>("\"\\u0062ool\"").unwrap();
        assert_eq!(escaped, DType::Bool);
    }

    #[test]
    fn a_descriptor_is_written_as_in_a_message() {
        let shape = [3, 0, 1 << 40];
        let plain = Descriptor::new("a\"b\n", DType::Float8E5M2, &shape).unwrap();
        let none: &[usize] = &[];
        for descriptor in [
            plain,
            plain.with_list_index(4096),
            Descriptor::new("", DType::Bool, none).unwrap(),
        ] {
            let mut buffer = [0; 512];
            let metadata = encode_into([descriptor], &NO_SCALARS, &mut buffer).unwrap();
            let text = serde_json::to_string(&descriptor).unwrap();
            let expected =
                std::format!("{{\"tensor_descriptors\":[{text}],\"scalar_fields\":{{}}}}");
            assert_eq!(core::str::from_utf8(metadata), Ok(&*expected));
        }
    }

    #[test]
    fn a_name_is_written_unescaped_and_one_that_is_no_text_not_at_all() {
        let name = |raw| Descriptor::new(Str::from_json(raw, true), DType::Bool, &[1]).unwrap();
        let text = serde_json::to_value(name("caf\\u00e9")).unwrap();
        assert_eq!(text["field_name"], "café");
        let error = serde_json::to_string(&name("\\ud800")).unwrap_err();
        assert_eq!(error.to_string(), "a lone surrogate in a field name");
        let _: String = error.to_string();
    }
}
