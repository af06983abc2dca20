//! A tensor in the host's memory.

use super::HostError;
use super::memory::Share;
use crate::device::{DeviceTensor, TensorInfo};
use crate::error::CastError;
use crate::tensor::{Element, TensorView};

/// A tensor in aligned memory of its own: dtype, name and shape are kept.
///
/// It starts at a multiple of 256, so its elements can be seen in place whatever their type. Small tensors of one
/// message lie in one allocation, which lives as long as any of them.
///
/// # Examples
///
/// ```
/// use tensorwire::TensorView;
/// use tensorwire::device::{Device, host};
/// use tensorwire::error::CastError;
/// use tensorwire::transport::Wait;
///
/// // As it may lie in a received frame: at an odd address, and a byte that is no bool.
/// let frame = [0xff, 0, 1, 2];
/// let mask = TensorView::from_bytes("mask", tensorwire::DType::Bool, &[3], &frame[1..])?;
/// let mask = host::Host::new().upload(&mask, &host::Stream, Wait::Never)?;
/// assert_eq!(mask.bytes(), [0, 1, 2]);
/// assert_eq!(mask.view::<bool>(), Err(CastError::InvalidBool { index: 2, byte: 2 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tensor {
    info: TensorInfo,
    share: Share,
}

impl Tensor {
    pub(super) const fn new(info: TensorInfo, share: Share) -> Self {
        Self { info, share }
    }

    pub(super) const fn share(&self) -> &Share {
        &self.share
    }

    /// Sees its elements in place.
    ///
    /// # Errors
    ///
    /// [`CastError::WrongDType`]; [`CastError::InvalidBool`] if a byte is neither 0 nor 1.
    pub fn view<T: Element>(&self) -> Result<&[T], CastError> {
        let Ok(view) = TensorView::new(self.info.descriptor(), self.bytes()) else {
            // Its memory is as long as its layout says.
            let (expected, actual) = (self.info.byte_len(), self.bytes().len());
            return Err(CastError::Length { expected, actual });
        };
        view.as_slice()
    }

    /// Sees its bytes, whatever the dtype.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.share.as_ref()
    }
}

impl DeviceTensor for Tensor {
    type Error = HostError;

    fn info(&self) -> &TensorInfo {
        &self.info
    }

    /// Always.
    fn is_ready(&self) -> Result<bool, HostError> {
        Ok(true)
    }
}
