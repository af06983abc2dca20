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
    if text.push_short(value.abs()) {
        return text;
    }
    text.push_any(value.abs());
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

    /// Pushes a value of any length.
    fn push_any(&mut self, value: f64) {
        let scientific = shortest(value);
        let (mantissa, exponent) = scientific
            .as_str()
            .split_once('e')
            .unwrap_or((scientific.as_str(), "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: i16 = exponent.parse().unwrap_or_default();
        match exponent {
            -4..0 => {
                // 0.000ddd: the point stands `-exponent` places before the first digit.
                self.push(b"0.");
                for _ in exponent..-1 {
                    self.push(b"0");
                }
                self.push(whole.as_bytes());
                self.push(fraction.as_bytes());
            }
            0..16 => {
                let places = usize::try_from(exponent).unwrap_or_default();
                self.push(whole.as_bytes());
                let (before, after) = fraction.split_at_checked(places).unwrap_or((fraction, ""));
                self.push(before.as_bytes());
                for _ in before.len()..places {
                    self.push(b"0");
                }
                self.push(b".");
                self.push(if after.is_empty() {
                    b"0"
                } else {
                    after.as_bytes()
                });
            }
            _ => {
                self.push(mantissa.as_bytes());
                self.push(if exponent < 0 { b"e-" } else { b"e+" });
                let _ = write!(self, "{:02}", exponent.unsigned_abs());
            }
        }
    }

    /// Pushes a value that has at most three decimals and fifteen digits, as most that people choose.
    ///
    /// Of so few digits no two texts are of one float, so that the first to
    /// read back is the shortest. Says whether it was one.
    fn push_short(&mut self, value: f64) -> bool {
        // Above, a float's unit is 1: adding it rounds, and leaves the integer in the low bits.
        const SHIFT: f64 = 4_503_599_627_370_496.0;
        for (decimals, power) in [(0, 1.0), (1, 10.0), (2, 100.0), (3, 1000.0)] {
            let shifted = value * power + SHIFT;
            let rounded = shifted - SHIFT;
            if rounded >= 1e15 {
                return false;
            }
            if rounded / power == value {
                let digits = shifted.to_bits() ^ SHIFT.to_bits();
                self.push_decimal(digits, decimals);
                return true;
            }
        }
        false
    }

    /// Pushes `digits` with a point before the last `decimals` of them, and at least one on either side.
    fn push_decimal(&mut self, mut digits: u64, decimals: usize) {
        // Fifteen digits, one more before or behind the point, and the point; written from the end.
        let mut bytes = [b'0'; 17];
        // Without decimals there is a zero behind the point.
        let mut first = bytes.len().saturating_sub(usize::from(decimals == 0));
        let mut put = |byte| {
            first = first.saturating_sub(1);
            if let Some(slot) = bytes.get_mut(first) {
                *slot = byte;
            }
        };
        let mut places: usize = 0;
        while digits > 0 || places <= decimals {
            if places == decimals {
                put(b'.');
            }
            put(b'0' | u8::try_from(digits % 10).unwrap_or_default());
            digits /= 10;
            places = places.saturating_add(1);
        }
        self.push(bytes.get(first..).unwrap_or_default());
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
    fn short_floats_are_written_as_any_are() {
        let mut state: u64 = 1;
        let mut short = 0;
        for round in 0..200_000_u32 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let digits = (state >> 11) >> (round % 53);
            let power = [1.0, 10.0, 100.0, 1e3, 1e4, 1e22][(round % 6) as usize];
            for value in [digits as f64 / power, f64::from_bits(state).abs()] {
                let (mut quick, mut any) = (FloatText::default(), FloatText::default());
                any.push_any(value);
                if value.is_finite() && quick.push_short(value) {
                    assert_eq!(quick.as_str(), any.as_str(), "{value:e}");
                    short += 1;
                }
            }
        }
        assert!(short > 100_000, "{short}");
    }

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
