//! The calls to NNG that the crate `nng` has no form of, or none that suits.
//!
//! Bodies: [`Body`] may fail to be made, and is written before it is sent.
//! Operations: an [`Operation`] serves all calls of a socket with a timeout of each
//! call's own, where `nng_sendmsg` and `nng_recvmsg` make one each time; and a
//! [`Pending`] receive may be waited for, left, and waited for again. Statistics:
//! [`each_transmitted`] says how many messages each connection took.
#![allow(unsafe_code)]

mod body;
mod operation;
mod pending;
mod statistics;

use core::ffi::c_int;
use core::num::NonZeroU32;
use core::time::Duration;

use ::nng::Error;
use nng_sys::nng_duration;

pub(super) use body::Body;
pub(super) use operation::Operation;
pub(super) use pending::Pending;
pub(super) use statistics::each_transmitted;

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
