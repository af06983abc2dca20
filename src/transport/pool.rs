//! Buffers to send that come back.
//!
//! ```text
//!              take              Part                      the last reader is done
//!  BufferPool ------> PooledBuffer ------> a transport ------------------+
//!      ^                                                                 |
//!      +-----------------------------------------------------------------+
//! ```

use core::fmt;

use alloc::boxed::Box;
use alloc::vec::Vec;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::deadline::Expired;
use super::{Deadline, ErrorKind, TransportError, Wait};

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
    came_back: Condvar,
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
                came_back: Condvar::new(),
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
                        let mut state = shared.state();
                        state.made = state.made.saturating_sub(1);
                        state.refused = state.refused.saturating_add(1);
                        drop(state);
                        // Who waits for this slot will not see it come back.
                        shared.came_back.notify_one();
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
                .came_back
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

    fn take_back(&self, slot: Box<Slot>) {
        let mut state = self.state();
        state.free.push(slot);
        let wake = state.waiting > 0;
        drop(state);
        if wake {
            self.came_back.notify_one();
        }
    }
}

/// The room of one buffer. It is boxed once, so that a transport can take it along
/// under one address.
pub(super) struct Slot {
    room: Vec<u8>,
    /// Where in the room the bytes start, so that they are aligned.
    start: usize,
    len: usize,
    /// None while the slot is in its pool, which would be kept by it otherwise.
    home: Option<Arc<Shared>>,
}

impl Slot {
    fn new(bytes: usize) -> Result<Box<Self>, PoolError> {
        let len = bytes
            .checked_add(BUFFER_ALIGN)
            .ok_or(PoolError::OutOfMemory)?;
        let mut room = Vec::new();
        room.try_reserve_exact(len)
            .map_err(|_| PoolError::OutOfMemory)?;
        // Written, so that the pages are there.
        room.resize(len, 0);
        let start = room.as_ptr().align_offset(BUFFER_ALIGN);
        Ok(Box::new(Self {
            room,
            start,
            len: 0,
            home: None,
        }))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        let end = self.start.saturating_add(self.len);
        self.room.get(self.start..end).unwrap_or_default()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let end = self.start.saturating_add(self.len);
        self.room.get_mut(self.start..end).unwrap_or_default()
    }
}

/// A buffer of a [`BufferPool`]: it goes back when dropped.
pub struct PooledBuffer {
    /// None only while it is taken apart.
    slot: Option<Box<Slot>>,
}

impl PooledBuffer {
    fn taken(mut slot: Box<Slot>, len: usize, home: &Arc<Shared>) -> Self {
        slot.len = len;
        slot.home = Some(home.clone());
        Self { slot: Some(slot) }
    }

    /// Shortens the buffer to its first `len` bytes; does nothing if it is not longer.
    pub fn truncate(&mut self, len: usize) {
        if let Some(slot) = &mut self.slot {
            slot.len = slot.len.min(len);
        }
    }

    /// Takes the slot out, to be put in again.
    #[cfg(feature = "zmq")]
    pub(super) fn into_slot(mut self) -> Option<Box<Slot>> {
        self.slot.take()
    }

    #[cfg(feature = "zmq")]
    pub(super) fn from_slot(slot: Box<Slot>) -> Self {
        Self { slot: Some(slot) }
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        self.slot.as_ref().map_or(&[], |slot| slot.bytes())
    }
}

impl AsMut<[u8]> for PooledBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.slot.as_mut().map_or(&mut [], |slot| slot.bytes_mut())
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        if let Some(mut slot) = self.slot.take()
            && let Some(home) = slot.home.take()
        {
            home.take_back(slot);
        }
    }
}

impl fmt::Debug for PooledBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.as_ref().len();
        f.debug_struct("PooledBuffer").field("len", &len).finish()
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

/// Why a pool gave no buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PoolError {
    /// There is no memory for a further slot.
    OutOfMemory,
    /// No buffer came back in time.
    TimedOut,
    /// More bytes than a slot holds.
    TooLarge {
        /// The bytes asked for.
        len: usize,
        /// The bytes in a slot.
        slot_bytes: usize,
    },
    /// All buffers are in use, and the call was not to wait.
    WouldBlock,
}

impl TransportError for PoolError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::OutOfMemory => ErrorKind::Other,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::TooLarge { .. } => ErrorKind::InvalidInput,
            Self::WouldBlock => ErrorKind::WouldBlock,
        }
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("no memory for a further buffer"),
            Self::TimedOut => f.write_str("timed out"),
            Self::TooLarge { len, slot_bytes } => {
                write!(f, "buffer of {len} bytes, a slot holds {slot_bytes}")
            }
            Self::WouldBlock => f.write_str("all buffers in use"),
        }
    }
}

impl core::error::Error for PoolError {}

impl From<Expired> for PoolError {
    fn from(expired: Expired) -> Self {
        match expired {
            Expired::TimedOut => Self::TimedOut,
            Expired::WouldBlock => Self::WouldBlock,
        }
    }
}

/// Where the buffers of a pool start: at a multiple of this, as frames in a bundle do.
pub const BUFFER_ALIGN: usize = 64;

#[cfg(test)]
mod tests {
    use core::time::Duration;

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
    fn nobody_waits_for_a_slot_that_could_not_be_made() {
        let pool = BufferPool::new(1, usize::MAX - BUFFER_ALIGN);
        // As if another call were making the one slot.
        pool.shared.state().made = 1;
        let other = pool.clone();
        let waits = thread::spawn(move || other.take(1, Wait::UpTo(LONG)).map(drop));
        while pool.shared.state().waiting == 0 {
            thread::yield_now();
        }
        pool.shared.state().made = 0;
        let start = Instant::now();
        assert_eq!(
            pool.take(1, Wait::Never).unwrap_err(),
            PoolError::OutOfMemory
        );
        assert_eq!(waits.join().unwrap(), Err(PoolError::OutOfMemory));
        assert!(start.elapsed() < LONG);
    }

    const LONG: Duration = Duration::from_secs(30);

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
