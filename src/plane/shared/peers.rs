//! The segments of other planes, mapped once each.

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::io;

use super::file::{FindError, Folder, Found};
use super::mapping::Mapping;
use super::name::{Name, Session};

/// Why a pool of another plane cannot be written to.
#[derive(Debug)]
pub(super) enum PeerError {
    /// Its plane is gone, or the pool is not registered any more.
    Gone,
    /// The system's.
    Io(io::Error),
    /// The session has no such pool.
    NoPool,
    /// There is no such session, or what lies there is none.
    UnknownSession,
}

/// The segments that are mapped now, the one used last in front.
#[derive(Debug)]
pub(super) struct Peers {
    segments: Vec<Peer>,
    max: usize,
    prefault: bool,
}

#[derive(Debug)]
struct Peer {
    session: Session,
    number: u32,
    found: Found,
    mapping: Arc<Mapping>,
}

impl Peers {
    /// At most `max` are mapped at once.
    pub(super) const fn new(max: usize, prefault: bool) -> Self {
        Self {
            segments: Vec::new(),
            max,
            prefault,
        }
    }

    /// Returns pool `number` of a session, after it looked that both are still there.
    ///
    /// # Errors
    ///
    /// As [`PeerError`] says.
    pub(super) fn segment(
        &mut self,
        folder: &Folder,
        session: Session,
        number: u32,
    ) -> Result<Arc<Mapping>, PeerError> {
        let is_it = |peer: &Peer| peer.session == session && peer.number == number;
        if let Some(at) = self.segments.iter().position(is_it) {
            let is_current = self
                .segments
                .get(at)
                .is_some_and(|peer| peer.found.is_current());
            if !is_current {
                self.segments.remove(at);
                return Err(PeerError::Gone);
            }
            if let Some(front) = self.segments.get_mut(..=at) {
                front.rotate_right(1);
            }
        } else {
            let peer = self.map(folder, session, number)?;
            // A mapping keeps the memory of a dead peer: here is the time to let go of it.
            self.segments.retain(|peer| peer.found.is_current());
            self.segments.truncate(self.max.saturating_sub(1));
            self.segments.insert(0, peer);
        }
        match self.segments.first() {
            Some(peer) => Ok(Arc::clone(&peer.mapping)),
            None => Err(PeerError::Gone),
        }
    }

    /// Returns how many are mapped.
    pub(super) const fn len(&self) -> usize {
        self.segments.len()
    }

    fn map(&self, folder: &Folder, session: Session, number: u32) -> Result<Peer, PeerError> {
        let found = match folder.find(Name::Segment(session, number)) {
            Ok(found) => found,
            Err(FindError::Abandoned) => return Err(PeerError::Gone),
            Err(FindError::Foreign) => return Err(PeerError::UnknownSession),
            Err(FindError::Io(error)) => return Err(PeerError::Io(error)),
            Err(FindError::Missing) => {
                look_for(folder, session)?;
                return Err(PeerError::NoPool);
            }
        };
        let layout = found.layout(number).map_err(PeerError::Io)?;
        let layout = layout.ok_or(PeerError::UnknownSession)?;
        let mapping = match Mapping::new(&found.file, layout, self.prefault) {
            Ok(mapping) => mapping,
            // It was cut between two looks.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(PeerError::UnknownSession);
            }
            Err(error) => return Err(PeerError::Io(error)),
        };
        Ok(Peer {
            session,
            number,
            found,
            mapping: Arc::new(mapping),
        })
    }
}

/// Looks whether there is a session of this name.
///
/// # Errors
///
/// As [`PeerError`] says.
pub(super) fn look_for(folder: &Folder, session: Session) -> Result<(), PeerError> {
    match folder.find(Name::Plane(session.writer())) {
        Ok(_) => Ok(()),
        Err(FindError::Abandoned) => Err(PeerError::Gone),
        Err(FindError::Io(error)) => Err(PeerError::Io(error)),
        Err(FindError::Foreign | FindError::Missing) => Err(PeerError::UnknownSession),
    }
}
