//! What can be wrong with a message to a worker, and with a call of its own.

use core::error::Error;
use core::fmt;

use crate::error::{DecodeError, EncodeError};
use crate::transfer::Role;
use crate::transfer::pool::PoolError;

/// How far a request is at a worker.
///
/// The states of the diagram in the [module's docs](super).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Its slot waits to be filled.
    Allocated,
    /// The worker is through, and its answer waits for the received slot.
    Closing,
    /// It is over, and was answered.
    Ended,
    /// Its output is on its way, or about to be.
    Pushing,
    /// Its output is announced.
    Staged,
    /// There is no such request, or it is over and forgotten.
    Unknown,
    /// It waits for room in the pool.
    Waiting,
    /// The local worker has it.
    Working,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allocated => "allocated",
            Self::Closing => "closing",
            Self::Ended => "ended",
            Self::Pushing => "pushing",
            Self::Staged => "staged",
            Self::Unknown => "unknown",
            Self::Waiting => "waiting",
            Self::Working => "working",
        })
    }
}

/// A message that the head node may not send, or not now.
///
/// The request that it names, and every other, is as it was before, but for those that the
/// table in the [module's docs](super) lets end. Its `Display` names the
/// numbers, and nothing that the peer wrote.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// So many messages to the head node, or events, wait to be taken that nothing is begun.
    Backlog {
        /// Their number.
        limit: usize,
    },
    /// A `_prealloc_slot_id` is no integer from 0 to 2<sup>64</sup> - 1.
    BadSlotId,
    /// A slot is said to be filled, and somebody writes to it.
    Busy {
        /// Bytes from the pool's start to the slot.
        slot_offset: usize,
    },
    /// The same was asked for before, and is being done or is done.
    Duplicate {
        /// How far the request is.
        step: Step,
    },
    /// As many requests as are taken are under way.
    Full {
        /// Their number.
        limit: usize,
    },
    /// The payload of a control message is none.
    Invalid(DecodeError),
    /// Tensors do not lie in the slot as the manifest says.
    Manifest(DecodeError),
    /// A name is no text, or is missing.
    NoText,
    /// It is a message to the head node, not of it.
    NotForWorker,
    /// The role has nothing to do with such a message.
    NotOfRole {
        /// The role.
        role: Role,
    },
    /// A slot is asked for that is larger than any the pool can have beside the preallocated ones.
    PoolTooSmall {
        /// Bytes that the slot has to hold.
        needed: u64,
        /// The most that a slot can hold.
        pool: usize,
    },
    /// A preallocated slot is said to be filled which is being read or closed.
    SlotInUse {
        /// Its number.
        slot_id: u64,
    },
    /// The id of a request, or the name of a session, is longer than is kept.
    TextTooLong {
        /// Its length in bytes.
        len: usize,
        /// The most that is kept.
        limit: usize,
    },
    /// Fewer bytes are to be pushed than the tensors take, which would leave garbage.
    Truncated {
        /// Bytes that the tensors take.
        needed: usize,
        /// Bytes to be pushed.
        transfer_size: u64,
    },
    /// It makes no sense at this step of the request.
    Unexpected {
        /// How far the request is.
        step: Step,
    },
    /// No preallocated slot has this number.
    UnknownSlot {
        /// The number.
        slot_id: u64,
    },
    /// A request's slot does not lie where the message says.
    WrongOffset {
        /// Bytes from the pool's start to the slot.
        expected: usize,
        /// What the message says.
        found: u64,
    },
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backlog { limit } => {
                write!(f, "{limit} messages or events wait to be taken")
            }
            Self::BadSlotId => f.write_str("_prealloc_slot_id is no number of a slot"),
            Self::Busy { slot_offset } => {
                write!(f, "a write into the slot at {slot_offset} is under way")
            }
            Self::Duplicate { step } => {
                write!(f, "said before of this request, which is {step}")
            }
            Self::Full { limit } => write!(f, "{limit} requests are under way already"),
            Self::Invalid(error) => write!(f, "no control message: {error}"),
            Self::Manifest(error) => write!(f, "manifest: {error}"),
            Self::NoText => f.write_str("a name is missing or no text"),
            Self::NotForWorker => f.write_str("a message to the head node, not from it"),
            Self::NotOfRole { role } => write!(f, "no message for role {role}"),
            Self::PoolTooSmall { needed, pool } => {
                write!(
                    f,
                    "slot of {needed} bytes out of a pool with room for {pool}"
                )
            }
            Self::SlotInUse { slot_id } => {
                write!(f, "preallocated slot {slot_id} is in use")
            }
            Self::TextTooLong { len, limit } => {
                write!(f, "name of {len} bytes where {limit} are kept")
            }
            Self::Truncated {
                needed,
                transfer_size,
            } => write!(
                f,
                "{transfer_size} bytes to be pushed of tensors that take {needed}"
            ),
            Self::Unexpected { step } => write!(f, "unexpected, as the request is {step}"),
            Self::UnknownSlot { slot_id } => write!(f, "no preallocated slot {slot_id}"),
            Self::WrongOffset { expected, found } => {
                write!(f, "slot at {found} where the request's is at {expected}")
            }
        }
    }
}

impl Error for ProtocolError {}

/// A call that the local worker may not make, or not now. Nothing has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CallError {
    /// What is staged says that it takes more bytes than its slot has.
    BadLength {
        /// The bytes that it takes.
        used: usize,
        /// The length of the slot.
        len: usize,
    },
    /// The received slot is still held: drop [`Received`](super::Received) first.
    NotGivenBack,
    /// The role does not do this.
    NotOfRole {
        /// The role.
        role: Role,
    },
    /// The job is over: it was answered, aborted, or took too long.
    Over,
    /// The pool has not the preallocated slots.
    Pool(PoolError),
    /// The output is on its way, and cannot be called back.
    Pushing,
    /// The scalars cannot be written.
    Scalars(EncodeError),
    /// The job is staged already.
    Staged,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadLength { used, len } => {
                write!(f, "{used} bytes used of a slot of {len}")
            }
            Self::NotGivenBack => f.write_str("the received slot is still held"),
            Self::NotOfRole { role } => write!(f, "not for role {role}"),
            Self::Over => f.write_str("the job is over"),
            Self::Pool(error) => write!(f, "preallocated slots: {error}"),
            Self::Pushing => f.write_str("the output is on its way"),
            Self::Scalars(error) => write!(f, "scalars: {error}"),
            Self::Staged => f.write_str("the job is staged already"),
        }
    }
}

impl Error for CallError {}
