//! Tensors that leave with the frame that they lie in.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;

use super::MAX_RANK;
use super::abi::{
    DataType, Device, IS_COPIED, ManagedTensor, READ_ONLY, Tensor, Version, VersionedTensor,
};
use super::error::DlpackError;
use crate::dtype::DType;
use crate::error::{CastError, EncodeError};
use crate::tensor::{Descriptor, TensorView};
use crate::transport::Buffer;

/// A tensor on its way to a consumer of DLPack, with what owns its bytes.
///
/// [`into_raw`](Self::into_raw) and [`into_raw_versioned`](Self::into_raw_versioned) give the pointer that goes into a
/// capsule. Whoever takes it calls its deleter once, from any thread, and that drops the owner. If it is dropped before, the
/// owner goes with it.
pub struct Export {
    tensor: Tensor,
    flags: u64,
    keep: Keep,
}

/// What the pointers of a tensor lead to.
///
/// An `Rc` that is never cloned, and no `Box`: moving a `Box` claims that nothing else points into it.
struct Keep {
    /// The shape, then the strides.
    _extents: Rc<[i64]>,
    _owner: Rc<Owner>,
}

enum Owner {
    Copied(#[expect(dead_code, reason = "kept, and read by the consumer alone")] Vec<Chunk>),
    Shared(Buffer),
}

/// As large as a cache line, and aligned like one: no dtype needs more.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Chunk([u8; CHUNK]);

const CHUNK: usize = 64;

// SAFETY: `Send` asks that it may be used and dropped on another thread.
// - The pointers of `tensor` lead into `keep`, which goes along, and nobody
//   but a consumer follows them.
// - The counts of the `Rc`s are no one else's: neither is ever cloned, nor lent.
// - What they hold is `Send`: numbers, and a vector or a `Buffer` of bytes.
unsafe impl Send for Export {}

impl Export {
    /// Hands over the bytes of `owner`, which `descriptor` tells of, without a copy.
    ///
    /// The owner is a frame of a received message, as [`SharedFrame`](crate::interop::SharedFrame) gives them, or any other
    /// [`Buffer`].
    ///
    /// The consumer may read the bytes and not write to them: somebody else may see them too. A capsule of the older kind has no
    /// way to say so.
    ///
    /// # Errors
    ///
    /// The owner as it was, with
    ///
    /// - [`DlpackError::Encode`] unless there are just as many bytes as the descriptor says;
    /// - [`DlpackError::Cast`] if they are misaligned for their dtype ([`copy`](Self::copy) them then), or bools that are none;
    /// - [`DlpackError::Rank`] for more than [`MAX_RANK`] dimensions.
    pub fn new(
        descriptor: &Descriptor<'_>,
        owner: impl Into<Buffer>,
    ) -> Result<Self, (Buffer, DlpackError)> {
        let owner = owner.into();
        let mut extents = match extents(descriptor) {
            Ok(extents) => extents,
            Err(error) => return Err((owner, error)),
        };
        let owner = Rc::new(Owner::Shared(owner));
        match see(descriptor, &owner) {
            Ok(data) => Ok(Self {
                tensor: describe(descriptor, data.cast_mut(), &mut extents),
                flags: READ_ONLY,
                keep: Keep {
                    _extents: extents,
                    _owner: owner,
                },
            }),
            Err(error) => Err((take(owner), error)),
        }
    }

    /// Hands over a copy of a tensor, aligned to 64 bytes, which is its consumer's to write to.
    ///
    /// # Errors
    ///
    /// [`DlpackError::Cast`] for bools that are none; [`DlpackError::Rank`] for more than [`MAX_RANK`] dimensions.
    pub fn copy(tensor: &TensorView<'_>) -> Result<Self, DlpackError> {
        let descriptor = tensor.descriptor();
        let mut extents = extents(&descriptor)?;
        if tensor.dtype() == DType::Bool {
            tensor.elements::<bool>()?;
        }
        let mut chunks = alloc::vec![Chunk([0; CHUNK]); tensor.byte_len().div_ceil(CHUNK)];
        let room: &mut [u8] = bytemuck::cast_slice_mut(&mut chunks);
        for (slot, byte) in room.chunks_mut(CHUNK).zip(tensor.bytes().chunks(CHUNK)) {
            if let Some(slot) = slot.get_mut(..byte.len()) {
                slot.copy_from_slice(byte);
            }
        }
        let data = if tensor.byte_len() == 0 {
            core::ptr::null_mut()
        } else {
            chunks.as_mut_ptr().cast()
        };
        Ok(Self {
            tensor: describe(&descriptor, data, &mut extents),
            flags: IS_COPIED,
            keep: Keep {
                _extents: extents,
                _owner: Rc::new(Owner::Copied(chunks)),
            },
        })
    }

    /// Returns what a capsule named `dltensor` holds: what numpy and torch took before they knew DLPack 1.
    ///
    /// Its deleter is to be called once, by the consumer or, if there comes none, by the destructor of the capsule. The tensor is
    /// leaked otherwise. An owner that panics when it is dropped aborts the process.
    #[must_use]
    pub fn into_raw(self) -> NonNull<ManagedTensor> {
        hold(
            ManagedTensor {
                tensor: self.tensor,
                context: core::ptr::null_mut(),
                deleter: Some(delete::<ManagedTensor>),
            },
            self.keep,
        )
    }

    /// Returns what a capsule named `dltensor_versioned` holds: DLPack 1, which says whether the bytes may be written to.
    ///
    /// As [`into_raw`](Self::into_raw) otherwise.
    #[must_use]
    pub fn into_raw_versioned(self) -> NonNull<VersionedTensor> {
        hold(
            VersionedTensor {
                version: Version::OURS,
                context: core::ptr::null_mut(),
                deleter: Some(delete::<VersionedTensor>),
                flags: self.flags,
                tensor: self.tensor,
            },
            self.keep,
        )
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("dtype", &self.tensor.dtype.dtype())
            .field("rank", &self.tensor.rank)
            .finish_non_exhaustive()
    }
}

/// What a capsule leads to: the structure that the consumer knows, and behind it what that leads to.
#[repr(C)]
struct Held<T> {
    managed: T,
    keep: Keep,
}

fn hold<T>(managed: T, keep: Keep) -> NonNull<T> {
    let held = Box::leak(Box::new(Held { managed, keep }));
    NonNull::from(held).cast()
}

/// The deleter of what [`hold`] gave out.
///
/// # Safety
///
/// `managed` is null, or from `hold`, and this is the first call for it.
unsafe extern "C" fn delete<T>(managed: *mut T) {
    if managed.is_null() {
        return;
    }
    // SAFETY: `Box::from_raw` asks for a pointer that a box of the same type was
    // made into, once: `hold` leaked a box of `Held<T>`, whose first field, at
    // offset 0 as of `repr(C)`, the caller has, with the provenance of the whole.
    drop(unsafe { Box::from_raw(managed.cast::<Held<T>>()) });
}

/// The shape, then the strides of a tensor whose elements follow one another.
fn extents(descriptor: &Descriptor<'_>) -> Result<Rc<[i64]>, DlpackError> {
    let shape = descriptor.shape();
    if shape.rank() > MAX_RANK {
        let rank = i64::try_from(shape.rank()).unwrap_or(i64::MAX);
        return Err(DlpackError::Rank { rank });
    }
    let overflow = |_| DlpackError::Encode(EncodeError::ShapeOverflow);
    let dims: Result<Vec<i64>, _> = shape.dims().map(i64::try_from).collect();
    let dims = dims.map_err(overflow)?;
    // All products are below the one that the descriptor has checked.
    let stride = |inner: &[i64]| {
        inner
            .iter()
            .fold(1_i64, |all, dim| all.saturating_mul((*dim).max(1)))
    };
    let strides = (1..=dims.len()).map(|from| stride(dims.get(from..).unwrap_or_default()));
    Ok(dims.iter().copied().chain(strides).collect())
}

/// The bytes where they lie, held against what is said of them; null if there are none.
fn see(descriptor: &Descriptor<'_>, owner: &Owner) -> Result<*const u8, DlpackError> {
    let Owner::Shared(buffer) = owner else {
        return Ok(core::ptr::null());
    };
    let bytes = buffer.as_ref();
    let tensor = TensorView::new(*descriptor, bytes)?;
    if tensor.dtype() == DType::Bool {
        tensor.elements::<bool>()?;
    }
    if !tensor.is_aligned() {
        return Err(DlpackError::Cast(CastError::Misaligned {
            required: tensor.dtype().alignment(),
            actual: tensor.alignment(),
        }));
    }
    Ok(if bytes.is_empty() {
        core::ptr::null()
    } else {
        bytes.as_ptr()
    })
}

fn describe(descriptor: &Descriptor<'_>, data: *mut u8, extents: &mut Rc<[i64]>) -> Tensor {
    let rank = descriptor.shape().rank();
    let (shape, strides) = match Rc::get_mut(extents).and_then(|all| all.split_at_mut_checked(rank))
    {
        // Both from one borrow of the whole.
        Some((shape, strides)) => (shape.as_mut_ptr(), strides.as_mut_ptr()),
        None => (core::ptr::null_mut(), core::ptr::null_mut()),
    };
    Tensor {
        data: data.cast(),
        device: Device::HOST,
        // At most `MAX_RANK`.
        rank: i32::try_from(rank).unwrap_or_default(),
        dtype: DataType::of(descriptor.dtype()),
        shape,
        strides,
        byte_offset: 0,
    }
}

/// The buffer again, of an owner that is one.
fn take(owner: Rc<Owner>) -> Buffer {
    match Rc::into_inner(owner) {
        Some(Owner::Shared(buffer)) => buffer,
        _ => Buffer::new(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::slice;
    use std::thread;
    use std::vec;

    use alloc::sync::Arc;

    use crate::tensor::Shape;

    /// Bytes at a place of one's choice, that tell when they are dropped.
    struct Told {
        room: Vec<u64>,
        shift: usize,
        len: usize,
        _alive: Arc<()>,
    }

    impl AsRef<[u8]> for Told {
        fn as_ref(&self) -> &[u8] {
            &bytemuck::cast_slice(&self.room)[self.shift..][..self.len]
        }
    }

    fn told(shift: usize, len: usize) -> (Buffer, Arc<()>) {
        let alive = Arc::new(());
        let owner = Told {
            room: vec![0x0101_0101_0101_0101; 32],
            shift,
            len,
            _alive: alive.clone(),
        };
        (Buffer::new(owner), alive)
    }

    fn numbers(pointer: *const i64, rank: i32) -> Vec<i64> {
        // SAFETY: the pointer and rank of an export.
        unsafe { slice::from_raw_parts(pointer, rank.try_into().unwrap()) }.to_vec()
    }

    fn descriptor<'a>(dtype: DType, shape: impl Into<Shape<'a>>) -> Descriptor<'a> {
        Descriptor::new("x", dtype, shape).unwrap()
    }

    #[test]
    fn a_frame_is_handed_over_where_it_lies_and_given_back_once() {
        let (owner, alive) = told(8, 48);
        let address = owner.as_ref().as_ptr();
        let export = Export::new(&descriptor(DType::Float32, &[2, 3, 2]), owner).unwrap();
        let pointer = export.into_raw();
        // SAFETY: it is the export's.
        let managed = unsafe { pointer.as_ref() };
        let tensor = managed.tensor;
        assert_eq!(tensor.data.cast_const().cast(), address);
        assert_eq!(tensor.device, Device::HOST);
        assert_eq!(
            (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes),
            (2, 32, 1)
        );
        assert_eq!(numbers(tensor.shape, tensor.rank), [2, 3, 2]);
        assert_eq!(numbers(tensor.strides, tensor.rank), [6, 2, 1]);
        assert_eq!(tensor.byte_offset, 0);
        let deleter = managed.deleter.unwrap();
        assert_eq!(Arc::strong_count(&alive), 2);
        // SAFETY: the first call, for what it came with.
        unsafe { deleter(pointer.as_ptr()) };
        assert_eq!(Arc::strong_count(&alive), 1);
        // SAFETY: null is nothing to delete.
        unsafe { deleter(core::ptr::null_mut()) };
    }

    #[test]
    fn a_newer_capsule_says_what_may_be_written_to() {
        let (owner, alive) = told(0, 16);
        let tensor = descriptor(DType::UInt8, &[16]);
        let shared = Export::new(&tensor, owner).unwrap();
        let bytes = [7; 16];
        let copied = Export::copy(&TensorView::new(tensor, &bytes).unwrap()).unwrap();
        for (export, flags) in [(shared, READ_ONLY), (copied, IS_COPIED)] {
            let pointer = export.into_raw_versioned();
            // SAFETY: it is the export's.
            let managed = unsafe { pointer.as_ref() };
            assert_eq!((managed.version.major, managed.flags), (1, flags));
            assert_eq!(numbers(managed.tensor.shape, managed.tensor.rank), [16]);
            let deleter = managed.deleter.unwrap();
            // The consumer's thread is any.
            let pointer = pointer.as_ptr().expose_provenance();
            let delete = move || {
                let pointer = core::ptr::with_exposed_provenance_mut(pointer);
                // SAFETY: the first call, for what it came with.
                unsafe { deleter(pointer) }
            };
            thread::spawn(delete).join().unwrap();
        }
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn what_is_not_handed_over_goes_with_the_export() {
        let (owner, alive) = told(0, 16);
        let export = Export::new(&descriptor(DType::UInt8, &[16]), owner).unwrap();
        thread::spawn(move || drop(export)).join().unwrap();
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn what_cannot_be_handed_over_comes_back() {
        let rank: Vec<usize> = vec![1; MAX_RANK + 1];
        let misaligned = CastError::Misaligned {
            required: 4,
            actual: 2,
        };
        let length = EncodeError::ByteLength {
            expected: 12,
            actual: 16,
        };
        let cases = [
            (
                descriptor(DType::Float32, &[4]),
                2,
                DlpackError::Cast(misaligned),
            ),
            (
                descriptor(DType::Float32, &[3]),
                0,
                DlpackError::Encode(length),
            ),
            (
                descriptor(DType::UInt8, &rank),
                0,
                DlpackError::Rank { rank: 65 },
            ),
        ];
        for (descriptor, shift, expected) in cases {
            let (owner, _) = told(shift, 16);
            let address = owner.as_ref().as_ptr();
            let (owner, error) = Export::new(&descriptor, owner).unwrap_err();
            assert_eq!(error, expected);
            let owner = owner.downcast::<Told>().unwrap();
            assert_eq!(owner.as_ref().as_ptr(), address);
        }
        let invalid = DlpackError::Cast(CastError::InvalidBool { index: 2, byte: 7 });
        let bools = [1, 0, 7];
        let tensor = descriptor(DType::Bool, &[3]);
        assert_eq!(Export::new(&tensor, bools.to_vec()).unwrap_err().1, invalid);
        let view = TensorView::new(tensor, &bools).unwrap();
        assert_eq!(Export::copy(&view).unwrap_err(), invalid);
    }

    #[test]
    fn a_copy_is_aligned_whatever_it_is_a_copy_of() {
        let room: Vec<u8> = (0..200).collect();
        for shift in 0..8 {
            for len in [0, 1, 63, 64, 65, 130] {
                let bytes = &room[shift..][..len];
                let shape = [len];
                let view = TensorView::from_bytes("x", DType::UInt8, &shape, bytes).unwrap();
                let export = Export::copy(&view).unwrap();
                assert_eq!(export.tensor.data.is_null(), len == 0);
                assert_eq!(export.tensor.data.addr() % 64, 0);
                if len > 0 {
                    // SAFETY: the bytes of the export.
                    let copy =
                        unsafe { slice::from_raw_parts(export.tensor.data.cast::<u8>(), len) };
                    assert_eq!(copy, bytes);
                }
            }
        }
    }

    #[test]
    fn tensors_without_elements_have_no_address_and_strides_all_the_same() {
        // At an odd address, for nobody reads there.
        let (owner, _) = told(1, 0);
        let export = Export::new(&descriptor(DType::Float64, &[3, 0, 2]), owner).unwrap();
        assert!(export.tensor.data.is_null());
        assert_eq!(numbers(export.tensor.strides, 3), [2, 2, 1]);
        let (owner, _) = told(8, 8);
        let export = Export::new(&descriptor(DType::Float64, &[]), owner).unwrap();
        assert_eq!(export.tensor.rank, 0);
    }
}
