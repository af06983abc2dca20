//! What a received message is kept in.

use core::fmt;

use alloc::vec::Vec;

use crate::transport::Frames;

/// A message, received or to be received.
///
/// Its frames are libzmq's own: nothing is copied on receiving. They are counted
/// by reference, so the message may outlive its socket and its context.
#[derive(Debug, Default)]
pub struct Message {
    pub(super) frames: Vec<Frame>,
}

impl Message {
    /// Returns the frames, to be kept or sent on: a frame is an owner that
    /// [`Part::owned`](crate::transport::Part::owned) takes.
    #[must_use]
    pub fn into_frames(self) -> Vec<Frame> {
        self.frames
    }
}

impl Frames for Message {
    type Frame = Frame;

    fn frames(&self) -> &[Frame] {
        &self.frames
    }

    fn clear(&mut self) {
        self.frames.clear();
    }
}

/// A message as a ROUTER socket receives it: the envelope apart.
#[derive(Debug, Default)]
pub struct Routed {
    pub(super) envelope: Frame,
    pub(super) message: Message,
}

impl Routed {
    /// Returns the identity of the peer that sent the message, which
    /// [`Socket::to`](super::Socket::to) takes to answer it.
    #[must_use]
    pub fn envelope(&self) -> &[u8] {
        self.envelope.as_ref()
    }

    /// Returns the envelope, a frame of its own, and the message without it.
    #[must_use]
    pub fn into_parts(self) -> (Frame, Message) {
        (self.envelope, self.message)
    }

    /// Returns the message without the envelope.
    #[must_use]
    pub fn into_message(self) -> Message {
        self.message
    }
}

impl Frames for Routed {
    type Frame = Frame;

    fn frames(&self) -> &[Frame] {
        self.message.frames()
    }

    fn clear(&mut self) {
        self.envelope = Frame::default();
        self.message.clear();
    }
}

/// One frame, as libzmq received it.
///
/// Up to 32 bytes lie inside the frame and move with it; more do not.
pub struct Frame {
    // Never lent out mutably: over inproc the bytes may be an `Arc<[u8]>` that
    // the sender still reads.
    pub(super) inner: ::zmq::Message,
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        &self.inner
    }
}

impl Default for Frame {
    fn default() -> Self {
        let inner = ::zmq::Message::new();
        Self { inner }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.inner.len();
        f.debug_struct("Frame").field("len", &len).finish()
    }
}
