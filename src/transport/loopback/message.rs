//! What a received message is kept in.

use core::fmt;

use alloc::vec::Vec;

use crate::transport::{Buffer, Frames};

/// A message, received or to be received.
#[derive(Debug, Default)]
pub struct Message {
    frames: Vec<Frame>,
    /// Frames not in use: they keep their room, and own no buffer.
    spares: Vec<Frame>,
}

impl Message {
    /// Appends a copy of `bytes`, at `shift` past a multiple of 64 if given.
    pub(super) fn push_copy(&mut self, bytes: &[u8], shift: Option<usize>) {
        let mut frame = self.spares.pop().unwrap_or_default();
        frame.copied.clear();
        frame.start = 0;
        if let Some(shift) = shift {
            let room = bytes.len().saturating_add(shift).saturating_add(LINE);
            frame.copied.reserve(room);
            let gap = frame.copied.as_ptr().align_offset(LINE);
            frame.start = gap.min(LINE).saturating_add(shift);
            frame.copied.resize(frame.start, 0);
        }
        frame.copied.extend_from_slice(bytes);
        self.frames.push(frame);
    }

    /// Appends `buffer` itself.
    pub(super) fn push_owned(&mut self, buffer: Buffer) {
        let mut frame = self.spares.pop().unwrap_or_default();
        frame.owned = Some(buffer);
        self.frames.push(frame);
    }
}

impl Frames for Message {
    type Frame = Frame;

    fn frames(&self) -> &[Frame] {
        &self.frames
    }

    fn clear(&mut self) {
        // Backwards, so that the room of frame 0 serves frame 0 again.
        while let Some(mut frame) = self.frames.pop() {
            frame.owned = None;
            self.spares.push(frame);
        }
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
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        match &self.owned {
            Some(buffer) => buffer.as_ref(),
            None => self.copied.get(self.start..).unwrap_or_default(),
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
