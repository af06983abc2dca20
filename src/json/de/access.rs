//! The inside of arrays and objects.

use serde::de::{self, DeserializeSeed, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::key::KeyDeserializer;
use super::{Deserializer, Reader, Text, checked_before};
use crate::error::{DeserializeError, DeserializeErrorKind};

/// Which of an object's keys the type gets to see.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Keys {
    /// All, as a map does.
    All,
    /// Those it knows, as a struct does. It ignores or refuses the others, and
    /// for either need not see one that no text can hold.
    Known,
}

/// An array or object that is open, with the cursor at its next element or past its end.
pub(super) struct Container<'r, 'a> {
    reader: &'r mut Reader<'a>,
    close: u8,
    more: bool,
    /// Where the key is whose value is next, once it is taken.
    key: Option<usize>,
}

impl<'r, 'a> Container<'r, 'a> {
    pub(super) fn open(
        deserializer: Deserializer<'r, 'a>,
        open: u8,
        close: u8,
    ) -> Result<Self, DeserializeError> {
        let reader = deserializer.reader;
        reader.cursor.take_byte(open).map_err(checked_before)?;
        reader.cursor.skip_whitespace();
        let more = !reader.cursor.take_if(close);
        reader.open = reader.open.saturating_add(1);
        Ok(Self {
            reader,
            close,
            more,
            key: None,
        })
    }

    /// Gives the members to `visitor`. What it fails with between key and value is about the key.
    pub(super) fn visit_members<V: Visitor<'a>>(
        &mut self,
        keys: Keys,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        let result = visitor.visit_map(Members {
            container: self,
            keys,
        });
        result.map_err(|error| match self.key {
            Some(offset) => error.at(offset),
            None => error,
        })
    }

    /// The first member as an enum's variant; `None` if there is no member.
    pub(super) fn variant<'m>(
        &'m mut self,
    ) -> Result<Option<Variant<'m, 'r, 'a>>, DeserializeError> {
        if !self.more {
            return Ok(None);
        }
        let name = self.take_key()?;
        Ok(Some(Variant {
            container: self,
            name,
        }))
    }

    /// Demands that nothing is left, as a type that takes fewer elements loses data.
    pub(super) fn finish(self) -> Result<(), DeserializeError> {
        if self.more {
            let kind = DeserializeErrorKind::TrailingElements;
            return Err(DeserializeError::new(kind, self.offset()));
        }
        self.reader.open = self.reader.open.saturating_sub(1);
        Ok(())
    }

    fn offset(&self) -> usize {
        self.reader.offset()
    }

    fn take_key(&mut self) -> Result<Text<'a>, DeserializeError> {
        let offset = self.offset();
        let key = self.reader.cursor.take_key().map_err(checked_before)?;
        self.key = Some(offset);
        Ok(Text::new(key, offset))
    }

    /// Takes the next value, by way of `read`, and what separates it from the one after it.
    fn take_value<R>(
        &mut self,
        read: impl FnOnce(Deserializer<'_, 'a>) -> Result<R, DeserializeError>,
    ) -> Result<R, DeserializeError> {
        self.key = None;
        let offset = self.offset();
        let start = self.reader.cursor;
        let open = self.reader.open;
        let value = read(Deserializer {
            reader: self.reader,
        })
        .map_err(|error| error.at(offset))?;
        if self.offset() == offset || self.reader.open != open {
            // The type left all of the value, or swallowed an error in the midst
            // of it. The latter is a second walk, at each level that does so.
            self.reader.open = open;
            self.reader.cursor = start;
            self.reader.skip()?;
        }
        self.more = self
            .reader
            .cursor
            .take_separator(self.close)
            .map_err(checked_before)?;
        Ok(value)
    }
}

impl<'a> SeqAccess<'a> for &mut Container<'_, 'a> {
    type Error = DeserializeError;

    fn next_element_seed<S: DeserializeSeed<'a>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DeserializeError> {
        if !self.more {
            return Ok(None);
        }
        self.take_value(|value| seed.deserialize(value)).map(Some)
    }
}

/// The members of an object.
struct Members<'m, 'r, 'a> {
    container: &'m mut Container<'r, 'a>,
    keys: Keys,
}

impl<'a> MapAccess<'a> for Members<'_, '_, 'a> {
    type Error = DeserializeError;

    fn next_key_seed<S: DeserializeSeed<'a>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DeserializeError> {
        if !self.container.more {
            return Ok(None);
        }
        let mut key = self.container.take_key()?;
        if self.keys == Keys::Known && !key.is_visitable() {
            key = Text::new("\u{fffd}".into(), key.offset);
        }
        seed.deserialize(KeyDeserializer(key))
            .map(Some)
            .map_err(|error| error.at(key.offset))
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, DeserializeError> {
        self.container.take_value(|value| seed.deserialize(value))
    }
}

/// The one member of an object that stands for an enum.
pub(super) struct Variant<'m, 'r, 'a> {
    container: &'m mut Container<'r, 'a>,
    name: Text<'a>,
}

impl<'a> EnumAccess<'a> for Variant<'_, '_, 'a> {
    type Error = DeserializeError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'a>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self), DeserializeError> {
        let name = seed
            .deserialize(KeyDeserializer(self.name))
            .map_err(|error| error.at(self.name.offset))?;
        Ok((name, self))
    }
}

impl<'a> VariantAccess<'a> for Variant<'_, '_, 'a> {
    type Error = DeserializeError;

    fn unit_variant(self) -> Result<(), DeserializeError> {
        self.newtype_variant_seed(core::marker::PhantomData)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'a>>(
        self,
        seed: S,
    ) -> Result<S::Value, DeserializeError> {
        self.container.take_value(|value| seed.deserialize(value))
    }

    fn tuple_variant<V: Visitor<'a>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.container
            .take_value(|value| de::Deserializer::deserialize_tuple(value, len, visitor))
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.container
            .take_value(|value| de::Deserializer::deserialize_struct(value, "", fields, visitor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ValueErrorKind;
    use crate::json::Value;
    use serde::Deserialize;
    use std::collections::BTreeMap;
    use std::string::{String, ToString};
    use std::vec::Vec;

    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, DeserializeError> {
        Value::parse(text.as_bytes()).unwrap().deserialize()
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Node {
        a: u32,
        #[serde(alias = "bee")]
        b: Vec<u32>,
        child: Option<std::boxed::Box<Self>>,
    }

    #[test]
    fn a_struct_refuses_a_key_given_twice_at_the_second() {
        for (text, field, offset) in [
            (r#"{"a":1,"a":2}"#, "a", 7),
            (r#"{"a":1, "\u0061":2}"#, "a", 8),
            (r#"{"b":[1],"bee":[]}"#, "b", 9),
            (r#"{"child":{"a":5,"a":6},"b":[]}"#, "a", 16),
            (r#"{"child":{"a":5},"child":null}"#, "child", 17),
        ] {
            let error = read::<Node>(text).unwrap_err();
            let kind = DeserializeErrorKind::DuplicateField(field);
            assert_eq!((error.kind(), error.offset()), (kind, offset), "{text}");
        }
        // Unless it does not know it.
        assert_eq!(read::<Node>(r#"{"x":1,"a":3,"x":[]}"#).unwrap().a, 3);
    }

    #[test]
    fn a_map_takes_the_last_of_a_key() {
        let map: BTreeMap<String, u32> = read(r#"{"1":1,"2":2,"\u0031":3}"#).unwrap();
        assert_eq!(map["1"], 3);
    }

    #[test]
    fn it_is_refused_too_where_serde_buffers_the_object() {
        #[derive(Debug, Deserialize)]
        struct Flat {
            #[expect(dead_code)]
            a: u32,
            #[serde(flatten)]
            _rest: BTreeMap<String, u32>,
        }
        let error = read::<Flat>(r#"{"a":1,"a":2}"#).unwrap_err();
        assert_eq!(error.kind(), DeserializeErrorKind::DuplicateField("a"));
    }

    #[test]
    fn keys_that_no_text_can_hold_are_no_reason_to_refuse_a_struct() {
        let long = "x".repeat(300);
        let text = std::format!(r#"{{"\ud800":1,"{long}\n":2,"a":3}}"#);
        assert_eq!(read::<Node>(&text).unwrap().a, 3);

        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Strict {
            #[expect(dead_code)]
            a: u32,
        }
        let error = read::<Strict>(r#"{"a":1,"\ud800":1}"#).unwrap_err();
        assert_eq!(error.offset(), 7);
        assert!(error.to_string().starts_with("unknown field"), "{error}");
        let error = read::<BTreeMap<String, u32>>(r#"{"a":1,"\ud800":1}"#).unwrap_err();
        let lone_surrogate = DeserializeErrorKind::Value(ValueErrorKind::LoneSurrogate);
        assert_eq!((error.kind(), error.offset()), (lone_surrogate, 7));
    }
}
