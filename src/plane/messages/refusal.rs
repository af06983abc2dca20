//! Why an inlet wrote nothing, as it tells the pusher.

use core::fmt;

use crate::json::Str;
use crate::plane::ErrorKind;

/// Why an inlet refused a push: nothing of it was written.
///
/// It travels in the answer as a name and numbers; see [the module](super#an-answer).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// Another push is being written into the same window.
    Busy,
    /// A piece begins where no window is open, or none any more.
    Closed,
    /// There are not as many tensors as addresses.
    Count {
        /// How many tensors came.
        tensors: u64,
        /// How many addresses came.
        addresses: u64,
    },
    /// The message has an id and is no push all the same.
    Malformed,
    /// A reason that this version does not know.
    Other,
    /// A piece does not lie in a pool of the session, or not in that of the others.
    OutOfBounds {
        /// Where it is to go.
        address: u64,
        /// Its length in bytes.
        len: u64,
    },
    /// A piece begins inside an open window, and goes on past its end.
    PastWindow {
        /// Its length in bytes.
        len: u64,
        /// How many bytes of the window are left from there.
        room: u64,
    },
    /// The piece is no one-dimensional `uint8` tensor with its place in the list.
    Piece {
        /// Which piece, from 0.
        piece: u64,
    },
    /// A push of this plane that is newer came before: this one is late, or a duplicate. To
    /// the inlet's owner also that the newest came again.
    Stale {
        /// The id of the newest push that came.
        newest: u64,
    },
    /// There are more pieces than the inlet takes in one push.
    TooMany {
        /// How many it takes.
        limit: u64,
        /// How many came.
        actual: u64,
    },
    /// The push is for another session.
    UnknownSession,
}

impl Refusal {
    /// The most numbers that a reason has.
    pub(super) const MAX_NUMBERS: usize = 2;

    /// Returns its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Closed => "closed",
            Self::Count { .. } => "count",
            Self::Malformed => "malformed",
            Self::Other => "other",
            Self::OutOfBounds { .. } => "out_of_bounds",
            Self::PastWindow { .. } => "past_window",
            Self::Piece { .. } => "piece",
            Self::Stale { .. } => "stale",
            Self::TooMany { .. } => "too_many",
            Self::UnknownSession => "unknown_session",
        }
    }

    /// Returns its numbers on the wire, and how many there are.
    pub(super) const fn numbers(self) -> ([u64; Self::MAX_NUMBERS], usize) {
        match self {
            Self::Busy | Self::Closed | Self::Malformed | Self::Other | Self::UnknownSession => {
                ([0, 0], 0)
            }
            Self::Count { tensors, addresses } => ([tensors, addresses], 2),
            Self::OutOfBounds { address, len } => ([address, len], 2),
            Self::PastWindow { len, room } => ([len, room], 2),
            Self::Piece { piece } => ([piece, 0], 1),
            Self::Stale { newest } => ([newest, 0], 1),
            Self::TooMany { limit, actual } => ([limit, actual], 2),
        }
    }

    /// Reads a reason; one that is unknown, or has other numbers, is [`Refusal::Other`].
    pub(super) fn read(name: Str<'_>, numbers: &[u64]) -> Self {
        let name = name.as_plain().unwrap_or_default();
        match (name, numbers) {
            ("busy", &[]) => Self::Busy,
            ("closed", &[]) => Self::Closed,
            ("count", &[tensors, addresses]) => Self::Count { tensors, addresses },
            ("malformed", &[]) => Self::Malformed,
            ("out_of_bounds", &[address, len]) => Self::OutOfBounds { address, len },
            ("past_window", &[len, room]) => Self::PastWindow { len, room },
            ("piece", &[piece]) => Self::Piece { piece },
            ("stale", &[newest]) => Self::Stale { newest },
            ("too_many", &[limit, actual]) => Self::TooMany { limit, actual },
            ("unknown_session", &[]) => Self::UnknownSession,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("another push is being written into the window"),
            Self::Closed => f.write_str("no window is open at the address"),
            Self::Count { tensors, addresses } => {
                write!(f, "{tensors} tensors for {addresses} addresses")
            }
            Self::Malformed => f.write_str("message is no push"),
            Self::Other => f.write_str("refused for a reason not known here"),
            Self::OutOfBounds { address, len } => {
                write!(f, "{len} bytes at address {address:#x} are in no pool")
            }
            Self::PastWindow { len, room } => {
                write!(f, "{len} bytes where {room} are left of the window")
            }
            Self::Piece { piece } => write!(f, "piece {piece} is no uint8 tensor of one dimension"),
            Self::Stale { newest } => write!(f, "push {newest} of the same plane came before"),
            Self::TooMany { limit, actual } => {
                write!(f, "{actual} pieces, at most {limit} allowed")
            }
            Self::UnknownSession => f.write_str("push for another session"),
        }
    }
}

impl core::error::Error for Refusal {}

/// What a region says when a write may not begin there.
impl From<ErrorKind> for Refusal {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Busy => Self::Busy,
            ErrorKind::Closed => Self::Closed,
            ErrorKind::OutOfBounds { address, len } => Self::OutOfBounds { address, len },
            ErrorKind::PastWindow { len, room } => Self::PastWindow { len, room },
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    const ALL: &[Refusal] = &[
        Refusal::Busy,
        Refusal::Closed,
        Refusal::Count {
            tensors: 1,
            addresses: 2,
        },
        Refusal::Malformed,
        Refusal::Other,
        Refusal::OutOfBounds {
            address: u64::MAX,
            len: 2,
        },
        Refusal::PastWindow { len: 1, room: 2 },
        Refusal::Piece { piece: 1 },
        Refusal::Stale { newest: 1 },
        Refusal::TooMany {
            limit: 1,
            actual: 2,
        },
        Refusal::UnknownSession,
    ];

    #[test]
    fn every_reason_is_read_as_it_was_written() {
        for &reason in ALL {
            let (numbers, count) = reason.numbers();
            let read = Refusal::read(reason.name().into(), &numbers[..count]);
            assert_eq!(read, reason);
            let first = reason.to_string().chars().next();
            assert!(
                first.is_some_and(|first| !first.is_uppercase()),
                "{reason:?}"
            );
        }
    }

    #[test]
    fn a_reason_with_other_numbers_is_another_reason() {
        for &reason in ALL {
            let (_, count) = reason.numbers();
            let more = Refusal::read(reason.name().into(), &[0; 3][..=count]);
            assert_eq!(more, Refusal::Other, "{reason:?}");
        }
        assert_eq!(Refusal::read("newer".into(), &[]), Refusal::Other);
    }
}
