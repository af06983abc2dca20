//! Tensors of other libraries, to be sent from where they lie.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;
use core::slice;

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::MAX_RANK;
use super::abi::{ManagedTensor, Tensor, VersionedTensor};
use super::error::{DlpackError, Pointer};
use crate::dtype::DType;
use crate::error::EncodeError;
use crate::json::Str;
use crate::tensor::{Descriptor, Layout, Shape, TensorView};
use crate::transport::{Buffer, Part};

/// A tensor that a producer of DLPack handed over, to be looked into or sent.
///
/// It owns what the producer gave: when it is dropped, on whatever thread, it calls the producer's deleter. As a [`Part`] it goes to a
/// transport, and is released when the bytes have been sent.
///
/// # Examples
///
/// See [the module](super).
pub struct Import {
    source: Source,
    data: NonNull<u8>,
    dtype: DType,
    shape: Box<[usize]>,
    layout: Layout,
}

#[derive(Clone, Copy)]
enum Source {
    Managed(NonNull<ManagedTensor>),
    Versioned(NonNull<VersionedTensor>),
}

// SAFETY: `Send` asks that it may be used and dropped on another thread.
// - Used: it reads memory that nobody writes to, as rule 2 of `from_raw` says.
// - Dropped: the deleter may be called from any thread, as rule 3 says.
unsafe impl Send for Import {}
// SAFETY: `Sync` asks that threads may use it at once: they read, as above.
unsafe impl Sync for Import {}

impl Import {
    /// Takes over what a capsule named `dltensor` holds.
    ///
    /// When it has been taken, the capsule is renamed to `used_dltensor`, or whatever else its protocol says, so that it does not
    /// call the deleter as well.
    ///
    /// Numbers are not believed: what they say is checked before it is used.
    ///
    /// # Safety
    ///
    /// 1. `managed` is null, or leads to a structure that its producer made and nobody has given back, and unless an error is
    ///    returned nobody else gives it back.
    /// 2. Its pointers that are not null lead to what DLPack says: as many dimensions and strides as its rank, and the elements,
    ///    if their device is the host's memory. Nobody writes to any of these, nor frees them, until the deleter is called.
    /// 3. The deleter may be called from any thread.
    ///
    /// # Errors
    ///
    /// Any [`DlpackError`] but [`DlpackError::Cast`] and [`DlpackError::Version`]. Then nothing was taken: the caller has it still.
    pub unsafe fn from_raw(managed: *mut ManagedTensor) -> Result<Self, DlpackError> {
        let managed = NonNull::new(managed).ok_or(DlpackError::Null(Pointer::Tensor))?;
        // SAFETY: a read through a pointer asks that it is aligned and leads to
        // an initialized value: rule 1.
        let tensor = unsafe { (*managed.as_ptr()).tensor };
        // SAFETY: rule 2 is what it asks.
        unsafe { Self::check(&tensor, Source::Managed(managed)) }
    }

    /// Takes over what a capsule named `dltensor_versioned` holds.
    ///
    /// As [`from_raw`](Self::from_raw) otherwise; then the capsule is renamed to `used_dltensor_versioned`.
    ///
    /// # Safety
    ///
    /// As of [`from_raw`](Self::from_raw).
    ///
    /// # Errors
    ///
    /// As of [`from_raw`](Self::from_raw); and [`DlpackError::Version`].
    pub unsafe fn from_raw_versioned(managed: *mut VersionedTensor) -> Result<Self, DlpackError> {
        let managed = NonNull::new(managed).ok_or(DlpackError::Null(Pointer::Tensor))?;
        // SAFETY: as in `from_raw`; the version is where it is in any version.
        let version = unsafe { (*managed.as_ptr()).version };
        if version.major != 1 {
            let (major, minor) = (version.major, version.minor);
            return Err(DlpackError::Version { major, minor });
        }
        // SAFETY: as in `from_raw`, now that the version is known.
        let tensor = unsafe { (*managed.as_ptr()).tensor };
        // SAFETY: rule 2 is what it asks.
        unsafe { Self::check(&tensor, Source::Versioned(managed)) }
    }

    /// # Safety
    ///
    /// Rule 2 of [`Self::from_raw`].
    unsafe fn check(tensor: &Tensor, source: Source) -> Result<Self, DlpackError> {
        let data_type = tensor.dtype;
        let dtype = data_type.dtype().ok_or(DlpackError::DType {
            code: data_type.code,
            bits: data_type.bits,
            lanes: data_type.lanes,
        })?;
        if !tensor.device.is_host() {
            let (kind, id) = (tensor.device.kind, tensor.device.id);
            return Err(DlpackError::Device { kind, id });
        }
        let rank = i64::from(tensor.rank);
        let rank = match usize::try_from(rank) {
            Ok(small) if small <= MAX_RANK => small,
            _ => return Err(DlpackError::Rank { rank }),
        };
        if rank > 0 && tensor.shape.is_null() {
            return Err(DlpackError::Null(Pointer::Shape));
        }
        // SAFETY: it is not null unless there are no dimensions, and rule 2.
        let dims = unsafe { read(tensor.shape, rank) };
        let shape = sizes(&dims)?;
        let layout = Layout::of_shape(&Shape::from(&*shape), dtype)
            .ok_or(DlpackError::Encode(EncodeError::ShapeOverflow))?;
        if !tensor.strides.is_null() && layout.elements() > 0 {
            // SAFETY: it is not null, and rule 2.
            let strides = unsafe { read(tensor.strides, rank) };
            check_strides(&dims, &strides)?;
        }
        Ok(Self {
            source,
            data: locate(tensor, layout.byte_len())?,
            dtype,
            shape,
            layout,
        })
    }

    /// Describes it, under a name, for the metadata of a message.
    #[must_use]
    pub fn descriptor<'a>(&'a self, name: impl Into<Str<'a>>) -> Descriptor<'a> {
        let shape = Shape::from(&*self.shape);
        Descriptor::from_parts(name.into(), None, self.dtype, shape, self.layout)
    }

    /// Sees it, under a name, where it lies.
    ///
    /// # Errors
    ///
    /// [`EncodeError::ByteLength`], which does not occur: the length was checked on taking it over.
    pub fn view<'a>(&'a self, name: impl Into<Str<'a>>) -> Result<TensorView<'a>, EncodeError> {
        TensorView::new(self.descriptor(name), self.as_ref())
    }

    /// Returns the type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the dimensions, outermost first.
    #[must_use]
    pub const fn shape(&self) -> &[usize] {
        &self.shape
    }
}

impl AsRef<[u8]> for Import {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `slice::from_raw_parts` asks four things.
        // - The address is not null, and valid for reads of as many bytes: `locate`
        //   found no null, and rule 2 of `from_raw`; without bytes it is dangling.
        // - They are initialized: rule 2.
        // - Nobody writes to them, nor frees them, while the result lives: rule 2,
        //   and the deleter is called when this is dropped.
        // - They are at most `isize::MAX` bytes, and do not wrap: `Layout`, `locate`.
        unsafe { slice::from_raw_parts(self.data.as_ptr(), self.layout.byte_len()) }
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        match self.source {
            Source::Managed(managed) => {
                // SAFETY: a read as in `from_raw`; nobody has given it back.
                let deleter = unsafe { (*managed.as_ptr()).deleter };
                if let Some(deleter) = deleter {
                    // SAFETY: it asks for the structure that it came with, once,
                    // on a thread that it may be called from: rules 1 and 3.
                    unsafe { deleter(managed.as_ptr()) }
                }
            }
            Source::Versioned(managed) => {
                // SAFETY: a read as in `from_raw`; nobody has given it back.
                let deleter = unsafe { (*managed.as_ptr()).deleter };
                if let Some(deleter) = deleter {
                    // SAFETY: as above.
                    unsafe { deleter(managed.as_ptr()) }
                }
            }
        }
    }
}

impl fmt::Debug for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Import")
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

impl From<Import> for Buffer {
    fn from(import: Import) -> Self {
        Self::new(import)
    }
}

impl From<Import> for Part<'_> {
    fn from(import: Import) -> Self {
        Self::owned(import)
    }
}

/// Copies `rank` numbers, at most [`MAX_RANK`].
///
/// # Safety
///
/// Unless `rank` is 0, `numbers` leads to as many.
unsafe fn read(numbers: *const i64, rank: usize) -> Vec<i64> {
    if rank == 0 {
        return Vec::new();
    }
    // SAFETY: `slice::from_raw_parts` asks for as many initialized numbers, aligned,
    // that nobody writes to while the slice lives: the caller promises that they are
    // there, as a C array of numbers, and no one else runs while they are copied. They are
    // few.
    unsafe { slice::from_raw_parts(numbers, rank) }.to_vec()
}

fn sizes(dims: &[i64]) -> Result<Box<[usize]>, DlpackError> {
    let size =
        |(index, &dim)| usize::try_from(dim).map_err(|_| DlpackError::NegativeDim { index, dim });
    dims.iter().enumerate().map(size).collect()
}

/// Elements follow one another; the stride of a dimension of one says nothing.
fn check_strides(dims: &[i64], strides: &[i64]) -> Result<(), DlpackError> {
    let mut expected = 1_i64;
    for (index, (&dim, &actual)) in dims.iter().zip(strides).enumerate().rev() {
        if dim != 1 && actual != expected {
            return Err(DlpackError::Strides {
                index,
                expected,
                actual,
            });
        }
        // The product of all is in range.
        expected = expected.saturating_mul(dim);
    }
    Ok(())
}

/// Where the bytes start.
fn locate(tensor: &Tensor, byte_len: usize) -> Result<NonNull<u8>, DlpackError> {
    if byte_len == 0 {
        return Ok(NonNull::dangling());
    }
    if tensor.data.is_null() {
        return Err(DlpackError::Null(Pointer::Data));
    }
    let byte_offset = tensor.byte_offset;
    let beyond = DlpackError::OutOfMemory {
        byte_offset,
        byte_len,
    };
    let offset = isize::try_from(byte_offset).map_err(|_| beyond)?;
    let offset = usize::try_from(offset).map_err(|_| beyond)?;
    let start = tensor.data.addr().checked_add(offset).ok_or(beyond)?;
    start.checked_add(byte_len).ok_or(beyond)?;
    let data = tensor.data.cast::<u8>().wrapping_add(offset);
    NonNull::new(data).ok_or(beyond)
}

#[cfg(test)]
mod tests;
