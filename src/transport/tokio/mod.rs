//! The transports as futures, on tokio's reactor.
//!
//! ```text
//!               Async<T>
//!  task ----> try_recv_into ----> a message: done
//!    ^              |
//!    |          would block
//!    |              v
//!    +---- Readiness::poll_ready: the reactor watches the transport's descriptor
//! ```
//!
//! [`Async`] takes a transport and gives the same calls as futures, with the same
//! contract as [`transport`](super). No thread is spawned and nothing is buffered:
//! a task tries, and sleeps until the transport says that trying again may help.
//! Libraries tell by a file descriptor whether it may, so this is for Unix.
//!
//! # Cancelling
//!
//! Any of the futures may be dropped at any time, as `select!` does. A receive that
//! is dropped has taken no message: the next receive gets it. A send that is
//! dropped has handed over all of its message or none of it; none, unless it was
//! polled to its end. The parts of a dropped [`Async::send_parts`] are still in the list.
//!
//! # Closing
//!
//! [`Async::into_inner`] gives the transport back. Dropping the last handle of a
//! ZeroMQ or NNG context waits for what is still to be sent, and with it blocks the
//! thread: in a task, do that in `tokio::task::spawn_blocking`.
//!
//! # Other calls
//!
//! What a transport can do besides, such as [`lend_frames`](super::LendFrames::lend_frames),
//! is called through [`Async::get_mut`], not to wait; where it would block,
//! [`Async::changed`] waits until trying again may help.
//!
//! # Panics
//!
//! tokio itself panics if its runtime was built without I/O, or without time where
//! a call is to wait for a while: build it with `enable_all`. So it does where such a
//! call is polled outside of a runtime.
//!
//! # Examples
//!
//! ```
//! use tensorwire::transport::{Frames, loopback, tokio::Async};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let (left, right) = loopback::pair();
//! let (mut left, mut right) = (Async::new(left)?, Async::new(right)?);
//! left.send(&[b"metadata", b"tensor"]).await?;
//! let message = right.recv().await?;
//! assert_eq!(message.frame(1), Some(&b"tensor"[..]));
//! # Ok(())
//! # })
//! # }
//! ```

mod descriptor;
mod error;
mod messages;

use core::future::poll_fn;
use core::pin::pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use alloc::vec::Vec;

use std::io;

use ::tokio::task::coop;
use ::tokio::time::sleep_until;

use super::{Counters, ErrorKind, Observed, Part, RecvFrames, SendFrames, TransportError, Wait};

pub use descriptor::Descriptor;
pub use error::Error;
pub use messages::Messages;

/// What a transport needs so that it can be awaited.
///
/// Implemented by the transports of this crate; implement it for yours, if it is to be
/// awaited.
pub trait Readiness {
    /// What the reactor knows the transport by: a [`Descriptor`], say.
    type Registration: Send;

    /// Registers the transport with the reactor of the current runtime.
    ///
    /// # Errors
    ///
    /// What the reactor or the system says.
    fn register(&mut self) -> io::Result<Self::Registration>;

    /// Waits until trying again may help: polled after a call that was not to wait
    /// came back as [`ErrorKind::WouldBlock`].
    ///
    /// It may be ready for nothing. It must not miss anything: if the change came
    /// after that call, it is ready, or the task is woken.
    ///
    /// # Errors
    ///
    /// What the reactor says.
    fn poll_ready(
        &mut self,
        registration: &mut Self::Registration,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>>;

    /// Returns how long a call waits that is to wait as configured.
    fn timeout(&self, direction: Direction) -> Option<Duration>;
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Direction {
    /// A message to receive.
    Receive,
    /// Room to send into.
    Send,
}

/// A transport whose calls are futures.
#[derive(Debug)]
pub struct Async<T: Readiness> {
    // Before the transport, as it is dropped first.
    registration: T::Registration,
    transport: T,
}

impl<T: Readiness> Async<T> {
    /// Registers `transport` with the reactor of the current runtime.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Other`] outside of a runtime; else what the system says.
    pub fn new(mut transport: T) -> io::Result<Self> {
        if ::tokio::runtime::Handle::try_current().is_err() {
            return Err(io::Error::other("no tokio runtime here"));
        }
        let registration = transport.register()?;
        Ok(Self {
            registration,
            transport,
        })
    }

    /// Returns the transport, to look at.
    #[must_use]
    pub fn get_ref(&self) -> &T {
        &self.transport
    }

    /// Returns the transport, to set it up. Its own calls block the thread.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Gives the transport back.
    pub fn into_inner(self) -> T {
        self.transport
    }

    /// Waits until trying again may help, after a call of the transport's own came back
    /// as [`ErrorKind::WouldBlock`]. It may be back for nothing.
    ///
    /// # Errors
    ///
    /// What the reactor says, when its runtime shuts down.
    ///
    /// # Examples
    ///
    /// A frame is written in place once there is room for it.
    ///
    /// ```
    /// use tensorwire::transport::tokio::{Async, Direction};
    /// use tensorwire::transport::{LendFrames, Loan, TransportError, Wait, loopback};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// # runtime.block_on(async {
    /// let (left, right) = loopback::pair();
    /// let (mut left, mut right) = (Async::new(left)?, Async::new(right)?);
    /// loop {
    ///     match left.get_mut().lend_frames(&[4], Wait::Never) {
    ///         Ok(mut loan) => {
    ///             loan.frames_mut().for_each(|frame| frame.fill(7));
    ///             loan.send(Wait::Never).map_err(|(_, error)| error)?;
    ///             break;
    ///         }
    ///         Err(error) if error.kind().is_wait() => {}
    ///         Err(error) => return Err(error.into()),
    ///     }
    ///     left.changed(Direction::Send).await?;
    /// }
    /// right.recv().await?;
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub async fn changed(&mut self, direction: Direction) -> io::Result<()> {
        poll_fn(|cx| {
            self.transport
                .poll_ready(&mut self.registration, direction, cx)
        })
        .await
    }

    /// Tries until it does not block; cancelled, it has done nothing.
    fn poll_with<R, E: TransportError>(
        &mut self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(&mut T) -> Result<R, E>,
    ) -> Poll<Result<R, Error<E>>> {
        // A transport that always has something must not starve the other tasks.
        let budget = ready!(coop::poll_proceed(cx));
        loop {
            match attempt(&mut self.transport) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => {
                    budget.made_progress();
                    return Poll::Ready(done.map_err(Error::Transport));
                }
            }
            let ready = self
                .transport
                .poll_ready(&mut self.registration, direction, cx);
            match ready {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(Error::Reactor(error.kind())));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Waits for `attempt` as `wait` says.
    pub(super) async fn wait_with<R, E: TransportError>(
        &mut self,
        direction: Direction,
        wait: Wait,
        mut attempt: impl FnMut(&mut T) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        let longest = match wait {
            Wait::Never => {
                // Nor must a task that only ever looks.
                coop::consume_budget().await;
                return attempt(&mut self.transport).map_err(Error::Transport);
            }
            Wait::Forever => None,
            Wait::UpTo(longest) => Some(longest),
            Wait::Configured => self.transport.timeout(direction),
        };
        let mut poll = |cx: &mut Context<'_>| self.poll_with(direction, cx, &mut attempt);
        // A time past the end of the clock is none.
        let end = longest.and_then(|longest| ::tokio::time::Instant::now().checked_add(longest));
        let Some(end) = end else {
            return poll_fn(poll).await;
        };
        let mut timer = pin!(sleep_until(end));
        poll_fn(|cx| match poll(cx) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => timer.as_mut().poll(cx).map(|()| Err(Error::TimedOut)),
        })
        .await
    }
}

impl<T: Readiness + RecvFrames> Async<T> {
    /// Polls for the next message, received into `message`.
    ///
    /// One task at a time may wait for a transport: the last one that polled.
    ///
    /// # Errors
    ///
    /// As [`RecvFrames::recv_frames`], but for those of waiting.
    pub fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        message: &mut T::Message,
    ) -> Poll<Result<(), Error<T::RecvError>>> {
        self.poll_with(Direction::Receive, cx, |transport| {
            transport.try_recv_into(message)
        })
    }

    /// Receives the next message into `message`, in place of what it held.
    ///
    /// # Errors
    ///
    /// As [`RecvFrames::recv_frames`].
    pub async fn recv_frames(
        &mut self,
        message: &mut T::Message,
        wait: Wait,
    ) -> Result<(), Error<T::RecvError>> {
        self.wait_with(Direction::Receive, wait, |transport| {
            transport.try_recv_into(message)
        })
        .await
    }

    /// Receives the next message into `message`, waiting as configured.
    ///
    /// # Errors
    ///
    /// As [`RecvFrames::recv_frames`].
    pub async fn recv_into(&mut self, message: &mut T::Message) -> Result<(), Error<T::RecvError>> {
        self.recv_frames(message, Wait::Configured).await
    }

    /// Receives the next message into a new one, waiting as configured.
    ///
    /// # Errors
    ///
    /// As [`RecvFrames::recv_frames`].
    pub async fn recv(&mut self) -> Result<T::Message, Error<T::RecvError>> {
        let mut message = T::Message::default();
        self.recv_into(&mut message).await?;
        Ok(message)
    }

    /// Returns the messages as a stream, which waits for each as long as it takes
    /// and ends when the transport is closed.
    #[must_use]
    pub fn messages(&mut self) -> Messages<'_, T> {
        Messages::new(self)
    }
}

impl<T: Readiness + SendFrames> Async<T> {
    /// Polls for room for `frames`, and sends them as one message, copying the bytes.
    ///
    /// # Errors
    ///
    /// As [`SendFrames::send_frames`], but for those of waiting.
    pub fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        frames: &[&[u8]],
    ) -> Poll<Result<(), Error<T::SendError>>> {
        self.poll_with(Direction::Send, cx, |transport| transport.try_send(frames))
    }

    /// Sends `frames`, in order, as one message, copying the bytes.
    ///
    /// # Errors
    ///
    /// As [`SendFrames::send_frames`].
    pub async fn send_frames(
        &mut self,
        frames: &[&[u8]],
        wait: Wait,
    ) -> Result<(), Error<T::SendError>> {
        self.wait_with(Direction::Send, wait, |transport| {
            transport.try_send(frames)
        })
        .await
    }

    /// Sends `parts`, in order, as one message, taking the owned ones along.
    ///
    /// # Errors
    ///
    /// As [`SendFrames::send_parts`].
    pub async fn send_parts(
        &mut self,
        parts: &mut Vec<Part<'_>>,
        wait: Wait,
    ) -> Result<(), Error<T::SendError>> {
        self.wait_with(Direction::Send, wait, |transport| {
            transport.send_parts(parts, Wait::Never)
        })
        .await
    }

    /// Sends `frames` as one message, waiting for room as configured.
    ///
    /// # Errors
    ///
    /// As [`SendFrames::send_frames`].
    pub async fn send(&mut self, frames: &[&[u8]]) -> Result<(), Error<T::SendError>> {
        self.send_frames(frames, Wait::Configured).await
    }
}

impl<T: Readiness + Observed> Observed for Async<T> {
    fn counters(&self) -> Counters {
        self.transport.counters()
    }
}
