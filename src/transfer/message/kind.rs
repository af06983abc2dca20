//! The types of messages by name, each with its keys.

use super::keys::{ALLOC, ALLOCATED, DONE, PUSH, PUSHED, READY, REGISTER, STAGED, TYPE_ALONE};
use crate::error::SchemaKey;
use crate::json::Str;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Alloc,
    Allocated,
    Done,
    Push,
    Pushed,
    Ready,
    Register,
    RegisterAck,
    Staged,
    Unknown,
}

impl Kind {
    /// Those that have a name of their own, the more frequent first.
    const NAMED: &[Self] = &[
        Self::Staged,
        Self::Push,
        Self::Pushed,
        Self::Ready,
        Self::Done,
        Self::Alloc,
        Self::Allocated,
        Self::Register,
        Self::RegisterAck,
    ];

    pub(super) fn from_text(msg_type: Str<'_>) -> Self {
        let mut kinds = Self::NAMED.iter().copied();
        kinds
            .find(|kind| msg_type == kind.name())
            .unwrap_or(Self::Unknown)
    }

    /// The `msg_type`; empty for an unknown one, which has its own.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "transfer_alloc",
            Self::Allocated => "transfer_allocated",
            Self::Done => "transfer_done",
            Self::Push => "transfer_push",
            Self::Pushed => "transfer_pushed",
            Self::Ready => "transfer_ready",
            Self::Register => "transfer_register",
            Self::RegisterAck => "transfer_register_ack",
            Self::Staged => "transfer_staged",
            Self::Unknown => "",
        }
    }

    /// The keys that are read.
    pub(super) const fn schema(self) -> &'static [SchemaKey] {
        match self {
            Self::Alloc => ALLOC,
            Self::Allocated => ALLOCATED,
            Self::Done => DONE,
            Self::Push => PUSH,
            Self::Pushed => PUSHED,
            Self::Ready => READY,
            Self::Register => REGISTER,
            Self::Staged => STAGED,
            Self::RegisterAck | Self::Unknown => TYPE_ALONE,
        }
    }
}
