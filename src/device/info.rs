//! What a tensor is called and looks like, kept beside it.

use core::fmt;

use alloc::boxed::Box;

use crate::dtype::DType;
use crate::json::Str;
use crate::tensor::{Descriptor, Layout, Shape};

/// Name, list index, dtype and shape of a tensor, apart from the frame that told them.
///
/// # Examples
///
/// ```
/// use tensorwire::DType;
/// use tensorwire::device::TensorInfo;
/// use tensorwire::tensor::Descriptor;
///
/// let info = {
///     let name = String::from("latents");
///     TensorInfo::new(&Descriptor::new(&*name, DType::BFloat16, &[1, 16, 30, 52])?)
/// };
/// assert!(info.name() == "latents");
/// assert_eq!(info.shape(), [1, 16, 30, 52]);
/// assert_eq!(info.byte_len(), 49_920);
/// # Ok::<(), tensorwire::error::EncodeError>(())
/// ```
#[derive(Clone)]
pub struct TensorInfo {
    /// As it is written between the quotes of its JSON, so that it is written again just so.
    name: Box<str>,
    escaped: bool,
    list_index: Option<u32>,
    dtype: DType,
    shape: Box<[usize]>,
    layout: Layout,
}

impl TensorInfo {
    /// Keeps what `descriptor` says.
    #[must_use]
    pub fn new(descriptor: &Descriptor<'_>) -> Self {
        let name = descriptor.name();
        Self {
            name: name.raw().into(),
            escaped: name.is_escaped(),
            list_index: descriptor.list_index(),
            dtype: descriptor.dtype(),
            shape: descriptor.shape().dims().collect(),
            layout: descriptor.layout(),
        }
    }

    /// Returns the same, to look into or to encode.
    #[must_use]
    pub fn descriptor(&self) -> Descriptor<'_> {
        Descriptor::from_parts(
            self.name(),
            self.list_index,
            self.dtype,
            Shape::from(&*self.shape),
            self.layout,
        )
    }

    /// Returns the field's name.
    #[must_use]
    pub fn name(&self) -> Str<'_> {
        Str::from_json(&self.name, self.escaped)
    }

    /// Returns the place in its list, if it is a member of one.
    #[must_use]
    pub const fn list_index(&self) -> Option<u32> {
        self.list_index
    }

    /// Returns the type of its elements.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns its dimensions, outermost first.
    #[must_use]
    pub const fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of its elements.
    #[must_use]
    pub const fn element_count(&self) -> usize {
        self.layout.elements()
    }

    /// Returns its size in bytes.
    #[must_use]
    pub const fn byte_len(&self) -> usize {
        self.layout.byte_len()
    }
}

impl fmt::Debug for TensorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.descriptor().fmt(f)
    }
}
