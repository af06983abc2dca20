//! An object's keys, and the names of variants.

use serde::de::{
    self, DeserializeSeed, EnumAccess, Error as _, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::Text;
use crate::error::{DeserializeError, ValueError, ValueErrorKind};
use crate::json::cursor::{Cursor, NonFinite};
use crate::json::{Value, ValueType};

/// Gives a key as the string it is, or as what Python made the string of.
pub(super) struct KeyDeserializer<'a>(pub(super) Text<'a>);

impl KeyDeserializer<'_> {
    /// Reads the key as the number whose text it is.
    fn number<R>(
        &self,
        read: impl FnOnce(Value<'_>) -> Result<R, ValueError>,
    ) -> Result<R, DeserializeError> {
        let Text { text, offset } = self.0;
        let mut buffer = [0; NUMBER_BYTES];
        let digits = match text.as_plain() {
            Some(plain) => plain,
            None => text.copy_to(&mut buffer)?,
        };
        let mut cursor = Cursor::new(digits);
        if cursor.take_number(NonFinite::Accept).is_err() || !cursor.rest().is_empty() {
            return Err(self.wrong_type(ValueType::Number));
        }
        Ok(read(Value::new(digits, offset))?)
    }

    fn wrong_type(&self, expected: ValueType) -> DeserializeError {
        let actual = ValueType::String;
        ValueError::new(
            ValueErrorKind::WrongType { expected, actual },
            self.0.offset,
        )
        .into()
    }
}

macro_rules! numbers {
    ($($deserialize:ident $visit:ident $read:ident,)*) => {$(
        fn $deserialize<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
            visitor.$visit(self.number(|value| value.$read())?)
        }
    )*};
}

impl<'a> de::Deserializer<'a> for KeyDeserializer<'a> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.0.visit(visitor)
    }

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if self.0.text == "true" {
            visitor.visit_bool(true)
        } else if self.0.text == "false" {
            visitor.visit_bool(false)
        } else {
            Err(self.wrong_type(ValueType::Bool))
        }
    }

    numbers! {
        deserialize_i8 visit_i8 integer,
        deserialize_i16 visit_i16 integer,
        deserialize_i32 visit_i32 integer,
        deserialize_i64 visit_i64 integer,
        deserialize_i128 visit_i128 integer,
        deserialize_u8 visit_u8 integer,
        deserialize_u16 visit_u16 integer,
        deserialize_u32 visit_u32 integer,
        deserialize_u64 visit_u64 integer,
        deserialize_u128 visit_u128 integer,
        deserialize_f32 visit_f32 as_f32,
        deserialize_f64 visit_f64 as_f64,
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if self.0.text == "null" {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if self.0.text == "null" {
            visitor.visit_unit()
        } else {
            Err(self.wrong_type(ValueType::Null))
        }
    }

    fn deserialize_bytes<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.0.visit_bytes(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'a>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.0.visit_bytes(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_enum(self)
    }

    fn deserialize_ignored_any<V: Visitor<'a>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        <W: Visitor<'a>>
        char str string identifier seq tuple tuple_struct map struct unit_struct
    }
}

impl<'a> EnumAccess<'a> for KeyDeserializer<'a> {
    type Error = DeserializeError;
    type Variant = UnitOnly;

    fn variant_seed<S: DeserializeSeed<'a>>(
        self,
        seed: S,
    ) -> Result<(S::Value, UnitOnly), DeserializeError> {
        Ok((seed.deserialize(self)?, UnitOnly))
    }
}

/// The inside of a variant that is only named.
pub(super) struct UnitOnly;

impl<'a> VariantAccess<'a> for UnitOnly {
    type Error = DeserializeError;

    fn unit_variant(self) -> Result<(), DeserializeError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'a>>(
        self,
        _seed: S,
    ) -> Result<S::Value, DeserializeError> {
        Err(unexpected(&"newtype variant"))
    }

    fn tuple_variant<V: Visitor<'a>>(
        self,
        _len: usize,
        _visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        Err(unexpected(&"tuple variant"))
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        Err(unexpected(&"struct variant"))
    }
}

fn unexpected(expected: &dyn de::Expected) -> DeserializeError {
    DeserializeError::invalid_type(Unexpected::UnitVariant, expected)
}

/// Room for a number that was written with escapes, for which Python has no reason.
const NUMBER_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DeserializeErrorKind;
    use core::fmt::Debug;
    use serde::Deserialize;
    use std::collections::BTreeMap;
    use std::string::String;

    fn keys<'a, K: Deserialize<'a> + Ord>(text: &'a str) -> Result<K, DeserializeError> {
        let value = Value::parse(text.as_bytes()).unwrap();
        let map: BTreeMap<K, ()> = value.deserialize()?;
        Ok(map.into_keys().next().unwrap())
    }

    #[derive(Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
    enum Role {
        Encoder,
        Decoder,
    }

    #[derive(Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
    struct Slot(u32);

    #[test]
    fn keys_are_read_as_what_python_made_strings_of() {
        assert_eq!(keys(r#"{"-12":null}"#), Ok(-12_i8));
        assert_eq!(keys(r#"{"\u0031\u0032":null}"#), Ok(12_u128));
        assert_eq!(keys(r#"{"true":null}"#), Ok(true));
        assert_eq!(keys(r#"{"null":null}"#), Ok(None::<u8>));
        assert_eq!(keys(r#"{"7":null}"#), Ok(Some(7_u8)));
        assert_eq!(keys(r#"{"null":null}"#), Ok(()));
        assert_eq!(keys(r#"{"Decoder":null}"#), Ok(Role::Decoder));
        assert_eq!(keys(r#"{"\u0045ncoder":null}"#), Ok(Role::Encoder));
        assert_eq!(keys(r#"{"7":null}"#), Ok(Slot(7)));
        assert_eq!(keys(r#"{"\u00e9":null}"#), Ok('é'));
        assert_eq!(keys(r#"{"a\nb":null}"#), Ok(String::from("a\nb")));
        let value = Value::parse(br#"{"1.5":1,"NaN":2,"3":3}"#).unwrap();
        let floats: Pairs = value.deserialize().unwrap();
        assert!(floats.0[0] == 1.5 && floats.0[1].is_nan() && floats.0[2] == 3.0);
    }

    /// Floats are no keys of a map, so their order is kept.
    struct Pairs([f64; 3]);

    impl<'de> Deserialize<'de> for Pairs {
        fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Order;
            impl<'de> Visitor<'de> for Order {
                type Value = Pairs;
                fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                    f.write_str("a map")
                }
                fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                    let mut floats = [0.0; 3];
                    for float in &mut floats {
                        *float = map.next_entry::<f64, u8>()?.unwrap().0;
                    }
                    Ok(Pairs(floats))
                }
            }
            deserializer.deserialize_map(Order)
        }
    }

    fn refused<'a, K: Debug + Deserialize<'a> + Ord>(text: &'a str) -> DeserializeErrorKind {
        let error = keys::<K>(text).unwrap_err();
        assert_eq!(error.offset(), 1, "{text}");
        error.kind()
    }

    #[test]
    fn other_keys_are_refused() {
        let wrong_type = |expected| {
            let actual = ValueType::String;
            DeserializeErrorKind::Value(ValueErrorKind::WrongType { expected, actual })
        };
        for text in [
            r#"{"":0}"#,
            r#"{"+1":0}"#,
            r#"{" 1":0}"#,
            r#"{"1 ":0}"#,
            r#"{"01":0}"#,
        ] {
            let kind = refused::<i64>(text);
            assert_eq!(kind, wrong_type(ValueType::Number), "{text}");
        }
        assert_eq!(
            refused::<bool>(r#"{"True":0}"#),
            wrong_type(ValueType::Bool)
        );
        assert_eq!(refused::<()>(r#"{"":0}"#), wrong_type(ValueType::Null));
        assert_eq!(
            refused::<u8>(r#"{"256":0}"#),
            DeserializeErrorKind::Value(ValueErrorKind::NumberOutOfRange)
        );
        assert_eq!(
            refused::<u8>(r#"{"1.0":0}"#),
            DeserializeErrorKind::Value(ValueErrorKind::NotAnInteger)
        );
    }
}
