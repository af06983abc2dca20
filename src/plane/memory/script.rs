//! Faults and delays of the in-process plane, for tests.

use core::fmt;
use core::time::Duration;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::plane::ErrorKind;

/// Makes pushes of a [`Plane`](super::Plane) fail, and stops them half way.
///
/// Clones are the same script: keep one while a driver owns the plane. What is held goes on when
/// the plane is polled after its release.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tensorwire::plane::memory::{Fault, Hold, Hub};
/// use tensorwire::plane::{DataPlane, ErrorKind, RegionOptions, Transfer};
///
/// let hub = Hub::new();
/// let mut plane = hub.join("alone")?;
/// let region = plane.register(RegionOptions::new(1 << 20))?;
/// let script = plane.script();
///
/// script.add_fault(Fault::Fail(ErrorKind::PeerGone));
/// script.hold(Hold::BeforeCompletion);
/// let transfer = Transfer::new(region.pool().allocate(1)?, "alone");
/// plane.push(transfer).map_err(|(_, error)| error)?;
/// assert!(plane.poll_completion().is_none());
///
/// script.release(1);
/// let completion = plane.wait_completion(Duration::MAX).ok_or("no end")?;
/// assert_eq!(completion.result(), Err(&ErrorKind::PeerGone));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Script {
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    faults: VecDeque<Fault>,
    hold: Option<Hold>,
    /// How many pushes may go on that are held, or will be.
    released: usize,
    /// How many pushes have begun, and how many of those are not held any more.
    begun: u64,
    resumed: u64,
    /// Grows with every change.
    version: u64,
}

/// What becomes of a push.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// It breaks off after so many bytes, and its completion tells of this error.
    Cut {
        /// How many bytes are written.
        bytes: usize,
        /// What the completion says.
        kind: ErrorKind,
    },
    /// Nothing is checked or written, and its completion tells of this error.
    Fail(ErrorKind),
    /// It goes as it goes without a script.
    Pass,
    /// It is refused at once, with this error.
    Refuse(ErrorKind),
}

/// Where a push stops.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Hold {
    /// All is done; only its completion is not told yet.
    BeforeCompletion,
    /// Nothing is checked or written yet: a push that comes late.
    BeforeWindow,
    /// It has found its windows open, and is under way in them: they cannot be closed.
    InWindow,
}

/// A push that is held, or will be when it gets there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) at: Hold,
    /// How many pushes began before it.
    number: u64,
}

impl Script {
    pub(super) fn new() -> Self {
        Self {
            shared: Arc::default(),
        }
    }

    /// Says what becomes of the next push for which nothing is said yet.
    ///
    /// Of pushes that nothing is said of, each goes as it goes.
    pub fn add_fault(&self, fault: Fault) {
        self.change(|state| state.faults.push_back(fault));
    }

    /// Stops every push from now on at this point.
    pub fn hold(&self, hold: Hold) {
        self.change(|state| state.hold = Some(hold));
    }

    /// Lets `count` pushes go on, the oldest first; also some that will be held, if
    /// fewer are now.
    pub fn release(&self, count: usize) {
        self.change(|state| state.released = state.released.saturating_add(count));
    }

    /// Lets all pushes that are held go on, and stops no further one.
    pub fn resume(&self) {
        self.change(|state| {
            state.hold = None;
            state.released = 0;
            state.resumed = state.begun;
        });
    }

    /// Returns what becomes of a push that begins now, and where it stops.
    pub(super) fn next(&self) -> (Fault, Option<Held>) {
        let mut state = self.lock();
        let fault = state.faults.pop_front();
        let number = state.begun;
        state.begun = number.wrapping_add(1);
        let held = state.hold.map(|at| Held { at, number });
        (fault.unwrap_or(Fault::Pass), held)
    }

    /// Takes the hold off the pushes that were released.
    pub(super) fn release_held<'a>(&self, pushes: impl Iterator<Item = &'a mut Option<Held>>) {
        let mut state = self.lock();
        for push in pushes {
            let Some(held) = push else { continue };
            if held.number >= state.resumed {
                let Some(left) = state.released.checked_sub(1) else {
                    return;
                };
                state.released = left;
            }
            *push = None;
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.lock().version
    }

    /// Waits until something has changed since `version`, or `timeout` is over.
    pub(super) fn wait(&self, version: u64, timeout: Duration) {
        let (_, changed) = &*self.shared;
        let is_same = |state: &mut State| state.version == version;
        // Whether the time is over is for the caller to find out.
        drop(changed.wait_timeout_while(self.lock(), timeout, is_same));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        state.version = state.version.wrapping_add(1);
        drop(state);
        self.shared.1.notify_all();
    }

    /// A panic between two steps leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}
