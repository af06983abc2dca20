//! Scalars on their way out.

use crate::error::EncodeError;
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
            Self::Object(members) => put_members(members, writer),
            Self::Str(text) => writer.put_str(text),
            Self::UInt(value) => writer.put_u128(value),
        }
    }
}

fn put_members(members: &[(&str, Scalar<'_>)], writer: &mut Writer<'_>) {
    writer.put_raw(b"{");
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            writer.put_raw(b",");
        }
        writer.put_str((*key).into());
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

impl<'a> From<&'a str> for Scalar<'a> {
    fn from(text: &'a str) -> Self {
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
/// - a slice or array of `(&str, Scalar)`, in this order;
/// - an [`Object`] that was received, written as it stands;
/// - a [`Value`] that is an object, likewise;
/// - with feature `serde`, a `Serialized` struct or map.
///
/// The trait is sealed: what an implementation writes must be one object.
pub trait ScalarFields: private::ScalarFields {}

mod private {
    use super::{EncodeError, Writer};

    #[expect(unnameable_types, reason = "what seals `ScalarFields`")]
    pub trait ScalarFields {
        fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError>;
    }
}

impl private::ScalarFields for [(&str, Scalar<'_>)] {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        put_members(self, writer);
        Ok(())
    }
}

impl ScalarFields for [(&str, Scalar<'_>)] {}

impl<const N: usize> private::ScalarFields for [(&str, Scalar<'_>); N] {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.as_slice().put(writer)
    }
}

impl<const N: usize> ScalarFields for [(&str, Scalar<'_>); N] {}

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
