//! One direction of a pair: a bounded queue with storage that goes in circles.

use core::mem;
#[cfg(feature = "tokio")]
use core::task::Waker;
use core::time::Duration;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{Error, Frames, Message};
use crate::transport::deadline::Deadline;

/// A bounded queue of messages from one sender to one receiver.
///
/// Code of the user (an owner's `AsRef` or `Drop`) never runs under the lock.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Told of every push, every pop, and of closing.
    changed: Condvar,
    high_water: usize,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    queued: VecDeque<Queued>,
    spares: Vec<Message>,
    /// The task that waits for a message.
    #[cfg(feature = "tokio")]
    receiving: Option<Waker>,
    /// The task that waits for room.
    #[cfg(feature = "tokio")]
    sending: Option<Waker>,
}

#[derive(Debug)]
struct Queued {
    message: Message,
    /// When it may be received; `None` is at once.
    due: Option<Instant>,
    /// The number of the message, if a receive of it is still to fail.
    fails: Option<u64>,
}

/// How a message is to arrive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrival {
    /// So much later.
    pub(super) delay: Option<Duration>,
    /// After a receive that fails with this number.
    pub(super) fails: Option<u64>,
}

impl Queue {
    pub(super) fn new(high_water: usize) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            high_water,
        }
    }

    /// Ends the queue for both sides. What is queued can still be received.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.tell(state);
    }

    /// Waits until one more message may be pushed, and gives an empty one to
    /// fill. There is one sender: the room stays until it pushes.
    pub(super) fn wait_for_room(&self, deadline: Deadline) -> Result<Message, Error> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err(Error::Closed);
            }
            if state.queued.len() < self.high_water {
                return Ok(state.spares.pop().unwrap_or_default());
            }
            state = self.sleep(state, deadline.remaining()?);
        }
    }

    /// Gives an empty message to fill, room or not.
    pub(super) fn spare(&self) -> Message {
        self.lock().spares.pop().unwrap_or_default()
    }

    /// Appends `message`, to be received as `arrival` says.
    pub(super) fn push(&self, message: Message, arrival: Arrival) {
        let Arrival { delay, fails } = arrival;
        let due = delay.and_then(|delay| {
            let now = Instant::now();
            // Past the end of the clock is late, not at once.
            now.checked_add(delay)
                .or_else(|| now.checked_add(A_CENTURY))
        });
        let queued = Queued {
            message,
            due,
            fails,
        };
        let mut state = self.lock();
        state.queued.push_back(queued);
        self.tell(state);
    }

    /// Waits for the next message and swaps it into `message`, which is empty.
    pub(super) fn pop(&self, message: &mut Message, deadline: Deadline) -> Result<(), Error> {
        let mut state = self.lock();
        loop {
            let longest = match state.queued.front() {
                Some(Queued { due: Some(due), .. }) => due
                    .checked_duration_since(Instant::now())
                    .filter(|left| !left.is_zero()),
                Some(_) => None,
                None if state.closed => return Err(Error::Closed),
                None => Some(Duration::MAX),
            };
            let Some(longest) = longest else { break };
            state = self.sleep(state, longest.min(deadline.remaining()?));
        }
        let front = state.queued.front_mut();
        if let Some(message) = front.and_then(|queued| queued.fails.take()) {
            return Err(Error::Injected { message });
        }
        if let Some(mut queued) = state.queued.pop_front() {
            mem::swap(message, &mut queued.message);
            state.keep(queued.message, self.high_water);
        }
        self.tell(state);
        Ok(())
    }

    /// Takes back the storage of a message that goes nowhere.
    pub(super) fn recycle(&self, mut message: Message) {
        message.clear();
        self.lock().keep(message, self.high_water);
    }

    /// Returns how long it takes until there is a message or the end of them: zero if
    /// there is. `None` is until the next change, at which `task` is woken.
    #[cfg(feature = "tokio")]
    pub(super) fn time_to_message(&self, task: &Waker) -> Option<Duration> {
        let mut state = self.lock();
        let left = match state.queued.front() {
            Some(Queued { due: Some(due), .. }) => due.saturating_duration_since(Instant::now()),
            Some(_) => Duration::ZERO,
            None if state.closed => Duration::ZERO,
            None => {
                state.receiving = Some(task.clone());
                return None;
            }
        };
        Some(left)
    }

    /// Tells whether there is room or the queue is closed; if neither, has `task`
    /// woken at the next change.
    #[cfg(feature = "tokio")]
    pub(super) fn has_room(&self, task: &Waker) -> bool {
        let mut state = self.lock();
        if state.closed || state.queued.len() < self.high_water {
            return true;
        }
        state.sending = Some(task.clone());
        false
    }

    /// Wakes all who wait, outside of the lock.
    fn tell(&self, state: MutexGuard<'_, State>) {
        #[cfg(feature = "tokio")]
        let tasks = {
            let mut state = state;
            [state.receiving.take(), state.sending.take()]
        };
        #[cfg(not(feature = "tokio"))]
        drop(state);
        self.changed.notify_all();
        #[cfg(feature = "tokio")]
        tasks.into_iter().flatten().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned state is whole all the same: each change is one push or pop.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<'a>(&self, state: MutexGuard<'a, State>, longest: Duration) -> MutexGuard<'a, State> {
        let slept = self.changed.wait_timeout(state, longest.min(LONGEST_SLEEP));
        slept.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    /// Keeps an empty message for later.
    fn keep(&mut self, message: Message, high_water: usize) {
        // As many as can be under way at a time, and the one being filled.
        if self.spares.len() <= high_water {
            self.spares.push(message);
        }
    }
}

/// Sleepers look again after this, so that no clock can overflow.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// As late as a message may be.
const A_CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
