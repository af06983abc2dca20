//! A tensor seen where its bytes lie.

use core::fmt;
use core::iter::FusedIterator;
use core::slice;

use zerocopy::FromBytes;

use super::element::private;
use super::{Descriptor, Dims, Element, Shape};
use crate::dtype::DType;
use crate::error::{CastError, EncodeError};
use crate::json::Str;

/// A tensor: a [`Descriptor`] and exactly the bytes that it speaks of.
///
/// The decoder hands out views into received frames; the encoder takes views of
/// the caller's own data.
///
/// # Examples
///
/// ```
/// use tensorwire::TensorView;
///
/// let tensor = TensorView::from_slice("latents", &[2, 3], &[0.5_f32, 1.0, 1.5, 2.0, 2.5, 3.0])?;
/// assert_eq!(tensor.shape(), [2, 3]);
/// let row = tensor.index(1).ok_or("no second row")?;
/// assert_eq!(row.elements::<f32>()?.sum::<f32>(), 7.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    descriptor: Descriptor<'a>,
    bytes: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// Puts bytes behind a descriptor.
    ///
    /// # Errors
    ///
    /// [`EncodeError::ByteLength`] unless there are just as many as it says.
    pub fn new(descriptor: Descriptor<'a>, bytes: &'a [u8]) -> Result<Self, EncodeError> {
        let (expected, actual) = (descriptor.byte_len(), bytes.len());
        if actual == expected {
            Ok(Self { descriptor, bytes })
        } else {
            Err(EncodeError::ByteLength { expected, actual })
        }
    }

    /// Sees a slice as a plain tensor of this name and shape.
    ///
    /// # Errors
    ///
    /// [`EncodeError::ShapeOverflow`], [`EncodeError::ByteLength`].
    pub fn from_slice<T: Element>(
        name: impl Into<Str<'a>>,
        shape: impl Into<Shape<'a>>,
        elements: &'a [T],
    ) -> Result<Self, EncodeError> {
        let descriptor = Descriptor::new(name, T::DTYPE, shape)?;
        Self::new(descriptor, T::bytes_of(elements))
    }

    /// Sees little-endian bytes as a plain tensor of this name, dtype and shape.
    ///
    /// # Errors
    ///
    /// [`EncodeError::ShapeOverflow`], [`EncodeError::ByteLength`].
    pub fn from_bytes(
        name: impl Into<Str<'a>>,
        dtype: DType,
        shape: impl Into<Shape<'a>>,
        bytes: &'a [u8],
    ) -> Result<Self, EncodeError> {
        Self::new(Descriptor::new(name, dtype, shape)?, bytes)
    }

    /// Returns the same, as member `index` of the list of its name.
    #[must_use]
    pub const fn with_list_index(self, index: u32) -> Self {
        Self {
            descriptor: self.descriptor.with_list_index(index),
            ..self
        }
    }

    /// Returns what is known of it besides the bytes.
    #[must_use]
    pub const fn descriptor(&self) -> Descriptor<'a> {
        self.descriptor
    }

    /// Returns the field's name.
    #[must_use]
    pub const fn name(&self) -> Str<'a> {
        self.descriptor.name()
    }

    /// Returns the place in the list of its name, or `None` for a plain tensor.
    #[must_use]
    pub const fn list_index(&self) -> Option<u32> {
        self.descriptor.list_index()
    }

    /// Returns the type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.descriptor.dtype()
    }

    /// Returns the shape.
    #[must_use]
    pub const fn shape(&self) -> Shape<'a> {
        self.descriptor.shape()
    }

    /// Returns the number of dimensions.
    #[must_use]
    pub const fn rank(&self) -> usize {
        self.descriptor.shape().rank()
    }

    /// Iterates over the dimensions, outermost first.
    #[must_use]
    pub const fn dims(&self) -> Dims<'a> {
        self.descriptor.shape().dims()
    }

    /// Returns the number of elements: the product of the dimensions, 1 if there are none.
    #[must_use]
    pub const fn element_count(&self) -> usize {
        self.descriptor.element_count()
    }

    /// Returns the bytes, whatever they are aligned to and whatever they hold.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the size of the bytes.
    #[must_use]
    pub const fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the largest power of two that divides the address of the bytes.
    #[must_use]
    pub fn alignment(&self) -> usize {
        1_usize.wrapping_shl(self.bytes.as_ptr().addr().trailing_zeros())
    }

    /// Tells whether [`as_slice`](Self::as_slice) needs no better alignment than there is.
    #[must_use]
    pub fn is_aligned(&self) -> bool {
        self.bytes.is_empty() || self.alignment() >= self.dtype().alignment()
    }

    /// Sees the elements in place.
    ///
    /// # Errors
    ///
    /// [`CastError::WrongDType`], [`CastError::Misaligned`], [`CastError::InvalidBool`].
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T], CastError> {
        self.expect_dtype::<T>()?;
        if self.bytes.is_empty() {
            // At whatever address.
            return Ok(&[]);
        }
        <T as private::Element>::cast(self.bytes).ok_or_else(|| {
            if self.is_aligned()
                && let Err(invalid) = T::check(self.bytes)
            {
                return invalid;
            }
            CastError::Misaligned {
                required: align_of::<T>(),
                actual: self.alignment(),
            }
        })
    }

    /// Iterates over the elements, read at any alignment.
    ///
    /// # Errors
    ///
    /// [`CastError::WrongDType`], [`CastError::InvalidBool`].
    pub fn elements<T: Element>(&self) -> Result<Elements<'a, T>, CastError> {
        self.expect_dtype::<T>()?;
        T::check(self.bytes)?;
        Ok(Elements {
            packed: self.packed::<T>().iter(),
        })
    }

    /// Copies all elements into `target`, at any alignment.
    ///
    /// # Errors
    ///
    /// [`CastError::WrongDType`], [`CastError::InvalidBool`], and
    /// [`CastError::Length`] unless `target` has just as many; then it is untouched.
    pub fn copy_to_slice<T: Element>(&self, target: &mut [T]) -> Result<(), CastError> {
        let elements = self.elements()?;
        let (expected, actual) = (self.element_count(), target.len());
        if actual != expected {
            return Err(CastError::Length { expected, actual });
        }
        for (slot, element) in target.iter_mut().zip(elements) {
            *slot = element;
        }
        Ok(())
    }

    /// Sees the elements in place if they are aligned, else copied to the start of `scratch`.
    ///
    /// # Errors
    ///
    /// [`CastError::WrongDType`], [`CastError::InvalidBool`], and
    /// [`CastError::Length`] if they must be copied and `scratch` is too short.
    pub fn as_slice_or_copy<'s, T: Element>(
        &self,
        scratch: &'s mut [T],
    ) -> Result<&'s [T], CastError>
    where
        'a: 's,
    {
        self.expect_dtype::<T>()?;
        if self.is_aligned() {
            return self.as_slice();
        }
        let (expected, actual) = (self.element_count(), scratch.len());
        let target = scratch
            .get_mut(..expected)
            .ok_or(CastError::Length { expected, actual })?;
        self.copy_to_slice(target)?;
        Ok(target)
    }

    /// Copies all elements into a new vector, at any alignment.
    ///
    /// # Errors
    ///
    /// [`CastError::WrongDType`], [`CastError::InvalidBool`].
    #[cfg(feature = "alloc")]
    pub fn to_vec<T: Element>(&self) -> Result<alloc::vec::Vec<T>, CastError> {
        Ok(self.elements()?.collect())
    }

    /// Returns the tensor at `index` of the outermost dimension, or `None` past its end or if there is none.
    #[must_use]
    pub fn index(&self, index: usize) -> Option<Self> {
        let (count, shape) = self.descriptor.shape().split_first()?;
        if index >= count {
            return None;
        }
        let layout = self.descriptor.layout().divide(count)?;
        let start = index.checked_mul(layout.byte_len())?;
        let bytes = self.bytes.get(start..)?.get(..layout.byte_len())?;
        Some(Self {
            descriptor: self.descriptor.with_shape(shape, layout),
            bytes,
        })
    }

    /// Returns the same elements in one dimension.
    #[must_use]
    pub const fn flatten(&self) -> Self {
        let shape = Shape::flat(self.element_count());
        Self {
            descriptor: self.descriptor.with_shape(shape, self.descriptor.layout()),
            ..*self
        }
    }

    fn expect_dtype<T: Element>(&self) -> Result<(), CastError> {
        let (expected, actual) = (T::DTYPE, self.dtype());
        if actual == expected {
            Ok(())
        } else {
            Err(CastError::WrongDType { expected, actual })
        }
    }

    /// All of the bytes: their number is a multiple of the packed size, which is the dtype's.
    fn packed<T: Element>(&self) -> &'a [T::Packed] {
        <[T::Packed]>::ref_from_bytes(self.bytes).unwrap_or_default()
    }
}

impl<'a> AsRef<Descriptor<'a>> for TensorView<'a> {
    fn as_ref(&self) -> &Descriptor<'a> {
        &self.descriptor
    }
}

/// Shows what it is, not what it holds.
impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorView")
            .field("name", &self.name())
            .field("list_index", &self.list_index())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .finish_non_exhaustive()
    }
}

/// The elements of a [`TensorView`], read at any alignment.
#[derive(Clone)]
pub struct Elements<'a, T: Element> {
    packed: slice::Iter<'a, T::Packed>,
}

impl<T: Element> fmt::Debug for Elements<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elements")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<T: Element> Iterator for Elements<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.packed.next().copied().map(T::unpack)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.packed.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<T> {
        self.packed.nth(n).copied().map(T::unpack)
    }

    fn fold<B, F: FnMut(B, T) -> B>(self, init: B, f: F) -> B {
        self.packed.copied().map(T::unpack).fold(init, f)
    }
}

impl<T: Element> DoubleEndedIterator for Elements<'_, T> {
    fn next_back(&mut self) -> Option<T> {
        self.packed.next_back().copied().map(T::unpack)
    }
}

impl<T: Element> ExactSizeIterator for Elements<'_, T> {}

impl<T: Element> FusedIterator for Elements<'_, T> {}
