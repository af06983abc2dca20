//! Writes JSON byte for byte as Python's `json.dumps(x, separators=(",", ":"))`.

use super::number::format_float;
use super::scan::{bare_run, is_bare};
use super::{Str, Value};
use crate::error::EncodeError;

/// Writes into a buffer, and past its end goes on counting.
///
/// So the length of a text is what writing it into an empty buffer counts.
///
/// Public, though without public methods, because sealed traits name it.
#[derive(Debug)]
#[expect(unnameable_types, reason = "nobody outside is to name it")]
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    len: usize,
}

impl<'b> Writer<'b> {
    pub(crate) const fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// How many bytes the text has so far, whether they had room or not.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Leaves nothing of the text behind.
    pub(crate) fn blank(&mut self) {
        let written = self.len.min(self.buffer.len());
        if let Some(text) = self.buffer.get_mut(..written) {
            text.fill(0);
        }
    }

    /// The text; if it had no room, the buffer holds zeros.
    pub(crate) fn finish(mut self) -> Result<&'b mut [u8], EncodeError> {
        let (needed, capacity) = (self.len, self.buffer.len());
        if needed > capacity {
            self.blank();
        }
        let too_small = EncodeError::BufferTooSmall { needed, capacity };
        self.buffer.get_mut(..needed).ok_or(too_small)
    }

    #[inline]
    pub(crate) fn put_raw(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(room) = self.buffer.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
        }
        self.len = end;
    }

    pub(crate) fn put_bool(&mut self, value: bool) {
        self.put_raw(if value { b"true" } else { b"false" });
    }

    pub(crate) fn put_null(&mut self) {
        self.put_raw(b"null");
    }

    pub(crate) fn put_u64(&mut self, mut value: u64) {
        // 20 digits hold `u64::MAX`.
        let mut digits = [b'0'; 20];
        let mut first = digits.len();
        for slot in digits.iter_mut().rev() {
            first = first.saturating_sub(1);
            let digit = u8::try_from(value % 10).unwrap_or_default();
            *slot = b'0' | digit;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.put_raw(digits.get(first..).unwrap_or_default());
    }

    pub(crate) fn put_usize(&mut self, value: usize) {
        // No target has more than 64 bits of address.
        self.put_u64(u64::try_from(value).unwrap_or(u64::MAX));
    }

    pub(crate) fn put_u128(&mut self, value: u128) {
        match u64::try_from(value) {
            Ok(small) => self.put_u64(small),
            Err(_) => self.put_display(format_args!("{value}")),
        }
    }

    pub(crate) fn put_i128(&mut self, value: i128) {
        if value < 0 {
            self.put_raw(b"-");
        }
        self.put_u128(value.unsigned_abs());
    }

    pub(crate) fn put_f64(&mut self, value: f64) {
        self.put_raw(format_float(value).as_bytes());
    }

    pub(crate) fn put_value(&mut self, value: Value<'_>) {
        self.put_raw(value.raw().as_bytes());
    }

    /// Writes ASCII text that needs no escapes.
    pub(crate) fn put_display(&mut self, text: core::fmt::Arguments<'_>) {
        // Never fails: `write_str` does not.
        let _ = core::fmt::write(self, text);
    }

    /// Writes a quoted string.
    pub(crate) fn put_str(&mut self, text: Str<'_>) {
        self.put_raw(b"\"");
        if text.is_escaped() {
            for point in text.code_points() {
                self.put_code_point(point);
            }
        } else {
            self.put_escaped(text.raw());
        }
        self.put_raw(b"\"");
    }

    /// Writes the inside of a quoted string.
    pub(crate) fn put_escaped(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let bare = bare_run(rest.as_bytes());
            let (run, after) = rest.split_at_checked(bare).unwrap_or((rest, ""));
            self.put_raw(run.as_bytes());
            let mut chars = after.chars();
            if let Some(next) = chars.next() {
                self.put_code_point(u32::from(next));
            }
            rest = chars.as_str();
        }
    }

    fn put_code_point(&mut self, point: u32) {
        match u8::try_from(point) {
            Ok(byte) if is_bare(byte) => return self.put_raw(&[byte]),
            Ok(b'"') => return self.put_raw(b"\\\""),
            Ok(b'\\') => return self.put_raw(b"\\\\"),
            Ok(b'\n') => return self.put_raw(b"\\n"),
            Ok(b'\r') => return self.put_raw(b"\\r"),
            Ok(b'\t') => return self.put_raw(b"\\t"),
            Ok(0x08) => return self.put_raw(b"\\b"),
            Ok(0x0c) => return self.put_raw(b"\\f"),
            _ => {}
        }
        match point.checked_sub(0x1_0000) {
            None => self.put_unit(point),
            Some(above) => {
                self.put_unit(0xd800 | (above >> 10));
                self.put_unit(0xdc00 | (above & 0x3ff));
            }
        }
    }

    fn put_unit(&mut self, unit: u32) {
        let digit = |shift: u32| {
            let nibble = unit.wrapping_shr(shift) & 0xf;
            char::from_digit(nibble, 16).map_or(b'0', |digit| u8::try_from(digit).unwrap_or(b'0'))
        };
        self.put_raw(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
    }
}

impl core::fmt::Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.put_raw(text.as_bytes());
        Ok(())
    }
}

/// How many bytes `put` writes.
pub(crate) fn length(put: impl FnOnce(&mut Writer<'_>)) -> usize {
    let mut writer = Writer::new(&mut []);
    put(&mut writer);
    writer.len()
}

/// What `put` writes, at the start of `buffer`.
pub(crate) fn write(
    buffer: &mut [u8],
    put: impl FnOnce(&mut Writer<'_>),
) -> Result<&mut [u8], EncodeError> {
    let mut writer = Writer::new(buffer);
    put(&mut writer);
    writer.finish()
}

/// What `put` writes each time, in a vector of just its length.
#[cfg(feature = "alloc")]
pub(crate) fn to_vec(put: impl Fn(&mut Writer<'_>)) -> alloc::vec::Vec<u8> {
    let mut buffer = alloc::vec![0; length(&put)];
    put(&mut Writer::new(&mut buffer));
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    fn written(write: impl Fn(&mut Writer<'_>)) -> String {
        let mut counter = Writer::new(&mut []);
        write(&mut counter);
        let mut buffer = std::vec![0xa5; counter.len()];
        let mut writer = Writer::new(&mut buffer);
        write(&mut writer);
        writer.finish().unwrap();
        String::from_utf8(buffer).unwrap()
    }

    #[test]
    fn strings_are_escaped_as_python_escapes_them() {
        let cases = [
            ("", r#""""#),
            ("plain / text~", r#""plain / text~""#),
            ("\"\\\n\r\t\u{8}\u{c}", r#""\"\\\n\r\t\b\f""#),
            (
                "\0\u{1f}\u{7f}\u{80}é",
                r#""\u0000\u001f\u007f\u0080\u00e9""#,
            ),
            (
                "\u{ffff}\u{10000}\u{10ffff}",
                r#""\uffff\ud800\udc00\udbff\udfff""#,
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(written(|w| w.put_str(text.into())), expected);
        }
        let escaped = Str::from_json(r"\u0041\/\u00E9\ud800", true);
        assert_eq!(written(|w| w.put_str(escaped)), r#""A/\u00e9\ud800""#);
    }

    #[test]
    fn integers_are_written_whole() {
        for value in [0, 7, 10, -1, i128::from(u64::MAX), i128::MAX, i128::MIN] {
            assert_eq!(written(|w| w.put_i128(value)), std::format!("{value}"));
        }
        assert_eq!(
            written(|w| w.put_u128(u128::MAX)),
            std::format!("{}", u128::MAX)
        );
    }

    #[test]
    fn a_short_buffer_is_left_blank_and_the_length_told() {
        let mut buffer = [0xa5; 4];
        let mut writer = Writer::new(&mut buffer);
        writer.put_raw(b"abc");
        writer.put_raw(b"def");
        let (needed, capacity) = (6, 4);
        let error = EncodeError::BufferTooSmall { needed, capacity };
        assert_eq!(writer.finish(), Err(error));
        assert_eq!(buffer, [0; 4]);
    }
}
