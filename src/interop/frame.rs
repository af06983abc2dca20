//! Frames of a received message, each of which can be kept alone.
#![allow(unsafe_code)]

use core::any::Any;
use core::fmt;
use core::ptr::NonNull;
use core::slice;

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::transport::{Buffer, Frames, Part};

/// One frame of a received message, with a share in the message.
///
/// A received message owns its frames together, and views borrow from it. Whoever wants to keep one tensor, or to hand it
/// to somebody who frees it at a time of his own, takes its frame: the message is dropped with the last of them. Nothing is
/// copied, and a frame stays where it is. A small frame so keeps the whole message; copy it if it is to be kept for long.
///
/// # Examples
///
/// ```
/// use tensorwire::interop::SharedFrame;
/// use tensorwire::message::{NO_SCALARS, encode_to_vec, frames};
/// use tensorwire::transport::{RecvFrames, SendFrames, loopback};
/// use tensorwire::{Decoder, TensorView};
///
/// let (mut sender, mut receiver) = loopback::pair();
/// let tensors = [TensorView::from_slice("mask", &[3], &[true, false, true])?];
/// sender.send(&frames(&encode_to_vec(&tensors, &NO_SCALARS)?, &tensors))?;
///
/// let received = SharedFrame::split(receiver.recv()?);
/// let mut decoder = Decoder::new();
/// let message = decoder.decode(&received)?;
/// // What the tensor lies in, to be kept.
/// let mask: SharedFrame = message.payload(0).ok_or("no mask")?.clone();
/// drop(received);
/// assert_eq!(mask.as_ref(), [1, 0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SharedFrame {
    data: NonNull<u8>,
    len: usize,
    /// Never looked at again: only dropped.
    _message: Arc<dyn Any + Send>,
}

// SAFETY: `Send` asks that a frame may be used and dropped on another thread.
// - Used: it reads bytes that a `&[u8]` stood for, which may be read from any
//   thread, and counts its share atomically.
// - Dropped: the last share drops the message, which is `Send`.
unsafe impl Send for SharedFrame {}
// SAFETY: `Sync` asks that threads may use one frame at once: they read its
// bytes or clone it, as above. None gets at the message itself.
unsafe impl Sync for SharedFrame {}

impl SharedFrame {
    /// Takes a received message apart into its frames, in order.
    #[must_use]
    pub fn split<M: Frames + Send + 'static>(message: M) -> Vec<Self> {
        let message = Arc::new(message);
        let shared = |frame: &M::Frame| {
            let bytes = frame.as_ref();
            Self {
                data: NonNull::from(bytes).cast(),
                len: bytes.len(),
                _message: message.clone(),
            }
        };
        message.frames().iter().map(shared).collect()
    }
}

impl AsRef<[u8]> for SharedFrame {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `slice::from_raw_parts` asks four things.
        // - The address and length are those of a slice: `split` took them from one.
        // - The bytes are initialized: they are a slice's.
        // - Nobody writes to them, nor frees them, while the result lives: the slice
        //   borrowed from the message, which lies in an `Arc` from before that on.
        //   There it neither moves nor is lent mutably, and this frame has a share in it.
        // - They are at most `isize::MAX` bytes: they are a slice's.
        unsafe { slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl From<SharedFrame> for Buffer {
    fn from(frame: SharedFrame) -> Self {
        Self::new(frame)
    }
}

impl From<SharedFrame> for Part<'_> {
    fn from(frame: SharedFrame) -> Self {
        Self::owned(frame)
    }
}

impl fmt::Debug for SharedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFrame")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    use crate::transport::{RecvFrames, SendFrames, loopback};

    /// A message that tells when it is dropped.
    #[derive(Default)]
    struct Told {
        message: loopback::Message,
        alive: Arc<()>,
    }

    impl Frames for Told {
        type Frame = <loopback::Message as Frames>::Frame;

        fn frames(&self) -> &[Self::Frame] {
            self.message.frames()
        }

        fn clear(&mut self) {
            self.message.clear();
        }
    }

    fn receive(frames: &[&[u8]]) -> (Told, Arc<()>) {
        let (mut sender, mut receiver) = loopback::pair();
        sender.send(frames).unwrap();
        let message = receiver.recv().unwrap();
        let told = Told {
            message,
            ..Told::default()
        };
        let alive = told.alive.clone();
        (told, alive)
    }

    #[test]
    fn frames_stay_where_they_are_until_the_last_is_dropped() {
        let (message, alive) = receive(&[b"metadata", b"", b"tensor"]);
        let addresses: Vec<_> = message
            .frames()
            .iter()
            .map(|frame| frame.as_ref().as_ptr())
            .collect();
        let mut frames = SharedFrame::split(message);
        let found: Vec<_> = frames.iter().map(|frame| frame.as_ref().as_ptr()).collect();
        assert_eq!(found, addresses);
        let last = frames.pop().unwrap().clone();
        drop(frames);
        assert_eq!(Arc::strong_count(&alive), 2);
        assert_eq!(last.as_ref(), b"tensor");
        drop(last);
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn frames_are_read_and_dropped_on_other_threads() {
        let (message, alive) = receive(&[b"one", b"two"]);
        let frames = SharedFrame::split(message);
        thread::scope(|scope| {
            for _ in 0..4 {
                let frames = &frames;
                scope.spawn(move || assert_eq!(frames[1].clone().as_ref(), b"two"));
            }
        });
        thread::spawn(move || drop(frames)).join().unwrap();
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn a_message_without_frames_has_none_to_share() {
        assert!(SharedFrame::split(loopback::Message::default()).is_empty());
    }
}
