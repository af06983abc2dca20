//! What tokio's reactor needs of a socket.

use core::task::{Context, Poll, ready};
use core::time::Duration;

use alloc::vec::Vec;

use std::io;

use super::Error;
use super::kind::{Kind, Router};
use super::raw;
use super::socket::Socket;
use crate::transport::tokio::{self, Async, Descriptor, Direction, Readiness};
use crate::transport::{Part, SendFrames, Wait};

/// libzmq has one descriptor for both directions. It tells of commands to the socket,
/// not of messages, and by its edge only: what it told of has to be processed, by a
/// look at the events, before it is waited for again.
impl<K: Kind> Readiness for Socket<K> {
    type Registration = Descriptor;

    fn register(&mut self) -> io::Result<Descriptor> {
        let descriptor = raw::descriptor(&mut self.socket).map_err(io_error)?;
        Descriptor::new(descriptor)
    }

    fn poll_ready(
        &mut self,
        registration: &mut Descriptor,
        _direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(registration.poll_news(cx))?;
        // Sending now does not process commands each time; this does. The news are noted
        // and not told again, so a signal must not keep it from being done.
        loop {
            match self.socket.get_events() {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(::zmq::Error::EINTR) => {}
                Err(error) => return Poll::Ready(Err(io_error(error.to_raw()))),
            }
        }
    }

    fn timeout(&self, direction: Direction) -> Option<Duration> {
        match direction {
            Direction::Receive => self.options.recv_timeout,
            Direction::Send => self.options.send_timeout,
        }
    }
}

impl Async<Socket<Router>> {
    /// Sends `frames` as one message to the peer that `envelope` names; as
    /// [`Socket::to`] does.
    ///
    /// # Errors
    ///
    /// As [`SendFrames::send_frames`]; [`Error::Unreachable`] if there is no such peer.
    pub async fn send_frames_to(
        &mut self,
        envelope: &[u8],
        frames: &[&[u8]],
        wait: Wait,
    ) -> Result<(), tokio::Error<Error>> {
        let send = |router: &mut Socket<Router>| router.to(envelope).try_send(frames);
        self.wait_with(Direction::Send, wait, send).await
    }

    /// Sends `parts` as one message to the peer that `envelope` names, taking the
    /// owned ones along.
    ///
    /// # Errors
    ///
    /// As [`SendFrames::send_parts`]; [`Error::Unreachable`] if there is no such peer.
    pub async fn send_parts_to(
        &mut self,
        envelope: &[u8],
        parts: &mut Vec<Part<'_>>,
        wait: Wait,
    ) -> Result<(), tokio::Error<Error>> {
        let send = |router: &mut Socket<Router>| router.to(envelope).send_parts(parts, Wait::Never);
        self.wait_with(Direction::Send, wait, send).await
    }
}

fn io_error(errno: i32) -> io::Error {
    io::Error::other(Error::from_errno(errno))
}
