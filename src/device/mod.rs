//! Where a model computes: tensors of a message to a device, and back.
//!
//! ```text
//!   received frames                        a device                                outgoing frames
//!  +-----------+     upload               +--------------+      download          +-----------+
//!  | TensorView| --------------------->   | its tensors: | ---------------------> | Buffer    |--> a transport
//!  +-----------+   by way of staging      | name, dtype, |    by way of staging   +-----------+
//!   Metadata ---- landing: payloads ---->  | shape kept   |
//!                 read into staging       +--------------+
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
//! # The contract
//!
//! - **The source is free at once.** When an upload returns, its bytes have been read: the frame can be
//!   dropped, changed, or received into.
//! - **Nothing waits unasked.** How long a call may wait for room is said by its [`Wait`]; for the
//!   device itself nobody waits but who asks: [`DeviceTensor::is_ready`] looks, and a
//!   stream waits in its own time.
//! - **All or nothing.** A call that fails has kept nothing: no room, no memory of the device.
//! - **The stream sees the bytes.** What is put on the given stream after an upload has returned runs after the
//!   bytes are in place.

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
/// What holds for all of them is [the contract](self#the-contract).
pub trait Device {
    /// In which order things happen on the device.
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
    /// The device's own; [`ErrorKind::RingFull`] or [`ErrorKind::TimedOut`] when there was no room within `wait`.
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

    /// Makes room on the device for the tensors that `metadata` tells of, whose payloads are yet to come.
    ///
    /// # Errors
    ///
    /// The device's own.
    fn land(
        &self,
        metadata: &Metadata<'_, '_>,
        stream: &Self::Stream,
    ) -> Result<Self::Landing, Self::Error>;

    /// Brings `tensors` back, as `stream` leaves them.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload).
    fn download(
        &self,
        tensors: &[&Self::Tensor],
        stream: &Self::Stream,
        wait: Wait,
    ) -> Result<Self::Download, Self::Error>;
}

/// A tensor on a device.
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
/// use std::io::Read;
/// use tensorwire::device::Landing;
/// use tensorwire::transport::Wait;
///
/// /// Reads the payloads from a stream of bytes straight into staging memory.
/// fn read_all<L: Landing>(landing: &mut L, from: &mut impl Read) -> Result<(), Box<dyn std::error::Error>>
/// where
///     L::Error: 'static,
/// {
///     while landing.missing() > 0 {
///         let room = landing.room(Wait::Configured)?;
///         let read = from.read(room)?;
///         if read == 0 {
///             return Err("the peer stopped half way".into());
///         }
///         landing.filled(read)?;
///     }
///     Ok(())
/// }
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

    /// Returns the place for the next payload bytes: some of the tensor that they are of, never
    /// empty unless none are [missing](Self::missing).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RingFull`] or [`ErrorKind::TimedOut`] when there was no room within `wait`; it can be
    /// asked again. The device's own.
    fn room(&mut self, wait: Wait) -> Result<&mut [u8], Self::Error>;

    /// Takes the first `len` bytes of the last [`room`](Self::room) as filled.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Length`] for more than there was room. The device's own.
    fn filled(&mut self, len: usize) -> Result<(), Self::Error>;

    /// Returns the tensors, once none of their bytes is [missing](Self::missing).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Incomplete`] if bytes are missing. The device's own.
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
    /// The download as it was, and [`ErrorKind::NotReady`], [`ErrorKind::TimedOut`], or the device's own.
    fn finish(self, wait: Wait) -> Result<Downloaded, (Self, Self::Error)>;
}
