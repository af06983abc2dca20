//! The plane.

use core::fmt;
use core::time::Duration;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use std::env;
use std::io;
use std::path::{Path, PathBuf};

use super::Error;
use super::file::{Folder, Held};
use super::layout::{Layout, MAX_NUMBER, split_address};
use super::mapping::Mapping;
use super::memory::SegmentMemory;
use super::name::{Name, Session};
use super::peers::{Peers, look_for};
use super::windows::{OwnWindows, Writing};
use crate::convert::to_u64;
use crate::plane::{
    Completion, DataPlane, ErrorKind, Piece, PushId, Region, RegionOptions, Transfer, WeakRegion,
};
use crate::transfer::pool::rounded_len;

/// How a [`Plane`] is to be.
///
/// # Examples
///
/// ```
/// use tensorwire::plane::{DataPlane, shared};
///
/// let folder = std::env::temp_dir().join("tensorwire-doc-builder");
/// let plane = shared::Builder::new().with_folder(&folder).with_prefault(true).build()?;
/// assert!(plane.session_id().starts_with("shm-1-"));
/// # drop(plane);
/// # std::fs::remove_dir(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    folder: PathBuf,
    prefault: bool,
    max_mapped: usize,
}

impl Builder {
    /// As most want it: in `/dev/shm` on Linux, in the folder for temporary files elsewhere.
    #[must_use]
    pub fn new() -> Self {
        let shm = Path::new("/dev/shm");
        let is_there = cfg!(target_os = "linux") && shm.is_dir();
        Self {
            folder: if is_there {
                shm.into()
            } else {
                env::temp_dir()
            },
            prefault: false,
            max_mapped: 32,
        }
    }

    /// Sets the folder that segments lie in, the same for all planes that are to meet.
    ///
    /// It is made, for nobody but its owner, if it is not there. Where others may write to it,
    /// it has to be one in which they cannot take away our files, as `/dev/shm` is and
    /// `/tmp`. In a folder that is not in memory, the system writes to a disk what is pushed.
    #[must_use]
    pub fn with_folder<P: Into<PathBuf>>(mut self, folder: P) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets whether a segment's pages are mapped all at once, one's own at `register` and a
    /// peer's at the first push to it, and not one by one when they are touched first.
    ///
    /// The first push then takes the time of the whole pool, and none after it is slowed
    /// by first touches. Off if not set.
    #[must_use]
    pub const fn with_prefault(mut self, prefault: bool) -> Self {
        self.prefault = prefault;
        self
    }

    /// Sets how many segments of peers stay mapped, at least 1; 32 if not set.
    ///
    /// The one that was not pushed to for the longest time makes room. Segments of peers that
    /// are gone are let go of when the next one is mapped.
    #[must_use]
    pub const fn with_max_mapped(mut self, max_mapped: usize) -> Self {
        self.max_mapped = max_mapped;
        self
    }

    /// Makes the plane, with a session of its own, and takes away what dead
    /// planes of this user have left in the folder.
    ///
    /// # Errors
    ///
    /// [`Backend`](ErrorKind::Backend), with [what the system said](Error::io_kind): the folder
    /// cannot be made or written to, or there are no random bytes.
    pub fn build(self) -> Result<Plane, Error> {
        let (folder, session, alive) = Folder::enter(&self.folder)?;
        Ok(Plane {
            folder,
            session,
            id: session.id(),
            alive,
            own: Vec::new(),
            peers: Peers::new(self.max_mapped, self.prefault),
            prefault: self.prefault,
            number: session.numbers_from(),
            pushes: 0,
            ended: VecDeque::new(),
            copied_bytes: 0,
        })
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

/// A data plane between processes of one host and one user, over shared memory.
///
/// A push is one copy, from the sender's segment into the receiver's, and is over when
/// [`push`](DataPlane::push) returns. See [the module](super) for what lies where, and
/// who is trusted.
///
/// # Examples
///
/// Two planes, here of one process:
///
/// ```
/// use tensorwire::plane::{DataPlane, RegionOptions, Transfer, shared};
///
/// let folder = std::env::temp_dir().join("tensorwire-doc-shared");
/// let builder = shared::Builder::new().with_folder(&folder);
/// let (mut sender, mut receiver) = (builder.clone().build()?, builder.build()?);
/// let from = sender.register(RegionOptions::new(1 << 20))?;
/// let to = receiver.register(RegionOptions::new(1 << 20))?;
///
/// // The receiver lets peers write to a slot, and tells where it is.
/// let landing = to.pool().allocate(5)?.open();
/// let address = to.address_of(landing.offset())?;
///
/// let mut slot = from.pool().allocate(5)?;
/// from.bytes_mut(&mut slot)?[..5].copy_from_slice(b"hello");
/// let mut transfer = Transfer::new(slot, receiver.session_id());
/// transfer.add_piece(0..5, address)?;
/// sender.push(transfer).map_err(|(_transfer, error)| error)?;
/// let pushed = sender.poll_completion().ok_or("it is over")?;
/// assert_eq!(pushed.result(), Ok(5));
///
/// let slot = landing.close()?;
/// assert_eq!(to.bytes(&slot)?[..5], *b"hello");
/// # drop((pushed, slot, from, to, sender, receiver));
/// # std::fs::remove_dir(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Plane {
    folder: Folder,
    session: Session,
    id: String,
    /// What marks the session as living. Dropped after `own` was of any use to peers.
    alive: Held,
    own: Vec<Own>,
    peers: Peers,
    prefault: bool,
    /// Of the pool that was registered last.
    number: u32,
    pushes: u64,
    ended: VecDeque<Completion<Error>>,
    copied_bytes: u64,
}

/// A pool that was registered here.
struct Own {
    number: u32,
    region: WeakRegion,
    windows: Weak<OwnWindows>,
}

impl Plane {
    /// As [`Builder::new`] says.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new() -> Result<Self, Error> {
        Builder::new().build()
    }

    /// Returns how many bytes were copied by all pushes so far: each byte that arrived once.
    #[must_use]
    pub const fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// Returns how many segments of peers are mapped now.
    #[must_use]
    pub const fn mapped_segments(&self) -> usize {
        self.peers.len()
    }

    /// Copies all pieces, or finds out that it may not before the first byte.
    ///
    /// Returns how many bytes were copied, and whether every owner still wanted them.
    fn copy(&mut self, transfer: &Transfer) -> Result<(u64, bool), Error> {
        if !self.alive.is_linked() {
            // Somebody has taken our files away. To our peers we are dead.
            return Err(io::Error::from(io::ErrorKind::NotFound).into());
        }
        let session = Session::parse(transfer.session()).ok_or(ErrorKind::UnknownSession)?;
        let region = self.region_of(transfer)?;
        let bytes = region.bytes(transfer.slot())?;
        let mut writing = Writing::new(self.session.writer());
        let mut targets = Vec::with_capacity(transfer.pieces().len());
        if transfer.pieces().is_empty() {
            let found = look_for(&self.folder, session);
            found.map_err(|error| Error::of_peer(error, 0, 0))?;
        }
        for piece in transfer.pieces() {
            // The pool of a piece before is the same map: it is held, whatever was mapped since.
            let (number, _) = split_address(piece.address());
            let known = targets
                .iter()
                .map(|(mapping, _, _): &(Arc<Mapping>, _, _)| mapping);
            let known = known.rev().find(|known| known.layout().number() == number);
            let (mapping, offset) = self.enter(session, piece, known, &mut writing)?;
            let (end, slot_len) = (piece.source().end, bytes.len());
            let outside = ErrorKind::SourceOutOfBounds { end, slot_len };
            let source = bytes.get(piece.source()).ok_or(outside)?;
            targets.push((mapping, offset, source));
        }
        let mut copied: u64 = 0;
        let mut is_whole = true;
        for (mapping, offset, source) in &targets {
            is_whole &= mapping.copy_to_pool(*offset, source);
            copied = copied.saturating_add(to_u64(source.len()));
        }
        Ok((copied, writing.finish() && is_whole))
    }

    /// Finds the window of a piece and enters it. `known` is its pool, if a piece before has it.
    fn enter(
        &mut self,
        session: Session,
        piece: &Piece,
        known: Option<&Arc<Mapping>>,
        writing: &mut Writing,
    ) -> Result<(Arc<Mapping>, usize), Error> {
        let (address, len) = (piece.address(), to_u64(piece.len()));
        let (number, _) = split_address(address);
        let mapping = match known {
            Some(known) => Arc::clone(known),
            None => {
                let found = self.peers.segment(&self.folder, session, number);
                found.map_err(|error| Error::of_peer(error, address, len))?
            }
        };
        let layout = mapping.layout();
        let offset = piece.offset_in(layout.base(), layout.pool_len())?;
        let index = writing.enter(&self.folder, &mapping, offset, piece.len());
        let index = index.map_err(|refused| Error::of_window(refused, len))?;
        // In a pool of this very plane, others may have opened what is not.
        if session == self.session && !self.has_open(number, index, offset, piece.len()) {
            return Err(ErrorKind::Closed.into());
        }
        Ok((mapping, offset))
    }

    fn region_of(&self, transfer: &Transfer) -> Result<Region, ErrorKind> {
        let regions = self.own.iter().filter_map(|own| own.region.upgrade());
        let mut regions = regions.filter(|region| region.pool().owns(transfer.slot()));
        regions.next().ok_or(ErrorKind::ForeignSlot)
    }

    fn has_open(&self, number: u32, index: usize, offset: usize, len: usize) -> bool {
        let own = self.own.iter().find(|own| own.number == number);
        let windows = own.and_then(|own| own.windows.upgrade());
        windows.is_some_and(|windows| windows.has(index, offset, len))
    }
}

impl DataPlane for Plane {
    type Error = Error;

    fn session_id(&self) -> &str {
        &self.id
    }

    /// Makes a region in a segment of its own: memory of the host.
    ///
    /// All of its memory is taken now, which fails with [`io::ErrorKind::StorageFull`]
    /// where the folder has no room for it.
    fn register(&mut self, options: RegionOptions) -> Result<Region, Error> {
        let kind = options.kind();
        if kind != crate::plane::MemoryKind::Host {
            return Err(ErrorKind::Unsupported { kind }.into());
        }
        let len = rounded_len(options.len(), options.min_block()).map_err(ErrorKind::from)?;
        let (session, mut number) = (self.session, self.number);
        let created = self.folder.create_segment(|| {
            number = number.saturating_add(1);
            let layout = Layout::new(number, to_u64(len), to_u64(options.min_block()));
            let layout = layout.ok_or(io::ErrorKind::InvalidInput)?;
            Ok((Name::Segment(session, number), layout))
        });
        // No address is given twice, even if this one came to nothing.
        self.number = number.min(MAX_NUMBER);
        let (held, layout) = created?;
        let mapping = Arc::new(Mapping::new(held.file(), layout, self.prefault)?);
        let windows = OwnWindows::new(Arc::clone(&mapping), self.folder.clone());
        let windows = Arc::new(windows);
        let memory = Box::new(SegmentMemory::new(mapping, held));
        let own = Arc::downgrade(&windows);
        let region = Region::new(memory, options.min_block(), windows)?;
        self.own.retain(|own| own.region.upgrade().is_some());
        self.own.push(Own {
            number,
            region: region.downgrade(),
            windows: own,
        });
        Ok(region)
    }

    /// Copies the bytes to their places. It is over when this returns.
    fn push(&mut self, transfer: Transfer) -> Result<PushId, (Transfer, Error)> {
        let result = match self.copy(&transfer) {
            Ok((copied, is_wanted)) => {
                self.copied_bytes = self.copied_bytes.saturating_add(copied);
                // The owner gave up waiting while the bytes were on their way.
                let closed = || Error::from(ErrorKind::Closed);
                is_wanted.then_some(copied).ok_or_else(closed)
            }
            Err(error) => return Err((transfer, error)),
        };
        let id = PushId::new(self.pushes);
        self.pushes = self.pushes.wrapping_add(1);
        let completion = Completion::new(id, transfer.into_slot(), result);
        self.ended.push_back(completion);
        Ok(id)
    }

    fn poll_completion(&mut self) -> Option<Completion<Error>> {
        self.ended.pop_front()
    }

    fn wait_completion(&mut self, _timeout: Duration) -> Option<Completion<Error>> {
        // None is ever under way.
        self.poll_completion()
    }
}

impl fmt::Debug for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plane")
            .field("folder", &self.folder)
            .field("regions", &self.own.len())
            .field("mapped_segments", &self.peers.len())
            .finish_non_exhaustive()
    }
}
