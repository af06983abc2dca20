//! Shapes, and the sizes that follow from them.

use core::fmt;

use crate::dtype::DType;
use crate::error::CastError;

/// A shape: the dimensions, outermost first; none for a single element.
///
/// A received shape stays the text that it came as, and is read when asked;
/// so it needs no storage, whatever the rank.
///
/// Compares with slices and arrays, and shows as `[1, 16]`.
///
/// # Examples
///
/// ```
/// use tensorwire::TensorView;
///
/// let mask = [1_u8; 6];
/// let tensor = TensorView::from_slice("mask", &[2, 3], &mask)?;
/// assert_eq!(tensor.shape(), [2, 3]);
/// let [rows, columns] = tensor.shape().to_array()?;
/// assert_eq!((rows, columns), (2, 3));
/// assert_eq!(tensor.shape().to_string(), "[2, 3]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    source: Source<'a>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    /// The checked text between the brackets, and how many numbers it holds.
    Text(&'a str, usize),
    Slice(&'a [usize]),
    /// One dimension that stands nowhere else.
    Flat(usize),
}

impl<'a> Shape<'a> {
    pub(crate) const fn from_text(text: &'a str, rank: usize) -> Self {
        Self {
            source: Source::Text(text, rank),
        }
    }

    pub(crate) const fn flat(elements: usize) -> Self {
        Self {
            source: Source::Flat(elements),
        }
    }

    /// Returns the number of dimensions.
    #[must_use]
    pub const fn rank(&self) -> usize {
        match self.source {
            Source::Text(_, rank) => rank,
            Source::Slice(dims) => dims.len(),
            Source::Flat(_) => 1,
        }
    }

    /// Iterates over the dimensions, outermost first.
    #[must_use]
    pub const fn dims(&self) -> Dims<'a> {
        Dims { rest: *self }
    }

    /// Returns the dimensions as an array.
    ///
    /// # Errors
    ///
    /// [`CastError::Rank`] unless there are just `N`.
    pub fn to_array<const N: usize>(&self) -> Result<[usize; N], CastError> {
        let mut dims = [0; N];
        if self.rank() != N {
            return Err(self.rank_error(N));
        }
        self.copy_to(&mut dims)?;
        Ok(dims)
    }

    /// Copies the dimensions to the start of `buffer`, and gives that part of it.
    ///
    /// # Errors
    ///
    /// [`CastError::Rank`] if there are more than `buffer` has room for.
    pub fn copy_to<'b>(&self, buffer: &'b mut [usize]) -> Result<&'b [usize], CastError> {
        let error = self.rank_error(buffer.len());
        let target = buffer.get_mut(..self.rank()).ok_or(error)?;
        for (slot, dim) in target.iter_mut().zip(self.dims()) {
            *slot = dim;
        }
        Ok(target)
    }

    const fn rank_error(&self, actual: usize) -> CastError {
        let expected = self.rank();
        CastError::Rank { expected, actual }
    }

    /// The outermost dimension and the shape inside it.
    pub(crate) fn split_first(&self) -> Option<(usize, Self)> {
        let (first, source) = match self.source {
            Source::Text(text, rank) => {
                let inner = rank.checked_sub(1)?;
                let (first, rest) = text.split_once(',').unwrap_or((text, ""));
                let first = first.trim_ascii().parse().ok()?;
                (first, Source::Text(rest, inner))
            }
            Source::Slice(dims) => {
                let (&first, rest) = dims.split_first()?;
                (first, Source::Slice(rest))
            }
            Source::Flat(elements) => (elements, Source::Slice(&[])),
        };
        Some((first, Self { source }))
    }
}

impl<'a> From<&'a [usize]> for Shape<'a> {
    fn from(dims: &'a [usize]) -> Self {
        Self {
            source: Source::Slice(dims),
        }
    }
}

impl<'a, const N: usize> From<&'a [usize; N]> for Shape<'a> {
    fn from(dims: &'a [usize; N]) -> Self {
        Self::from(dims.as_slice())
    }
}

#[cfg(feature = "alloc")]
impl<'a> From<&'a alloc::vec::Vec<usize>> for Shape<'a> {
    fn from(dims: &'a alloc::vec::Vec<usize>) -> Self {
        Self::from(dims.as_slice())
    }
}

impl PartialEq for Shape<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank() && self.dims().eq(other.dims())
    }
}

impl Eq for Shape<'_> {}

impl PartialEq<[usize]> for Shape<'_> {
    fn eq(&self, other: &[usize]) -> bool {
        *self == Shape::from(other)
    }
}

impl PartialEq<&[usize]> for Shape<'_> {
    fn eq(&self, other: &&[usize]) -> bool {
        *self == **other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape<'_> {
    fn eq(&self, other: &[usize; N]) -> bool {
        *self == *other.as_slice()
    }
}

impl fmt::Debug for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.dims()).finish()
    }
}

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, dim) in self.dims().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            dim.fmt(f)?;
        }
        f.write_str("]")
    }
}

/// The dimensions of a [`Shape`], outermost first.
#[derive(Clone, Debug)]
pub struct Dims<'a> {
    rest: Shape<'a>,
}

impl Iterator for Dims<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.rest.rank(), Some(self.rest.rank()))
    }
}

impl ExactSizeIterator for Dims<'_> {}

/// The product of dimensions, as they come in.
///
/// Zeros are kept apart: `[2^40, 2^40, 0]` has no elements, yet no strides
/// that fit, and is refused like `[2^40, 2^40]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DimProduct {
    /// Of the dimensions that are not zero; `None` once it overflows.
    nonzero: Option<usize>,
    zero: bool,
}

impl DimProduct {
    pub(crate) const fn new() -> Self {
        Self {
            nonzero: Some(1),
            zero: false,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, dim: usize) {
        if dim == 0 {
            self.zero = true;
        } else {
            self.nonzero = self.nonzero.and_then(|product| product.checked_mul(dim));
        }
    }
}

/// How large a tensor is: the proof that its size is at most `isize::MAX`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Layout {
    elements: usize,
    byte_len: usize,
}

impl Layout {
    /// Of a tensor without elements.
    pub(crate) const EMPTY: Self = Self {
        elements: 0,
        byte_len: 0,
    };

    pub(crate) const fn elements(&self) -> usize {
        self.elements
    }

    pub(crate) const fn byte_len(&self) -> usize {
        self.byte_len
    }

    /// Of each of the `count` tensors that lie one after the other in this one.
    pub(crate) fn divide(&self, count: usize) -> Option<Self> {
        Some(Self {
            elements: self.elements.checked_div(count)?,
            byte_len: self.byte_len.checked_div(count)?,
        })
    }

    /// `None` if the size in bytes, zeros left out, is over `isize::MAX`.
    #[inline(always)]
    pub(crate) fn new(dims: DimProduct, dtype: DType) -> Option<Self> {
        let elements = dims.nonzero?;
        let byte_len = elements.checked_mul(dtype.size())?;
        isize::try_from(byte_len).ok()?;
        Some(if dims.zero {
            Self {
                elements: 0,
                byte_len: 0,
            }
        } else {
            Self { elements, byte_len }
        })
    }

    pub(crate) fn of_shape(shape: &Shape<'_>, dtype: DType) -> Option<Self> {
        let mut dims = DimProduct::new();
        shape.dims().for_each(|dim| dims.push(dim));
        Self::new(dims, dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_shape_reads_the_same_from_text_and_from_numbers() {
        let cases: &[(&str, &[usize])] = &[
            ("", &[]),
            ("0", &[0]),
            (" 1 ,\t16, 21 ", &[1, 16, 21]),
            ("1,16,21,30,52", &[1, 16, 21, 30, 52]),
        ];
        for &(text, dims) in cases {
            let shape = Shape::from_text(text, dims.len());
            assert_eq!(shape.dims().collect::<Vec<_>>(), dims);
            assert_eq!(shape, Shape::from(dims));
            let mut buffer = [7; 8];
            assert_eq!(shape.copy_to(&mut buffer), Ok(dims));
        }
        let shape = Shape::from(&[2, 3]);
        assert_eq!(shape.to_array(), Ok([2, 3]));
        let (expected, actual) = (2, 3);
        assert_eq!(
            shape.to_array::<3>(),
            Err(CastError::Rank { expected, actual })
        );
        let (expected, actual) = (2, 1);
        assert_eq!(
            shape.copy_to(&mut [0]),
            Err(CastError::Rank { expected, actual })
        );
    }

    #[test]
    fn a_size_is_checked_without_its_zeros() {
        fn bytes(dims: &[usize], dtype: DType) -> Option<usize> {
            Layout::of_shape(&dims.into(), dtype).map(|layout| layout.byte_len)
        }
        let max = usize::try_from(isize::MAX).unwrap();
        assert_eq!(bytes(&[], DType::Float32), Some(4));
        assert_eq!(bytes(&[2, 0, 3], DType::Float64), Some(0));
        assert_eq!(bytes(&[max], DType::UInt8), Some(max));
        assert_eq!(bytes(&[max + 1], DType::UInt8), None);
        assert_eq!(bytes(&[max / 4 + 1], DType::Float32), None);
        assert_eq!(bytes(&[0, max], DType::Float32), None);
        assert_eq!(bytes(&[1 << 40, 1 << 40, 0], DType::UInt8), None);
        assert_eq!(bytes(&[1 << 32, 1 << 32], DType::UInt8), None);
    }
}
