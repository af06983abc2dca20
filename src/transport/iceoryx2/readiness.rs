//! What tokio needs of an end.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use alloc::boxed::Box;

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use ::tokio::time::{Sleep, sleep};

use super::channel::{CLEAN_UP_EVERY, LONGEST_SLEEP};
use super::{Receiver, Sender};
use crate::transport::tokio::{Descriptor, Direction, Readiness};

/// Waits for a wake-up; the registration of a [`Receiver`].
#[derive(Debug)]
pub struct Wakes {
    descriptor: Descriptor,
    /// A sender may have died between sending and waking.
    again: Timer,
}

/// A descriptor tells of wake-ups by its edge: those told of are taken before the
/// receiver is looked at again.
impl Readiness for Receiver {
    type Registration = Wakes;

    fn register(&mut self) -> io::Result<Wakes> {
        Ok(Wakes {
            descriptor: Descriptor::new(self.as_fd())?,
            again: Timer::default(),
        })
    }

    fn poll_ready(
        &mut self,
        wakes: &mut Wakes,
        _direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        match wakes.descriptor.poll_news(cx)? {
            Poll::Ready(()) => {
                wakes.again.stop();
                Poll::Ready(self.arm().map_err(io::Error::other))
            }
            Poll::Pending => wakes.again.poll(cx, LONGEST_SLEEP).map(Ok),
        }
    }

    fn timeout(&self, _direction: Direction) -> Option<Duration> {
        self.options.recv_timeout
    }
}

/// Waits before the next look for room; the registration of a [`Sender`].
#[derive(Debug)]
pub struct Naps {
    timer: Timer,
    /// Whether the other tasks had their turn since the last nap.
    yielded: bool,
    cleaned: Instant,
}

/// Nothing tells of room: it is looked for once the other tasks have had their turn,
/// and then after each tick of the runtime's clock.
impl Readiness for Sender {
    type Registration = Naps;

    fn register(&mut self) -> io::Result<Naps> {
        Ok(Naps {
            timer: Timer::default(),
            yielded: false,
            cleaned: Instant::now(),
        })
    }

    fn poll_ready(
        &mut self,
        naps: &mut Naps,
        _direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if !naps.yielded {
            naps.yielded = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if naps.timer.poll(cx, NAP).is_pending() {
            return Poll::Pending;
        }
        naps.yielded = false;
        if naps.cleaned.elapsed() >= CLEAN_UP_EVERY {
            // One at a time: the other tasks wait for it.
            self.clean_up(Duration::ZERO).map_err(io::Error::other)?;
            naps.cleaned = Instant::now();
        }
        Poll::Ready(Ok(()))
    }

    fn timeout(&self, _direction: Direction) -> Option<Duration> {
        self.options.send_timeout
    }
}

/// A time to wait for that starts when it is first asked for.
#[derive(Debug, Default)]
struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    fn poll(&mut self, cx: &mut Context<'_>, time: Duration) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(time)));
        let done = sleep.as_mut().poll(cx);
        if done.is_ready() {
            self.stop();
        }
        done
    }

    fn stop(&mut self) {
        self.sleep = None;
    }
}

/// The runtime's clock has no shorter one.
const NAP: Duration = Duration::from_millis(1);
