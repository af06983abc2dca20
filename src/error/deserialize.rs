//! Why a value does not deserialize into the caller's type.

use core::error::Error;
use core::fmt::{self, Write as _};

use super::{ValueError, ValueErrorKind};

/// A value cannot be deserialized into the type asked for.
///
/// Small and `Copy`. What a type's own `Deserialize` complains about is kept
/// as a [`DeserializeMessage`]: short and safe to log, whatever the peer sent.
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
///
/// #[derive(Debug, serde::Deserialize)]
/// struct Request {
///     seed: u64,
/// }
///
/// let value = Value::parse(br#"[{"steps":30}]"#)?;
/// let error = value.deserialize::<Vec<Request>>().unwrap_err();
/// assert_eq!(error.to_string(), "missing field `seed` at byte 1");
/// # Ok::<(), tensorwire::error::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DeserializeError {
    kind: DeserializeErrorKind,
    /// `None` until it has passed a place that knows.
    offset: Option<usize>,
}

impl DeserializeError {
    pub(crate) const fn new(kind: DeserializeErrorKind, offset: usize) -> Self {
        Self {
            kind,
            offset: Some(offset),
        }
    }

    const fn somewhere(kind: DeserializeErrorKind) -> Self {
        Self { kind, offset: None }
    }

    /// Says where the value starts that it is about, unless that is said already.
    #[must_use]
    pub(crate) fn at(mut self, offset: usize) -> Self {
        self.offset = self.offset.or(Some(offset));
        self
    }

    /// Returns what is wrong.
    #[must_use]
    pub const fn kind(&self) -> DeserializeErrorKind {
        self.kind
    }

    /// Returns where the innermost value that it is about starts: a byte of the document it was read from.
    ///
    /// For a missing field it is the object, for a duplicate one the second
    /// key. It is 0 for an error that a `Deserialize` implementation made and
    /// that no value was read for.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset.unwrap_or_default()
    }
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        match self.offset {
            Some(offset) => write!(f, " at byte {offset}"),
            None => Ok(()),
        }
    }
}

impl Error for DeserializeError {}

impl serde::de::Error for DeserializeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::somewhere(DeserializeErrorKind::Message(DeserializeMessage::new(
            &message,
        )))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::somewhere(DeserializeErrorKind::MissingField(field))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::somewhere(DeserializeErrorKind::DuplicateField(field))
    }
}

impl From<ValueError> for DeserializeError {
    fn from(error: ValueError) -> Self {
        Self::new(DeserializeErrorKind::Value(error.kind()), error.offset())
    }
}

/// Why a value cannot be deserialized into the type asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DeserializeErrorKind {
    /// The type takes this field once, and met it twice.
    DuplicateField(&'static str),
    /// What the type's own `Deserialize` says.
    Message(DeserializeMessage),
    /// The object lacks this field of the type.
    MissingField(&'static str),
    /// Where an enum belongs there is neither a string nor an object of one member.
    NotAVariant,
    /// The array or object has more members than the type takes.
    TrailingElements,
    /// The value has another type, or does not fit the one asked for.
    Value(ValueErrorKind),
}

impl fmt::Display for DeserializeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateField(field) => write!(f, "duplicate field `{field}`"),
            Self::Message(message) => message.fmt(f),
            Self::MissingField(field) => write!(f, "missing field `{field}`"),
            Self::NotAVariant => {
                f.write_str("enum is neither a string nor an object of one member")
            }
            Self::TrailingElements => f.write_str("more elements than the type takes"),
            Self::Value(kind) => kind.fmt(f),
        }
    }
}

/// A message of bounded length, with whatever a log could trip over escaped.
///
/// A longer one ends in three dots.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct DeserializeMessage {
    bytes: [u8; MESSAGE_BYTES],
    len: u8,
}

impl DeserializeMessage {
    fn new(message: &impl fmt::Display) -> Self {
        let mut builder = MessageBuilder {
            message: Self {
                bytes: [0; MESSAGE_BYTES],
                len: 0,
            },
            full: false,
        };
        // It fails when the message is full, which is where it is cut.
        let _ = write!(builder, "{message}");
        builder.message
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        let start = usize::from(self.len);
        let end = start.saturating_add(text.len());
        if let (Some(room), Ok(len)) = (self.bytes.get_mut(start..end), u8::try_from(end)) {
            room.copy_from_slice(text.as_bytes());
            self.len = len;
        }
    }
}

impl fmt::Debug for DeserializeMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeserializeMessage")
            .field(&self.as_str())
            .finish()
    }
}

impl fmt::Display for DeserializeMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

struct MessageBuilder {
    message: DeserializeMessage,
    full: bool,
}

impl MessageBuilder {
    /// Adds all of `piece` or, where it has no room, the dots and nothing ever after.
    fn push(&mut self, piece: impl Iterator<Item = char> + Clone) -> fmt::Result {
        let length: usize = piece.clone().map(char::len_utf8).sum();
        let end = usize::from(self.message.len).saturating_add(length);
        if self.full || end > MESSAGE_BYTES.saturating_sub(DOTS.len()) {
            if !self.full {
                self.message.push(DOTS);
            }
            self.full = true;
            return Err(fmt::Error);
        }
        for c in piece {
            self.message.push(c.encode_utf8(&mut [0; 4]));
        }
        Ok(())
    }
}

impl fmt::Write for MessageBuilder {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                // What serde quotes is escaped by its own `Debug` already.
                '"' | '\'' | '\\' => self.push(core::iter::once(c))?,
                _ => self.push(c.escape_debug())?,
            }
        }
        Ok(())
    }
}

const DOTS: &str = "...";

/// Keeps the whole error under 128 bytes, past which clippy holds an error to
/// be too large to return, and has room for serde's own messages.
const MESSAGE_BYTES: usize = 88;

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::Error as _;
    use std::string::ToString;

    #[test]
    fn messages_are_short_and_safe_to_show() {
        let error = DeserializeError::custom("bad \u{1b}[31m \"\\u\" é\n\u{202e}");
        assert_eq!(error.to_string(), "bad \\u{1b}[31m \"\\u\" é\\n\\u{202e}");
        assert_eq!(error.offset(), 0);
        for length in 0..200 {
            let text = std::format!("{}\u{202e}", "é".repeat(length));
            let DeserializeErrorKind::Message(message) = DeserializeError::custom(&text).kind()
            else {
                panic!("not a message");
            };
            let shown = message.as_str();
            assert!(shown.len() <= MESSAGE_BYTES);
            let whole = shown.ends_with("é\\u{202e}") || shown == "\\u{202e}";
            let cut = shown.ends_with("é...");
            assert!(whole != cut, "{shown}");
        }
    }

    #[test]
    fn the_error_is_small() {
        assert!(size_of::<DeserializeError>() < 128);
    }

    #[test]
    fn the_innermost_place_stays() {
        let error = DeserializeError::missing_field("seed").at(7).at(1);
        assert_eq!(error.offset(), 7);
        assert_eq!(error.to_string(), "missing field `seed` at byte 7");
    }
}
