//! What a received message is kept in.

use core::fmt;

use alloc::vec::Vec;

use crate::transport::{Frames, Receipt};

/// A message, received or to be received.
///
/// Its frames are libzmq's own: nothing is copied on receiving. They are counted
/// by reference, so the message may outlive its socket and its context. What a small
/// one keeps in memory is told by [`Frames::receipt`]; see [the module](super) on
/// what frames hold on to.
#[derive(Debug, Default)]
pub struct Message {
    frames: Vec<Frame>,
    /// Room of frames that were copied out earlier, to be used again.
    spare: Vec<Vec<u8>>,
    /// How many of the frames are copies now.
    copies: usize,
    copied_bytes: usize,
    allocations: usize,
    /// Whether frames may be slices of what libzmq read off a connection.
    batched: bool,
}

impl Message {
    /// Returns the frames, to be kept or sent on: a frame is an owner that
    /// [`Part::owned`](crate::transport::Part::owned) takes.
    #[must_use]
    pub fn into_frames(self) -> Vec<Frame> {
        self.frames
    }

    /// Copies frames of fewer than `below` bytes out of what libzmq keeps for them, and
    /// lets go of that.
    ///
    /// For messages that are kept: a frame of 64 bytes that came over ipc or tcp may be
    /// all that keeps 18 KB in memory. The copies lie in room of the message, which is
    /// used again; their bytes count as copied in the receipt. Frames of up to
    /// [`INLINE_BYTES`] hold on to nothing and stay as they are.
    ///
    /// # Examples
    ///
    /// ```
    /// use tensorwire::transport::{Frames, RecvFrames, SendFrames, zmq};
    ///
    /// let context = zmq::Context::new();
    /// let mut pull = context.pull().bind("tcp://127.0.0.1:*")?;
    /// let mut push = context.push().connect(pull.endpoint())?;
    /// push.send(&[&[7; 64], &[7; 100_000]])?;
    ///
    /// let mut message = pull.recv()?;
    /// message.detach(4096);
    /// let receipt = message.receipt().ok_or(zmq::Error::WouldBlock)?;
    /// assert_eq!(receipt.copied_bytes(), 64);
    /// assert!(receipt.retained_bytes() < 100_000 + 256);
    /// # Ok::<(), zmq::Error>(())
    /// ```
    pub fn detach(&mut self, below: usize) {
        for frame in &mut self.frames {
            let Content::Received(inner) = &frame.content else {
                continue;
            };
            if inner.len() <= INLINE_BYTES || inner.len() >= below {
                continue;
            }
            let mut copy = self.spare.pop().unwrap_or_default();
            let room = copy.capacity();
            copy.clear();
            copy.extend_from_slice(inner);
            if copy.capacity() != room {
                self.allocations = self.allocations.saturating_add(1);
            }
            self.copies = self.copies.saturating_add(1);
            self.copied_bytes = self.copied_bytes.saturating_add(copy.len());
            frame.content = Content::Copied(copy);
        }
        // So that they have a place to go back to, without asking for memory then.
        let room = self.spare.capacity();
        self.spare.reserve(self.copies);
        if self.spare.capacity() != room {
            self.allocations = self.allocations.saturating_add(1);
        }
    }

    /// Empties the message for one that is received; `batched` says whether its frames
    /// may be slices of what libzmq read.
    #[inline]
    pub(super) fn start(&mut self, batched: bool) {
        self.clear();
        self.batched = batched;
    }

    #[inline]
    pub(super) fn push(&mut self, received: ::zmq::Message) {
        if self.frames.len() == self.frames.capacity() {
            self.allocations = self.allocations.saturating_add(1);
        }
        self.frames.push(Frame::received(received));
    }

    /// Counts what the frames keep in memory, at most.
    fn retained_bytes(&self) -> usize {
        // Where the next frame lies if it is in the same batch as the last one.
        let mut follows = None;
        self.frames.iter().fold(0, |sum: usize, frame| {
            let bytes = frame.as_ref();
            let start = bytes.as_ptr().addr();
            let head = if bytes.len() > MAX_SHORT_FRAME {
                LONG_HEAD
            } else {
                SHORT_HEAD
            };
            let expected = follows.map(|end: usize| end.saturating_add(head));
            let kept = match &frame.content {
                Content::Copied(copy) => copy.capacity(),
                Content::Received(_) if bytes.len() <= INLINE_BYTES => {
                    // Copied out of the batch, in which the others go on behind it.
                    follows = expected.map(|start| start.saturating_add(bytes.len()));
                    return sum;
                }
                Content::Received(_) if self.batched && bytes.len() < BATCH_BYTES => {
                    follows = Some(start.saturating_add(bytes.len()));
                    if expected == Some(start) {
                        return sum;
                    }
                    return sum.saturating_add(BATCH_KEEPS);
                }
                Content::Received(_) => bytes.len().saturating_add(CONTENT_BYTES),
            };
            follows = None;
            sum.saturating_add(kept)
        })
    }
}

impl Frames for Message {
    type Frame = Frame;

    fn frames(&self) -> &[Frame] {
        &self.frames
    }

    #[inline]
    fn clear(&mut self) {
        if self.copies == 0 {
            self.frames.clear();
        } else {
            for frame in self.frames.drain(..) {
                if let Content::Copied(copy) = frame.content {
                    self.spare.push(copy);
                }
            }
        }
        self.copies = 0;
        self.copied_bytes = 0;
        self.allocations = 0;
    }

    fn receipt(&self) -> Option<Receipt> {
        let receipt = Receipt::new()
            .with_copied_bytes(self.copied_bytes)
            .with_allocations(self.allocations)
            .with_retained_bytes(self.retained_bytes());
        Some(receipt)
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

    /// Copies small frames out, as [`Message::detach`] does.
    pub fn detach(&mut self, below: usize) {
        self.message.detach(below);
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

    fn receipt(&self) -> Option<Receipt> {
        self.message.receipt()
    }
}

/// One frame, as libzmq received it, or copied out of that.
///
/// Up to 32 bytes lie inside the frame and move with it; more do not.
pub struct Frame {
    content: Content,
}

enum Content {
    Copied(Vec<u8>),
    // Never lent out mutably: over inproc the bytes may be an `Arc<[u8]>` that
    // the sender still reads.
    Received(::zmq::Message),
}

impl Frame {
    #[inline]
    pub(super) fn received(message: ::zmq::Message) -> Self {
        let content = Content::Received(message);
        Self { content }
    }
}

impl AsRef<[u8]> for Frame {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match &self.content {
            Content::Copied(bytes) => bytes,
            Content::Received(message) => message,
        }
    }
}

impl Default for Frame {
    fn default() -> Self {
        Self::received(::zmq::Message::new())
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.as_ref().len();
        f.debug_struct("Frame").field("len", &len).finish()
    }
}

/// Frames of up to this many bytes lie inside libzmq's handle and hold on to nothing.
pub const INLINE_BYTES: usize = 32;

/// What libzmq reads at once off a connection (`in_batch_size`); a frame that it has in
/// full there is a slice of it, a longer one has memory of its own.
const BATCH_BYTES: usize = 8192;

/// `content_t` of libzmq, on 64-bit targets: what it keeps for each frame that is not
/// inside its handle.
const CONTENT_BYTES: usize = 40;

/// What is allocated for a batch: a counter, the bytes, and a `content_t` for each frame
/// of 33 bytes or more that it could hold (`shared_message_memory_allocator`).
const BATCH_KEEPS: usize = 8 + BATCH_BYTES + BATCH_BYTES.div_ceil(33) * CONTENT_BYTES;

/// The bytes before a frame on the wire: flags, and a length of one byte or of eight.
const SHORT_HEAD: usize = 2;
const LONG_HEAD: usize = 9;
const MAX_SHORT_FRAME: usize = 255;
