//! The element types: one table of names, sizes and generations.

use core::fmt;
use core::str::FromStr;

/// A row per dtype: its documentation, variant, name, the Rust type that has its
/// size and alignment, and generation.
macro_rules! dtypes {
    ($($(#[$doc:meta])+ $variant:ident $name:literal $layout:ty, $generation:ident;)+) => {
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
            $($(#[$doc])+ $variant,)+
        }

        impl DType {
            /// Every dtype, the oldest generation first.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Finds the dtype of this exact name: `"float32"`, not `"F32"` or `"torch.float32"`.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Returns its name on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the size of one element in bytes.
            #[must_use]
            pub const fn size(self) -> usize {
                match self {
                    $(Self::$variant => size_of::<$layout>(),)+
                }
            }

            /// Returns the alignment in bytes of the Rust type that it is read as.
            #[must_use]
            pub const fn alignment(self) -> usize {
                match self {
                    $(Self::$variant => align_of::<$layout>(),)+
                }
            }

            /// Returns who can read it.
            #[must_use]
            pub const fn generation(self) -> Generation {
                match self {
                    $(Self::$variant => Generation::$generation,)+
                }
            }
        }
    };
}

dtypes! {
    /// `float16`: IEEE 754 binary16.
    Float16 "float16" u16, Oldest;
    /// `float32`.
    Float32 "float32" f32, Oldest;
    /// `float64`.
    Float64 "float64" f64, Oldest;
    /// `bfloat16`: 8 bits of exponent, 7 of mantissa.
    BFloat16 "bfloat16" u16, Oldest;
    /// `int8`.
    Int8 "int8" i8, Oldest;
    /// `int16`.
    Int16 "int16" i16, Oldest;
    /// `int32`.
    Int32 "int32" i32, Oldest;
    /// `int64`.
    Int64 "int64" i64, Oldest;
    /// `uint8`.
    UInt8 "uint8" u8, Oldest;
    /// `bool`: one byte, 0 or 1.
    Bool "bool" bool, Oldest;
    /// `complex64`: two `f32`, real then imaginary.
    Complex64 "complex64" [f32; 2], Complex;
    /// `complex128`: two `f64`, real then imaginary.
    Complex128 "complex128" [f64; 2], Complex;
    /// `uint16`.
    UInt16 "uint16" u16, Extended;
    /// `uint32`.
    UInt32 "uint32" u32, Extended;
    /// `uint64`.
    UInt64 "uint64" u64, Extended;
    /// `float8_e4m3fn`: finite range to 448, no infinity.
    Float8E4M3Fn "float8_e4m3fn" u8, Extended;
    /// `float8_e5m2`: binary16's upper byte.
    Float8E5M2 "float8_e5m2" u8, Extended;
    /// `float8_e4m3fnuz`: finite range to 240, no infinity, no negative zero.
    Float8E4M3Fnuz "float8_e4m3fnuz" u8, Extended;
    /// `float8_e5m2fnuz`: no infinity, no negative zero.
    Float8E5M2Fnuz "float8_e5m2fnuz" u8, Extended;
    /// `float8_e8m0fnu`: a power of two, unsigned.
    Float8E8M0Fnu "float8_e8m0fnu" u8, Extended;
}

impl DType {
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
                let name = core::str::from_utf8(bytes.get(..length)?).ok()?;
                (Self::from_name(name)?, length)
            }
        };
        Some((dtype, bytes.get(length..)?))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    /// Finds the dtype of this exact name.
    ///
    /// # Errors
    ///
    /// [`UnknownDType`].
    fn from_str(name: &str) -> Result<Self, UnknownDType> {
        Self::from_name(name).ok_or(UnknownDType(()))
    }
}

/// A name is none of a dtype.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownDType(());

impl fmt::Display for UnknownDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown dtype")
    }
}

impl core::error::Error for UnknownDType {}

/// Which peers know a dtype; each generation knows those before it.
///
/// Encoding writes any dtype: a sender to old peers looks at
/// [`DType::generation`] first.
///
/// A gateway in front of old Python peers decodes with
/// [`Options::with_generation`](crate::message::Options::with_generation), so
/// that it does not pass on what they cannot read.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
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
            assert_eq!(dtype.name().parse(), Ok(dtype));
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
