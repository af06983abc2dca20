//! Messages and errors as JSON, for scripts.

use std::fmt::Write as _;

use sha2::Digest as _;
use tensorwire::TensorView;
use tensorwire::json::Str;

use crate::exit::Fault;
use crate::message::Seen;
use crate::stats::Stats;

/// One JSON object for a message; scalars and control messages stand in it as they came.
pub(crate) fn message(seen: &Seen<'_>, stats: bool) -> String {
    match seen {
        Seen::Tensors { tensors, scalars } => {
            let tensors: Vec<_> = tensors.iter().map(|view| tensor(view, stats)).collect();
            let (tensors, scalars) = (tensors.join(","), scalars.as_value().raw());
            format!(r#"{{"kind":"tensors","tensors":[{tensors}],"scalar_fields":{scalars}}}"#)
        }
        Seen::Transfer { control, payload } => {
            let (name, text) = (str_of(control.msg_type()), payload.raw());
            format!(r#"{{"kind":"transfer","msg_type":{name},"message":{text}}}"#)
        }
    }
}

/// One JSON object for what is wrong with a message.
pub(crate) fn fault(fault: &Fault) -> String {
    let (kind, message) = (string(&fault.kind), string(&fault.text));
    let offset = fault.offset;
    format!(r#"{{"kind":"error","error":{kind},"offset":{offset},"message":{message}}}"#)
}

fn tensor(view: &TensorView<'_>, stats: bool) -> String {
    let shape: Vec<_> = view.dims().map(|dim| dim.to_string()).collect();
    let mut text = format!(
        r#"{{"field_name":{},"list_index":{},"dtype":"{}","shape":[{}],"nbytes":{},"sha256":"{}""#,
        str_of(view.name()),
        view.list_index().map_or(-1, i64::from),
        view.dtype(),
        shape.join(","),
        view.byte_len(),
        sha256(view.bytes()),
    );
    if stats {
        let _ = write!(text, r#","stats":{}"#, Stats::of(view).json());
    }
    text.push('}');
    text
}

/// The SHA-256 of `bytes` in hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(64);
    for byte in sha2::Sha256::digest(bytes) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// A string of a message as JSON: as it came, where that is JSON already.
fn str_of(text: Str<'_>) -> String {
    // A backslash is an escape where there are escapes, and text that was read has no bare quote.
    let plain = |c: char| c != '"' && c != '\\' && c >= ' ';
    if text.as_plain().is_none_or(|text| text.chars().all(plain)) {
        return format!("\"{}\"", text.raw());
    }
    string(text.raw())
}

/// Text as a JSON string.
pub(crate) fn string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// A number as JSON, which has none that are not finite: those become strings.
pub(crate) fn number(value: f64) -> String {
    if value.is_finite() {
        // The shortest digits that lead back to it, with a point or an exponent: JSON as well.
        return format!("{value:?}");
    }
    let text = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    string(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwire::Decoder;

    #[test]
    fn a_message_is_one_object_with_the_scalars_as_they_came() {
        let scalars = r#"{ "a":NaN,"a":123456789012345678901234567890 , "s":"\ud83d\u0000"}"#;
        let metadata = format!(
            r#"{{"tensor_descriptors":[{{"field_name":"n\u00e9\"","shape":[2,0],"dtype":"int8","list_index":3}}],"scalar_fields":{scalars}}}"#
        );
        let frames = [metadata.as_bytes(), b""];
        let mut decoder = Decoder::new();
        let Ok(seen) = Seen::look(&frames, &mut decoder) else {
            panic!("a message");
        };
        assert_eq!(
            message(&seen, false),
            format!(
                r#"{{"kind":"tensors","tensors":[{{"field_name":"n\u00e9\"","list_index":3,"dtype":"int8","shape":[2,0],"nbytes":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}],"scalar_fields":{scalars}}}"#
            )
        );
    }

    #[test]
    fn strings_and_numbers_are_json() {
        for text in ["", "a\"b\\c", "\n\x1b\x7f\u{9b}", "é"] {
            let json = string(text);
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
        for (value, text) in [
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e16, "1e16"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e308"),
        ] {
            assert_eq!(number(value), text);
            assert_eq!(
                serde_json::from_str::<f64>(text).unwrap().to_bits(),
                value.to_bits()
            );
        }
        assert_eq!(number(f64::NAN), "\"NaN\"");
        assert_eq!(number(f64::NEG_INFINITY), "\"-Infinity\"");
    }
}
