//! A device that is the host: tensors in aligned memory of their own.
//!
//! It stands in for a device where there is none, so that a service runs unchanged on a laptop and in tests; and it
//! is of use by itself, to take tensors out of received frames: they are copied once, to where their elements can
//! be seen in place, and the frames are free.
//!
//! | step | copies of a payload |
//! |---|---|
//! | [`upload`](Host::upload), [`upload_message`](Host::upload_message) | one |
//! | [`land`](Host::land) | none, read where they stay; one if they are handed over as bytes (`copy_from`) |
//! | [`download`](Host::download) | none: the frames share the tensor's memory |
//!
//! Nothing here waits, whatever a call's [`Wait`] says, and what has returned has been done. There are no streams
//! to speak of: [`Stream`] has but one value.
//!
//! # Examples
//!
//! A message comes in, is computed with, and its result goes out. In between lies one copy, that of the upload.
//!
//! ```
//! use tensorwire::device::{Device, Download, host};
//! use tensorwire::message::{Message, Scalar, Storage};
//! use tensorwire::transport::Wait;
//! use tensorwire::{DType, Descriptor};
//!
//! let frames: [&[u8]; 2] = [
//!     br#"{"tensor_descriptors":[{"field_name":"x","shape":[2],"dtype":"float32"}]}"#,
//!     &[0, 0, 128, 63, 0, 0, 0, 64],
//! ];
//! let mut storage = Storage::<4>::new();
//! let message = Message::decode(&frames, &mut storage)?;
//!
//! let device = host::Host::new();
//! let tensors = device.upload_message(&message, &host::Stream, Wait::Configured)?;
//! let x = tensors.tensor("x").ok_or("no x")?.view::<f32>()?; // aligned, whatever the frame was
//!
//! let doubled = Descriptor::new("doubled", DType::Float32, &[2])?;
//! let doubled = device.collect(&doubled, x.iter().map(|x| x * 2.0))?;
//!
//! let download = device.download(&[&doubled], &host::Stream, Wait::Configured)?;
//! let downloaded = download.finish(Wait::Configured).map_err(|(_, error)| error)?;
//! let parts = downloaded.into_parts(&[("request_id", Scalar::from("r1"))])?; // for `send_parts`
//! assert_eq!(parts[1].as_ref().as_ptr(), doubled.bytes().as_ptr());
//! assert_eq!(doubled.view::<f32>()?, [2.0, 4.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod download;
mod error;
mod landing;
mod memory;
mod tensor;

pub use download::Download;
pub use error::HostError;
pub use landing::Landing;
pub use tensor::Tensor;

use alloc::sync::Arc;
use alloc::vec::Vec;

use self::memory::{Memory, Share};
use super::{
    ALIGN, Device, DeviceTensor, Downloaded, ErrorKind, Landing as _, TensorInfo, Tensors,
};
use crate::message::{Message, Metadata};
use crate::tensor::{Descriptor, Element, TensorView};
use crate::transport::{Buffer, Wait};

/// The host as a [`Device`].
///
/// It holds nothing but how it was set up.
///
/// # Examples
///
/// See [the module](self).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Host {
    batch_bytes: usize,
}

/// The order of what happens on the host, which is the order of the calls.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "there is nothing to it, and callers name it"
)]
pub struct Stream;

/// So many computed elements are put down at once.
const CHUNK: usize = 1024;

impl Host {
    /// Tensors of up to 256 KiB are batched.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            batch_bytes: 256 << 10,
        }
    }

    /// Sets up to how many bytes a tensor of a message shares its memory with others of the message.
    ///
    /// With 0 each tensor has its memory for itself.
    #[must_use]
    pub const fn with_batch_bytes(mut self, batch_bytes: usize) -> Self {
        self.batch_bytes = batch_bytes;
        self
    }

    /// Returns up to how many bytes a tensor is batched.
    #[must_use]
    pub const fn batch_bytes(&self) -> usize {
        self.batch_bytes
    }

    /// Makes a tensor of elements as they are computed: where a kernel of another device would write its results.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DType`] if `descriptor` is of another dtype; [`ErrorKind::Length`] unless there are just as many elements
    /// as it says (one too many is taken, and no more); [`ErrorKind::OutOfMemory`].
    pub fn collect<T: Element>(
        &self,
        descriptor: &Descriptor<'_>,
        elements: impl IntoIterator<Item = T>,
    ) -> Result<Tensor, HostError> {
        let (expected, actual) = (descriptor.dtype(), T::DTYPE);
        if actual != expected {
            return Err(HostError::new(ErrorKind::DType { expected, actual }));
        }
        let len = descriptor.byte_len();
        let out_of_memory = HostError::new(ErrorKind::OutOfMemory { bytes: len });
        let mut memory = Memory::new(len).ok_or(out_of_memory)?;
        let mut elements = elements.into_iter();
        let (mut at, mut missing) = (0_usize, descriptor.element_count());
        let mut chunk = Vec::with_capacity(missing.min(CHUNK));
        while missing > 0 {
            chunk.clear();
            chunk.extend(elements.by_ref().take(missing.min(CHUNK)));
            let bytes = T::bytes_of(&chunk);
            if bytes.is_empty() || memory.write(at, bytes).is_none() {
                return Err(length(len, at));
            }
            at = at.saturating_add(bytes.len());
            missing = missing.saturating_sub(chunk.len());
        }
        if elements.next().is_some() {
            return Err(length(len, len.saturating_add(actual.size())));
        }
        let share = Share::new(Arc::new(memory), 0..len);
        Ok(Tensor::new(TensorInfo::new(descriptor), share))
    }
}

const fn length(expected: usize, actual: usize) -> HostError {
    HostError::new(ErrorKind::Length { expected, actual })
}

impl Device for Host {
    type Stream = Stream;
    type Tensor = Tensor;
    type Landing = Landing;
    type Download = Download;
    type Error = HostError;

    fn upload(&self, tensor: &TensorView<'_>, _: &Stream, _: Wait) -> Result<Tensor, HostError> {
        let bytes = tensor.byte_len();
        let out_of_memory = HostError::new(ErrorKind::OutOfMemory { bytes });
        let mut memory = Memory::new(bytes).ok_or(out_of_memory)?;
        memory
            .write(0, tensor.bytes())
            .ok_or_else(|| length(bytes, bytes))?;
        let share = Share::new(Arc::new(memory), 0..bytes);
        Ok(Tensor::new(TensorInfo::new(&tensor.descriptor()), share))
    }

    fn upload_message<F: AsRef<[u8]>>(
        &self,
        message: &Message<'_, '_, F>,
        stream: &Stream,
        wait: Wait,
    ) -> Result<Tensors<Tensor>, HostError> {
        let mut landing = self.land(&message.metadata(), stream)?;
        for tensor in message.tensors() {
            landing.copy_from(tensor.bytes(), wait)?;
        }
        landing.finish()
    }

    fn land(&self, metadata: &Metadata<'_, '_>, _: &Stream) -> Result<Landing, HostError> {
        Landing::new(metadata.descriptors(), self.batch_bytes)
    }

    fn download(&self, tensors: &[&Tensor], _: &Stream, _: Wait) -> Result<Download, HostError> {
        let frames = tensors.iter().map(|tensor| {
            let frame = Buffer::new(tensor.share().clone());
            (tensor.info().clone(), frame)
        });
        let frames: Vec<_> = frames.collect();
        let downloaded = Downloaded::new(frames).map_err(|_| length(0, 0))?;
        Ok(Download::new(downloaded))
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}
