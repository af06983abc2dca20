//! Strings as they stand in a JSON text, compared and copied without unescaping them first.

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use super::fingerprint::Fingerprint;
use crate::error::{ValueError, ValueErrorKind};

/// A string of a JSON text, still escaped, or a plain text on its way into one.
///
/// Compares by what it says: `"caf\u00e9"` and `"café"` are equal. Python
/// writes a lone surrogate as an escape that no Rust text can hold; such a
/// string compares and iterates, and only [`copy_to`](Self::copy_to) and its
/// kin refuse it.
///
/// `Display`, and with it `to_string`, gives the text itself, with U+FFFD for each
/// lone surrogate. `Debug` escapes whatever a terminal or a log could trip over:
/// log what a peer sent with `{:?}`.
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
///
/// let value = Value::parse(br#""caf\u00e9""#)?;
/// let text = value.as_str()?;
/// assert!(text == "café");
/// let mut buffer = [0; 16];
/// assert_eq!(text.copy_to(&mut buffer)?, "café");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Str<'a> {
    text: &'a str,
    /// Whether `text` is JSON with escapes in it, or just what it says.
    escaped: bool,
    /// Where it stands in its document.
    offset: usize,
}

impl<'a> Str<'a> {
    pub(crate) const fn from_json(text: &'a str, escaped: bool) -> Self {
        Self {
            text,
            escaped,
            offset: 0,
        }
    }

    pub(crate) const fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }

    /// Where it stands in its document.
    pub(crate) const fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) const fn is_escaped(&self) -> bool {
        self.escaped
    }

    /// Returns the text as it stands: between the quotes for a string that was read.
    #[must_use]
    pub const fn raw(&self) -> &'a str {
        self.text
    }

    /// Returns the text itself, if it holds no escapes.
    ///
    /// Python escapes everything that is not printable ASCII, so names and
    /// enumerations nearly always give `Some`.
    #[must_use]
    pub const fn as_plain(&self) -> Option<&'a str> {
        if self.escaped { None } else { Some(self.text) }
    }

    /// Iterates over the code points, a surrogate pair as one and a lone surrogate as itself.
    #[must_use]
    pub const fn code_points(&self) -> CodePoints<'a> {
        CodePoints {
            rest: self.text,
            escaped: self.escaped,
        }
    }

    /// Returns the length of the text in bytes of UTF-8, without its escapes.
    ///
    /// # Errors
    ///
    /// [`ValueErrorKind::LoneSurrogate`].
    pub fn decoded_len(&self) -> Result<usize, ValueError> {
        if !self.escaped {
            return Ok(self.text.len());
        }
        self.chars().try_fold(
            0_usize,
            |sum, next| Ok(sum.saturating_add(next?.len_utf8())),
        )
    }

    /// Copies the text, unescaped, to the start of `buffer`.
    ///
    /// # Errors
    ///
    /// [`ValueErrorKind::LoneSurrogate`], or [`ValueErrorKind::BufferTooSmall`]
    /// with the length needed; then `buffer` holds anything.
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b str, ValueError> {
        let capacity = buffer.len();
        let needed = self.decoded_len()?;
        let Some(target) = buffer.get_mut(..needed) else {
            let kind = ValueErrorKind::BufferTooSmall { needed, capacity };
            return Err(ValueError::new(kind, self.offset));
        };
        if self.escaped {
            let mut rest = &mut *target;
            for next in self.chars() {
                let mut utf8 = [0; 4];
                let utf8 = next?.encode_utf8(&mut utf8).as_bytes();
                let Some((head, tail)) = rest.split_at_mut_checked(utf8.len()) else {
                    break;
                };
                head.copy_from_slice(utf8);
                rest = tail;
            }
        } else {
            target.copy_from_slice(self.text.as_bytes());
        }
        core::str::from_utf8(target)
            .map_err(|_| ValueError::new(ValueErrorKind::LoneSurrogate, self.offset))
    }

    /// Returns the text: borrowed if it holds no escapes.
    ///
    /// # Errors
    ///
    /// [`ValueErrorKind::LoneSurrogate`].
    #[cfg(feature = "alloc")]
    pub fn to_cow(&self) -> Result<alloc::borrow::Cow<'a, str>, ValueError> {
        match self.as_plain() {
            Some(text) => Ok(text.into()),
            None => self.chars().collect(),
        }
    }

    /// Returns the text with U+FFFD in place of each lone surrogate.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_cow_lossy(&self) -> alloc::borrow::Cow<'a, str> {
        match self.as_plain() {
            Some(text) => text.into(),
            None => self
                .code_points()
                .map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
        }
    }

    /// The half of its hash that names are sorted by.
    #[inline]
    pub(crate) fn fingerprint(&self, key: u64) -> u32 {
        Fingerprint::upper(self.keyed_hash(key))
    }

    /// A hash of what it says, the same in every spelling, and another for each key.
    #[inline]
    pub(crate) fn keyed_hash(&self, key: u64) -> u64 {
        let mut hash = Fingerprint::new(key);
        if self.escaped {
            for point in self.code_points() {
                let mut utf8 = [0; 4];
                // A lone surrogate counts as U+FFFD: a collision costs a comparison, nothing else.
                let next = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
                hash.push(next.encode_utf8(&mut utf8).as_bytes());
            }
        } else {
            hash.push_all(self.text.as_bytes());
        }
        hash.finish()
    }

    fn chars(&self) -> impl Iterator<Item = Result<char, ValueError>> + use<'a> {
        let error = ValueError::new(ValueErrorKind::LoneSurrogate, self.offset);
        self.code_points()
            .map(move |point| char::from_u32(point).ok_or(error))
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Self::from_json(text, false)
    }
}

#[cfg(feature = "alloc")]
impl<'a> From<&'a alloc::string::String> for Str<'a> {
    fn from(text: &'a alloc::string::String) -> Self {
        Self::from(text.as_str())
    }
}

impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        if self.escaped || other.escaped {
            self.cmp(other) == Ordering::Equal
        } else {
            self.text == other.text
        }
    }
}

impl Eq for Str<'_> {}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        *self == Str::from(other)
    }
}

impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq<Str<'_>> for str {
    fn eq(&self, other: &Str<'_>) -> bool {
        *other == *self
    }
}

impl PartialEq<Str<'_>> for &str {
    fn eq(&self, other: &Str<'_>) -> bool {
        *other == **self
    }
}

impl Hash for Str<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.code_points().for_each(|point| point.hash(state));
        // As `str` does, so that two texts in a row are told apart.
        state.write_u8(0xff);
    }
}

/// By code points, which is also the order of the UTF-8 bytes.
impl Ord for Str<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.escaped && other.escaped {
            let shared = shared_escaped(self.text, other.text);
            let after = |text: &Self| CodePoints {
                rest: text.text.get(shared..).unwrap_or_default(),
                escaped: true,
            };
            after(self).cmp(after(other))
        } else if self.escaped || other.escaped {
            self.code_points().cmp(other.code_points())
        } else {
            self.text.cmp(other.text)
        }
    }
}

impl PartialOrd for Str<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;

        if let Some(text) = self.as_plain() {
            return f.write_str(text);
        }
        for point in self.code_points() {
            f.write_char(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for point in self.code_points() {
            match char::from_u32(point) {
                Some(c) => write!(f, "{}", c.escape_debug())?,
                None => write!(f, "\\u{{{point:x}}}")?,
            }
        }
        f.write_str("\"")
    }
}

/// The code points of a [`Str`].
#[derive(Clone, Debug)]
pub struct CodePoints<'a> {
    rest: &'a str,
    escaped: bool,
}

impl<'a> CodePoints<'a> {
    /// What is still to come, as it stands.
    #[cfg(feature = "safetensors")]
    pub(crate) const fn rest(&self) -> &'a str {
        self.rest
    }

    /// The escape's value and length, at a backslash.
    fn escape(&self) -> Option<(u32, usize)> {
        let point = match self.rest.as_bytes().get(1)? {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b't' => 0x09,
            b'u' => return self.unicode_escape(),
            &other => u32::from(other),
        };
        Some((point, 2))
    }

    fn unicode_escape(&self) -> Option<(u32, usize)> {
        let bytes = self.rest.as_bytes();
        let unit = |at: usize| {
            let digits = bytes.get(at..)?.first_chunk::<4>()?;
            Some(digits.iter().fold(0, |unit, &digit| {
                // Known to be a hexadecimal digit; of those, letters have bit 6.
                let letter = u32::from(digit >> 6).wrapping_mul(9);
                (unit << 4) | (u32::from(digit & 0x0f).wrapping_add(letter))
            }))
        };
        let high = unit(2)?;
        if let 0xd800..=0xdbff = high
            && bytes.get(6..8) == Some(b"\\u")
            && let Some(low @ 0xdc00..=0xdfff) = unit(8)
        {
            // Both are in range, so neither difference wraps.
            let point = (high.wrapping_sub(0xd800) << 10) | low.wrapping_sub(0xdc00);
            return Some((point.wrapping_add(0x1_0000), 12));
        }
        Some((high, 6))
    }
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.escaped && self.rest.starts_with('\\') {
            let (point, length) = self.escape()?;
            self.rest = self.rest.get(length..).unwrap_or_default();
            return Some(point);
        }
        let mut chars = self.rest.chars();
        let next = chars.next()?;
        self.rest = chars.as_str();
        Some(u32::from(next))
    }
}

/// The length of a start that two escaped texts share; no code point goes across its end.
///
/// Names made to be alike are compared by the word so, not by the escape.
fn shared_escaped(a: &str, b: &str) -> usize {
    let (words, _) = a.as_bytes().as_chunks::<8>();
    let (others, _) = b.as_bytes().as_chunks::<8>();
    let same = words.iter().zip(others).take_while(|(a, b)| a == b).count();
    let text = a.as_bytes();
    let mut end = same.wrapping_mul(8);
    // A pair of surrogates, the longest there is, takes twelve bytes.
    while let start = end.saturating_sub(12)
        && let Some(tail) = text.get(start..end)
        && let Some(index) = tail.iter().rposition(|&byte| byte == b'\\')
    {
        // Backslashes in a row are escapes of two each; it may be the second of one.
        let last = start.wrapping_add(index);
        let before = text.get(..last).unwrap_or_default();
        let row = before.iter().rev().take_while(|&&byte| byte == b'\\');
        end = last.wrapping_sub(row.count() & 1);
        let before = text.get(..end).unwrap_or_default();
        let Some(
            [
                b'\\',
                b'u',
                b'd' | b'D',
                b'8' | b'9' | b'a' | b'b' | b'A' | b'B',
                _,
                _,
            ],
        ) = before.last_chunk()
        else {
            return end;
        };
        // A high surrogate, which belongs to what follows: back to where it starts.
        end = end.wrapping_sub(5);
    }
    let mut ends = (0..=end).rev();
    ends.find(|&end| a.is_char_boundary(end))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::vec::Vec;

    fn escaped(text: &str) -> Str<'_> {
        Str::from_json(text, true)
    }

    #[test]
    fn escapes_say_what_python_reads_from_them() {
        let cases: &[(&str, &[u32])] = &[
            (r"\u0061", &[0x61]),
            (r"\u00E9\u00e9", &[0xe9, 0xe9]),
            (r#"\"\\\/\b\f\n\r\t"#, &[0x22, 0x5c, 0x2f, 8, 12, 10, 13, 9]),
            (r"\ud83d\ude00!", &[0x1_f600, 0x21]),
            (r"\ud83d", &[0xd83d]),
            (r"\ud83d\ud83d\ude00", &[0xd83d, 0x1_f600]),
            (r"\ude00\ud83d", &[0xde00, 0xd83d]),
            (r"\ud83dx", &[0xd83d, 0x78]),
            (r"\udbff\udfff", &[0x10_ffff]),
            ("é\\n", &[0xe9, 10]),
        ];
        for (text, points) in cases {
            let read: Vec<_> = escaped(text).code_points().collect();
            assert_eq!(read, *points, "{text}");
        }
    }

    #[test]
    fn comparing_is_comparing_what_is_said() {
        assert_eq!(escaped(r"caf\u00e9"), Str::from("café"));
        assert!(escaped(r"\u0061b") < Str::from("ac"));
        assert!(escaped(r"\ud83d\ude00") > Str::from("\u{ffff}"));
        assert!(Str::from(r"\u0061") != "a");
    }

    #[test]
    fn the_order_is_that_of_the_code_points_wherever_texts_part() {
        let tokens = [
            "a",
            "é",
            "日",
            r"\\",
            r"\n",
            r"\u00e9",
            r"\u00E9",
            r"\ud83d",
            r"\uD83D\ude00",
            r"\ude00",
            "ud83d",
        ];
        let mut state: u32 = 1;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            usize::try_from(state >> 8).unwrap() % below
        };
        for _ in 0..20_000 {
            let mut text = |count: usize| -> std::string::String {
                (0..count).map(|_| tokens[random(tokens.len())]).collect()
            };
            let start = text(8);
            let [a, b] = [text(3), text(3)].map(|end| format!("{start}{end}"));
            let points = |text| escaped(text).code_points().collect::<Vec<_>>();
            assert_eq!(
                escaped(&a).cmp(&escaped(&b)),
                points(&a).cmp(&points(&b)),
                "{a} {b}"
            );
        }
    }

    #[test]
    fn fingerprints_are_of_what_is_said_whatever_its_length() {
        let mut plain = std::string::String::new();
        let mut spelled = std::string::String::new();
        let mut seen = std::collections::BTreeSet::new();
        for point in "latents_é😀_of_blocks\0\0\0\0\0\0\0\0\0aaaaaaaaaaaaaaaa".chars() {
            plain.push(point);
            for unit in point.encode_utf16(&mut [0; 2]) {
                spelled.push_str(&format!("\\u{unit:04x}"));
            }
            let fingerprint = Str::from(&*plain).fingerprint(7);
            assert_eq!(fingerprint, escaped(&spelled).fingerprint(7), "{plain}");
            assert_ne!(fingerprint, escaped(&spelled).fingerprint(8), "{plain}");
            assert!(seen.insert(fingerprint), "{plain}");
        }
    }

    #[test]
    fn copies_unescape_and_name_the_length_needed() {
        let text = escaped(r"caf\u00e9 \ud83d\ude00");
        assert_eq!(text.decoded_len(), Ok(10));
        let mut buffer = [0; 10];
        assert_eq!(text.copy_to(&mut buffer), Ok("café 😀"));
        let error = text.copy_to(&mut buffer[..9]).unwrap_err();
        let (needed, capacity) = (10, 9);
        assert_eq!(
            error.kind(),
            ValueErrorKind::BufferTooSmall { needed, capacity }
        );
        let lone = escaped(r"a\ud800").copy_to(&mut buffer).unwrap_err();
        assert_eq!(lone.kind(), ValueErrorKind::LoneSurrogate);
    }

    #[test]
    fn what_is_shown_is_the_text_and_for_a_log_safe() {
        let text = Str::from("a\u{1b}[31m\u{202e}\"\n");
        assert_eq!(format!("{text}"), "a\u{1b}[31m\u{202e}\"\n");
        assert_eq!(format!("{text:?}"), r#""a\u{1b}[31m\u{202e}\"\n""#);
        assert_eq!(
            format!("{}", escaped(r"caf\u00e9\n\ud800x")),
            "café\n\u{fffd}x"
        );
        assert_eq!(format!("{:?}", escaped(r"\ud800x")), "\"\\u{d800}x\"");
    }
}
