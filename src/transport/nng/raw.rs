//! The calls to NNG that the crate `nng` has no form of, or none that suits.
//!
//! Bodies: [`Body`] may fail to be made, and is written before it is sent.
//! Operations: an [`Operation`] serves all calls of a socket with a timeout of each
//! call's own, where `nng_sendmsg` and `nng_recvmsg` make one each time; and a
//! [`Pending`] receive may be waited for, left, and waited for again. Statistics:
//! [`each_transmitted`] says how many messages each connection took.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_void};
use core::fmt;
use core::num::NonZeroU32;
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use core::slice;
use core::task::Waker;
use core::time::Duration;

use alloc::sync::Arc;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ::nng::Error;
use nng_sys::{nng_aio, nng_duration, nng_msg, nng_socket, nng_stat};

/// The body of one message: a buffer of NNG's.
pub(super) struct Body {
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
    pub(super) fn new(len: usize) -> Result<Self, Error> {
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

    pub(super) fn as_slice(&self) -> &[u8] {
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

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
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
    pub(super) fn pipe(&self) -> c_int {
        // SAFETY: `nng_msg_get_pipe` asks for a message, as above.
        let pipe = unsafe { nng_sys::nng_msg_get_pipe(self.message.as_ptr()) };
        // SAFETY: `nng_pipe_id` asks nothing.
        unsafe { nng_sys::nng_pipe_id(pipe) }
    }

    /// Gives the message away.
    fn into_message(self) -> *mut nng_msg {
        let message = self.message.as_ptr();
        core::mem::forget(self);
        message
    }

    /// Takes a message over.
    ///
    /// # Safety
    ///
    /// `message` is one, or null, and nobody else uses or frees it.
    unsafe fn from_message(message: *mut nng_msg) -> Option<Self> {
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

/// What sends or receives one message at a time, and waits for it.
pub(super) struct Operation {
    aio: NonNull<nng_aio>,
}

// SAFETY: `Send` asks that the value may be used from another thread: NNG's
// operations belong to no thread, and this is the only handle to it.
unsafe impl Send for Operation {}

impl Operation {
    pub(super) fn new() -> Result<Self, Error> {
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
    pub(super) fn send(
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
    pub(super) fn receive(
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

/// A receive that goes on while nobody waits.
///
/// A REQ socket forgets its request when a receive times out, and the reply that has
/// come when the connection ends before it is received. So one receive is started
/// with each request, and left running.
pub(super) struct Pending {
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
    pub(super) fn new() -> Result<Self, Error> {
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
    pub(super) fn start(&mut self, socket: &::nng::Socket) {
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
    pub(super) fn wait(&self, time: Duration) -> bool {
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
    pub(super) fn poll(&self, waker: &Waker) -> bool {
        let mut state = self.ended.lock();
        if self.started && !state.ended {
            state.waker = Some(waker.clone());
            return false;
        }
        true
    }

    /// Takes the outcome, and waits for it if need be.
    pub(super) fn take(&mut self) -> Result<Body, Error> {
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
    pub(super) fn give_up(&mut self) {
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

/// Tells for each connection of a socket how many messages it has taken: written to
/// the system in full, over ipc and tcp. Over inproc none are counted.
pub(super) fn each_transmitted(socket: nng_socket, mut tell: impl FnMut(c_int, u64)) {
    let mut root = ptr::null_mut();
    // SAFETY: `nng_stats_get` asks for a place to put the pointer.
    if unsafe { nng_sys::nng_stats_get(&raw mut root) } != 0 {
        return;
    }
    let Some(root) = NonNull::new(root) else {
        return;
    };
    let snapshot = Snapshot(root);
    // SAFETY: `nng_socket_id` asks nothing.
    let socket = u64::try_from(unsafe { nng_sys::nng_socket_id(socket) }).ok();
    for scope in snapshot.children(root) {
        let value = |name| snapshot.value(scope, name);
        if snapshot.name(scope) != c"pipe" || value(c"socket") != socket {
            continue;
        }
        let pipe = value(c"id").and_then(|pipe| c_int::try_from(pipe).ok());
        if let (Some(pipe), Some(sent)) = (pipe, value(c"tx_msgs")) {
            tell(pipe, sent);
        }
    }
}

/// What a descriptor of a socket tells of.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Readable,
    Writable,
}

/// Returns a descriptor that is readable while `event` holds.
#[cfg(feature = "tokio")]
pub(super) fn descriptor(
    socket: &::nng::Socket,
    event: Event,
) -> Result<std::os::fd::BorrowedFd<'_>, Error> {
    use ::nng::options::{Options as _, RecvFd, SendFd};

    let descriptor = match event {
        Event::Readable => socket.get_opt::<RecvFd>()?,
        Event::Writable => socket.get_opt::<SendFd>()?,
    };
    // SAFETY: `BorrowedFd::borrow_raw` asks for a descriptor that is open as long as the
    // result lives, and is not -1: NNG made it, and closes it with the socket, which
    // is borrowed that long.
    Ok(unsafe { std::os::fd::BorrowedFd::borrow_raw(descriptor) })
}

/// Tells whether NNG says that the socket may be sent to; `None` where that cannot be
/// asked without waiting.
#[cfg(target_os = "linux")]
pub(super) fn is_writable(socket: &::nng::Socket) -> Option<bool> {
    use core::ffi::{c_short, c_ulong};

    use ::nng::options::{Options as _, SendFd};

    /// `struct pollfd` of poll.h.
    #[repr(C)]
    struct Polled {
        descriptor: c_int,
        events: c_short,
        found: c_short,
    }

    unsafe extern "C" {
        fn poll(polled: *mut Polled, count: c_ulong, milliseconds: c_int) -> c_int;
    }

    let mut polled = Polled {
        descriptor: socket.get_opt::<SendFd>().ok()?,
        events: 1, // POLLIN
        found: 0,
    };
    // SAFETY: `poll` asks for as many records as are said: one. The descriptor is NNG's,
    // open as long as the socket, which is borrowed.
    let found = unsafe { poll(&raw mut polled, 1, 0) };
    (found >= 0).then_some(found > 0)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_writable(_socket: &::nng::Socket) -> Option<bool> {
    None
}

/// Returns the number of a connection.
pub(super) fn pipe_id(pipe: ::nng::Pipe) -> c_int {
    // SAFETY: `nng_pipe_id` asks nothing.
    unsafe { nng_sys::nng_pipe_id(pipe.nng_pipe()) }
}

/// NNG's statistics at one time: a tree of its own.
struct Snapshot(NonNull<nng_stat>);

impl Snapshot {
    fn children(&self, of: NonNull<nng_stat>) -> impl Iterator<Item = NonNull<nng_stat>> {
        // SAFETY: `nng_stat_child` asks for a node of a tree: `of` is one, and the
        // tree lives as long as this value.
        let mut next = NonNull::new(unsafe { nng_sys::nng_stat_child(of.as_ptr()) });
        core::iter::from_fn(move || {
            let this = next?;
            // SAFETY: `nng_stat_next` asks the same.
            next = NonNull::new(unsafe { nng_sys::nng_stat_next(this.as_ptr()) });
            Some(this)
        })
    }

    fn name(&self, of: NonNull<nng_stat>) -> &CStr {
        // SAFETY: `nng_stat_name` asks for a node, as above.
        let name = unsafe { nng_sys::nng_stat_name(of.as_ptr()) };
        // SAFETY: `CStr::from_ptr` asks for a text that ends in NUL and does not change:
        // the names are texts of NNG's own code.
        unsafe { CStr::from_ptr(name) }
    }

    fn value(&self, of: NonNull<nng_stat>, name: &CStr) -> Option<u64> {
        let found = self.children(of).find(|&child| self.name(child) == name)?;
        // SAFETY: `nng_stat_value` asks for a node, as above. A number that identifies
        // lies in the lower half of it; the rest is zero.
        Some(unsafe { nng_sys::nng_stat_value(found.as_ptr()) })
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // SAFETY: `nng_stats_free` asks for a tree that is not used afterwards.
        unsafe { nng_sys::nng_stats_free(self.0.as_ptr()) };
    }
}

/// Sorts a status of NNG's.
fn check(status: c_int) -> Result<(), Error> {
    match u32::try_from(status).map(NonZeroU32::new) {
        Ok(None) => Ok(()),
        Ok(Some(code)) => Err(Error::from(code)),
        Err(_) => Err(Error::Internal),
    }
}

/// Converts a time to wait to NNG's terms: whole milliseconds, rounded up.
fn millis(time: Duration) -> nng_duration {
    if time == Duration::MAX {
        return INFINITE;
    }
    let millis = time.as_nanos().div_ceil(1_000_000);
    nng_duration::try_from(millis).unwrap_or(nng_duration::MAX)
}

/// `NNG_DURATION_INFINITE` of nng.h.
const INFINITE: nng_duration = -1;

/// The room that NNG leaves before a body.
const HEADROOM: usize = 32;

/// Sleepers look again after this, so that no clock can overflow.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);
