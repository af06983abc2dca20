//! Frames that are moved into a message instead of copied.

use core::any::Any;
use core::fmt;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

#[cfg(feature = "std")]
use super::pool::PooledBuffer;
#[cfg(feature = "zmq")]
use super::zmq::Lent;

/// Bytes together with what owns them, ready to be sent without a copy.
///
/// Moving the owner in here is what keeps everybody else's hands off the bytes
/// while they are in flight. The owner is dropped exactly once, when the last
/// one to read the bytes has done with them; that may be on a thread of the
/// transport, hence `Send`.
///
/// Any `AsRef<[u8]> + Send + 'static` will do: `Vec<u8>`, `Box<[u8]>`,
/// `Arc<[u8]>`, a slot of pinned memory, a received frame that is forwarded.
///
/// `Vec<u8>`, `Box<[u8]>`, `Arc<[u8]>` and `PooledBuffer` go in as they are;
/// any other owner is put in a box, which is one small allocation.
///
/// # Examples
///
/// ```
/// use tensorwire::transport::Buffer;
///
/// let buffer = Buffer::new(vec![1_u8, 2, 3]);
/// assert_eq!(buffer.as_ref(), [1, 2, 3]);
/// let vec: Vec<u8> = buffer.downcast()?;
/// assert_eq!(vec, [1, 2, 3]);
/// # Ok::<(), Buffer>(())
/// ```
pub struct Buffer {
    content: Content,
}

/// An owner: an `Option`, so that it can be moved out through an `Any`. It is
/// `None` only while the buffer it was in is being taken apart.
pub(super) enum Content {
    Boxed(Box<dyn Owner>),
    #[cfg(feature = "std")]
    Pooled(Option<PooledBuffer>),
    Shared(Option<Arc<[u8]>>),
    Slice(Option<Box<[u8]>>),
    Vec(Option<Vec<u8>>),
}

impl Buffer {
    /// Takes `owner` and, with it, its bytes.
    #[must_use]
    pub fn new<T: AsRef<[u8]> + Send + 'static>(owner: T) -> Self {
        // Compared types are known when this is compiled for a `T`: one arm is left.
        let mut owner = Some(owner);
        let any: &mut dyn Any = &mut owner;
        let content = if let Some(vec) = any.downcast_mut::<Option<Vec<u8>>>() {
            Content::Vec(vec.take())
        } else if let Some(slice) = any.downcast_mut::<Option<Box<[u8]>>>() {
            Content::Slice(slice.take())
        } else if let Some(shared) = any.downcast_mut::<Option<Arc<[u8]>>>() {
            Content::Shared(shared.take())
        } else {
            #[cfg(feature = "std")]
            if let Some(pooled) = any.downcast_mut::<Option<PooledBuffer>>() {
                let content = Content::Pooled(pooled.take());
                return Self { content };
            }
            Content::Boxed(Box::new(owner))
        };
        Self { content }
    }

    /// Gives the owner back, if it is a `T`.
    ///
    /// # Errors
    ///
    /// The buffer as it was, if its owner is no `T`.
    pub fn downcast<T: AsRef<[u8]> + Send + 'static>(mut self) -> Result<T, Self> {
        let owner: &mut dyn Any = match &mut self.content {
            Content::Boxed(owner) => &mut **owner,
            #[cfg(feature = "std")]
            Content::Pooled(pooled) => pooled,
            Content::Shared(shared) => shared,
            Content::Slice(slice) => slice,
            Content::Vec(vec) => vec,
        };
        let owner = owner.downcast_mut().and_then(Option::<T>::take);
        owner.ok_or(self)
    }

    #[cfg(feature = "zmq")]
    pub(super) fn from_content(content: Content) -> Self {
        Self { content }
    }

    /// Takes the buffer apart, for libzmq to have.
    #[cfg(feature = "zmq")]
    pub(super) fn into_content(self) -> Content {
        self.content
    }
}

impl AsRef<[u8]> for Buffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match &self.content {
            Content::Boxed(owner) => owner.bytes(),
            #[cfg(feature = "std")]
            Content::Pooled(pooled) => pooled.as_ref().map_or(&[], AsRef::as_ref),
            Content::Shared(shared) => shared.as_deref().unwrap_or_default(),
            Content::Slice(slice) => slice.as_deref().unwrap_or_default(),
            Content::Vec(vec) => vec.as_deref().unwrap_or_default(),
        }
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

#[cfg(feature = "std")]
impl From<PooledBuffer> for Buffer {
    fn from(owner: PooledBuffer) -> Self {
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
    /// Makes a part that takes `owner` along.
    #[must_use]
    pub fn owned<T: AsRef<[u8]> + Send + 'static>(owner: T) -> Self {
        Self::Owned(Buffer::new(owner))
    }

    /// Empties `list`, and gives its room to parts that borrow from elsewhere: so
    /// one list can serve messages that have nothing to do with each other.
    ///
    /// # Examples
    ///
    /// ```
    /// use tensorwire::transport::Part;
    ///
    /// let mut list = Vec::with_capacity(8);
    /// for number in 0..3_u32 {
    ///     let metadata = number.to_le_bytes();
    ///     let mut parts = Part::recycle(list);
    ///     parts.push(Part::from(&metadata[..]));
    ///     // ... send `parts` ...
    ///     list = Part::recycle(parts);
    /// }
    /// assert!(list.is_empty());
    /// ```
    #[must_use]
    pub fn recycle<'b>(mut list: Vec<Self>) -> Vec<Part<'b>> {
        list.clear();
        // No items are left; collecting them keeps the room of the vector.
        list.into_iter().map_while(|_| None).collect()
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

#[cfg(feature = "std")]
impl From<PooledBuffer> for Part<'_> {
    fn from(owner: PooledBuffer) -> Self {
        Self::owned(owner)
    }
}

impl From<Vec<u8>> for Part<'_> {
    fn from(owner: Vec<u8>) -> Self {
        Self::owned(owner)
    }
}

/// What a boxed owner can do.
pub(super) trait Owner: Any + Send {
    fn bytes(&self) -> &[u8];

    /// Leaves the owner for libzmq to release.
    #[cfg(feature = "zmq")]
    fn into_lent(self: Box<Self>) -> Lent;
}

impl<T: Any + AsRef<[u8]> + Send> Owner for Option<T> {
    fn bytes(&self) -> &[u8] {
        self.as_ref().map_or(&[], AsRef::as_ref)
    }

    #[cfg(feature = "zmq")]
    fn into_lent(self: Box<Self>) -> Lent {
        Lent::boxed(self)
    }
}

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
        let vec = buffer.downcast::<Vec<u8>>().unwrap();
        assert_eq!(vec.as_ptr(), address);
    }

    /// Makes a buffer of `owner`, and gets the owner back and nothing else.
    fn comes_back<T: AsRef<[u8]> + Send + 'static>(owner: T) {
        let address = owner.as_ref().as_ptr();
        let buffer = Buffer::new(owner);
        assert_eq!(buffer.as_ref().as_ptr(), address);
        let buffer = buffer.downcast::<&'static [u8]>().unwrap_err();
        assert_eq!(buffer.downcast::<T>().unwrap().as_ref().as_ptr(), address);
    }

    #[test]
    fn every_kind_of_owner_comes_back() {
        struct Custom(Vec<u8>);
        impl AsRef<[u8]> for Custom {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        let bytes = || alloc::vec![7_u8; 100];
        comes_back(bytes());
        comes_back(bytes().into_boxed_slice());
        comes_back::<Arc<[u8]>>(bytes().into());
        comes_back(Custom(bytes()));
        comes_back(Vec::new());
    }

    #[test]
    fn a_recycled_list_keeps_its_room() {
        let mut list = Vec::with_capacity(100);
        list.push(Part::from(&b"frame"[..]));
        let address = list.as_ptr().cast::<u8>();
        let list: Vec<Part<'static>> = Part::recycle(list);
        assert!(list.is_empty());
        assert_eq!(list.capacity(), 100);
        assert_eq!(list.as_ptr().cast::<u8>(), address);
    }
}
