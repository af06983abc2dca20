//! Parts of a document that are kept as they stand.

use core::fmt;
use core::marker::PhantomData;

use serde::de::{self, EnumAccess, Error as _, VariantAccess, Visitor};

use crate::error::{DeserializeError, DeserializeErrorKind};
use crate::json::{Object, Value};

/// Keeps a part of the document as it stands, to be read later.
///
/// With another deserializer than this crate's it is a borrowed string that
/// holds a JSON text. It cannot pass through serde's own buffering, which is
/// where `flatten`, `untagged` or `tag` is used.
impl<'de: 'a, 'a> de::Deserialize<'de> for Value<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TOKEN, ValueVisitor(PhantomData))
    }
}

/// Keeps a part of the document as it stands, as [`Value`] does.
impl<'de: 'a, 'a> de::Deserialize<'de> for Object<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <Value<'a> as de::Deserialize<'de>>::deserialize(deserializer)?;
        value
            .as_object()
            .map_err(|error| D::Error::custom(format_args!("{}", error.kind())))
    }
}

struct ValueVisitor<'a>(PhantomData<Value<'a>>);

impl<'de: 'a, 'a> Visitor<'de> for ValueVisitor<'a> {
    type Value = Value<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON text that can be borrowed")
    }

    fn visit_newtype_struct<D: de::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value<'a>, D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Value<'a>, E> {
        Value::parse(text.as_bytes()).map_err(E::custom)
    }

    /// The way of this crate's own deserializer, see [`RawValue`].
    ///
    /// Who else may come this way is unknown, so the text is checked again.
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Value<'a>, A::Error> {
        let (offset, access) = access.variant::<u64>()?;
        let text: &'de str = access.newtype_variant()?;
        let value = Value::parse(text.as_bytes()).map_err(A::Error::custom)?;
        let offset = usize::try_from(offset).map_err(A::Error::custom)?;
        Ok(Value::new(value.raw(), offset))
    }
}

/// Hands a value as it stands to [`ValueVisitor`]: its offset as an enum's variant, its text as what is in it.
///
/// No data format answers the request for a newtype with an enum, so what
/// comes this way is not taken for what a format makes of its own input.
pub(super) struct RawValue<'a>(pub(super) Value<'a>);

impl<'a> EnumAccess<'a> for RawValue<'a> {
    type Error = DeserializeError;
    type Variant = Self;

    fn variant_seed<S: de::DeserializeSeed<'a>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self), DeserializeError> {
        let offset = u64::try_from(self.0.offset()).map_err(DeserializeError::custom)?;
        let offset = de::value::U64Deserializer::<DeserializeError>::new(offset);
        Ok((seed.deserialize(offset)?, self))
    }
}

impl<'a> VariantAccess<'a> for RawValue<'a> {
    type Error = DeserializeError;

    fn unit_variant(self) -> Result<(), DeserializeError> {
        Err(self.not_a_variant())
    }

    fn newtype_variant_seed<S: de::DeserializeSeed<'a>>(
        self,
        seed: S,
    ) -> Result<S::Value, DeserializeError> {
        seed.deserialize(de::value::BorrowedStrDeserializer::new(self.0.raw()))
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, _: V) -> Result<V::Value, DeserializeError> {
        Err(self.not_a_variant())
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, DeserializeError> {
        Err(self.not_a_variant())
    }
}

impl RawValue<'_> {
    const fn not_a_variant(&self) -> DeserializeError {
        DeserializeError::new(DeserializeErrorKind::NotAVariant, self.0.offset())
    }
}

/// The name under which a [`Value`] passes through serde.
pub(crate) const TOKEN: &str = "$tensorwire::json::Value";

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::string::ToString;
    use std::vec::Vec;

    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, DeserializeError> {
        Value::parse(text.as_bytes()).unwrap().deserialize()
    }

    #[test]
    fn values_are_kept_as_they_stand() {
        #[derive(Debug, Deserialize)]
        struct Lazy<'a> {
            #[serde(borrow)]
            config: Object<'a>,
            #[serde(borrow)]
            rest: Vec<Value<'a>>,
            #[serde(borrow)]
            none: Option<Value<'a>>,
        }
        let text = r#"{"config": {"a" : NaN},"rest":[1e2, "\ud800",[]],"none":null}"#;
        let lazy: Lazy<'_> = read(text).unwrap();
        assert_eq!(lazy.config.as_value().raw(), r#"{"a" : NaN}"#);
        assert_eq!(lazy.config.as_value().offset(), 11);
        let rest: Vec<_> = lazy.rest.iter().map(|v| (v.raw(), v.offset())).collect();
        assert_eq!(rest, [("1e2", 31), (r#""\ud800""#, 36), ("[]", 45)]);
        assert!(lazy.none.is_none());
        let error = read::<Lazy<'_>>(r#"{"config":[]}"#)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "expected object, found array at byte 10");
    }

    #[test]
    fn other_formats_give_a_value_as_text_in_a_string() {
        let value: Value<'_> = serde_json::from_str(r#"" [1,NaN]""#).unwrap();
        assert_eq!(value.raw(), "[1,NaN]");
        for text in [r#""[1""#, "[1]", r#""\n1""#, "7"] {
            assert!(serde_json::from_str::<Value<'_>>(text).is_err(), "{text}");
        }
    }
}
