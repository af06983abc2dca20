//! Tensors that came out of a device.

use alloc::vec::Vec;

use super::TensorInfo;
use crate::error::EncodeError;
use crate::message::{ScalarFields, encode_to_vec};
use crate::tensor::TensorView;
use crate::transport::{Buffer, Part};

/// Tensors that came out of a device, one frame each, ready to be sent from where they lie.
///
/// A [`Device`](super::Device) gives them out at the end of a [`Download`](super::Download). Each frame goes to the
/// transport with what owns it: a slot of staging memory comes back when the transport has done with it.
///
/// # Examples
///
/// ```
/// use tensorwire::DType;
/// use tensorwire::device::{Downloaded, TensorInfo};
/// use tensorwire::message::Scalar;
/// use tensorwire::tensor::Descriptor;
/// use tensorwire::transport::Buffer;
///
/// let mask = TensorInfo::new(&Descriptor::new("mask", DType::Bool, &[3])?);
/// let downloaded = Downloaded::new(vec![(mask, Buffer::from(vec![1, 0, 1]))])?;
/// let parts = downloaded.into_parts(&[("request_id", Scalar::from("r1"))])?;
/// assert_eq!(
///     parts[0].as_ref(),
///     br#"{"tensor_descriptors":[{"field_name":"mask","shape":[3],"dtype":"bool","list_index":-1}],"scalar_fields":{"request_id":"r1"}}"#
/// );
/// assert_eq!(parts[1].as_ref(), [1, 0, 1]);
/// # Ok::<(), tensorwire::error::EncodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct Downloaded {
    /// A frame is as long as its tensor, and keeps its length.
    tensors: Vec<(TensorInfo, Buffer)>,
}

impl Downloaded {
    /// Keeps `frames` with what they hold.
    ///
    /// # Errors
    ///
    /// [`EncodeError::ByteLength`] unless each is as long as its tensor.
    pub fn new(tensors: Vec<(TensorInfo, Buffer)>) -> Result<Self, EncodeError> {
        for (info, frame) in &tensors {
            TensorView::new(info.descriptor(), frame.as_ref())?;
        }
        Ok(Self { tensors })
    }

    /// Returns the tensors where they lie on the host, in the order that was asked for.
    pub fn tensors(&self) -> impl DoubleEndedIterator<Item = TensorView<'_>> + Clone {
        self.tensors
            .iter()
            .filter_map(|(info, frame)| TensorView::new(info.descriptor(), frame.as_ref()).ok())
    }

    /// Makes a message of them: metadata with `scalars`, then each frame, which the transport takes along.
    ///
    /// # Errors
    ///
    /// As [`encode_to_vec`]; tensors of two messages may have one name.
    pub fn into_parts<S>(self, scalars: &S) -> Result<Vec<Part<'static>>, EncodeError>
    where
        S: ScalarFields + ?Sized,
    {
        let descriptors = self.tensors.iter().map(|(info, _)| info.descriptor());
        let metadata = encode_to_vec(descriptors, scalars)?;
        let frames = self.tensors.into_iter();
        let frames = frames.map(|(_, frame)| Part::from(frame));
        Ok(core::iter::once(Part::from(metadata))
            .chain(frames)
            .collect())
    }

    /// Returns the frames with what they hold.
    #[must_use]
    pub fn into_frames(self) -> Vec<(TensorInfo, Buffer)> {
        self.tensors
    }
}
