//! Arrays and objects: walked in place, in the order of the wire.

use core::iter::FusedIterator;

use super::cursor::{Cursor, NonFinite};
use super::{Str, Value};
use crate::Limits;
use crate::error::{DecodeError, ValueError, ValueErrorKind};

/// A JSON object in its own text.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    value: Value<'a>,
}

impl<'a> Object<'a> {
    /// The object without members.
    pub const EMPTY: Object<'static> = Object {
        value: Value::new("{}", 0),
    };

    pub(crate) const fn new(value: Value<'a>) -> Self {
        Self { value }
    }

    /// Returns the object as a value.
    #[must_use]
    pub const fn as_value(&self) -> Value<'a> {
        self.value
    }

    /// Iterates over the members in wire order; a duplicate key comes as often as it was written.
    #[must_use]
    pub fn iter(&self) -> Members<'a> {
        Members(Walk::new(self.value, b'{', b'}'))
    }

    /// Returns the value of `key`, or `None` if there is no such key.
    ///
    /// Keys compare unescaped. Of several with one name it is the last, as it
    /// is to Python. The walk is over the whole object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.iter()
            .filter(|(name, _)| name == key)
            .map(|(_, value)| value)
            .last()
    }

    /// Returns the value of `key`, for which it is an error to be absent.
    ///
    /// # Errors
    ///
    /// [`ValueErrorKind::Missing`], at the object.
    pub fn field(&self, key: &str) -> Result<Value<'a>, ValueError> {
        self.get(key)
            .ok_or_else(|| self.value.error(ValueErrorKind::Missing))
    }

    /// Tells whether it has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl Default for Object<'_> {
    fn default() -> Self {
        Object::EMPTY
    }
}

impl<'a> IntoIterator for Object<'a> {
    type Item = (Str<'a>, Value<'a>);
    type IntoIter = Members<'a>;

    fn into_iter(self) -> Members<'a> {
        self.iter()
    }
}

/// A JSON array in its own text.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    value: Value<'a>,
}

impl<'a> Array<'a> {
    pub(crate) const fn new(value: Value<'a>) -> Self {
        Self { value }
    }

    /// Returns the array as a value.
    #[must_use]
    pub const fn as_value(&self) -> Value<'a> {
        self.value
    }

    /// Iterates over the elements in order.
    #[must_use]
    pub fn iter(&self) -> Elements<'a> {
        Elements(Walk::new(self.value, b'[', b']'))
    }

    /// Returns the element at `index`, or `None` past the last. The walk is over the elements before it.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        self.iter().nth(index)
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Value<'a>;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

/// The members of an [`Object`].
#[derive(Clone, Debug)]
pub struct Members<'a>(Walk<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (Str<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(|cursor, base| {
            let start = base.saturating_add(cursor.offset());
            Ok(cursor.take_key()?.at(start))
        })
    }
}

/// The elements of an [`Array`].
#[derive(Clone, Debug)]
pub struct Elements<'a>(Walk<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(|_, _| Ok(())).map(|((), value)| value)
    }
}

impl FusedIterator for Members<'_> {}

impl FusedIterator for Elements<'_> {}

/// A walk over a container whose syntax was checked before.
///
/// That is why it ends, instead of failing, at what cannot be there.
#[derive(Clone, Debug)]
struct Walk<'a> {
    cursor: Cursor<'a>,
    base: usize,
    close: u8,
    more: bool,
}

impl<'a> Walk<'a> {
    fn new(container: Value<'a>, open: u8, close: u8) -> Self {
        let mut cursor = Cursor::new(container.raw());
        let more = cursor.take_if(open);
        cursor.skip_whitespace();
        Self {
            cursor,
            base: container.offset(),
            close,
            more: more && cursor.peek() != Some(close),
        }
    }

    fn next<K>(
        &mut self,
        key: impl FnOnce(&mut Cursor<'a>, usize) -> Result<K, DecodeError>,
    ) -> Option<(K, Value<'a>)> {
        if !self.more {
            return None;
        }
        let member = self.take(key).ok();
        self.more = member.is_some() && self.more;
        member
    }

    fn take<K>(
        &mut self,
        key: impl FnOnce(&mut Cursor<'a>, usize) -> Result<K, DecodeError>,
    ) -> Result<(K, Value<'a>), DecodeError> {
        let key = key(&mut self.cursor, self.base)?;
        let start = self.cursor.offset();
        self.cursor
            .skip_value(0, &Limits::new(), NonFinite::Accept)?;
        let text = self.cursor.text_since(start);
        self.more = self.cursor.take_separator(self.close)?;
        Ok((key, Value::new(text, self.base.saturating_add(start))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn members_come_in_wire_order_and_twice_if_given_twice() {
        let value = Value::parse(br#" { "a" : 1 , "\u0061": [2 , {}], "b":null } "#).unwrap();
        let object = value.as_object().unwrap();
        let members: Vec<_> = object
            .iter()
            .map(|(key, value)| (key, value.raw()))
            .collect();
        assert_eq!(members.len(), 3);
        assert!(members[0].0 == "a" && members[1].0 == "a" && members[2].0 == "b");
        assert_eq!((members[0].1, members[1].1), ("1", "[2 , {}]"));
        assert_eq!(object.get("a").unwrap().raw(), "[2 , {}]");
        assert!(object.get("b").unwrap().is_null());
        assert!(object.get("c").is_none());
        let missing = object.field("c").unwrap_err();
        assert_eq!(
            (missing.kind(), missing.offset()),
            (ValueErrorKind::Missing, 1)
        );
    }

    #[test]
    fn empty_containers_have_no_members() {
        for text in ["{}", "{ }", "[]", "[\n]"] {
            let value = Value::parse(text.as_bytes()).unwrap();
            let members = value.as_object().map_or(0, |object| object.iter().count());
            let elements = value.as_array().map_or(0, |array| array.iter().count());
            assert_eq!(members + elements, 0, "{text}");
        }
        assert!(Object::EMPTY.is_empty());
    }

    #[test]
    fn offsets_are_of_the_whole_document() {
        let text = br#"{"a":[1,"x"]}"#;
        let value = Value::parse(text).unwrap();
        let array = value
            .as_object()
            .unwrap()
            .field("a")
            .unwrap()
            .as_array()
            .unwrap();
        let element = array.get(1).unwrap();
        assert_eq!(element.offset(), 8);
        assert_eq!(element.as_i64().unwrap_err().offset(), 8);
        assert!(array.get(2).is_none());
        let (key, _) = value.as_object().unwrap().iter().next().unwrap();
        assert_eq!(key.copy_to(&mut []).unwrap_err().offset(), 1);
        let nested = Value::parse(br#"{"a":{"\ud800":1}}"#).unwrap();
        let inner = nested.as_object().unwrap().field("a").unwrap();
        let (key, _) = inner.as_object().unwrap().iter().next().unwrap();
        assert_eq!(key.decoded_len().unwrap_err().offset(), 6);
    }
}
