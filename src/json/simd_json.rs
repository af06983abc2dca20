//! Values as those of the crate `simd_json`.
//!
//! For code that works on `simd_json` values. Where the scalars are only read,
//! [`Value`] does so in place, and costs neither copy nor allocation.
//!
//! `simd_json` refuses some of what Python writes. Then, and only then, this
//! crate's own reader makes the same kind of value, as follows. Where both
//! read a text, they read the same from it, floats to the last bit.
//!
//! | JSON | `simd_json` value |
//! |---|---|
//! | non-negative integer up to 2⁶⁴ − 1 | `U64` |
//! | negative integer from −2⁶³, `-0` | `I64` |
//! | any other integer | the nearest `F64`, which past `f64::MAX` is infinite |
//! | `NaN`, `Infinity`, `-Infinity` | `F64` |
//! | float token past `f64::MAX` | `F64`, infinite, as it is to Python |
//! | lone surrogate in a string | U+FFFD |
//! | key given twice, also by two lone surrogates | the last one |
//!
//! `simd_json`'s own value builder is not used: of a key given twice in an
//! object of up to 32 members it keeps both, and finds the first.
//!
//! # Examples
//!
//! ```
//! use simd_json::prelude::*;
//! use tensorwire::json::Value;
//! use tensorwire::json::simd_json::{Reader, Via};
//!
//! let mut reader = Reader::new();
//! for (text, expected) in [
//!     (r#"{"seed":42,"scale":7.5}"#, Via::SimdJson),
//!     (r#"{"seed":42,"scale":NaN}"#, Via::Fallback),
//! ] {
//!     let (scalars, via) = reader.read(Value::parse(text.as_bytes())?);
//!     assert_eq!((scalars.get_u64("seed"), via), (Some(42), expected));
//!     assert!(scalars.get_f64("scale").is_some());
//! }
//! # Ok::<(), tensorwire::error::DecodeError>(())
//! ```

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::mem;

use ::simd_json::borrowed::Object;
use ::simd_json::{BorrowedValue, Buffers, Node, StaticNode, Tape};

use super::cursor::{Cursor, NonFinite};
use super::{Value, ValueType};
use crate::error::DecodeError;

/// What made a value.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Via {
    /// This crate's reader, after `simd_json` had refused the text.
    Fallback,
    /// `simd_json`.
    SimdJson,
}

/// Turns values into those of `simd_json`, and keeps its buffers for the next one.
///
/// `simd_json` rewrites what it reads, so the text is copied into the reader
/// first. The copy, `simd_json`'s index and its tape are kept; what is
/// allocated for each value are its own arrays and objects.
#[derive(Default)]
pub struct Reader {
    buffers: Buffers,
    bytes: Vec<u8>,
    tape: Vec<Node<'static>>,
    text: String,
}

impl Reader {
    /// Makes a reader that has not allocated for a value yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `value`, and says what read it.
    ///
    /// The result borrows strings from the reader, not from the frame that
    /// `value` lies in. This never fails: see the [module](self) for what
    /// becomes of what a `simd_json` value cannot hold. The stack grows with
    /// the nesting of the value, which is at most 128 levels.
    pub fn read<'b>(&'b mut self, value: Value<'_>) -> (BorrowedValue<'b>, Via) {
        self.bytes.clear();
        self.bytes.extend_from_slice(value.raw().as_bytes());
        let mut tape = Tape(mem::take(&mut self.tape));
        let built = ::simd_json::fill_tape(&mut self.bytes, &mut self.buffers, &mut tape)
            .ok()
            .and_then(|()| from_tape(&mut tape.0.iter()));
        self.tape = tape.reset().0;
        match built {
            Some(built) => (built, Via::SimdJson),
            None => {
                self.text.clear();
                self.text.push_str(value.raw());
                let copy = Value::new(&self.text, value.offset());
                (from_value(copy), Via::Fallback)
            }
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// The next value of a tape; `None` for a tape that is none.
fn from_tape<'b>(tape: &mut core::slice::Iter<'_, Node<'b>>) -> Option<BorrowedValue<'b>> {
    Some(match *tape.next()? {
        Node::Static(value) => BorrowedValue::Static(value),
        Node::String(text) => BorrowedValue::String(Cow::Borrowed(text)),
        Node::Array { len, .. } => {
            // Not more than the tape has nodes, whatever it says.
            let mut array = Vec::with_capacity(len.min(tape.len()));
            for _ in 0..len {
                array.push(from_tape(tape)?);
            }
            BorrowedValue::Array(Box::new(array))
        }
        Node::Object { len, .. } => {
            let mut object = Object::with_capacity_and_hasher(
                len.min(tape.len()),
                ::simd_json::ObjectHasher::default(),
            );
            for _ in 0..len {
                let &Node::String(key) = tape.next()? else {
                    return None;
                };
                object.insert(Cow::Borrowed(key), from_tape(tape)?);
            }
            BorrowedValue::Object(Box::new(object))
        }
    })
}

fn from_value(value: Value<'_>) -> BorrowedValue<'_> {
    // The syntax of a value was checked before, so that this never fails.
    take_value(&mut Cursor::new(value.raw())).unwrap_or_default()
}

/// Takes one value off a text, all of which is walked once.
fn take_value<'a>(cursor: &mut Cursor<'a>) -> Result<BorrowedValue<'a>, DecodeError> {
    Ok(match cursor.peek_type()? {
        ValueType::Array => {
            let mut array = Vec::new();
            let mut more = open(cursor, b'[', b']')?;
            while more {
                array.push(take_value(cursor)?);
                more = cursor.take_separator(b']')?;
            }
            BorrowedValue::Array(Box::new(array))
        }
        ValueType::Bool => {
            let value = cursor.take_prefix(b"true");
            if !value {
                cursor.take_literal(b"false")?;
            }
            BorrowedValue::Static(StaticNode::Bool(value))
        }
        ValueType::Null => {
            cursor.take_literal(b"null")?;
            BorrowedValue::Static(StaticNode::Null)
        }
        ValueType::Number => {
            let (text, _) = cursor.take_number(NonFinite::Accept)?;
            BorrowedValue::Static(from_number(text))
        }
        ValueType::Object => {
            let mut object = Object::default();
            let mut more = open(cursor, b'{', b'}')?;
            while more {
                let key = cursor.take_key()?.to_cow_lossy();
                object.insert(key, take_value(cursor)?);
                more = cursor.take_separator(b'}')?;
            }
            BorrowedValue::Object(Box::new(object))
        }
        ValueType::String => BorrowedValue::String(cursor.take_string()?.to_cow_lossy()),
    })
}

/// Takes the start of a container, and says whether it has members.
fn open(cursor: &mut Cursor<'_>, open: u8, close: u8) -> Result<bool, DecodeError> {
    cursor.take_byte(open)?;
    cursor.skip_whitespace();
    Ok(!cursor.take_if(close))
}

fn from_number(text: &str) -> StaticNode {
    let value = Value::new(text, 0);
    let negative = text.starts_with('-');
    match (value.as_u64(), value.as_i64()) {
        (Ok(number), _) if !negative => StaticNode::U64(number),
        (_, Ok(number)) => StaticNode::I64(number),
        // Each number token is one that Rust parses.
        _ => StaticNode::F64(text.parse().unwrap_or(f64::NAN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::simd_json::prelude::*;
    use proptest::prelude::*;
    use std::format;
    use std::string::ToString;

    /// Everything that a value says, floats by their bits and keys in order.
    fn described(value: &BorrowedValue<'_>) -> String {
        match value {
            BorrowedValue::Static(StaticNode::F64(float)) => format!("f64 {:x}", float.to_bits()),
            BorrowedValue::Static(other) => format!("{other:?}"),
            BorrowedValue::String(text) => format!("{text:?}"),
            BorrowedValue::Array(array) => {
                let elements: Vec<_> = array.iter().map(described).collect();
                format!("[{}]", elements.join(","))
            }
            BorrowedValue::Object(object) => {
                let mut members: Vec<_> = object
                    .iter()
                    .map(|(key, value)| format!("{key:?}:{}", described(value)))
                    .collect();
                members.sort();
                format!("{{{}}}", members.join(","))
            }
        }
    }

    fn parsed(text: &str) -> Value<'_> {
        Value::parse(text.as_bytes()).unwrap()
    }

    /// Reads what `simd_json` does not refuse, and demands that the fallback agrees.
    fn assert_agreement(reader: &mut Reader, text: &str) {
        let (value, via) = reader.read(parsed(text));
        assert_eq!(via, Via::SimdJson, "{text}");
        assert_eq!(
            described(&value),
            described(&from_value(parsed(text))),
            "{text}"
        );
    }

    #[test]
    fn both_ways_agree_on_what_both_read() {
        let mut reader = Reader::new();
        let many: String = (0..40).map(|i| format!(r#""k{}":{i},"#, i % 35)).collect();
        for text in [
            "null",
            " true ",
            "-0",
            "-0.0",
            "0",
            "18446744073709551615",
            "-9223372036854775808",
            "9223372036854775808",
            "123456789012345678",
            "[1.0,0.1,5e-324,2.2250738585072014e-308,1.7976931348623157e308,1E+2,1e-400]",
            "[9007199254740993.0,0.30000000000000004,123456789.123456789123456789]",
            "[2.2250738585072011e-308,1.00000000000000011102230246251565]",
            r#"{"a":{"b":[[],{},""]},"caf\u00e9":"\ud83d\ude00\n\"\\\/\u0000é"}"#,
            r#"{"a":1,"a":2,"\u0061":3}"#,
            &format!(r#"{{{many}"k0":"last"}}"#),
            &format!("{}{}", "[".repeat(128), "]".repeat(128)),
            r#"" padded to more than one register, twice, with an escape\t at the end \\""#,
        ] {
            assert_agreement(&mut reader, text);
        }
    }

    #[test]
    fn the_last_of_a_key_wins_both_ways() {
        let mut reader = Reader::new();
        for (text, expected) in [
            (r#"{"a":1,"b":0,"\u0061":2}"#, Via::SimdJson),
            (r#"{"a":1,"b":NaN,"\u0061":2}"#, Via::Fallback),
        ] {
            let (value, via) = reader.read(parsed(text));
            assert_eq!((value.get_u64("a"), via), (Some(2), expected));
            assert_eq!(value.as_object().unwrap().len(), 2);
        }
    }

    #[test]
    fn what_simd_json_refuses_is_read_all_the_same() {
        let mut reader = Reader::new();
        let huge = format!("1{}", "0".repeat(40));
        let endless = "9".repeat(400);
        let float = |number: f64| format!("f64 {:x}", number.to_bits());
        for (text, expected) in [
            ("NaN", float(f64::NAN)),
            ("Infinity", float(f64::INFINITY)),
            ("-Infinity", float(f64::NEG_INFINITY)),
            ("1e999", float(f64::INFINITY)),
            ("18446744073709551616", float(18_446_744_073_709_551_616.0)),
            ("-9223372036854775809", float(-9_223_372_036_854_775_808.0)),
            (&huge, float(1e40)),
            (&endless, float(f64::INFINITY)),
            (
                r#""a\ud800b\udc00\ud83d\ude00""#,
                String::from("\"a\u{fffd}b\u{fffd}😀\""),
            ),
        ] {
            let (value, via) = reader.read(parsed(text));
            assert_eq!(
                (described(&value), via),
                (expected, Via::Fallback),
                "{text}"
            );
        }
        let text = format!(r#" {{"a":[1,-1,{huge}],"\u00e9":{{"b":null}},"c":"x"}} "#);
        let (value, via) = reader.read(parsed(&text));
        let expected = parsed(r#"{"a":[1,-1,1e40],"é":{"b":null},"c":"x"}"#);
        assert_eq!(via, Via::Fallback);
        assert_eq!(described(&value), described(&from_value(expected)));
    }

    #[test]
    fn buffers_are_kept_from_one_value_to_the_next() {
        let mut reader = Reader::new();
        let text = format!("[{}0]", "[1,\"x\"],".repeat(1000));
        reader.read(parsed(&text));
        let kept = (reader.bytes.as_ptr(), reader.tape.as_ptr());
        reader.read(parsed(&text));
        reader.read(parsed("NaN"));
        reader.read(parsed(&text));
        assert_eq!(kept, (reader.bytes.as_ptr(), reader.tape.as_ptr()));
    }

    fn documents() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<u64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 64, 40, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..40).prop_map(Into::into),
                proptest::collection::btree_map("[a-z\u{0}-\u{ff}]{0,3}", inner, 0..40)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn both_ways_agree_on_documents(document in documents()) {
            assert_agreement(&mut Reader::new(), &document.to_string());
        }

        #[test]
        fn both_ways_agree_on_floats(digits in "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,25})?[eE][-+]?[0-9]{1,2}") {
            assert_agreement(&mut Reader::new(), &digits);
        }
    }
}
