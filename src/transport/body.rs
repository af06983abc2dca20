//! Frames that lie in a body beside them.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;
use core::slice;

use alloc::vec::Vec;

/// One frame of a message that came in one body.
///
/// Only lent, by the message that keeps the body: it is neither made nor cloned
/// elsewhere.
pub struct Frame {
    data: NonNull<u8>,
    len: usize,
}

// SAFETY: `Send` and `Sync` ask that a shared slice of bytes may be read from any
// thread, which is so for any `&[u8]`; a frame stands for one and does no more.
unsafe impl Send for Frame {}
// SAFETY: as above.
unsafe impl Sync for Frame {}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `slice::from_raw_parts` asks four things.
        // - The address and length are those of a slice: they were taken from one
        //   by `Slices::push`.
        // - The bytes are initialized: they are a slice's.
        // - Nobody writes to them, nor frees them, while the result lives: the
        //   caller of `push` promised that until `clear`, which needs the frames
        //   mutably, and frames are only lent.
        // - They are at most `isize::MAX` bytes: they are a slice's.
        unsafe { slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").field("len", &self.len).finish()
    }
}

/// The frames of a message, apart from the body that they lie in.
#[derive(Debug, Default)]
pub(super) struct Slices {
    frames: Vec<Frame>,
}

impl Slices {
    /// Appends the frame that lies in `bytes`.
    ///
    /// # Safety
    ///
    /// 1. `bytes` stay where they are, allocated and unchanged, until
    ///    [`Slices::clear`] or until the slices are dropped.
    /// 2. The slices are lent to others only for as long as 1 holds.
    pub(super) unsafe fn push(&mut self, bytes: &[u8]) {
        self.frames.push(Frame {
            data: NonNull::from(bytes).cast(),
            len: bytes.len(),
        });
    }

    /// Forgets all frames, and keeps the room for the next ones.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
    }

    /// Returns the frames in order.
    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Returns how many frames there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.frames.capacity()
    }
}
