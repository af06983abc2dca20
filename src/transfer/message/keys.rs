//! The keys of each message, in the order in which Python writes them, and how they are found.

use crate::error::{DecodeError, SchemaKey};
use crate::json::Str;
use crate::json::cursor::Cursor;
use crate::message::parts;

pub(super) const ALLOC: &[SchemaKey] = &[
    SchemaKey::MsgType,
    SchemaKey::RequestId,
    SchemaKey::DataSize,
    SchemaKey::SourceRole,
];

pub(super) const ALLOCATED: &[SchemaKey] = &[
    SchemaKey::MsgType,
    SchemaKey::RequestId,
    SchemaKey::SessionId,
    SchemaKey::PoolPtr,
    SchemaKey::SlotOffset,
    SchemaKey::SlotSize,
];

/// Of both layouts: `error` is of the one, what follows of the other.
pub(super) const DONE: &[SchemaKey] = &[
    SchemaKey::MsgType,
    SchemaKey::RequestId,
    SchemaKey::Error,
    SchemaKey::StagedForDecoder,
    SchemaKey::SessionId,
    SchemaKey::PoolPtr,
    SchemaKey::SlotOffset,
    SchemaKey::DataSize,
    SchemaKey::Manifest,
    SchemaKey::ScalarFields,
];

/// Of a request that ended at the instance.
pub(super) const DONE_ENDED: &[SchemaKey] =
    &[SchemaKey::MsgType, SchemaKey::RequestId, SchemaKey::Error];

/// Of a request whose output is staged, and of a `transfer_staged` in that layout.
pub(super) const RESULT: &[SchemaKey] = &[
    SchemaKey::MsgType,
    SchemaKey::RequestId,
    SchemaKey::StagedForDecoder,
    SchemaKey::SessionId,
    SchemaKey::PoolPtr,
    SchemaKey::SlotOffset,
    SchemaKey::DataSize,
    SchemaKey::Manifest,
    SchemaKey::ScalarFields,
];

pub(super) const PUSH: &[SchemaKey] = &[
    SchemaKey::MsgType,
    SchemaKey::RequestId,
    SchemaKey::DestSessionId,
    SchemaKey::DestAddr,
    SchemaKey::TransferSize,
];

pub(super) const PUSHED: &[SchemaKey] = &[SchemaKey::MsgType, SchemaKey::RequestId];

pub(super) const READY: &[SchemaKey] = &[
    SchemaKey::MsgType,
    SchemaKey::RequestId,
    SchemaKey::Manifest,
    SchemaKey::SlotOffset,
    SchemaKey::ScalarFields,
];

pub(super) const REGISTER: &[SchemaKey] = &[
    SchemaKey::MsgType,
    SchemaKey::Role,
    SchemaKey::SessionId,
    SchemaKey::PoolPtr,
    SchemaKey::PoolSize,
    SchemaKey::WorkEndpoint,
    SchemaKey::PreallocatedSlots,
];

/// Of a message of which nothing else is known.
pub(super) const TYPE_ALONE: &[SchemaKey] = &[SchemaKey::MsgType];

/// Of a preallocated slot.
pub(super) const SLOT: &[SchemaKey] = &[
    SchemaKey::Offset,
    SchemaKey::Size,
    SchemaKey::SlotId,
    SchemaKey::Addr,
];

/// As [`RESULT`], in the order of an encoder's `transfer_staged`, which lacks the last key.
pub(super) const STAGED: &[SchemaKey] = &[
    SchemaKey::MsgType,
    SchemaKey::RequestId,
    SchemaKey::DataSize,
    SchemaKey::Manifest,
    SchemaKey::SessionId,
    SchemaKey::PoolPtr,
    SchemaKey::SlotOffset,
    SchemaKey::ScalarFields,
    SchemaKey::StagedForDecoder,
];

/// A key of an object that is being read.
#[derive(Clone, Copy)]
pub(super) enum Key<'a> {
    Known(SchemaKey),
    Unknown(Str<'a>),
}

/// The keys of an object of a schema, each with its offset; the caller takes the value in between.
pub(super) struct Keys {
    schema: &'static [SchemaKey],
    /// What Python would write next.
    expected: &'static [SchemaKey],
    members: parts::Keys,
}

impl Keys {
    /// Takes the opening brace.
    pub(super) fn open(
        cursor: &mut Cursor<'_>,
        schema: &'static [SchemaKey],
    ) -> Result<Self, DecodeError> {
        Ok(Self {
            schema,
            expected: schema,
            members: parts::Keys::open(cursor)?,
        })
    }

    /// Goes on with another schema, whose first key has been taken.
    pub(super) const fn of(self, schema: &'static [SchemaKey]) -> Self {
        let expected = match schema.split_first() {
            Some((_, later)) => later,
            None => schema,
        };
        Self {
            schema,
            expected,
            members: self.members,
        }
    }

    /// Takes the next key, or the closing brace.
    #[inline]
    pub(super) fn next<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<(Key<'a>, usize)>, DecodeError> {
        let Some(at) = self.members.next_offset(cursor)? else {
            return Ok(None);
        };
        if let Some((&key, later)) = self.expected.split_first()
            && take_written(cursor, key)
        {
            self.expected = later;
            return Ok(Some((Key::Known(key), at)));
        }
        let name = cursor.take_key()?;
        let Some(index) = self.schema.iter().position(|key| name == key.name()) else {
            return Ok(Some((Key::Unknown(name), at)));
        };
        let (key, later) = match self.schema.get(index..) {
            Some([key, later @ ..]) => (Key::Known(*key), later),
            _ => (Key::Unknown(name), self.expected),
        };
        self.expected = later;
        Ok(Some((key, at)))
    }
}

/// Takes the key as Python writes it, with the colon; any other spelling is left to the cursor.
#[inline]
fn take_written(cursor: &mut Cursor<'_>, key: SchemaKey) -> bool {
    let rest = cursor.rest().strip_prefix(b"\"");
    let rest = rest.and_then(|rest| rest.strip_prefix(key.name().as_bytes()));
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix(b"\":")) else {
        return false;
    };
    cursor.advance_to(rest);
    cursor.skip_whitespace();
    true
}
