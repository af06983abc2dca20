//! Messages as `.safetensors` files, and such files as messages.
//!
//! A file is read where it lies: its tensors are views into the caller's buffer, or map of the
//! file, and nothing is copied but the scalars. A message is written with no second copy of its
//! tensors.
//!
//! ```text
//!  0              8                      8 + n, a multiple of 8
//! +--------------+----------------------+---------------------------------+
//! | n, u64       | header: JSON, spaces | the bytes of the tensors        |
//! +--------------+----------------------+---------------------------------+
//!   {"__metadata__":{"request_id":"r1"},
//!    "latents":{"dtype":"BF16","shape":[1,16],"data_offsets":[0,32]}, ...}
//! ```
//!
//! The reader is this crate's own. It takes what Hugging Face's takes, with the bytes of an error
//! and without a panic, and refuses besides:
//!
//! - a name or a key twice;
//! - dtypes of elements smaller than a byte, which no message has;
//! - dimensions whose product is over `isize::MAX` when zeros are left out, as in a message;
//! - white space before the header, and tensors that are arrays of their three values: serde takes
//!   them, the format does not;
//! - headers nested deeper than 128 levels;
//! - the two entries of `__metadata__` below that hold something else.
//!
//! Of a key that it does not know it checks the syntax of the value, and skips it.
//!
//! # What becomes of what
//!
//! | message | file |
//! |---|---|
//! | a tensor | one of its name |
//! | the order of the tensors | the order in the header; their bytes lie by size of element, the largest first, so that each is aligned to it |
//! | member 2 of the list `skip` | a tensor `skip.2`, and `skip` among the names in [`LISTS_ENTRY`] of `__metadata__`; a hole is a number left out |
//! | a scalar that is a string | an entry of `__metadata__` |
//! | any other scalar | an entry that is its JSON text, and its key among those in [`JSON_ENTRY`] |
//!
//! So a message comes back as it was, in its own order, and other readers see names, tensors and
//! texts without knowing any of this. Files of others have neither of the two entries: each of
//! their tensors is a plain one, also `layers.0`, and each text a scalar.
//!
//! A message that cannot come back is refused with a [`WriteError`] which says the place:
//!
//! - a plain tensor `skip.2` beside a list `skip`; a tensor named `__metadata__`;
//! - two scalars of one key (Python writes that of a dictionary with the keys `1` and `"1"`); a key
//!   with a lone surrogate; a scalar under one of the two names above;
//! - `complex128`, which the format does not have.
//!
//! Names are any text: escapes are those of JSON on either side, and a name is not taken for a path.
//!
//! # dtypes
//!
//! | here | there | | here | there |
//! |---|---|---|---|---|
//! | `bool` | `BOOL` | | `float16`, `float32`, `float64` | `F16`, `F32`, `F64` |
//! | `uint8`, `uint16`, `uint32`, `uint64` | `U8`, `U16`, `U32`, `U64` | | `bfloat16` | `BF16` |
//! | `int8`, `int16`, `int32`, `int64` | `I8`, `I16`, `I32`, `I64` | | `complex64` | `C64` |
//! | `float8_e4m3fn`, `float8_e5m2` | `F8_E4M3`, `F8_E5M2` | | `complex128` | refused |
//! | `float8_e4m3fnuz`, `float8_e5m2fnuz` | `F8_E4M3FNUZ`, `F8_E5M2FNUZ` | | `float8_e8m0fnu` | `F8_E8M0` |
//! | refused | `F4`, `F6_E2M3`, `F6_E3M2` | | | |
//!
//! # Examples
//!
//! A message becomes a file, and the file a message whose frames lie in it.
//!
//! ```
//! use tensorwire::interop::safetensors::{self, SafeTensors};
//! use tensorwire::message::{Decoder, Scalar};
//! use tensorwire::TensorView;
//!
//! let tensors = [
//!     TensorView::from_slice("mask", &[3], &[true, false, true])?,
//!     TensorView::from_slice("latents", &[2, 3], &[0.5_f32; 6])?,
//! ];
//! let scalars = [("request_id", Scalar::from("r1")), ("seed", Scalar::from(42))];
//! let bytes = safetensors::encode_to_vec(&tensors, &scalars)?; // or `write_to` a file
//!
//! let file = SafeTensors::decode(&bytes)?; // or a map of the file
//! assert_eq!(file.tensor("latents").ok_or("no latents")?.shape(), [2, 3]);
//! assert_eq!(file.scalars().field("seed")?.as_i64()?, 42);
//!
//! let metadata = file.to_metadata()?;
//! let frames = file.frames(&metadata);
//! let mut decoder = Decoder::new();
//! let message = decoder.decode(&frames)?;
//! let latents = message.tensor("latents").ok_or("no latents")?;
//! assert!(bytes.as_ptr_range().contains(&latents.bytes().as_ptr()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod index;
mod writer;

use core::fmt;

use std::vec::Vec;

pub use error::{Error, ErrorKind, Key, WriteError};
pub use index::{Entry, Index};
pub use writer::{Plan, encode_to_vec, write_to};

use crate::dtype::DType;
use crate::error::EncodeError;
use crate::json::Object;
use crate::message;
use crate::tensor::TensorView;

/// The longest header in bytes, here as in the other readers: it bounds what a file can ask for
/// before any of its tensors.
pub const MAX_HEADER_LEN: usize = 100_000_000;

/// The length in bytes of what stands before the header.
pub const PREFIX_LEN: usize = 8;

/// The entry of `__metadata__` with the keys of those entries that are JSON text, as a JSON array.
pub const JSON_ENTRY: &str = "tensorwire.json";

/// The entry of `__metadata__` with the names of the lists, as a JSON array.
pub const LISTS_ENTRY: &str = "tensorwire.lists";

/// Where the format keeps texts, among the names of the tensors.
const METADATA: &str = "__metadata__";

/// Each dtype with its name in a file.
const NAMES: &[(DType, &str)] = &[
    (DType::BFloat16, "BF16"),
    (DType::Bool, "BOOL"),
    (DType::Complex64, "C64"),
    (DType::Float16, "F16"),
    (DType::Float32, "F32"),
    (DType::Float64, "F64"),
    (DType::Float8E4M3Fn, "F8_E4M3"),
    (DType::Float8E4M3Fnuz, "F8_E4M3FNUZ"),
    (DType::Float8E5M2, "F8_E5M2"),
    (DType::Float8E5M2Fnuz, "F8_E5M2FNUZ"),
    (DType::Float8E8M0Fnu, "F8_E8M0"),
    (DType::Int16, "I16"),
    (DType::Int32, "I32"),
    (DType::Int64, "I64"),
    (DType::Int8, "I8"),
    (DType::UInt16, "U16"),
    (DType::UInt32, "U32"),
    (DType::UInt64, "U64"),
    (DType::UInt8, "U8"),
];

/// Dtypes of a file whose elements have no bytes of their own.
const SMALLER_THAN_A_BYTE: &[&str] = &["F4", "F6_E2M3", "F6_E3M2"];

/// Returns the name that a dtype has in a file, or `None` if the format does not have it.
///
/// # Examples
///
/// ```
/// use tensorwire::DType;
/// use tensorwire::interop::safetensors::dtype_name;
///
/// assert_eq!(dtype_name(DType::BFloat16), Some("BF16"));
/// assert_eq!(dtype_name(DType::Complex128), None);
/// ```
#[must_use]
pub fn dtype_name(dtype: DType) -> Option<&'static str> {
    let row = NAMES.iter().find(|(known, _)| *known == dtype);
    row.map(|&(_, name)| name)
}

/// A file as a message: its tensors where they lie, and its scalars.
pub struct SafeTensors<'a> {
    index: Index<'a>,
    tensors: Vec<TensorView<'a>>,
}

impl<'a> SafeTensors<'a> {
    /// Checks `bytes`, which are a whole file, and sees the tensors in it.
    ///
    /// Works in time and memory linear in the header, but for putting the tensors in the order of
    /// their bytes; their bytes are not looked at.
    ///
    /// # Errors
    ///
    /// As [`Index::decode`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let index = Index::decode(bytes, crate::convert::to_u64(bytes.len()))?;
        let view = |entry: &Entry<'a>| {
            // Both are within the file, which lies in memory.
            let start = usize::try_from(entry.range().start).ok()?;
            let end = usize::try_from(entry.range().end).ok()?;
            TensorView::new(entry.descriptor(), bytes.get(start..end)?).ok()
        };
        let tensors = index.entries().iter().filter_map(view).collect();
        Ok(Self { index, tensors })
    }

    /// Returns the tensors, in the order of the header.
    #[must_use]
    pub fn tensors(&self) -> &[TensorView<'a>] {
        &self.tensors
    }

    /// Returns the plain tensor of this name, found by a walk over all of them.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorView<'a>> {
        let named =
            |tensor: &&TensorView<'_>| tensor.list_index().is_none() && tensor.name() == name;
        self.tensors.iter().find(named).copied()
    }

    /// Returns the scalars: the texts of `__metadata__`, and what is JSON there as that.
    #[must_use]
    pub fn scalars(&self) -> Object<'_> {
        self.index.scalars()
    }

    /// Returns frame 0 of the message.
    ///
    /// A reader's [`Limits`](crate::Limits) are its own, as for
    /// [`encode_into`](crate::message::encode_into): a file may have more tensors, and longer
    /// names, than the default ones let through.
    ///
    /// # Errors
    ///
    /// As [`encode_to_vec`](crate::message::encode_to_vec); of what was read, none.
    pub fn to_metadata(&self) -> Result<Vec<u8>, EncodeError> {
        message::encode_to_vec(&self.tensors, &self.scalars())
    }

    /// Returns all frames of the message: the one given, which is frame 0, and the tensors' bytes where they lie.
    #[must_use]
    pub fn frames<'s>(&self, metadata: &'s [u8]) -> Vec<&'s [u8]>
    where
        'a: 's,
    {
        message::frames(metadata, &self.tensors)
    }
}

impl fmt::Debug for SafeTensors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SafeTensors")
            .field("tensors", &self.tensors)
            .field("scalars", &self.scalars())
            .finish()
    }
}

#[cfg(test)]
mod tests;
