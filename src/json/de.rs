//! Values into the caller's own types, through serde.
//!
//! The text is walked once, in the order of the wire, so the cost is linear in
//! its length; only a type that swallows the error of what is inside it makes
//! for a second walk, over its own value. Nothing is allocated that the target
//! type does not hold, but for a long string with escapes on its way there.
//!
//! | JSON | Rust |
//! |---|---|
//! | integer of any size | any integer type, exactly or not at all; a float type, the nearest |
//! | float, `NaN`, `Infinity`, `-Infinity` | a float type |
//! | string without escapes | `&str`, borrowed; anything made from a string |
//! | string with escapes | `String` and other types that copy |
//! | `null` | `None`, `()` |
//! | array | sequence, tuple, bytes, the fields of a struct in order |
//! | object | map, struct |
//! | `"Variant"`, `{"Variant":...}` | enum, tagged as serde does unless told otherwise |
//!
//! An object's keys are strings, and Python makes strings of other keys, so a
//! key deserializes into an integer, a float, a bool or an `Option` of one too.

mod access;
mod key;
mod raw;
mod text;

use serde::de::{self, Error as _, Visitor};

use super::cursor::{Cursor, NonFinite};
use super::{Object, Value, ValueType};
use crate::Limits;
use crate::error::{
    DecodeError, DeserializeError, DeserializeErrorKind, ValueError, ValueErrorKind,
};
use access::{Container, Keys};
use key::KeyDeserializer;
use raw::RawValue;
pub(super) use raw::TOKEN;
use text::Text;

impl<'a> Value<'a> {
    /// Reads the value as a type of the caller's.
    ///
    /// Numbers are read exactly: an integer type takes no `4.0`, and 10⁴⁰ only
    /// goes into a float. A type that takes anything sees an integer as `u64`,
    /// `i64`, `u128` or `i128`, the first that holds it, and past those as the
    /// nearest `f64`. A float token past `f64::MAX` is infinite, as it is to
    /// Python, and one past `f32::MAX` does not go into an `f32`.
    ///
    /// A map takes the last of several members with one key, as Python does. A
    /// struct refuses them with
    /// [`DuplicateField`](DeserializeErrorKind::DuplicateField), unless it does
    /// not know the key; [`Object::get`] finds the last.
    ///
    /// A string that has escapes is decoded into 256 bytes on the stack. A
    /// longer one is allocated, or, without the feature `alloc`, refused.
    ///
    /// The stack grows with the nesting of the *value*, which is at most 128 levels.
    ///
    /// # Errors
    ///
    /// [`DeserializeErrorKind::Value`] if a type or number does not fit, a
    /// string holds a lone surrogate, or it does not fit the buffer above; the
    /// other kinds of [`DeserializeErrorKind`] as they are described there.
    ///
    /// # Examples
    ///
    /// ```
    /// use tensorwire::json::Value;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Sampling<'a> {
    ///     seed: u128,
    ///     scale: f64,
    ///     scheduler: &'a str,
    ///     #[serde(default)]
    ///     steps: Option<u32>,
    ///     #[serde(borrow)]
    ///     extra: Value<'a>,
    /// }
    ///
    /// let text = br#"{"seed":18446744073709551616,"scale":NaN,"scheduler":"euler","extra":{"a":[1]},"x":0}"#;
    /// let sampling: Sampling<'_> = Value::parse(text)?.deserialize()?;
    /// assert_eq!(sampling.seed, 1 << 64);
    /// assert!(sampling.scale.is_nan());
    /// assert_eq!(sampling.scheduler, "euler");
    /// assert_eq!(sampling.steps, None);
    /// assert_eq!(sampling.extra.raw(), r#"{"a":[1]}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deserialize<T: de::Deserialize<'a>>(&self) -> Result<T, DeserializeError> {
        let mut reader = Reader::new(*self);
        let deserializer = Deserializer {
            reader: &mut reader,
        };
        T::deserialize(deserializer).map_err(|error| error.at(self.offset))
    }

    fn as_f32(&self) -> Result<f32, ValueError> {
        let wide = self.as_f64()?;
        let out_of_range = self.error(ValueErrorKind::NumberOutOfRange);
        // From the text, not from `wide`: that would round twice.
        let narrow: f32 = self.text.parse().map_err(|_| out_of_range)?;
        if narrow.is_infinite() && wide.is_finite() {
            return Err(out_of_range);
        }
        Ok(narrow)
    }
}

impl<'a> Object<'a> {
    /// Reads the object as a type of the caller's, a struct or a map.
    ///
    /// # Errors
    ///
    /// As [`Value::deserialize`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use tensorwire::json::Value;
    ///
    /// let object = Value::parse(br#"{"1":0.5,"2":NaN}"#)?.as_object()?;
    /// let weights: HashMap<u32, f32> = object.deserialize()?;
    /// assert_eq!(weights[&1], 0.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deserialize<T: de::Deserialize<'a>>(&self) -> Result<T, DeserializeError> {
        self.as_value().deserialize()
    }
}

/// A walk over a text whose syntax was checked before.
#[derive(Debug)]
struct Reader<'a> {
    cursor: Cursor<'a>,
    /// Where the cursor's text starts in the document.
    base: usize,
    /// How many containers have been opened and not read to their end.
    open: usize,
}

impl<'a> Reader<'a> {
    const fn new(value: Value<'a>) -> Self {
        Self {
            cursor: Cursor::new(value.text),
            base: value.offset,
            open: 0,
        }
    }

    fn offset(&self) -> usize {
        self.base.saturating_add(self.cursor.offset())
    }

    /// Goes past one value.
    fn skip(&mut self) -> Result<(), DeserializeError> {
        self.cursor
            .skip_value(0, &Limits::new(), NonFinite::Accept)
            .map_err(checked_before)
    }
}

/// Takes one value off a text.
struct Deserializer<'r, 'a> {
    reader: &'r mut Reader<'a>,
}

impl<'r, 'a> Deserializer<'r, 'a> {
    fn offset(&self) -> usize {
        self.reader.offset()
    }

    fn value_type(&self) -> Result<ValueType, DeserializeError> {
        self.reader.cursor.peek_type().map_err(checked_before)
    }

    fn wrong_type(&self, expected: ValueType) -> DeserializeError {
        match self.value_type() {
            Ok(actual) => {
                let kind = ValueErrorKind::WrongType { expected, actual };
                ValueError::new(kind, self.offset()).into()
            }
            Err(error) => error,
        }
    }

    /// Takes the value as it stands.
    fn take(self) -> Result<Value<'a>, DeserializeError> {
        let offset = self.offset();
        let start = self.reader.cursor.offset();
        self.reader.skip()?;
        Ok(Value::new(self.reader.cursor.text_since(start), offset))
    }

    fn take_text(self) -> Result<Text<'a>, DeserializeError> {
        if self.value_type()? != ValueType::String {
            return Err(self.wrong_type(ValueType::String));
        }
        let offset = self.offset();
        let text = self.reader.cursor.take_string().map_err(checked_before)?;
        Ok(Text::new(text, offset))
    }

    fn open(self, open: u8, close: u8) -> Result<Container<'r, 'a>, DeserializeError> {
        Container::open(self, open, close)
    }

    fn visit_array<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        let mut container = self.open(b'[', b']')?;
        let value = visitor.visit_seq(&mut container)?;
        container.finish()?;
        Ok(value)
    }

    fn visit_object<V: Visitor<'a>>(
        self,
        keys: Keys,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        let mut container = self.open(b'{', b'}')?;
        let value = container.visit_members(keys, visitor)?;
        container.finish()?;
        Ok(value)
    }
}

macro_rules! integers {
    ($($deserialize:ident $visit:ident,)*) => {$(
        fn $deserialize<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
            visitor.$visit(self.take()?.integer()?)
        }
    )*};
}

impl<'a> de::Deserializer<'a> for Deserializer<'_, 'a> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.value_type()? {
            ValueType::Array => self.visit_array(visitor),
            ValueType::Bool => self.deserialize_bool(visitor),
            ValueType::Null => self.deserialize_unit(visitor),
            ValueType::Number => visit_number(self.take()?, visitor),
            ValueType::Object => self.visit_object(Keys::All, visitor),
            ValueType::String => self.take_text()?.visit(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_bool(self.take()?.as_bool()?)
    }

    integers! {
        deserialize_i8 visit_i8,
        deserialize_i16 visit_i16,
        deserialize_i32 visit_i32,
        deserialize_i64 visit_i64,
        deserialize_i128 visit_i128,
        deserialize_u8 visit_u8,
        deserialize_u16 visit_u16,
        deserialize_u32 visit_u32,
        deserialize_u64 visit_u64,
        deserialize_u128 visit_u128,
    }

    fn deserialize_f32<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_f32(self.take()?.as_f32()?)
    }

    fn deserialize_f64<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_f64(self.take()?.as_f64()?)
    }

    fn deserialize_char<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.take_text()?.visit(visitor)
    }

    fn deserialize_str<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.take_text()?.visit(visitor)
    }

    fn deserialize_string<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.take_text()?.visit(visitor)
    }

    fn deserialize_identifier<V: Visitor<'a>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.take_text()?.visit(visitor)
    }

    fn deserialize_bytes<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.value_type()? {
            ValueType::String => self.take_text()?.visit_bytes(visitor),
            _ => self.deserialize_seq(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'a>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.value_type()? {
            ValueType::Null => {
                self.take()?;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if self.value_type()? != ValueType::Null {
            return Err(self.wrong_type(ValueType::Null));
        }
        self.take()?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        if name == TOKEN {
            visitor.visit_enum(RawValue(self.take()?))
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.value_type()? {
            ValueType::Array => self.visit_array(visitor),
            _ => Err(self.wrong_type(ValueType::Array)),
        }
    }

    fn deserialize_tuple<V: Visitor<'a>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.value_type()? {
            ValueType::Object => self.visit_object(Keys::All, visitor),
            _ => Err(self.wrong_type(ValueType::Object)),
        }
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match self.value_type()? {
            ValueType::Array => self.visit_array(visitor),
            ValueType::Object => self.visit_object(Keys::Known, visitor),
            _ => Err(self.wrong_type(ValueType::Object)),
        }
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        let not_a_variant = DeserializeError::new(DeserializeErrorKind::NotAVariant, self.offset());
        match self.value_type()? {
            ValueType::String => visitor.visit_enum(KeyDeserializer(self.take_text()?)),
            ValueType::Object => {
                let mut container = self.open(b'{', b'}')?;
                let variant = container.variant()?.ok_or(not_a_variant)?;
                let value = visitor.visit_enum(variant)?;
                container.finish().map_err(|_| not_a_variant)?;
                Ok(value)
            }
            _ => Err(not_a_variant),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'a>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.reader.skip()?;
        visitor.visit_unit()
    }
}

fn visit_number<'a, V: Visitor<'a>>(
    value: Value<'_>,
    visitor: V,
) -> Result<V::Value, DeserializeError> {
    if value.is_integer() {
        if let Ok(number) = value.as_u64() {
            return visitor.visit_u64(number);
        }
        if let Ok(number) = value.as_i64() {
            return visitor.visit_i64(number);
        }
        if let Ok(number) = value.as_u128() {
            return visitor.visit_u128(number);
        }
        if let Ok(number) = value.as_i128() {
            return visitor.visit_i128(number);
        }
    }
    visitor.visit_f64(value.as_f64()?)
}

/// The syntax of a value is checked before there is a `Value`, so this is not reached.
#[cold]
fn checked_before(error: DecodeError) -> DeserializeError {
    DeserializeError::custom(error)
}

#[cfg(test)]
mod tests;
