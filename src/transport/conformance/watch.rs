//! What a check is doing, for those who wait for it.
//!
//! The ends that a check gets are wrapped: each call says what it does before it does it,
//! so that a check which hangs can be told by the call that does not come back.

use core::error::Error;
use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Backend, Check, Setup};
use crate::transport::{Counters, Part, RecvFrames, SendFrames, Wait};

/// The calls of one check that are under way, of all of its ends.
#[derive(Debug, Default)]
pub(super) struct Steps {
    ends: Mutex<Vec<Arc<Step>>>,
}

/// What one end is doing.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// The place in [`DOING`].
    doing: AtomicU8,
    /// How many messages went through it.
    messages: AtomicU64,
}

/// What an end can be doing; the calls that move messages have the number of theirs.
const DOING: [(&str, bool); 8] = [
    ("", false),
    ("opening", false),
    ("sending message", true),
    ("receiving message", true),
    ("restarting the sender", false),
    ("restarting the receiver", false),
    ("closing the sender", false),
    ("closing the receiver", false),
];

const NOTHING: u8 = 0;
const OPENING: u8 = 1;
const SENDING: u8 = 2;
const RECEIVING: u8 = 3;
const RESTARTING_SENDER: u8 = 4;
const RESTARTING_RECEIVER: u8 = 5;
const CLOSING_SENDER: u8 = 6;
const CLOSING_RECEIVER: u8 = 7;

impl Steps {
    fn add(&self) -> Arc<Step> {
        let step = Arc::<Step>::default();
        self.lock().push(step.clone());
        step
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Step>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls under way: `sending message 10, receiving message 3`. Messages are counted
/// from 0, for each end.
impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut none = true;
        for step in self.lock().iter() {
            let doing = step.doing.load(Ordering::Relaxed);
            let Some((what, numbered)) = DOING.get(usize::from(doing)).copied() else {
                continue;
            };
            if doing == NOTHING {
                continue;
            }
            let separator = if none { "" } else { ", " };
            write!(f, "{separator}{what}")?;
            if numbered {
                write!(f, " {}", step.messages.load(Ordering::Relaxed))?;
            }
            none = false;
        }
        if none {
            f.write_str("in no call to the transport")?;
        }
        Ok(())
    }
}

impl Step {
    /// Makes a call that does this. If it panics, it is no longer under way either.
    fn during<R>(&self, doing: u8, call: impl FnOnce() -> R) -> R {
        self.doing.store(doing, Ordering::Relaxed);
        let _ends = Ends(self);
        call()
    }

    /// Makes a call that moves a message, which counts if it did.
    fn moving<R, E>(&self, doing: u8, call: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
        let moved = self.during(doing, call);
        if moved.is_ok() {
            self.messages.fetch_add(1, Ordering::Relaxed);
        }
        moved
    }
}

/// Notes the end of a call.
struct Ends<'a>(&'a Step);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.doing.store(NOTHING, Ordering::Relaxed);
    }
}

/// An end whose calls are noted, its closing included: fields are dropped in this order.
pub(super) struct Watched<T> {
    _closing: Mark,
    end: T,
    _closed: Mark,
    step: Arc<Step>,
}

/// Notes what an end is doing when it is dropped.
struct Mark {
    step: Arc<Step>,
    doing: u8,
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.step.doing.store(self.doing, Ordering::Relaxed);
    }
}

impl<T> Watched<T> {
    fn new(end: T, step: Arc<Step>, closing: u8) -> Self {
        let mark = |doing| {
            let step = step.clone();
            Mark { step, doing }
        };
        Self {
            _closing: mark(closing),
            end,
            _closed: mark(NOTHING),
            step,
        }
    }

    fn into_inner(self) -> T {
        self.end
    }
}

impl<S: SendFrames> SendFrames for Watched<S> {
    type SendError = S::SendError;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), S::SendError> {
        let Self { end, step, .. } = self;
        step.moving(SENDING, || end.send_frames(frames, wait))
    }

    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), S::SendError> {
        let Self { end, step, .. } = self;
        step.moving(SENDING, || end.send_parts(parts, wait))
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<(), S::SendError> {
        let Self { end, step, .. } = self;
        step.moving(SENDING, || end.send(frames))
    }

    fn try_send(&mut self, frames: &[&[u8]]) -> Result<(), S::SendError> {
        let Self { end, step, .. } = self;
        step.moving(SENDING, || end.try_send(frames))
    }
}

impl<R: RecvFrames> RecvFrames for Watched<R> {
    type Message = R::Message;
    type RecvError = R::RecvError;

    fn recv_frames(&mut self, message: &mut R::Message, wait: Wait) -> Result<(), R::RecvError> {
        let Self { end, step, .. } = self;
        step.moving(RECEIVING, || end.recv_frames(message, wait))
    }

    fn recv_into(&mut self, message: &mut R::Message) -> Result<(), R::RecvError> {
        let Self { end, step, .. } = self;
        step.moving(RECEIVING, || end.recv_into(message))
    }

    fn try_recv_into(&mut self, message: &mut R::Message) -> Result<(), R::RecvError> {
        let Self { end, step, .. } = self;
        step.moving(RECEIVING, || end.try_recv_into(message))
    }

    fn recv(&mut self) -> Result<R::Message, R::RecvError> {
        let Self { end, step, .. } = self;
        step.moving(RECEIVING, || end.recv())
    }
}

/// A backend whose ends are watched.
pub(super) struct WatchedBackend<B> {
    backend: Arc<B>,
    steps: Arc<Steps>,
    /// What the backend itself is doing.
    step: Arc<Step>,
}

impl<B: Backend> WatchedBackend<B> {
    pub(super) fn new(backend: Arc<B>, steps: Arc<Steps>) -> Self {
        let step = steps.add();
        Self {
            backend,
            steps,
            step,
        }
    }

    fn sender(&self, end: B::Sender) -> Watched<B::Sender> {
        Watched::new(end, self.steps.add(), CLOSING_SENDER)
    }

    fn receiver(&self, end: B::Receiver) -> Watched<B::Receiver> {
        Watched::new(end, self.steps.add(), CLOSING_RECEIVER)
    }
}

impl<B: Backend> Backend for WatchedBackend<B> {
    type Sender = Watched<B::Sender>;
    type Receiver = Watched<B::Receiver>;

    fn name(&self) -> &str {
        self.backend.name()
    }

    fn open(
        &self,
        setup: &Setup,
    ) -> Result<(Self::Sender, Self::Receiver), Box<dyn Error + Send + Sync>> {
        let opened = self.step.during(OPENING, || self.backend.open(setup));
        opened.map(|(sender, receiver)| (self.sender(sender), self.receiver(receiver)))
    }

    fn restart_receiver(
        &self,
        receiver: Self::Receiver,
        setup: &Setup,
    ) -> Result<Option<Self::Receiver>, Box<dyn Error + Send + Sync>> {
        let receiver = receiver.into_inner();
        let restart = || self.backend.restart_receiver(receiver, setup);
        let restarted = self.step.during(RESTARTING_RECEIVER, restart);
        restarted.map(|receiver| receiver.map(|receiver| self.receiver(receiver)))
    }

    fn restart_sender(
        &self,
        sender: Self::Sender,
        setup: &Setup,
    ) -> Result<Option<Self::Sender>, Box<dyn Error + Send + Sync>> {
        let sender = sender.into_inner();
        let restart = || self.backend.restart_sender(sender, setup);
        let restarted = self.step.during(RESTARTING_SENDER, restart);
        restarted.map(|sender| sender.map(|sender| self.sender(sender)))
    }

    fn sender_counters(&self, sender: &Self::Sender) -> Option<Counters> {
        self.backend.sender_counters(&sender.end)
    }

    fn receiver_counters(&self, receiver: &Self::Receiver) -> Option<Counters> {
        self.backend.receiver_counters(&receiver.end)
    }

    fn skip(&self, check: Check) -> Option<&'static str> {
        self.backend.skip(check)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn the_calls_under_way_are_told_and_no_others() {
        let steps = Steps::default();
        let (sender, receiver) = (steps.add(), steps.add());
        assert_eq!(steps.to_string(), "in no call to the transport");
        for _ in 0..3 {
            sender.moving(SENDING, || Ok::<_, ()>(())).unwrap();
        }
        sender.moving(SENDING, || Err::<(), _>(())).unwrap_err();
        assert_eq!(steps.to_string(), "in no call to the transport");
        let told = sender.during(SENDING, || receiver.during(RECEIVING, || steps.to_string()));
        assert_eq!(told, "sending message 3, receiving message 0");
    }

    #[test]
    fn an_end_that_closes_says_so_until_it_is_closed() {
        struct Tells(Arc<Steps>);

        impl Drop for Tells {
            fn drop(&mut self) {
                assert_eq!(self.0.to_string(), "closing the receiver");
            }
        }

        let steps = Arc::<Steps>::default();
        let step = steps.add();
        drop(Watched::new(Tells(steps.clone()), step, CLOSING_RECEIVER));
        assert_eq!(steps.to_string(), "in no call to the transport");
    }
}
