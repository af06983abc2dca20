//! Data planes: how the bytes of tensors get from one pool to another.
//!
//! Control messages say *what* is to be moved and *where to*; a [`DataPlane`] moves it. A worker
//! registers memory, gets a [`Region`] with a [`Pool`](crate::transfer::pool::Pool) in it, and tells the
//! head node session and address. Whoever gets them pushes bytes there:
//!
//! ```text
//!   sender                                                        receiver
//!   region.pool().allocate(len) -> Slot                           region.pool().allocate(len) -> Slot
//!   region.bytes_mut(&mut slot): tensors are written              slot.open() -> Landing: a window is open
//!                  <--- session, address of the landing, by way of the head node ---
//!   plane.push(Transfer { slot, session, pieces }) -> PushId
//!        | ============== bytes, only inside of an open window =========> |
//!   plane.poll_completion() -> Completion { id, slot, result }
//!                  --- pushed, ready, by way of the head node --->
//!                                                                 landing.close() -> Slot
//!                                                                 region.bytes(&slot): tensors are read
//! ```
//!
//! # The contract
//!
//! - **Nobody looks meanwhile.** A push owns its source [`Slot`], and gives it back when it
//!   is over; a [`Landing`](crate::transfer::pool::Landing) shows no bytes. So no byte is written while somebody
//!   reads it, and the types say so.
//! - **Every push ends once.** [`push`](DataPlane::push) gives the [`Transfer`] back with an error, or
//!   else one [`Completion`] comes, with the slot. What a plane finds out at once it may
//!   tell in either way: treat the two alike.
//! - **Completions are true.** `Ok` says that every byte is in its place, and seen by the owner who
//!   closes the landing. An error says that the bytes must not be used; of
//!   those inside the window some may have been written.
//! - **Nothing outside a window is written.** An address is a number that a peer sent. A plane
//!   checks that each piece lies in the pool of the session, and inside one open window,
//!   before the first byte moves: one piece that does not, and none is written.
//! - **A late push is harmless.** Once a landing is closed, a push to it fails with
//!   [`Closed`](ErrorKind::Closed). If its place is open again, for another request, no plane can tell: the
//!   wire has no generation in an address. The head node does not give a place away before what
//!   was to come there has ended.
//!
//! # Backends
//!
//! | Module | Between | A push is |
//! |---|---|---|
//! | [`memory`] | threads of a process | one copy |
//! | `shared` (feature `shared-memory`) | processes of a host | one copy |
//! | [`messages`] | hosts, over any transport | what the transport does |
//!
//! # Implementing a plane
//!
//! - `register` makes a [`Region`] by [`Region::new`] of a [`Memory`] (of [`HostMemory`], if any will
//!   do) and of a [`Windows`](crate::transfer::pool::Windows): where writers are threads of the same
//!   process that is a [`WindowTable`](crate::transfer::pool::WindowTable), kept by the
//!   plane too. It keeps [`Region::downgrade`], to find the region again without keeping it.
//! - `push` finds the region whose pool [owns](crate::transfer::pool::Pool::owns) the slot, or refuses
//!   with [`ForeignSlot`](ErrorKind::ForeignSlot), and reads the pieces in [`Region::bytes`].
//! - Who writes asks [`Piece::offset_in`] where each piece lies, then
//!   [`begin_write`](crate::transfer::pool::WindowTable::begin_write) for each window, once:
//!   [`covers`](crate::transfer::pool::Writing::covers) tells of the pieces after the first. When all
//!   have their windows, not before, it copies to the addresses that [`Memory::as_ptr`] gave
//!   (`unsafe`, by the third rule of [`Memory`]), holding the upgraded region meanwhile.
//! - [`Completion::new`] gives the slot back.
//!
//! # An RDMA engine as a backend
//!
//! The trait is shaped after what NIXL and Mooncake offer, so that one can stand behind it:
//!
//! - *Registration*: memory of any [`MemoryKind`] is registered once. Its handle (a memory
//!   region, a key) lives in the [`Memory`] of the [`Region`], whose drop deregisters it. Device memory
//!   has an address and no bytes: [`Region::bytes`] refuses, [`push`](DataPlane::push) works. Memory that
//!   somebody else allocated is registered by a method of the backend's own type.
//! - *Session*: the agent's or segment's name, which
//!   [`session_id`](DataPlane::session_id) tells peers. The first push to a session may connect.
//! - *Scatter lists*: a [`Transfer`] has any number of [`Piece`]s, posted as one request.
//! - *Asynchronous completion*: `push` posts and returns. [`PushId`] is the engine's request,
//!   [`poll_completion`](DataPlane::poll_completion) asks for its state, and until it has one
//!   nobody touches the source, as the request owns the slot.
//! - *Windows*: one-sided writes ask nobody at the far end. Such a backend has a
//!   [`Windows`](crate::transfer::pool::Windows) whose `close` says `true` only when no write can arrive
//!   any more: it revokes the key of the window (a memory window, a key for each landing), or
//!   it knows by a message of its own that what was posted has ended.

pub mod memory;
pub mod messages;
pub mod region;
#[cfg(all(feature = "shared-memory", unix))]
pub mod shared;

mod completion;
mod error;
mod push;
mod store;

use core::time::Duration;

pub use completion::Completion;
pub use error::{ErrorKind, PlaneError};
pub use push::{Piece, PushId, Transfer};
pub use region::{HostMemory, Memory, Region, WeakRegion};
pub use store::{LoadError, StoreError, Stored};

use crate::transfer::pool::{MIN_BLOCK, Slot};

/// Moves bytes from slots of its own regions into open windows of its peers'.
///
/// What holds for all of them is [the contract](self#the-contract). A worker's driver is
/// generic over the plane; `dyn DataPlane<Error = E>` works as well.
///
/// # Examples
///
/// Pushes the first `len` bytes of a slot, and waits for the end of it:
///
/// ```
/// use core::time::Duration;
/// use tensorwire::plane::{DataPlane, Transfer};
/// use tensorwire::transfer::pool::Slot;
///
/// fn push<P: DataPlane>(plane: &mut P, slot: Slot, len: usize, session: &str, address: u64)
///     -> Result<u64, Box<dyn std::error::Error>> {
///     let mut transfer = Transfer::new(slot, session);
///     transfer.add_piece(0..len, address)?;
///     let id = plane.push(transfer).map_err(|(_transfer, error)| error)?;
///     loop {
///         let completion = plane.wait_completion(Duration::from_secs(10)).ok_or("no end")?;
///         if completion.id() == id {
///             let (_slot, result) = completion.into_parts();
///             return Ok(result?);
///         }
///     }
/// }
/// ```
pub trait DataPlane {
    /// Why something failed.
    type Error: PlaneError;

    /// Returns the name by which peers push to this plane: `session_id` of control messages.
    fn session_id(&self) -> &str;

    /// Makes a region of memory that slots can be pushed from, and landings pushed to.
    ///
    /// It is part of the session until it is dropped.
    ///
    /// # Errors
    ///
    /// The plane's own: no such [`MemoryKind`] here, no memory, a length that no pool has.
    fn register(&mut self, options: RegionOptions) -> Result<Region, Self::Error>;

    /// Begins to move the pieces of `transfer` out of its slot, which is of a region of this plane.
    ///
    /// It does not wait for the far end. The end of it is told by
    /// [`poll_completion`](Self::poll_completion).
    ///
    /// # Errors
    ///
    /// The transfer as it was, and why none of it was or will be moved. After
    /// [`Busy`](ErrorKind::Busy) it can be pushed again when a completion has come.
    fn push(&mut self, transfer: Transfer) -> Result<PushId, (Transfer, Self::Error)>;

    /// Returns the next push that has ended, in any order, or `None` if none has by now.
    ///
    /// For backends that need to be driven this is what drives them.
    fn poll_completion(&mut self) -> Option<Completion<Self::Error>>;

    /// As [`poll_completion`](Self::poll_completion), and waits up to `timeout` for one.
    ///
    /// Returns at once if no push is under way.
    fn wait_completion(&mut self, timeout: Duration) -> Option<Completion<Self::Error>>;
}

impl<P: DataPlane + ?Sized> DataPlane for &mut P {
    type Error = P::Error;

    fn session_id(&self) -> &str {
        (**self).session_id()
    }

    fn register(&mut self, options: RegionOptions) -> Result<Region, Self::Error> {
        (**self).register(options)
    }

    fn push(&mut self, transfer: Transfer) -> Result<PushId, (Transfer, Self::Error)> {
        (**self).push(transfer)
    }

    fn poll_completion(&mut self) -> Option<Completion<Self::Error>> {
        (**self).poll_completion()
    }

    fn wait_completion(&mut self, timeout: Duration) -> Option<Completion<Self::Error>> {
        (**self).wait_completion(timeout)
    }
}

/// What a region is to be like.
///
/// # Examples
///
/// ```
/// use tensorwire::plane::{MemoryKind, RegionOptions};
///
/// let options = RegionOptions::new(256 << 20).with_kind(MemoryKind::Pinned);
/// assert_eq!((options.len(), options.min_block()), (256 << 20, 1 << 20));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RegionOptions {
    len: usize,
    min_block: usize,
    kind: MemoryKind,
}

impl RegionOptions {
    /// A region of at least `len` bytes of the host's memory, in slots of at least 1 MiB.
    ///
    /// It is rounded up to a power of two.
    #[must_use]
    pub const fn new(len: usize) -> Self {
        Self {
            len,
            min_block: MIN_BLOCK,
            kind: MemoryKind::Host,
        }
    }

    /// Sets the length in bytes of the smallest slot, a power of two.
    #[must_use]
    pub const fn with_min_block(mut self, min_block: usize) -> Self {
        self.min_block = min_block;
        self
    }

    /// Sets what kind of memory it is.
    #[must_use]
    pub const fn with_kind(mut self, kind: MemoryKind) -> Self {
        self.kind = kind;
        self
    }

    /// Returns how many bytes there are to be at least.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no bytes were asked for; there is one smallest slot then.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the length in bytes of the smallest slot.
    #[must_use]
    pub const fn min_block(&self) -> usize {
        self.min_block
    }

    /// Returns what kind of memory it is to be.
    #[must_use]
    pub const fn kind(&self) -> MemoryKind {
        self.kind
    }
}

/// Whose memory a region is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Of a device, which the host's instructions do not reach.
    Device {
        /// Which of the devices.
        ordinal: u32,
    },
    /// The host's, as any other.
    Host,
    /// The host's, locked in place for devices to read and write.
    Pinned,
}

impl MemoryKind {
    /// Tells whether the host reads and writes it as its own.
    #[must_use]
    pub const fn is_host(self) -> bool {
        matches!(self, Self::Host | Self::Pinned)
    }
}

impl core::fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Device { ordinal } => write!(f, "memory of device {ordinal}"),
            Self::Host => f.write_str("memory of the host"),
            Self::Pinned => f.write_str("pinned memory"),
        }
    }
}
