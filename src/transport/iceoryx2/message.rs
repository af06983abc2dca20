//! What a received message is kept in.
#![allow(unsafe_code)]

use core::fmt;
use core::mem;

use alloc::sync::Arc;
use alloc::vec::Vec;

use ::iceoryx2::prelude::ipc_threadsafe;
use ::iceoryx2::sample::Sample;

use super::METADATA_COPY;
use super::channel::BLOCK;
use super::recv::Inlet;
use crate::bundle::Index;
use crate::transport::body::{Frame, Slices};
use crate::transport::{Frames, Receipt};

/// A message, received or to be received.
///
/// Its frames lie in shared memory, where the sender wrote them, but for the first one
/// if that has at most [`METADATA_COPY`] bytes, which is a private copy. While it is kept, its
/// sender lacks one place in its pool; it may outlive its receiver, and its sender.
#[derive(Default)]
pub struct Message {
    slices: Slices,
    first: Vec<u8>,
    held: Option<Held>,
    receipt: Receipt,
}

impl Message {
    /// Takes the frames that `index` finds in `sample`, whose bytes are `body`.
    ///
    /// # Safety
    ///
    /// `body` are bytes of `sample`.
    pub(super) unsafe fn fill(
        &mut self,
        index: &Index<'_>,
        body: &[u8],
        sample: Sample<ipc_threadsafe::Service, [[u8; BLOCK]], ()>,
        inlet: Arc<Inlet>,
        grown: usize,
    ) {
        self.clear();
        let room = (self.slices.capacity(), self.first.capacity());
        let mut ranges = index.ranges();
        if let Some(range) = index.range(0)
            && range.len() <= METADATA_COPY
        {
            self.first
                .extend_from_slice(body.get(range).unwrap_or_default());
            // SAFETY: `Slices::push` asks two things.
            // - The bytes stay, unchanged: they are the heap memory of a vector that
            //   is not touched before `clear` has cleared the slices.
            // - The slices are lent by `frames` alone, which borrows the message.
            unsafe { self.slices.push(&self.first) };
            ranges.next();
        }
        for range in ranges {
            let bytes = body.get(range).unwrap_or_default();
            // SAFETY: `Slices::push` asks two things.
            // - The bytes stay where they are, mapped: they are a sample's, which is
            //   kept in `held` until `clear` has cleared the slices. That nobody
            //   changes them is what the sender, a process of the same user, is trusted
            //   for: see the module's docs.
            // - The slices are lent by `frames` alone, which borrows the message.
            unsafe { self.slices.push(bytes) };
        }
        let copied = self.first.len();
        let grown = grown
            .saturating_add(usize::from(self.slices.capacity() != room.0))
            .saturating_add(usize::from(self.first.capacity() != room.1));
        self.receipt = Receipt::new()
            .with_copied_bytes(copied)
            .with_allocations(grown)
            .with_retained_bytes(body.len().saturating_add(self.first.capacity()));
        self.held = Some(Held {
            _sample: sample,
            _inlet: inlet,
        });
    }
}

impl Frames for Message {
    type Frame = Frame;

    fn frames(&self) -> &[Frame] {
        self.slices.frames()
    }

    fn clear(&mut self) {
        self.slices.clear();
        self.first.clear();
        self.receipt = Receipt::new();
        drop(mem::take(&mut self.held));
    }

    fn receipt(&self) -> Option<Receipt> {
        self.held.as_ref().map(|_| self.receipt)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("frames", &self.frames())
            .finish_non_exhaustive()
    }
}

/// The place in a sender's pool, taken. The fields are dropped in this order.
struct Held {
    /// Its drop frees the place.
    _sample: Sample<ipc_threadsafe::Service, [[u8; BLOCK]], ()>,
    /// While the subscriber lives its samples are not taken back from it.
    _inlet: Arc<Inlet>,
}

// SAFETY: `Sync` asks that a shared reference may be used from several threads: it gives
// access to nothing, as the fields are private and used by no code but their drop.
unsafe impl Sync for Held {}
