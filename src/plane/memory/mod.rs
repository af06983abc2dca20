//! The data plane between threads of one process.
//!
//! A [`Hub`] is where planes meet: there is no other state, and two hubs know nothing of
//! each other. A push finds the session in the hub, checks where its pieces are to go, and copies
//! them there, once, before it returns; its completion is there to be polled.
//!
//! It is the test bed of what is built on data planes, too: a [`Script`] makes pushes fail and
//! stops them half way.
//!
//! # Examples
//!
//! ```
//! use tensorwire::plane::memory::Hub;
//! use tensorwire::plane::{DataPlane, RegionOptions, Transfer};
//!
//! let hub = Hub::new();
//! let (mut sender, mut receiver) = (hub.join("encoder-0")?, hub.join("denoiser-0")?);
//! let theirs = receiver.register(RegionOptions::new(4096).with_min_block(512))?;
//! let ours = sender.register(RegionOptions::new(4096).with_min_block(512))?;
//!
//! let landing = theirs.pool().allocate(1000)?.open();
//! let address = theirs.address_of(landing.offset())?;
//!
//! let mut slot = ours.pool().allocate(1000)?;
//! ours.bytes_mut(&mut slot)?[..1000].fill(7);
//! let mut transfer = Transfer::new(slot, receiver.session_id());
//! transfer.add_piece(0..1000, address)?;
//! sender.push(transfer).map_err(|(_, error)| error)?;
//! let (_slot, result) = sender.poll_completion().ok_or("no end")?.into_parts();
//! assert_eq!(result?, 1000);
//!
//! let slot = landing.close()?;
//! assert_eq!(theirs.bytes(&slot)?[..1000], [7; 1000]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod script;

use core::fmt;
use core::time::Duration;

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use std::sync::{Mutex, MutexGuard, PoisonError};

use script::Held;
pub use script::{Fault, Hold, Script};

use super::region::{Delivery, Regions};
use super::{Completion, DataPlane, ErrorKind, PushId, Region, RegionOptions, Transfer};
use crate::transport::{Deadline, Wait};

/// Where the planes of a process meet. Clones are the same hub.
#[derive(Clone, Default)]
pub struct Hub {
    /// Every session that ever joined, by name.
    sessions: Arc<Mutex<BTreeMap<String, Weak<Session>>>>,
}

/// What peers see of a plane.
struct Session {
    name: String,
    regions: Regions,
}

impl Session {
    /// Enters the windows that the pieces of `transfer` go to, all in one region.
    fn begin(&self, transfer: &Transfer) -> Result<Option<Delivery>, ErrorKind> {
        if transfer.pieces().is_empty() {
            return Ok(None);
        }
        self.regions.begin(transfer.pieces()).map(Some)
    }
}

impl Hub {
    /// Makes a hub without sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a plane whose session has this name, for as long as the plane lives.
    ///
    /// The name of a plane that was dropped may be taken again, as a worker does that
    /// starts anew.
    ///
    /// # Errors
    ///
    /// [`NameTaken`] if a plane of that name is there.
    pub fn join(&self, name: &str) -> Result<Plane, NameTaken> {
        let mut sessions = self.lock();
        if sessions
            .get(name)
            .is_some_and(|there| there.strong_count() > 0)
        {
            return Err(NameTaken);
        }
        let session = Arc::new(Session {
            name: name.to_owned(),
            regions: Regions::default(),
        });
        sessions.insert(name.to_owned(), Arc::downgrade(&session));
        drop(sessions);
        Ok(Plane {
            hub: self.clone(),
            session,
            script: Script::new(),
            next_id: 0,
            under_way: VecDeque::new(),
            ended: VecDeque::new(),
        })
    }

    fn find(&self, name: &str) -> Result<Arc<Session>, ErrorKind> {
        let sessions = self.lock();
        let session = sessions.get(name).ok_or(ErrorKind::UnknownSession)?;
        session.upgrade().ok_or(ErrorKind::PeerGone)
    }

    /// A panic between two steps leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Weak<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

/// A session of this name is in the hub already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct NameTaken;

impl fmt::Display for NameTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a session of this name is there already")
    }
}

impl core::error::Error for NameTaken {}

/// The data plane of one worker of a process, in a [`Hub`].
///
/// Of the host's memory, [`MemoryKind::Host`](super::MemoryKind::Host), alone. Dropped, its session is gone: pushes to
/// it fail with [`PeerGone`](ErrorKind::PeerGone), and its own that were held end untold.
pub struct Plane {
    hub: Hub,
    session: Arc<Session>,
    script: Script,
    next_id: u64,
    under_way: VecDeque<Push>,
    ended: VecDeque<Completion<ErrorKind>>,
}

/// A push that has not ended.
struct Push {
    id: PushId,
    transfer: Transfer,
    /// The region of its slot, kept for as long as it is read.
    source: Region,
    fault: Fault,
    held: Option<Held>,
    stage: Stage,
}

enum Stage {
    Begun,
    /// It is in its windows, and has written nothing; `None` without pieces.
    Entered(Option<Delivery>),
    Ended(Result<u64, ErrorKind>),
}

impl Plane {
    /// Returns a handle that makes pushes of this plane fail, and stops them half way.
    #[must_use]
    pub fn script(&self) -> Script {
        self.script.clone()
    }

    /// Lets every push go on as far as the script allows.
    fn drive(&mut self) {
        self.script
            .release_held(self.under_way.iter_mut().map(|push| &mut push.held));
        for _ in 0..self.under_way.len() {
            let Some(mut push) = self.under_way.pop_front() else {
                return;
            };
            push.stage = push.go_on(&self.hub);
            match push.stage {
                Stage::Ended(result) if push.held.is_none() => {
                    let slot = push.transfer.into_slot();
                    self.ended.push_back(Completion::new(push.id, slot, result));
                }
                _ => self.under_way.push_back(push),
            }
        }
    }
}

impl Push {
    fn go_on(&mut self, hub: &Hub) -> Stage {
        let mut stage = core::mem::replace(&mut self.stage, Stage::Begun);
        if matches!(stage, Stage::Begun) && !self.stops(Hold::BeforeWindow) {
            stage = match self.enter(hub) {
                Ok(delivery) => Stage::Entered(delivery),
                Err(error) => Stage::Ended(Err(error)),
            };
        }
        match stage {
            Stage::Entered(delivery) if !self.stops(Hold::InWindow) => {
                Stage::Ended(self.write(delivery))
            }
            stage => stage,
        }
    }

    fn stops(&self, hold: Hold) -> bool {
        self.held.is_some_and(|held| held.at == hold)
    }

    fn enter(&self, hub: &Hub) -> Result<Option<Delivery>, ErrorKind> {
        if let Fault::Fail(kind) = self.fault {
            return Err(kind);
        }
        hub.find(self.transfer.session())?.begin(&self.transfer)
    }

    fn write(&self, delivery: Option<Delivery>) -> Result<u64, ErrorKind> {
        let Some(mut delivery) = delivery else {
            return Ok(0);
        };
        let bytes = self.source.bytes(self.transfer.slot())?;
        let (mut left, kind) = match self.fault {
            Fault::Cut { bytes, kind } => (bytes, Some(kind)),
            _ => (usize::MAX, None),
        };
        for piece in self.transfer.pieces() {
            let bytes = bytes.get(piece.source()).unwrap_or_default();
            let bytes = bytes.get(..left).unwrap_or(bytes);
            delivery.write(piece.address(), bytes)?;
            left = left.saturating_sub(bytes.len());
        }
        kind.map_or_else(|| Ok(self.transfer.byte_len()), Err)
    }
}

impl DataPlane for Plane {
    type Error = ErrorKind;

    fn session_id(&self) -> &str {
        &self.session.name
    }

    /// # Errors
    ///
    /// - [`Unsupported`](ErrorKind::Unsupported) for memory that is not plainly the host's.
    /// - [`Pool`](ErrorKind::Pool) for lengths that no pool has, or without so much memory.
    fn register(&mut self, options: RegionOptions) -> Result<Region, ErrorKind> {
        self.session.regions.register(options)
    }

    /// # Errors
    ///
    /// [`UnknownSession`](ErrorKind::UnknownSession), [`ForeignSlot`](ErrorKind::ForeignSlot), and what a
    /// script [refuses](Fault::Refuse). All else is told by the completion.
    fn push(&mut self, transfer: Transfer) -> Result<PushId, (Transfer, ErrorKind)> {
        if let Err(error @ ErrorKind::UnknownSession) = self.hub.find(transfer.session()) {
            return Err((transfer, error));
        }
        let Some(source) = self.session.regions.owning(transfer.slot()) else {
            return Err((transfer, ErrorKind::ForeignSlot));
        };
        let (fault, held) = self.script.next();
        if let Fault::Refuse(error) = fault {
            return Err((transfer, error));
        }
        let id = PushId::new(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        self.under_way.push_back(Push {
            id,
            transfer,
            source,
            fault,
            held,
            stage: Stage::Begun,
        });
        self.drive();
        Ok(id)
    }

    fn poll_completion(&mut self) -> Option<Completion<ErrorKind>> {
        self.drive();
        self.ended.pop_front()
    }

    fn wait_completion(&mut self, timeout: Duration) -> Option<Completion<ErrorKind>> {
        let deadline = Deadline::new(Wait::UpTo(timeout), None);
        loop {
            let version = self.script.version();
            if let Some(completion) = self.poll_completion() {
                return Some(completion);
            }
            if self.under_way.is_empty() {
                return None;
            }
            // Held by the script: nothing else makes a push wait.
            self.script.wait(version, deadline.remaining().ok()?);
        }
    }
}

impl fmt::Debug for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plane")
            .field("session_id", &self.session.name)
            .field("under_way", &self.under_way.len())
            .field("ended", &self.ended.len())
            .finish_non_exhaustive()
    }
}
