//! JSON objects that outlive their message.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::error::EncodeError;
use crate::json::writer::{self, Writer};
use crate::json::{Object, Value};
use crate::message::ScalarFields;
use crate::transfer::message::SLOT_ID;

/// The text of one JSON object, checked.
#[derive(Clone, Debug)]
pub(super) struct Text {
    json: Box<str>,
}

impl Text {
    pub(super) fn new(object: Object<'_>) -> Self {
        Self {
            json: object.as_value().raw().into(),
        }
    }

    /// The text of `object` without the member [`SLOT_ID`]: passed on with the output, it would
    /// name a slot of another worker.
    pub(super) fn without_slot_id(object: Object<'_>) -> Self {
        if object.get(SLOT_ID).is_none() {
            return Self::new(object);
        }
        let put = |writer: &mut Writer<'_>| {
            writer.put_raw(b"{");
            let members = object.iter().filter(|(key, _)| *key != SLOT_ID);
            for (index, (key, value)) in members.enumerate() {
                if index > 0 {
                    writer.put_raw(b",");
                }
                writer.put_str(key);
                writer.put_raw(b":");
                writer.put_value(value);
            }
            writer.put_raw(b"}");
        };
        Self::from_written(writer::to_vec(put))
    }

    /// The text of the scalars that a worker sends on, without the member [`SLOT_ID`].
    pub(super) fn from_scalars<S: ScalarFields + ?Sized>(scalars: &S) -> Result<Self, EncodeError> {
        let mut counted = Writer::new(&mut []);
        scalars.put(&mut counted)?;
        let mut buffer = vec![0; counted.len()];
        let mut writer = Writer::new(&mut buffer);
        scalars.put(&mut writer)?;
        // A `Serialize` may write less the second time, and must not write more.
        let (needed, capacity) = (writer.len(), counted.len());
        if needed > capacity {
            return Err(EncodeError::BufferTooSmall { needed, capacity });
        }
        buffer.truncate(needed);
        let text = Self::from_written(buffer);
        Ok(Self::without_slot_id(text.object()))
    }

    /// One JSON object, as this crate wrote it.
    pub(super) fn from_written(buffer: Vec<u8>) -> Self {
        // It writes text, and of it whole characters.
        let json = String::from_utf8(buffer).unwrap_or_else(|_| String::from("{}"));
        Self { json: json.into() }
    }

    pub(super) fn object(&self) -> Object<'_> {
        Object::new(Value::new(&self.json, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{NO_SCALARS, Scalar};

    /// (received, kept)
    const KEPT: &[(&str, &str)] = &[
        ("{}", "{}"),
        (r#"{"a":1}"#, r#"{"a":1}"#),
        (r#"{"_prealloc_slot_id":3}"#, "{}"),
        (
            r#"{"a":[NaN,7.50],"_prealloc_slot_id":3}"#,
            r#"{"a":[NaN,7.50]}"#,
        ),
        (
            r#"{ "\u005fprealloc_slot_id":null, "b" : {"c":0}, "b":2}"#,
            r#"{"b":{"c":0},"b":2}"#,
        ),
    ];

    #[test]
    fn what_is_for_the_machine_is_left_out_and_the_rest_stands_as_it_came() {
        for (received, kept) in KEPT {
            let object = Value::parse(received.as_bytes())
                .unwrap()
                .as_object()
                .unwrap();
            assert_eq!(&*Text::without_slot_id(object).json, *kept);
            assert_eq!(&*Text::from_scalars(&object).unwrap().json, *kept);
        }
    }

    #[test]
    fn scalars_are_written_as_python_does() {
        let scalars = [
            ("seed", Scalar::from(7)),
            (SLOT_ID, Scalar::from(1)),
            ("name", "é".into()),
        ];
        let text = Text::from_scalars(&scalars).unwrap();
        assert_eq!(
            text.object().as_value().raw(),
            r#"{"seed":7,"name":"\u00e9"}"#
        );
        assert!(Text::from_scalars(&NO_SCALARS).unwrap().object().is_empty());
    }
}
