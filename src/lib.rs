#![no_std]
// Where no file lies beside the page, the first definition of a reference is the one that holds.
#![doc = include_str!("guide/screens.md")]
#![doc = include_str!("../README.md")]
#![deny(missing_docs, missing_debug_implementations, unsafe_code)]
#![deny(
    clippy::alloc_instead_of_core,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::missing_safety_doc,
    clippy::multiple_unsafe_ops_per_block,
    clippy::panic,
    clippy::std_instead_of_core,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used
)]
// Tests may add and cast: a panic there is a failed test, with a line number.
#![cfg_attr(test, allow(clippy::arithmetic_side_effects, clippy::as_conversions))]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
// `#![no_std]` stays on, so the prelude is `core`'s and a stray `Vec` never builds.
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod bundle;
mod convert;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "std")]
pub mod device;
pub mod dtype;
pub mod error;
// Pages alone: there is nothing in it to compile.
#[cfg(any(doc, doctest))]
pub mod guide;
#[cfg(any(feature = "serde", feature = "std"))]
pub mod interop;
pub mod json;
mod limits;
pub mod message;
#[cfg(feature = "std")]
pub mod plane;
pub mod tensor;
#[cfg(any(feature = "arbitrary", feature = "proptest"))]
pub mod testing;
pub mod transfer;
pub mod transport;

pub use dtype::DType;
pub use limits::Limits;
#[cfg(feature = "alloc")]
pub use message::Decoder;
pub use message::{Message, Options, Scalar, Storage};
pub use tensor::{Descriptor, TensorView};
