//! What tokio needs of an end.

use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use alloc::boxed::Box;

use std::io;

use ::tokio::time::{Sleep, sleep};

use super::Loopback;
use crate::transport::tokio::{Direction, Readiness};

/// Waits for the next message to be due; the registration of a [`Loopback`].
#[derive(Debug, Default)]
pub struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

/// There is no descriptor: whoever changes the queue wakes the task.
impl Readiness for Loopback {
    type Registration = Timer;

    fn register(&mut self) -> io::Result<Timer> {
        Ok(Timer::default())
    }

    fn poll_ready(
        &mut self,
        timer: &mut Timer,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if direction == Direction::Send {
            return if self.outgoing.has_room(cx.waker()) {
                Poll::Ready(Ok(()))
            } else {
                Poll::Pending
            };
        }
        match self.incoming.time_to_message(cx.waker()) {
            Some(Duration::ZERO) => Poll::Ready(Ok(())),
            Some(left) => {
                let sleep = timer.sleep.insert(Box::pin(sleep(left)));
                sleep.as_mut().poll(cx).map(Ok)
            }
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
