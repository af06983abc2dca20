//! The tensor message: what stands in its frames, decoded and encoded.
//!
//! ```text
//!  frame 0   metadata: one JSON object, no white space when written
//!            {"tensor_descriptors":[D,...],"scalar_fields":{...}}
//!            D = {"field_name":"latents","shape":[1,16,21,30,52],"dtype":"bfloat16","list_index":-1}
//!  frame 1   the bytes of descriptor 0: C-contiguous, little-endian, product(shape) * item size
//!  frame 2   the bytes of descriptor 1
//!  ...
//! ```
//!
//! - Keys are written in the order shown and read in any; unknown keys are
//!   skipped, their syntax checked.
//! - `list_index` is -1 for a plain tensor, else the place in the list of that
//!   name; absent on read, it is -1. Holes are allowed, any order is.
//! - `scalar_fields` absent on read is `{}`.
//! - `shape` `[]` is one element; a zero in it makes an empty frame.
//! - Tensors and scalars are two name spaces.
//! - A message whose frame 0 is `__transfer__` is a control message;
//!   [`classify`] tells them apart.
//!
//! This is the format of sglang's disaggregated diffusion transport
//! (`transport/codec.py`, release 0.5.23).
//!
//! # Untrusted input
//!
//! Everything is validated before anything is handed out; a failed decode hands
//! out nothing and changes nothing. The work is linear in the bytes of the
//! metadata, but for finding two tensors of one place: that is a sort, n log n
//! comparisons of at most [`Limits::descriptors`](crate::Limits::descriptors)
//! names.
//!
//! Names, dimensions and scalars are read again from the frame when they are
//! asked for. So frames must not change while they are borrowed, which safe Rust
//! sees to. From memory that another process can still write to, copy the
//! metadata before decoding, and a payload before looking at it as anything but
//! plain numbers.
//!
//! # Where the Python reader differs
//!
//! What it takes and this crate refuses, each with its reason:
//!
//! | input | Python | here | reason |
//! |---|---|---|---|
//! | dimension -1 | infers it from the frame | `BadDim` | the frame's length must not be the peer's word for the shape |
//! | dimension -0 | 0 | `BadDim` | no writer emits it |
//! | `list_index` below -1, `-0`, `true`, `-1.0`, `NaN` | plain, or an index | `BadListIndex` | exact types |
//! | `list_index` over 4096 | a list that long | `ListIndexLimit` | one header of 116 bytes costs 7.9 GB there |
//! | one name twice, one list index twice | the last wins | `DuplicateField`, `DuplicateListIndex` | two readers would disagree on which |
//! | a name both plain and list | writes one tensor into the other | `MixedField` | corruption |
//! | a schema key twice | the last wins | `DuplicateKey` | two readers would disagree on which |
//! | `field_name` null or a number (its writer emits an integer name if given one) | a key of that type | `WrongType` | names are text |
//! | a lone surrogate in a name | a string that no UTF-8 holds | `InvalidName` | names are text |
//! | rank over 64 | any | `RankLimit` | where numpy 2 stops |
//! | metadata over 1 MiB, more than 4096 descriptors, a name over 1024 bytes | any | `MetadataLimit`, `DescriptorLimit`, `NameLimit` | bounded work; [`Limits`](crate::Limits) move the caps |
//! | a byte other than 0 and 1 in a `bool` tensor | true | `CastError::InvalidBool` from typed views, not from decoding | no such Rust `bool` |
//! | dimensions whose product without zeros overflows | some accepted | `ShapeOverflow` | no strides fit |
//! | UTF-16, UTF-32, a byte order mark | detected | `InvalidUtf8`, `Syntax` | one encoding |
//! | a surrogate as raw bytes (`ED A0 80`) | decoded | `InvalidUtf8` | UTF-8 has none; Python's writer escapes them |
//! | `NaN`, `Infinity` outside the scalars | numbers | `NonFinite`, `WrongType`, `BadDim` | no writer emits them there |
//! | nesting over 128 levels | to about 1000 | `DepthLimit` | bounded stack |
//! | `scalar_fields` null or a list (the Python writer emits a non-empty list if given one) | handed on | `WrongType` | names lead to scalars |
//! | `tensor_descriptors` `{}` | no tensors | `WrongType` | exact types |
//!
//! What it refuses and this crate takes:
//!
//! | input | Python | here | reason |
//! |---|---|---|---|
//! | a zero in the shape (before 0.5.23) | fails | an empty view | its own writer emits it |
//! | integers of more than 4300 digits among the scalars | fails | raw text | nothing is converted unasked |
//! | `complex64`, `complex128` (before 0.5.23) | unknown | tensors | its newer writer emits them |
//! | `uint16`, `uint32`, `uint64`, `float8_*` | unknown | tensors | torch has them; [`Options::with_generation`] refuses them again |

pub(crate) mod conflicts;
mod decode;
#[cfg(feature = "alloc")]
mod decoder;
pub(crate) mod encode;
mod fields;
mod options;
pub(crate) mod order;
pub(crate) mod parts;
mod scalar;
mod schema;
pub(crate) mod storage;
pub(crate) mod unique;

pub use decode::{Cost, Message, Metadata};
#[cfg(feature = "alloc")]
pub use decoder::Decoder;
pub use encode::{NO_TENSORS, encode_into, encoded_len};
#[cfg(feature = "alloc")]
pub use encode::{encode_to_vec, frames};
pub use fields::{Field, TensorList};
pub use options::Options;
#[cfg(feature = "serde")]
pub use scalar::Serialized;
pub use scalar::{NO_SCALARS, Scalar, ScalarFields, Updated};
pub use storage::Storage;

/// Frame 0 of a control message.
pub const CONTROL_MARKER: &[u8] = b"__transfer__";

/// What kind of message the frames are, by a look at the first bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum MessageKind<'frame> {
    /// A control message of the transfer protocol.
    Control {
        /// Frame 1, unchecked, which is to be one JSON object; empty if there is
        /// none. Frames past it are ignored.
        payload: &'frame [u8],
    },
    /// Neither, such as the work that reaches an encoder, `[request_id, pickle]`:
    /// opaque bytes, to be passed on and never to be unpickled.
    Other,
    /// A tensor message, if it decodes: frame 0 starts a JSON object.
    Tensors,
}

/// Tells a tensor message from a control message, and both from anything else.
///
/// Looks at frame 0 up to its first byte that is no white space.
///
/// # Examples
///
/// ```
/// use tensorwire::message::{MessageKind, classify};
///
/// let frames: [&[u8]; 2] = [b"__transfer__", br#"{"msg_type":"transfer_alloc"}"#];
/// assert!(matches!(classify(&frames), MessageKind::Control { .. }));
/// assert_eq!(classify(&[b"{\"tensor_descriptors\":[]}"]), MessageKind::Tensors);
/// assert_eq!(classify(&["request-1", "\u{80}\u{4}"]), MessageKind::Other);
/// ```
#[must_use]
pub fn classify<F: AsRef<[u8]>>(frames: &[F]) -> MessageKind<'_> {
    let mut frames = frames.iter().map(AsRef::as_ref);
    let first = frames.next().unwrap_or_default();
    if first == CONTROL_MARKER {
        let payload = frames.next().unwrap_or_default();
        return MessageKind::Control { payload };
    }
    let mut bytes = first.iter();
    match bytes.find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        Some(b'{') => MessageKind::Tensors,
        _ => MessageKind::Other,
    }
}
