//! Text of peers, made safe for a terminal and for one line of a log.

use std::path::Path;

use tensorwire::json::Str;

/// Escapes whatever is not printable: control characters, so that nobody else writes to the
/// terminal; and what turns the direction of text, or hides in it.
pub(crate) fn line(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut safe, c);
    }
    safe
}

/// The name of a file, as [`line()`] has it.
pub(crate) fn path(path: &Path) -> String {
    line(&path.display().to_string())
}

/// What a string of a message says, as [`line()`] has it; a lone surrogate is an escape.
pub(crate) fn of_str(text: Str<'_>) -> String {
    let mut safe = String::new();
    for point in text.code_points() {
        match char::from_u32(point) {
            Some('\\') => safe.push_str("\\\\"),
            Some(c) => push(&mut safe, c),
            None => safe.push_str(&format!("\\u{{{point:x}}}")),
        }
    }
    safe
}

/// Escapes the same as [`line()`] does in JSON, in the way of JSON: it says what it said.
///
/// Line breaks stand between tokens only, where they may as well be spaces.
pub(crate) fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => safe.push(' '),
            c if is_printable(c) => safe.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    safe.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    safe
}

fn push(safe: &mut String, c: char) {
    if is_printable(c) {
        safe.push(c);
    } else {
        safe.extend(c.escape_unicode());
    }
}

/// Whether a character shows itself and does nothing else.
pub(crate) fn is_printable(c: char) -> bool {
    let shown = !c.is_ascii() && !FILLERS.contains(&c) && c.escape_debug().len() == 1;
    matches!(c, ' '..='~') || shown
}

/// Letters to Unicode that show nothing.
const FILLERS: &[char] = &['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}'];

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwire::json::Value;

    /// (text, what is shown)
    const TEXTS: &[(&str, &str)] = &[
        ("latents", "latents"),
        ("é潜在😀", "é潜在😀"),
        ("say \"hi\"", "say \"hi\""),
        ("\x1b[2J", "\\u{1b}[2J"),
        ("a\r\nb\tc\0", "a\\u{d}\\u{a}b\\u{9}c\\u{0}"),
        ("\x7f\u{9b}31m", "\\u{7f}\\u{9b}31m"),
        (
            "\u{202e}gnp.exe\u{2028}\u{feff}\u{200b}",
            "\\u{202e}gnp.exe\\u{2028}\\u{feff}\\u{200b}",
        ),
        ("a\u{3164}b\u{115f}", "a\\u{3164}b\\u{115f}"),
    ];

    #[test]
    fn what_is_not_printable_is_escaped() {
        for &(text, shown) in TEXTS {
            assert_eq!(line(text), shown);
            assert!(line(text).chars().all(|c| !c.is_control()));
        }
    }

    #[test]
    fn json_says_what_it_said() {
        for &(text, _) in TEXTS {
            let raw = serde_json::to_string(text).unwrap();
            let safe = json(&raw);
            assert!(safe.chars().all(is_printable), "{safe}");
            assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
        }
        assert_eq!(json("{\r\n\t\"a\": 1}"), "{   \"a\": 1}");
    }

    #[test]
    fn strings_of_messages_are_unescaped_first() {
        let value = Value::parse(br#""\u001b[2J\\n\ud83d \ud83d\ude00""#).unwrap();
        assert_eq!(
            of_str(value.as_str().unwrap()),
            "\\u{1b}[2J\\\\n\\u{d83d} 😀"
        );
    }
}
