//! Slots out of a pool of bytes, and who may write to them.
//!
//! A worker keeps the tensors that it sends, and takes those that it gets, in a pool that its
//! data plane knows of. [`Pool`] gives out its bytes in [`Slot`]s. All of it is sums with
//! offsets: the bytes belong to a `Region` of the data plane.
//!
//! ```text
//!                 Pool::allocate              Slot::open
//!     free block -----------------> Slot ----------------> Landing
//!         ^                          | ^                    |   |
//!         |                          | +--------------------+   |
//!         +------------ drop --------+     Landing::close       | drop
//!         |                                                     |
//!         +---------------- no write under way -----------------+
//!         |                                                     |
//!         +---- allocate, reclaim ---- quarantine <-------------+  a write under way
//! ```
//!
//! - A **[`Slot`]** has one owner, who alone reads and writes its bytes.
//! - A **[`Landing`]** is a slot that peers may write into, in an open *window*; its owner
//!   does not look. The data plane learns of windows by the trait [`Windows`].
//! - In **quarantine** lies what nobody holds any more, but a peer still writes to: it would
//!   be wrong to give it to somebody else.
//!
//! Nothing is freed twice or used after it was freed, as slots and landings cannot be made
//! up, copied, or outlive the book of their pool.
//!
//! Which offset a slot has is what the Python peers' allocator would choose:
//! [`BuddyAllocator`] says how, and of use alone where there is no `std`.

mod buddy;
mod error;
mod nodes;
#[cfg(feature = "std")]
mod slot;
mod stats;
#[cfg(feature = "std")]
mod windows;

pub use buddy::{Block, BuddyAllocator, MIN_BLOCK, rounded_len};
pub use error::PoolError;
#[cfg(feature = "std")]
pub use slot::{Busy, Landing, Pool, Slot};
pub use stats::Stats;
#[cfg(feature = "std")]
pub use windows::{WindowError, WindowTable, Windows, Writing};
