//! Messages as a stream.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures_core::Stream;

use super::{Async, Error, Readiness};
use crate::transport::{ErrorKind, RecvFrames, TransportError};

/// The messages of a transport; made by [`Async::messages`].
///
/// Each is a new message, with storage of its own. Where that costs too much, receive
/// into one message with [`Async::recv_into`].
pub struct Messages<'a, T: Readiness> {
    transport: &'a mut Async<T>,
    ended: bool,
}

impl<'a, T: Readiness> Messages<'a, T> {
    pub(super) fn new(transport: &'a mut Async<T>) -> Self {
        Self {
            transport,
            ended: false,
        }
    }
}

impl<T: Readiness + RecvFrames> Stream for Messages<'_, T> {
    type Item = Result<T::Message, Error<T::RecvError>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut message = T::Message::default();
        let received = ready!(self.transport.poll_recv(cx, &mut message));
        Poll::Ready(match received {
            Ok(()) => Some(Ok(message)),
            Err(error) if error.kind() == ErrorKind::Closed => {
                self.ended = true;
                None
            }
            Err(error) => Some(Err(error)),
        })
    }
}

impl<T: Readiness + fmt::Debug> fmt::Debug for Messages<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages")
            .field("transport", &self.transport.transport)
            .field("ended", &self.ended)
            .finish()
    }
}
