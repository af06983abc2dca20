//! The data plane between processes of one host: slots in shared memory.
//!
//! Each registered pool lies in a *segment*: a file, in `/dev/shm` on Linux, that its plane and
//! its peers map. A push is one copy, from the slot of the sender into the window of
//! the receiver, by the sender itself; the receiver looks at its slot where it lies. No byte
//! passes the kernel, and nobody is asked.
//!
//! ```text
//!   sender's process                                     receiver's process
//!  +------------------+        /dev/shm                 +------------------+
//!  | Region           |  +----------------------+       |           Region |
//!  |   Slot - - - - - - -> segment of the sender |      |                  |
//!  |         |        |  +----------------------+       |                  |
//!  |         |   one copy                               |                  |
//!  |         v        |  +-------------------------+    |                  |
//!  |  mapped once - - - -> segment of the receiver <- - - - Landing, Slot  |
//!  +------------------+  +-------------------------+    +------------------+
//! ```
//!
//! # What lies where
//!
//! A segment, version 1, in the byte order of the host:
//!
//! ```text
//!  0          8         16        24         32          40          48          56        64
//! +----------+---------+---------+----------+-----------+-----------+-----------+---------+
//! | magic    | version | base    | pool     | smallest  | offset of | offset of | total   |
//! | TWSHMSEG | u64, 1  | address | length   | block     | windows   | the pool  | length  |
//! +----------+---------+---------+----------+-----------+-----------+-----------+---------+
//!  4096      4104       4112                 4160
//! +---------+----------+--------------------+----------
//! | state   | length   | not used           | ...         one window of 64 bytes for each
//! +---------+----------+--------------------+----------   smallest block of the pool
//!  a multiple of 2 MiB
//! +------------------------------------------
//! | the pool                                              up to the end of the file
//! +------------------------------------------
//! ```
//!
//! A window is what a [`Landing`](crate::transfer::pool::Landing) opens. It stands at the first
//! block that it covers. Its state is 0 if it is closed, its generation if it is open, and
//! the number of the plane that writes into it meanwhile, which has the highest bit set. A
//! writer enters and leaves by compare-and-swap: one at a time, a second is told
//! [`Busy`](super::ErrorKind::Busy).
//!
//! Files, all of mode 0600:
//!
//! | Name | What |
//! |---|---|
//! | `tensorwire-1-plane-` 16 digits | says that a plane lives: its lock is held |
//! | `tensorwire-1-` 32 digits `-` 8 digits | a segment: the session's digits, and the pool's number in it |
//!
//! The session id is `shm-1-` and the 32 hex digits of the session: 127 random bits, which who
//! cannot list the folder cannot guess. An address has the pool's number in its upper 20 bits,
//! and the offset in the lower 44: it tells nothing of where things lie in a process. Pools are
//! counted from 8 times the lowest 16 bits of the session, plus 1, so that two sessions have
//! different addresses: what is meant for one is refused by the other.
//!
//! # Who is trusted
//!
//! - **Other users** are not. They cannot open a segment, and what they put into the folder is not
//!   opened: a file has to be plain, of our own user, of mode 0600, under one name, and no link.
//! - **Whoever can send control messages** is not. What comes over the wire is a name and two
//!   numbers. A session id is read strictly and is never a path. The address is checked, with its
//!   length and without wrapping, against the pool's length and one open window, before a byte moves.
//! - **Processes of the same user** are trusted as far as the system trusts them, which lets them
//!   write into one another's memory anyway. Still, nothing that stands in a segment decides a size
//!   or a bound: the header is read once into a private copy, which has to fit the
//!   length of the file, and is never looked at again; an owner goes by its own book of
//!   windows and blocks. Whoever scribbles over a segment makes pushes fail, keeps a block from being
//!   used again, or spoils payloads. Those are only ever viewed as plain data; they
//!   must not change while a slot is looked at, and that they do not is what
//!   remains of trust, with this: a file must not be made shorter, at which the system ends
//!   the process that touches the missing part. Files here cannot be sealed against that.
//!
//! # Who is alive
//!
//! Who made a file holds its lock (`flock`) until it dies, however it does. Nothing goes by process
//! ids, which containers count apart and the system uses again.
//!
//! - A push to a session whose lock is free, or whose file is gone, fails with
//!   [`PeerGone`](super::ErrorKind::PeerGone). Each push looks.
//! - A writer that dies inside a window does not keep it: the owner finds its lock free, and
//!   the window closes. The landing gives a slot then, half written, of which no completion
//!   and no `transfer_pushed` ever told. If it stays open, the next writer finds the lock free,
//!   and takes the place of the dead one.
//! - Dropping a [`Region`](super::Region) takes its file away; a new plane takes
//!   away what dead planes of its user left. Until then it takes up memory.
//!
//! A child that was forked and does not call `exec` keeps the locks of its parent, and must drop
//! neither planes nor regions. Where the system clears `/dev/shm` at logout (`RemoveIPC` of
//! systemd-logind), run as a system user, or in another folder: a plane that has lost its files
//! refuses to push.
//!
//! # Limits
//!
//! - Unix alone. Both ends see the same folder: containers have to share it.
//! - Memory of the host alone, taken when the pool is registered; where the folder has no
//!   room that fails, and not a later touch.
//! - Up to 2^19 pools of a plane, one after another, of up to 2^44 bytes.

mod copy;
mod error;
mod file;
mod layout;
mod mapping;
mod memory;
mod name;
mod peers;
mod plane;
mod windows;

pub use error::Error;
pub use plane::{Builder, Plane};
