//! What a received message is kept in.

use core::fmt;

use alloc::vec::Vec;

use crate::transport::{Buffer, Frames, Receipt};

/// A message, received or to be received.
#[derive(Debug, Default)]
pub struct Message {
    frames: Vec<Frame>,
    /// Frames not in use: they keep their room, and own no buffer.
    spares: Vec<Frame>,
    /// How often room was made for the frames in use.
    allocations: usize,
}

impl Message {
    /// Appends a copy of `bytes`, at `shift` past a multiple of 64 if given.
    pub(super) fn push_copy(&mut self, bytes: &[u8], shift: Option<usize>) {
        self.push_made(bytes.len(), shift, |frame| frame.extend_from_slice(bytes));
    }

    /// Appends a frame of `len` zeros, to be written, placed as by [`Message::push_copy`].
    pub(super) fn push_place(&mut self, len: usize, shift: Option<usize>) {
        self.push_made(len, shift, |frame| {
            frame.resize(frame.len().saturating_add(len), 0);
        });
    }

    /// Appends a frame of `len` bytes, which `fill` appends to the vector.
    fn push_made(&mut self, len: usize, shift: Option<usize>, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut frame = self.spares.pop().unwrap_or_default();
        let room = frame.copied.capacity();
        frame.copied.clear();
        frame.start = 0;
        if let Some(shift) = shift {
            let room = len.saturating_add(shift).saturating_add(LINE);
            frame.copied.reserve(room);
            let gap = frame.copied.as_ptr().align_offset(LINE);
            frame.start = gap.min(LINE).saturating_add(shift);
            frame.copied.resize(frame.start, 0);
        }
        fill(&mut frame.copied);
        self.count(frame.copied.capacity() != room);
        self.push(frame);
    }

    /// Returns the places of the frames, which were all made by [`Message::push_place`].
    pub(super) fn places_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let frames = self.frames.iter_mut();
        frames.map(|frame| frame.copied.get_mut(frame.start..).unwrap_or_default())
    }

    /// Appends `buffer` itself.
    pub(super) fn push_owned(&mut self, buffer: Buffer) {
        let mut frame = self.spares.pop().unwrap_or_default();
        frame.owned = Some(buffer);
        self.push(frame);
    }

    /// Takes the last `bytes` away.
    pub(super) fn truncate_bytes(&mut self, bytes: usize) {
        let mut left = bytes;
        for frame in self.frames.iter_mut().rev() {
            let cut = left.min(frame.as_ref().len());
            frame.cut = cut;
            left = left.saturating_sub(cut);
        }
    }

    /// Takes the last `frames` away.
    pub(super) fn truncate_frames(&mut self, frames: usize) {
        for _ in 0..frames.min(self.frames.len()) {
            self.pop();
        }
    }

    fn push(&mut self, mut frame: Frame) {
        let room = self.frames.capacity();
        frame.cut = 0;
        self.frames.push(frame);
        self.count(self.frames.capacity() != room);
    }

    /// Lets go of the last frame, if there is one.
    fn pop(&mut self) -> bool {
        let Some(mut frame) = self.frames.pop() else {
            return false;
        };
        frame.owned = None;
        self.spares.push(frame);
        true
    }

    fn count(&mut self, grown: bool) {
        self.allocations = self.allocations.saturating_add(usize::from(grown));
    }
}

impl Frames for Message {
    type Frame = Frame;

    fn frames(&self) -> &[Frame] {
        &self.frames
    }

    fn clear(&mut self) {
        // Backwards, so that the room of frame 0 serves frame 0 again.
        while self.pop() {}
        self.allocations = 0;
    }

    /// Returns what was copied for this message, when it was sent, and how often room
    /// was made for it. What is retained is the room of its frames, and of those that
    /// it has had before.
    fn receipt(&self) -> Option<Receipt> {
        let sum = |sum: usize, bytes: usize| sum.saturating_add(bytes);
        let copied = self.frames.iter().filter(|frame| frame.owned.is_none());
        let copied = copied.map(|frame| frame.as_ref().len()).fold(0, sum);
        let owned = self.frames.iter().filter_map(|frame| frame.owned.as_ref());
        let owned = owned.map(|buffer| buffer.as_ref().len()).fold(0, sum);
        let frames = self.frames.iter().chain(&self.spares);
        let retained = frames.map(|frame| frame.copied.capacity()).fold(owned, sum);
        let receipt = Receipt::new()
            .with_copied_bytes(copied)
            .with_allocations(self.allocations)
            .with_retained_bytes(retained);
        Some(receipt)
    }
}

/// One frame of a [`Message`].
#[derive(Default)]
pub struct Frame {
    /// The buffer that was sent, if it was sent owned.
    owned: Option<Buffer>,
    /// The bytes from `start` on, if they were copied.
    copied: Vec<u8>,
    start: usize,
    /// How many bytes at the end are no longer part of it.
    cut: usize,
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        let whole = match &self.owned {
            Some(buffer) => buffer.as_ref(),
            None => self.copied.get(self.start..).unwrap_or_default(),
        };
        match self.cut {
            0 => whole,
            cut => whole
                .get(..whole.len().saturating_sub(cut))
                .unwrap_or_default(),
        }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.as_ref().len();
        f.debug_struct("Frame").field("len", &len).finish()
    }
}

/// A cache line; shifts are counted from its start.
const LINE: usize = 64;
