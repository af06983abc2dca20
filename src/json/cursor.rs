//! The one reader of a JSON text: it takes a whole token or fails and stays.
//!
//! The text is known to be UTF-8, so a token that starts and ends at ASCII
//! bytes is a `str`. Strings are scanned a word of eight bytes at a time.

use super::scan::{
    past_digits, past_plain_members, past_plain_number, past_plain_string, plain_run, starts_white,
};
use super::{Str, ValueType};
use crate::Limits;
use crate::error::{DecodeError, DecodeErrorKind, SyntaxError};

/// Whether `NaN`, `Infinity` and `-Infinity` are numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NonFinite {
    Accept,
    Refuse,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self {
            text,
            rest: text.as_bytes(),
        }
    }

    /// Checks the encoding of `bytes`, the one thing that is checked of a text as a whole.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        core::str::from_utf8(bytes)
            .map(Self::new)
            .map_err(|error| DecodeError::new(DecodeErrorKind::InvalidUtf8, error.valid_up_to()))
    }

    /// The text that it reads, from its start.
    pub(crate) const fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn offset(&self) -> usize {
        // The rest is a tail of the text.
        self.text.len().saturating_sub(self.rest.len())
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Continues at `rest`, a tail of what was left.
    pub(crate) fn advance_to(&mut self, rest: &'a [u8]) {
        self.rest = rest;
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// The text from `start` to here. Both lie beside ASCII bytes, so it is never cut inside a character.
    pub(crate) fn text_since(&self, start: usize) -> &'a str {
        self.text.get(start..self.offset()).unwrap_or_default()
    }

    pub(crate) const fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind, self.offset())
    }

    pub(crate) fn syntax(&self, error: SyntaxError) -> DecodeError {
        self.error(DecodeErrorKind::Syntax(error))
    }

    /// What stands here cannot stand here.
    ///
    /// Takes a copy, so that the cursor can stay in registers.
    #[cold]
    pub(crate) fn unexpected(self) -> DecodeError {
        self.syntax(match self.peek() {
            Some(found) => SyntaxError::UnexpectedByte { found },
            None => SyntaxError::UnexpectedEnd,
        })
    }

    #[inline]
    pub(crate) fn skip_whitespace(&mut self) {
        while let Some((b' ' | b'\t' | b'\n' | b'\r', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
    }

    /// Takes these bytes if they are next.
    #[inline]
    pub(crate) fn take_prefix(&mut self, prefix: &[u8]) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes `byte` if it is next.
    #[inline]
    pub(crate) fn take_if(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((&first, rest)) if first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    #[inline]
    pub(crate) fn take_byte(&mut self, byte: u8) -> Result<(), DecodeError> {
        if self.take_if(byte) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    /// Demands that only white space is left.
    pub(crate) fn finish(mut self) -> Result<(), DecodeError> {
        self.skip_whitespace();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error(DecodeErrorKind::TrailingData)),
        }
    }

    /// The type that the next value has by its first byte.
    #[inline]
    pub(crate) fn peek_type(&self) -> Result<ValueType, DecodeError> {
        match self.peek() {
            Some(b'{') => Ok(ValueType::Object),
            Some(b'[') => Ok(ValueType::Array),
            Some(b'"') => Ok(ValueType::String),
            Some(b't' | b'f') => Ok(ValueType::Bool),
            Some(b'n') => Ok(ValueType::Null),
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => Ok(ValueType::Number),
            _ => Err(self.unexpected()),
        }
    }

    /// Demands that the next value has this type, and leaves it there.
    #[inline]
    pub(crate) fn expect_type(&self, expected: ValueType) -> Result<(), DecodeError> {
        match (expected, self.rest) {
            (ValueType::Object, [b'{', ..]) | (ValueType::Array, [b'[', ..]) => return Ok(()),
            _ => {}
        }
        let actual = self.peek_type()?;
        if actual == expected {
            Ok(())
        } else {
            Err(self.error(DecodeErrorKind::WrongType { expected, actual }))
        }
    }

    #[inline]
    pub(crate) fn take_string(&mut self) -> Result<Str<'a>, DecodeError> {
        if let Some(rest) = past_plain_string(self.rest) {
            let content = self.plain_content(rest);
            self.rest = rest;
            return Ok(content);
        }
        self.take_any_string()
    }

    /// The plain string that starts here and after which comes `rest`.
    #[inline]
    fn plain_content(&self, rest: &[u8]) -> Str<'a> {
        // The quotes are of one byte each.
        let start = self.offset().saturating_add(1);
        let end = self.text.len().saturating_sub(rest.len());
        let content = self.text.get(start..end.saturating_sub(1));
        Str::from_json(content.unwrap_or_default(), false)
    }

    #[inline(never)]
    fn take_any_string(&mut self) -> Result<Str<'a>, DecodeError> {
        let mut cursor = *self;
        cursor.take_byte(b'"')?;
        let start = cursor.offset();
        let mut escaped = false;
        loop {
            cursor.advance(plain_run(cursor.rest));
            match cursor.peek() {
                Some(b'"') => {
                    let content = cursor.text_since(start);
                    cursor.advance(1);
                    *self = cursor;
                    return Ok(Str::from_json(content, escaped));
                }
                Some(b'\\') => {
                    cursor.skip_escape()?;
                    escaped = true;
                }
                Some(_) => return Err(cursor.syntax(SyntaxError::ControlCharacter)),
                None => return Err(cursor.unexpected()),
            }
        }
    }

    fn skip_escape(&mut self) -> Result<(), DecodeError> {
        let length = match self.rest {
            [
                _,
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't',
                ..,
            ] => 2,
            [_, b'u', hex @ ..] => {
                let digits = hex.iter().take(4);
                let valid = digits.clone().take_while(|byte| byte.is_ascii_hexdigit());
                match (digits.len(), valid.count()) {
                    (_, 4) => 6,
                    (seen, valid) if seen == valid => {
                        self.advance(self.rest.len());
                        return Err(self.unexpected());
                    }
                    _ => return Err(self.syntax(SyntaxError::InvalidEscape)),
                }
            }
            [_] => {
                self.advance(1);
                return Err(self.unexpected());
            }
            _ => return Err(self.syntax(SyntaxError::InvalidEscape)),
        };
        self.advance(length);
        Ok(())
    }

    /// Takes a number's text, and says whether it is written as an integer.
    #[inline]
    pub(crate) fn take_number(
        &mut self,
        non_finite: NonFinite,
    ) -> Result<(&'a str, bool), DecodeError> {
        let mut cursor = *self;
        let start = cursor.offset();
        let negative = cursor.take_if(b'-');
        match cursor.peek() {
            Some(b'0') => cursor.advance(1),
            Some(b'1'..=b'9') => cursor.skip_digits(),
            Some(b'I') => return self.take_non_finite(negative, b"Infinity", non_finite),
            Some(b'N') if !negative => return self.take_non_finite(false, b"NaN", non_finite),
            None => return Err(cursor.unexpected()),
            Some(_) => return Err(cursor.syntax(SyntaxError::InvalidNumber)),
        }
        let mut integer = true;
        if cursor.take_if(b'.') {
            integer = false;
            cursor.take_digits()?;
        }
        if cursor.take_if(b'e') || cursor.take_if(b'E') {
            integer = false;
            let _sign = cursor.take_if(b'+') || cursor.take_if(b'-');
            cursor.take_digits()?;
        }
        if let Some(b'0'..=b'9') = cursor.peek() {
            // Only a leading zero leaves a digit over.
            return Err(cursor.syntax(SyntaxError::InvalidNumber));
        }
        let text = cursor.text_since(start);
        *self = cursor;
        Ok((text, integer))
    }

    #[inline]
    fn skip_digits(&mut self) {
        self.rest = past_digits(self.rest);
    }

    /// At least one digit.
    fn take_digits(&mut self) -> Result<(), DecodeError> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.skip_digits();
                Ok(())
            }
            Some(_) => Err(self.syntax(SyntaxError::InvalidNumber)),
            None => Err(self.unexpected()),
        }
    }

    #[cold]
    fn take_non_finite(
        &mut self,
        negative: bool,
        token: &[u8],
        non_finite: NonFinite,
    ) -> Result<(&'a str, bool), DecodeError> {
        let mut cursor = *self;
        let start = cursor.offset();
        cursor.advance(usize::from(negative));
        cursor.take_literal(token)?;
        if non_finite == NonFinite::Refuse {
            return Err(self.error(DecodeErrorKind::NonFinite));
        }
        *self = cursor;
        Ok((self.text_since(start), false))
    }

    #[inline(always)]
    fn skip_string(&mut self) -> Result<(), DecodeError> {
        match past_plain_string(self.rest) {
            Some(rest) => self.rest = rest,
            None => self.out_of_line(|cursor| cursor.take_any_string().map(drop))?,
        }
        Ok(())
    }

    #[inline(always)]
    fn skip_number(&mut self, non_finite: NonFinite) -> Result<(), DecodeError> {
        match past_plain_number(self.rest) {
            Some(rest) => self.rest = rest,
            None => self.out_of_line(|cursor| cursor.take_any_number(non_finite))?,
        }
        Ok(())
    }

    /// Goes past an object's key and the colon, with white space around it.
    #[inline(always)]
    fn skip_key(&mut self) -> Result<(), DecodeError> {
        if let Some([b':', rest @ ..]) = past_plain_string(self.rest)
            && !starts_white(rest)
        {
            self.rest = rest;
            return Ok(());
        }
        self.out_of_line(|cursor| cursor.take_any_key().map(drop))
    }

    /// At a key: goes past plain members, or else past the key alone; says which.
    #[inline(always)]
    fn skip_plain_members(&mut self) -> Result<bool, DecodeError> {
        if let Some(rest) = past_plain_members(self.rest) {
            self.rest = rest;
            return Ok(true);
        }
        self.skip_key()?;
        Ok(false)
    }

    /// Does what is rare on a copy, so that a cursor can stay in registers.
    #[inline(always)]
    pub(crate) fn out_of_line<R>(
        &mut self,
        rare: impl FnOnce(&mut Self) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        let mut copy = *self;
        let result = rare(&mut copy)?;
        *self = copy;
        Ok(result)
    }

    #[inline(never)]
    fn take_any_number(&mut self, non_finite: NonFinite) -> Result<(), DecodeError> {
        self.take_number(non_finite).map(drop)
    }

    /// Takes exactly these bytes; the error is at the first other one.
    pub(crate) fn take_literal(&mut self, literal: &[u8]) -> Result<(), DecodeError> {
        if let Some(rest) = self.rest.strip_prefix(literal) {
            self.rest = rest;
            return Ok(());
        }
        let mut cursor = *self;
        for &byte in literal {
            cursor.take_byte(byte)?;
        }
        Ok(())
    }

    /// Takes `,` or the closing byte of an array or object, with white space
    /// around it, and says whether another member follows.
    #[inline(always)]
    pub(crate) fn take_separator(&mut self, close: u8) -> Result<bool, DecodeError> {
        match self.rest {
            [b',', rest @ ..] if !starts_white(rest) => {
                self.rest = rest;
                return Ok(true);
            }
            &[byte, ref rest @ ..] if byte == close => {
                self.rest = rest;
                return Ok(false);
            }
            _ => {}
        }
        self.out_of_line(|cursor| cursor.take_spaced_separator(close))
    }

    #[inline(never)]
    fn take_spaced_separator(&mut self, close: u8) -> Result<bool, DecodeError> {
        self.skip_whitespace();
        if self.take_if(b',') {
            self.skip_whitespace();
            Ok(true)
        } else {
            self.take_byte(close)?;
            Ok(false)
        }
    }

    /// Takes an object's key and the colon, with white space around it.
    #[inline]
    pub(crate) fn take_key(&mut self) -> Result<Str<'a>, DecodeError> {
        if let Some(rest @ [b':', after @ ..]) = past_plain_string(self.rest)
            && !starts_white(after)
        {
            let key = self.plain_content(rest);
            self.rest = after;
            return Ok(key);
        }
        self.out_of_line(Self::take_any_key)
    }

    #[inline(never)]
    fn take_any_key(&mut self) -> Result<Str<'a>, DecodeError> {
        let key = self.take_string()?;
        self.skip_whitespace();
        self.take_byte(b':')?;
        self.skip_whitespace();
        Ok(key)
    }

    /// Checks the syntax of the next value, whatever it is, and goes past it.
    ///
    /// `depth` containers are open around it. The ones inside are kept as one
    /// bit each, so that no input makes the stack grow.
    #[inline(always)]
    pub(crate) fn skip_value(
        &mut self,
        depth: usize,
        limits: &Limits,
        non_finite: NonFinite,
    ) -> Result<(), DecodeError> {
        // An object of plain members, as scalars mostly are, opens one level.
        if depth < limits.depth()
            && let [b'{', members @ ..] = self.rest
            && let Some(rest) = past_plain_members(members)
        {
            if let [b'}', rest @ ..] = rest {
                self.rest = rest;
                return Ok(());
            }
            return self
                .out_of_line(|cursor| cursor.skip_any_value(rest, 1, depth, limits, non_finite));
        }
        self.out_of_line(|cursor| cursor.skip_any_value(cursor.rest, 0, depth, limits, non_finite))
    }

    /// Goes on with [`skip_value`](Self::skip_value) at `rest`: at the value,
    /// or, with one level open, after a value of its members.
    #[inline(never)]
    fn skip_any_value(
        &mut self,
        rest: &'a [u8],
        mut levels: usize,
        depth: usize,
        limits: &Limits,
        non_finite: NonFinite,
    ) -> Result<(), DecodeError> {
        let mut cursor = *self;
        cursor.rest = rest;
        // The lowest bit says whether the innermost container is an object.
        let mut open: u128 = 1;
        let mut ended = levels > 0;
        let room = limits.depth().saturating_sub(depth);
        loop {
            match cursor.peek() {
                _ if ended => ended = false,
                Some(b'"') => cursor.skip_string()?,
                Some(b'-' | b'0'..=b'9' | b'N' | b'I') => cursor.skip_number(non_finite)?,
                Some(byte @ (b'{' | b'[')) => {
                    if levels >= room {
                        let limit = limits.depth();
                        return Err(cursor.error(DecodeErrorKind::DepthLimit { limit }));
                    }
                    let object = byte == b'{';
                    cursor.advance(1);
                    cursor.skip_whitespace();
                    if !cursor.take_if(if object { b'}' } else { b']' }) {
                        levels = levels.saturating_add(1);
                        open = (open << 1) | u128::from(object);
                        if !object || !cursor.skip_plain_members()? {
                            continue;
                        }
                    }
                }
                Some(b't') => cursor.out_of_line(|cursor| cursor.take_literal(b"true"))?,
                Some(b'f') => cursor.out_of_line(|cursor| cursor.take_literal(b"false"))?,
                Some(b'n') => cursor.out_of_line(|cursor| cursor.take_literal(b"null"))?,
                _ => return Err(cursor.unexpected()),
            }
            // A value has ended; so may the containers that it is the last of.
            loop {
                if levels == 0 {
                    *self = cursor;
                    return Ok(());
                }
                let object = open & 1 == 1;
                if cursor.take_separator(if object { b'}' } else { b']' })? {
                    if !object || !cursor.skip_plain_members()? {
                        break;
                    }
                    continue;
                }
                open >>= 1;
                levels = levels.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_leaves_the_cursor_where_it_was() {
        for text in [
            r#""abc"#, r#""\x""#, r#""\u12"#, "-", "01", "1.", "1e", "-I", "Nan",
        ] {
            let mut cursor = Cursor::new(text);
            let string = cursor.take_string().is_err();
            let number = cursor.take_number(NonFinite::Accept).is_err();
            assert!(string && number, "{text}");
            assert_eq!(cursor.offset(), 0, "{text}");
        }
    }

    #[test]
    fn nesting_is_refused_at_the_level_over_the_cap() {
        let limits = Limits::new().with_depth(3);
        for (text, verdict) in [
            ("[[[]]]", Ok(())),
            (r#"{"a":{"b":[]}}"#, Ok(())),
            ("[[[[]]]]", Err(3)),
            (r#"[{"a":[{}]}]"#, Err(7)),
        ] {
            let mut cursor = Cursor::new(text);
            let result = cursor.skip_value(0, &limits, NonFinite::Refuse);
            assert_eq!(result.map_err(|error| error.offset()), verdict, "{text}");
        }
    }
}
