//! What a tensor is here: a name, a dtype, a shape, and bytes that somebody else owns.
//!
//! ```text
//! Descriptor  name, list index, dtype, shape     in range
//!     Layout  elements, bytes                    products checked
//! TensorView  Descriptor + the bytes             length checked
//!      &'a [T] | Elements<'a, T> | your buffer   alignment and bools checked
//! ```
//!
//! A value of a later type is the proof of the earlier check. Bytes are
//! C-contiguous and little-endian, as torch stores them.
//!
//! # Alignment
//!
//! A received frame starts wherever its transport put it, often at an odd
//! address. So a view is about bytes, and there is more than one way to its
//! elements:
//!
//! | call | alignment | copies |
//! |---|---|---|
//! | [`bytes`](TensorView::bytes) | any | no |
//! | [`as_slice`](TensorView::as_slice) | the type's, or [`CastError::Misaligned`] | no |
//! | [`elements`](TensorView::elements) | any | one element at a time |
//! | [`copy_to_slice`](TensorView::copy_to_slice) | any | all |
//! | [`as_slice_or_copy`](TensorView::as_slice_or_copy) | any | only if misaligned |
//!
//! [`CastError::Misaligned`]: crate::error::CastError::Misaligned

mod descriptor;
mod element;
mod float8;
mod layout;
mod view;

pub use descriptor::Descriptor;
// The Rust types of `float16` and `bfloat16`: `half` 2 is part of this API.
pub use element::Element;
#[cfg(any(feature = "candle", feature = "ndarray"))]
pub(crate) use element::bytes_of;
#[cfg(all(test, feature = "ndarray"))]
pub(crate) use element::each_element;
pub use float8::{Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu};
pub use half::{bf16, f16};
pub(crate) use layout::{DimProduct, Layout};
pub use layout::{Dims, Shape};
pub use view::{Elements, TensorView};
