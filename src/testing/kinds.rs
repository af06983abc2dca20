//! The types of control messages, and their layouts.

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

/// Those of a request that have a size.
pub(super) const NUMBERED: &[Kind] = &[Kind::Alloc, Kind::Allocated, Kind::Push, Kind::Staged];
