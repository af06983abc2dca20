//! Tensors as [`ndarray`] arrays, and arrays as tensors.
//!
//! | call | gives | copies |
//! |---|---|---|
//! | [`view`] | `ArrayViewD<T>` | no: misaligned bytes are [`CastError::Misaligned`] |
//! | [`view_or_copy`] | `CowArray<T, IxDyn>` | only if misaligned |
//! | [`to_array`] | `ArrayD<T>` | yes |
//! | [`tensor`] | [`TensorView`] | no: another layout than the standard one is [`ArrayError::NotStandardLayout`] |
//! | [`into_buffer`] | [`Buffer`] | no, as above |
//!
//! An array of another layout (transposed, sliced with a step, reversed) is copied by whoever asks for it: by
//! `as_standard_layout` of the array, which copies only if it has to.
//!
//! For an array of fixed rank go on with `into_dimensionality`.
//!
//! # Examples
//!
//! ```
//! use ::ndarray::{Ix2, array};
//! use tensorwire::Decoder;
//! use tensorwire::interop::ndarray::{tensor, view_or_copy};
//! use tensorwire::message::{NO_SCALARS, encode_to_vec, frames};
//!
//! let latents = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
//! let columns = latents.t(); // another layout: a copy has to be asked for
//! let columns = columns.as_standard_layout();
//! let tensors = [tensor("latents", &latents)?, tensor("columns", &columns)?];
//! let metadata = encode_to_vec(&tensors, &NO_SCALARS)?;
//! let sent = frames(&metadata, &tensors);
//!
//! let mut decoder = Decoder::new();
//! let message = decoder.decode(&sent)?;
//! let received = message.tensor("columns").ok_or("no columns")?;
//! let received = view_or_copy::<f32>(&received)?.into_dimensionality::<Ix2>()?;
//! assert_eq!(received, latents.t());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::error::Error;
use core::fmt;

use alloc::vec::Vec;

use ndarray::{Array, ArrayD, ArrayRef, ArrayViewD, CowArray, Dimension, IxDyn, ShapeError};

use super::elements::Elements;
use crate::error::{CastError, EncodeError};
use crate::json::Str;
use crate::tensor::{Element, TensorView};
use crate::transport::Buffer;

/// Sees a tensor in place.
///
/// # Errors
///
/// [`ArrayError::Cast`] as of [`TensorView::as_slice`]: another dtype, misaligned, no bools. [`ArrayError::Shape`], which no
/// shape of a [`TensorView`] is known to give.
pub fn view<'a, T: Element>(tensor: &TensorView<'a>) -> Result<ArrayViewD<'a, T>, ArrayError> {
    let elements = tensor.as_slice()?;
    Ok(ArrayViewD::from_shape(shape(tensor), elements)?)
}

/// Sees a tensor in place if it is aligned, else copies it.
///
/// # Errors
///
/// As [`view`], but for a misaligned tensor.
pub fn view_or_copy<'a, T: Element>(
    tensor: &TensorView<'a>,
) -> Result<CowArray<'a, T, IxDyn>, ArrayError> {
    if tensor.is_aligned() {
        Ok(view(tensor)?.into())
    } else {
        Ok(to_array(tensor)?.into())
    }
}

/// Copies a tensor, at any alignment.
///
/// # Errors
///
/// As [`view`], but for a misaligned tensor.
pub fn to_array<T: Element>(tensor: &TensorView<'_>) -> Result<ArrayD<T>, ArrayError> {
    Ok(ArrayD::from_shape_vec(shape(tensor), tensor.to_vec()?)?)
}

/// Sees an array as a tensor of this name, to be encoded and sent from where it lies.
///
/// # Errors
///
/// [`ArrayError::NotStandardLayout`]: take `array.as_standard_layout()` then, which copies. [`ArrayError::Encode`], which no
/// array is known to give.
pub fn tensor<'a, T: Element, D: Dimension>(
    name: impl Into<Str<'a>>,
    array: &'a ArrayRef<T, D>,
) -> Result<TensorView<'a>, ArrayError> {
    let elements = array.as_slice().ok_or(ArrayError::NotStandardLayout)?;
    Ok(TensorView::from_slice(name, array.shape(), elements)?)
}

/// Takes an array along, to be sent as a payload from where it lies.
///
/// Describe it first, with [`Descriptor::new`](crate::tensor::Descriptor::new) or [`tensor`].
///
/// # Examples
///
/// ```
/// use ::ndarray::Array2;
/// use tensorwire::interop::ndarray::{into_buffer, tensor};
/// use tensorwire::message::{NO_SCALARS, encode_to_vec};
/// use tensorwire::transport::Part;
///
/// let latents = Array2::<f32>::zeros((64, 64));
/// let metadata = encode_to_vec([tensor("latents", &latents)?], &NO_SCALARS)?;
/// let payload = into_buffer(latents).map_err(|(_, error)| error)?;
/// let parts = [Part::from(metadata), Part::from(payload)];
/// # assert_eq!(parts[1].as_ref().len(), 64 * 64 * 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The array as it was, with [`ArrayError::NotStandardLayout`].
pub fn into_buffer<T: Element + Send, D: Dimension>(
    array: Array<T, D>,
) -> Result<Buffer, (Array<T, D>, ArrayError)> {
    if !array.is_standard_layout() {
        return Err((array, ArrayError::NotStandardLayout));
    }
    let len = array.len();
    let (mut elements, offset) = array.into_raw_vec_and_offset();
    // A slice of a larger array keeps all of it. What it leaves out goes; what it has moves to the front, unless it is there.
    elements.drain(..offset.unwrap_or_default().min(elements.len()));
    elements.truncate(len);
    Ok(Elements::into_buffer(elements))
}

fn shape(tensor: &TensorView<'_>) -> IxDyn {
    let dims: Vec<usize> = tensor.shape().dims().collect();
    IxDyn(&dims)
}

/// A tensor is no array, or an array no tensor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ArrayError {
    /// The tensor's bytes are no elements of the type asked for.
    Cast(CastError),
    /// The array cannot be described as a tensor.
    Encode(EncodeError),
    /// The array's elements do not lie in the order of its indices, without gaps.
    NotStandardLayout,
    /// ndarray has no array of this shape.
    Shape,
}

impl fmt::Display for ArrayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cast(error) => error.fmt(f),
            Self::Encode(error) => error.fmt(f),
            Self::NotStandardLayout => {
                f.write_str("array is not in standard layout: as_standard_layout() copies it")
            }
            Self::Shape => f.write_str("shape that ndarray refuses"),
        }
    }
}

impl Error for ArrayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Cast(error) => Some(error),
            Self::Encode(error) => Some(error),
            Self::NotStandardLayout | Self::Shape => None,
        }
    }
}

impl From<CastError> for ArrayError {
    fn from(error: CastError) -> Self {
        Self::Cast(error)
    }
}

impl From<EncodeError> for ArrayError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

impl From<ShapeError> for ArrayError {
    fn from(_: ShapeError) -> Self {
        Self::Shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec;

    use half::bf16;
    use ndarray::{Array1, Array3, arr0, array, s};

    use crate::dtype::DType;
    use crate::tensor::each_element;

    /// Room in which bytes lie at every address modulo 8.
    #[repr(align(8))]
    struct Room([u8; 64]);

    #[test]
    fn a_tensor_is_seen_in_place_where_it_is_aligned_and_copied_elsewhere() {
        for shift in 0..8 {
            let mut room = Room([0; 64]);
            let bytes = &mut room.0[shift..][..24];
            for (index, chunk) in bytes.chunks_mut(4).enumerate() {
                chunk.copy_from_slice(&(index as f32).to_le_bytes());
            }
            let bytes = &*bytes;
            let tensor = TensorView::from_bytes("x", DType::Float32, &[2, 3], bytes).unwrap();
            let expected = array![[0.0_f32, 1.0, 2.0], [3.0, 4.0, 5.0]].into_dyn();
            let either = view_or_copy::<f32>(&tensor).unwrap();
            assert_eq!(either, expected);
            assert_eq!(to_array::<f32>(&tensor).unwrap(), expected);
            let in_place = either.as_ptr().cast() == bytes.as_ptr();
            assert_eq!(
                (either.is_view(), in_place),
                (shift % 4 == 0, shift % 4 == 0)
            );
            match view::<f32>(&tensor) {
                Ok(array) => {
                    assert_eq!(shift % 4, 0);
                    assert_eq!(array.as_ptr().cast(), bytes.as_ptr());
                    assert_eq!(array, expected);
                }
                Err(error) => {
                    let (required, actual) = (4, tensor.alignment());
                    assert_ne!(shift % 4, 0);
                    let misaligned = CastError::Misaligned { required, actual };
                    assert_eq!(error, ArrayError::Cast(misaligned));
                }
            }
        }
    }

    #[test]
    fn scalars_empty_tensors_and_bools_are_arrays_too() {
        let tensor = TensorView::from_slice("x", &[], &[7_i64]).unwrap();
        assert_eq!(view::<i64>(&tensor).unwrap(), arr0(7).into_dyn());
        let tensor = TensorView::from_slice::<f64>("x", &[3, 0, 2], &[]).unwrap();
        assert_eq!(view::<f64>(&tensor).unwrap().shape(), [3, 0, 2]);
        // At an odd address, for there is nothing to read there.
        let odd = &Room([0; 64]).0[1..1];
        let tensor = TensorView::from_bytes("x", DType::Float64, &[0], odd).unwrap();
        assert_eq!(view::<f64>(&tensor).unwrap().len(), 0);
        let tensor = TensorView::from_bytes("x", DType::Bool, &[2], &[1, 2]).unwrap();
        let invalid = ArrayError::Cast(CastError::InvalidBool { index: 1, byte: 2 });
        assert_eq!(view::<bool>(&tensor).unwrap_err(), invalid);
        assert_eq!(view_or_copy::<bool>(&tensor).unwrap_err(), invalid);
        let wrong = CastError::WrongDType {
            expected: DType::Int8,
            actual: DType::Bool,
        };
        assert_eq!(
            to_array::<i8>(&tensor).unwrap_err(),
            ArrayError::Cast(wrong)
        );
    }

    #[test]
    fn every_type_of_element_is_seen_and_sent() {
        fn check<T: Element + Send>() {
            let mut room = Room([0; 64]);
            // Bytes that are bools too.
            for (index, byte) in room.0.iter_mut().enumerate() {
                *byte = (index % 3 == 0).into();
            }
            let size = T::DTYPE.size();
            for shift in [0, 1] {
                let bytes = &room.0[shift..][..3 * size];
                let tensor = TensorView::from_bytes("x", T::DTYPE, &[3, 1], bytes).unwrap();
                let array = view_or_copy::<T>(&tensor).unwrap();
                assert_eq!(array.is_view(), shift % T::DTYPE.alignment() == 0);
                let sent = super::tensor("x", &array).unwrap();
                assert_eq!((sent.dtype(), sent.bytes()), (T::DTYPE, bytes));
                assert_eq!(sent.bytes().as_ptr(), array.as_ptr().cast());
                let owned = to_array::<T>(&tensor).unwrap();
                assert_eq!(into_buffer(owned).unwrap().as_ref(), bytes);
            }
        }
        each_element!(check);
    }

    #[test]
    fn shapes_of_any_rank_and_of_any_size_without_elements_are_arrays() {
        const MAX: usize = isize::MAX.unsigned_abs();
        let deep = [1; 64];
        for (shape, len) in [
            (&[1, 2, 1, 1, 3, 1, 1, 2, 1][..], 12),
            (&deep[..], 1),
            (&[0, MAX][..], 0),
            (&[MAX, 0][..], 0),
            (&[1 << 31, 0, 1 << 31][..], 0),
        ] {
            let bytes = vec![7_u8; len];
            let tensor = TensorView::from_slice("x", shape, &bytes).unwrap();
            let array = view::<u8>(&tensor).unwrap();
            assert_eq!((array.shape(), array.len()), (shape, len));
            let owned = to_array::<u8>(&tensor).unwrap();
            assert_eq!(owned, array);
            assert_eq!(super::tensor("x", &owned).unwrap().shape(), shape);
            // Turned around it is the same elements, or none.
            let turned = array.reversed_axes();
            let turned = turned.as_standard_layout();
            assert_eq!(super::tensor("x", &turned).unwrap().byte_len(), len);
        }
    }

    #[test]
    fn arrays_in_standard_layout_are_lent_and_others_refused() {
        let all = Array3::from_shape_fn((2, 3, 4), |(a, b, c)| (100 * a + 10 * b + c) as i16);
        let lent = tensor("all", &all).unwrap();
        assert_eq!(lent.bytes().as_ptr(), all.as_ptr().cast());
        assert_eq!((lent.dtype(), lent.byte_len()), (DType::Int16, 48));
        assert_eq!(lent.shape(), [2, 3, 4]);
        let half = all.slice(s![1.., .., ..]);
        assert_eq!(
            tensor("half", &half).unwrap().bytes().as_ptr(),
            half.as_ptr().cast()
        );
        let others = [
            all.view().reversed_axes().into_dyn(),
            all.slice(s![.., ..;2, ..]).into_dyn(),
            all.slice(s![..;-1, .., ..]).into_dyn(),
            all.slice(s![.., 1, ..]).into_dyn(),
            all.broadcast((5, 2, 3, 4)).unwrap().into_dyn(),
        ];
        for other in others {
            let error = tensor("other", &other).unwrap_err();
            assert_eq!(error, ArrayError::NotStandardLayout);
            assert!(error.to_string().contains("as_standard_layout"));
            let copied = other.as_standard_layout();
            let sent = tensor("other", &copied).unwrap();
            assert_eq!(view::<i16>(&sent).unwrap(), other);
        }
    }

    #[test]
    fn an_array_is_given_away_where_it_lies() {
        let array = Array1::from_elem(1000, bf16::from_f32(0.5));
        let address = array.as_ptr().cast();
        let buffer = into_buffer(array).unwrap();
        assert_eq!(buffer.as_ref().as_ptr(), address);
        assert_eq!(buffer.as_ref().len(), 2000);
        assert_eq!(&buffer.as_ref()[..2], [0x00, 0x3f]);
    }

    #[test]
    fn a_part_of_an_array_is_given_away_without_the_rest() {
        let array = Array1::from_iter(0..10_u8).slice_move(s![3..7]);
        assert_eq!(into_buffer(array).unwrap().as_ref(), [3, 4, 5, 6]);
        let array = Array1::from_iter(0..10_u8).slice_move(s![4..4]);
        assert!(into_buffer(array).unwrap().as_ref().is_empty());
        let array = Array1::from_iter(0..10_u8).slice_move(s![..;-1]);
        let (array, error) = into_buffer(array).unwrap_err();
        assert_eq!(error, ArrayError::NotStandardLayout);
        assert_eq!(array.first(), Some(&9));
    }
}
