//! Parts of a document that are written again as they stand.

use serde::ser::{self, Error as _, Serialize};

use crate::json::de::TOKEN;
use crate::json::{Object, Str, Value, ValueType};

/// Writes the text as it stands where this crate writes JSON, else what it says.
///
/// Another serializer sees an integer as `u64`, `i64`, `u128` or `i128`, the
/// first that holds it, and past those as the nearest `f64`. It sees a key that
/// is given twice twice. A lone surrogate, and an integer past `f64::MAX`, are
/// errors there.
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
///
/// let value = Value::parse(br#"{"a": [1, "caf\u00e9"]}"#)?;
/// assert_eq!(serde_json::to_string(&value)?, r#"{"a":[1,"café"]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Serialize for Value<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(TOKEN, &Content(*self))
    }
}

/// As the [`Value`] that it is.
impl Serialize for Object<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_value().serialize(serializer)
    }
}

/// A value whose serializer may or may not be this crate's.
///
/// serde's data model has no integer past 128 bits, no lone surrogate and no
/// spelling of a number, so this crate's serializer has to get the text where
/// others get what it says; and of all that can be called on a serializer only
/// `is_human_readable` does not use it up, so it is what tells the two apart:
/// this crate's answers differ from one call to the next.
pub(super) struct Content<'a>(Value<'a>);

impl Serialize for Content<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(value) = *self;
        if serializer.is_human_readable() != serializer.is_human_readable() {
            return serializer.serialize_str(value.raw());
        }
        match value.value_type() {
            ValueType::Array => {
                let array = value.as_array().map_err(S::Error::custom)?;
                serializer.collect_seq(array.iter().map(Content))
            }
            ValueType::Bool => {
                serializer.serialize_bool(value.as_bool().map_err(S::Error::custom)?)
            }
            ValueType::Null => serializer.serialize_unit(),
            ValueType::Number => serialize_number(value, serializer),
            ValueType::Object => {
                let object = value.as_object().map_err(S::Error::custom)?;
                serializer.collect_map(
                    object
                        .iter()
                        .map(|(key, value)| (Text(key), Content(value))),
                )
            }
            ValueType::String => {
                Text(value.as_str().map_err(S::Error::custom)?).serialize(serializer)
            }
        }
    }
}

fn serialize_number<S: ser::Serializer>(
    value: Value<'_>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if value.is_integer() {
        if let Ok(number) = value.as_u64() {
            return serializer.serialize_u64(number);
        }
        if let Ok(number) = value.as_i64() {
            return serializer.serialize_i64(number);
        }
        if let Ok(number) = value.as_u128() {
            return serializer.serialize_u128(number);
        }
        if let Ok(number) = value.as_i128() {
            return serializer.serialize_i128(number);
        }
    }
    serializer.serialize_f64(value.as_f64().map_err(S::Error::custom)?)
}

struct Text<'a>(Str<'a>);

impl Serialize for Text<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(plain) = self.0.as_plain() {
            return serializer.serialize_str(plain);
        }
        if self.0.decoded_len().is_err() {
            return Err(S::Error::custom("lone surrogate in a string"));
        }
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::ser::put_value;
    use crate::json::writer::Writer;
    use serde::Serialize;
    use std::format;
    use std::string::{String, ToString};

    fn written<T: Serialize + ?Sized>(value: &T) -> String {
        let mut buffer = [0; 512];
        let mut writer = Writer::new(&mut buffer);
        put_value(&mut writer, value).unwrap();
        String::from_utf8(writer.finish().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn values_keep_their_text_here_and_say_what_it_says_elsewhere() {
        #[derive(Serialize)]
        struct Lazy<'a> {
            value: Value<'a>,
            object: Object<'a>,
        }
        let text =
            r#"{"a" : [1e2, "caf\u00e9\u001f", -1, 18446744073709551616, null, true, {}], "a": 2}"#;
        let value = Value::parse(text.as_bytes()).unwrap();
        let object = value.as_object().unwrap();
        let lazy = Lazy { value, object };
        assert_eq!(
            written(&lazy),
            format!(r#"{{"value":{text},"object":{text}}}"#)
        );
        assert_eq!(
            serde_json::to_string(&value).unwrap(),
            "{\"a\":[100.0,\"café\\u001f\",-1,18446744073709551616,null,true,{}],\"a\":2}"
        );
        let odd = Value::parse(br#"[NaN,"\ud800",1e999]"#).unwrap();
        assert_eq!(written(&[odd]), r#"[[NaN,"\ud800",1e999]]"#);
        let error = serde_json::to_string(&odd).unwrap_err().to_string();
        assert_eq!(error, "lone surrogate in a string");
    }

    #[test]
    fn an_object_flattens_into_the_struct_around_it() {
        #[derive(Serialize)]
        struct Request<'a> {
            seed: u8,
            #[serde(flatten)]
            rest: Object<'a>,
        }
        let rest = Value::parse(br#"{"a": [1.50, "\u00e9"]}"#).unwrap();
        let rest = rest.as_object().unwrap();
        let request = Request { seed: 7, rest };
        let expected = r#"{"seed":7,"a":[1.5,"\u00e9"]}"#;
        assert_eq!(written(&request), expected);
    }
}
