//! Windows: which parts of a pool may be written to, and who is writing.
//!
//! A window stands at the first block of what it covers. Its state is one word:
//!
//! ```text
//!         open(generation)                 a writer's compare-and-swap
//!  0 ----------------------> generation --------------------------------> writer | 1 << 63
//!  ^                          |      ^                                        |
//!  | the owner's              |      +----------------------------------------+
//!  | compare-and-swap         |                    the writer is through
//!  +--------------------------+
//! ```
//!
//! The owner's `close` first sets the length to 0, so that no other writer enters, and
//! then takes the state to 0, which fails while a writer stands there. A writer whose
//! plane is dead does not count: not for the owner, and not for the next writer, which
//! takes its place. What the generation was is lost with it; that one leaves another
//! number, which no owner gives.
//!
//! What the owner relies on is its own book; the words only tell the others.

use core::sync::atomic::Ordering;

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::file::Folder;
use super::mapping::{Mapping, Words};
use super::name::Writer;
use crate::convert::to_u64;
use crate::transfer::pool::Windows;

/// The state of a window that is closed.
const CLOSED: u64 = 0;

/// How often a state that changes all the time is looked at before `close` gives up
/// for now. An honest one changes once: a writer leaves, and no other enters.
const LOOKS: usize = 4;

/// The owner's side of the windows of one pool.
#[derive(Debug)]
pub(super) struct OwnWindows {
    mapping: Arc<Mapping>,
    folder: Folder,
    book: Mutex<Book>,
}

/// What the owner goes by.
#[derive(Debug)]
struct Book {
    /// By block: how long the window is that is open there, in bytes; 0 is none.
    open: Vec<usize>,
    /// Of the window that was opened last.
    generation: u64,
}

impl OwnWindows {
    /// All windows of a segment that was just made are closed.
    pub(super) fn new(mapping: Arc<Mapping>, folder: Folder) -> Self {
        let open = vec![0; mapping.layout().windows()];
        Self {
            mapping,
            folder,
            book: Mutex::new(Book {
                open,
                generation: 0,
            }),
        }
    }

    /// Tells whether the owner itself holds window `index` open, with `len` bytes from byte
    /// `offset` of the pool on in it.
    pub(super) fn has(&self, index: usize, offset: usize, len: usize) -> bool {
        let room = self.book().open.get(index).copied().unwrap_or(0);
        let start = self.mapping.layout().start_of(index);
        let skipped = start.and_then(|start| offset.checked_sub(start));
        let end = skipped.and_then(|skipped| skipped.checked_add(len));
        room > 0 && end.is_some_and(|end| end <= room)
    }

    /// Returns the window that stands at byte `offset` of the pool, and its words.
    fn at(&self, offset: usize) -> Option<(usize, Words<'_>)> {
        let layout = self.mapping.layout();
        let index = layout.window_of(offset);
        if layout.start_of(index) != Some(offset) {
            return None;
        }
        Some((index, self.mapping.window(index)?))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing in here panics half way.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Windows for OwnWindows {
    fn open(&self, offset: usize, len: usize) {
        let mut book = self.book();
        let book = &mut *book;
        let (Some((index, words)), Ok(word)) = (self.at(offset), u64::try_from(len)) else {
            return;
        };
        let Some(open) = book.open.get_mut(index) else {
            return;
        };
        *open = len;
        // It does not come round in 2^63 windows.
        book.generation = book.generation.wrapping_add(1) & !Writer::BIT;
        words.len.store(word, Ordering::Relaxed);
        words.state.store(book.generation, Ordering::Release);
    }

    fn close(&self, offset: usize) -> bool {
        let mut book = self.book();
        let Some((index, words)) = self.at(offset) else {
            return true;
        };
        let Some(open) = book.open.get_mut(index).filter(|open| **open > 0) else {
            return true;
        };
        // Whoever leaves now lets nobody else in.
        words.len.store(0, Ordering::Relaxed);
        let mut state = words.state.load(Ordering::Acquire);
        for _ in 0..LOOKS {
            // Anything else is no writer: open, closed, or garbage.
            if Writer::from_word(state).is_some_and(|writer| self.folder.lives(writer)) {
                return false;
            }
            let swap =
                words
                    .state
                    .compare_exchange(state, CLOSED, Ordering::AcqRel, Ordering::Acquire);
            match swap {
                Ok(_) => {
                    *open = 0;
                    return true;
                }
                Err(found) => state = found,
            }
        }
        false
    }
}

/// Why a writer may not write there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refused {
    /// Another writer is there.
    Busy,
    /// No window is open there, or not any more.
    Closed,
    /// The window ends before the bytes do.
    TooShort {
        /// Bytes from the address to the end of the window.
        room: u64,
    },
}

/// A window that a writer has entered.
#[derive(Debug)]
struct Entered {
    mapping: Arc<Mapping>,
    index: usize,
    generation: u64,
    len: u64,
}

/// The windows that one push has entered. Dropping it leaves them.
#[derive(Debug)]
pub(super) struct Writing {
    writer: Writer,
    entered: Vec<Entered>,
}

impl Writing {
    /// Begins a push.
    pub(super) const fn new(writer: Writer) -> Self {
        Self {
            writer,
            entered: Vec::new(),
        }
    }

    /// Enters the window that holds `len` bytes from byte `offset` of the pool on, and
    /// returns its index. One that this push has entered before it stays in. `folder` knows
    /// which writers live.
    ///
    /// # Errors
    ///
    /// As [`Refused`] says; then the windows are as they were.
    pub(super) fn enter(
        &mut self,
        folder: &Folder,
        mapping: &Arc<Mapping>,
        offset: usize,
        len: usize,
    ) -> Result<usize, Refused> {
        let layout = mapping.layout();
        let block = layout.window_of(offset);
        // What is handed out of a pool is as many blocks as some power of two, at a
        // multiple of that number: so few windows can cover a byte.
        for bits in 0..usize::BITS {
            let index = block >> bits << bits;
            let (Some(start), Some(words)) = (layout.start_of(index), mapping.window(index)) else {
                break;
            };
            let state = words.state.load(Ordering::Acquire);
            let window_len = words.len.load(Ordering::Relaxed);
            let end = usize::try_from(window_len).ok();
            let end = end.and_then(|len| start.checked_add(len));
            // A window that says that it reaches past the pool is none.
            let end = end.filter(|&end| state != CLOSED && end <= layout.pool_len());
            let room = end.and_then(|end| end.checked_sub(offset));
            if let Some(room) = room.filter(|&room| room > 0) {
                if !self.is_in(mapping, index) {
                    let writer = Writer::from_word(state);
                    if writer.is_some_and(|writer| folder.lives(writer)) {
                        return Err(Refused::Busy);
                    }
                    self.enter_window(mapping, index, words, (state, window_len))?;
                }
                if len > room {
                    let room = to_u64(room);
                    return Err(Refused::TooShort { room });
                }
                return Ok(index);
            }
            if index == 0 {
                break;
            }
        }
        Err(Refused::Closed)
    }

    /// Leaves the windows. `false` if an owner gave one of them up meanwhile.
    #[must_use]
    pub(super) fn finish(mut self) -> bool {
        let mut wanted = true;
        // All of them are left, whatever the first one says.
        while let Some(entered) = self.entered.pop() {
            wanted &= self.leave(&entered);
        }
        wanted
    }

    fn is_in(&self, mapping: &Arc<Mapping>, index: usize) -> bool {
        let is_it =
            |entered: &Entered| entered.index == index && Arc::ptr_eq(&entered.mapping, mapping);
        self.entered.iter().any(is_it)
    }

    /// Enters a window in which `state` is no writer, or a dead one.
    fn enter_window(
        &mut self,
        mapping: &Arc<Mapping>,
        index: usize,
        words: Words<'_>,
        (state, len): (u64, u64),
    ) -> Result<(), Refused> {
        let swap = words.state.compare_exchange(
            state,
            self.writer.word(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if let Err(found) = swap {
            // Where a dead writer stood, another was faster, and may have left by now.
            let is_busy = [found, state]
                .iter()
                .any(|&word| Writer::from_word(word).is_some());
            return Err(if is_busy {
                Refused::Busy
            } else {
                Refused::Closed
            });
        }
        let entered = Entered {
            mapping: Arc::clone(mapping),
            index,
            generation: match Writer::from_word(state) {
                Some(_) => self.writer.as_generation(),
                None => state,
            },
            len,
        };
        // The owner may have begun to close it between the two looks.
        if words.len.load(Ordering::Acquire) != len {
            self.leave(&entered);
            return Err(Refused::Closed);
        }
        self.entered.push(entered);
        Ok(())
    }

    /// Leaves a window. `false` if its owner gave it up meanwhile.
    fn leave(&self, entered: &Entered) -> bool {
        let Some(words) = entered.mapping.window(entered.index) else {
            return false;
        };
        let wanted = words.len.load(Ordering::Acquire) == entered.len;
        let next = if wanted { entered.generation } else { CLOSED };
        let swap = words.state.compare_exchange(
            self.writer.word(),
            next,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        wanted && swap.is_ok()
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        while let Some(entered) = self.entered.pop() {
            self.leave(&entered);
        }
    }
}
