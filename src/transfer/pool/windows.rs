//! Where peers may write now.

use core::fmt;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the peers that write into a pool look whether they may.
///
/// A pool tells it of each [`Landing`](super::Landing): while a window is open, a peer may
/// write into it, and nobody else touches those bytes; a peer that wants to write says
/// so here first, and says when it is done. What that looks like is between the data
/// plane and its peers: a [`WindowTable`] where they are threads of one process, words in
/// a segment of shared memory where they are processes.
///
/// Calls come from whichever thread opens, closes or drops a landing, and
/// [`close`](Self::close) also while the pool is locked: do not call the pool from here.
pub trait Windows: fmt::Debug + Send + Sync {
    /// Opens the window of `len` bytes at `offset`: peers may write there from now on.
    ///
    /// The pool opens no two windows over the same byte, and none over one that is
    /// not closed.
    fn open(&self, offset: usize, len: usize);

    /// Closes the window that was opened at `offset`, and tells whether no write is under
    /// way in it.
    ///
    /// No write begins in a closed window. `false`: one began before, and is
    /// not over; ask again later. `true`: none will touch these bytes until the window
    /// is opened again, and everything that was written is seen by this thread.
    /// Where no window is open, that is so at once.
    ///
    /// The pool believes it: after `true` the owner reads and writes the bytes, or
    /// somebody else gets them.
    fn close(&self, offset: usize) -> bool;
}

/// The windows of a pool whose peers are threads of the same process.
///
/// Clones are the same table. One write at a time goes into a window: two that overlap
/// would leave a mixture of both.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tensorwire::transfer::pool::{Pool, WindowError, WindowTable};
///
/// let table = WindowTable::new();
/// let pool = Pool::with_windows(4096, 512, Arc::new(table.clone()))?;
/// let landing = pool.allocate(1024)?.open();
///
/// let writing = table.begin_write(landing.offset(), 1000)?;
/// let busy = landing.close().unwrap_err();
/// drop(writing);
/// let slot = busy.into_landing().close()?;
///
/// let late = table.begin_write(slot.offset(), 1000);
/// assert_eq!(late.unwrap_err(), WindowError::Closed { offset: 0 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct WindowTable {
    /// By offset.
    windows: Arc<Mutex<BTreeMap<usize, Window>>>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    len: usize,
    /// It takes no further write.
    is_closed: bool,
    is_written: bool,
}

impl WindowTable {
    /// Makes a table without windows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to write `len` bytes at `offset`, which all lie in one open window.
    ///
    /// The window is not given back to its owner, and takes no other write, before
    /// the result is dropped.
    ///
    /// # Errors
    ///
    /// - [`Closed`](WindowError::Closed) if no window is open at `offset`.
    /// - [`PastEnd`](WindowError::PastEnd) if it ends before the write does.
    /// - [`Busy`](WindowError::Busy) if another write into it is under way.
    pub fn begin_write(&self, offset: usize, len: usize) -> Result<Writing, WindowError> {
        let mut windows = self.lock();
        let before = windows.range_mut(..=offset).next_back();
        let closed = WindowError::Closed { offset };
        let (&start, window) = before.ok_or(closed)?;
        // `start <= offset`.
        let room = window.len.checked_sub(offset.abs_diff(start));
        let room = room.filter(|&room| room > 0 && !window.is_closed);
        let room = room.ok_or(closed)?;
        if len > room {
            return Err(WindowError::PastEnd { len, room });
        }
        if window.is_written {
            return Err(WindowError::Busy { offset: start });
        }
        window.is_written = true;
        let window = (start, window.len);
        drop(windows);
        Ok(Writing {
            table: self.clone(),
            window,
        })
    }

    /// Returns how many windows there are that are not yet closed for good.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether all windows are closed for good.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn end_write(&self, start: usize) {
        if let Some(window) = self.lock().get_mut(&start) {
            window.is_written = false;
        }
    }

    /// A panic between two steps leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Windows for WindowTable {
    fn open(&self, offset: usize, len: usize) {
        let mut windows = self.lock();
        let window = windows.entry(offset).or_insert(Window {
            len,
            is_closed: false,
            is_written: false,
        });
        window.len = len;
        window.is_closed = false;
    }

    fn close(&self, offset: usize) -> bool {
        let mut windows = self.lock();
        let Some(window) = windows.get_mut(&offset) else {
            return true;
        };
        if window.is_written {
            window.is_closed = true;
            return false;
        }
        windows.remove(&offset);
        true
    }
}

impl fmt::Debug for WindowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.lock().iter()).finish()
    }
}

/// A write that is under way. Dropping it says that it is over.
///
/// One that is leaked is under way for ever, and its window never comes back.
#[derive(Debug)]
#[must_use = "the write is over when this is dropped"]
pub struct Writing {
    table: WindowTable,
    /// Offset and length of the window.
    window: (usize, usize),
}

impl Writing {
    /// Returns the offset of the window in the pool, in bytes.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.window.0
    }

    /// Returns the length of the window in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.window.1
    }

    /// Returns whether the window has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether `len` bytes at `offset` of the pool lie in the window of this write,
    /// which is one of `table`.
    #[must_use]
    pub fn covers(&self, table: &WindowTable, offset: usize, len: usize) -> bool {
        let (start, room) = self.window;
        let skipped = offset.checked_sub(start);
        let end = skipped.and_then(|skipped| skipped.checked_add(len));
        Arc::ptr_eq(&self.table.windows, &table.windows) && end.is_some_and(|end| end <= room)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.table.end_write(self.window.0);
    }
}

/// A write may not begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum WindowError {
    /// Another write into the window is under way.
    Busy {
        /// The offset of the window in the pool.
        offset: usize,
    },
    /// No window is open there, or none any more.
    Closed {
        /// Where the write was to begin in the pool.
        offset: usize,
    },
    /// The window ends before the write does.
    PastEnd {
        /// The length of the write in bytes.
        len: usize,
        /// How many bytes of the window are left from where it was to begin.
        room: usize,
    },
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Busy { offset } => {
                write!(
                    f,
                    "another write into the window at offset {offset} is under way"
                )
            }
            Self::Closed { offset } => write!(f, "no window is open at offset {offset}"),
            Self::PastEnd { len, room } => {
                write!(
                    f,
                    "write of {len} bytes where {room} are left of the window"
                )
            }
        }
    }
}

impl core::error::Error for WindowError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(windows: &[(usize, usize)]) -> WindowTable {
        let table = WindowTable::new();
        for &(offset, len) in windows {
            table.open(offset, len);
        }
        table
    }

    #[test]
    fn a_write_begins_inside_one_open_window_alone() {
        let table = table(&[(512, 512), (1024, 1024)]);
        for (offset, len, expected) in [
            (512, 512, Ok((512, 512))),
            (512, 0, Ok((512, 512))),
            (1023, 1, Ok((512, 512))),
            (1024, 0, Ok((1024, 1024))),
            (1500, 548, Ok((1024, 1024))),
            (0, 512, Err(WindowError::Closed { offset: 0 })),
            (511, 1, Err(WindowError::Closed { offset: 511 })),
            (511, 0, Err(WindowError::Closed { offset: 511 })),
            (2048, 0, Err(WindowError::Closed { offset: 2048 })),
            (
                usize::MAX,
                1,
                Err(WindowError::Closed { offset: usize::MAX }),
            ),
            (1023, 2, Err(WindowError::PastEnd { len: 2, room: 1 })),
            (
                512,
                usize::MAX,
                Err(WindowError::PastEnd {
                    len: usize::MAX,
                    room: 512,
                }),
            ),
        ] {
            let writing = table.begin_write(offset, len);
            let found = writing.map(|writing| (writing.offset(), writing.len()));
            assert_eq!(found, expected, "{len} bytes at {offset}");
        }
    }

    #[test]
    fn one_write_at_a_time_goes_into_a_window() {
        let table = table(&[(0, 512), (512, 512)]);
        let first = table.begin_write(100, 10).unwrap();
        let busy = WindowError::Busy { offset: 0 };
        assert_eq!(table.begin_write(200, 10).unwrap_err(), busy);
        let other = table.begin_write(512, 512).unwrap();
        drop(first);
        let _again = table.begin_write(200, 10).unwrap();
        drop(other);
    }

    #[test]
    fn a_window_is_closed_for_good_when_its_write_is_over() {
        let table = table(&[(0, 512)]);
        let writing = table.begin_write(0, 512).unwrap();
        assert!(!table.close(0));
        assert!(!table.close(0));
        let closed = WindowError::Closed { offset: 0 };
        assert_eq!(table.begin_write(0, 1).unwrap_err(), closed);
        drop(writing);
        assert_eq!(table.begin_write(0, 1).unwrap_err(), closed);
        assert_eq!(table.len(), 1);
        assert!(table.close(0));
        assert!(table.is_empty());
        assert!(table.close(0) && table.close(77));
        assert_eq!(table.begin_write(0, 1).unwrap_err(), closed);
        table.open(0, 512);
        let writing = table.begin_write(0, 1).unwrap();
        assert!(writing.covers(&table, 0, 512) && !writing.covers(&table, 1, 512));
        assert!(!writing.covers(&WindowTable::new(), 0, 1));
        assert!(!writing.covers(&table, 1, usize::MAX));
    }
}
