//! CUDA devices: pinned, bounded and asynchronous.
//!
//! ```text
//!  frames          ring of pinned slots            transfer streams           your stream
//! +-------+ copy  +------+------+------+   DMA    +----------------+  waits  +------------+
//! | views |------>| slot | slot | slot |--------->| device memory  |-------->| kernels ...|
//! +-------+       +------+------+------+  chunks  | of the tensors |  event  +------------+
//!                     ^       back when its event has fired          |
//!                     +----------------------------------------------+
//! ```
//!
//! - [`availability`] tells whether there is a driver and a device, and why not. Nothing here panics without one.
//! - [`Cuda`] is the [`Device`](crate::device::Device): uploads, landings and downloads by way of a ring of
//!   pinned slots.
//! - [`Pinned`] is pinned memory of one's own, to receive into: from there an upload copies nothing on the host.
//! - [`Source`] is memory of anybody's on the device, to [download](Cuda::download_sources) or to store: a
//!   `CudaSlice` of cudarc, say.
//! - [`PinnedRegion`] pins the slots of a data plane's region, and loads and stores them by manifest.
//! - [`guide`] tells what is copied where, what waits, and how to size the ring.
//!
//! What holds for each call is [the contract](crate::device#the-contract) of every device. Contexts, streams and
//! slices are those of cudarc 0.19: a program that hands its own to the adapter depends on the same version.
//!
//! # Examples
//!
//! A message goes to the device, and tensors come back in frames to send:
//!
//! ```no_run
//! use tensorwire::Decoder;
//! use tensorwire::cuda::{Cuda, Options};
//! use tensorwire::device::{Device, Download};
//! use tensorwire::message::NO_SCALARS;
//! use tensorwire::transport::Wait;
//!
//! let cuda = Cuda::open(0, Options::new())?;
//! let stream = cuda.context().new_stream()?;
//!
//! # let frames: [&[u8]; 0] = [];
//! let mut decoder = Decoder::new();
//! let message = decoder.decode(&frames)?;
//! let tensors = cuda.upload_message(&message, &stream, Wait::Configured)?;
//! // The frames are free. What is put on `stream` from here on sees the tensors.
//!
//! let results: Vec<_> = tensors.iter().collect();
//! let download = cuda.download(&results, &stream, Wait::Configured)?;
//! let downloaded = download.finish(Wait::Configured).map_err(|(_, error)| error)?;
//! let parts = downloaded.into_parts(&NO_SCALARS)?; // for `send_parts`
//! # drop(parts);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod guide {
    #![doc = include_str!("guide.md")]
}

mod adapter;
mod allocation;
mod availability;
mod backoff;
mod buffer;
mod device;
mod download;
mod driver;
mod error;
mod incoming;
mod keeper;
mod landing;
mod library;
mod lock;
mod options;
mod pinned;
mod region;
mod ring;
mod source;
mod staging;
mod tensor;
mod upload;

/// The crate whose contexts, streams and slices the adapter takes and gives: the very version of it.
#[doc(no_inline)]
pub use cudarc;

pub use adapter::Cuda;
pub use availability::{DeviceInfo, Unavailable, availability};
pub use download::Download;
pub use error::{Code, CudaError, Step};
pub use landing::Landing;
pub use options::Options;
pub use pinned::{Pinned, PinnedBytes};
pub use region::{Loading, PinnedRegion, RegionError, Storing};
pub use ring::Statistics;
pub use source::Source;
pub use tensor::{Tensor, View};
