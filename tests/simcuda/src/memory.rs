//! Memory of both sides, and who used which bytes of it when.

use std::alloc::{Layout, alloc, dealloc};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use crate::clock::{Clock, Moment};

/// What fresh memory holds.
pub(crate) const FRESH: u8 = 0xcd;
/// What the target of a copy to the host holds until the copy has run.
pub(crate) const PENDING: u8 = 0xa5;

/// Bytes that are given back when the last one who may touch them is gone.
#[derive(Debug)]
pub(crate) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it is memory; who reads and writes it when is what this driver is there to judge.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// `None` where there is no such memory.
    pub(crate) fn new(len: usize, align: usize, poisoned: bool) -> Option<Self> {
        let layout = Layout::from_size_align(len, align).ok()?;
        // SAFETY: the caller asked for more than no bytes.
        let start = NonNull::new(unsafe { alloc(layout) })?;
        if poisoned {
            // SAFETY: `len` bytes that are nobody else's yet.
            unsafe { start.write_bytes(FRESH, len) };
        }
        Some(Self { start, layout })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated so, once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Memory of a device. It stays known after it was freed, and its address is not used again.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    pub(crate) len: usize,
    pub(crate) context: usize,
    /// Gone once it was freed; and without copies there are no bytes at all.
    pub(crate) block: Option<Arc<Block>>,
    pub(crate) freed: bool,
    /// Its free was made to fail.
    pub(crate) excused: bool,
    pub(crate) uses: Uses,
}

/// Pinned memory of the host.
#[derive(Debug)]
pub(crate) struct HostMemory {
    pub(crate) len: usize,
    /// `None` for memory that is registered.
    pub(crate) block: Option<Arc<Block>>,
    pub(crate) excused: bool,
    pub(crate) copies: Arc<Copies>,
    pub(crate) uses: Uses,
}

/// The copies from and to some memory of the host.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// The memory is gone: copies leave it alone.
    pub(crate) cancelled: AtomicBool,
    pub(crate) running: AtomicUsize,
}

/// Who used which bytes when, as far as somebody may not know of it.
#[derive(Debug, Default)]
pub(crate) struct Uses(Vec<Use>);

#[derive(Debug)]
struct Use {
    bytes: Range<usize>,
    moment: Moment,
    writes: bool,
    what: &'static str,
}

impl Uses {
    /// Uses `bytes`, for one who knows of what `clock` does; the earlier use that this may collide with.
    pub(crate) fn touch(
        &mut self,
        bytes: Range<usize>,
        moment: Moment,
        writes: bool,
        what: &'static str,
        clock: &Clock,
        host: &Clock,
    ) -> Option<&'static str> {
        // Whatever comes next on any stream comes after what the host knows of.
        self.0.retain(|earlier| !host.knows(earlier.moment));
        let collision = self.0.iter().find(|earlier| {
            (writes || earlier.writes)
                && earlier.bytes.start < bytes.end
                && bytes.start < earlier.bytes.end
                && !clock.knows(earlier.moment)
        });
        let collision = collision.map(|earlier| earlier.what);
        // What this comes after, and what covers no more than this, need not be kept.
        self.0.retain(|earlier| {
            !(clock.knows(earlier.moment)
                && (writes || !earlier.writes)
                && bytes.start <= earlier.bytes.start
                && earlier.bytes.end <= bytes.end)
        });
        self.0.push(Use {
            bytes,
            moment,
            writes,
            what,
        });
        collision
    }

    /// The first use that `clock` does not know to be over.
    pub(crate) fn unknown(&self, clock: &Clock) -> Option<&'static str> {
        let open = self.0.iter().find(|earlier| !clock.knows(earlier.moment));
        open.map(|earlier| earlier.what)
    }
}

/// A number for the bytes, which does not depend on where they are cut, so long as cuts are at multiples of eight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Hash(u64);

impl Hash {
    pub(crate) const fn new() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        for byte in tail {
            self.word(u64::from(*byte));
        }
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }
}
