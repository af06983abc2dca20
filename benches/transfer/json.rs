//! The same messages by serde_json: structs that borrow, and what is kept as text in `tensorwire` is text here.
//!
//! No caps, and what comes twice or is not known is let pass or refused as serde has it: the
//! comparison leans to its side.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use smallvec::SmallVec;
use tensorwire::DType;

use super::common::peers::Dims;

/// What a message is, as the file of them says it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    Register,
    Staged,
    Alloc,
    Allocated,
    Push,
    Pushed,
    Ready,
    Done,
    DoneStaged,
    Abort,
}

impl Kind {
    pub(crate) fn new(msg_type: &str, is_staged: bool) -> Self {
        match (msg_type, is_staged) {
            ("transfer_register", _) => Self::Register,
            ("transfer_staged", _) => Self::Staged,
            ("transfer_alloc", _) => Self::Alloc,
            ("transfer_allocated", _) => Self::Allocated,
            ("transfer_push", _) => Self::Push,
            ("transfer_pushed", _) => Self::Pushed,
            ("transfer_ready", _) => Self::Ready,
            ("transfer_done", false) => Self::Done,
            ("transfer_done", true) => Self::DoneStaged,
            ("transfer_abort", _) => Self::Abort,
            (other, _) => panic!("no message here is of type {other}"),
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Staged => "staged",
            Self::Alloc => "alloc",
            Self::Allocated => "allocated",
            Self::Push => "push",
            Self::Pushed => "pushed",
            Self::Ready => "ready",
            Self::Done => "done",
            Self::DoneStaged => "done, staged",
            Self::Abort => "abort",
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Read<'m> {
    Register(Register<'m>),
    Staged(Staged<'m>),
    Alloc(Alloc<'m>),
    Allocated(Allocated<'m>),
    Push(Push<'m>),
    Pushed(Pushed<'m>),
    Ready(Ready<'m>),
    Done(Done<'m>),
    DoneStaged(DoneStaged<'m>),
    Abort(Abort<'m>),
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Register<'m> {
    #[serde(borrow)]
    msg_type: Cow<'m, str>,
    #[serde(borrow)]
    role: Cow<'m, str>,
    #[serde(borrow)]
    session_id: Cow<'m, str>,
    pool_ptr: u64,
    pool_size: u64,
    #[serde(borrow)]
    work_endpoint: Cow<'m, str>,
    preallocated_slots: SmallVec<[PreallocatedSlot; 4]>,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct PreallocatedSlot {
    offset: u64,
    size: u64,
    slot_id: u64,
    addr: u64,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Staged<'m> {
    #[serde(borrow)]
    msg_type: Cow<'m, str>,
    #[serde(borrow)]
    request_id: Cow<'m, str>,
    data_size: u64,
    #[serde(borrow)]
    manifest: &'m RawValue,
    #[serde(borrow)]
    session_id: Cow<'m, str>,
    pool_ptr: u64,
    slot_offset: u64,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    scalar_fields: Option<&'m RawValue>,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Alloc<'m> {
    #[serde(borrow)]
    msg_type: Cow<'m, str>,
    #[serde(borrow)]
    request_id: Cow<'m, str>,
    data_size: u64,
    #[serde(borrow)]
    source_role: Cow<'m, str>,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Allocated<'m> {
    #[serde(borrow)]
    msg_type: Cow<'m, str>,
    #[serde(borrow)]
    request_id: Cow<'m, str>,
    #[serde(borrow)]
    session_id: Cow<'m, str>,
    pool_ptr: u64,
    slot_offset: u64,
    slot_size: u64,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Push<'m> {
    #[serde(borrow)]
    msg_type: Cow<'m, str>,
    #[serde(borrow)]
    request_id: Cow<'m, str>,
    #[serde(borrow)]
    dest_session_id: Cow<'m, str>,
    dest_addr: u64,
    transfer_size: u64,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Pushed<'m> {
    #[serde(borrow)]
    msg_type: Cow<'m, str>,
    #[serde(borrow)]
    request_id: Cow<'m, str>,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Ready<'m> {
    #[serde(borrow)]
    msg_type: Cow<'m, str>,
    #[serde(borrow)]
    request_id: Cow<'m, str>,
    #[serde(borrow)]
    manifest: &'m RawValue,
    slot_offset: u64,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    scalar_fields: Option<&'m RawValue>,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Done<'m> {
    #[serde(borrow)]
    msg_type: Cow<'m, str>,
    #[serde(borrow)]
    request_id: Cow<'m, str>,
    #[serde(borrow)]
    error: Option<Text<'m>>,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct DoneStaged<'m> {
    #[serde(borrow)]
    msg_type: Cow<'m, str>,
    #[serde(borrow)]
    request_id: Cow<'m, str>,
    staged_for_decoder: bool,
    #[serde(borrow)]
    session_id: Cow<'m, str>,
    pool_ptr: u64,
    slot_offset: u64,
    data_size: u64,
    #[serde(borrow)]
    manifest: &'m RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    scalar_fields: Option<&'m RawValue>,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Abort<'m> {
    #[serde(borrow)]
    msg_type: Cow<'m, str>,
    #[serde(borrow)]
    request_id: Cow<'m, str>,
    #[serde(borrow)]
    transfer_id: Cow<'m, str>,
    #[serde(borrow)]
    reason: Option<Text<'m>>,
}

/// A `Cow` in an `Option` is not borrowed; this is.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Text<'m>(#[serde(borrow)] Cow<'m, str>);

/// Reads a message whose kind was told beforehand, which no receiver can know.
pub(crate) fn decode(kind: Kind, payload: &[u8]) -> serde_json::Result<Read<'_>> {
    Ok(match kind {
        Kind::Register => Read::Register(serde_json::from_slice(payload)?),
        Kind::Staged => Read::Staged(serde_json::from_slice(payload)?),
        Kind::Alloc => Read::Alloc(serde_json::from_slice(payload)?),
        Kind::Allocated => Read::Allocated(serde_json::from_slice(payload)?),
        Kind::Push => Read::Push(serde_json::from_slice(payload)?),
        Kind::Pushed => Read::Pushed(serde_json::from_slice(payload)?),
        Kind::Ready => Read::Ready(serde_json::from_slice(payload)?),
        Kind::Done => Read::Done(serde_json::from_slice(payload)?),
        Kind::DoneStaged => Read::DoneStaged(serde_json::from_slice(payload)?),
        Kind::Abort => Read::Abort(serde_json::from_slice(payload)?),
    })
}

/// Reads a message that could be any: what tells its kind first, then all of it. (A tagged
/// enum would read values into a tree before it knew what they are, and holds no raw text.)
pub(crate) fn decode_any(payload: &[u8]) -> serde_json::Result<Read<'_>> {
    #[derive(Deserialize)]
    struct Tag<'m> {
        #[serde(borrow)]
        msg_type: Cow<'m, str>,
        #[serde(default)]
        staged_for_decoder: bool,
    }
    let tag: Tag<'_> = serde_json::from_slice(payload)?;
    decode(Kind::new(&tag.msg_type, tag.staged_for_decoder), payload)
}

/// The manifest of a slot.
pub(crate) type Manifest<'m> = HashMap<Cow<'m, str>, SmallVec<[Entry<'m>; 1]>>;

#[derive(Deserialize)]
pub(crate) struct Entry<'m> {
    offset: usize,
    shape: Dims,
    #[serde(borrow)]
    dtype: Cow<'m, str>,
    #[serde(default)]
    #[allow(dead_code, reason = "read, as by any receiver")]
    list_index: Option<u32>,
}

/// Reads a manifest, and checks that each tensor lies in the slot.
pub(crate) fn decode_manifest(text: &[u8], slot_len: usize) -> Option<Manifest<'_>> {
    let manifest: Manifest<'_> = serde_json::from_slice(text).ok()?;
    for entry in manifest.values().flatten() {
        let size = DType::from_name(&entry.dtype)?.size();
        let mut dims = entry.shape.iter();
        let len = dims.try_fold(size, |product, &dim| product.checked_mul(dim))?;
        let end = entry.offset.checked_add(len)?;
        if end > slot_len {
            return None;
        }
    }
    Some(manifest)
}
