//! Sending and receiving, one message at a time.
#![allow(unsafe_code)]

use core::ptr::{self, NonNull};
use core::time::Duration;

use ::nng::Error;
use nng_sys::{nng_aio, nng_msg};

use super::{Body, check, millis};

/// What sends or receives one message at a time, and waits for it.
pub(in crate::transport::nng) struct Operation {
    aio: NonNull<nng_aio>,
}

// SAFETY: `Send` asks that the value may be used from another thread: NNG's
// operations belong to no thread, and this is the only handle to it.
unsafe impl Send for Operation {}

impl Operation {
    pub(in crate::transport::nng) fn new() -> Result<Self, Error> {
        let mut aio = ptr::null_mut();
        // SAFETY: `nng_aio_alloc` asks for a place to put the pointer, and allows no
        // callback.
        check(unsafe { nng_sys::nng_aio_alloc(&raw mut aio, None, ptr::null_mut()) })?;
        let aio = NonNull::new(aio).ok_or(Error::OutOfMemory)?;
        Ok(Self { aio })
    }

    /// Sends `body` within `time`, zero being at once or not.
    ///
    /// # Errors
    ///
    /// The body, and why; [`Error::TimedOut`] when the time was up.
    pub(in crate::transport::nng) fn send(
        &mut self,
        socket: &::nng::Socket,
        body: Body,
        time: Duration,
    ) -> Result<(), (Option<Body>, Error)> {
        let aio = self.aio.as_ptr();
        // SAFETY: `nng_aio_set_timeout` asks for an operation that is not under way:
        // every call here waits for its end.
        unsafe { nng_sys::nng_aio_set_timeout(aio, millis(time)) };
        // SAFETY: `nng_aio_set_msg` asks the same, and leaves the message for `nng_send_aio`.
        unsafe { nng_sys::nng_aio_set_msg(aio, body.into_message()) };
        // SAFETY: `nng_send_aio` asks for an operation that is not under way, with a
        // message of the caller's. A socket that is closed is an error, no more.
        unsafe { nng_sys::nng_send_aio(socket.nng_socket(), aio) };
        match self.finish() {
            // NNG has the message.
            Ok(()) => Ok(()),
            Err(error) => {
                let message = self.take_message();
                // SAFETY: `from_message` asks for a message that nobody else uses: NNG
                // says that a failed send leaves it in the operation, the caller's again.
                Err((unsafe { Body::from_message(message) }, error))
            }
        }
    }

    /// Receives a body within `time`, zero being at once or not.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when the time was up.
    pub(in crate::transport::nng) fn receive(
        &mut self,
        socket: &::nng::Socket,
        time: Duration,
    ) -> Result<Body, Error> {
        let aio = self.aio.as_ptr();
        // SAFETY: as in `send`.
        unsafe { nng_sys::nng_aio_set_timeout(aio, millis(time)) };
        // SAFETY: `nng_recv_aio` asks for an operation that is not under way.
        unsafe { nng_sys::nng_recv_aio(socket.nng_socket(), aio) };
        self.finish()?;
        let message = self.take_message();
        // SAFETY: `from_message` asks for a message that nobody else uses: NNG says that
        // a receive that is done leaves it in the operation, the caller's.
        unsafe { Body::from_message(message) }.ok_or(Error::Internal)
    }

    /// Waits for the end.
    fn finish(&mut self) -> Result<(), Error> {
        // SAFETY: `nng_aio_wait` asks for an operation: it is one until the drop.
        unsafe { nng_sys::nng_aio_wait(self.aio.as_ptr()) };
        // SAFETY: `nng_aio_result` asks for one that is not under way.
        check(unsafe { nng_sys::nng_aio_result(self.aio.as_ptr()) })
    }

    /// Takes the message out, if there is one.
    fn take_message(&mut self) -> *mut nng_msg {
        // SAFETY: `nng_aio_get_msg` asks for an operation that is not under way.
        let message = unsafe { nng_sys::nng_aio_get_msg(self.aio.as_ptr()) };
        // SAFETY: `nng_aio_set_msg` asks the same; null is none.
        unsafe { nng_sys::nng_aio_set_msg(self.aio.as_ptr(), ptr::null_mut()) };
        message
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // SAFETY: `nng_aio_free` asks for an operation that is not used afterwards.
        // None is under way, so no message is left in it.
        unsafe { nng_sys::nng_aio_free(self.aio.as_ptr()) };
    }
}
