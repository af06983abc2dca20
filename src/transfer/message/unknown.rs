//! Messages of no schema: of newer peers, and the one type that is declared and never sent.

use super::Extras;
use super::encode::Members;
use super::keys::TYPE_ALONE;
use super::kind::Kind;
use crate::error::{EncodeError, SchemaKey};
use crate::json::writer::{self, Writer};
use crate::json::{Object, Str};

/// `transfer_register_ack`: declared by the Python side and never sent, and of no known keys.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RegisterAck<'a> {
    /// What was said.
    pub extras: Extras<'a>,
}

impl RegisterAck<'_> {
    /// Makes one that says nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            extras: Extras::NONE,
        }
    }
}

/// A message of a type that is not known here.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Unknown<'a> {
    /// Its type.
    pub msg_type: Str<'a>,
    /// The whole message. When written, its type comes first.
    pub message: Object<'a>,
}

impl<'a> Unknown<'a> {
    /// Makes one of a type and the other members; `None` if the type is known here, and has a struct of its own.
    #[must_use]
    pub fn new(msg_type: impl Into<Str<'a>>, members: Object<'a>) -> Option<Self> {
        let msg_type = msg_type.into();
        let unknown = Kind::from_text(msg_type) == Kind::Unknown;
        unknown.then_some(Self {
            msg_type,
            message: members,
        })
    }

    /// Reads it as an [`Abort`]; `None` if it is of another type or names no request.
    ///
    /// What is no text in it is empty.
    #[must_use]
    pub fn abort(&self) -> Option<Abort<'a>> {
        if self.msg_type != Abort::TYPE {
            return None;
        }
        let text = |key| self.message.get(key)?.as_str().ok();
        Some(Abort {
            request_id: text(SchemaKey::RequestId.name())?,
            transfer_id: text("transfer_id").unwrap_or_else(|| "".into()),
            reason: text("reason").unwrap_or_else(|| "".into()),
        })
    }
}

/// `transfer_abort`: a peer gives a request up, so that the others can free what they hold for it.
///
/// Newer peers send it. Those of release 0.5.23 do not know it, log it and go on,
/// so that it may be sent to them too.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::Control;
/// use tensorwire::transfer::message::Abort;
///
/// let mut buffer = [0; 128];
/// let payload = Abort::new("r1", "t7", "timed out").encode_into(&mut buffer)?;
/// let Control::Unknown(message) = Control::decode(payload)? else {
///     return Err("a known type".into());
/// };
/// let abort = message.abort().ok_or("no abort")?;
/// assert!(abort.request_id == "r1" && abort.reason == "timed out");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Abort<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// The transfer, where there are several of a request; empty where it was not said.
    pub transfer_id: Str<'a>,
    /// Why; empty where it was not said.
    pub reason: Str<'a>,
}

impl<'a> Abort<'a> {
    const TYPE: &'static str = "transfer_abort";

    /// Makes one of its parts.
    #[must_use]
    pub fn new(
        request_id: impl Into<Str<'a>>,
        transfer_id: impl Into<Str<'a>>,
        reason: impl Into<Str<'a>>,
    ) -> Self {
        Self {
            request_id: request_id.into(),
            transfer_id: transfer_id.into(),
            reason: reason.into(),
        }
    }

    /// Returns the length of the payload in bytes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        writer::length(|writer| self.put(writer))
    }

    /// Writes the payload to the start of `buffer`, and gives that part of it.
    ///
    /// # Errors
    ///
    /// [`EncodeError::BufferTooSmall`] with the length needed; then `buffer` holds
    /// zeros, which is no message.
    pub fn encode_into<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b mut [u8], EncodeError> {
        writer::write(buffer, |writer| self.put(writer))
    }

    /// Writes the payload into a new vector.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_vec(&self) -> alloc::vec::Vec<u8> {
        writer::to_vec(|writer| self.put(writer))
    }

    fn put(&self, writer: &mut Writer<'_>) {
        let mut members = Members::open(writer, Self::TYPE.into());
        members.text(SchemaKey::RequestId, self.request_id);
        members.named("transfer_id", self.transfer_id);
        members.named("reason", self.reason);
        members.close(&Extras::NONE, TYPE_ALONE);
    }
}
