//! The 8-bit floats, as bits that know their value.
//!
//! | type | sign, exponent, mantissa bits | bias | infinity | NaN |
//! |---|---|---|---|---|
//! | [`Float8E4M3Fn`] | 1, 4, 3 | 7 | none | `S.1111.111` |
//! | [`Float8E4M3Fnuz`] | 1, 4, 3 | 8 | none | `1.0000.000` |
//! | [`Float8E5M2`] | 1, 5, 2 | 15 | `S.11111.00` | `S.11111.01` and up |
//! | [`Float8E5M2Fnuz`] | 1, 5, 2 | 16 | none | `1.00000.00` |
//! | [`Float8E8M0Fnu`] | 0, 8, 0 | 127 | none | `11111111` |
//!
//! Sources: "FP8 Formats for Deep Learning" (arXiv 2209.05433) for the first
//! and third, "8-bit Numerical Formats for Deep Neural Networks" (arXiv
//! 2206.02915) for the `fnuz` ones, the OCP Microscaling Formats specification
//! 1.0 for the last.

macro_rules! float8 {
    ($($(#[$doc:meta])+ $name:ident, $to_f32:expr;)+) => {$(
        $(#[$doc])+
        #[derive(bytemuck::Pod, bytemuck::Zeroable, Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// Makes the number of these bits.
            #[must_use]
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// Returns its bits.
            #[must_use]
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// Returns its value, which an `f32` holds exactly.
            #[must_use]
            pub fn to_f32(self) -> f32 {
                let to_f32: fn(u8) -> f32 = $to_f32;
                to_f32(self.0)
            }
        }

        impl From<$name> for f32 {
            fn from(value: $name) -> Self {
                value.to_f32()
            }
        }
    )+};
}

float8! {
    /// `float8_e4m3fn`.
    Float8E4M3Fn, |bits| match bits & 0x7f {
        0x7f => f32::NAN,
        _ => decode(bits, 3, 7),
    };
    /// `float8_e4m3fnuz`.
    Float8E4M3Fnuz, |bits| match bits {
        0x80 => f32::NAN,
        _ => decode(bits, 3, 8),
    };
    /// `float8_e5m2`.
    Float8E5M2, |bits| half::f16::from_le_bytes([0, bits]).to_f32();
    /// `float8_e5m2fnuz`.
    Float8E5M2Fnuz, |bits| match bits {
        0x80 => f32::NAN,
        _ => decode(bits, 2, 16),
    };
    /// `float8_e8m0fnu`.
    Float8E8M0Fnu, |bits| match bits {
        0xff => f32::NAN,
        // 2^-127 is subnormal in `f32`.
        0 => f32::from_bits(1 << 22),
        _ => f32::from_bits(u32::from(bits) << 23),
    };
}

/// The finite value of sign, exponent and `mantissa_bits` bits of mantissa.
fn decode(bits: u8, mantissa_bits: u32, bias: i16) -> f32 {
    let magnitude = bits & 0x7f;
    let exponent = i16::from(magnitude.wrapping_shr(mantissa_bits));
    let mantissa = magnitude & !u8::MAX.wrapping_shl(mantissa_bits);
    let fraction = f32::from(mantissa) / f32::from(1_u8.wrapping_shl(mantissa_bits));
    // All within `f32`'s normal range: exponents lie between -16 and 15.
    let value = match exponent {
        0 => fraction * power_of_two(1_i16.saturating_sub(bias)),
        _ => (1.0 + fraction) * power_of_two(exponent.saturating_sub(bias)),
    };
    if bits < 0x80 { value } else { -value }
}

fn power_of_two(exponent: i16) -> f32 {
    let biased = u32::try_from(exponent.saturating_add(127)).unwrap_or_default();
    f32::from_bits(biased << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_hold_the_values_that_their_papers_list() {
        let e4m3 = |bits| Float8E4M3Fn::from_bits(bits).to_f32();
        assert_eq!(e4m3(0x7e), 448.0);
        assert_eq!(e4m3(0xfe), -448.0);
        assert_eq!(e4m3(0x38), 1.0);
        assert_eq!(e4m3(0x08), 2.0_f32.powi(-6));
        assert_eq!(e4m3(0x01), 2.0_f32.powi(-9));
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
        assert!(e4m3(0x80) == 0.0 && e4m3(0x80).is_sign_negative());

        let e4m3uz = |bits| Float8E4M3Fnuz::from_bits(bits).to_f32();
        assert_eq!(e4m3uz(0x7f), 240.0);
        assert_eq!(e4m3uz(0x01), 2.0_f32.powi(-10));
        assert_eq!(e4m3uz(0x40), 1.0);
        assert!(e4m3uz(0x80).is_nan());

        let e5m2 = |bits| Float8E5M2::from_bits(bits).to_f32();
        assert_eq!(e5m2(0x7b), 57344.0);
        assert_eq!(e5m2(0x01), 2.0_f32.powi(-16));
        assert_eq!(e5m2(0xfc), f32::NEG_INFINITY);
        assert!(e5m2(0x7d).is_nan());

        let e5m2uz = |bits| Float8E5M2Fnuz::from_bits(bits).to_f32();
        assert_eq!(e5m2uz(0x7f), 57344.0);
        assert_eq!(e5m2uz(0x01), 2.0_f32.powi(-17));
        assert!(e5m2uz(0x80).is_nan());

        let e8m0 = |bits| Float8E8M0Fnu::from_bits(bits).to_f32();
        assert_eq!(e8m0(127), 1.0);
        assert_eq!(e8m0(0), 2.0_f32.powi(-127));
        assert_eq!(e8m0(254), 2.0_f32.powi(127));
        assert!(e8m0(255).is_nan());
    }
}
