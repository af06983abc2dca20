//! What a received message is kept in.
#![allow(unsafe_code)]

use super::Error;
use super::raw::Body;
use crate::bundle::Bundle;
use crate::transport::body::{Frame, Slices};
use crate::transport::{Caps, Frames, Receipt};

/// A message, received or to be received.
///
/// It owns the body that NNG received, and its frames lie there: nothing is
/// copied on receiving. So it may outlive its socket and its context.
#[derive(Debug, Default)]
pub struct Message {
    /// The frames of `body`: they go first.
    slices: Slices,
    body: Option<Body>,
    /// How often the list of frames had to grow for this message.
    allocations: usize,
}

impl Message {
    /// Takes `body` apart into its frames, and returns how many bytes they have.
    ///
    /// The message is empty before, and when it fails it has to be cleared.
    pub(super) fn fill(&mut self, body: Body, caps: Caps) -> Result<usize, Error> {
        let bundle = Bundle::decode(body.as_slice()).map_err(Error::Malformed)?;
        let mut meter = caps.meter();
        let mut bytes: usize = 0;
        for frame in bundle.frames() {
            meter.admit(frame.len());
            bytes = bytes.saturating_add(frame.len());
        }
        meter.finish().map_err(Error::Cap)?;
        for frame in bundle.frames() {
            let room = self.slices.capacity();
            // SAFETY: `Slices::push` asks two things.
            // - The bytes stay where they are, allocated and unchanged, until the
            //   slices are cleared or dropped: they lie in NNG's buffer, which does
            //   not move with `body`. Nobody writes to a body that was received. It
            //   goes into the field below, is freed in `clear` after the slices
            //   are cleared, and on drop after them, as fields drop in order. A
            //   panic in here would leave slices to a body that is gone, but nothing
            //   below this line and before the field is set can panic but for
            //   memory that runs out, which ends the process.
            // - They are lent only as long as that holds: by `frames`, whose borrow
            //   of the message keeps it from being cleared or filled.
            unsafe { self.slices.push(frame) };
            let grown = usize::from(self.slices.capacity() != room);
            self.allocations = self.allocations.saturating_add(grown);
        }
        self.body = Some(body);
        Ok(bytes)
    }
}

impl Frames for Message {
    type Frame = Frame;

    fn frames(&self) -> &[Frame] {
        self.slices.frames()
    }

    fn clear(&mut self) {
        self.slices.clear();
        self.body = None;
        self.allocations = 0;
    }

    fn receipt(&self) -> Option<Receipt> {
        let body = self.body.as_ref();
        let retained = body.map_or(0, |body| {
            body.as_slice().len().saturating_add(BODY_OVERHEAD)
        });
        let receipt = Receipt::new().with_allocations(self.allocations);
        Some(receipt.with_retained_bytes(retained))
    }
}

/// What NNG keeps beside the bytes of a body, at most: the room before and behind
/// them, and its own record.
const BODY_OVERHEAD: usize = 256;
