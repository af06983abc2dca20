//! What can be wrong with a message to the head node, and with a client's request.

use core::error::Error;
use core::fmt;

use crate::transfer::Role;

/// How far a request is.
///
/// The states of the diagram in the [module's docs](super).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// A receiver was asked for a slot.
    Allocating,
    /// It is over; a worker may still use its slot, or answer.
    Over,
    /// The sender was told where to.
    Pushing,
    /// It waits for a worker with a free place.
    Queued,
    /// A worker has its work, or was told that its slot is filled.
    Working,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allocating => "allocating",
            Self::Over => "over",
            Self::Pushing => "pushing",
            Self::Queued => "queued",
            Self::Working => "working",
        })
    }
}

/// A message that a worker may not send, or not now.
///
/// What the head node knew before it, it knows after it. Its `Display` names
/// the numbers, and nothing that the peer wrote.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A slot reaches past the last address.
    AddressOverflow {
        /// Address of the pool.
        pool_ptr: u64,
        /// Bytes from there to the slot.
        offset: u64,
        /// Length of the slot.
        len: u64,
    },
    /// The slot that a receiver made is too short for what was asked for.
    AllocationTooSmall {
        /// Its length.
        len: u64,
        /// Bytes that were asked for.
        needed: u64,
    },
    /// Two preallocated slots have one number.
    DuplicateSlotId {
        /// The number.
        slot_id: u64,
    },
    /// It is a message of the head node, not to it.
    NotForHeadNode,
    /// The role has nothing of this request, not yet or no longer.
    NotInvolved {
        /// The role.
        role: Role,
        /// How far the request is.
        step: Step,
    },
    /// Nobody takes anything from a worker of this role.
    NothingFollows {
        /// The role.
        role: Role,
    },
    /// A receiver made a slot in another pool than it registered.
    OtherPool {
        /// Its role.
        role: Role,
    },
    /// A slot reaches past the end of its pool.
    OutOfPool {
        /// Bytes from the start of the pool to the slot.
        offset: u64,
        /// Length of the slot.
        len: u64,
        /// Length of the pool.
        pool_len: u64,
    },
    /// A tensor message that is no error came from a role that answers with control messages.
    ReplyWithoutError {
        /// The role.
        role: Role,
    },
    /// An instance registers with another role than that of the socket that it writes to.
    RoleMismatch {
        /// The role of the socket.
        expected: Role,
        /// The role that it says.
        found: Role,
    },
    /// The pipeline has no such role.
    RoleNotHere {
        /// The role.
        role: Role,
    },
    /// The address of a preallocated slot is not its pool's plus its offset.
    SlotAddress {
        /// The address.
        addr: u64,
        /// What it ought to be.
        expected: u64,
    },
    /// Two preallocated slots overlap.
    SlotsOverlap {
        /// Offset of the one.
        first: u64,
        /// Offset of the other.
        second: u64,
    },
    /// A name is longer than is kept.
    TextTooLong {
        /// Its length in bytes.
        len: usize,
        /// The most that is kept.
        limit: usize,
    },
    /// A worker registers more preallocated slots than are kept.
    TooManySlots {
        /// Their number.
        count: usize,
        /// The most that are kept.
        limit: usize,
    },
    /// The role has a part in the request, but this message makes no sense now.
    Unexpected {
        /// The role.
        role: Role,
        /// How far the request is.
        step: Step,
    },
    /// No worker of this role takes work at the endpoint that registers.
    UnknownEndpoint {
        /// The role.
        role: Role,
    },
    /// The type of the message is not known.
    UnknownMessage,
    /// The request is not known: it never was, or it is over and forgotten.
    UnknownRequest,
    /// An instance registers with a role that nobody knows.
    UnknownRole,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddressOverflow {
                pool_ptr,
                offset,
                len,
            } => write!(
                f,
                "slot of {len} bytes at {pool_ptr:#x} + {offset} reaches past the last address"
            ),
            Self::AllocationTooSmall { len, needed } => {
                write!(f, "allocated slot of {len} bytes where {needed} are needed")
            }
            Self::DuplicateSlotId { slot_id } => write!(f, "two slots with the id {slot_id}"),
            Self::NotForHeadNode => f.write_str("a message from the head node, not to it"),
            Self::NotInvolved { role, step } => {
                write!(f, "the {role} has no part in the request, which is {step}")
            }
            Self::NothingFollows { role } => write!(f, "nobody takes the output of a {role}"),
            Self::OtherPool { role } => {
                write!(f, "slot in another pool than the {role} registered")
            }
            Self::OutOfPool {
                offset,
                len,
                pool_len,
            } => write!(
                f,
                "slot of {len} bytes at {offset} reaches past its pool of {pool_len} bytes"
            ),
            Self::ReplyWithoutError { role } => {
                write!(f, "a tensor message from the {role} without an error in it")
            }
            Self::RoleMismatch { expected, found } => {
                write!(f, "a {found} registers at the socket for role {expected}")
            }
            Self::RoleNotHere { role } => write!(f, "no {role} in this pipeline"),
            Self::SlotAddress { addr, expected } => {
                write!(f, "slot address {addr:#x} instead of {expected:#x}")
            }
            Self::SlotsOverlap { first, second } => {
                write!(f, "the slots at {first} and {second} overlap")
            }
            Self::TextTooLong { len, limit } => {
                write!(f, "name of {len} bytes where {limit} are kept")
            }
            Self::TooManySlots { count, limit } => {
                write!(f, "{count} slots where {limit} are kept")
            }
            Self::Unexpected { role, step } => {
                write!(f, "unexpected from the {role} while the request is {step}")
            }
            Self::UnknownEndpoint { role } => write!(f, "no {role} takes work at this endpoint"),
            Self::UnknownMessage => f.write_str("unknown message type"),
            Self::UnknownRequest => f.write_str("unknown request"),
            Self::UnknownRole => f.write_str("unknown role"),
        }
    }
}

impl Error for ProtocolError {}

/// A client's request that was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RequestError {
    /// Another request of this id is under way, or is not yet wholly over.
    Duplicate,
    /// As many requests as are taken are under way, or not yet wholly over.
    Full {
        /// Their number.
        limit: usize,
    },
    /// The id is longer than ids may be.
    IdTooLong {
        /// Its length in bytes.
        len: usize,
        /// How long they may be.
        limit: usize,
    },
    /// The id is empty, or no text: it holds a lone surrogate, which no frame can carry.
    NoText,
    /// The id is the marker of control messages: a worker would take the work for one of ours.
    Reserved,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate => f.write_str("a request of this id is under way"),
            Self::Full { limit } => write!(f, "{limit} requests are under way already"),
            Self::IdTooLong { len, limit } => {
                write!(f, "id of {len} bytes where {limit} are the most")
            }
            Self::NoText => f.write_str("the id is empty or no text"),
            Self::Reserved => f.write_str("the id is the marker of control messages"),
        }
    }
}

impl Error for RequestError {}
