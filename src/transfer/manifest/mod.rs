//! The manifest: which tensors lie where in a slot.
//!
//! A slot is a piece of memory that is moved whole; the manifest goes along in
//! a control message and says what is in it:
//!
//! ```text
//! {"latents":[{"offset":0,"shape":[1,16,21,30,52],"dtype":"bfloat16"}],
//!  "skip":[{"offset":1048576,"shape":[3],"dtype":"bool","list_index":0},
//!          {"offset":1049088,"shape":[8],"dtype":"int64","list_index":2}]}
//!
//!  slot  0                     1048576   1049088
//!        +-----------------+---+----+----+-----------+--------
//!        | latents         |gap|sk.0|gap | skip.2    | unused
//!        +-----------------+---+----+----+-----------+--------
//! ```
//!
//! - A field is the list of its entries. With a `list_index` in each it is a
//!   list, which may have holes; without, it is a plain tensor of one entry.
//!   Without entries it is absent.
//! - `offset` is in bytes from the start of the slot. [`Plan`] puts each tensor
//!   at the next multiple of [`ALIGNMENT`]; a reader takes any offset, any order
//!   and any gap.
//! - There is no length: it is product(shape) * item size.
//! - A shape with a zero in it has no bytes, which overlap nothing.
//! - Unknown keys of an entry are skipped, their syntax checked.
//!
//! This is the format of sglang's disaggregated diffusion transport
//! (`transport/buffer.py`, release 0.5.23), written byte for byte as it does.
//!
//! # Untrusted input
//!
//! Everything is checked before anything is handed out: the schema, the names,
//! that each tensor lies inside of the slot, and that no two share a byte. The
//! work is linear in the bytes of the manifest, but for names and overlaps: those
//! are sorts, n log n comparisons of at most
//! [`Limits::descriptors`](crate::Limits::descriptors) entries. All
//! [`Limits`](crate::Limits) hold; of the depth, the manifest's object is level 1,
//! and the four levels of its own keys always pass.
//!
//! The slot's bytes are not looked at: they become [`TensorView`]s, plain data
//! at any alignment.
//!
//! # Where the Python reader differs
//!
//! What it takes and this crate refuses, besides what
//! [messages](crate::message#where-the-python-reader-differs) are refused for:
//!
//! | input | Python | here | reason |
//! |---|---|---|---|
//! | an offset below 0 | reads the slot before | `BadInteger` | another request's bytes |
//! | an offset `-0` | a number | `BadInteger` | no writer emits it |
//! | an offset `true` | a number | `WrongType` | exact types |
//! | a tensor that ends past the slot | reads the slot behind | `OutOfSlot` | another request's bytes |
//! | two tensors that share bytes | both | `Overlap` | no writer emits it |
//! | several entries without `list_index` | the first | `DuplicateField` | two readers would disagree on which |
//! | a name twice | the last wins | `DuplicateField` | two readers would disagree on which |
//! | `list_index` below 0 | counts from the end, or fails | `BadListIndex` | no writer emits it |
//! | `list_index` in some entries only | fails | `MixedField` | the same verdict |
//!
//! What it refuses and this crate takes: a tensor whose offset is no multiple
//! of its item size.
//!
//! [`TensorView`]: crate::TensorView

mod decode;
#[cfg(feature = "alloc")]
mod decoder;
mod encode;
mod entry;
mod overlap;
mod plan;
mod schema;
mod storage;
mod tensors;

pub use decode::Manifest;
#[cfg(feature = "alloc")]
pub use decoder::Decoder;
pub use encode::{encode_into, encoded_len};
pub use entry::Entry;
pub use plan::{ALIGNMENT, Plan};
pub use storage::Storage;
pub use tensors::{Field, TensorList, Tensors};
