//! The calls to libzmq that the crate `zmq` has no safe form of.
//!
//! Frames to be sent: [`Outgoing`] lends an owner's bytes to libzmq and gets them
//! released exactly once. Endpoints: `bind` and `connect` of the crate panic on
//! error numbers it does not know (`ENOTDIR` for one), these do not.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_void};
use core::mem;
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};

use alloc::boxed::Box;

#[cfg(feature = "tokio")]
use std::os::fd::BorrowedFd;

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
    /// Bytes of libzmq's own.
    Ready,
    /// The bytes of an owner that libzmq releases.
    Lent {
        holder: NonNull<c_void>,
        reclaim: unsafe fn(NonNull<c_void>) -> Option<Buffer>,
    },
    /// None any more: libzmq has them.
    Sent,
}

// SAFETY: `Send` asks that the value may be used from another thread.
// - `zmq_msg_t` is plain memory that libzmq itself hands from thread to thread;
//   it is used from one at a time, as every use takes `&mut`.
// - `holder` stands for a `Box<Option<T>>` with a `T` that is `Send`.
unsafe impl Send for Outgoing {}

impl Outgoing {
    /// Makes a frame with room for `len` bytes, which [`Outgoing::send`] fills.
    pub(super) fn with_room(len: usize) -> Result<Self, i32> {
        let mut message = zmq_msg_t::default();
        // SAFETY: `zmq_msg_init_size` asks for a pointer to a `zmq_msg_t` that is
        // not initialized: `message` is fresh.
        check(unsafe { zmq_sys::zmq_msg_init_size(&raw mut message, len) })?;
        let content = Content::Room(len);
        Ok(Self { message, content })
    }

    /// Makes a frame with a copy of `bytes`.
    pub(super) fn copied(bytes: &[u8]) -> Result<Self, i32> {
        let mut frame = Self::with_room(bytes.len())?;
        frame.fill(bytes)?;
        Ok(frame)
    }

    /// Makes a frame of `buffer` itself.
    ///
    /// # Errors
    ///
    /// The buffer again, and the error number.
    pub(super) fn lent(buffer: Buffer) -> Result<Self, (Buffer, i32)> {
        let lent = buffer.into_lent();
        let mut message = zmq_msg_t::default();
        // SAFETY: `zmq_msg_init_data` asks five things.
        // - The `zmq_msg_t` is not initialized: it is fresh.
        // - `data` is valid for reads of `len` bytes until the callback is
        //   called: it is what the owner gave, the owner is in the holder, which
        //   stays at its address, and nobody drops or changes it before that.
        // - Nobody writes through `data`: libzmq never writes to the content of
        //   a message, a `Frame` lends it out shared only, and no other sockets
        //   than ours are in a `Context`.
        // - The callback may be called with `data` and `hint` from any thread:
        //   the owner is `Send`, and `release` does not unwind.
        // - It is called once: that is what libzmq promises, also when the
        //   message is closed unsent.
        let status = unsafe {
            zmq_sys::zmq_msg_init_data(
                &raw mut message,
                lent.data.cast_mut().cast::<c_void>(),
                lent.len,
                Some(lent.release),
                lent.holder.as_ptr(),
            )
        };
        let Lent {
            holder,
            reclaim,
            release,
            ..
        } = lent;
        match check(status) {
            Ok(()) => Ok(Self {
                message,
                content: Content::Lent { holder, reclaim },
            }),
            Err(errno) => {
                // SAFETY: `reclaim` asks for the holder it was made with, which
                // nobody else uses: libzmq failed and so has not taken it.
                let buffer = unsafe { reclaim(holder) };
                release(ptr::null_mut(), holder.as_ptr());
                Err((buffer.unwrap_or_else(|| Buffer::new([])), errno))
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
        self.content = Content::Sent;
        Ok(())
    }

    /// Takes the buffer back out of a frame that was not sent.
    pub(super) fn reclaim(mut self) -> Option<Buffer> {
        let Content::Lent { holder, reclaim } = self.content else {
            return None;
        };
        self.content = Content::Ready;
        // SAFETY: `reclaim` asks for the holder it was made with, which nobody
        // else uses: the frame was not sent, so this message is the only one that
        // knows of it, and the callback runs when it is closed, which is later.
        unsafe { reclaim(holder) }
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
        // What libzmq has sent it has also left empty, and then nothing needs
        // to be closed.
        if let Content::Sent = self.content {
            return;
        }
        // SAFETY: `zmq_msg_close` asks for an initialized message that is not used
        // afterwards: the constructors, and this is the drop. It fails for no
        // other reason.
        unsafe { zmq_sys::zmq_msg_close(&raw mut self.message) };
    }
}

/// An owner that waits for libzmq to release it, in the box that it came in.
///
/// Not for long: the code that makes one hands it to libzmq, or else it is leaked.
pub(in crate::transport) struct Lent {
    /// A leaked `Box<Option<T>>`.
    holder: NonNull<c_void>,
    data: *const u8,
    len: usize,
    /// What libzmq calls when the last reader is done; frees the holder.
    release: extern "C" fn(*mut c_void, *mut c_void),
    /// Moves the owner out of the holder. Asks for the holder beside it, before
    /// its release, and that nobody else uses it.
    reclaim: unsafe fn(NonNull<c_void>) -> Option<Buffer>,
}

impl Lent {
    pub(in crate::transport) fn new<T>(holder: Box<Option<T>>) -> Self
    where
        T: AsRef<[u8]> + Send + 'static,
    {
        let holder = NonNull::from(Box::leak(holder));
        // The guard owns the holder while code of the user runs in `as_ref`.
        let guard = HolderGuard(holder);
        // SAFETY: `NonNull::as_ref` asks for a valid value that nobody changes
        // meanwhile: the box was leaked above, and nobody else knows of it.
        let owner = unsafe { holder.as_ref() };
        let bytes = owner.as_ref().map_or(&[][..], AsRef::as_ref);
        let (data, len) = (bytes.as_ptr(), bytes.len());
        mem::forget(guard);
        Self {
            holder: holder.cast(),
            data,
            len,
            release: release::<T>,
            reclaim: reclaim::<T>,
        }
    }
}

/// Frees the holder if the owner's `AsRef` panics.
struct HolderGuard<T>(NonNull<Option<T>>);

impl<T> Drop for HolderGuard<T> {
    fn drop(&mut self) {
        // SAFETY: `Box::from_raw` asks for a pointer from `Box::leak` that nobody
        // else frees: the guard is forgotten before anybody else learns of it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Frees the holder and what is in it.
extern "C" fn release<T>(_data: *mut c_void, hint: *mut c_void)
where
    T: AsRef<[u8]> + Send + 'static,
{
    // SAFETY: `Box::from_raw` asks for a pointer from `Box::leak` that nobody else
    // frees: `hint` is the holder of `Lent::new`, of this `T`, and libzmq calls once.
    let holder = unsafe { Box::from_raw(hint.cast::<Option<T>>()) };
    // No panic goes into libzmq: the hook has reported it, and that is all.
    let holder = AssertUnwindSafe(holder);
    let dropped = std::panic::catch_unwind(move || drop({ holder }.0));
    // The payload is leaked, as dropping it might panic again.
    dropped.unwrap_or_else(mem::forget);
}

/// Moves the owner out of the holder.
///
/// # Safety
///
/// 1. `holder` is one of `Lent::new`, of this `T`, and not released yet.
/// 2. Nobody else uses it meanwhile.
unsafe fn reclaim<T>(holder: NonNull<c_void>) -> Option<Buffer>
where
    T: AsRef<[u8]> + Send + 'static,
{
    let mut holder = holder.cast::<Option<T>>();
    // SAFETY: `NonNull::as_mut` asks for a valid value that nobody else uses: the
    // caller's promises 1 and 2.
    unsafe { holder.as_mut() }.take().map(Buffer::new)
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

/// Returns the descriptor that tells of commands to `socket`.
#[cfg(feature = "tokio")]
pub(super) fn descriptor(socket: &mut Socket) -> Result<BorrowedFd<'_>, i32> {
    let descriptor = socket.get_fd().map_err(::zmq::Error::to_raw)?;
    // SAFETY: `BorrowedFd::borrow_raw` asks that the descriptor is open as long as
    // the result lives: libzmq keeps it open as long as the socket, which is borrowed.
    Ok(unsafe { BorrowedFd::borrow_raw(descriptor) })
}

/// Looks up the error number behind a status of -1.
fn check(status: c_int) -> Result<(), i32> {
    if status != -1 {
        return Ok(());
    }
    // SAFETY: `zmq_errno` asks nothing.
    Err(unsafe { zmq_sys::zmq_errno() })
}
