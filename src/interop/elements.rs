//! Elements that own themselves, as bytes.

use alloc::vec::Vec;

use crate::tensor::Element;
use crate::transport::Buffer;

/// A vector of elements that is sent as the bytes it holds.
pub(super) struct Elements<T>(Vec<T>);

impl<T: Element + Send> Elements<T> {
    /// Takes `elements` along, where they lie.
    pub(super) fn into_buffer(elements: Vec<T>) -> Buffer {
        Buffer::new(Self(elements))
    }
}

impl<T: Element> AsRef<[u8]> for Elements<T> {
    fn as_ref(&self) -> &[u8] {
        crate::tensor::bytes_of(&self.0)
    }
}
