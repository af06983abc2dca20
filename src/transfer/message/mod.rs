//! Control messages: who asks whom for what, read and written.
//!
//! ```text
//!  frame 0   __transfer__                    just these 12 bytes: CONTROL_MARKER
//!  frame 1   the payload: one JSON object    no white space when written
//!            {"msg_type":"transfer_pushed","request_id":"r1"}
//!  frame 2.. ignored
//! ```
//!
//! A message whose frame 0 is anything else is no control message:
//! [`classify`](crate::message::classify) tells them apart, and an answer starts with
//! [`CONTROL_MARKER`]. This is the format of
//! sglang's disaggregated diffusion transport (`transport/protocol.py`, release
//! 0.5.23).
//!
//! # The messages
//!
//! Their keys after `msg_type`, in the order written; any order is read. `Role`
//! stands for an instance.
//!
//! | `msg_type` | from, to | keys |
//! |---|---|---|
//! | `transfer_register` | role, head node | `role`, `session_id`, `pool_ptr`, `pool_size`, `work_endpoint`?, `preallocated_slots`? |
//! | `transfer_register_ack` | declared, never sent | none known |
//! | `transfer_staged` | sender, head node | `request_id`, `data_size`, `manifest`, `session_id`, `pool_ptr`, `slot_offset`, `scalar_fields`?? |
//! | the same of an image encoder | | `request_id`, `staged_for_decoder`, `session_id`, `pool_ptr`, `slot_offset`, `data_size`, `manifest`, `scalar_fields`?? |
//! | `transfer_alloc` | head node, receiver | `request_id`, `data_size`, `source_role`? |
//! | `transfer_allocated` | receiver, head node | `request_id`, `session_id`, `pool_ptr`, `slot_offset`, `slot_size` |
//! | `transfer_push` | head node, sender | `request_id`, `dest_session_id`, `dest_addr`, `transfer_size` |
//! | `transfer_pushed` | sender, head node | `request_id` |
//! | `transfer_ready` | head node, receiver | `request_id`, `manifest`, `slot_offset`, `scalar_fields`? |
//! | `transfer_done` | role, head node | `request_id`, `error`? |
//! | the same of a denoiser that succeeded | | `request_id`, `staged_for_decoder`, `session_id`, `pool_ptr`, `slot_offset`, `data_size`, `manifest`, `scalar_fields`?? |
//!
//! Newer peers also send `transfer_abort`, which release 0.5.23 does not know: it is read as
//! [`Control::Unknown`], and [`Unknown::abort`] makes an [`Abort`] of it.
//!
//! A key with `?` may be absent on read, and is written always; with `??`, it is
//! written where it was read. The others are required. Within a
//! `transfer_done`, an `error` that is a text decides: then the request
//! [failed](Outcome::Failed), whatever else is there. Without one,
//! `"staged_for_decoder":true` demands the keys of the second layout, and
//! anything else is [the end](Outcome::Finished).
//!
//! | key | type | absent | what |
//! |---|---|---|---|
//! | `msg_type` | string | refused | which message it is |
//! | `request_id` | string | refused | the request; may be empty |
//! | `role`, `source_role` | string | refused, `""` | the name of a [`Role`](super::Role), unchecked |
//! | `session_id`, `dest_session_id` | string | refused | what the data plane calls an instance |
//! | `work_endpoint` | string | `""` | where an instance takes work |
//! | `pool_ptr`, `pool_size` | `u64` | refused | address and bytes of an instance's pool |
//! | `slot_offset`, `slot_size` | `u64` | refused | bytes from the pool's start, bytes |
//! | `dest_addr`, `transfer_size` | `u64` | refused | address to write to, bytes |
//! | `data_size` | `u64` | refused | bytes of the sender's slot, not of what lies in it |
//! | `manifest` | object | refused | which tensors lie where; its syntax alone is checked |
//! | `scalar_fields` | object | `{}` | the scalars of the request; its syntax alone is checked |
//! | `preallocated_slots` | array | `[]` | objects of `offset`, `size`, `slot_id`, `addr`, each a required `u64` |
//! | `error` | string or null | null | why the request failed |
//! | `staged_for_decoder` | bool | | whether a denoiser staged its output |
//!
//! - A `u64` is a plain non-negative integer: not `-1`, `-0`, `4.0`, `1e2`.
//!   Addresses pass 2^63. They are numbers here, and nothing turns one into a pointer.
//! - Unknown keys are checked for their syntax, kept readable as
//!   [`Extras`], and written again after the known ones in the order
//!   received; those of a preallocated slot stay in the list as it was received.
//! - An unknown `msg_type` is [`Unknown`], a value and no error.
//! - The JSON is Python's, as that of [tensor messages](crate::message): inside
//!   `scalar_fields` stand `NaN`, `Infinity`, integers of any size and keys given twice.
//! - On the fast path the scalars of a `transfer_ready` hold `_prealloc_slot_id`,
//!   last: see [`Ready::preallocated_slot`].
//!
//! # Examples
//!
//! A head node's answer to `transfer_staged`, on the fast path:
//!
//! ```
//! use tensorwire::transfer::Control;
//! use tensorwire::transfer::message::{PreallocatedSlot, Push, Ready};
//!
//! # let payload = br#"{"msg_type":"transfer_staged","request_id":"r1","data_size":1048576,"manifest":{},"session_id":"h:1","pool_ptr":4096,"slot_offset":0,"scalar_fields":{}}"#;
//! let Control::Staged(staged) = Control::decode(payload)? else {
//!     return Err("another type".into());
//! };
//! // A free slot of the receiver, as it registered it.
//! let (session_id, slot) = ("h:2", PreallocatedSlot::new(1 << 20, 1 << 20, 7, 0xffff_8000_0010_0000));
//!
//! // To the sender; and to the receiver, once the sender has said `transfer_pushed`.
//! let push = Push::new(staged.request_id, session_id, slot.addr, staged.data_size);
//! let scalars = staged.scalar_fields.unwrap_or_default();
//! let ready = Ready::new(staged.request_id, staged.manifest, slot.offset, scalars)
//!     .with_preallocated_slot(slot.slot_id);
//! assert!(Control::from(push).encoded_len() < 256);
//! let mut buffer = [0; 256];
//! assert_eq!(
//!     Control::from(ready).encode_into(&mut buffer)?,
//!     br#"{"msg_type":"transfer_ready","request_id":"r1","manifest":{},"slot_offset":1048576,"scalar_fields":{"_prealloc_slot_id":7}}"#,
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Untrusted input
//!
//! A message is validated whole before it is handed out; the work is linear in its bytes.
//! What is in it is read again from the payload when asked
//! for: from memory that another process can write to, copy the payload first.
//! That it is well-formed says nothing of whether it is true: that an address
//! lies in a pool, and a slot is of the request, is for who uses it to check.
//!
//! # Where the Python reader differs
//!
//! It checks no types and fills in what is missing. What it takes and this crate
//! refuses, each with its reason:
//!
//! | input | Python | here | reason |
//! |---|---|---|---|
//! | a required key is absent | `""`, 0 or `{}` | `MissingKey` | address 0 is none, and an empty manifest loses the tensors |
//! | `msg_type` absent | logged as unknown | `MissingKey` | no message of this protocol |
//! | another type, `null` for an object or a number | goes on with it | `WrongType` | exact types |
//! | `-1`, `-0`, `4.0`, `1e2`, `NaN` for a `u64` | goes on with it | `BadInteger` | no writer emits them |
//! | an integer over `u64::MAX` | goes on with it | `IntegerOverflow` | no address is that large |
//! | `staged_for_decoder` of another type | true or false | `WrongType` | exact types |
//! | a schema key twice | the last wins | `DuplicateKey` | two readers would disagree on which |
//! | `NaN`, `Infinity` outside the scalars | numbers | `NonFinite`, `BadInteger` | no writer emits them there |
//! | a payload over 1 MiB, nesting over 128 levels | any, about 1000 | `MetadataLimit`, `DepthLimit` | bounded work; [`Limits`](crate::Limits) move the caps |
//! | UTF-16, UTF-32, a byte order mark | detected | `InvalidUtf8`, `Syntax` | one encoding |
//! | a surrogate as raw bytes (`ED A0 80`) | decoded | `InvalidUtf8` | UTF-8 has none; Python's writer escapes them |
//!
//! What it reads otherwise, or not at all:
//!
//! | input | Python | here | reason |
//! |---|---|---|---|
//! | `"error":""` | success | [`Outcome::Failed`] | its writer writes a text only for what failed |
//! | an unknown `msg_type` | logged and dropped | [`Unknown`] | newer peers are heard |
//! | integers of more than 4300 digits | fails | raw text | nothing is converted unasked |

mod decode;
mod encode;
mod extras;
mod fields;
mod keys;
mod kind;
mod slots;
mod types;
mod unknown;

pub use extras::Extras;
pub use slots::{PreallocatedSlot, PreallocatedSlots, SlotIter};
#[cfg(feature = "std")]
pub(super) use types::SLOT_ID;
pub use types::{Alloc, Allocated, Done, Location, Outcome, Push, Pushed, Ready, Register, Staged};
pub use unknown::{Abort, RegisterAck, Unknown};

use crate::error::{DecodeError, DecodeErrorKind, EncodeError, SchemaKey};
use crate::json::{Str, Value, writer};
use crate::message::{CONTROL_MARKER, Options};
use kind::Kind;

/// A control message, borrowed from the payload it was read from.
///
/// # Examples
///
/// ```
/// use tensorwire::message::CONTROL_MARKER;
/// use tensorwire::transfer::Control;
/// use tensorwire::transfer::message::Push;
///
/// let push = Control::from(Push::new("r1", "10.0.0.2:15001", 0xffff_8000_0000_0000, 4096));
/// let mut buffer = [0; 256];
/// let payload = push.encode_into(&mut buffer)?;
///
/// let frames = [CONTROL_MARKER, payload];
/// let Control::Push(push) = Control::from_frames(&frames)? else {
///     return Err("another type".into());
/// };
/// assert!(push.request_id == "r1");
/// assert_eq!((push.dest_addr, push.transfer_size), (0xffff_8000_0000_0000, 4096));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Control<'a> {
    /// `transfer_alloc`: the head node asks a receiver for a slot.
    Alloc(Alloc<'a>),
    /// `transfer_allocated`: the receiver's answer.
    Allocated(Allocated<'a>),
    /// `transfer_done`: an instance is through with a request.
    Done(Done<'a>),
    /// `transfer_push`: the head node tells a sender where to.
    Push(Push<'a>),
    /// `transfer_pushed`: the sender's answer.
    Pushed(Pushed<'a>),
    /// `transfer_ready`: the head node tells a receiver that its slot is filled.
    Ready(Ready<'a>),
    /// `transfer_register`: an instance says who and where it is.
    Register(Register<'a>),
    /// `transfer_register_ack`: declared by the Python side and never sent.
    RegisterAck(RegisterAck<'a>),
    /// `transfer_staged`: a sender's output lies in its slot.
    Staged(Staged<'a>),
    /// Any other type, `transfer_abort` among them: [`Unknown::abort`] reads that.
    Unknown(Unknown<'a>),
}

impl<'a> Control<'a> {
    /// Reads the payload of a control message, which is its frame 1.
    ///
    /// # Errors
    ///
    /// - [`DecodeErrorKind::InvalidUtf8`], [`DecodeErrorKind::Syntax`],
    ///   [`DecodeErrorKind::TrailingData`]: it is not one JSON document.
    /// - [`DecodeErrorKind::NonFinite`]: it is Python's outside the scalars.
    /// - [`DecodeErrorKind::MissingKey`], at the object that lacks it.
    /// - [`DecodeErrorKind::DuplicateKey`], at the second one.
    /// - [`DecodeErrorKind::WrongType`], [`DecodeErrorKind::BadInteger`],
    ///   [`DecodeErrorKind::IntegerOverflow`], at the value.
    /// - [`DecodeErrorKind::MetadataLimit`], [`DecodeErrorKind::DepthLimit`].
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        Self::decode_with(payload, &Options::new())
    }

    /// Reads the payload as `options` have it: the caps on metadata and nesting, and strict JSON.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode); strict JSON refuses `NaN` and its like in the scalars too.
    pub fn decode_with(payload: &'a [u8], options: &Options) -> Result<Self, DecodeError> {
        decode::decode(payload, options)
    }

    /// Reads a whole message: frame 0 is the marker, frame 1 the payload, what follows is ignored.
    ///
    /// # Errors
    ///
    /// [`DecodeErrorKind::NoFrames`], [`DecodeErrorKind::NotControlMessage`],
    /// [`DecodeErrorKind::NoPayload`], all at 0; and as [`decode`](Self::decode).
    pub fn from_frames<F: AsRef<[u8]>>(frames: &'a [F]) -> Result<Self, DecodeError> {
        Self::from_frames_with(frames, &Options::new())
    }

    /// Reads a whole message as `options` have it.
    ///
    /// # Errors
    ///
    /// As [`from_frames`](Self::from_frames) and [`decode_with`](Self::decode_with).
    pub fn from_frames_with<F: AsRef<[u8]>>(
        frames: &'a [F],
        options: &Options,
    ) -> Result<Self, DecodeError> {
        let mut frames = frames.iter().map(AsRef::as_ref);
        let kind = match (frames.next(), frames.next()) {
            (None, _) => DecodeErrorKind::NoFrames,
            (Some(first), _) if first != CONTROL_MARKER => DecodeErrorKind::NotControlMessage,
            (_, None) => DecodeErrorKind::NoPayload,
            (_, Some(payload)) => return Self::decode_with(payload, options),
        };
        Err(DecodeError::new(kind, 0))
    }

    /// Returns its type, as it is on the wire.
    #[must_use]
    pub fn msg_type(&self) -> Str<'a> {
        let kind = match self {
            Self::Alloc(_) => Kind::Alloc,
            Self::Allocated(_) => Kind::Allocated,
            Self::Done(_) => Kind::Done,
            Self::Push(_) => Kind::Push,
            Self::Pushed(_) => Kind::Pushed,
            Self::Ready(_) => Kind::Ready,
            Self::Register(_) => Kind::Register,
            Self::RegisterAck(_) => Kind::RegisterAck,
            Self::Staged(_) => Kind::Staged,
            Self::Unknown(unknown) => return unknown.msg_type,
        };
        kind.name().into()
    }

    /// Returns the request that it is about; `None` for a registration, and where a
    /// message of no schema has no text under that key.
    #[must_use]
    pub fn request_id(&self) -> Option<Str<'a>> {
        match self {
            Self::Alloc(alloc) => Some(alloc.request_id),
            Self::Allocated(allocated) => Some(allocated.request_id),
            Self::Done(done) => Some(done.request_id),
            Self::Push(push) => Some(push.request_id),
            Self::Pushed(pushed) => Some(pushed.request_id),
            Self::Ready(ready) => Some(ready.request_id),
            Self::Register(_) => None,
            Self::Staged(staged) => Some(staged.request_id),
            Self::RegisterAck(_) | Self::Unknown(_) => {
                let id = self.extra(SchemaKey::RequestId.name())?;
                id.as_str().ok()
            }
        }
    }

    /// Returns the members that the schema does not know: of an unknown type, all but `msg_type`.
    #[must_use]
    pub const fn extras(&self) -> Extras<'a> {
        match self {
            Self::Alloc(alloc) => alloc.extras,
            Self::Allocated(allocated) => allocated.extras,
            Self::Done(done) => done.extras,
            Self::Push(push) => push.extras,
            Self::Pushed(pushed) => pushed.extras,
            Self::Ready(ready) => ready.extras,
            Self::Register(register) => register.extras,
            Self::RegisterAck(ack) => ack.extras,
            Self::Staged(staged) => staged.extras,
            Self::Unknown(unknown) => Extras::all(unknown.message),
        }
    }

    /// Returns the member `key` that the schema does not know.
    #[must_use]
    pub fn extra(&self, key: &str) -> Option<Value<'a>> {
        self.extras().get(key)
    }

    /// Returns the length of the payload that [`encode_into`](Self::encode_into) writes, in bytes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        writer::length(|writer| encode::put(self, writer))
    }

    /// Writes the payload to the start of `buffer`, byte for byte as Python does, and
    /// gives that part of it.
    ///
    /// Objects that were received are written as they stand. A reader's
    /// [`Limits`](crate::Limits) are its own: a payload over 1 MiB, or nested deeper
    /// than 128 levels, is written, and refused by a reader with the default caps.
    ///
    /// # Errors
    ///
    /// [`EncodeError::BufferTooSmall`] with the length needed; then `buffer` holds
    /// zeros, which is no message.
    pub fn encode_into<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b mut [u8], EncodeError> {
        writer::write(buffer, |writer| encode::put(self, writer))
    }

    /// Writes the payload into a new vector of just its length.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_vec(&self) -> alloc::vec::Vec<u8> {
        writer::to_vec(|writer| encode::put(self, writer))
    }
}

macro_rules! from_structs {
    ($($name:ident)+) => {$(
        impl<'a> From<$name<'a>> for Control<'a> {
            fn from(message: $name<'a>) -> Self {
                Self::$name(message)
            }
        }
    )+};
}

from_structs! { Alloc Allocated Done Push Pushed Ready Register RegisterAck Staged Unknown }
