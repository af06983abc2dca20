//! What a message says of one tensor before its bytes are there.

use core::fmt;

use super::{Layout, Shape};
use crate::dtype::DType;
use crate::error::EncodeError;
use crate::json::Str;

/// Name, list index, dtype and shape of a tensor, whose size is known to fit in memory.
///
/// # Examples
///
/// ```
/// use tensorwire::{DType, tensor::Descriptor};
///
/// let latents = Descriptor::new("latents", DType::BFloat16, &[1, 16, 21, 30, 52])?;
/// assert_eq!(latents.byte_len(), 1_048_320);
/// # Ok::<(), tensorwire::error::EncodeError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Descriptor<'a> {
    name: Str<'a>,
    list_index: Option<u32>,
    dtype: DType,
    shape: Shape<'a>,
    layout: Layout,
}

impl<'a> Descriptor<'a> {
    /// Describes a plain tensor.
    ///
    /// # Errors
    ///
    /// [`EncodeError::ShapeOverflow`].
    pub fn new(
        name: impl Into<Str<'a>>,
        dtype: DType,
        shape: impl Into<Shape<'a>>,
    ) -> Result<Self, EncodeError> {
        let shape = shape.into();
        let layout = Layout::of_shape(&shape, dtype).ok_or(EncodeError::ShapeOverflow)?;
        Ok(Self::from_parts(name.into(), None, dtype, shape, layout))
    }

    pub(crate) const fn from_parts(
        name: Str<'a>,
        list_index: Option<u32>,
        dtype: DType,
        shape: Shape<'a>,
        layout: Layout,
    ) -> Self {
        Self {
            name,
            list_index,
            dtype,
            shape,
            layout,
        }
    }

    /// Returns the same, as member `index` of the list of its name.
    ///
    /// Peers cap the index, this crate at [`Limits::list_index`](crate::Limits::list_index).
    #[must_use]
    pub const fn with_list_index(self, index: u32) -> Self {
        Self {
            list_index: Some(index),
            ..self
        }
    }

    /// The same, as a plain tensor.
    pub(crate) const fn without_list_index(self) -> Self {
        Self {
            list_index: None,
            ..self
        }
    }

    /// The same in a document in which its text starts at `base`.
    pub(crate) const fn shifted(self, base: usize) -> Self {
        let name = self.name.at(self.name.offset().saturating_add(base));
        Self { name, ..self }
    }

    pub(crate) const fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) const fn with_shape(self, shape: Shape<'a>, layout: Layout) -> Self {
        Self {
            shape,
            layout,
            ..self
        }
    }

    /// Returns the field's name.
    #[must_use]
    pub const fn name(&self) -> Str<'a> {
        self.name
    }

    /// Returns the place in the list of its name, or `None` for a plain tensor.
    #[must_use]
    pub const fn list_index(&self) -> Option<u32> {
        self.list_index
    }

    /// Returns the type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape.
    #[must_use]
    pub const fn shape(&self) -> Shape<'a> {
        self.shape
    }

    /// Returns the number of elements: the product of the dimensions, 1 if there are none.
    #[must_use]
    pub const fn element_count(&self) -> usize {
        self.layout.elements()
    }

    /// Returns the size of the payload in bytes.
    #[must_use]
    pub const fn byte_len(&self) -> usize {
        self.layout.byte_len()
    }
}

impl fmt::Debug for Descriptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Descriptor")
            .field("name", &self.name)
            .field("list_index", &self.list_index)
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .finish()
    }
}

impl<'a> AsRef<Self> for Descriptor<'a> {
    fn as_ref(&self) -> &Self {
        self
    }
}
