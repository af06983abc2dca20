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

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{self, EnumAccess, Error as _, VariantAccess, Visitor};

use super::cursor::{Cursor, NonFinite};
use super::{Object, Str, Value, ValueType};
use crate::Limits;
use crate::error::{
    DecodeError, DeserializeError, DeserializeErrorKind, ValueError, ValueErrorKind,
};
use access::Container;
use key::KeyDeserializer;

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
struct RawValue<'a>(Value<'a>);

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
pub(super) const TOKEN: &str = "$tensorwire::json::Value";

/// Room for an unescaped string where nothing is allocated: names and
/// enumerations, not prose, and little next to the rest of a stack.
const SCRATCH_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;
    use std::string::{String, ToString};
    use std::vec::Vec;
    use std::{format, vec};

    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, DeserializeError> {
        Value::parse(text.as_bytes()).unwrap().deserialize()
    }

    fn kind<'a, T: Deserialize<'a> + fmt::Debug>(text: &'a str) -> (ValueErrorKind, usize) {
        let error = read::<T>(text).unwrap_err();
        let DeserializeErrorKind::Value(kind) = error.kind() else {
            panic!("{error}");
        };
        (kind, error.offset())
    }

    #[derive(Debug, Deserialize, PartialEq, serde::Serialize)]
    enum Guidance {
        Off,
        Scale(f64),
        Range(i8, u8),
        Schedule { from: u32, to: Option<u32> },
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Sampling {
        steps: u32,
        scale: Option<f32>,
        sizes: Vec<(u16, u16)>,
        guidance: Vec<Guidance>,
        name: String,
        extra: BTreeMap<String, Vec<Option<bool>>>,
    }

    #[test]
    fn structs_ignore_what_they_do_not_know_and_default_what_is_absent() {
        let text = r#"{"name":"a b","unknown":{"deep":[1,{"x":NaN}]},"st\u0065ps":30,
            "guidance":["Off",{"Scale":7.5},{"Range":[-1,255]},
                        {"Schedule":{"from":1,"to":null,"by":2}},{"Off":null}],
            "sizes":[[480,832],[1,2]],"extra":{"a":[true,null,false],"":[]}}"#;
        let sampling: Sampling = read(text).unwrap();
        assert_eq!(
            sampling,
            Sampling {
                steps: 30,
                scale: None,
                sizes: vec![(480, 832), (1, 2)],
                guidance: vec![
                    Guidance::Off,
                    Guidance::Scale(7.5),
                    Guidance::Range(-1, 255),
                    Guidance::Schedule { from: 1, to: None },
                    Guidance::Off,
                ],
                name: String::from("a b"),
                extra: BTreeMap::from([
                    (String::from("a"), vec![Some(true), None, Some(false)]),
                    (String::new(), vec![]),
                ]),
            }
        );
    }

    #[test]
    fn plain_documents_read_as_serde_json_reads_them() {
        let documents = [
            "null",
            "[]",
            "{}",
            " [ 1 , -2, 3.5, 1e300, 1E-7, 18446744073709551615, -9223372036854775808 ] ",
            r#"{"a":{"b":[{"c":"d"},[[]],{}]},"e":"","f":"\ud83d\ude00\n\u0000\/"}"#,
            r#"["caf\u00e9","é",true,false,null,0.1,5e-324,1.7976931348623157e308]"#,
        ];
        for text in documents {
            if cfg!(not(feature = "alloc")) && text.len() > 1000 {
                continue;
            }
            let theirs: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(read::<serde_json::Value>(text).unwrap(), theirs, "{text}");
        }
        let text = r#"[{"Scale":1.5},{"Range":[1,2]},{"Schedule":{"from":1,"to":2}},"Off"]"#;
        let theirs: Vec<Guidance> = serde_json::from_str(text).unwrap();
        assert_eq!(read::<Vec<Guidance>>(text).unwrap(), theirs);
    }

    #[test]
    fn integers_are_exact_or_refused() {
        assert_eq!(read("[255,-128]"), Ok((255_u8, -128_i8)));
        let max = u128::MAX.to_string();
        assert_eq!(read(&max), Ok(u128::MAX));
        assert_eq!(read(&i128::MIN.to_string()), Ok(i128::MIN));
        assert_eq!(read("-0"), Ok(0_u8));
        let huge = format!("1{}", "0".repeat(40));
        let out_of_range = ValueErrorKind::NumberOutOfRange;
        assert_eq!(kind::<i128>(&huge), (out_of_range, 0));
        assert_eq!(kind::<u128>(&huge), (out_of_range, 0));
        assert_eq!(kind::<Vec<u8>>("[1,256]"), (out_of_range, 3));
        assert_eq!(kind::<(u8,)>("[-1]"), (out_of_range, 1));
        for text in ["4.0", "1e2", "NaN", "-Infinity"] {
            assert_eq!(kind::<i64>(text), (ValueErrorKind::NotAnInteger, 0));
        }
        let (expected, actual) = (ValueType::Number, ValueType::String);
        let wrong_type = ValueErrorKind::WrongType { expected, actual };
        assert_eq!(kind::<i64>(r#""4""#), (wrong_type, 0));
    }

    #[test]
    fn floats_are_the_nearest_and_may_be_no_number() {
        assert_eq!(
            read("[7,-Infinity,1e999,5e-324]"),
            Ok((7.0_f64, f64::NEG_INFINITY, f64::INFINITY, 5e-324))
        );
        let [nan, infinity]: [f32; 2] = read("[NaN,Infinity]").unwrap();
        assert!(nan.is_nan() && infinity == f32::INFINITY);
        let huge = format!("1{}", "0".repeat(40));
        assert_eq!(read(&huge), Ok(1e40_f64));
        assert_eq!(kind::<f32>(&huge).0, ValueErrorKind::NumberOutOfRange);
        assert_eq!(kind::<f32>("1e39").0, ValueErrorKind::NumberOutOfRange);
        assert_eq!(read("1e999"), Ok(f32::INFINITY));
        // Halfway between two floats, and above by less than an f64 can tell.
        assert_eq!(read("1.000000059604644775390626"), Ok(1.000_000_1_f32));
        let huge = "9".repeat(400);
        assert_eq!(kind::<f64>(&huge).0, ValueErrorKind::NumberOutOfRange);
    }

    #[test]
    fn what_takes_anything_gets_the_first_type_that_holds_the_integer() {
        #[derive(Debug, PartialEq)]
        struct Anything(&'static str);

        impl<'de> Deserialize<'de> for Anything {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Self(""))
            }
        }

        impl<'de> Visitor<'de> for Anything {
            type Value = Self;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
                Ok(Self("u64"))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
                Ok(Self("i64"))
            }
            fn visit_u128<E>(self, _: u128) -> Result<Self, E> {
                Ok(Self("u128"))
            }
            fn visit_i128<E>(self, _: i128) -> Result<Self, E> {
                Ok(Self("i128"))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
                Ok(Self("f64"))
            }
        }

        for (text, expected) in [
            ("-0", "u64"),
            ("18446744073709551615", "u64"),
            ("-1", "i64"),
            ("-9223372036854775808", "i64"),
            ("18446744073709551616", "u128"),
            ("-9223372036854775809", "i128"),
            ("340282366920938463463374607431768211456", "f64"),
            ("1.0", "f64"),
            ("NaN", "f64"),
        ] {
            assert_eq!(read(text), Ok(Anything(expected)), "{text}");
        }
        let message = read::<Anything>(r#""x""#).unwrap_err().to_string();
        assert_eq!(
            message,
            "invalid type: string \"x\", expected a number at byte 0"
        );
    }

    #[test]
    fn strings_without_escapes_are_borrowed() {
        let text = String::from(r#"{"a":"plain"}"#);
        let map: BTreeMap<&str, &str> = read(&text).unwrap();
        let plain = map["a"];
        assert!(text.as_bytes().as_ptr_range().contains(&plain.as_ptr()));
        let error = read::<&str>(r#""caf\u00e9""#).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("invalid type: string \"café\"")
        );
        assert_eq!(read::<&[u8]>(r#""plain""#), Ok(&b"plain"[..]));
    }

    #[test]
    fn escaped_strings_are_copied_if_any_text_can_hold_them() {
        assert_eq!(
            read(r#""caf\u00e9 \ud83d\ude00""#),
            Ok(String::from("café 😀"))
        );
        assert_eq!(read(r#"["\u00e9","x"]"#), Ok(('é', 'x')));
        assert_eq!(
            kind::<(u8, String)>(r#"[1,"\ud800"]"#),
            (ValueErrorKind::LoneSurrogate, 3)
        );
        let long = format!(r#""{}\n""#, "x".repeat(300));
        match read::<String>(&long) {
            Ok(text) => assert!(cfg!(feature = "alloc") && text.len() == 301),
            Err(error) => {
                let (needed, capacity) = (301, 256);
                assert_eq!(
                    error.kind(),
                    DeserializeErrorKind::Value(ValueErrorKind::BufferTooSmall {
                        needed,
                        capacity
                    })
                );
            }
        }
    }

    #[test]
    fn errors_name_the_byte() {
        #[derive(Debug, Deserialize)]
        struct Request {
            #[expect(dead_code)]
            seed: core::num::NonZero<u8>,
        }
        let cases = [
            (
                r#" [{"seed":1},{"x":1}]"#,
                "missing field `seed` at byte 13",
            ),
            (
                r#"[{"seed":"1"}]"#,
                "expected number, found string at byte 9",
            ),
            (
                r#"[{"seed": 0}]"#,
                "invalid value: integer `0`, expected a nonzero u8 at byte 10",
            ),
            (
                r#"[{"seed":1}, 7]"#,
                "expected object, found number at byte 13",
            ),
            (r#"[[1, 2]]"#, "more elements than the type takes at byte 5"),
        ];
        for (text, message) in cases {
            let error = read::<Vec<Request>>(text).unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
        }
        let cases = [
            (
                "7",
                "enum is neither a string nor an object of one member at byte 0",
            ),
            (
                "{}",
                "enum is neither a string nor an object of one member at byte 0",
            ),
            (
                r#"{"Scale":1,"Scale":2}"#,
                "enum is neither a string nor an object of one member at byte 0",
            ),
            (
                r#""Scale""#,
                "invalid type: unit variant, expected newtype variant at byte 0",
            ),
            (
                r#"{"Range":[1]}"#,
                "invalid length 1, expected tuple variant Guidance::Range with 2 elements at byte 9",
            ),
            (
                r#"{"Rang\u0065\n":1}"#,
                "unknown variant `Range\\n`, expected one of `Off`, `Scale`, `Range`, `Schedule` at byte 1",
            ),
        ];
        for (text, message) in cases {
            let error = read::<Guidance>(text).unwrap_err().to_string();
            let cut = message.len().min(80);
            assert!(error.starts_with(&message[..cut]), "{error}");
        }
    }

    #[test]
    fn null_is_none_and_unit() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Unit;
        #[derive(Debug, Deserialize, PartialEq)]
        struct Newtype(Option<u8>);

        let text = "[null,null,null,5,null]";
        let all: (Option<u8>, (), Unit, Newtype, Newtype) = read(text).unwrap();
        assert_eq!(all, (None, (), Unit, Newtype(Some(5)), Newtype(None)));
        let (expected, actual) = (ValueType::Null, ValueType::Bool);
        let wrong_type = ValueErrorKind::WrongType { expected, actual };
        assert_eq!(kind::<()>("true"), (wrong_type, 0));
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

    #[test]
    fn types_that_read_nothing_lose_nothing() {
        struct Blank;
        impl<'de> Deserialize<'de> for Blank {
            fn deserialize<D: de::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
                Ok(Self)
            }
        }
        let (_, number, _): (Blank, u8, Blank) = read(r#"[{"a":[1]},2,"x"]"#).unwrap();
        assert_eq!(number, 2);
    }

    #[test]
    fn an_error_that_a_type_swallows_stays_inside_its_value() {
        #[derive(Debug, PartialEq)]
        struct Lenient<T>(Option<T>);
        impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self(T::deserialize(deserializer).ok()))
            }
        }
        let text = r#"[[[7,"x"],1],[2,{"a":[]}],[3,4],"x",[5,6,7]]"#;
        let list: Vec<Lenient<(u8, Lenient<u8>)>> = read(text).unwrap();
        let pair = |first, second| Lenient(Some((first, Lenient(second))));
        let none = || Lenient(None);
        let expected = [none(), pair(2, None), pair(3, Some(4)), none(), none()];
        assert_eq!(list, expected);
    }

    #[test]
    fn the_deepest_value_allowed_is_read() {
        #[derive(Debug, Deserialize)]
        struct Nest(Vec<Self>);
        let text = format!("{}{}", "[".repeat(128), "]".repeat(128));
        let mut nest: Nest = read(&text).unwrap();
        for _ in 1..128 {
            nest = nest.0.pop().unwrap();
        }
        assert!(nest.0.is_empty());
    }
}
