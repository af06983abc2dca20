//! Buffers to send that come back.
//!
//! ```text
//!              take              Part                      the last reader is done
//!  BufferPool ------> PooledBuffer ------> a transport ------------------+
//!      ^                                                                 |
//!      +-----------------------------------------------------------------+
//! ```

mod buffer;
mod error;

use core::fmt;

use alloc::boxed::Box;
use alloc::vec::Vec;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Deadline, Wait};

pub use buffer::PooledBuffer;
pub(super) use buffer::Slot;
pub use error::PoolError;

/// A bounded number of buffers of one size, used again and again.
///
/// A buffer is taken, written, and sent along as an owned [`Part`](super::Part); it is
/// back when the last one to read it has done with it, from whatever thread that is.
/// Once each slot was used, taking, sending and coming back allocate nothing on our side.
///
/// Clones are handles to the same pool. A buffer that outlives all handles is freed
/// when it comes back.
///
/// # Examples
///
/// ```
/// use tensorwire::transport::{BufferPool, Part, TransportError, Wait};
///
/// let pool = BufferPool::new(2, 1 << 20); // two slots of 1 MiB
/// let mut tensor = pool.take(4096, Wait::Configured)?;
/// tensor.as_mut().fill(7);
/// assert!(tensor.as_ref().as_ptr().addr().is_multiple_of(64));
/// let part = Part::from(tensor); // ... send it ...
///
/// let other = pool.take(1, Wait::Never)?;
/// let refused = pool.take(1, Wait::Never).unwrap_err();
/// assert!(refused.kind().is_wait()); // both are in use
/// drop(part); // here the transport does that
/// assert_eq!(pool.stats().in_use(), 1);
/// # Ok::<(), tensorwire::transport::PoolError>(())
/// ```
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<Shared>,
}

/// What all handles and the buffers in use have in common.
struct Shared {
    slots: usize,
    slot_bytes: usize,
    state: Mutex<State>,
    /// Told of every slot that came back or could not be made.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The last one back is taken first, as it is in the cache. It has room for all
    /// that were made, so that coming back never allocates.
    #[expect(clippy::vec_box, reason = "a transport takes the box along")]
    free: Vec<Box<Slot>>,
    made: usize,
    /// How many calls wait for a slot.
    waiting: usize,
    taken: u64,
    waited: u64,
    refused: u64,
}

impl BufferPool {
    /// Makes a pool of up to `slots` buffers of `slot_bytes` each.
    ///
    /// Memory is asked for when a slot is first needed, and kept as long as the pool.
    /// Messages of different sizes are best served by a pool for each.
    #[must_use]
    pub fn new(slots: usize, slot_bytes: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                slots,
                slot_bytes,
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
        }
    }

    /// Takes a buffer of `len` bytes, waiting for one to come back if all are in use.
    ///
    /// The bytes start at a multiple of [`BUFFER_ALIGN`]. They are what was last
    /// written to the slot, and zeros in one never used: write all of them, or what
    /// an earlier message said goes along.
    ///
    /// [`Wait::Configured`] waits as long as it takes.
    ///
    /// # Errors
    ///
    /// [`PoolError::WouldBlock`] or [`PoolError::TimedOut`] when none came back within
    /// `wait`; [`PoolError::TooLarge`] for more than a slot holds, at once;
    /// [`PoolError::OutOfMemory`] when there is no memory for a further slot.
    pub fn take(&self, len: usize, wait: Wait) -> Result<PooledBuffer, PoolError> {
        let shared = &self.shared;
        if len > shared.slot_bytes {
            return Err(PoolError::TooLarge {
                len,
                slot_bytes: shared.slot_bytes,
            });
        }
        let mut state = shared.state();
        // As elsewhere, the clock is read only where there is time to wait.
        let mut deadline = None;
        loop {
            if let Some(slot) = state.free.pop() {
                state.taken = state.taken.saturating_add(1);
                drop(state);
                return Ok(PooledBuffer::taken(slot, len, shared));
            }
            if state.made < shared.slots {
                // Not under the lock: it may take long.
                state.made = state.made.saturating_add(1);
                drop(state);
                let slot = Slot::new(shared.slot_bytes);
                let slot = slot.and_then(|slot| shared.admit(slot));
                return match slot {
                    Ok(slot) => Ok(PooledBuffer::taken(slot, len, shared)),
                    Err(error) => {
                        shared.not_made();
                        Err(error)
                    }
                };
            }
            if deadline.is_none() && wait != Wait::Never {
                state.waited = state.waited.saturating_add(1);
            }
            let left = deadline
                .get_or_insert_with(|| Deadline::new(wait, None))
                .remaining();
            let left = match left {
                Ok(left) => left,
                Err(expired) => {
                    state.refused = state.refused.saturating_add(1);
                    return Err(expired.into());
                }
            };
            state.waiting = state.waiting.saturating_add(1);
            let (woken, _) = shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.waiting = state.waiting.saturating_sub(1);
        }
    }

    /// Returns how many bytes a buffer may have.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        self.shared.slot_bytes
    }

    /// Returns what the pool has done so far.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let state = self.shared.state();
        PoolStats {
            slots: self.shared.slots,
            made: state.made,
            free: state.free.len(),
            taken: state.taken,
            waited: state.waited,
            refused: state.refused,
        }
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("slot_bytes", &self.shared.slot_bytes)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code of others runs under the lock; a panic would leave it in order.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for a new slot to come back to.
    fn admit(&self, slot: Box<Slot>) -> Result<Box<Slot>, PoolError> {
        let mut state = self.state();
        let missing = state.made.saturating_sub(state.free.len());
        state
            .free
            .try_reserve(missing)
            .map_err(|_| PoolError::OutOfMemory)?;
        state.taken = state.taken.saturating_add(1);
        Ok(slot)
    }

    /// Notes that a slot could not be made, which another call may try then.
    fn not_made(&self) {
        let mut state = self.state();
        state.made = state.made.saturating_sub(1);
        state.refused = state.refused.saturating_add(1);
        self.wake_one(state);
    }

    fn take_back(&self, slot: Box<Slot>) {
        let mut state = self.state();
        state.free.push(slot);
        self.wake_one(state);
    }

    /// Wakes a call that waits, outside of the lock.
    fn wake_one(&self, state: MutexGuard<'_, State>) {
        let wake = state.waiting > 0;
        drop(state);
        if wake {
            self.changed.notify_one();
        }
    }
}

/// What a pool has done so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PoolStats {
    /// The most slots there may be.
    pub slots: usize,
    /// The slots made, each at its first need.
    pub made: usize,
    /// The slots of those that wait to be taken.
    pub free: usize,
    /// How often a buffer was taken.
    pub taken: u64,
    /// How many calls had to wait for one to come back.
    pub waited: u64,
    /// How many calls went without, for want of a slot, of time or of memory.
    pub refused: u64,
}

impl PoolStats {
    /// Returns how many buffers are out.
    #[must_use]
    pub const fn in_use(&self) -> usize {
        self.made.saturating_sub(self.free)
    }
}

/// Where the buffers of a pool start: at a multiple of this, as frames in a bundle do.
pub const BUFFER_ALIGN: usize = 64;

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use alloc::string::ToString;

    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::transport::{Buffer, Part};

    #[test]
    fn buffers_come_back_from_wherever_they_went() {
        let pool = BufferPool::new(1, 1000);
        let mut address = None;
        for len in [0, 1, 999, 1000] {
            let mut buffer = pool.take(len, Wait::Never).unwrap();
            assert_eq!(buffer.as_mut().len(), len);
            let here = buffer.as_ref().as_ptr();
            assert_eq!(here.addr() % BUFFER_ALIGN, 0);
            assert_eq!(*address.get_or_insert(here), here, "another slot");
            assert_eq!(pool.stats().in_use(), 1);
            match len {
                0 => drop(buffer),
                1 => drop(Part::from(buffer)),
                999 => thread::spawn(move || drop(Buffer::new(buffer)))
                    .join()
                    .unwrap(),
                _ => {
                    let buffer = Buffer::new(buffer).downcast::<Vec<u8>>().unwrap_err();
                    let mut buffer = buffer.downcast::<PooledBuffer>().unwrap();
                    buffer.truncate(5);
                    buffer.truncate(50);
                    assert_eq!(buffer.as_ref().len(), 5);
                }
            }
            assert_eq!(pool.stats().in_use(), 0);
        }
        let stats = pool.stats();
        assert_eq!((stats.made, stats.taken, stats.refused), (1, 4, 0));
    }

    /// (bytes in a slot, bytes to take, what it says)
    const REFUSED: &[(usize, usize, PoolError)] = &[
        (8, 8, PoolError::WouldBlock),
        (
            8,
            9,
            PoolError::TooLarge {
                len: 9,
                slot_bytes: 8,
            },
        ),
        (usize::MAX, 1, PoolError::OutOfMemory),
        (isize::MAX as usize, 1, PoolError::OutOfMemory),
    ];

    #[test]
    fn what_cannot_be_had_is_a_value() {
        for &(slot_bytes, len, error) in REFUSED {
            let pool = BufferPool::new(1, slot_bytes);
            let _kept = pool.take(0, Wait::Never);
            assert_eq!(pool.take(len, Wait::Never).unwrap_err(), error);
        }
        let pool = BufferPool::new(0, 8);
        assert_eq!(
            pool.take(1, Wait::UpTo(Duration::from_millis(5)))
                .unwrap_err(),
            PoolError::TimedOut
        );
        let stats = pool.stats();
        assert_eq!((stats.waited, stats.refused, stats.made), (1, 1, 0));
    }

    #[test]
    fn a_call_waits_until_one_comes_back_and_no_longer_than_it_may() {
        let pool = BufferPool::new(1, 8);
        let taken = pool.take(8, Wait::Never).unwrap();
        let start = Instant::now();
        let wait = Duration::from_millis(30);
        let error = pool.take(8, Wait::UpTo(wait)).unwrap_err();
        assert_eq!(error, PoolError::TimedOut);
        assert_eq!(error.to_string(), "no buffer came back in time");
        assert!(start.elapsed() >= wait);
        let other = pool.clone();
        let waits = thread::spawn(move || other.take(8, Wait::Configured).map(drop));
        while pool.stats().waited < 2 {
            thread::yield_now();
        }
        drop(taken);
        waits.join().unwrap().unwrap();
        assert_eq!(pool.stats().in_use(), 0);
    }

    #[test]
    fn a_slot_that_could_not_be_made_is_made_by_a_call_that_waits() {
        let pool = BufferPool::new(1, 8);
        // As if another call were making the only one.
        pool.shared.state().made = 1;
        let other = pool.clone();
        let waits = thread::spawn(move || other.take(8, Wait::Forever).map(drop));
        while pool.stats().waited == 0 {
            thread::yield_now();
        }
        pool.shared.not_made();
        waits.join().unwrap().unwrap();
        let stats = pool.stats();
        assert_eq!((stats.made, stats.taken, stats.refused), (1, 1, 1));
    }

    #[test]
    fn buffers_outlive_their_pool() {
        let pool = BufferPool::new(2, 8);
        let first = pool.take(8, Wait::Never).unwrap();
        let second = pool.take(8, Wait::Never).unwrap();
        let weak = Arc::downgrade(&pool.shared);
        drop(first);
        drop(pool);
        assert_eq!(second.as_ref(), [0; 8]);
        drop(second);
        assert!(weak.upgrade().is_none(), "freed with the last buffer");
    }
}
