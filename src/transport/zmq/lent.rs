//! Owners that wait for libzmq to release them.
//!
//! libzmq calls back with two words, the address of the bytes and a hint. The usual
//! owners fit into these, so that lending them allocates nothing of ours:
//!
//! ```text
//!   owner              address        hint
//!   Vec<u8>            its bytes      its capacity
//!   Box<[u8]>          its bytes      its length
//!   Arc<[u8]>          its bytes      its length
//!   PooledBuffer       its bytes      its slot
//!   any other          its bytes      the box that it came in
//! ```
#![allow(unsafe_code)]

use core::cell::Cell;
use core::ffi::c_void;
use core::mem::{self, ManuallyDrop};
use core::panic::AssertUnwindSafe;
use core::ptr;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use std::thread_local;

use crate::transport::Buffer;
use crate::transport::buffer::Content;
use crate::transport::pool::{PooledBuffer, Slot};

/// An owner that waits for libzmq to release it.
///
/// Not for long: the code that makes one hands it to libzmq, or takes it back, or
/// else it is leaked.
pub(in crate::transport) struct Lent {
    pub(super) words: Words,
    /// What libzmq calls when the last reader is done: drops the owner.
    pub(super) release: extern "C" fn(*mut c_void, *mut c_void),
    /// Takes the owner back instead.
    pub(super) reclaim: Reclaim,
}

/// The bytes of an owner, and what is needed to find it again.
#[derive(Clone, Copy)]
pub(in crate::transport) struct Words {
    pub(super) data: *mut u8,
    pub(super) len: usize,
    pub(super) hint: *mut c_void,
}

/// Makes the owner again that was taken apart.
///
/// Asks that the words are those beside it, and that the owner is not made a second
/// time, neither by this nor by the release.
pub(super) type Reclaim = unsafe fn(Words) -> Buffer;

impl Lent {
    pub(super) fn new(buffer: Buffer) -> Self {
        match buffer.into_content() {
            Content::Boxed(owner) => owner.into_lent(),
            Content::Pooled(pooled) => match pooled.and_then(PooledBuffer::into_slot) {
                Some(slot) => Self::slot(slot),
                None => Self::vec(Vec::new()),
            },
            Content::Shared(Some(shared)) => Self::shared(shared),
            Content::Slice(slice) => Self::slice(slice.unwrap_or_default()),
            Content::Vec(vec) => Self::vec(vec.unwrap_or_default()),
            Content::Shared(None) => Self::vec(Vec::new()),
        }
    }

    /// Lends an owner in its box.
    pub(in crate::transport) fn boxed<T>(owner: Box<Option<T>>) -> Self
    where
        T: AsRef<[u8]> + Send + 'static,
    {
        let holder = Box::into_raw(owner);
        // The guard owns the holder while code of the user runs in `as_ref`.
        let guard = HolderGuard(holder);
        // SAFETY: a dereference asks for a valid value that nobody changes meanwhile:
        // the box was leaked above, and nobody else knows of it.
        let owner = unsafe { &*holder };
        let bytes = owner.as_ref().map_or(&[][..], AsRef::as_ref);
        let (data, len) = (bytes.as_ptr().cast_mut(), bytes.len());
        mem::forget(guard);
        Self {
            words: Words {
                data,
                len,
                hint: holder.cast(),
            },
            release: release_boxed::<T>,
            reclaim: reclaim_boxed::<T>,
        }
    }

    fn shared(shared: Arc<[u8]>) -> Self {
        let len = shared.len();
        Self {
            words: Words {
                data: Arc::into_raw(shared).cast::<u8>().cast_mut(),
                len,
                hint: ptr::without_provenance_mut(len),
            },
            release: release_shared,
            reclaim: reclaim_shared,
        }
    }

    fn slice(slice: Box<[u8]>) -> Self {
        let len = slice.len();
        Self {
            words: Words {
                data: Box::into_raw(slice).cast(),
                len,
                hint: ptr::without_provenance_mut(len),
            },
            release: release_slice,
            reclaim: reclaim_slice,
        }
    }

    fn slot(slot: Box<Slot>) -> Self {
        let slot = Box::into_raw(slot);
        // SAFETY: a dereference asks for a valid value that nobody changes meanwhile:
        // the box was leaked above, and nobody else knows of it.
        let bytes = unsafe { &*slot }.bytes();
        Self {
            words: Words {
                data: bytes.as_ptr().cast_mut(),
                len: bytes.len(),
                hint: slot.cast(),
            },
            release: release_slot,
            reclaim: reclaim_slot,
        }
    }

    fn vec(vec: Vec<u8>) -> Self {
        let mut vec = ManuallyDrop::new(vec);
        Self {
            words: Words {
                data: vec.as_mut_ptr(),
                len: vec.len(),
                hint: ptr::without_provenance_mut(vec.capacity()),
            },
            release: release_vec,
            reclaim: reclaim_vec,
        }
    }
}

/// Frees the holder if the owner's `AsRef` panics.
struct HolderGuard<T>(*mut Option<T>);

impl<T> Drop for HolderGuard<T> {
    fn drop(&mut self) {
        // SAFETY: `Box::from_raw` asks for a pointer from `Box::into_raw` that nobody
        // else frees: the guard is forgotten before anybody else learns of it.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

thread_local! {
    /// Whether releases on this thread are to do nothing.
    static DISARMED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `close`, and has the releases that it calls do nothing.
pub(super) fn without_release(close: impl FnOnce()) {
    DISARMED.set(true);
    close();
    DISARMED.set(false);
}

fn is_disarmed() -> bool {
    // A thread without its locals is at its end, and does not take anything back.
    DISARMED.try_with(Cell::get).unwrap_or(false)
}

extern "C" fn release_boxed<T>(_data: *mut c_void, hint: *mut c_void)
where
    T: AsRef<[u8]> + Send + 'static,
{
    if is_disarmed() {
        return;
    }
    // SAFETY: `Box::from_raw` asks for a pointer from `Box::into_raw` that nobody else
    // frees: `hint` is the holder of `Lent::boxed`, of this `T`, and libzmq calls once.
    let holder = unsafe { Box::from_raw(hint.cast::<Option<T>>()) };
    // No panic goes into libzmq: the hook has reported it, and that is all.
    let holder = AssertUnwindSafe(holder);
    let dropped = std::panic::catch_unwind(move || drop({ holder }.0));
    // The payload is leaked, as dropping it might panic again.
    dropped.unwrap_or_else(mem::forget);
}

/// # Safety
///
/// As [`Reclaim`] says, with words of [`Lent::boxed`].
unsafe fn reclaim_boxed<T>(words: Words) -> Buffer
where
    T: AsRef<[u8]> + Send + 'static,
{
    // SAFETY: as in `release_boxed`; that nobody else frees it is the caller's promise.
    let holder = unsafe { Box::from_raw(words.hint.cast::<Option<T>>()) };
    Buffer::from_content(Content::Boxed(holder))
}

extern "C" fn release_shared(data: *mut c_void, hint: *mut c_void) {
    if is_disarmed() {
        return;
    }
    let bytes = ptr::slice_from_raw_parts(data.cast::<u8>(), hint.addr());
    // SAFETY: `Arc::from_raw` asks for a pointer from `Arc::into_raw` whose count nobody
    // else takes back: these are the address and length of one, and libzmq calls once.
    drop(unsafe { Arc::from_raw(bytes) });
}

/// # Safety
///
/// As [`Reclaim`] says, with words of `Lent::shared`.
unsafe fn reclaim_shared(words: Words) -> Buffer {
    let bytes = ptr::slice_from_raw_parts(words.data, words.len);
    // SAFETY: as in `release_shared`; that nobody else takes it is the caller's promise.
    let shared: Arc<[u8]> = unsafe { Arc::from_raw(bytes) };
    Buffer::from_content(Content::Shared(Some(shared)))
}

extern "C" fn release_slice(data: *mut c_void, hint: *mut c_void) {
    if is_disarmed() {
        return;
    }
    let bytes = ptr::slice_from_raw_parts_mut(data.cast::<u8>(), hint.addr());
    // SAFETY: `Box::from_raw` asks for a pointer from `Box::into_raw` that nobody else
    // frees: these are the address and length of one, and libzmq calls once.
    drop(unsafe { Box::from_raw(bytes) });
}

/// # Safety
///
/// As [`Reclaim`] says, with words of `Lent::slice`.
unsafe fn reclaim_slice(words: Words) -> Buffer {
    let bytes = ptr::slice_from_raw_parts_mut(words.data, words.len);
    // SAFETY: as in `release_slice`; that nobody else frees it is the caller's promise.
    let slice = unsafe { Box::from_raw(bytes) };
    Buffer::from_content(Content::Slice(Some(slice)))
}

extern "C" fn release_slot(_data: *mut c_void, hint: *mut c_void) {
    if is_disarmed() {
        return;
    }
    // SAFETY: `Box::from_raw` asks for a pointer from `Box::into_raw` that nobody else
    // frees: `hint` is the slot of `Lent::slot`, and libzmq calls once.
    let slot = unsafe { Box::from_raw(hint.cast::<Slot>()) };
    // Back to its pool.
    drop(PooledBuffer::from_slot(slot));
}

/// # Safety
///
/// As [`Reclaim`] says, with words of `Lent::slot`.
unsafe fn reclaim_slot(words: Words) -> Buffer {
    // SAFETY: as in `release_slot`; that nobody else frees it is the caller's promise.
    let slot = unsafe { Box::from_raw(words.hint.cast::<Slot>()) };
    Buffer::from(PooledBuffer::from_slot(slot))
}

extern "C" fn release_vec(data: *mut c_void, hint: *mut c_void) {
    if is_disarmed() {
        return;
    }
    // SAFETY: `Vec::from_raw_parts` asks that the address and capacity are those of a
    // vector of bytes that nobody else frees, with as many bytes initialized as the
    // length says: they are those of one, libzmq calls once, and none are said to be.
    drop(unsafe { Vec::from_raw_parts(data.cast::<u8>(), 0, hint.addr()) });
}

/// # Safety
///
/// As [`Reclaim`] says, with words of `Lent::vec`.
unsafe fn reclaim_vec(words: Words) -> Buffer {
    // SAFETY: as in `release_vec`, with the length that the vector had; that nobody else
    // frees it is the caller's promise.
    let vec = unsafe { Vec::from_raw_parts(words.data, words.len, words.hint.addr()) };
    Buffer::from_content(Content::Vec(Some(vec)))
}
