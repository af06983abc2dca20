//! The calls to libzmq that the crate `zmq` has no safe form of.
//!
//! Frames to be sent: [`Outgoing`] lends an owner's bytes to libzmq and gets them
//! released exactly once. Endpoints: `bind` and `connect` of the crate panic on
//! error numbers it does not know (`ENOTDIR` for one), these do not.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_void};
use core::mem;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;

use alloc::boxed::Box;

use std::panic::catch_unwind;

use ::zmq::Socket;
use zmq_sys::zmq_msg_t;

use crate::transport::Buffer;

/// One frame on its way out.
///
/// Whatever happens to it, dropping it closes the libzmq message, and that
/// releases what is still in it.
pub(super) struct Outgoing {
    message: zmq_msg_t,
    content: Content,
}

enum Content {
    /// Room of this many bytes, not written yet.
    Room(usize),
    /// Bytes of libzmq's own, or none any more.
    Ready,
    /// The bytes of a buffer; the holder is what libzmq releases.
    Lent(NonNull<Holder>),
}

/// What the release callback gets. The buffer is taken out if the frame could not
/// be sent, and the callback then frees an empty holder.
struct Holder {
    buffer: Option<Buffer>,
}

// SAFETY: `Send` asks that the value may be used from another thread.
// - `zmq_msg_t` is plain memory that libzmq itself hands from thread to thread;
//   it is used from one at a time, as every use takes `&mut`.
// - `NonNull<Holder>` stands for a `Box<Holder>`, and `Buffer` is `Send`.
unsafe impl Send for Outgoing {}

impl Outgoing {
    /// A frame with room for `len` bytes, which [`Outgoing::send`] fills.
    pub(super) fn with_room(len: usize) -> Result<Self, i32> {
        let mut message = zmq_msg_t::default();
        // SAFETY: `zmq_msg_init_size` asks for a pointer to a `zmq_msg_t` that is
        // not initialized: `message` is fresh.
        check(unsafe { zmq_sys::zmq_msg_init_size(&raw mut message, len) })?;
        let content = Content::Room(len);
        Ok(Self { message, content })
    }

    /// A frame with a copy of `bytes`.
    pub(super) fn copied(bytes: &[u8]) -> Result<Self, i32> {
        let mut frame = Self::with_room(bytes.len())?;
        frame.fill(bytes)?;
        Ok(frame)
    }

    /// A frame that is `buffer`.
    ///
    /// # Errors
    ///
    /// The buffer again, and the error number.
    pub(super) fn lent(buffer: Buffer) -> Result<Self, (Buffer, i32)> {
        let holder = Box::new(Holder {
            buffer: Some(buffer),
        });
        let holder = NonNull::from(Box::leak(holder));
        // The guard owns the holder while code of the user runs in `as_ref`.
        let guard = HolderGuard(holder);
        // SAFETY: `NonNull::as_ref` asks for a valid value that nobody changes
        // meanwhile: the box was leaked above, and nobody else knows of it.
        let bytes = match unsafe { holder.as_ref() } {
            Holder {
                buffer: Some(buffer),
            } => buffer.as_ref(),
            Holder { buffer: None } => &[],
        };
        let (data, len) = (bytes.as_ptr().cast_mut(), bytes.len());
        mem::forget(guard);
        let mut message = zmq_msg_t::default();
        // SAFETY: `zmq_msg_init_data` asks five things.
        // - The `zmq_msg_t` is not initialized: it is fresh.
        // - `data` is valid for reads of `len` bytes until the callback is
        //   called: it is what the owner gave, the owner is in the holder, which
        //   stays at its address, and nobody drops or changes it before that.
        // - Nobody writes through `data`: libzmq never writes to the content of
        //   a message, and a `Frame` lends it out shared only.
        // - The callback may be called with `data` and `hint` from any thread:
        //   `Buffer` is `Send`, and `release` does not unwind.
        // - It is called once: that is what libzmq promises, also when the
        //   message is closed unsent.
        let status = unsafe {
            zmq_sys::zmq_msg_init_data(
                &raw mut message,
                data.cast::<c_void>(),
                len,
                Some(release),
                holder.as_ptr().cast::<c_void>(),
            )
        };
        match check(status) {
            Ok(()) => Ok(Self {
                message,
                content: Content::Lent(holder),
            }),
            Err(errno) => {
                // SAFETY: `Box::from_raw` asks for a pointer from `Box::leak` that
                // nobody else frees: libzmq failed and so has not taken it.
                let holder = unsafe { Box::from_raw(holder.as_ptr()) };
                let buffer = holder.buffer.unwrap_or_else(|| Buffer::new([]));
                Err((buffer, errno))
            }
        }
    }

    /// Hands the frame to `socket`; `bytes` fill the room, if there is room yet.
    ///
    /// # Errors
    ///
    /// The error number; then the frame is as it was.
    pub(super) fn send(
        &mut self,
        socket: &mut Socket,
        bytes: &[u8],
        flags: c_int,
    ) -> Result<(), i32> {
        if let Content::Room(_) = self.content {
            self.fill(bytes)?;
        }
        // SAFETY: `zmq_msg_send` asks two things.
        // - The message is initialized and its content written: both
        //   constructors do the first, `fill` and `lent` the second.
        // - The socket is open and used by one thread: it is borrowed mutably.
        let status =
            unsafe { zmq_sys::zmq_msg_send(&raw mut self.message, socket.as_mut_ptr(), flags) };
        check(status)?;
        // libzmq has the content now and has left an empty message.
        self.content = Content::Ready;
        Ok(())
    }

    /// Takes the buffer back out of a frame that was not sent.
    pub(super) fn reclaim(mut self) -> Option<Buffer> {
        let Content::Lent(mut holder) = self.content else {
            return None;
        };
        self.content = Content::Ready;
        // SAFETY: `NonNull::as_mut` asks for a valid value that nobody else uses:
        // the frame was not sent, so this message is the only one that knows of
        // the holder, and the callback runs when it is closed, which is later.
        unsafe { holder.as_mut() }.buffer.take()
    }

    /// Writes `bytes` into the room, which has their length.
    fn fill(&mut self, bytes: &[u8]) -> Result<(), i32> {
        let Content::Room(len) = self.content else {
            return Ok(());
        };
        if len != bytes.len() {
            return Err(zmq_sys::errno::EINVAL);
        }
        // SAFETY: `zmq_msg_data` asks for an initialized message: it is one since
        // `with_room`.
        let data = unsafe { zmq_sys::zmq_msg_data(&raw mut self.message) };
        // SAFETY: `ptr::copy_nonoverlapping` asks three things.
        // - `bytes` is valid for reads of `len` bytes: it is a slice that long.
        // - `data` is valid for writes of `len` bytes: `zmq_msg_init_size` made
        //   that much room, and the message was not sent.
        // - They do not overlap: nobody else knows of the room.
        unsafe {
            bytes
                .as_ptr()
                .copy_to_nonoverlapping(data.cast::<u8>(), len)
        };
        self.content = Content::Ready;
        Ok(())
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // SAFETY: `zmq_msg_close` asks for an initialized message that is not used
        // afterwards: the constructors, and this is the drop. It fails for no
        // other reason.
        unsafe { zmq_sys::zmq_msg_close(&raw mut self.message) };
    }
}

/// Frees the holder if the owner's `AsRef` panics.
struct HolderGuard(NonNull<Holder>);

impl Drop for HolderGuard {
    fn drop(&mut self) {
        // SAFETY: `Box::from_raw` asks for a pointer from `Box::leak` that nobody
        // else frees: the guard is forgotten before anybody else learns of it.
        let holder = unsafe { Box::from_raw(self.0.as_ptr()) };
        drop_quietly(holder);
    }
}

/// What libzmq calls when the last reader of a lent buffer is done with it.
extern "C" fn release(_data: *mut c_void, hint: *mut c_void) {
    // SAFETY: `Box::from_raw` asks for a pointer from `Box::leak` that nobody else
    // frees: `hint` is the holder of `Outgoing::lent`, and libzmq calls once.
    let holder = unsafe { Box::from_raw(hint.cast::<Holder>()) };
    drop_quietly(holder);
}

/// Drops `value` and keeps a panic from going any further.
///
/// The panic hook has reported it. Its payload is leaked: dropping that might
/// panic again.
pub(super) fn drop_quietly<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(move || drop(value))) {
        mem::forget(payload);
    }
}

/// Binds `socket` to `endpoint`.
pub(super) fn bind(socket: &mut Socket, endpoint: &CStr) -> Result<(), i32> {
    // SAFETY: `zmq_bind` asks for an open socket, borrowed mutably here, and a
    // string that ends in NUL, which a `CStr` does.
    check(unsafe { zmq_sys::zmq_bind(socket.as_mut_ptr(), endpoint.as_ptr()) })
}

/// Connects `socket` to `endpoint`.
pub(super) fn connect(socket: &mut Socket, endpoint: &CStr) -> Result<(), i32> {
    // SAFETY: as for `zmq_bind`.
    check(unsafe { zmq_sys::zmq_connect(socket.as_mut_ptr(), endpoint.as_ptr()) })
}

/// The error number behind a status of -1.
fn check(status: c_int) -> Result<(), i32> {
    if status != -1 {
        return Ok(());
    }
    // SAFETY: `zmq_errno` asks nothing.
    Err(unsafe { zmq_sys::zmq_errno() })
}
