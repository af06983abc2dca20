//! One struct for each type of message.

use super::{Extras, PreallocatedSlots};
use crate::json::{Object, Str};
use crate::transfer::Role;

/// The scalar that names the preallocated slot of a [`Ready`]: from the head node, for the
/// receiver alone.
pub(in crate::transfer) const SLOT_ID: &str = "_prealloc_slot_id";

/// Where a slot is: a session's pool, and the place in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Location<'a> {
    /// The data plane's name of the instance.
    pub session_id: Str<'a>,
    /// Address of the pool's first byte: a number, never a pointer here.
    pub pool_ptr: u64,
    /// Bytes from there to the slot.
    pub slot_offset: u64,
}

impl<'a> Location<'a> {
    /// Makes one of its parts.
    #[must_use]
    pub fn new(session_id: impl Into<Str<'a>>, pool_ptr: u64, slot_offset: u64) -> Self {
        Self {
            session_id: session_id.into(),
            pool_ptr,
            slot_offset,
        }
    }

    /// Returns the address of the slot's first byte; `None` if there is no such number.
    #[must_use]
    pub const fn address(&self) -> Option<u64> {
        self.pool_ptr.checked_add(self.slot_offset)
    }
}

/// `transfer_alloc`: the head node asks a receiver for a slot.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Alloc<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// Bytes that the slot has to hold.
    pub data_size: u64,
    /// The role that they come from; empty where it was not said.
    pub source_role: Str<'a>,
    /// What else was said.
    pub extras: Extras<'a>,
}

impl<'a> Alloc<'a> {
    /// Makes one of its parts.
    #[must_use]
    pub fn new(
        request_id: impl Into<Str<'a>>,
        data_size: u64,
        source_role: impl Into<Str<'a>>,
    ) -> Self {
        Self {
            request_id: request_id.into(),
            data_size,
            source_role: source_role.into(),
            extras: Extras::NONE,
        }
    }
}

/// `transfer_allocated`: the receiver's answer to [`Alloc`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Allocated<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// The slot.
    pub location: Location<'a>,
    /// Its length in bytes.
    pub slot_size: u64,
    /// What else was said.
    pub extras: Extras<'a>,
}

impl<'a> Allocated<'a> {
    /// Makes one of its parts.
    #[must_use]
    pub fn new(request_id: impl Into<Str<'a>>, location: Location<'a>, slot_size: u64) -> Self {
        Self {
            request_id: request_id.into(),
            location,
            slot_size,
            extras: Extras::NONE,
        }
    }
}

/// `transfer_push`: the head node tells a sender where to.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Push<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// The receiver's session.
    pub dest_session_id: Str<'a>,
    /// The address to write to.
    pub dest_addr: u64,
    /// Bytes to move.
    pub transfer_size: u64,
    /// What else was said.
    pub extras: Extras<'a>,
}

impl<'a> Push<'a> {
    /// Makes one of its parts.
    #[must_use]
    pub fn new(
        request_id: impl Into<Str<'a>>,
        dest_session_id: impl Into<Str<'a>>,
        dest_addr: u64,
        transfer_size: u64,
    ) -> Self {
        Self {
            request_id: request_id.into(),
            dest_session_id: dest_session_id.into(),
            dest_addr,
            transfer_size,
            extras: Extras::NONE,
        }
    }
}

/// `transfer_pushed`: the sender's answer to [`Push`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Pushed<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// What else was said.
    pub extras: Extras<'a>,
}

impl<'a> Pushed<'a> {
    /// Makes one of its parts.
    #[must_use]
    pub fn new(request_id: impl Into<Str<'a>>) -> Self {
        Self {
            request_id: request_id.into(),
            extras: Extras::NONE,
        }
    }
}

/// `transfer_ready`: the head node tells a receiver that its slot is filled.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ready<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// Which tensors lie where in the slot.
    pub manifest: Object<'a>,
    /// Bytes from the pool's start to the slot.
    pub slot_offset: u64,
    /// The scalars of the request, as received.
    pub scalar_fields: Object<'a>,
    /// On the fast path, the number of the preallocated slot.
    ///
    /// On the wire it is the scalar `_prealloc_slot_id`, and read from there if it
    /// is a `u64`. When written it is set among the scalars as Python sets it: in
    /// its place if it is there, else last. `None` writes the scalars as they are.
    pub preallocated_slot: Option<u64>,
    /// What else was said.
    pub extras: Extras<'a>,
}

impl<'a> Ready<'a> {
    /// Makes one of its parts, for a slot that was allocated.
    #[must_use]
    pub fn new(
        request_id: impl Into<Str<'a>>,
        manifest: Object<'a>,
        slot_offset: u64,
        scalar_fields: Object<'a>,
    ) -> Self {
        Self {
            request_id: request_id.into(),
            manifest,
            slot_offset,
            scalar_fields,
            preallocated_slot: None,
            extras: Extras::NONE,
        }
    }

    /// Sets the number of the preallocated slot.
    #[must_use]
    pub const fn with_preallocated_slot(mut self, slot_id: u64) -> Self {
        self.preallocated_slot = Some(slot_id);
        self
    }
}

/// `transfer_staged`: a sender's output lies in its slot; also what a [`Done`] says of that.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Staged<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// Size of the slot in bytes, which is at least that of the payload.
    pub data_size: u64,
    /// Which tensors lie where in the slot.
    pub manifest: Object<'a>,
    /// The slot.
    pub location: Location<'a>,
    /// The scalars of the request; absent in the oldest generation.
    pub scalar_fields: Option<Object<'a>>,
    /// What the key of that name says; `None` if it is not there.
    ///
    /// An encoder does not write it. An image encoder says `false`, and with it
    /// writes the keys in another order. Within a [`Done`] it is written as `true`,
    /// whatever it is here.
    pub staged_for_decoder: Option<bool>,
    /// What else was said; of a [`Done`], that has it.
    pub extras: Extras<'a>,
}

impl<'a> Staged<'a> {
    /// Makes one of its parts, as an encoder does.
    #[must_use]
    pub fn new(
        request_id: impl Into<Str<'a>>,
        data_size: u64,
        manifest: Object<'a>,
        location: Location<'a>,
        scalar_fields: impl Into<Option<Object<'a>>>,
    ) -> Self {
        Self {
            request_id: request_id.into(),
            data_size,
            manifest,
            location,
            scalar_fields: scalar_fields.into(),
            staged_for_decoder: None,
            extras: Extras::NONE,
        }
    }

    /// Sets `staged_for_decoder`, and with it the order of keys: an image encoder's, if `false`.
    #[must_use]
    pub const fn with_staged_for_decoder(mut self, staged: bool) -> Self {
        self.staged_for_decoder = Some(staged);
        self
    }
}

/// `transfer_done`: an instance is through with a request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Done<'a> {
    /// The request.
    pub request_id: Str<'a>,
    /// How it ended.
    pub outcome: Outcome<'a>,
    /// What else was said.
    pub extras: Extras<'a>,
}

/// How a request ended at an instance.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// It failed, for this reason, which may be empty.
    Failed(Str<'a>),
    /// It is finished.
    Finished,
    /// Its output is staged for the next role.
    Staged(Staged<'a>),
}

impl<'a> Done<'a> {
    /// Makes one of its parts; a staged output is of this request, whatever it says itself.
    #[must_use]
    pub fn new(request_id: impl Into<Str<'a>>, outcome: Outcome<'a>) -> Self {
        Self {
            request_id: request_id.into(),
            outcome,
            extras: Extras::NONE,
        }
    }

    /// Says that the request failed.
    #[must_use]
    pub fn failed(request_id: impl Into<Str<'a>>, error: impl Into<Str<'a>>) -> Self {
        Self::new(request_id, Outcome::Failed(error.into()))
    }

    /// Says that the request is finished.
    #[must_use]
    pub fn finished(request_id: impl Into<Str<'a>>) -> Self {
        Self::new(request_id, Outcome::Finished)
    }

    /// Says that the output is staged for the next role, as a denoiser does.
    #[must_use]
    pub fn staged(staged: Staged<'a>) -> Self {
        Self {
            request_id: staged.request_id,
            outcome: Outcome::Staged(staged),
            extras: staged.extras,
        }
    }
}

/// `transfer_register`: an instance says who and where it is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Register<'a> {
    /// What the instance does, by [name](Role::from_text).
    pub role: Str<'a>,
    /// The data plane's name of it.
    pub session_id: Str<'a>,
    /// Address of its pool's first byte.
    pub pool_ptr: u64,
    /// Length of its pool in bytes.
    pub pool_size: u64,
    /// Where it takes work: the endpoint that the head node knows it by; empty where it was not said.
    pub work_endpoint: Str<'a>,
    /// Slots that the head node may give away unasked.
    pub preallocated_slots: PreallocatedSlots<'a>,
    /// What else was said.
    pub extras: Extras<'a>,
}

impl<'a> Register<'a> {
    /// Makes one of its parts.
    #[must_use]
    pub fn new(
        role: Role,
        session_id: impl Into<Str<'a>>,
        pool_ptr: u64,
        pool_size: u64,
        work_endpoint: impl Into<Str<'a>>,
        preallocated_slots: impl Into<PreallocatedSlots<'a>>,
    ) -> Self {
        Self {
            role: role.name().into(),
            session_id: session_id.into(),
            pool_ptr,
            pool_size,
            work_endpoint: work_endpoint.into(),
            preallocated_slots: preallocated_slots.into(),
            extras: Extras::NONE,
        }
    }
}
