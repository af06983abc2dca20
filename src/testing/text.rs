//! JSON as Python spells it, and in any other spelling.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use super::Parameters;
use super::choices::Choose;

/// Which of the freedoms of JSON are taken; with none it is Python's own spelling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spelling {
    escapes: bool,
    key_order: bool,
    /// Also whether keys that have a default are left out.
    pub(super) other_keys: bool,
    white_space: bool,
}

impl Spelling {
    pub(super) fn choose(choices: &mut dyn Choose, parameters: &Parameters) -> Self {
        if parameters.python_spelling() || !choices.one_in(2) {
            return Self::default();
        }
        let [escapes, key_order, other_keys, white_space] = [(); 4].map(|()| choices.one_in(2));
        Self {
            escapes,
            key_order,
            other_keys,
            white_space,
        }
    }

    /// A text between quotes.
    pub(super) fn quoted(self, text: &str, choices: &mut dyn Choose) -> String {
        let mut quoted = String::from('"');
        for c in text.chars() {
            let free = self.escapes.then(|| choices.up_to(2));
            let short = match c {
                '"' | '\\' => Some(c),
                '\x08' => Some('b'),
                '\x0c' => Some('f'),
                '\n' => Some('n'),
                '\r' => Some('r'),
                '\t' => Some('t'),
                _ => None,
            };
            match (short, free) {
                (Some(short), None | Some(0 | 1)) => quoted.extend(['\\', short]),
                // As it stands, where that is allowed.
                (None, None) if matches!(c, ' '..='~') => quoted.push(c),
                (None, Some(0 | 1)) if c >= ' ' => quoted.push(c),
                (_, upper) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        // Writing to a `String` never fails.
                        let _ = match upper {
                            Some(_) => write!(quoted, "\\u{unit:04X}"),
                            None => write!(quoted, "\\u{unit:04x}"),
                        };
                    }
                }
            }
        }
        quoted.push('"');
        quoted
    }

    /// White space, or none.
    pub(super) fn white(self, choices: &mut dyn Choose) -> &'static str {
        if self.white_space {
            choices.text(&["", " ", "\n", "\t", "\r\n  "])
        } else {
            ""
        }
    }

    /// `items` within brackets.
    pub(super) fn array(self, items: &[String], choices: &mut dyn Choose) -> String {
        self.list('[', items, ']', choices)
    }

    fn list(self, open: char, items: &[String], close: char, choices: &mut dyn Choose) -> String {
        let mut text = String::from(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(self.white(choices));
            text.push_str(item);
            text.push_str(self.white(choices));
        }
        text.push(close);
        text
    }
}

/// Members of an object: names, and values as JSON texts.
#[derive(Clone, Debug, Default)]
pub(super) struct Members(pub(super) Vec<(String, String)>);

impl Members {
    pub(super) fn push(&mut self, key: &str, value: impl Into<String>) {
        self.0.push((key.to_string(), value.into()));
    }

    /// Gives a member another value; there is one of this name.
    pub(super) fn set(&mut self, key: &str, value: impl Into<String>) {
        if let Some((_, member)) = self.0.iter_mut().find(|(name, _)| name == key) {
            *member = value.into();
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| name != key);
    }

    /// Puts one of the members in twice.
    pub(super) fn repeat(&mut self, choices: &mut dyn Choose) {
        let index = choices.up_to(self.0.len().saturating_sub(1));
        let member = self.0.get(index).cloned();
        self.0.extend(member);
    }

    /// The object, of a schema: the order of keys does not count, and unknown ones say nothing.
    pub(super) fn of_schema(&self, spelling: Spelling, choices: &mut dyn Choose) -> String {
        let mut members = self.clone();
        if spelling.other_keys && choices.one_in(2) {
            let (key, value) = choices.of(UNKNOWN).unwrap_or_default();
            // The same key twice would be no fault either.
            members.push(key, value);
        }
        if spelling.key_order {
            choices.shuffle(&mut members.0);
        }
        members.as_they_are(spelling, choices)
    }

    /// The object, its members in this order.
    pub(super) fn as_they_are(&self, spelling: Spelling, choices: &mut dyn Choose) -> String {
        let members = self.0.iter().map(|(key, value)| {
            let key = spelling.quoted(key, choices);
            let (before, after) = (spelling.white(choices), spelling.white(choices));
            format!("{key}{before}:{after}{value}")
        });
        let members: Vec<_> = members.collect();
        spelling.list('{', &members, '}', choices)
    }
}

/// Scalars: JSON values of every type, some of them inside of others.
pub(super) fn scalars(
    choices: &mut dyn Choose,
    parameters: &Parameters,
    spelling: Spelling,
) -> String {
    let mut members = Members::default();
    for _ in 0..choices.up_to(parameters.scalars()) {
        let name = name(choices);
        members.push(&name, scalar(choices, parameters, spelling, 3));
    }
    members.as_they_are(spelling, choices)
}

fn scalar(
    choices: &mut dyn Choose,
    parameters: &Parameters,
    spelling: Spelling,
    depth: usize,
) -> String {
    let kinds = if depth > 0 { 6 } else { 4 };
    match choices.up_to(kinds) {
        0 => choices.text(&["null", "true", "false"]).to_string(),
        1 | 2 if parameters.python_spelling() || !choices.one_in(4) => {
            choices.text(NUMBERS).to_string()
        }
        1 | 2 => choices.text(OTHER_NUMBERS).to_string(),
        3 => {
            let name = name(choices);
            spelling.quoted(&name, choices)
        }
        4 if parameters.strict_json() => choices.text(TEXTS).to_string(),
        4 => choices.text(&[NON_FINITE, TEXTS].concat()).to_string(),
        5 => {
            let items = 0..choices.up_to(3);
            let depth = depth.saturating_sub(1);
            let items: Vec<_> = items
                .map(|_| scalar(choices, parameters, spelling, depth))
                .collect();
            spelling.array(&items, choices)
        }
        _ => {
            let mut members = Members::default();
            for _ in 0..choices.up_to(3) {
                let depth = depth.saturating_sub(1);
                let key = name(choices);
                members.push(&key, scalar(choices, parameters, spelling, depth));
            }
            members.as_they_are(spelling, choices)
        }
    }
}

/// A name: a usual one, one at which a reader might stumble, or any characters.
pub(super) fn name(choices: &mut dyn Choose) -> String {
    match choices.up_to(7) {
        0..=3 => choices.text(USUAL).to_string(),
        4 | 5 => choices.text(UNUSUAL).to_string(),
        _ => {
            let last = choices.of(&[0x7f, 0x7ff, 0xffff, 0x10_ffff]).unwrap_or(0);
            let characters = (0..choices.up_to(8)).filter_map(|_| {
                let number = u32::try_from(choices.up_to(last)).ok()?;
                // `None` of a surrogate.
                char::from_u32(number)
            });
            characters.collect()
        }
    }
}

/// Names as pipelines have them.
const USUAL: &[&str] = &[
    "latents",
    "timesteps",
    "prompt_embeds",
    "mask",
    "seed",
    "request_id",
    "guidance_scale",
    "image",
];

/// Names that need an escape, that are no ASCII, or that the schema knows.
const UNUSUAL: &[&str] = &[
    "",
    "\0",
    "\u{7f}",
    "\u{e9}",
    "\u{1f600}",
    "\"\\/",
    "a b",
    "\n\r\t\u{8}\u{c}",
    "\u{ffff}",
    "shape",
    "dtype",
    "tensor_descriptors",
    "scalar_fields",
    "_disagg_error",
];

/// Numbers as Python writes them, of any size.
const NUMBERS: &[&str] = &[
    "0",
    "42",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1267650600228229401496703205376",
    "0.5",
    "7.5",
    "-0.0",
    "5e-324",
    "1e-05",
    "1e+16",
    "1.7976931348623157e+308",
];

/// Numbers as others write them: past the range of a float, or with more digits than it has.
const OTHER_NUMBERS: &[&str] = &[
    "1e400",
    "-1E+400",
    "1e-400",
    "-0",
    "1E5",
    "0.1000000000000000055511151231257827021181583404541015625",
    "9007199254740993.0",
];

const NON_FINITE: &[&str] = &["NaN", "Infinity", "-Infinity"];

/// Strings that hold what is no text, and one that looks like something else.
const TEXTS: &[&str] = &["\"\\ud800\"", "\"\\udc00x\"", "\"NaN\""];

/// Keys that no schema has, near misses among them, and values for them.
const UNKNOWN: &[(&str, &str)] = &[
    ("edge_id", "\"e1\""),
    ("strides", "[4,1]"),
    ("Shape", "null"),
    ("shapes", "{\"a\":[1,{\"b\":[]}]}"),
    ("list_index ", "-5"),
    ("", "1e999"),
    ("\u{e9}", "\"\\ud800\""),
    ("offsets", "123456789012345678901234567890"),
];

#[cfg(test)]
mod tests {
    use super::super::choices::{Bytes, noise};
    use super::*;
    use crate::json::Value;

    #[test]
    fn every_spelling_of_a_text_is_that_text() {
        let bytes: Vec<u8> = noise(7).take(4096).collect();
        let mut bytes = Bytes::new(&bytes);
        let choices: &mut dyn Choose = &mut bytes;
        for escapes in [false, true] {
            let spelling = Spelling {
                escapes,
                ..Spelling::default()
            };
            for text in [USUAL, UNUSUAL].concat() {
                let quoted = spelling.quoted(text, choices);
                let value = Value::parse_strict(quoted.as_bytes()).unwrap();
                assert!(value.as_str().unwrap() == text, "{quoted}");
            }
        }
    }

    #[test]
    fn scalars_are_json_and_take_their_turns() {
        let parameters = Parameters::new();
        let strict = Parameters::new().with_strict_json(true);
        let mut lenient_alone = 0;
        for seed in 0..500 {
            let bytes: Vec<u8> = noise(seed).take(512).collect();
            let spelling = Spelling::choose(&mut Bytes::new(&bytes), &parameters);
            let text = scalars(&mut Bytes::new(&bytes), &parameters, spelling);
            Value::parse(text.as_bytes()).unwrap();
            lenient_alone += usize::from(Value::parse_strict(text.as_bytes()).is_err());
            let text = scalars(&mut Bytes::new(&bytes), &strict, spelling);
            Value::parse_strict(text.as_bytes()).unwrap();
        }
        assert!((10..490).contains(&lenient_alone), "{lenient_alone}");
    }
}
