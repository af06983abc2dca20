//! What tokio's reactor needs of a socket.

use core::task::{Context, Poll};
use core::time::Duration;

use std::io;

use super::kind::Kind;
use super::raw::{Event, descriptor};
use super::socket::Socket;
use crate::transport::tokio::{Descriptor, Direction, Readiness};

/// The descriptors of a socket, watched by a reactor.
#[derive(Debug)]
pub struct Registration {
    receive: Option<Descriptor>,
    send: Option<Descriptor>,
}

/// NNG has one descriptor for each direction, readable while there is something to
/// do: each time that comes to be so is an edge. The receive of a
/// [`Request`](super::Request) socket is under way already, and wakes the task itself.
impl<K: Kind> Readiness for Socket<K> {
    type Registration = Registration;

    fn register(&mut self) -> io::Result<Registration> {
        let watch = |able: bool, event| {
            let descriptor = able.then(|| descriptor(&self.socket, event));
            let descriptor = descriptor.transpose().map_err(io::Error::other)?;
            descriptor.map(Descriptor::new).transpose()
        };
        Ok(Registration {
            receive: watch(K::RECEIVES, Event::Readable)?,
            send: watch(K::SENDS, Event::Writable)?,
        })
    }

    fn poll_ready(
        &mut self,
        registration: &mut Registration,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let (Some(pending), Direction::Receive) = (&self.pending, direction) {
            return match pending.poll(cx.waker()) {
                true => Poll::Ready(Ok(())),
                false => Poll::Pending,
            };
        }
        let descriptor = match direction {
            Direction::Receive => &mut registration.receive,
            Direction::Send => &mut registration.send,
        };
        match descriptor {
            Some(descriptor) => descriptor.poll_news(cx),
            // No such call is there to be waited for.
            None => Poll::Pending,
        }
    }

    fn timeout(&self, direction: Direction) -> Option<Duration> {
        match direction {
            Direction::Receive => self.options.recv_timeout,
            Direction::Send => self.options.send_timeout,
        }
    }
}
