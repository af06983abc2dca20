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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    /// A tensor without bytes.
    fn tensor(name: &str, list_index: Option<u32>, dtype: DType, shape: &[usize]) -> Tensor {
        Tensor::empty(name.into(), list_index, dtype).with_shape(shape.to_vec())
    }

    #[test]
    fn the_first_difference_is_told() {
        let expected = [
            tensor("first", None, DType::Int8, &[0]),
            tensor("x", Some(1), DType::Float32, &[2, 0]),
        ];
        let first = &expected[0];
        let compare = |second: Tensor| {
            let views = [first.view().unwrap(), second.view().unwrap()];
            tensors(&expected, views.into_iter())
        };
        let float = DType::Float32;
        assert_eq!(compare(tensor("x", Some(1), float, &[2, 0])), Ok(()));
        for (other, mismatch) in [
            (tensor("y", Some(1), float, &[2, 0]), Mismatch::Name(1)),
            (tensor("x", Some(2), float, &[2, 0]), Mismatch::ListIndex(1)),
            (tensor("x", None, float, &[2, 0]), Mismatch::ListIndex(1)),
            (
                tensor("x", Some(1), DType::Int32, &[2, 0]),
                Mismatch::DType(1),
            ),
            (tensor("x", Some(1), float, &[0, 2]), Mismatch::Shape(1)),
            (tensor("x", Some(1), float, &[0]), Mismatch::Shape(1)),
        ] {
            assert_eq!(compare(other), Err(mismatch));
        }
        let views = [first.view().unwrap()];
        let result = tensors(&expected, views.into_iter());
        let (expected, actual) = (2, 1);
        assert_eq!(result, Err(Mismatch::Count { expected, actual }));

        let sent = TensorView::from_bytes("x", DType::Bool, &[1], &[1]).unwrap();
        // One that lacks the byte it is of.
        let expected = [tensor("x", None, DType::Bool, &[1])];
        assert_eq!(
            tensors(&expected, [sent].into_iter()),
            Err(Mismatch::Bytes(0))
        );
    }
}
