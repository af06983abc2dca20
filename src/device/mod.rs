//! Where a model computes: tensors of a message to a device, and back.
//!
//! ```text
//!  received frames                           a device                            outgoing frames
//! +------------+         upload          +--------------+       download         +-----------+
//! | TensorView | ----------------------> | tensors:     | ---------------------> | Buffer    | --> a transport
//! +------------+    by way of staging    | name, dtype, |   by way of staging    +-----------+
//! | Metadata   | ----------------------> | shape kept   |
//! +------------+    land: payloads are   +--------------+
//!                   read into staging
//! ```
//!
//! [`Device`] is what a service is written against. It has two implementations:
//!
//! | module | tensors lie in | an upload |
//! |---|---|---|
//! | `cuda` (feature `cuda`) | a CUDA device's memory | is asynchronous, by way of pinned memory |
//! | [`host`] | the host's memory, aligned and owned | is a copy |
//!
//! With [`host`] the same service runs where there is no device: in tests, on a laptop.
//!
//! # Examples
//!
//! One round of a service: what came in goes to the device, is worked on there, and goes out again. The same
//! function serves on any device; `examples/device` is a whole program of this kind.
//!
//! ```
//! use std::error::Error;
//! use tensorwire::Decoder;
//! use tensorwire::device::{Device, Download, Tensors, host};
//! use tensorwire::message::{NO_SCALARS, encode_to_vec, frames};
//! use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait, loopback};
//! # use tensorwire::TensorView;
//!
//! fn answer<D: Device>(
//!     device: &D,
//!     stream: &D::Stream,
//!     request: &[impl AsRef<[u8]>],
//!     work: impl Fn(&Tensors<D::Tensor>),
//! ) -> Result<Vec<Part<'static>>, Box<dyn Error>> {
//!     let mut decoder = Decoder::new();
//!     let message = decoder.decode(request)?;
//!     let tensors = device.upload_message(&message, stream, Wait::Configured)?;
//!     // From here on the request could be received into again.
//!     work(&tensors);
//!     let results: Vec<_> = tensors.iter().collect();
//!     let download = device.download(&results, stream, Wait::Configured)?;
//!     let results = download.finish(Wait::Configured).map_err(|(_, error)| error)?;
//!     Ok(results.into_parts(&NO_SCALARS)?)
//! }
//!
//! let (mut service, mut client) = loopback::pair();
//! let tensors = [TensorView::from_slice("x", &[3], &[1_i32, 2, 3])?];
//! client.send(&frames(&encode_to_vec(&tensors, &NO_SCALARS)?, &tensors))?;
//!
//! let request = service.recv()?;
//! let sum = |tensors: &Tensors<host::Tensor>| {
//!     let x = tensors.tensor("x").and_then(|x| x.view::<i32>().ok());
//!     assert_eq!(x.map(|x| x.iter().sum()), Some(6));
//! };
//! let mut parts = answer(&host::Host::new(), &host::Stream, request.frames(), sum)?;
//! service.send_parts(&mut parts, Wait::Configured)?;
//! # let answer = client.recv()?;
//! # let mut decoder = Decoder::new();
//! # let message = decoder.decode(answer.frames())?;
//! # let x = message.tensor("x").ok_or("no x")?;
//! # assert!(x.elements::<i32>()?.eq([1, 2, 3]));
//! # Ok::<(), Box<dyn Error>>(())
//! ```
//!
//! # The contract
//!
//! - **The source is free at once.** When an upload returns, its bytes have been read: the frame can be
//!   dropped, changed, or received into.
//! - **Nothing waits unasked.** How long a call may wait for room is said by its [`Wait`]. For the device
//!   itself waits only who asks to: [`DeviceTensor::is_ready`] and [`Download::is_ready`] look without waiting,
//!   and a stream waits in its own time.
//! - **All or nothing.** A call that fails has kept nothing: no room in staging, no memory of the device. The next
//!   call works, unless the error was [`ErrorKind::Unusable`].
//! - **The stream sees the bytes.** What is put on the given stream after an upload has returned runs after the
//!   bytes are in place; and a download takes what the given stream leaves when it has done what was put on it
//!   before.
//! - **What a tensor is stays with it.** Name, place in its list, dtype and shape go along to the device and back;
//!   the metadata of a message that was only moved is written again byte for byte.
//! - **Bytes are moved as they are.** A byte of a `bool` tensor that is neither 0 nor 1 is moved like any other. The
//!   typed view of such a tensor fails, with [`CastError::InvalidBool`](crate::error::CastError::InvalidBool).
//!
//! # Untrusted input
//!
//! Sizes come out of metadata that was decoded, so they are in range, but they are the peer's word: [`Device::land`]
//! asks for as much memory as they say. [`Limits::tensor_bytes`](crate::Limits::tensor_bytes) caps it. More than there is
//! is [`ErrorKind::OutOfMemory`].

pub mod host;

mod downloaded;
mod error;
mod info;
mod plan;
mod tensors;

pub use downloaded::Downloaded;
pub use error::{DeviceError, ErrorKind};
pub use info::TensorInfo;
pub(crate) use plan::{ALIGN, Place, Plan};
pub use tensors::Tensors;

use crate::message::{Message, Metadata};
use crate::tensor::TensorView;
use crate::transport::Wait;

/// Brings tensors to a device and back.
///
/// What holds for every device is [the contract](self#the-contract).
pub trait Device {
    /// A queue of the device: what is put on it happens in order.
    type Stream;
    /// A tensor on the device.
    type Tensor: DeviceTensor<Error = Self::Error>;
    /// Payloads of a message on their way in.
    type Landing: Landing<Tensor = Self::Tensor, Error = Self::Error>;
    /// Tensors on their way out.
    type Download: Download<Error = Self::Error>;
    /// Why something failed.
    type Error: DeviceError;

    /// Brings one tensor to the device, for `stream` to use.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RingFull`] or [`ErrorKind::TimedOut`] when there was no room in staging within `wait`;
    /// [`ErrorKind::OutOfMemory`]; the device's own.
    fn upload(
        &self,
        tensor: &TensorView<'_>,
        stream: &Self::Stream,
        wait: Wait,
    ) -> Result<Self::Tensor, Self::Error>;

    /// Brings all tensors of a message to the device, for `stream` to use; small ones together.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload); the error says which tensor.
    fn upload_message<F: AsRef<[u8]>>(
        &self,
        message: &Message<'_, '_, F>,
        stream: &Self::Stream,
        wait: Wait,
    ) -> Result<Tensors<Self::Tensor>, Self::Error>;

    /// Makes room on the device for the tensors that `metadata` tells of, whose payloads are yet to come, and which
    /// `stream` is to use.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`]; the device's own.
    fn land(
        &self,
        metadata: &Metadata<'_, '_>,
        stream: &Self::Stream,
    ) -> Result<Self::Landing, Self::Error>;

    /// Brings `tensors` back, as `stream` leaves them, in the order given. One that stands there twice comes twice.
    ///
    /// They need not be of one message, and they may be dropped while the download is under way.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload); [`ErrorKind::TooLarge`] if they never fit in staging together.
    fn download(
        &self,
        tensors: &[&Self::Tensor],
        stream: &Self::Stream,
        wait: Wait,
    ) -> Result<Self::Download, Self::Error>;
}

/// A tensor on a device.
///
/// What else can be done with one is each device's own: [`host::Tensor`] is seen as a slice, `cuda::Tensor` by kernels.
pub trait DeviceTensor {
    /// Why something failed.
    type Error: DeviceError;

    /// Returns what it is called, and what it looks like.
    fn info(&self) -> &TensorInfo;

    /// Tells whether its bytes are in place, without waiting.
    ///
    /// # Errors
    ///
    /// The device's own: the copy failed.
    fn is_ready(&self) -> Result<bool, Self::Error>;
}

/// Payloads of a message, on their way to a device while they are being read.
///
/// They come in wire order, one after the other, in pieces of any size:
///
/// ```
/// use std::error::Error;
/// use std::io::Read;
/// use tensorwire::device::{Device, Landing, Tensors, host};
/// use tensorwire::message::{Options, Storage};
/// use tensorwire::transport::Wait;
///
/// /// Reads the payloads off a stream of bytes, straight into place.
/// fn read_all<L: Landing>(mut landing: L, mut from: impl Read) -> Result<Tensors<L::Tensor>, Box<dyn Error>> {
///     while landing.missing() > 0 {
///         let room = landing.room(Wait::Configured)?;
///         let read = from.read(room)?;
///         if read == 0 {
///             return Err("the peer stopped half way".into());
///         }
///         landing.filled(read)?;
///     }
///     Ok(landing.finish()?)
/// }
///
/// let metadata = br#"{"tensor_descriptors":[{"field_name":"x","shape":[3],"dtype":"int16"}]}"#;
/// let mut storage = Storage::<4>::new();
/// let metadata = Options::new().decode_metadata(metadata, &mut storage)?;
/// let landing = host::Host::new().land(&metadata, &host::Stream)?;
/// let tensors = read_all(landing, &[1, 0, 2, 0, 3, 0][..])?;
/// let x = tensors.tensor("x").ok_or("no x")?;
/// assert_eq!(x.view::<i16>()?, [1, 2, 3]);
/// # Ok::<(), Box<dyn Error>>(())
/// ```
///
/// Dropped before the end, it gives back what it holds.
pub trait Landing {
    /// A tensor on the device.
    type Tensor;
    /// Why something failed.
    type Error: DeviceError;

    /// Returns how many payload bytes are yet to come.
    fn missing(&self) -> usize;

    /// Returns the place for the next payload bytes: never longer than what is missing of one tensor, and never
    /// empty unless nothing is [missing](Self::missing). What it holds before it is filled says nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RingFull`] or [`ErrorKind::TimedOut`] when there was no room within `wait`; it can be
    /// asked again. The device's own.
    fn room(&mut self, wait: Wait) -> Result<&mut [u8], Self::Error>;

    /// Takes the first `len` bytes of the last [`room`](Self::room) as filled. Then the next room has to be asked for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Length`] for more than there was room; then nothing was taken. The device's own.
    fn filled(&mut self, len: usize) -> Result<(), Self::Error>;

    /// Returns the tensors, in wire order, once none of their bytes is [missing](Self::missing).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Incomplete`] if bytes are missing; then what came is given up. The device's own.
    fn finish(self) -> Result<Tensors<Self::Tensor>, Self::Error>;

    /// Copies all of `bytes`, payload bytes that came elsewhere, waiting for room each time as `wait` says.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Length`] for more than are [missing](Self::missing), before the first is copied. As [`room`](Self::room);
    /// then [`missing`](Self::missing) tells how many were taken.
    fn copy_from(&mut self, bytes: &[u8], wait: Wait) -> Result<(), Self::Error>;
}

/// Tensors on their way out of a device.
///
/// Dropped before the end, it gives back what it holds.
pub trait Download: Sized {
    /// Why something failed.
    type Error: DeviceError;

    /// Tells whether all bytes have arrived, without waiting.
    ///
    /// # Errors
    ///
    /// The device's own: the copy failed.
    fn is_ready(&mut self) -> Result<bool, Self::Error>;

    /// Waits for all bytes to arrive, as long as `wait` says, and returns them.
    ///
    /// # Errors
    ///
    /// The download as it was, to ask again, with [`ErrorKind::NotReady`], [`ErrorKind::TimedOut`], or the device's own.
    fn finish(self, wait: Wait) -> Result<Downloaded, (Self, Self::Error)>;
}
