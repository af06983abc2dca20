//! Numbers as people and as scripts read them.

use crate::json;

/// One element of a tensor, or what was worked out of several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Bool(bool),
    Complex(f64, f64),
    Float(f64),
    Integer(i128),
    /// A byte of a bool tensor that is neither 0 nor 1.
    NoBool(u8),
}

impl Number {
    /// The element of a bool tensor that has this byte.
    pub(crate) const fn of_bool(byte: u8) -> Self {
        match byte {
            0 => Self::Bool(false),
            1 => Self::Bool(true),
            byte => Self::NoBool(byte),
        }
    }

    /// For people: short rather than exact.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Complex(re, im) => {
                let sign = if im.is_sign_negative() { '-' } else { '+' };
                format!("{}{sign}{}i", short(re), short(im.abs()))
            }
            Self::Float(value) => short(value),
            Self::Integer(value) => value.to_string(),
            Self::NoBool(byte) => format!("{byte:#04x}?"),
        }
    }

    /// For scripts: exact.
    pub(crate) fn json(self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Complex(re, im) => format!("[{},{}]", json::number(re), json::number(im)),
            Self::Float(value) => json::number(value),
            Self::Integer(value) => value.to_string(),
            Self::NoBool(byte) => byte.to_string(),
        }
    }
}

/// A float with as many digits as tell it from others at a glance.
fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return value.to_string();
    }
    if size != 0.0 && !(1e-3..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (0.125, "0.125"),
            (1.0 / 3.0, "0.3333"),
            (-1e-9, "-1.000e-9"),
            (123_456.0, "123456"),
            (1e30, "1.000e30"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(short(value), text);
        }
        assert_eq!(Number::Complex(1.0, -0.5).text(), "1-0.5i");
        assert_eq!(Number::NoBool(2).text(), "0x02?");
    }
}
