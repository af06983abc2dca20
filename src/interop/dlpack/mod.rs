//! Tensors to and from whatever speaks DLPack: numpy, torch, jax, cupy, and more.
//!
//! ```text
//!   SharedFrame --Export::new--> Export --into_raw--> capsule "dltensor" --> numpy.from_dlpack, torch.from_dlpack
//!                                                     the deleter drops the frame
//!
//!   torch.Tensor.__dlpack__() --> capsule "dltensor" --Import::from_raw--> Import --> Part
//!                                                                          dropped: calls torch's deleter
//! ```
//!
//! DLPack is two structures of C, and no library: a tensor's bytes where they lie, what they are, and a function that gives them
//! back. So a received tensor is torch's without a copy, and keeps the message that it came in for as long as torch has it; and
//! torch's tensor is sent from torch's memory.
//!
//! - Bytes that are misaligned for their dtype are refused, as no consumer looks out for them. Frames lie at arbitrary
//!   addresses: be ready to [`Export::copy`].
//! - What is exported in place is read-only. Only a capsule of DLPack 1 says so; tell the consumer of an older one.
//! - What is imported has to lie in the host's memory, C-contiguous (torch: `.contiguous()`, numpy: `ascontiguousarray`), and not to
//!   be written to until it has been sent.
//! - No dimension, stride or offset is believed, and no pointer checked but for null: whom a capsule is taken from is trusted, as with
//!   any pointer.
//!
//! `examples/dlpack` is a library that Python loads with `ctypes`, without any other binding.
//!
//! # Examples
//!
//! A tensor goes out with its frame, and comes in again on the other side of some foreign function:
//!
//! ```
//! use tensorwire::interop::SharedFrame;
//! use tensorwire::interop::dlpack::{Export, Import};
//! use tensorwire::message::{NO_SCALARS, encode_to_vec};
//! use tensorwire::transport::{Part, RecvFrames, SendFrames, Wait, loopback};
//! use tensorwire::{Decoder, TensorView};
//!
//! let (mut sender, mut receiver) = loopback::pair();
//! let x = TensorView::from_slice("x", &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
//! sender.send(&[&encode_to_vec([x], &NO_SCALARS)?, x.bytes()])?;
//!
//! let received = SharedFrame::split(receiver.recv()?);
//! let mut decoder = Decoder::new();
//! let message = decoder.decode(&received)?;
//! let x = message.tensor("x").ok_or("no x")?;
//! let export = match Export::new(&x.descriptor(), received[1].clone()) {
//!     Ok(export) => export,
//!     Err(_) => Export::copy(&x)?, // misaligned
//! };
//! let pointer = export.into_raw(); // into a capsule named "dltensor"
//!
//! // SAFETY: of the three rules, the producer is ours, and was asked for nothing else.
//! let import = unsafe { Import::from_raw(pointer.as_ptr()) }?;
//! let metadata = encode_to_vec([import.descriptor("y")], &NO_SCALARS)?;
//! let mut parts = vec![Part::from(metadata), Part::from(import)];
//! sender.send_parts(&mut parts, Wait::Configured)?;
//! # let received = receiver.recv()?;
//! # let message = decoder.decode(tensorwire::transport::Frames::frames(&received))?;
//! # let y = message.tensor("y").ok_or("no y")?;
//! # assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abi;
mod error;
mod export;
mod import;

pub use abi::{ManagedTensor, VersionedTensor};
pub use error::{DlpackError, Pointer};
pub use export::Export;
pub use import::Import;

/// Dimensions that a tensor may have at most: torch and numpy stop there.
pub const MAX_RANK: usize = 64;
