//! Values into the caller's own types, through serde.
//!
//! The text is walked once, in the order of the wire, and nothing is allocated
//! that the target type does not hold.
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

use core::cell::Cell;

use serde::de::{self, Error as _, Visitor};

use super::cursor::{Cursor, NonFinite};
use super::{Object, Str, Value, ValueType};
use crate::Limits;
use crate::error::{
    DecodeError, DeserializeError, DeserializeErrorKind, ValueError, ValueErrorKind,
};
use access::Container;
use key::KeyDeserializer;
use raw::RawValue;
pub(super) use raw::TOKEN;

impl<'a> Value<'a> {
    /// Reads the value as a type of the caller's.
    ///
    /// Numbers are read exactly: an integer type takes no `4.0`, and 10⁴⁰ only
    /// goes into a float. A type that takes anything sees an integer as `u64`,
    /// `i64`, `u128` or `i128`, the first that holds it, and past those as the
    /// nearest `f64`. A float token past `f64::MAX` is infinite, as it is to
    /// Python, and one past `f32::MAX` does not go into an `f32`.
    ///
    /// Of several members with one key, a struct takes the last, as Python
    /// does, for its first 128 fields. To find out which is the last, the type is
    /// deserialized a second time if the first failed. It is not so where serde buffers the object first, which is where
    /// `flatten`, `untagged` or `tag` is used: there it is
    /// [`DuplicateField`](DeserializeErrorKind::DuplicateField).
    ///
    /// Without the feature `alloc`, a string that has escapes goes through a
    /// buffer of 256 bytes.
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
        let pass = Pass::new(Duplicates::Unexpected);
        let result = self.deserialize_in(&pass);
        if result.is_ok() && !pass.failed.get() {
            return result;
        }
        // What failed may be the first value of a key that is given twice.
        self.deserialize_in(&Pass::new(Duplicates::LastWins))
    }

    fn deserialize_in<T: de::Deserialize<'a>>(&self, pass: &Pass) -> Result<T, DeserializeError> {
        let mut cursor = Cursor::new(self.text);
        T::deserialize(Deserializer {
            cursor: &mut cursor,
            base: self.offset,
            pass,
        })
        .map_err(|error| error.at(self.offset))
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

/// What happens to a struct's key that is given twice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Duplicates {
    /// The first place of a key gets its last value, the other places nothing.
    ///
    /// Finding the last value is a walk over the rest of the object. It is made
    /// once per field of the type, so the work stays linear in the text.
    LastWins,
    /// It fails, and so is seen to need the other way.
    Unexpected,
}

/// One attempt to deserialize.
#[derive(Debug)]
struct Pass {
    duplicates: Duplicates,
    /// Whether anything failed. Kept apart from the result, as a type may swallow an error.
    failed: Cell<bool>,
    /// How many containers have been opened and not read to their end.
    open: Cell<usize>,
}

impl Pass {
    const fn new(duplicates: Duplicates) -> Self {
        Self {
            duplicates,
            failed: Cell::new(false),
            open: Cell::new(0),
        }
    }
}

/// Takes one value off a text whose syntax was checked before.
struct Deserializer<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    /// Where the cursor's text starts in the document.
    base: usize,
    pass: &'c Pass,
}

impl<'c, 'a> Deserializer<'c, 'a> {
    fn offset(&self) -> usize {
        self.base.saturating_add(self.cursor.offset())
    }

    fn value_type(&self) -> Result<ValueType, DeserializeError> {
        self.cursor.peek_type().map_err(checked_before)
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
        let start = self.cursor.offset();
        skip(self.cursor)?;
        Ok(Value::new(self.cursor.text_since(start), offset))
    }

    fn take_text(self) -> Result<Text<'a>, DeserializeError> {
        if self.value_type()? != ValueType::String {
            return Err(self.wrong_type(ValueType::String));
        }
        let offset = self.offset();
        let text = self.cursor.take_string().map_err(checked_before)?;
        Ok(Text::new(text, offset))
    }

    fn open(self, open: u8, close: u8) -> Result<Container<'c, 'a>, DeserializeError> {
        Container::open(self, open, close)
    }

    fn visit_array<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        let mut container = self.open(b'[', b']')?;
        let value = visitor.visit_seq(&mut container)?;
        container.finish()?;
        Ok(value)
    }

    /// `fields` are the keys that a struct takes once; a map has none.
    fn visit_object<V: Visitor<'a>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        let mut container = self.open(b'{', b'}')?;
        let value = visitor.visit_map(container.members(fields))?;
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
            ValueType::Object => self.visit_object(&[], visitor),
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
            ValueType::Object => self.visit_object(&[], visitor),
            _ => Err(self.wrong_type(ValueType::Object)),
        }
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match self.value_type()? {
            ValueType::Array => self.visit_array(visitor),
            ValueType::Object => self.visit_object(fields, visitor),
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
        skip(self.cursor)?;
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

/// A string, and where it stands.
#[derive(Clone, Copy, Debug)]
struct Text<'a> {
    text: Str<'a>,
    offset: usize,
}

impl<'a> Text<'a> {
    const fn new(text: Str<'a>, offset: usize) -> Self {
        Self {
            text: text.at(offset),
            offset,
        }
    }

    fn visit<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.text.as_plain() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => self.visit_unescaped(visitor),
        }
    }

    fn visit_bytes<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.text.as_plain() {
            Some(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
            None => self.visit_unescaped(visitor),
        }
    }

    #[cfg(feature = "alloc")]
    fn visit_unescaped<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_string(self.text.to_cow()?.into_owned())
    }

    // Not inlined, so that the recursion over containers does not hold the buffer.
    #[cfg(not(feature = "alloc"))]
    #[inline(never)]
    fn visit_unescaped<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_str(self.text.copy_to(&mut [0; SCRATCH_BYTES])?)
    }

    /// Whether [`visit`](Self::visit) can give it to anybody.
    fn is_visitable(&self) -> bool {
        match self.text.decoded_len() {
            Ok(len) => {
                cfg!(feature = "alloc") || self.text.as_plain().is_some() || len <= SCRATCH_BYTES
            }
            Err(_) => false,
        }
    }
}

/// Goes past one value.
fn skip(cursor: &mut Cursor<'_>) -> Result<(), DeserializeError> {
    cursor
        .skip_value(0, &Limits::new(), NonFinite::Accept)
        .map_err(checked_before)
}

/// The syntax of a value is checked before there is a `Value`, so this is not reached.
#[cold]
fn checked_before(error: DecodeError) -> DeserializeError {
    DeserializeError::custom(error)
}

/// Room for an unescaped string where nothing is allocated: names and
/// enumerations, not prose, and little next to the rest of a stack.
const SCRATCH_BYTES: usize = 256;

#[cfg(test)]
mod tests;
