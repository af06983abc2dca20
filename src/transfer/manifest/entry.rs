//! What a manifest says of one tensor.

use core::ops::Range;

use crate::error::EncodeError;
use crate::tensor::Descriptor;

/// A tensor's place in a slot: what it is, and where it starts.
///
/// Its end fits: it is at most `isize::MAX`.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::manifest::Entry;
/// use tensorwire::{DType, Descriptor};
///
/// let latents = Descriptor::new("latents", DType::BFloat16, &[16, 8])?;
/// let entry = Entry::new(latents, 1024)?;
/// assert_eq!(entry.range(), 1024..1280);
/// # Ok::<(), tensorwire::error::EncodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    descriptor: Descriptor<'a>,
    offset: usize,
}

impl<'a> Entry<'a> {
    /// Puts a tensor at `offset`, in bytes from the start of the slot; any number will do.
    ///
    /// # Errors
    ///
    /// [`EncodeError::SlotOverflow`] if it would end past byte `isize::MAX`.
    pub fn new(descriptor: Descriptor<'a>, offset: usize) -> Result<Self, EncodeError> {
        match end(offset, descriptor.byte_len()) {
            Some(_) => Ok(Self { descriptor, offset }),
            None => Err(EncodeError::SlotOverflow),
        }
    }

    pub(super) const fn from_parts(descriptor: Descriptor<'a>, offset: usize) -> Self {
        Self { descriptor, offset }
    }

    /// Returns name, list index, dtype and shape.
    #[must_use]
    pub const fn descriptor(&self) -> Descriptor<'a> {
        self.descriptor
    }

    /// Returns where it starts, in bytes from the start of the slot.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns which bytes of the slot are its own.
    #[must_use]
    pub const fn range(&self) -> Range<usize> {
        // Does not saturate: the end was checked.
        let end = self.offset.saturating_add(self.descriptor.byte_len());
        self.offset..end
    }
}

impl<'a> AsRef<Descriptor<'a>> for Entry<'a> {
    fn as_ref(&self) -> &Descriptor<'a> {
        &self.descriptor
    }
}

impl AsRef<Self> for Entry<'_> {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The end of `byte_len` bytes from `offset` on, if a slot can be as long.
pub(super) fn end(offset: usize, byte_len: usize) -> Option<usize> {
    let end = offset.checked_add(byte_len)?;
    isize::try_from(end).is_ok().then_some(end)
}
