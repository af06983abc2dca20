//! Receiving while nobody waits.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use core::task::Waker;
use core::time::Duration;

use alloc::sync::Arc;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ::nng::Error;
use nng_sys::nng_aio;

use super::{Body, INFINITE, check};

/// A receive that goes on while nobody waits.
///
/// A REQ socket forgets its request when a receive times out, and the reply that has
/// come when the connection ends before it is received. So one receive is started
/// with each request, and left running.
pub(in crate::transport::nng) struct Pending {
    aio: NonNull<nng_aio>,
    /// Kept for the callback, which has its address.
    ended: Arc<Ended>,
    /// Whether it was started, and its outcome not taken yet.
    started: bool,
}

#[derive(Default)]
struct Ended {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ended: bool,
    /// A task that waits for it.
    waker: Option<Waker>,
}

impl Ended {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: `Send`: as for `Operation`; the callback touches nothing but `ended`.
unsafe impl Send for Pending {}

impl Pending {
    pub(in crate::transport::nng) fn new() -> Result<Self, Error> {
        let ended = Arc::new(Ended::default());
        let mut aio = ptr::null_mut();
        let argument = Arc::as_ptr(&ended).cast_mut().cast::<c_void>();
        // SAFETY: `nng_aio_alloc` asks for a place to put the pointer, and a callback
        // that may be called from any thread with `argument`, which lives until
        // after the operation is freed: the field holds it.
        check(unsafe { nng_sys::nng_aio_alloc(&raw mut aio, Some(end), argument) })?;
        let aio = NonNull::new(aio).ok_or(Error::OutOfMemory)?;
        // SAFETY: `nng_aio_set_timeout` asks for an operation that is not under way.
        unsafe { nng_sys::nng_aio_set_timeout(aio.as_ptr(), INFINITE) };
        let started = false;
        Ok(Self {
            aio,
            ended,
            started,
        })
    }

    /// Starts to receive, if it has not started yet.
    pub(in crate::transport::nng) fn start(&mut self, socket: &::nng::Socket) {
        if self.started {
            return;
        }
        self.started = true;
        self.ended.lock().ended = false;
        // SAFETY: `nng_recv_aio` asks for an operation that is not under way: the
        // outcome of the last one was taken, after its end.
        unsafe { nng_sys::nng_recv_aio(socket.nng_socket(), self.aio.as_ptr()) };
    }

    /// Waits for at most `time`; tells whether it has ended.
    pub(in crate::transport::nng) fn wait(&self, time: Duration) -> bool {
        let state = self.ended.lock();
        if time.is_zero() {
            return state.ended;
        }
        let time = time.min(LONGEST_SLEEP);
        let changed = &self.ended.changed;
        let waited = changed.wait_timeout_while(state, time, |state| !state.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// Tells whether it has ended; wakes the task when it does.
    #[cfg(feature = "tokio")]
    pub(in crate::transport::nng) fn poll(&self, waker: &Waker) -> bool {
        let mut state = self.ended.lock();
        if self.started && !state.ended {
            state.waker = Some(waker.clone());
            return false;
        }
        true
    }

    /// Takes the outcome, and waits for it if need be.
    pub(in crate::transport::nng) fn take(&mut self) -> Result<Body, Error> {
        // SAFETY: `nng_aio_wait` asks for an operation; it returns when the operation
        // has ended and its callback has returned.
        unsafe { nng_sys::nng_aio_wait(self.aio.as_ptr()) };
        self.started = false;
        // SAFETY: `nng_aio_result` asks for an operation that is not under way.
        check(unsafe { nng_sys::nng_aio_result(self.aio.as_ptr()) })?;
        // SAFETY: `nng_aio_get_msg` asks the same.
        let message = unsafe { nng_sys::nng_aio_get_msg(self.aio.as_ptr()) };
        // SAFETY: `nng_aio_set_msg` asks the same; null is none.
        unsafe { nng_sys::nng_aio_set_msg(self.aio.as_ptr(), ptr::null_mut()) };
        // SAFETY: `from_message` asks for a message that nobody else uses: it was
        // received, and taken out of the operation.
        unsafe { Body::from_message(message) }.ok_or(Error::Internal)
    }

    /// Gives up what was started, and what it has received.
    pub(in crate::transport::nng) fn give_up(&mut self) {
        if self.started {
            // SAFETY: `nng_aio_cancel` asks for an operation, under way or not.
            unsafe { nng_sys::nng_aio_cancel(self.aio.as_ptr()) };
            drop(self.take());
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.give_up();
        // SAFETY: `nng_aio_free` asks for an operation that is not used afterwards.
        unsafe { nng_sys::nng_aio_free(self.aio.as_ptr()) };
    }
}

/// Tells whoever waits that the receive has ended.
unsafe extern "C" fn end(argument: *mut c_void) {
    // SAFETY: a shared reference asks for a valid value that lives meanwhile: it is the
    // `Ended` of a `Pending`, whose drop waits for this call before it lets go.
    let ended = unsafe { &*argument.cast::<Ended>() };
    let mut state = ended.lock();
    state.ended = true;
    let waker = state.waker.take();
    drop(state);
    ended.changed.notify_all();
    if let Some(waker) = waker {
        // No panic goes into NNG: the hook has reported it, and that is all.
        let woken = std::panic::catch_unwind(AssertUnwindSafe(|| waker.wake()));
        woken.unwrap_or_else(core::mem::forget);
    }
}

/// Sleepers look again after this, so that no clock can overflow.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);
