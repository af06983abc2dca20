//! Received frames as [`Bytes`], and `Bytes` as frames to send.
//!
//! [`frames`] takes a received message apart. Each `Bytes` lies where its frame does and has a share in the message, which is
//! dropped with the last of them: nothing is copied. They decode like any other frames, and a clone of one keeps a tensor
//! for as long as it is needed. A slice of a small frame keeps the whole message too.
//!
//! The other way `Bytes` and `BytesMut` become a [`Buffer`] or a [`Part`] and are sent from where they lie.
//!
//! # Examples
//!
//! ```
//! use ::bytes::Bytes;
//! use tensorwire::interop::bytes::frames;
//! use tensorwire::message::{self, NO_SCALARS, encode_to_vec};
//! use tensorwire::transport::{Part, RecvFrames, SendFrames, Wait, loopback};
//! use tensorwire::{Decoder, TensorView};
//!
//! let (mut sender, mut receiver) = loopback::pair();
//! let tensors = [TensorView::from_slice("latents", &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?];
//! sender.send(&message::frames(&encode_to_vec(&tensors, &NO_SCALARS)?, &tensors))?;
//!
//! let received: Vec<Bytes> = frames(receiver.recv()?);
//! let mut decoder = Decoder::new();
//! let message = decoder.decode(&received)?;
//! let latents: Bytes = message.payload(0).ok_or("no latents")?.clone();
//! let second_row = latents.slice(8..); // no copy either
//!
//! // On to the next service, from where it was received.
//! let row = TensorView::from_bytes("row", tensorwire::DType::Float32, &[2], &second_row)?;
//! let metadata = encode_to_vec([row], &NO_SCALARS)?;
//! let mut parts = vec![Part::from(metadata), Part::from(second_row)];
//! sender.send_parts(&mut parts, Wait::Configured)?;
//! # assert_eq!(frames(receiver.recv()?)[1], latents.slice(8..));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use super::SharedFrame;
use crate::transport::{Buffer, Frames, Part};

/// Takes a received message apart into its frames, in order, without a copy.
///
/// One small allocation for each frame, and one for the message.
#[must_use]
pub fn frames<M: Frames + Send + 'static>(message: M) -> Vec<Bytes> {
    let frames = SharedFrame::split(message).into_iter();
    frames.map(Bytes::from_owner).collect()
}

impl From<SharedFrame> for Bytes {
    fn from(frame: SharedFrame) -> Self {
        Self::from_owner(frame)
    }
}

impl From<Buffer> for Bytes {
    fn from(buffer: Buffer) -> Self {
        Self::from_owner(buffer)
    }
}

impl From<Bytes> for Buffer {
    fn from(bytes: Bytes) -> Self {
        Self::new(bytes)
    }
}

impl From<BytesMut> for Buffer {
    fn from(bytes: BytesMut) -> Self {
        Self::new(bytes)
    }
}

impl From<Bytes> for Part<'_> {
    fn from(bytes: Bytes) -> Self {
        Self::owned(bytes)
    }
}

impl From<BytesMut> for Part<'_> {
    fn from(bytes: BytesMut) -> Self {
        Self::owned(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::transport::{RecvFrames, SendFrames, Wait, loopback};

    #[test]
    fn frames_become_bytes_where_they_lie() {
        let (mut sender, mut receiver) = loopback::pair();
        sender.send(&[b"metadata", b"", &[7; 1000]]).unwrap();
        let message = receiver.recv().unwrap();
        let expected: Vec<_> = message
            .frames()
            .iter()
            .map(|frame| (frame.as_ref().as_ptr(), frame.as_ref().len()))
            .collect();
        let frames = frames(message);
        let found: Vec<_> = frames
            .iter()
            .map(|bytes| (bytes.as_ptr(), bytes.len()))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(&frames[0][..], b"metadata");
    }

    #[test]
    fn bytes_are_sent_from_where_they_lie() {
        let tensor = Bytes::from(alloc::vec![7_u8; 4096]);
        let address = tensor.as_ptr();
        let (mut sender, mut receiver) = loopback::pair();
        let mut parts = alloc::vec![
            Part::from(Bytes::from_static(b"metadata")),
            Part::from(tensor.slice(96..)),
            Part::from(BytesMut::from(&b"tail"[..])),
        ];
        sender.send_parts(&mut parts, Wait::Never).unwrap();
        let received = frames(receiver.recv().unwrap());
        assert_eq!(&received[0][..], b"metadata");
        assert_eq!(received[1].as_ptr(), address.wrapping_add(96));
        assert_eq!(&received[2][..], b"tail");
    }

    #[test]
    fn a_buffer_comes_back_as_what_it_was_made_of() {
        let bytes = Bytes::from_static(b"tensor");
        let address = bytes.as_ptr();
        let buffer = Buffer::from(bytes);
        let bytes = buffer.downcast::<Bytes>().unwrap();
        assert_eq!(bytes.as_ptr(), address);
        assert_eq!(Bytes::from(Buffer::from(bytes)).as_ptr(), address);
    }
}
