//! From the payload to the message: first its type, wherever it stands, then its keys.

use super::fields::{Fields, demand, skip_unknown, take_str};
use super::keys::{
    ALLOC, ALLOCATED, DONE_ENDED, Key, Keys, PUSH, PUSHED, READY, REGISTER, RESULT, STAGED,
    TYPE_ALONE,
};
use super::kind::Kind;
use super::types::SLOT_ID;
use super::{
    Alloc, Allocated, Control, Done, Extras, Location, Outcome, Push, Pushed, Ready, Register,
    RegisterAck, Staged, Unknown,
};
use crate::error::{DecodeError, DecodeErrorKind, SchemaKey};
use crate::json::cursor::Cursor;
use crate::json::{Object, Str, Value, ValueType};
use crate::message::Options;

/// Reads the payload of a control message.
pub(super) fn decode<'a>(payload: &'a [u8], options: &Options) -> Result<Control<'a>, DecodeError> {
    let (limit, actual) = (options.limits().metadata_bytes(), payload.len());
    if actual > limit {
        let kind = DecodeErrorKind::MetadataLimit { limit, actual };
        return Err(DecodeError::new(kind, 0));
    }
    let mut cursor = Cursor::from_bytes(payload)?;
    cursor.skip_whitespace();
    let start = cursor.offset();
    cursor.expect_type(ValueType::Object)?;
    let mut fields = Fields::default();
    let first = take_type(&mut cursor)?;
    let msg_type = match &first {
        Some((msg_type, _)) => *msg_type,
        None => find_type(cursor, options)?,
    };
    let kind = Kind::from_text(msg_type);
    let keys = match first {
        Some((_, keys)) => {
            fields.note_type(msg_type);
            keys.of(kind.schema())
        }
        None => Keys::open(&mut cursor, kind.schema())?,
    };
    let has_extras = fields.take(&mut cursor, keys, options)?;
    let message = Object::new(Value::new(cursor.text_since(start), start));
    cursor.finish()?;
    let found = Found {
        fields: &fields,
        start,
        message,
        has_extras,
    };
    Ok(match kind {
        Kind::Alloc => Control::Alloc(found.alloc()?),
        Kind::Allocated => Control::Allocated(found.allocated()?),
        Kind::Done => Control::Done(found.done()?),
        Kind::Push => Control::Push(found.push()?),
        Kind::Pushed => Control::Pushed(found.pushed()?),
        Kind::Ready => Control::Ready(found.ready()?),
        Kind::Register => Control::Register(found.register()?),
        Kind::RegisterAck => Control::RegisterAck(RegisterAck {
            extras: found.extras(TYPE_ALONE),
        }),
        Kind::Staged => Control::Staged(found.staged()?),
        Kind::Unknown => Control::Unknown(Unknown { msg_type, message }),
    })
}

/// Takes the type of the message at the cursor if it comes first, as Python writes it.
fn take_type<'a>(cursor: &mut Cursor<'a>) -> Result<Option<(Str<'a>, Keys)>, DecodeError> {
    let mut ahead = *cursor;
    let mut keys = Keys::open(&mut ahead, TYPE_ALONE)?;
    let Some((Key::Known(_), _)) = keys.next(&mut ahead)? else {
        return Ok(None);
    };
    let msg_type = take_str(&mut ahead)?;
    *cursor = ahead;
    Ok(Some((msg_type, keys)))
}

/// Finds the type of the message at the cursor.
fn find_type<'a>(mut cursor: Cursor<'a>, options: &Options) -> Result<Str<'a>, DecodeError> {
    let start = cursor.offset();
    let mut keys = Keys::open(&mut cursor, TYPE_ALONE)?;
    while let Some((key, _)) = keys.next(&mut cursor)? {
        match key {
            Key::Known(_) => return take_str(&mut cursor),
            Key::Unknown(name) => skip_unknown(name, &mut cursor, options)?,
        }
    }
    let kind = DecodeErrorKind::MissingKey(SchemaKey::MsgType);
    Err(DecodeError::new(kind, start))
}

/// What a message holds, before it is known whether that is all it has to.
struct Found<'a, 'f> {
    fields: &'f Fields<'a>,
    /// Where the object starts.
    start: usize,
    message: Object<'a>,
    /// Whether there is more in the object than the fields.
    has_extras: bool,
}

impl<'a> Found<'a, '_> {
    fn extras(&self, schema: &'static [SchemaKey]) -> Extras<'a> {
        if self.has_extras {
            Extras::new(self.message, schema)
        } else {
            Extras::NONE
        }
    }

    fn demand<T>(&self, value: Option<T>, key: SchemaKey) -> Result<T, DecodeError> {
        demand(value, key, self.start)
    }

    fn request_id(&self) -> Result<Str<'a>, DecodeError> {
        self.demand(self.fields.request_id, SchemaKey::RequestId)
    }

    fn session_id(&self) -> Result<Str<'a>, DecodeError> {
        self.demand(self.fields.session_id, SchemaKey::SessionId)
    }

    fn pool_ptr(&self) -> Result<u64, DecodeError> {
        self.demand(self.fields.pool_ptr, SchemaKey::PoolPtr)
    }

    fn slot_offset(&self) -> Result<u64, DecodeError> {
        self.demand(self.fields.slot_offset, SchemaKey::SlotOffset)
    }

    fn data_size(&self) -> Result<u64, DecodeError> {
        self.demand(self.fields.data_size, SchemaKey::DataSize)
    }

    fn manifest(&self) -> Result<Object<'a>, DecodeError> {
        self.demand(self.fields.manifest, SchemaKey::Manifest)
    }

    fn location(&self) -> Result<Location<'a>, DecodeError> {
        Ok(Location {
            session_id: self.session_id()?,
            pool_ptr: self.pool_ptr()?,
            slot_offset: self.slot_offset()?,
        })
    }

    fn alloc(&self) -> Result<Alloc<'a>, DecodeError> {
        Ok(Alloc {
            request_id: self.request_id()?,
            data_size: self.data_size()?,
            source_role: self.fields.source_role.unwrap_or_else(|| "".into()),
            extras: self.extras(ALLOC),
        })
    }

    fn allocated(&self) -> Result<Allocated<'a>, DecodeError> {
        Ok(Allocated {
            request_id: self.request_id()?,
            location: self.location()?,
            slot_size: self.demand(self.fields.slot_size, SchemaKey::SlotSize)?,
            extras: self.extras(ALLOCATED),
        })
    }

    fn done(mut self) -> Result<Done<'a>, DecodeError> {
        let request_id = self.request_id()?;
        let fields = self.fields;
        let staged = fields.staged_for_decoder == Some(true);
        let (outcome, schema) = match fields.error.flatten() {
            Some(error) => (Outcome::Failed(error), DONE_ENDED),
            None if staged => (Outcome::Staged(self.staged_parts()?), RESULT),
            None => (Outcome::Finished, DONE_ENDED),
        };
        // What is of the other layout is more than this one has.
        self.has_extras |= match outcome {
            Outcome::Staged(_) => fields.error.is_some(),
            _ => fields.has_staged_parts(),
        };
        Ok(Done {
            request_id,
            outcome,
            extras: self.extras(schema),
        })
    }

    fn push(&self) -> Result<Push<'a>, DecodeError> {
        let fields = self.fields;
        Ok(Push {
            request_id: self.request_id()?,
            dest_session_id: self.demand(fields.dest_session_id, SchemaKey::DestSessionId)?,
            dest_addr: self.demand(fields.dest_addr, SchemaKey::DestAddr)?,
            transfer_size: self.demand(fields.transfer_size, SchemaKey::TransferSize)?,
            extras: self.extras(PUSH),
        })
    }

    fn pushed(&self) -> Result<Pushed<'a>, DecodeError> {
        Ok(Pushed {
            request_id: self.request_id()?,
            extras: self.extras(PUSHED),
        })
    }

    fn ready(&self) -> Result<Ready<'a>, DecodeError> {
        let scalar_fields = self.fields.scalar_fields.unwrap_or(Object::EMPTY);
        let slot = scalar_fields.get(SLOT_ID);
        Ok(Ready {
            request_id: self.request_id()?,
            manifest: self.manifest()?,
            slot_offset: self.slot_offset()?,
            scalar_fields,
            preallocated_slot: slot.and_then(|slot| slot.as_u64().ok()),
            extras: self.extras(READY),
        })
    }

    fn register(&self) -> Result<Register<'a>, DecodeError> {
        let fields = self.fields;
        Ok(Register {
            role: self.demand(fields.role, SchemaKey::Role)?,
            session_id: self.session_id()?,
            pool_ptr: self.pool_ptr()?,
            pool_size: self.demand(fields.pool_size, SchemaKey::PoolSize)?,
            work_endpoint: fields.work_endpoint.unwrap_or_else(|| "".into()),
            preallocated_slots: fields.preallocated_slots.unwrap_or_default(),
            extras: self.extras(REGISTER),
        })
    }

    fn staged(&self) -> Result<Staged<'a>, DecodeError> {
        let staged = self.staged_parts()?;
        Ok(Staged {
            extras: self.extras(STAGED),
            ..staged
        })
    }

    fn staged_parts(&self) -> Result<Staged<'a>, DecodeError> {
        Ok(Staged {
            request_id: self.request_id()?,
            data_size: self.data_size()?,
            manifest: self.manifest()?,
            location: self.location()?,
            scalar_fields: self.fields.scalar_fields,
            staged_for_decoder: self.fields.staged_for_decoder,
            extras: Extras::NONE,
        })
    }
}
