//! The name of a request, kept beyond the message that it came in.

use alloc::string::String;
use alloc::sync::Arc;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::json::Str;
use crate::json::writer;

/// The id of a request: what [`request_id`](super::Control::request_id) says, owned.
///
/// Compares by what it says, so that two JSON spellings of one text are one id.
/// A lone surrogate, which Python can send and no Rust text can hold, is kept
/// and written back as it came. Cheap to clone: the text is shared.
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
/// use tensorwire::transfer::RequestId;
///
/// let spelled = Value::parse(br#""caf\u00e9-1""#)?;
/// let id = RequestId::from(spelled.as_str()?);
/// assert_eq!(id, RequestId::from("café-1"));
/// assert_eq!(id.text().as_plain(), Some("café-1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RequestId {
    /// The text itself; only with a lone surrogate in it the JSON that Python writes.
    text: Arc<str>,
    escaped: bool,
}

impl RequestId {
    /// The longest id that the machines of this module take, in bytes of its text as [`Str::raw`] gives it.
    ///
    /// Ids are kept for as long as a request lasts, by a peer's will; those
    /// that are seen have fewer than 64 bytes.
    pub const MAX_LEN: usize = 1024;

    /// Returns the text, to be compared, copied, or written into a message.
    #[must_use]
    pub fn text(&self) -> Str<'_> {
        Str::from_json(&self.text, self.escaped)
    }
}

impl From<Str<'_>> for RequestId {
    fn from(text: Str<'_>) -> Self {
        match text.to_cow() {
            Ok(plain) => Self {
                text: plain.into(),
                escaped: false,
            },
            Err(_) => Self {
                text: spelled_by_python(text),
                escaped: true,
            },
        }
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self {
            text: text.into(),
            escaped: false,
        }
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        // Each text has one form here, so there is nothing to unescape.
        self.escaped == other.escaped && self.text == other.text
    }
}

impl Eq for RequestId {}

impl PartialEq<Str<'_>> for RequestId {
    fn eq(&self, other: &Str<'_>) -> bool {
        self.text() == *other
    }
}

impl PartialEq<str> for RequestId {
    fn eq(&self, other: &str) -> bool {
        self.text() == *other
    }
}

impl PartialEq<&str> for RequestId {
    fn eq(&self, other: &&str) -> bool {
        self.text() == **other
    }
}

impl Ord for RequestId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text().cmp(&other.text())
    }
}

impl PartialOrd for RequestId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.text(), f)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

/// What a map of requests is searched by without an allocation: a [`RequestId`] or a [`Str`].
///
/// ```text
/// let key: &dyn Key = &message.request_id;
/// requests.get(key)
/// ```
pub(crate) trait Key {
    /// The text that both compare by.
    fn key(&self) -> Str<'_>;
}

impl Key for RequestId {
    fn key(&self) -> Str<'_> {
        self.text()
    }
}

impl Key for Str<'_> {
    fn key(&self) -> Str<'_> {
        *self
    }
}

impl<'a> Borrow<dyn Key + 'a> for RequestId {
    fn borrow(&self) -> &(dyn Key + 'a) {
        self
    }
}

impl PartialEq for dyn Key + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for dyn Key + '_ {}

impl Ord for dyn Key + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for dyn Key + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for dyn Key + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// The one spelling that Python has for a text, without the quotes.
fn spelled_by_python(text: Str<'_>) -> Arc<str> {
    let json = writer::to_vec(|writer| writer.put_str(text));
    let json = String::from_utf8(json).unwrap_or_default();
    // Between two quotes, always.
    let inner = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'));
    inner.unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;
    use crate::json::Value;

    fn spelled(json: &str) -> Str<'_> {
        Value::parse(json.as_bytes()).unwrap().as_str().unwrap()
    }

    /// (one spelling, another of the same text)
    const SAME: &[(&str, &str)] = &[
        (r#""r1""#, r#""\u00721""#),
        (r#""""#, r#""""#),
        (r#""a\/b""#, r#""a/b""#),
        (r#""caf\u00E9""#, "\"café\""),
        (r#""\ud83d\ude00""#, "\"😀\""),
        (r#""\uD800 a""#, r#""\ud800 \u0061""#),
        (r#""\udc00\ud800""#, r#""\uDC00\uD800""#),
    ];

    #[test]
    fn spellings_of_one_text_are_one_id() {
        for (first, second) in SAME {
            let ids = [spelled(first).into(), spelled(second).into()];
            let [a, b]: [RequestId; 2] = ids;
            assert_eq!(a, b, "{first}");
            assert_eq!(a.cmp(&b), Ordering::Equal);
            assert_eq!(a, spelled(second));
            let map = HashMap::from([(a, 1)]);
            assert_eq!(map.get(&b), Some(&1));
            assert_eq!(map.get(&spelled(first) as &dyn Key), Some(&1));
            assert_eq!(map.get(&spelled(second) as &dyn Key), Some(&1));
            let map: BTreeMap<_, _> = map.into_iter().collect();
            assert_eq!(map.get(&spelled(second) as &dyn Key), Some(&1));
        }
    }

    #[test]
    fn other_texts_are_other_ids() {
        let texts = [
            r#""""#,
            r#""r1""#,
            r#""r1 ""#,
            r#""\ud800""#,
            r#""\\ud800""#,
            r#""\udc00\ud800""#,
            r#""\ud800\udc00""#,
            "\"\u{fffd}\"",
        ];
        for (at, first) in texts.iter().enumerate() {
            for second in &texts[at + 1..] {
                let (a, b) = (spelled(first), spelled(second));
                assert_ne!(RequestId::from(a), RequestId::from(b), "{first} {second}");
                assert!((&a as &dyn Key) != (&b as &dyn Key));
                assert_eq!(RequestId::from(a).cmp(&RequestId::from(b)), a.cmp(&b));
            }
        }
    }

    #[test]
    fn a_lone_surrogate_is_written_back_as_python_spells_it() {
        let id = RequestId::from(spelled("\"\\uD800 caf\u{e9} \\\"\""));
        assert_eq!(id.text().raw(), r#"\ud800 caf\u00e9 \""#);
        assert!(id.text().is_escaped());
        assert_eq!(id, RequestId::from(id.text()));
        assert_eq!(std::format!("{id}"), "\u{fffd} café \"");
        assert_eq!(std::format!("{:?}", RequestId::from("a\nb")), r#""a\nb""#);
    }
}
