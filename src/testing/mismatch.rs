//! Where what was decoded is not what was generated.

use core::fmt;

use super::Tensor;
use crate::tensor::TensorView;

/// A message does not say what was sent.
///
/// The numbers are those of the tensors, in wire order from 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Mismatch {
    /// A tensor has other bytes.
    Bytes(usize),
    /// There are more or fewer tensors.
    Count {
        /// How many were sent.
        expected: usize,
        /// How many there are.
        actual: usize,
    },
    /// A tensor has another dtype.
    DType(usize),
    /// A tensor has another place in its list, or one at all.
    ListIndex(usize),
    /// A control message is of another type.
    MessageType,
    /// A tensor has another name.
    Name(usize),
    /// A tensor lies elsewhere in its slot.
    Offset(usize),
    /// A control message is of another request.
    RequestId,
    /// The scalars are not those that were sent, or spelled in another way.
    Scalars,
    /// A tensor has another shape.
    Shape(usize),
}

impl core::error::Error for Mismatch {}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bytes(index) => write!(f, "tensor {index} has other bytes"),
            Self::Count { expected, actual } => {
                write!(f, "{actual} tensors where {expected} were sent")
            }
            Self::DType(index) => write!(f, "tensor {index} has another dtype"),
            Self::ListIndex(index) => write!(f, "tensor {index} has another list index"),
            Self::MessageType => f.write_str("another type of message"),
            Self::Name(index) => write!(f, "tensor {index} has another name"),
            Self::Offset(index) => write!(f, "tensor {index} lies at another offset"),
            Self::RequestId => f.write_str("another request"),
            Self::Scalars => f.write_str("other scalars"),
            Self::Shape(index) => write!(f, "tensor {index} has another shape"),
        }
    }
}

/// Compares tensors in wire order.
pub(super) fn tensors<'a>(
    expected: &[Tensor],
    actual: impl ExactSizeIterator<Item = TensorView<'a>>,
) -> Result<(), Mismatch> {
    if actual.len() != expected.len() {
        return Err(Mismatch::Count {
            expected: expected.len(),
            actual: actual.len(),
        });
    }
    for (index, (expected, view)) in expected.iter().zip(actual).enumerate() {
        if view.name() != expected.name() {
            return Err(Mismatch::Name(index));
        }
        if view.list_index() != expected.list_index() {
            return Err(Mismatch::ListIndex(index));
        }
        if view.dtype() != expected.dtype() {
            return Err(Mismatch::DType(index));
        }
        if view.shape() != expected.shape() {
            return Err(Mismatch::Shape(index));
        }
        if view.bytes() != expected.bytes() {
            return Err(Mismatch::Bytes(index));
        }
    }
    Ok(())
}
