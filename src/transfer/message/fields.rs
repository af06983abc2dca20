//! The values of a message's keys, each of the type that the schema says.

use super::keys::{Key, Keys};
use super::slots::PreallocatedSlots;
use crate::error::{DecodeError, DecodeErrorKind, SchemaKey};
use crate::json::cursor::{Cursor, NonFinite};
use crate::json::{Object, Str, Value, ValueType};
use crate::message::Options;
use crate::message::parts::take_u64;

/// What was found, key by key.
#[derive(Clone, Copy, Default)]
pub(super) struct Fields<'a> {
    pub(super) data_size: Option<u64>,
    pub(super) dest_addr: Option<u64>,
    pub(super) dest_session_id: Option<Str<'a>>,
    /// The inner one is `None` for `null`.
    pub(super) error: Option<Option<Str<'a>>>,
    pub(super) manifest: Option<Object<'a>>,
    pub(super) pool_ptr: Option<u64>,
    pub(super) pool_size: Option<u64>,
    pub(super) preallocated_slots: Option<PreallocatedSlots<'a>>,
    pub(super) request_id: Option<Str<'a>>,
    pub(super) role: Option<Str<'a>>,
    pub(super) scalar_fields: Option<Object<'a>>,
    pub(super) session_id: Option<Str<'a>>,
    pub(super) slot_offset: Option<u64>,
    pub(super) slot_size: Option<u64>,
    pub(super) source_role: Option<Str<'a>>,
    pub(super) staged_for_decoder: Option<bool>,
    pub(super) transfer_size: Option<u64>,
    pub(super) work_endpoint: Option<Str<'a>>,
    msg_type: Option<Str<'a>>,
}

impl<'a> Fields<'a> {
    /// Notes the type, which was taken before the rest.
    pub(super) const fn note_type(&mut self, msg_type: Str<'a>) {
        self.msg_type = Some(msg_type);
    }

    /// Takes the rest of an object, and says whether it has members that the schema does not know.
    pub(super) fn take(
        &mut self,
        cursor: &mut Cursor<'a>,
        mut keys: Keys,
        options: &Options,
    ) -> Result<bool, DecodeError> {
        let mut extras = false;
        while let Some((key, at)) = keys.next(cursor)? {
            match key {
                Key::Known(key) => {
                    if self.take_value(key, cursor, options)? {
                        return Err(DecodeError::new(DecodeErrorKind::DuplicateKey, at));
                    }
                }
                Key::Unknown(name) => {
                    extras = true;
                    skip_unknown(name, cursor, options)?;
                }
            }
        }
        Ok(extras)
    }

    /// Tells whether there is any key that a staged output has and an ended request has not.
    pub(super) const fn has_staged_parts(&self) -> bool {
        self.staged_for_decoder.is_some()
            || self.session_id.is_some()
            || self.pool_ptr.is_some()
            || self.slot_offset.is_some()
            || self.data_size.is_some()
            || self.manifest.is_some()
            || self.scalar_fields.is_some()
    }

    /// Takes the value of `key`, and says whether there was one already.
    #[inline]
    fn take_value(
        &mut self,
        key: SchemaKey,
        cursor: &mut Cursor<'a>,
        options: &Options,
    ) -> Result<bool, DecodeError> {
        let text = match key {
            SchemaKey::DestSessionId => &mut self.dest_session_id,
            SchemaKey::MsgType => &mut self.msg_type,
            SchemaKey::RequestId => &mut self.request_id,
            SchemaKey::Role => &mut self.role,
            SchemaKey::SessionId => &mut self.session_id,
            SchemaKey::SourceRole => &mut self.source_role,
            SchemaKey::WorkEndpoint => &mut self.work_endpoint,
            _ => return self.take_other(key, cursor, options),
        };
        Ok(text.replace(take_str(cursor)?).is_some())
    }

    #[inline]
    fn take_other(
        &mut self,
        key: SchemaKey,
        cursor: &mut Cursor<'a>,
        options: &Options,
    ) -> Result<bool, DecodeError> {
        let number = match key {
            SchemaKey::DataSize => &mut self.data_size,
            SchemaKey::DestAddr => &mut self.dest_addr,
            SchemaKey::PoolPtr => &mut self.pool_ptr,
            SchemaKey::PoolSize => &mut self.pool_size,
            SchemaKey::SlotOffset => &mut self.slot_offset,
            SchemaKey::SlotSize => &mut self.slot_size,
            SchemaKey::TransferSize => &mut self.transfer_size,
            SchemaKey::Error => {
                return Ok(self.error.replace(take_error(cursor)?).is_some());
            }
            SchemaKey::Manifest => {
                let manifest = take_object(cursor, options, NonFinite::Refuse)?;
                return Ok(self.manifest.replace(manifest).is_some());
            }
            SchemaKey::PreallocatedSlots => {
                let slots = PreallocatedSlots::take(cursor, options)?;
                return Ok(self.preallocated_slots.replace(slots).is_some());
            }
            SchemaKey::ScalarFields => {
                let scalars = take_object(cursor, options, options.non_finite())?;
                return Ok(self.scalar_fields.replace(scalars).is_some());
            }
            SchemaKey::StagedForDecoder => {
                let staged = take_bool(cursor)?;
                return Ok(self.staged_for_decoder.replace(staged).is_some());
            }
            // Of no message.
            _ => {
                cursor.skip_value(1, options.limits(), NonFinite::Refuse)?;
                return Ok(false);
            }
        };
        Ok(number.replace(take_u64(cursor)?).is_some())
    }
}

/// Goes past the value of a key that the schema does not know.
///
/// What is called scalars holds Python's tokens, whatever the message.
pub(super) fn skip_unknown(
    name: Str<'_>,
    cursor: &mut Cursor<'_>,
    options: &Options,
) -> Result<(), DecodeError> {
    let non_finite = if name == SchemaKey::ScalarFields.name() {
        options.non_finite()
    } else {
        NonFinite::Refuse
    };
    cursor.skip_value(1, options.limits(), non_finite)
}

/// The value of a key that has to be there, in the object at `start`.
#[inline]
pub(super) fn demand<T>(value: Option<T>, key: SchemaKey, start: usize) -> Result<T, DecodeError> {
    value.ok_or_else(|| DecodeError::new(DecodeErrorKind::MissingKey(key), start))
}

#[inline]
pub(super) fn take_str<'a>(cursor: &mut Cursor<'a>) -> Result<Str<'a>, DecodeError> {
    cursor.expect_type(ValueType::String)?;
    let at = cursor.offset();
    Ok(cursor.take_string()?.at(at))
}

/// Takes a string or `null`.
fn take_error<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Str<'a>>, DecodeError> {
    if cursor.peek_type()? == ValueType::Null {
        cursor.take_literal(b"null")?;
        return Ok(None);
    }
    take_str(cursor).map(Some)
}

fn take_bool(cursor: &mut Cursor<'_>) -> Result<bool, DecodeError> {
    cursor.expect_type(ValueType::Bool)?;
    let value = cursor.peek() == Some(b't');
    cursor.take_literal(if value { b"true" } else { b"false" })?;
    Ok(value)
}

#[inline]
fn take_object<'a>(
    cursor: &mut Cursor<'a>,
    options: &Options,
    non_finite: NonFinite,
) -> Result<Object<'a>, DecodeError> {
    cursor.expect_type(ValueType::Object)?;
    let at = cursor.offset();
    cursor.skip_value(1, options.limits(), non_finite)?;
    Ok(Object::new(Value::new(cursor.text_since(at), at)))
}
