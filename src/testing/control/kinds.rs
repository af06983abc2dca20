//! The types of control messages, and their layouts.

use crate::error::SchemaKey;

/// The types of messages, by what they have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Alloc,
    Allocated,
    DoneFailed,
    DoneFinished,
    DoneStaged,
    Push,
    Pushed,
    Ready,
    Register,
    RegisterAck,
    Staged,
    StagedImage,
    Unknown,
}

impl Kind {
    pub(super) const fn msg_type(self) -> &'static str {
        match self {
            Self::Alloc => "transfer_alloc",
            Self::Allocated => "transfer_allocated",
            Self::DoneFailed | Self::DoneFinished | Self::DoneStaged => "transfer_done",
            Self::Push => "transfer_push",
            Self::Pushed => "transfer_pushed",
            Self::Ready => "transfer_ready",
            Self::Register => "transfer_register",
            Self::RegisterAck => "transfer_register_ack",
            Self::Staged | Self::StagedImage => "transfer_staged",
            Self::Unknown => "transfer_abort",
        }
    }

    /// The keys that have to be there, but for `msg_type`, which always has to.
    pub(super) const fn demanded(self) -> &'static [SchemaKey] {
        match self {
            Self::Alloc => &[SchemaKey::RequestId, SchemaKey::DataSize],
            Self::Allocated => &[
                SchemaKey::RequestId,
                SchemaKey::SessionId,
                SchemaKey::PoolPtr,
                SchemaKey::SlotOffset,
                SchemaKey::SlotSize,
            ],
            Self::DoneFailed | Self::DoneFinished | Self::Pushed => &[SchemaKey::RequestId],
            Self::DoneStaged | Self::Staged | Self::StagedImage => &[
                SchemaKey::RequestId,
                SchemaKey::DataSize,
                SchemaKey::Manifest,
                SchemaKey::SessionId,
                SchemaKey::PoolPtr,
                SchemaKey::SlotOffset,
            ],
            Self::Push => &[
                SchemaKey::RequestId,
                SchemaKey::DestSessionId,
                SchemaKey::DestAddr,
                SchemaKey::TransferSize,
            ],
            Self::Ready => &[
                SchemaKey::RequestId,
                SchemaKey::Manifest,
                SchemaKey::SlotOffset,
            ],
            Self::Register => &[
                SchemaKey::Role,
                SchemaKey::SessionId,
                SchemaKey::PoolPtr,
                SchemaKey::PoolSize,
            ],
            Self::RegisterAck | Self::Unknown => &[],
        }
    }
}

/// All of them.
pub(super) const KINDS: &[Kind] = &[
    Kind::Pushed,
    Kind::Alloc,
    Kind::Allocated,
    Kind::DoneFailed,
    Kind::DoneFinished,
    Kind::DoneStaged,
    Kind::Push,
    Kind::Ready,
    Kind::Register,
    Kind::RegisterAck,
    Kind::Staged,
    Kind::StagedImage,
    Kind::Unknown,
];
