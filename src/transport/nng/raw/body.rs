//! Bodies of messages.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::fmt;
use core::ptr::{self, NonNull};
use core::slice;

use ::nng::Error;
use nng_sys::nng_msg;

use super::check;

/// The body of one message: a buffer of NNG's.
pub(in crate::transport::nng) struct Body {
    message: NonNull<nng_msg>,
}

// SAFETY: `Send` asks that the value may be used from another thread. A message is
// plain memory that NNG itself hands from thread to thread; this is the only
// handle to it.
unsafe impl Send for Body {}
// SAFETY: `Sync` asks that shared uses may come from several threads at once. They
// read the address and length of the body, and the bytes, which change by `&mut` only.
unsafe impl Sync for Body {}

impl Body {
    /// Makes a body of `len` bytes, all zero.
    pub(in crate::transport::nng) fn new(len: usize) -> Result<Self, Error> {
        // NNG adds up to 32 bytes of its own, unchecked.
        if isize::try_from(len.saturating_add(HEADROOM)).is_err() {
            return Err(Error::OutOfMemory);
        }
        let mut message = ptr::null_mut();
        // SAFETY: `nng_msg_alloc` asks for a place to put the pointer. It clears the
        // memory that it gets (`nni_zalloc`), so the body is initialized.
        check(unsafe { nng_sys::nng_msg_alloc(&raw mut message, len) })?;
        let message = NonNull::new(message).ok_or(Error::OutOfMemory)?;
        Ok(Self { message })
    }

    pub(in crate::transport::nng) fn as_slice(&self) -> &[u8] {
        let Some((data, len)) = self.parts() else {
            return &[];
        };
        // SAFETY: `slice::from_raw_parts` asks four things.
        // - The address is valid for reads of `len` bytes: it is what NNG says of the
        //   body, which belongs to the message, and the message to this value.
        // - They are initialized: cleared when made here; when received, NNG read
        //   them off the wire, all of them.
        // - Nobody writes to them meanwhile: that takes `&mut self`.
        // - They are at most `isize::MAX`: they are one allocation.
        unsafe { slice::from_raw_parts(data.as_ptr(), len) }
    }

    pub(in crate::transport::nng) fn as_mut_slice(&mut self) -> &mut [u8] {
        let Some((data, len)) = self.parts() else {
            return &mut [];
        };
        // SAFETY: as for `slice::from_raw_parts` above, and nobody else reads or
        // writes: only messages made here are written to, which nobody else has
        // (NNG shares messages, over inproc from a PUB socket for one, but makes
        // a received one unique), and they are borrowed mutably.
        unsafe { slice::from_raw_parts_mut(data.as_ptr(), len) }
    }

    /// Where the bytes lie; `None` if there are none, and maybe no address either.
    fn parts(&self) -> Option<(NonNull<u8>, usize)> {
        // SAFETY: `nng_msg_len` asks for a message: it is one until the drop.
        let len = unsafe { nng_sys::nng_msg_len(self.message.as_ptr()) };
        // SAFETY: `nng_msg_body` asks the same.
        let data = unsafe { nng_sys::nng_msg_body(self.message.as_ptr()) };
        let data = NonNull::new(data.cast::<u8>())?;
        (len > 0).then_some((data, len))
    }

    /// Which connection a received message came by.
    pub(in crate::transport::nng) fn pipe(&self) -> c_int {
        // SAFETY: `nng_msg_get_pipe` asks for a message, as above.
        let pipe = unsafe { nng_sys::nng_msg_get_pipe(self.message.as_ptr()) };
        // SAFETY: `nng_pipe_id` asks nothing.
        unsafe { nng_sys::nng_pipe_id(pipe) }
    }

    /// Gives the message away.
    pub(super) fn into_message(self) -> *mut nng_msg {
        let message = self.message.as_ptr();
        core::mem::forget(self);
        message
    }

    /// Takes a message over.
    ///
    /// # Safety
    ///
    /// `message` is one, or null, and nobody else uses or frees it.
    pub(super) unsafe fn from_message(message: *mut nng_msg) -> Option<Self> {
        let message = NonNull::new(message)?;
        Some(Self { message })
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // SAFETY: `nng_msg_free` asks for a message that is not used afterwards: it is
        // this value's own, and this is the drop.
        unsafe { nng_sys::nng_msg_free(self.message.as_ptr()) };
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.as_slice().len();
        f.debug_struct("Body").field("len", &len).finish()
    }
}

/// The room that NNG leaves before a body.
const HEADROOM: usize = 32;
