//! The caller's own types into JSON, through serde, as Python's `json.dumps` writes them.
//!
//! | Rust | JSON |
//! |---|---|
//! | any integer | its digits |
//! | `f64` | Python's `repr`; `NaN`, `Infinity`, `-Infinity` |
//! | `f32` | as the `f64` of the same value, which is `float(numpy.float32(x))` |
//! | `char`, string | string, escaped down to printable ASCII |
//! | bytes | array of integers |
//! | `None`, `()`, unit struct | `null` |
//! | sequence, tuple, tuple struct | array |
//! | map, struct | object, in the order given |
//! | enum | `"Variant"` or `{"Variant":...}` |
//!
//! A map's key that is an integer, float, bool or `None` becomes a string as it
//! does in Python: `"1"`, `"1.5"`, `"NaN"`, `"true"`, `"null"`.

mod raw;

use core::cell::Cell;
use core::fmt::{self, Write as _};

use serde::ser::{self, Error as _, Serialize};

use super::de::TOKEN;
use super::writer::Writer;
use super::{Value, ValueType};
use crate::error::EncodeError;

/// Writes `value`, an object, byte for byte as Python writes its equivalent.
///
/// # Errors
///
/// [`EncodeError::ScalarsNotAnObject`], [`EncodeError::KeyType`] for a map's
/// key that Python has no string for, and [`EncodeError::Serialize`] for what
/// `value` itself fails with. What is in the writer then is a part of a text.
pub(crate) fn put_scalars<T: Serialize + ?Sized>(
    writer: &mut Writer<'_>,
    value: &T,
) -> Result<(), EncodeError> {
    value.serialize(Serializer::new(writer, Place::Scalars))
}

fn put_value<T: Serialize + ?Sized>(writer: &mut Writer<'_>, value: &T) -> Result<(), EncodeError> {
    value.serialize(Serializer::new(writer, Place::Value))
}

impl ser::Error for EncodeError {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self::Serialize
    }
}

/// Where a text is written to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// A map's key, so that what is no string is put in quotes.
    Key,
    /// The whole of `scalar_fields`, which is an object and nothing else.
    Scalars,
    Value,
}

struct Serializer<'w, 'b> {
    writer: &'w mut Writer<'b>,
    place: Place,
    /// Set inside what calls itself a [`Value`]: strings there are JSON text,
    /// and [`raw::Content`] asks twice whether it is read by humans and is told
    /// two different things.
    raw: Option<Cell<bool>>,
}

impl<'w, 'b> Serializer<'w, 'b> {
    const fn new(writer: &'w mut Writer<'b>, place: Place) -> Self {
        Self {
            writer,
            place,
            raw: None,
        }
    }

    /// Refuses what is no object where only an object can be.
    fn check_not_scalars(&self) -> Result<(), EncodeError> {
        match self.place {
            Place::Scalars => Err(EncodeError::ScalarsNotAnObject),
            Place::Key | Place::Value => Ok(()),
        }
    }

    /// Writes what is no string, and as a key is made one.
    fn put_scalar(self, put: impl FnOnce(&mut Writer<'b>)) -> Result<(), EncodeError> {
        self.check_not_scalars()?;
        let quote: &[u8] = match self.place {
            Place::Key => b"\"",
            Place::Scalars | Place::Value => b"",
        };
        self.writer.put_raw(quote);
        put(self.writer);
        self.writer.put_raw(quote);
        Ok(())
    }

    /// Writes JSON text as it stands.
    ///
    /// It is checked again, as any type can take the name of a [`Value`].
    fn put_text(self, text: &str) -> Result<(), EncodeError> {
        let value = Value::parse(text.as_bytes()).map_err(EncodeError::custom)?;
        if value.value_type() != ValueType::Object {
            self.check_not_scalars()?;
        }
        self.writer.put_value(value);
        Ok(())
    }

    /// Writes the start of an array or object, which no key can be.
    fn open(self, open: &[u8], close: &'static [u8]) -> Result<Container<'w, 'b>, EncodeError> {
        if self.place == Place::Key {
            return Err(EncodeError::KeyType);
        }
        if open == b"[" {
            self.check_not_scalars()?;
        }
        self.writer.put_raw(open);
        Ok(Container {
            writer: self.writer,
            empty: true,
            awaits_value: false,
            close,
        })
    }

    /// Writes the start of an enum's variant that has data, as far as the data.
    fn open_variant(
        self,
        variant: &str,
        open: &[u8],
        close: &'static [u8],
    ) -> Result<Container<'w, 'b>, EncodeError> {
        let container = self.open(b"{", close)?;
        container.writer.put_str(variant.into());
        container.writer.put_raw(b":");
        container.writer.put_raw(open);
        Ok(container)
    }
}

macro_rules! integers {
    ($($serialize:ident $type:ty => $put:ident,)*) => {$(
        fn $serialize(self, value: $type) -> Result<(), EncodeError> {
            self.put_scalar(|writer| writer.$put(value.into()))
        }
    )*};
}

impl<'w, 'b> ser::Serializer for Serializer<'w, 'b> {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = Container<'w, 'b>;
    type SerializeTuple = Container<'w, 'b>;
    type SerializeTupleStruct = Container<'w, 'b>;
    type SerializeTupleVariant = Container<'w, 'b>;
    type SerializeMap = Container<'w, 'b>;
    type SerializeStruct = Container<'w, 'b>;
    type SerializeStructVariant = Container<'w, 'b>;

    fn serialize_bool(self, value: bool) -> Result<(), EncodeError> {
        self.put_scalar(|writer| writer.put_bool(value))
    }

    integers! {
        serialize_i8 i8 => put_i128,
        serialize_i16 i16 => put_i128,
        serialize_i32 i32 => put_i128,
        serialize_i64 i64 => put_i128,
        serialize_i128 i128 => put_i128,
        serialize_u8 u8 => put_u64,
        serialize_u16 u16 => put_u64,
        serialize_u32 u32 => put_u64,
        serialize_u64 u64 => put_u64,
        serialize_u128 u128 => put_u128,
        serialize_f32 f32 => put_f64,
        serialize_f64 f64 => put_f64,
    }

    fn serialize_char(self, value: char) -> Result<(), EncodeError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), EncodeError> {
        if self.raw.is_some() {
            return self.put_text(value);
        }
        self.check_not_scalars()?;
        self.writer.put_str(value.into());
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), EncodeError> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), EncodeError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), EncodeError> {
        self.put_scalar(Writer::put_null)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), EncodeError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), EncodeError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        let raw = if name == TOKEN && self.place != Place::Key {
            Some(Cell::new(true))
        } else {
            self.raw
        };
        value.serialize(Serializer { raw, ..self })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        let container = self.open_variant(variant, b"", b"}")?;
        put_value(container.writer, value)?;
        container.close()
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Container<'w, 'b>, EncodeError> {
        self.open(b"[", b"]")
    }

    fn serialize_tuple(self, _len: usize) -> Result<Container<'w, 'b>, EncodeError> {
        self.open(b"[", b"]")
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Container<'w, 'b>, EncodeError> {
        self.open(b"[", b"]")
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Container<'w, 'b>, EncodeError> {
        self.open_variant(variant, b"[", b"]}")
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Container<'w, 'b>, EncodeError> {
        self.open(b"{", b"}")
    }

    fn serialize_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Container<'w, 'b>, EncodeError> {
        self.open(b"{", b"}")
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Container<'w, 'b>, EncodeError> {
        self.open_variant(variant, b"{", b"}}")
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        self.check_not_scalars()?;
        self.writer.put_raw(b"\"");
        write!(Escape(self.writer), "{value}").map_err(EncodeError::custom)?;
        self.writer.put_raw(b"\"");
        Ok(())
    }

    fn is_human_readable(&self) -> bool {
        match &self.raw {
            Some(answer) => answer.replace(!answer.get()),
            None => true,
        }
    }
}

/// An array or object whose end is not written yet.
struct Container<'w, 'b> {
    writer: &'w mut Writer<'b>,
    empty: bool,
    /// A map's key is written, its value is not.
    awaits_value: bool,
    close: &'static [u8],
}

impl Container<'_, '_> {
    fn put_comma(&mut self) {
        if !self.empty {
            self.writer.put_raw(b",");
        }
        self.empty = false;
    }

    fn put_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.put_comma();
        put_value(self.writer, value)
    }

    fn put_member<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.put_comma();
        self.writer.put_str(key.into());
        self.writer.put_raw(b":");
        put_value(self.writer, value)
    }

    fn close(self) -> Result<(), EncodeError> {
        self.writer.put_raw(self.close);
        Ok(())
    }
}

macro_rules! arrays {
    ($($trait:ident $serialize:ident,)*) => {$(
        impl ser::$trait for Container<'_, '_> {
            type Ok = ();
            type Error = EncodeError;

            fn $serialize<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
                self.put_element(value)
            }

            fn end(self) -> Result<(), EncodeError> {
                self.close()
            }
        }
    )*};
}

arrays! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

macro_rules! structs {
    ($($trait:ident,)*) => {$(
        impl ser::$trait for Container<'_, '_> {
            type Ok = ();
            type Error = EncodeError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), EncodeError> {
                self.put_member(key, value)
            }

            fn end(self) -> Result<(), EncodeError> {
                self.close()
            }
        }
    )*};
}

structs! {
    SerializeStruct,
    SerializeStructVariant,
}

/// Keys and values in turn, whatever a type calls: what is written is to be an object.
impl ser::SerializeMap for Container<'_, '_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeError> {
        if core::mem::replace(&mut self.awaits_value, true) {
            return Err(EncodeError::Serialize);
        }
        self.put_comma();
        key.serialize(Serializer::new(self.writer, Place::Key))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        if !core::mem::take(&mut self.awaits_value) {
            return Err(EncodeError::Serialize);
        }
        self.writer.put_raw(b":");
        put_value(self.writer, value)
    }

    fn end(self) -> Result<(), EncodeError> {
        if self.awaits_value {
            return Err(EncodeError::Serialize);
        }
        self.close()
    }
}

/// Escapes a text on its way into a string.
struct Escape<'w, 'b>(&'w mut Writer<'b>);

impl fmt::Write for Escape<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.put_escaped(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
