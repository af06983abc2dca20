//! Locks that the thread sanitizer can be told of, and that do not know of poison.
//!
//! The sanitizer sees what is compiled with it. The standard library is not, so that it does not see what
//! its locks order where two threads contend for one, and reports races that are none. Built with
//! `--cfg thread_sanitizer`, each lock says what `std`'s promises: what was done before a lock was let go of
//! is seen by who gets it next. Otherwise that is no code at all.

use core::fmt;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A value that one thread uses at a time.
///
/// A panic while it is locked leaves it as it is: under these locks only numbers and pointers are moved.
#[derive(Default)]
pub(super) struct Lock<T> {
    value: Mutex<T>,
    order: Order,
}

impl<T> Lock<T> {
    pub(super) const fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            order: Order::new(),
        }
    }

    pub(super) fn lock(&self) -> Guard<'_, T> {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        Guard {
            held: Held::new(&self.order),
            value,
        }
    }
}

/// The value of a lock, until it is dropped.
pub(super) struct Guard<'a, T> {
    // Dropped first, so that it is said while the lock is held.
    held: Held<'a>,
    value: MutexGuard<'a, T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// Tells those who wait that the value of a lock has changed.
#[derive(Debug, Default)]
pub(super) struct Signal {
    changed: Condvar,
}

impl Signal {
    /// Lets go of the lock until somebody tells, or `longest` is over, or for no reason.
    pub(super) fn wait<'a, T>(&self, guard: Guard<'a, T>, longest: Duration) -> Guard<'a, T> {
        let Guard { held, value } = guard;
        let order = held.order;
        drop(held);
        let woken = self.changed.wait_timeout(value, longest);
        let (value, _) = woken.unwrap_or_else(PoisonError::into_inner);
        Guard {
            held: Held::new(order),
            value,
        }
    }

    pub(super) fn tell_all(&self) {
        self.changed.notify_all();
    }
}

/// For as long as the lock is held.
struct Held<'a> {
    order: &'a Order,
}

impl<'a> Held<'a> {
    fn new(order: &'a Order) -> Self {
        order.follow();
        Self { order }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.order.lead();
    }
}

/// What comes before what.
#[derive(Debug, Default)]
struct Order {
    #[cfg(thread_sanitizer)]
    times: core::sync::atomic::AtomicUsize,
}

impl Order {
    const fn new() -> Self {
        Self {
            #[cfg(thread_sanitizer)]
            times: core::sync::atomic::AtomicUsize::new(0),
        }
    }

    /// What comes next sees what was done before each [`lead`](Self::lead) so far.
    #[inline]
    fn follow(&self) {
        #[cfg(thread_sanitizer)]
        self.times.load(core::sync::atomic::Ordering::Acquire);
    }

    #[inline]
    fn lead(&self) {
        #[cfg(thread_sanitizer)]
        self.times
            .fetch_add(1, core::sync::atomic::Ordering::Release);
    }
}

impl<T: fmt::Debug> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.value, f)
    }
}
