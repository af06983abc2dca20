//! JSON for people: indented, its text readable and harmless, its long parts cut.

use std::fmt::Write as _;

use tensorwire::json::{Array, Object, Str, Value, ValueType};

use crate::output::{CYAN, DIM, RESET};
use crate::safe_text;

/// The members of an object, a line each, what is nested in them below.
pub(crate) fn object(members: Object<'_>) -> String {
    let mut page = Page {
        text: String::new(),
        lines: MOST_LINES,
    };
    page.put_members(members, 1);
    if page.lines == 0 {
        page.indent(1);
        let _ = writeln!(
            page.text,
            "{DIM}… cut after {MOST_LINES} lines; --json has all of it{RESET}"
        );
    }
    page.text
}

/// What is shown of one list or object, of one text, and of it all; --json has all of it.
const MOST_ITEMS: usize = 100;
const MOST_CHARS: usize = 400;
const MOST_LINES: usize = 1000;

/// What has been written, and how many lines more may be.
struct Page {
    text: String,
    lines: usize,
}

impl Page {
    fn put_members(&mut self, members: Object<'_>, level: usize) {
        let mut members = members.iter();
        for (key, value) in members.by_ref().take(MOST_ITEMS) {
            if !self.start_line(level) {
                return;
            }
            let _ = write!(self.text, "{CYAN}{}{RESET}: ", string(key));
            self.put(value, level);
            self.text.push('\n');
        }
        self.put_rest(members, level);
    }

    fn put(&mut self, value: Value<'_>, level: usize) {
        if let Ok(members) = value.as_object()
            && !members.is_empty()
        {
            self.text.push_str("{\n");
            self.put_members(members, level + 1);
            self.indent(level);
            self.text.push('}');
        } else if let Ok(elements) = value.as_array()
            && elements.get(0).is_some()
        {
            self.put_elements(elements, level);
        } else if let Ok(content) = value.as_str() {
            let content = string(content).replace('"', "\\\"");
            let _ = write!(self.text, "\"{content}\"");
        } else {
            // An empty container, or a token: digits and letters.
            let token = match value.value_type() {
                ValueType::Array => "[]",
                ValueType::Object => "{}",
                _ => value.raw(),
            };
            self.text.push_str(&cut(token));
        }
    }

    /// A list on one line if all in it is short, else a line for each.
    fn put_elements(&mut self, elements: Array<'_>, level: usize) {
        const SHORT: usize = 60;
        let flat =
            |value: Value<'_>| !matches!(value.value_type(), ValueType::Array | ValueType::Object);
        let on_one_line = elements.as_value().raw().len() <= SHORT && elements.iter().all(flat);
        if on_one_line {
            self.text.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    self.text.push_str(", ");
                }
                self.put(element, level);
            }
            self.text.push(']');
            return;
        }
        self.text.push_str("[\n");
        self.put_lines(elements, level + 1);
        self.indent(level);
        self.text.push(']');
    }

    fn put_lines(&mut self, elements: Array<'_>, level: usize) {
        let mut elements = elements.iter();
        for element in elements.by_ref().take(MOST_ITEMS) {
            if !self.start_line(level) {
                return;
            }
            self.put(element, level);
            self.text.push('\n');
        }
        self.put_rest(elements, level);
    }

    /// Says how many there are that are not shown.
    fn put_rest(&mut self, rest: impl Iterator, level: usize) {
        if self.lines == 0 {
            return;
        }
        let count = rest.count();
        if count > 0 && self.start_line(level) {
            let _ = writeln!(self.text, "{DIM}… {count} more{RESET}");
        }
    }

    /// Starts a line, if there may be one more.
    fn start_line(&mut self, level: usize) -> bool {
        let Some(lines) = self.lines.checked_sub(1) else {
            return false;
        };
        self.lines = lines;
        self.indent(level);
        true
    }

    fn indent(&mut self, level: usize) {
        self.text.push_str(&"  ".repeat(level));
    }
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

    /// Without an end the lines would be as many as the elements, and indented as deep as they are.
    #[test]
    fn a_tree_of_short_lists_is_cut_too() {
        let mut tree = "[1]".to_owned();
        for _ in 0..3 {
            tree = format!("[{}]", [tree.as_str(); 30].join(","));
        }
        let deep = format!("{}{tree}{}", "[".repeat(100), "]".repeat(100));
        for text in [tree.as_str(), &deep] {
            let text = shown(&format!(r#"{{"l":{text},"after":1}}"#));
            assert!(text.lines().count() < MOST_LINES + 300, "{text}");
            assert!(text.ends_with("\n  … cut after 1000 lines; --json has all of it\n"));
        }
        let whole = shown(&format!(r#"{{"l":[{}]}}"#, ["[{}]"; 90].join(",")));
        assert!(!whole.contains('…'), "{whole}");
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
