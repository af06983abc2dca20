//! The inside of arrays and objects.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    self, DeserializeSeed, EnumAccess, Error as _, MapAccess, SeqAccess, VariantAccess,
};

use super::key::KeyDeserializer;
use super::{Deserializer, Duplicates, Pass, Text, checked_before, skip};
use crate::error::{DeserializeError, DeserializeErrorKind};
use crate::json::Value;
use crate::json::cursor::Cursor;

/// An array or object that is open, with the cursor at its next element or past its end.
pub(super) struct Container<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    base: usize,
    pass: &'c Pass,
    close: u8,
    more: bool,
}

impl<'c, 'a> Container<'c, 'a> {
    pub(super) fn open(
        deserializer: Deserializer<'c, 'a>,
        open: u8,
        close: u8,
    ) -> Result<Self, DeserializeError> {
        let Deserializer { cursor, base, pass } = deserializer;
        cursor.take_byte(open).map_err(checked_before)?;
        cursor.skip_whitespace();
        let more = !cursor.take_if(close);
        pass.open.set(pass.open.get().saturating_add(1));
        Ok(Self {
            cursor,
            base,
            pass,
            close,
            more,
        })
    }

    /// The members, of which those named in `fields` come once each.
    pub(super) fn members<'m>(
        &'m mut self,
        fields: &'static [&'static str],
    ) -> Members<'m, 'c, 'a> {
        Members {
            container: self,
            fields,
            seen: 0,
            last: None,
        }
    }

    /// The first member as an enum's variant; `None` if there is no member.
    pub(super) fn variant<'m>(
        &'m mut self,
    ) -> Result<Option<Variant<'m, 'c, 'a>>, DeserializeError> {
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
        let open = &self.pass.open;
        open.set(open.get().saturating_sub(1));
        Ok(())
    }

    fn offset(&self) -> usize {
        self.base.saturating_add(self.cursor.offset())
    }

    fn fail(&self, error: DeserializeError, offset: usize) -> DeserializeError {
        self.pass.failed.set(true);
        error.at(offset)
    }

    fn take_key(&mut self) -> Result<Text<'a>, DeserializeError> {
        let offset = self.offset();
        let key = self.cursor.take_key().map_err(checked_before)?;
        Ok(Text::new(key, offset))
    }

    fn take_separator(&mut self) -> Result<(), DeserializeError> {
        self.more = self
            .cursor
            .take_separator(self.close)
            .map_err(checked_before)?;
        Ok(())
    }

    /// Takes the next value, by way of `read`, and what separates it from the one after it.
    fn take_value<R>(
        &mut self,
        read: impl FnOnce(Deserializer<'_, 'a>) -> Result<R, DeserializeError>,
    ) -> Result<R, DeserializeError> {
        let offset = self.offset();
        let start = *self.cursor;
        let open = self.pass.open.get();
        let result = read(Deserializer {
            cursor: self.cursor,
            base: self.base,
            pass: self.pass,
        });
        let value = result.map_err(|error| self.fail(error, offset))?;
        if self.cursor.offset() == start.offset() || self.pass.open.get() != open {
            // The type left all of the value, or swallowed an error in the midst of it.
            self.pass.open.set(open);
            *self.cursor = start;
            skip(self.cursor)?;
        }
        self.take_separator()?;
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

/// The members of an object for a map, or for a struct with these fields.
pub(super) struct Members<'m, 'c, 'a> {
    container: &'m mut Container<'c, 'a>,
    fields: &'static [&'static str],
    /// One bit for each of the first 128 fields.
    seen: u128,
    /// The value of the key given last, if it is not the one at the cursor.
    last: Option<Value<'a>>,
}

impl<'a> Members<'_, '_, 'a> {
    /// The field of this name, with its bit, which is 0 past the first 128.
    fn field(&self, key: Text<'a>) -> Option<(&'static str, u128)> {
        let index = self.fields.iter().position(|field| key.text == *field)?;
        let bit = u32::try_from(index)
            .ok()
            .and_then(|index| 1_u128.checked_shl(index))
            .unwrap_or_default();
        Some((self.fields.get(index)?, bit))
    }

    /// The last value of `field` in the rest of the object, which starts with a value of it.
    fn find_last(&self, field: &str) -> Result<Value<'a>, DeserializeError> {
        let mut cursor = *self.container.cursor;
        let mut matches = true;
        let mut last = None;
        loop {
            let start = cursor.offset();
            skip(&mut cursor)?;
            if matches {
                last = Some((start, cursor.text_since(start)));
            }
            let more = cursor.take_separator(self.container.close);
            if !more.map_err(checked_before)? {
                break;
            }
            matches = cursor.take_key().map_err(checked_before)? == field;
        }
        let (start, text) = last.unwrap_or_default();
        Ok(Value::new(text, self.container.base.saturating_add(start)))
    }
}

impl<'a> MapAccess<'a> for Members<'_, '_, 'a> {
    type Error = DeserializeError;

    fn next_key_seed<S: DeserializeSeed<'a>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DeserializeError> {
        while self.container.more {
            let key = self.container.take_key()?;
            let Some((field, bit)) = self.field(key) else {
                // A struct ignores or refuses what it does not know, and for
                // either need not see a key that no text can hold.
                let key = if self.fields.is_empty() || key.is_visitable() {
                    key
                } else {
                    Text::new("\u{fffd}".into(), key.offset)
                };
                return seed
                    .deserialize(KeyDeserializer(key))
                    .map(Some)
                    .map_err(|error| self.container.fail(error, key.offset));
            };
            if self.seen & bit == 0 {
                self.seen |= bit;
                if self.container.pass.duplicates == Duplicates::LastWins && bit != 0 {
                    self.last = Some(self.find_last(field)?);
                }
                return seed
                    .deserialize(BorrowedStrDeserializer::<DeserializeError>::new(field))
                    .map(Some)
                    .map_err(|error| self.container.fail(error, key.offset));
            }
            if self.container.pass.duplicates == Duplicates::Unexpected {
                let error = DeserializeError::duplicate_field(field);
                return Err(self.container.fail(error, key.offset));
            }
            self.container.take_value(|value| skip(value.cursor))?;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, DeserializeError> {
        let Some(last) = self.last.take() else {
            return self.container.take_value(|value| seed.deserialize(value));
        };
        self.container.take_value(|value| skip(value.cursor))?;
        let mut cursor = Cursor::new(last.raw());
        seed.deserialize(Deserializer {
            cursor: &mut cursor,
            base: last.offset(),
            pass: self.container.pass,
        })
        .map_err(|error| self.container.fail(error, last.offset()))
    }
}

/// The one member of an object that stands for an enum.
pub(super) struct Variant<'m, 'c, 'a> {
    container: &'m mut Container<'c, 'a>,
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
            .map_err(|error| self.container.fail(error, self.name.offset))?;
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

    fn tuple_variant<V: de::Visitor<'a>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.container
            .take_value(|value| de::Deserializer::deserialize_tuple(value, len, visitor))
    }

    fn struct_variant<V: de::Visitor<'a>>(
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
    use core::time::Duration;
    use serde::Deserialize;
    use std::collections::BTreeMap;
    use std::string::{String, ToString};
    use std::time::Instant;
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
    fn a_struct_takes_the_last_of_a_key() {
        let text = r#"{"a":"not even a number","b":[1],"\u0061":2,"x":0,"x":1,
            "child":{"a":5,"a":6},"b":[2,3],"a":4,
            "child":{"a":7,"child":null,"a":8,"b":[9]}}"#;
        let node: Node = read(text).unwrap();
        assert_eq!((node.a, node.b), (4, std::vec![2, 3]));
        let child = *node.child.unwrap();
        assert_eq!((child.a, child.b), (8, std::vec![9]));
        // Its place in the document is that of the value taken.
        let error = read::<Node>(r#"{"a":1,"a":[]}"#).unwrap_err();
        assert_eq!(error.offset(), 11);
        // What is only one field to serde are two keys to Python.
        let error = read::<Node>(r#"{"b":[1],"bee":[]}"#).unwrap_err();
        assert_eq!(error.kind(), DeserializeErrorKind::DuplicateField("b"));
    }

    #[test]
    fn a_map_takes_the_last_of_a_key() {
        let map: BTreeMap<String, u32> = read(r#"{"1":1,"2":2,"\u0031":3}"#).unwrap();
        assert_eq!(map["1"], 3);
    }

    #[test]
    fn where_serde_buffers_the_object_the_second_is_refused() {
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
    fn a_duplicate_is_noticed_even_if_the_type_swallows_the_error() {
        #[derive(Debug, PartialEq)]
        struct Lenient(Option<Node>);
        impl<'de> Deserialize<'de> for Lenient {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self(Node::deserialize(deserializer).ok()))
            }
        }
        for text in [r#"{"a":1,"a":2}"#, r#"{"a":[],"a":2}"#] {
            let list: [Lenient; 1] = read(&std::format!("[{text}]")).unwrap();
            assert_eq!(
                list,
                [Lenient(Some(Node {
                    a: 2,
                    ..Node::default()
                }))]
            );
        }
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

    #[test]
    fn duplicates_cost_time_linear_in_the_text() {
        let time = |members: usize| {
            let text = std::format!(r#"{{"a":1{}}}"#, r#","a":1"#.repeat(members));
            let start = Instant::now();
            assert_eq!(read::<Node>(&text).unwrap().a, 1);
            start.elapsed()
        };
        time(1000);
        // Were it quadratic, this would take minutes.
        assert!(time(200_000) < Duration::from_secs(20));
    }
}
