//! Control messages: `__transfer__` and one JSON object.

use crate::error::{DecodeError, EncodeError};
use crate::json::{Object, Str, Value};
use crate::message::Options;

/// A control message, borrowed from the payload it was read from.
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
    /// Any other type.
    Unknown(Unknown<'a>),
}

impl<'a> Control<'a> {
    /// Reads the payload of a control message, which is its frame 1.
    ///
    /// # Errors
    ///
    /// See [`DecodeErrorKind`](crate::error::DecodeErrorKind).
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        Self::decode_with(payload, &Options::new())
    }

    /// Reads the payload under the caps of `options`.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub fn decode_with(payload: &'a [u8], options: &Options) -> Result<Self, DecodeError> {
        let _ = (payload, options);
        todo!()
    }

    /// Returns the request that it is about; `None` for a registration, and for an unknown type without that key.
    #[must_use]
    pub fn request_id(&self) -> Option<Str<'a>> {
        todo!()
    }

    /// Returns the member `key` that the schema does not know.
    #[must_use]
    pub fn extra(&self, key: &str) -> Option<Value<'a>> {
        let _ = key;
        todo!()
    }

    /// Returns the length of the payload that [`encode_into`](Self::encode_into) writes, in bytes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        todo!()
    }

    /// Writes the payload, byte for byte as Python does, and returns what was written.
    ///
    /// # Errors
    ///
    /// [`EncodeError::BufferTooSmall`].
    pub fn encode_into<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b mut [u8], EncodeError> {
        let _ = buffer;
        todo!()
    }

    /// Writes the payload into a new vector.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_vec(&self) -> alloc::vec::Vec<u8> {
        todo!()
    }
}

/// Where a slot is: a session's pool, and the place in it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Location<'a> {
    /// The data plane's name of the instance.
    pub session_id: Str<'a>,
    /// Address of the pool's first byte: a number, never a pointer here.
    pub pool_ptr: u64,
    /// Bytes from there to the slot.
    pub slot_offset: u64,
}

/// `transfer_alloc`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Alloc<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// Bytes that the slot has to hold.
    pub data_size: u64,
    /// The role that they come from.
    pub source_role: Str<'a>,
}

/// `transfer_allocated`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Allocated<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// The slot.
    pub location: Location<'a>,
    /// Its length in bytes.
    pub slot_size: u64,
}

/// `transfer_push`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Push<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// The receiver's session.
    pub dest_session_id: Str<'a>,
    /// The address to write to.
    pub dest_addr: u64,
    /// Bytes to move.
    pub transfer_size: u64,
}

/// `transfer_pushed`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Pushed<'a> {
    /// The request.
    pub request_id: Str<'a>,
}

/// `transfer_ready`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ready<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// Which tensors lie where in the slot.
    pub manifest: Object<'a>,
    /// Bytes from the pool's start to the slot.
    pub slot_offset: u64,
    /// The scalars of the request, `_prealloc_slot_id` among them on the fast path.
    pub scalar_fields: Object<'a>,
}

/// `transfer_staged`, also what a [`Done`] says that is staged for the next role.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Staged<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// Size of the slot in bytes, which is at least that of the payload.
    pub data_size: u64,
    /// Which tensors lie where in the slot.
    pub manifest: Object<'a>,
    /// The slot.
    pub location: Location<'a>,
    /// The scalars of the request; absent in the oldest generation.
    pub scalar_fields: Option<Object<'a>>,
}

/// `transfer_done`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Done<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// How it ended.
    pub outcome: Outcome<'a>,
}

/// How a request ended at an instance.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// It failed, for this reason.
    Failed(Str<'a>),
    /// It is finished.
    Finished,
    /// Its output is staged for the next role.
    Staged(Staged<'a>),
}

/// `transfer_register`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Register<'a> {
    /// What the instance does.
    pub role: Str<'a>,
    /// The data plane's name of it.
    pub session_id: Str<'a>,
    /// Address of its pool's first byte.
    pub pool_ptr: u64,
    /// Length of its pool in bytes.
    pub pool_size: u64,
    /// Where it takes work: the endpoint that the head node knows it by.
    pub work_endpoint: Str<'a>,
    /// Slots that the head node may give away unasked.
    pub preallocated_slots: PreallocatedSlots<'a>,
}

/// A slot that a receiver lets the head node give away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PreallocatedSlot {
    /// Bytes from the pool's start.
    pub offset: u64,
    /// Length in bytes.
    pub size: u64,
    /// The receiver's number of it.
    pub slot_id: u64,
    /// Its address: the pool's plus the offset.
    pub addr: u64,
}

/// The preallocated slots of a registration: received, or the caller's.
#[derive(Clone, Copy, Debug)]
pub struct PreallocatedSlots<'a> {
    slots: core::marker::PhantomData<&'a ()>,
}

/// `transfer_register_ack`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RegisterAck<'a> {
    /// The whole message.
    pub message: Object<'a>,
}

/// A message of a type that is not known here.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Unknown<'a> {
    /// Its type.
    pub msg_type: Str<'a>,
    /// The whole message.
    pub message: Object<'a>,
}
