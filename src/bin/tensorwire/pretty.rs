//! JSON for people: indented, its text readable and harmless, its long parts cut.

use std::fmt::Write as _;

use tensorwire::json::{Object, Str, Value, ValueType};

use crate::output::{CYAN, DIM, RESET};
use crate::safe_text;

/// The members of an object, a line each, what is nested in them below.
pub(crate) fn object(members: Object<'_>) -> String {
    let mut text = String::new();
    put_members(&mut text, members, 1);
    text
}

/// What is shown of one list or object, and of one text; --json has all of it.
const MOST_ITEMS: usize = 100;
const MOST_CHARS: usize = 400;

fn put_members(text: &mut String, members: Object<'_>, level: usize) {
    let mut members = members.iter();
    for (key, value) in members.by_ref().take(MOST_ITEMS) {
        indent(text, level);
        let _ = write!(text, "{CYAN}{}{RESET}: ", string(key));
        put(text, value, level);
        text.push('\n');
    }
    put_rest(text, members.count(), level);
}

fn put(text: &mut String, value: Value<'_>, level: usize) {
    if let Ok(members) = value.as_object()
        && !members.is_empty()
    {
        text.push_str("{\n");
        put_members(text, members, level + 1);
        indent(text, level);
        text.push('}');
    } else if let Ok(elements) = value.as_array()
        && elements.get(0).is_some()
    {
        put_elements(text, elements, level);
    } else if let Ok(content) = value.as_str() {
        let content = string(content).replace('"', "\\\"");
        let _ = write!(text, "\"{content}\"");
    } else {
        // An empty container, or a token: digits and letters.
        let token = match value.value_type() {
            ValueType::Array => "[]",
            ValueType::Object => "{}",
            _ => value.raw(),
        };
        text.push_str(&cut(token));
    }
}

/// A list on one line if all in it is short, else a line for each.
fn put_elements(text: &mut String, elements: tensorwire::json::Array<'_>, level: usize) {
    const SHORT: usize = 60;
    let flat =
        |value: Value<'_>| !matches!(value.value_type(), ValueType::Array | ValueType::Object);
    let on_one_line = elements.as_value().raw().len() <= SHORT && elements.iter().all(flat);
    if on_one_line {
        text.push('[');
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                text.push_str(", ");
            }
            put(text, element, level);
        }
        text.push(']');
        return;
    }
    text.push_str("[\n");
    let mut elements = elements.iter();
    for element in elements.by_ref().take(MOST_ITEMS) {
        indent(text, level + 1);
        put(text, element, level + 1);
        text.push('\n');
    }
    put_rest(text, elements.count(), level + 1);
    indent(text, level);
    text.push(']');
}

fn put_rest(text: &mut String, count: usize, level: usize) {
    if count > 0 {
        indent(text, level);
        let _ = writeln!(text, "{DIM}… {count} more{RESET}");
    }
}

fn indent(text: &mut String, level: usize) {
    text.push_str(&"  ".repeat(level));
}

fn string(content: Str<'_>) -> String {
    cut(&safe_text::of_str(content))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => {
            let count = text.chars().count();
            format!(
                "{}{DIM}… {count} characters{RESET}",
                text.get(..end).unwrap_or_default()
            )
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let value = Value::parse(text.as_bytes()).unwrap();
        anstream::adapter::strip_str(&object(value.as_object().unwrap())).to_string()
    }

    #[test]
    fn nested_values_are_indented() {
        assert_eq!(
            shown(
                r#"{"seed":42,"cfg":{"scale":[7.5,NaN],"none":null,"e":{},"l":[]},"big":[[1],{"a":true}]}"#
            ),
            "  seed: 42\n  cfg: {\n    scale: [7.5, NaN]\n    none: null\n    e: {}\n    l: []\n  }\n  \
             big: [\n    [1]\n    {\n      a: true\n    }\n  ]\n"
        );
    }

    #[test]
    fn nothing_of_a_peer_writes_to_the_terminal() {
        assert_eq!(shown(r#"{"s":"say \"hi\""}"#), "  s: \"say \\\"hi\\\"\"\n");
        let shown =
            shown("{\"\\u001b[2J\":\"\\u0007 \u{9b}31m \u{202e}\",\"\\ud83d\":\"\\ud83d\\ude00\"}");
        assert_eq!(
            shown,
            "  \\u{1b}[2J: \"\\u{7} \\u{9b}31m \\u{202e}\"\n  \\u{d83d}: \"😀\"\n"
        );
    }

    #[test]
    fn long_values_are_cut() {
        let list: Vec<_> = (0..5000).map(|i| i.to_string()).collect();
        let text = shown(&format!(
            r#"{{"list":[{}],"s":"{}"}}"#,
            list.join(","),
            "x".repeat(5000)
        ));
        assert!(text.contains("… 4900 more"), "{text}");
        assert!(
            text.contains("… 5000 characters") && text.len() < 4000,
            "{text}"
        );
    }
}
