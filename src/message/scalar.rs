//! Scalars on their way out.

use crate::error::EncodeError;
#[cfg(feature = "serde")]
use crate::json::ser::put_scalars;
use crate::json::writer::Writer;
use crate::json::{Object, Str, Value};

/// A value to send among the scalars.
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
/// use tensorwire::message::{NO_TENSORS, Scalar, encode_into};
///
/// let sizes = [Scalar::from(480), Scalar::from(832)];
/// let huge = Value::parse(b"123456789012345678901234567890123456789012345")?;
/// let scalars = [
///     ("request_id", Scalar::from("wan-test-001")),
///     ("guidance_scale", Scalar::from(7.5)),
///     ("size", Scalar::List(&sizes)),
///     ("huge", Scalar::Json(huge)),
/// ];
/// let mut buffer = [0; 256];
/// let metadata = encode_into(NO_TENSORS, &scalars, &mut buffer)?;
/// assert!(metadata.ends_with(br#","guidance_scale":7.5,"size":[480,832],"huge":123456789012345678901234567890123456789012345}}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Scalar<'a> {
    /// `true` or `false`.
    Bool(bool),
    /// A float, written as Python's `repr`; `NaN` and the infinities as bare tokens.
    Float(f64),
    /// An integer.
    Int(i128),
    /// JSON text whose syntax is checked, written as it stands.
    Json(Value<'a>),
    /// An array.
    List(&'a [Self]),
    /// `null`.
    Null,
    /// An object, its members in this order.
    Object(&'a [(&'a str, Self)]),
    /// A string.
    Str(Str<'a>),
    /// An integer past `i128::MAX`.
    UInt(u128),
}

impl Scalar<'_> {
    fn put(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Bool(value) => writer.put_bool(value),
            Self::Float(value) => writer.put_f64(value),
            Self::Int(value) => writer.put_i128(value),
            Self::Json(value) => writer.put_value(value),
            Self::List(items) => {
                writer.put_raw(b"[");
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        writer.put_raw(b",");
                    }
                    item.put(writer);
                }
                writer.put_raw(b"]");
            }
            Self::Null => writer.put_null(),
            Self::Object(members) => {
                let members = members.iter().map(|&(key, value)| (key.into(), value));
                put_members(members, writer);
            }
            Self::Str(text) => writer.put_str(text),
            Self::UInt(value) => writer.put_u128(value),
        }
    }
}

fn put_members<'a>(members: impl Iterator<Item = (Str<'a>, Scalar<'a>)>, writer: &mut Writer<'_>) {
    writer.put_raw(b"{");
    for (index, (key, value)) in members.enumerate() {
        if index > 0 {
            writer.put_raw(b",");
        }
        writer.put_str(key);
        writer.put_raw(b":");
        value.put(writer);
    }
    writer.put_raw(b"}");
}

macro_rules! from_numbers {
    ($($variant:ident: $($number:ty)+;)+) => {$($(
        impl From<$number> for Scalar<'_> {
            fn from(value: $number) -> Self {
                Self::$variant(value.into())
            }
        }
    )+)+};
}

from_numbers! {
    Bool: bool;
    // An `f32` is widened, as Python widens numpy's.
    Float: f32 f64;
    Int: i8 i16 i32 i64 i128 u8 u16 u32 u64;
    UInt: u128;
}

impl From<usize> for Scalar<'_> {
    fn from(value: usize) -> Self {
        // No target has more than 64 bits of address.
        Self::Int(i128::try_from(value).unwrap_or(i128::MAX))
    }
}

impl From<isize> for Scalar<'_> {
    fn from(value: isize) -> Self {
        Self::Int(i128::try_from(value).unwrap_or(i128::MAX))
    }
}

impl<'a> From<Object<'a>> for Scalar<'a> {
    fn from(object: Object<'a>) -> Self {
        Self::Json(object.as_value())
    }
}

impl<'a> From<&'a str> for Scalar<'a> {
    fn from(text: &'a str) -> Self {
        Self::Str(text.into())
    }
}

#[cfg(feature = "alloc")]
impl<'a> From<&'a alloc::string::String> for Scalar<'a> {
    fn from(text: &'a alloc::string::String) -> Self {
        Self::Str(text.into())
    }
}

impl<'a> From<Str<'a>> for Scalar<'a> {
    fn from(text: Str<'a>) -> Self {
        Self::Str(text)
    }
}

impl<'a> From<Value<'a>> for Scalar<'a> {
    fn from(value: Value<'a>) -> Self {
        Self::Json(value)
    }
}

impl<'a, T: Into<Self>> From<Option<T>> for Scalar<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// What can stand as `scalar_fields`: one JSON object.
///
/// - a slice, array or `Vec` of keys with their [`Scalar`]s, in this order; a key
///   is a `&str`, or the [`Str`] of one that was received;
/// - an [`Object`] that was received, written as it stands;
/// - a [`Value`] that is an object, likewise;
/// - with feature `serde`, a `Serialized` struct or map;
/// - received scalars with some [`Updated`];
/// - a reference to one of these.
///
/// The trait is sealed: what an implementation writes must be one object.
pub trait ScalarFields: private::ScalarFields {}

/// No scalars, for a message of tensors alone.
pub const NO_SCALARS: Object<'static> = Object::EMPTY;

mod private {
    use super::{EncodeError, Writer};

    #[expect(unnameable_types, reason = "what seals `ScalarFields`")]
    pub trait ScalarFields {
        fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError>;
    }
}

impl<'a, K: Copy + Into<Str<'a>>> private::ScalarFields for [(K, Scalar<'a>)] {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let members = self.iter().map(|&(key, value)| (key.into(), value));
        put_members(members, writer);
        Ok(())
    }
}

impl<'a, K: Copy + Into<Str<'a>>> ScalarFields for [(K, Scalar<'a>)] {}

impl<'a, K: Copy + Into<Str<'a>>, const N: usize> private::ScalarFields for [(K, Scalar<'a>); N] {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.as_slice().put(writer)
    }
}

impl<'a, K: Copy + Into<Str<'a>>, const N: usize> ScalarFields for [(K, Scalar<'a>); N] {}

#[cfg(feature = "alloc")]
impl<'a, K: Copy + Into<Str<'a>>> private::ScalarFields for alloc::vec::Vec<(K, Scalar<'a>)> {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.as_slice().put(writer)
    }
}

#[cfg(feature = "alloc")]
impl<'a, K: Copy + Into<Str<'a>>> ScalarFields for alloc::vec::Vec<(K, Scalar<'a>)> {}

impl<T: private::ScalarFields + ?Sized> private::ScalarFields for &T {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        (**self).put(writer)
    }
}

impl<T: ScalarFields + ?Sized> ScalarFields for &T {}

impl private::ScalarFields for Object<'_> {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.put_value(self.as_value());
        Ok(())
    }
}

impl ScalarFields for Object<'_> {}

impl private::ScalarFields for Value<'_> {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self.as_object() {
            Ok(object) => object.put(writer),
            Err(_) => Err(EncodeError::ScalarsNotAnObject),
        }
    }
}

impl ScalarFields for Value<'_> {}

/// Received scalars with some members set: what a relay passes on.
///
/// As Python's `{**scalars, "verified": True}`: a key that is there keeps its
/// place and gets the new value, the others stand as they came, new keys
/// follow; of several members given here for one key the last counts. A key that
/// was received twice is written twice, with the new value both times.
///
/// Costs a walk over what was received for each member, and so is for few of them.
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
/// use tensorwire::message::{NO_TENSORS, Scalar, Updated, encode_into};
///
/// let received = Value::parse(br#"{"request_id":"r1","step":1,"cfg":7.50}"#)?.as_object()?;
/// let members = [("step", Scalar::from(2)), ("verified", Scalar::from(true))];
/// let mut buffer = [0; 128];
/// let metadata = encode_into(NO_TENSORS, &Updated::new(received, &members), &mut buffer)?;
/// assert!(metadata.ends_with(br#"{"request_id":"r1","step":2,"cfg":7.50,"verified":true}}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Updated<'a> {
    received: Object<'a>,
    members: &'a [(&'a str, Scalar<'a>)],
}

impl<'a> Updated<'a> {
    /// Makes the scalars of `received`, with `members` in place of those of the same key.
    #[must_use]
    pub const fn new(received: Object<'a>, members: &'a [(&'a str, Scalar<'a>)]) -> Self {
        Self { received, members }
    }
}

impl private::ScalarFields for Updated<'_> {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let received = self.received.iter().map(|(key, value)| {
            let update = self.members.iter().rev().find(|(name, _)| key == *name);
            let value = update.map_or(Scalar::Json(value), |(_, update)| *update);
            (key, value)
        });
        let added = self
            .members
            .iter()
            .enumerate()
            .filter(|(index, (name, _))| {
                let mut later = self.members.iter().skip(index.saturating_add(1));
                later.all(|(later, _)| later != name)
                    && self.received.iter().all(|(key, _)| key != *name)
            });
        let added = added.map(|(_, &(name, value))| (name.into(), value));
        put_members(received.chain(added), writer);
        Ok(())
    }
}

impl ScalarFields for Updated<'_> {}

/// A serializable struct or map as scalars.
///
/// Written as Python's `json.dumps` writes the equivalent dictionary: floats by
/// `repr`, an `f32` widened first, keys that are numbers, bools or `None` as
/// strings.
///
/// # Examples
///
/// ```
/// use tensorwire::message::{NO_TENSORS, Serialized, encode_into};
///
/// #[derive(serde::Serialize)]
/// struct Request<'a> {
///     request_id: &'a str,
///     guidance_scale: f64,
/// }
///
/// let request = Request { request_id: "r1", guidance_scale: 7.0 };
/// let mut buffer = [0; 128];
/// let metadata = encode_into(NO_TENSORS, &Serialized(&request), &mut buffer)?;
/// assert!(metadata.ends_with(br#""scalar_fields":{"request_id":"r1","guidance_scale":7.0}}"#));
/// # Ok::<(), tensorwire::error::EncodeError>(())
/// ```
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper to be written out")]
pub struct Serialized<T>(pub T);

#[cfg(feature = "serde")]
impl<T: serde::Serialize> private::ScalarFields for Serialized<T> {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        put_scalars(writer, &self.0)
    }
}

#[cfg(feature = "serde")]
impl<T: serde::Serialize> ScalarFields for Serialized<T> {}

#[cfg(test)]
#[cfg(all(feature = "serde", feature = "alloc"))]
mod tests {
    use super::*;
    use crate::message::{NO_TENSORS, encode_into, encode_to_vec, encoded_len};
    use serde::Serialize;
    use std::collections::BTreeMap;
    use std::string::String;
    use std::vec::Vec;

    #[test]
    fn only_one_object_serializes_to_scalars() {
        let map = BTreeMap::from([("a", 1)]);
        let text = encode_to_vec(NO_TENSORS, &Serialized(&map)).unwrap();
        assert!(text.ends_with(br#""scalar_fields":{"a":1}}"#));
        let object = Object::EMPTY;
        assert!(encode_to_vec(NO_TENSORS, &Serialized(object)).is_ok());

        let refused = Err(EncodeError::ScalarsNotAnObject);
        assert_eq!(encoded_len(NO_TENSORS, &Serialized([1])), refused);
        assert_eq!(encoded_len(NO_TENSORS, &Serialized("{")), refused);
        assert_eq!(encoded_len(NO_TENSORS, &Serialized(())), refused);
        let mut buffer = [0xa5; 64];
        let result = encode_into(NO_TENSORS, &Serialized("{"), &mut buffer);
        assert_eq!(result.map(|text| text.len()), refused);
        assert!(!buffer.contains(&b'{'));
    }

    #[derive(Serialize)]
    struct Newtype<T>(T);

    #[derive(Serialize)]
    struct Unit;

    #[derive(Serialize)]
    struct Pair(u8, u8);

    #[derive(Serialize)]
    struct Request {
        seed: u8,
    }

    #[derive(Serialize)]
    enum Reply {
        Done,
        Failed(&'static str),
        At(u8, u8),
        Late { by: u8 },
    }

    /// A string by way of its `Display`.
    struct Shown;

    impl Serialize for Shown {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str("{}")
        }
    }

    /// What it writes, or which way it fails; without room for it as well.
    fn scalars<T: Serialize>(value: T) -> Result<String, EncodeError> {
        let scalars = Serialized(value);
        let length = encoded_len(NO_TENSORS, &scalars);
        let text = encode_to_vec(NO_TENSORS, &scalars);
        assert_eq!(text.as_ref().map(Vec::len), length.as_ref().copied());
        let text = String::from_utf8(text?).unwrap();
        let scalars = text.strip_prefix(r#"{"tensor_descriptors":[],"scalar_fields":"#);
        Ok(scalars.unwrap().strip_suffix('}').unwrap().into())
    }

    fn value(text: &str) -> Value<'_> {
        Value::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_written_as_an_object_can_be_the_scalars() {
        let map = || BTreeMap::from([("a", 1)]);
        for (result, expected) in [
            (scalars(map()), r#"{"a":1}"#),
            (scalars(Some(map())), r#"{"a":1}"#),
            (scalars(Newtype(Some(Newtype(map())))), r#"{"a":1}"#),
            (scalars(Request { seed: 7 }), r#"{"seed":7}"#),
            (scalars(Reply::Failed("x")), r#"{"Failed":"x"}"#),
            (scalars(Reply::At(1, 2)), r#"{"At":[1,2]}"#),
            (scalars(Reply::Late { by: 3 }), r#"{"Late":{"by":3}}"#),
            (scalars(value(r#" {"a": 1e2} "#)), r#"{"a": 1e2}"#),
            (scalars(Some(Newtype(value("{}")))), "{}"),
        ] {
            assert_eq!(result.as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_is_written_as_anything_else_cannot() {
        for result in [
            scalars(None::<Request>),
            scalars(Some(1)),
            scalars(Newtype(1.5)),
            scalars(Newtype("{}")),
            scalars(Unit),
            scalars(Pair(1, 2)),
            scalars((1, "a")),
            scalars([Request { seed: 7 }]),
            scalars(Reply::Done),
            scalars('{'),
            scalars(true),
            scalars(Shown),
            scalars(value("[{}]")),
            scalars(value(r#""{}""#)),
            scalars(Newtype(value("7"))),
        ] {
            assert_eq!(result, Err(EncodeError::ScalarsNotAnObject));
        }
    }
}

#[cfg(test)]
mod updated_tests {
    use super::*;
    use crate::message::{NO_TENSORS, encode_into};
    use std::string::String;

    fn updated(received: &str, members: &[(&str, Scalar<'_>)]) -> String {
        let received = Value::parse(received.as_bytes()).unwrap();
        let scalars = Updated::new(received.as_object().unwrap(), members);
        let mut buffer = [0; 256];
        let text = encode_into(NO_TENSORS, &scalars, &mut buffer).unwrap();
        let text = core::str::from_utf8(text).unwrap();
        let scalars = text.strip_prefix(r#"{"tensor_descriptors":[],"scalar_fields":"#);
        scalars.unwrap().strip_suffix('}').unwrap().into()
    }

    #[test]
    fn members_are_set_as_python_sets_them() {
        let set = |key, value: i64| (key, Scalar::from(value));
        assert_eq!(updated("{}", &[]), "{}");
        assert_eq!(updated("{}", &[set("a", 1)]), r#"{"a":1}"#);
        assert_eq!(
            updated(r#"{"a":1,"b":2}"#, &[set("a", 3)]),
            r#"{"a":3,"b":2}"#
        );
        assert_eq!(updated(r#"{"\u0061":1}"#, &[set("a", 2)]), r#"{"a":2}"#);
        let twice = [set("a", 2), set("a", 3), set("b", 4), set("b", 5)];
        assert_eq!(updated(r#"{"a":1}"#, &twice), r#"{"a":3,"b":5}"#);
        let kept = r#"{"x":NaN,"y":[1.50,{}],"\ud800":1}"#;
        assert_eq!(updated(kept, &[]), kept);
    }
}
