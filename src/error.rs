//! What can be wrong with what a peer sent, and with what the caller asked for.
//!
//! The peer's faults ([`DecodeError`], and [`ValueError`] for a scalar of an
//! unexpected type) are apart from the caller's ([`EncodeError`],
//! [`CastError`]). All are small and `Copy`, and hold numbers and at most one
//! byte of the peer's text (with feature `serde`, `DeserializeError` up to 88
//! bytes of it, escaped): an error outlives the buffer it describes and is safe
//! to log.

mod cast;
mod decode;
#[cfg(feature = "serde")]
mod deserialize;
mod encode;
mod value;

pub use cast::CastError;
pub use decode::{DecodeError, DecodeErrorKind, SchemaKey, SyntaxError};
#[cfg(feature = "serde")]
pub use deserialize::{DeserializeError, DeserializeErrorKind, DeserializeMessage};
pub use encode::EncodeError;
pub use value::{ValueError, ValueErrorKind};
