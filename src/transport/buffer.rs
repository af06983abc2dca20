//! Frames that are moved into a message instead of copied.

use core::any::Any;
use core::fmt;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Bytes together with what owns them, ready to be sent without a copy.
///
/// Moving the owner in here is what keeps everybody else's hands off the bytes
/// while they are in flight. The owner is dropped exactly once, when the last
/// one to read the bytes has done with them; that may be on a thread of the
/// transport, hence `Send`. A panic in its `Drop` stays there.
///
/// Any `AsRef<[u8]> + Send + 'static` will do: `Vec<u8>`, `Box<[u8]>`,
/// `Arc<[u8]>`, a slot of pinned memory, a received frame that is forwarded.
///
/// # Examples
///
/// ```
/// use tensorwire::transport::Buffer;
///
/// let buffer = Buffer::new(vec![1_u8, 2, 3]);
/// assert_eq!(buffer.as_ref(), [1, 2, 3]);
/// let vec: Vec<u8> = buffer.downcast().unwrap();
/// assert_eq!(vec, [1, 2, 3]);
/// ```
pub struct Buffer {
    owner: Box<dyn Owner>,
}

impl Buffer {
    /// Takes `owner` and, with it, its bytes.
    #[must_use]
    pub fn new<T: AsRef<[u8]> + Send + 'static>(owner: T) -> Self {
        let owner = Box::new(owner);
        Self { owner }
    }

    /// The owner again, if it is a `T`.
    ///
    /// # Errors
    ///
    /// The buffer as it was, if its owner is no `T`.
    pub fn downcast<T: AsRef<[u8]> + Send + 'static>(self) -> Result<T, Self> {
        let owner: &dyn Owner = &*self.owner;
        let owner: &dyn Any = owner;
        if !owner.is::<T>() {
            return Err(self);
        }
        let owner: Box<dyn Owner> = self.owner;
        let owner: Box<dyn Any> = owner;
        match owner.downcast() {
            Ok(owner) => Ok(*owner),
            // Not reached: the type was asked above.
            Err(_) => Err(Self::new([])),
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        (*self.owner).as_ref()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.as_ref().len();
        f.debug_struct("Buffer").field("len", &len).finish()
    }
}

impl From<Arc<[u8]>> for Buffer {
    fn from(owner: Arc<[u8]>) -> Self {
        Self::new(owner)
    }
}

impl From<Box<[u8]>> for Buffer {
    fn from(owner: Box<[u8]>) -> Self {
        Self::new(owner)
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(owner: Vec<u8>) -> Self {
        Self::new(owner)
    }
}

/// One frame to be sent: lent, and then copied, or given away.
///
/// # Examples
///
/// ```
/// use tensorwire::transport::Part;
///
/// let metadata = br#"{"tensor_descriptors":[]}"#;
/// let tensor = vec![0_u8; 4096];
/// let parts = vec![Part::from(&metadata[..]), Part::from(tensor)];
/// assert_eq!(parts[1].as_ref().len(), 4096);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Part<'a> {
    /// Bytes that the caller keeps; the send copies them.
    Borrowed(&'a [u8]),
    /// Bytes that go along with their owner.
    Owned(Buffer),
}

impl Part<'_> {
    /// A part that takes `owner` along.
    #[must_use]
    pub fn owned<T: AsRef<[u8]> + Send + 'static>(owner: T) -> Self {
        Self::Owned(Buffer::new(owner))
    }
}

impl AsRef<[u8]> for Part<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(buffer) => buffer.as_ref(),
        }
    }
}

impl<'a> From<&'a [u8]> for Part<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Borrowed(bytes)
    }
}

impl From<Buffer> for Part<'_> {
    fn from(buffer: Buffer) -> Self {
        Self::Owned(buffer)
    }
}

impl From<Arc<[u8]>> for Part<'_> {
    fn from(owner: Arc<[u8]>) -> Self {
        Self::owned(owner)
    }
}

impl From<Box<[u8]>> for Part<'_> {
    fn from(owner: Box<[u8]>) -> Self {
        Self::owned(owner)
    }
}

impl From<Vec<u8>> for Part<'_> {
    fn from(owner: Vec<u8>) -> Self {
        Self::owned(owner)
    }
}

/// What a buffer may be owned by.
trait Owner: Any + AsRef<[u8]> + Send {}

impl<T: Any + AsRef<[u8]> + Send> Owner for T {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_stay_where_the_owner_has_them() {
        let vec = alloc::vec![7_u8; 100];
        let address = vec.as_ptr();
        let buffer = Buffer::from(vec);
        assert_eq!(buffer.as_ref().as_ptr(), address);
        let buffer = buffer.downcast::<Arc<[u8]>>().unwrap_err();
        assert_eq!(buffer.downcast::<Vec<u8>>().unwrap().as_ptr(), address);
    }
}
