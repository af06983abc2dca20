//! Floats as Python writes them.

use core::fmt::Write as _;

/// The longest text that Python writes for an `f64`: `-2.2250738585072014e-308`.
pub(crate) const MAX_FLOAT_LEN: usize = 24;

/// Python's `repr` of `value`, or the bare token that `json.dumps` writes for it.
///
/// The digits are the shortest that read back as `value`; the layout is Python's.
pub(crate) fn format_float(value: f64) -> FloatText {
    let mut text = FloatText::default();
    if value.is_nan() {
        text.push(b"NaN");
        return text;
    }
    if value.is_sign_negative() {
        text.push(b"-");
    }
    if value.is_infinite() {
        text.push(b"Infinity");
        return text;
    }
    let scientific = shortest(value.abs());
    let (mantissa, exponent) = scientific
        .as_str()
        .split_once('e')
        .unwrap_or((scientific.as_str(), "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i16 = exponent.parse().unwrap_or_default();
    match exponent {
        -4..0 => {
            // 0.000ddd: the point stands `-exponent` places before the first digit.
            text.push(b"0.");
            for _ in exponent..-1 {
                text.push(b"0");
            }
            text.push(whole.as_bytes());
            text.push(fraction.as_bytes());
        }
        0..16 => {
            let places = usize::try_from(exponent).unwrap_or_default();
            text.push(whole.as_bytes());
            let (before, after) = fraction.split_at_checked(places).unwrap_or((fraction, ""));
            text.push(before.as_bytes());
            for _ in before.len()..places {
                text.push(b"0");
            }
            text.push(b".");
            text.push(if after.is_empty() {
                b"0"
            } else {
                after.as_bytes()
            });
        }
        _ => {
            text.push(mantissa.as_bytes());
            text.push(if exponent < 0 { b"e-" } else { b"e+" });
            let _ = write!(text, "{:02}", exponent.unsigned_abs());
        }
    }
    text
}

/// The shortest digits that read back as `value`, and of those the nearest, in
/// scientific notation.
///
/// Rust and Python differ where the value lies just half-way between two
/// texts that both read back: `{:e}` takes the upper, Python the even one. That
/// takes decimals as dense as the floats, and so 16 digits or more. Rounding to
/// a given number of digits is to even in both.
fn shortest(value: f64) -> FloatText {
    let mut text = FloatText::default();
    // Never fails: `{:e}` is a sign shorter than Python's longest text.
    let _ = write!(text, "{value:e}");
    let digits = text.as_str().bytes().take_while(|&byte| byte != b'e');
    let decimals = digits.count().saturating_sub("1.".len());
    if decimals >= 15 {
        let mut even = FloatText::default();
        let _ = write!(even, "{value:.decimals$e}");
        if even.as_str().parse() == Ok(value) {
            return even;
        }
    }
    text
}

/// A float's text, on the stack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FloatText {
    bytes: [u8; MAX_FLOAT_LEN],
    len: usize,
}

impl FloatText {
    fn push(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
            self.len = end;
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl core::fmt::Write for FloatText {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_laid_out_as_python_lays_them_out() {
        let cases: &[(f64, &str)] = &[
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (5.0, "5.0"),
            (7.5, "7.5"),
            (0.1, "0.1"),
            (123.456, "123.456"),
            (1e-4, "0.0001"),
            (1.5e-4, "0.00015"),
            (9.999e-5, "9.999e-05"),
            (1e-5, "1e-05"),
            (1e15, "1000000000000000.0"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            // Half-way between two texts of 17 digits.
            (1_595_418_169_715_085.3, "1595418169715085.2"),
            (1_595_418_169_715_085.8, "1595418169715085.8"),
            (1e16, "1e+16"),
            (1.25e16, "1.25e+16"),
            (1e22, "1e+22"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (-f64::MIN_POSITIVE, "-2.2250738585072014e-308"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "NaN"),
            (-f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, text) in cases {
            assert_eq!(format_float(*value).as_str(), *text);
        }
    }
}
