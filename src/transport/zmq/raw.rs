//! The calls to libzmq that the crate `zmq` has no safe form of.
//!
//! Frames to be sent: [`Outgoing`] lends an owner's bytes to libzmq and gets them
//! released exactly once. Endpoints: `bind` and `connect` of the crate panic on
//! error numbers it does not know (`ENOTDIR` for one), these do not.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

#[cfg(feature = "tokio")]
use std::os::fd::BorrowedFd;

use ::zmq::Socket;
use zmq_sys::zmq_msg_t;

use super::lent::{self, Lent, Reclaim, Words};
use crate::transport::Buffer;

/// One frame on its way out.
///
/// It is made empty and filled where it stays: libzmq writes into it, and to move it
/// right after that takes longer than making it. Whatever happens to it, dropping it
/// closes the libzmq message, and that releases what is still in it.
#[derive(Default)]
pub(super) struct Outgoing {
    message: zmq_msg_t,
    content: Content,
}

#[derive(Default)]
enum Content {
    /// None yet, or none any more, as libzmq has it: nothing to be closed.
    #[default]
    Empty,
    /// Room of this many bytes, not written yet.
    Room(usize),
    /// Bytes of libzmq's own.
    Ready,
    /// The bytes of an owner that libzmq releases.
    Lent { words: Words, reclaim: Reclaim },
}

// SAFETY: `Send` asks that the value may be used from another thread.
// - `zmq_msg_t` is plain memory that libzmq itself hands from thread to thread;
//   it is used from one at a time, as every use takes `&mut`.
// - The words stand for an owner that is `Send`.
unsafe impl Send for Outgoing {}

impl Outgoing {
    /// Makes room for `len` bytes, which [`Outgoing::send`] fills.
    #[inline]
    pub(super) fn make_room(&mut self, len: usize) -> Result<(), i32> {
        self.close();
        // SAFETY: `zmq_msg_init_size` asks for a pointer to a `zmq_msg_t` that is
        // not initialized: it is closed.
        check(unsafe { zmq_sys::zmq_msg_init_size(&raw mut self.message, len) })?;
        self.content = Content::Room(len);
        Ok(())
    }

    /// Makes it a copy of `bytes`.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Result<(), i32> {
        self.make_room(bytes.len())?;
        self.fill(bytes)
    }

    /// Makes it `buffer` itself.
    ///
    /// # Errors
    ///
    /// The buffer again, and the error number.
    pub(super) fn lend(&mut self, buffer: Buffer) -> Result<(), (Buffer, i32)> {
        self.close();
        let Lent {
            words,
            release,
            reclaim,
        } = Lent::new(buffer);
        // SAFETY: `zmq_msg_init_data` asks five things.
        // - The `zmq_msg_t` is not initialized: it is closed.
        // - `data` is valid for reads of `len` bytes until the callback is
        //   called: it is what the owner gave, the owner is kept by the words, its
        //   bytes stay at their address, and nobody drops or changes them before that.
        // - Nobody writes through `data`: libzmq never writes to the content of
        //   a message, a `Frame` lends it out shared only, and no other sockets
        //   than ours are in a `Context`.
        // - The callback may be called with `data` and `hint` from any thread:
        //   the owner is `Send`, and the release does not unwind.
        // - It is called once: that is what libzmq promises, also when the
        //   message is closed unsent.
        let status = unsafe {
            zmq_sys::zmq_msg_init_data(
                &raw mut self.message,
                words.data.cast::<c_void>(),
                words.len,
                Some(release),
                words.hint,
            )
        };
        match check(status) {
            Ok(()) => {
                self.content = Content::Lent { words, reclaim };
                Ok(())
            }
            Err(errno) => {
                // SAFETY: `reclaim` asks for the words it was made with, and that the
                // owner is made once: libzmq failed and so will not call the release.
                Err((unsafe { reclaim(words) }, errno))
            }
        }
    }

    /// Hands the frame to `socket`; `bytes` fill the room, if there is room yet.
    ///
    /// # Errors
    ///
    /// The error number; then the frame is as it was.
    #[inline]
    pub(super) fn send(
        &mut self,
        socket: &mut Socket,
        bytes: &[u8],
        flags: c_int,
    ) -> Result<(), i32> {
        match self.content {
            Content::Room(_) => self.fill(bytes)?,
            Content::Empty => return Err(zmq_sys::errno::EINVAL),
            Content::Ready | Content::Lent { .. } => {}
        }
        // SAFETY: `zmq_msg_send` asks two things.
        // - The message is initialized and its content written: `make_room` and `lend`
        //   do the first, `fill` and `lend` the second, and it is not empty.
        // - The socket is open and used by one thread: it is borrowed mutably.
        let status =
            unsafe { zmq_sys::zmq_msg_send(&raw mut self.message, socket.as_mut_ptr(), flags) };
        check(status)?;
        // What libzmq has sent it has also left empty, and then nothing needs to be
        // closed.
        self.content = Content::Empty;
        Ok(())
    }

    /// Takes the buffer back out of a frame that was not sent.
    pub(super) fn reclaim(&mut self) -> Option<Buffer> {
        let Content::Lent { words, reclaim } = self.content else {
            return None;
        };
        self.content = Content::Empty;
        // A message that was never sent has this one handle, and closing it calls the
        // release on this thread before it returns (`msg_t::close` of libzmq).
        lent::without_release(|| {
            // SAFETY: `zmq_msg_close` asks for an initialized message that is not used
            // afterwards: `lend` initialized it, and now its content is `Empty`.
            unsafe { zmq_sys::zmq_msg_close(&raw mut self.message) };
        });
        // SAFETY: `reclaim` asks for the words it was made with, and that the owner is
        // made once: the one release there was did nothing.
        Some(unsafe { reclaim(words) })
    }

    /// Lets go of what is in it.
    #[inline]
    pub(super) fn close(&mut self) {
        if let Content::Empty = self.content {
            return;
        }
        self.content = Content::Empty;
        // SAFETY: `zmq_msg_close` asks for an initialized message that is not used
        // afterwards: all contents but `Empty` are initialized, and now it is that. It
        // fails for no other reason.
        unsafe { zmq_sys::zmq_msg_close(&raw mut self.message) };
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
        // `make_room`.
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
        self.close();
    }
}

/// Binds `socket` to `endpoint`.
pub(super) fn bind(socket: &mut Socket, endpoint: &CStr) -> Result<(), i32> {
    // SAFETY: `zmq_bind` asks for an open socket, borrowed mutably here, and a
    // string that ends in NUL, which a `CStr` does.
    retrying(|| unsafe { zmq_sys::zmq_bind(socket.as_mut_ptr(), endpoint.as_ptr()) })
}

/// Connects `socket` to `endpoint`.
pub(super) fn connect(socket: &mut Socket, endpoint: &CStr) -> Result<(), i32> {
    // SAFETY: as for `zmq_bind`.
    retrying(|| unsafe { zmq_sys::zmq_connect(socket.as_mut_ptr(), endpoint.as_ptr()) })
}

/// Returns the descriptor that tells of commands to `socket`.
#[cfg(feature = "tokio")]
pub(super) fn descriptor(socket: &mut Socket) -> Result<BorrowedFd<'_>, i32> {
    let descriptor = socket.get_fd().map_err(::zmq::Error::to_raw)?;
    // SAFETY: `BorrowedFd::borrow_raw` asks that the descriptor is open as long as
    // the result lives: libzmq keeps it open as long as the socket, which is borrowed.
    Ok(unsafe { BorrowedFd::borrow_raw(descriptor) })
}

/// Ends the events of `socket`, of which the last one says so.
pub(super) fn end_monitor(socket: &mut Socket) -> Result<(), i32> {
    // SAFETY: `zmq_socket_monitor` asks for an open socket, borrowed mutably here; no
    // endpoint is how it is told to end.
    check(unsafe { zmq_sys::zmq_socket_monitor(socket.as_mut_ptr(), ptr::null(), 0) })
}

/// Makes a call until no signal interrupts it: libzmq looks for commands before it
/// does anything else, and that is what a signal ends.
fn retrying(mut call: impl FnMut() -> c_int) -> Result<(), i32> {
    loop {
        match check(call()) {
            Err(zmq_sys::errno::EINTR) => {}
            done => return done,
        }
    }
}

/// Looks up the error number behind a status of -1.
fn check(status: c_int) -> Result<(), i32> {
    if status != -1 {
        return Ok(());
    }
    // SAFETY: `zmq_errno` asks nothing.
    Err(unsafe { zmq_sys::zmq_errno() })
}
