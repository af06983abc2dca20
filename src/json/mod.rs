//! JSON as Python writes it: read in place, written byte for byte.
//!
//! The grammar is RFC 8259's, in UTF-8, without a byte order mark. Inside
//! `scalar_fields`, Python's `json.dumps` also writes three tokens that the RFC
//! does not know, `NaN`, `Infinity` and `-Infinity`; integers of any size;
//! lone surrogates as escapes; and, where a dictionary had the keys `1` and
//! `"1"`, an object with one key twice. All are data here.
//!
//! A [`Value`] is a piece of text whose syntax has been checked, and nothing
//! more: what it says is found out when it is read. Reading allocates nothing,
//! and costs a walk over the value's text.
//!
//! # Examples
//!
//! ```
//! use tensorwire::json::Value;
//!
//! let value = Value::parse(br#"{"seed":42,"cfg":{"scale":[7.5,NaN]}}"#)?;
//! let object = value.as_object()?;
//! assert_eq!(object.field("seed")?.as_i64()?, 42);
//! let scales = object.field("cfg")?.as_object()?.field("scale")?.as_array()?;
//! assert_eq!(scales.get(0).map(|scale| scale.as_f64()), Some(Ok(7.5)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod container;
pub(crate) mod cursor;
#[cfg(feature = "serde")]
mod de;
mod fingerprint;
mod number;
pub(crate) mod scan;
#[cfg(feature = "serde")]
pub(crate) mod ser;
#[cfg(feature = "simd-json")]
pub mod simd_json;
mod string;
pub(crate) mod writer;

use core::fmt;
use core::str::FromStr;

pub use container::{Array, Elements, Members, Object};
pub use string::{CodePoints, Str};

use crate::Limits;
use crate::error::{DecodeError, ValueError, ValueErrorKind};
use cursor::{Cursor, NonFinite};

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ValueType {
    /// `[...]`.
    Array,
    /// `true` or `false`.
    Bool,
    /// `null`.
    Null,
    /// A number, or one of Python's three tokens that are no JSON.
    Number,
    /// `{...}`.
    Object,
    /// `"..."`.
    String,
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Array => "array",
            Self::Bool => "bool",
            Self::Null => "null",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        })
    }
}

/// A JSON value in its own text, syntax checked, read when asked.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Value<'a> {
    pub(crate) const fn new(text: &'a str, offset: usize) -> Self {
        Self { text, offset }
    }

    /// Checks that `bytes` is one JSON document as Python reads it, however long it is.
    ///
    /// For a text of a peer's, [`Options::parse_json`](crate::message::Options::parse_json)
    /// applies the caps.
    ///
    /// # Errors
    ///
    /// [`InvalidUtf8`](crate::error::DecodeErrorKind::InvalidUtf8),
    /// [`Syntax`](crate::error::DecodeErrorKind::Syntax),
    /// [`TrailingData`](crate::error::DecodeErrorKind::TrailingData), or
    /// [`DepthLimit`](crate::error::DecodeErrorKind::DepthLimit) past 128 levels.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::parse_document(bytes, &Limits::new(), NonFinite::Accept)
    }

    /// Checks that `bytes` is one JSON document as RFC 8259 has it.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), and
    /// [`NonFinite`](crate::error::DecodeErrorKind::NonFinite).
    pub fn parse_strict(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::parse_document(bytes, &Limits::new(), NonFinite::Refuse)
    }

    pub(crate) fn parse_document(
        bytes: &'a [u8],
        limits: &Limits,
        non_finite: NonFinite,
    ) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::from_bytes(bytes)?;
        cursor.skip_whitespace();
        let start = cursor.offset();
        cursor.skip_value(0, limits, non_finite)?;
        let value = Self::new(cursor.text_since(start), start);
        cursor.finish()?;
        Ok(value)
    }

    /// Returns the text, as it stands in the document.
    #[must_use]
    pub const fn raw(&self) -> &'a str {
        self.text
    }

    /// Returns where the text starts in the document, in bytes.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the type.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        match self.text.as_bytes() {
            [b'{', ..] => ValueType::Object,
            [b'[', ..] => ValueType::Array,
            [b'"', ..] => ValueType::String,
            [b't' | b'f', ..] => ValueType::Bool,
            [b'n', ..] => ValueType::Null,
            _ => ValueType::Number,
        }
    }

    /// Tells whether it is `null`, which is not the same as absent.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.value_type() == ValueType::Null
    }

    /// Reads `true` or `false`.
    ///
    /// # Errors
    ///
    /// [`ValueErrorKind::WrongType`].
    pub fn as_bool(&self) -> Result<bool, ValueError> {
        self.expect(ValueType::Bool)?;
        Ok(self.text == "true")
    }

    /// Reads an integer.
    ///
    /// # Errors
    ///
    /// [`ValueErrorKind::WrongType`], [`ValueErrorKind::NotAnInteger`] for a
    /// number with a fraction or an exponent, [`ValueErrorKind::NumberOutOfRange`].
    pub fn as_i64(&self) -> Result<i64, ValueError> {
        self.integer()
    }

    /// Reads a non-negative integer.
    ///
    /// # Errors
    ///
    /// As [`as_i64`](Self::as_i64).
    pub fn as_u64(&self) -> Result<u64, ValueError> {
        self.integer()
    }

    /// Reads an integer.
    ///
    /// # Errors
    ///
    /// As [`as_i64`](Self::as_i64).
    pub fn as_i128(&self) -> Result<i128, ValueError> {
        self.integer()
    }

    /// Reads a non-negative integer.
    ///
    /// # Errors
    ///
    /// As [`as_i64`](Self::as_i64).
    pub fn as_u128(&self) -> Result<u128, ValueError> {
        self.integer()
    }

    /// Reads a number as the nearest `f64`, as Python does.
    ///
    /// A float token too large is infinite (`1e999`), as it is to Python.
    ///
    /// # Errors
    ///
    /// [`ValueErrorKind::WrongType`], and [`ValueErrorKind::NumberOutOfRange`]
    /// for an integer token past `f64::MAX`, which Python keeps exact.
    pub fn as_f64(&self) -> Result<f64, ValueError> {
        self.expect(ValueType::Number)?;
        let out_of_range = self.error(ValueErrorKind::NumberOutOfRange);
        let number: f64 = self.text.parse().map_err(|_| out_of_range)?;
        if number.is_infinite() && self.is_integer() {
            return Err(out_of_range);
        }
        Ok(number)
    }

    /// Reads a string.
    ///
    /// # Errors
    ///
    /// [`ValueErrorKind::WrongType`].
    pub fn as_str(&self) -> Result<Str<'a>, ValueError> {
        self.expect(ValueType::String)?;
        let content = self
            .text
            .get(1..self.text.len().saturating_sub(1))
            .unwrap_or_default();
        Ok(Str::from_json(content, content.contains('\\')).at(self.offset))
    }

    /// Reads an array.
    ///
    /// # Errors
    ///
    /// [`ValueErrorKind::WrongType`].
    pub fn as_array(&self) -> Result<Array<'a>, ValueError> {
        self.expect(ValueType::Array)?;
        Ok(Array::new(*self))
    }

    /// Reads an object.
    ///
    /// # Errors
    ///
    /// [`ValueErrorKind::WrongType`].
    pub fn as_object(&self) -> Result<Object<'a>, ValueError> {
        self.expect(ValueType::Object)?;
        Ok(Object::new(*self))
    }

    /// Tells whether it is a number written without fraction and exponent.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        let digits = self.text.strip_prefix('-').unwrap_or(self.text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn integer<T: FromStr>(&self) -> Result<T, ValueError> {
        self.expect(ValueType::Number)?;
        // `-0` is an integer that no unsigned type parses.
        let text = if self.text == "-0" { "0" } else { self.text };
        text.parse().map_err(|_| {
            self.error(if self.is_integer() {
                ValueErrorKind::NumberOutOfRange
            } else {
                ValueErrorKind::NotAnInteger
            })
        })
    }

    fn expect(&self, expected: ValueType) -> Result<(), ValueError> {
        let actual = self.value_type();
        if actual == expected {
            Ok(())
        } else {
            Err(self.error(ValueErrorKind::WrongType { expected, actual }))
        }
    }

    pub(crate) const fn error(&self, kind: ValueErrorKind) -> ValueError {
        ValueError::new(kind, self.offset)
    }
}

/// Shows the text, with whatever a log could trip over escaped.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({})", self.text.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{DecodeErrorKind, SyntaxError};

    fn value(text: &str) -> Value<'_> {
        Value::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn integers_are_read_exactly_or_not_at_all() {
        assert_eq!(value("-9223372036854775808").as_i64(), Ok(i64::MIN));
        assert_eq!(value("18446744073709551615").as_u64(), Ok(u64::MAX));
        assert_eq!(value("-0").as_u64(), Ok(0));
        let max = "340282366920938463463374607431768211455";
        assert_eq!(value(max).as_u128(), Ok(u128::MAX));
        let kind = |result: Result<i64, ValueError>| result.unwrap_err().kind();
        assert_eq!(
            kind(value("9223372036854775808").as_i64()),
            ValueErrorKind::NumberOutOfRange
        );
        for text in ["4.0", "1e2", "NaN", "-Infinity"] {
            assert_eq!(
                kind(value(text).as_i64()),
                ValueErrorKind::NotAnInteger,
                "{text}"
            );
        }
        let (expected, actual) = (ValueType::Number, ValueType::Bool);
        assert_eq!(
            kind(value("true").as_i64()),
            ValueErrorKind::WrongType { expected, actual }
        );
    }

    #[test]
    fn floats_are_read_as_python_reads_them() {
        assert_eq!(value("7").as_f64(), Ok(7.0));
        assert_eq!(value("1e999").as_f64(), Ok(f64::INFINITY));
        assert_eq!(value("-1e999").as_f64(), Ok(f64::NEG_INFINITY));
        assert_eq!(value("1e-999").as_f64(), Ok(0.0));
        assert_eq!(value("-Infinity").as_f64(), Ok(f64::NEG_INFINITY));
        assert!(value("NaN").as_f64().unwrap().is_nan());
        let digits = std::string::String::from_utf8(std::vec![b'9'; 5000]).unwrap();
        let kind = value(&digits).as_f64().unwrap_err().kind();
        assert_eq!(kind, ValueErrorKind::NumberOutOfRange);
    }

    /// (text, expected kind, expected offset)
    const MALFORMED: &[(&str, DecodeErrorKind, usize)] = &[
        ("", DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd), 0),
        (" ", DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd), 1),
        (
            "[1,]",
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedByte { found: b']' }),
            3,
        ),
        (
            "[1 2]",
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedByte { found: b'2' }),
            3,
        ),
        (
            r#"{"a":1,}"#,
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedByte { found: b'}' }),
            7,
        ),
        (
            r#"{"a"}"#,
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedByte { found: b'}' }),
            4,
        ),
        (
            "{a:1}",
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedByte { found: b'a' }),
            1,
        ),
        ("[", DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd), 1),
        (
            "tru",
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd),
            3,
        ),
        (
            "trux",
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedByte { found: b'x' }),
            3,
        ),
        ("01", DecodeErrorKind::Syntax(SyntaxError::InvalidNumber), 1),
        ("-", DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd), 1),
        ("1.", DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd), 2),
        (
            "1.e1",
            DecodeErrorKind::Syntax(SyntaxError::InvalidNumber),
            2,
        ),
        (
            "+1",
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedByte { found: b'+' }),
            0,
        ),
        (
            "-NaN",
            DecodeErrorKind::Syntax(SyntaxError::InvalidNumber),
            1,
        ),
        (
            "Inf",
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd),
            3,
        ),
        (
            "\"\n\"",
            DecodeErrorKind::Syntax(SyntaxError::ControlCharacter),
            1,
        ),
        (
            r#""\x""#,
            DecodeErrorKind::Syntax(SyntaxError::InvalidEscape),
            1,
        ),
        (
            r#""\u+123""#,
            DecodeErrorKind::Syntax(SyntaxError::InvalidEscape),
            1,
        ),
        (
            r#""\u12"#,
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd),
            5,
        ),
        (
            r#""\"#,
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd),
            2,
        ),
        (
            r#""abc"#,
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd),
            4,
        ),
        ("1 1", DecodeErrorKind::TrailingData, 2),
        (
            "\u{feff}1",
            DecodeErrorKind::Syntax(SyntaxError::UnexpectedByte { found: 0xef }),
            0,
        ),
    ];

    #[test]
    fn what_is_no_json_is_refused_where_it_goes_wrong() {
        for &(text, kind, offset) in MALFORMED {
            let error = Value::parse(text.as_bytes()).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (kind, offset), "{text:?}");
        }
    }

    #[test]
    fn only_strict_json_refuses_the_three_tokens() {
        for text in ["NaN", "Infinity", "[-Infinity]"] {
            assert!(Value::parse(text.as_bytes()).is_ok());
            let error = Value::parse_strict(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), DecodeErrorKind::NonFinite);
        }
    }
}
