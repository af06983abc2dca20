//! Tensors as other crates have them: one module for each, behind the feature of its name.
//!
//! ```text
//!                     +--> ndarray   ArrayViewD, CowArray       in place when aligned
//!  received frames    |--> candle    Tensor                     a copy
//!  +------------+     |--> dlpack    numpy, torch, jax, ...     in place, the frame goes along
//!  | TensorView | ----+--> bytes     Bytes                      in place, the message goes along
//!  +------------+     +--> serde     what is said of tensors, and what went wrong
//! ```
//!
//! | module | from a message | into one |
//! |---|---|---|
//! | `ndarray` | a view in place; an owned array, on request | an array in standard layout, lent or given away |
//! | `candle` | a tensor, copied | tensors, copied |
//! | `dlpack` | in place, with the frame as the owner; a copy, on request | in place, with its producer as the owner |
//! | `bytes` | frames, each with a share in the received message | `Bytes`, given away |
//! | `safetensors` | a file, or piece by piece | views in place |
//! | `serde` | `DType`, `Descriptor`, `TensorInfo`, errors | `DType`, `TensorInfo` |
//!
//! Nothing copies without saying so, and nothing that is refused is lost. Types of other crates stand in the public API of
//! the module of their name and nowhere else; a new major version of one of them is a new major version of this crate.

#[cfg(feature = "bytes")]
pub mod bytes;
#[cfg(feature = "candle")]
pub mod candle;
#[cfg(feature = "dlpack")]
pub mod dlpack;
#[cfg(any(feature = "candle", feature = "ndarray"))]
mod elements;
#[cfg(feature = "std")]
mod frame;
#[cfg(feature = "ndarray")]
pub mod ndarray;
#[cfg(feature = "safetensors")]
pub mod safetensors;
#[cfg(feature = "serde")]
pub mod serde;

#[cfg(feature = "std")]
pub use frame::SharedFrame;
