//! The element types: one table of names, sizes and generations.

use core::fmt;

/// The type of a tensor's elements, under torch's name for it.
///
/// # Examples
///
/// ```
/// use tensorwire::DType;
///
/// assert_eq!(DType::from_name("bfloat16"), Some(DType::BFloat16));
/// assert_eq!(DType::BFloat16.size(), 2);
/// assert_eq!(DType::from_name("bf16"), None);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DType {
    /// `bfloat16`: 8 bits of exponent, 7 of mantissa.
    BFloat16,
    /// `bool`: one byte, 0 or 1.
    Bool,
    /// `complex128`: two `f64`, real then imaginary.
    Complex128,
    /// `complex64`: two `f32`, real then imaginary.
    Complex64,
    /// `float16`: IEEE 754 binary16.
    Float16,
    /// `float32`.
    Float32,
    /// `float64`.
    Float64,
    /// `float8_e4m3fn`: finite range to 448, no infinity.
    Float8E4M3Fn,
    /// `float8_e4m3fnuz`: finite range to 240, no infinity, no negative zero.
    Float8E4M3Fnuz,
    /// `float8_e5m2`: binary16's upper byte.
    Float8E5M2,
    /// `float8_e5m2fnuz`: no infinity, no negative zero.
    Float8E5M2Fnuz,
    /// `float8_e8m0fnu`: a power of two, unsigned.
    Float8E8M0Fnu,
    /// `int16`.
    Int16,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `int8`.
    Int8,
    /// `uint16`.
    UInt16,
    /// `uint32`.
    UInt32,
    /// `uint64`.
    UInt64,
    /// `uint8`.
    UInt8,
}

impl DType {
    /// Every dtype, the oldest generation first.
    pub const ALL: &'static [Self] = &[
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::BFloat16,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::UInt8,
        Self::Bool,
        Self::Complex64,
        Self::Complex128,
        Self::UInt16,
        Self::UInt32,
        Self::UInt64,
        Self::Float8E4M3Fn,
        Self::Float8E5M2,
        Self::Float8E4M3Fnuz,
        Self::Float8E5M2Fnuz,
        Self::Float8E8M0Fnu,
    ];

    /// The dtype of this exact name, or `None`: `"float32"`, not `"F32"` or `"torch.float32"`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::from_name_bytes(name.as_bytes())
    }

    pub(crate) fn from_name_bytes(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"bfloat16" => Self::BFloat16,
            b"bool" => Self::Bool,
            b"complex128" => Self::Complex128,
            b"complex64" => Self::Complex64,
            b"float16" => Self::Float16,
            b"float32" => Self::Float32,
            b"float64" => Self::Float64,
            b"float8_e4m3fn" => Self::Float8E4M3Fn,
            b"float8_e4m3fnuz" => Self::Float8E4M3Fnuz,
            b"float8_e5m2" => Self::Float8E5M2,
            b"float8_e5m2fnuz" => Self::Float8E5M2Fnuz,
            b"float8_e8m0fnu" => Self::Float8E8M0Fnu,
            b"int16" => Self::Int16,
            b"int32" => Self::Int32,
            b"int64" => Self::Int64,
            b"int8" => Self::Int8,
            b"uint16" => Self::UInt16,
            b"uint32" => Self::UInt32,
            b"uint64" => Self::UInt64,
            b"uint8" => Self::UInt8,
            _ => return None,
        })
    }

    /// The dtype whose name is next, as far as the quote, and what follows.
    ///
    /// The common names are told by one word, which for short ones goes on to
    /// what Python writes next; they are taken only where that stands there.
    #[inline(always)]
    pub(crate) fn strip_prefix(bytes: &[u8]) -> Option<(Self, &[u8])> {
        const fn word(text: &[u8; 8]) -> u64 {
            u64::from_le_bytes(*text)
        }
        const BFLOAT16: u64 = word(b"bfloat16");
        const BOOL: u64 = word(br#"bool","l"#);
        const FLOAT16: u64 = word(br#"float16""#);
        const FLOAT32: u64 = word(br#"float32""#);
        const FLOAT64: u64 = word(br#"float64""#);
        const INT32: u64 = word(br#"int32",""#);
        const INT64: u64 = word(br#"int64",""#);
        const INT8: u64 = word(br#"int8","l"#);
        const UINT8: u64 = word(br#"uint8",""#);
        let (dtype, length) = match word(bytes.first_chunk()?) {
            BFLOAT16 => (Self::BFloat16, 8),
            BOOL => (Self::Bool, 4),
            FLOAT16 => (Self::Float16, 7),
            FLOAT32 => (Self::Float32, 7),
            FLOAT64 => (Self::Float64, 7),
            INT32 => (Self::Int32, 5),
            INT64 => (Self::Int64, 5),
            INT8 => (Self::Int8, 4),
            UINT8 => (Self::UInt8, 5),
            _ => {
                // The longest name has 15 bytes.
                let length = bytes.iter().take(16).position(|&byte| byte == b'"')?;
                (Self::from_name_bytes(bytes.get(..length)?)?, length)
            }
        };
        Some((dtype, bytes.get(length..)?))
    }

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BFloat16 => "bfloat16",
            Self::Bool => "bool",
            Self::Complex128 => "complex128",
            Self::Complex64 => "complex64",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Float8E4M3Fn => "float8_e4m3fn",
            Self::Float8E4M3Fnuz => "float8_e4m3fnuz",
            Self::Float8E5M2 => "float8_e5m2",
            Self::Float8E5M2Fnuz => "float8_e5m2fnuz",
            Self::Float8E8M0Fnu => "float8_e8m0fnu",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Int8 => "int8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::UInt8 => "uint8",
        }
    }

    /// The size of one element in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Bool
            | Self::Float8E4M3Fn
            | Self::Float8E4M3Fnuz
            | Self::Float8E5M2
            | Self::Float8E5M2Fnuz
            | Self::Float8E8M0Fnu
            | Self::Int8
            | Self::UInt8 => 1,
            Self::BFloat16 | Self::Float16 | Self::Int16 | Self::UInt16 => 2,
            Self::Float32 | Self::Int32 | Self::UInt32 => 4,
            Self::Complex64 | Self::Float64 | Self::Int64 | Self::UInt64 => 8,
            Self::Complex128 => 16,
        }
    }

    /// The alignment in bytes of the Rust type that it is read as.
    #[must_use]
    pub const fn alignment(self) -> usize {
        match self {
            Self::Complex128 => align_of::<f64>(),
            Self::Complex64 => align_of::<f32>(),
            Self::Float64 => align_of::<f64>(),
            Self::Int64 | Self::UInt64 => align_of::<u64>(),
            _ => self.size(),
        }
    }

    /// Who can read it.
    #[must_use]
    pub const fn generation(self) -> Generation {
        match self {
            Self::BFloat16
            | Self::Bool
            | Self::Float16
            | Self::Float32
            | Self::Float64
            | Self::Int16
            | Self::Int32
            | Self::Int64
            | Self::Int8
            | Self::UInt8 => Generation::Oldest,
            Self::Complex128 | Self::Complex64 => Generation::Complex,
            Self::Float8E4M3Fn
            | Self::Float8E4M3Fnuz
            | Self::Float8E5M2
            | Self::Float8E5M2Fnuz
            | Self::Float8E8M0Fnu
            | Self::UInt16
            | Self::UInt32
            | Self::UInt64 => Generation::Extended,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which peers know a dtype; each generation knows those before it.
///
/// Encoding writes any dtype: a sender to old peers looks at
/// [`DType::generation`] first.
///
/// A gateway in front of old Python peers decodes with
/// [`Options::with_generation`](crate::message::Options::with_generation), so
/// that it does not pass on what they cannot read.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Generation {
    /// The ten names of the first Python codec.
    Oldest,
    /// With `complex64` and `complex128`: sglang 0.5.23.
    Complex,
    /// With the wider unsigned integers and the 8-bit floats: this crate.
    Extended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_dtype() {
        for &dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
        for name in [
            "",
            "F32",
            "<f4",
            " float32",
            "torch.float32",
            "Float32",
            "float8",
        ] {
            assert_eq!(DType::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn generations_hold_ten_two_and_eight() {
        let count = |generation| {
            let of = |dtype: &&DType| dtype.generation() == generation;
            DType::ALL.iter().filter(of).count()
        };
        assert_eq!(count(Generation::Oldest), 10);
        assert_eq!(count(Generation::Complex), 2);
        assert_eq!(count(Generation::Extended), 8);
    }
}
