//! Which Rust type reads which dtype.

use core::fmt::Debug;

use half::{bf16, f16};
use zerocopy::little_endian::{F32, F64, I16, I32, I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use super::float8::{Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu};
use crate::dtype::DType;
use crate::error::CastError;

#[cfg(target_endian = "big")]
compile_error!("views show little-endian bytes in place: big-endian targets are not supported");

/// A Rust type that reads tensors of one dtype.
///
/// | dtype | type |
/// |---|---|
/// | `float16`, `bfloat16` | [`half::f16`], [`half::bf16`] |
/// | `float32`, `float64` | `f32`, `f64` |
/// | `int8` to `int64`, `uint8` to `uint64` | `i8` to `i64`, `u8` to `u64` |
/// | `bool` | `bool`, only where every byte is 0 or 1 |
/// | `complex64`, `complex128` | `[f32; 2]`, `[f64; 2]`; with feature `num-complex` also its `Complex` |
/// | `float8_*` | [`Float8E4M3Fn`] and its kin |
///
/// The trait is sealed: that each pair above has one size and meaning is what
/// makes a cast sound.
pub trait Element: Copy + Debug + PartialEq + Sized + private::Element + 'static {
    /// The dtype that it reads.
    const DTYPE: DType;
}

pub(super) mod private {
    use super::{CastError, Debug, FromBytes, Immutable, KnownLayout, Unaligned};

    /// How bytes become elements.
    #[expect(unnameable_types, reason = "what seals `Element`")]
    pub trait Element: Sized {
        /// The same bytes at any address.
        type Packed: Copy + Debug + FromBytes + Immutable + KnownLayout + Unaligned + 'static;

        /// The element that these bytes are, once `check` has passed.
        fn unpack(packed: Self::Packed) -> Self;

        /// Whether every element's bytes are a value of the type.
        fn check(bytes: &[u8]) -> Result<(), CastError>;

        /// The bytes as elements in place; `None` if misaligned or no value of the type.
        fn cast(bytes: &[u8]) -> Option<&[Self]>;

        /// The elements as bytes.
        fn bytes_of(elements: &[Self]) -> &[u8];
    }
}

macro_rules! plain_elements {
    ($($element:ty, $dtype:ident, $packed:ty, $unpack:expr;)+) => {$(
        impl private::Element for $element {
            type Packed = $packed;

            #[inline]
            fn unpack(packed: $packed) -> Self {
                let unpack: fn($packed) -> Self = $unpack;
                unpack(packed)
            }

            fn check(_: &[u8]) -> Result<(), CastError> {
                Ok(())
            }

            fn cast(bytes: &[u8]) -> Option<&[Self]> {
                bytemuck::try_cast_slice(bytes).ok()
            }

            fn bytes_of(elements: &[Self]) -> &[u8] {
                bytemuck::must_cast_slice(elements)
            }
        }

        impl Element for $element {
            const DTYPE: DType = DType::$dtype;
        }
    )+};
}

plain_elements! {
    bf16, BFloat16, U16, |packed| Self::from_bits(packed.get());
    f16, Float16, U16, |packed| Self::from_bits(packed.get());
    f32, Float32, F32, |packed| packed.get();
    f64, Float64, F64, |packed| packed.get();
    i8, Int8, i8, |packed| packed;
    i16, Int16, I16, |packed| packed.get();
    i32, Int32, I32, |packed| packed.get();
    i64, Int64, I64, |packed| packed.get();
    u8, UInt8, u8, |packed| packed;
    u16, UInt16, U16, |packed| packed.get();
    u32, UInt32, U32, |packed| packed.get();
    u64, UInt64, U64, |packed| packed.get();
    [f32; 2], Complex64, [F32; 2], |packed| packed.map(F32::get);
    [f64; 2], Complex128, [F64; 2], |packed| packed.map(F64::get);
    Float8E4M3Fn, Float8E4M3Fn, u8, Self::from_bits;
    Float8E4M3Fnuz, Float8E4M3Fnuz, u8, Self::from_bits;
    Float8E5M2, Float8E5M2, u8, Self::from_bits;
    Float8E5M2Fnuz, Float8E5M2Fnuz, u8, Self::from_bits;
    Float8E8M0Fnu, Float8E8M0Fnu, u8, Self::from_bits;
}

#[cfg(feature = "num-complex")]
plain_elements! {
    num_complex::Complex<f32>, Complex64, [F32; 2], |[re, im]| Self::new(re.get(), im.get());
    num_complex::Complex<f64>, Complex128, [F64; 2], |[re, im]| Self::new(re.get(), im.get());
}

impl private::Element for bool {
    type Packed = u8;

    #[inline]
    fn unpack(packed: u8) -> Self {
        packed != 0
    }

    fn check(bytes: &[u8]) -> Result<(), CastError> {
        match bytes.iter().enumerate().find(|&(_, &byte)| byte > 1) {
            Some((index, &byte)) => Err(CastError::InvalidBool { index, byte }),
            None => Ok(()),
        }
    }

    fn cast(bytes: &[u8]) -> Option<&[Self]> {
        bytemuck::checked::try_cast_slice(bytes).ok()
    }

    fn bytes_of(elements: &[Self]) -> &[u8] {
        bytemuck::must_cast_slice(elements)
    }
}

impl Element for bool {
    const DTYPE: DType = DType::Bool;
}

/// The bytes of elements, for other modules.
#[cfg(any(feature = "candle", feature = "ndarray"))]
pub(crate) fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    T::bytes_of(elements)
}

/// Calls a generic function of a test for every type of an element.
#[cfg(test)]
macro_rules! each_element {
    ($check:ident) => {
        $check::<half::bf16>();
        $check::<half::f16>();
        $check::<f32>();
        $check::<f64>();
        $check::<i8>();
        $check::<i16>();
        $check::<i32>();
        $check::<i64>();
        $check::<u8>();
        $check::<u16>();
        $check::<u32>();
        $check::<u64>();
        $check::<bool>();
        $check::<[f32; 2]>();
        $check::<[f64; 2]>();
        $check::<$crate::tensor::Float8E4M3Fn>();
        $check::<$crate::tensor::Float8E4M3Fnuz>();
        $check::<$crate::tensor::Float8E5M2>();
        $check::<$crate::tensor::Float8E5M2Fnuz>();
        $check::<$crate::tensor::Float8E8M0Fnu>();
        #[cfg(feature = "num-complex")]
        {
            $check::<num_complex::Complex<f32>>();
            $check::<num_complex::Complex<f64>>();
        }
    };
}
#[cfg(all(test, feature = "ndarray"))]
pub(crate) use each_element;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_alignments_are_what_the_table_says() {
        fn check<T: Element>() {
            assert_eq!(size_of::<T>(), T::DTYPE.size());
            assert_eq!(size_of::<T::Packed>(), T::DTYPE.size());
            assert_eq!(align_of::<T>(), T::DTYPE.alignment());
        }
        each_element!(check);
    }
}
