//! A file descriptor that the reactor watches.
#![allow(unsafe_code)]

use core::task::{Context, Poll, ready};

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use ::tokio::io::{Interest, unix::AsyncFd};

/// A file descriptor that becomes readable when a transport has news.
///
/// For [`Readiness::Registration`](super::Readiness::Registration). It is watched by
/// its edges: news that nobody looks for are told once.
#[derive(Debug)]
pub struct Descriptor {
    watched: AsyncFd<OwnedFd>,
}

impl Descriptor {
    /// Has a duplicate of `descriptor` watched by the reactor of the current runtime.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn new(descriptor: BorrowedFd<'_>) -> io::Result<Self> {
        let owned = descriptor.try_clone_to_owned()?;
        // SAFETY: `AsyncFd::register_with_interest` asks two things.
        // - The descriptor is open, and stays open and the same, as long as the
        //   `AsyncFd` lives: the `AsyncFd` owns it, and it is not given out.
        // - `as_raw_fd` gives the same each time: that of an `OwnedFd` does.
        let watched = unsafe { AsyncFd::register_with_interest(owned, Interest::READABLE) };
        let watched = watched.map_err(|error| error.into_parts().1)?;
        Ok(Self { watched })
    }

    /// Waits for news since the last call, and takes note of them: so look what
    /// there is after each time that this is ready.
    ///
    /// # Errors
    ///
    /// What the reactor says, when its runtime shuts down.
    pub fn poll_news(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.watched.poll_read_ready(cx))?.clear_ready();
        Poll::Ready(Ok(()))
    }
}
