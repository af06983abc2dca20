//! The pushing end: transfers become messages, and answers completions.

use core::fmt;
use core::time::Duration;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use std::time::Instant;

use super::connect::{Connect, Listen, SLICE};
use super::peer::{Flight, Peer};
use super::wire::Id;
use super::{Error, Inlet, MAX_PIECES, Regions, session, wire};
use crate::plane::{Completion, DataPlane, ErrorKind, PushId, Region, RegionOptions, Transfer};
use crate::transport::TransportError;

/// A data plane over messages: pushes go to the inlets of other sessions.
///
/// What goes over the links, what is promised and what is not, is in [the module](super).
/// Others push here where an [`inlet`](Self::inlet) of this plane is polled.
pub struct Plane<C: Connect> {
    connect: C,
    session: String,
    regions: Regions,
    /// What inlets know this plane by.
    origin: u64,
    /// The id of the next push; ids ascend, on each link too.
    next: u64,
    peers: Vec<Peer<C::Link>>,
    /// Counts uses of links, so that the one used longest ago is known.
    uses: u64,
    /// Whose turn it is to be waited for.
    turn: usize,
    ended: VecDeque<Completion<Error>>,
    ignored: u64,
    max_in_flight: usize,
    max_links: usize,
    max_push_bytes: u64,
    timeout: Duration,
}

impl<C: Connect> Plane<C> {
    /// Makes the plane of `session`, which reaches others by `connect`.
    ///
    /// Over sockets the session is the endpoint of the inlet, or better a
    /// [`session_id`](super::session_id) made of it. A plane that only pushes may
    /// have any.
    #[must_use]
    pub fn new(session: impl Into<String>, connect: C) -> Self {
        Self {
            connect,
            session: session.into(),
            regions: Regions::default(),
            origin: session::unlikely(),
            next: 1,
            peers: Vec::new(),
            uses: 0,
            turn: 0,
            ended: VecDeque::new(),
            ignored: 0,
            max_in_flight: DEFAULT_IN_FLIGHT,
            max_links: DEFAULT_LINKS,
            max_push_bytes: DEFAULT_PUSH_BYTES,
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Sets how many pushes may be under way; 256 unless set. One more is
    /// [`Busy`](ErrorKind::Busy).
    #[must_use]
    pub const fn with_max_in_flight(mut self, pushes: usize) -> Self {
        self.max_in_flight = pushes;
        self
    }

    /// Sets how many links are kept; 64 unless set, at least 1. For one more, that which was
    /// used longest ago is dropped; while pushes are under way on all of them, a push to
    /// another session is [`Busy`](ErrorKind::Busy).
    #[must_use]
    pub const fn with_max_links(mut self, links: usize) -> Self {
        self.max_links = links;
        self
    }

    /// Sets how many bytes one push may have; 1 GiB unless set, which is what a transport
    /// with the default [`Caps`](crate::transport::Caps) lets in.
    #[must_use]
    pub const fn with_max_push_bytes(mut self, bytes: u64) -> Self {
        self.max_push_bytes = bytes;
        self
    }

    /// Sets after how long a push without an answer has failed, counted from
    /// [`push`](DataPlane::push); 30 s unless set.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Makes an inlet of this plane's session: pushes that come in by `listen` go into the
    /// regions of this plane, those registered later too.
    ///
    /// It lives apart from the plane, and may be on another thread.
    #[must_use]
    pub fn inlet<L: Listen>(&self, listen: L) -> Inlet<L> {
        Inlet::new(self.session.clone(), self.regions.clone(), listen)
    }

    /// Returns how many pushes are under way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let flights = self.peers.iter().map(|peer| peer.flights.len());
        flights.fold(0, usize::saturating_add)
    }

    /// Returns how many links are kept.
    #[must_use]
    pub const fn links(&self) -> usize {
        self.peers.len()
    }

    /// Returns how many messages were received that answer nothing: late, or no answers.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    /// As [`poll_completion`](DataPlane::poll_completion), with the time given: a push whose
    /// time was up at `now` has failed, unless its answer is there.
    pub fn poll_completion_at(&mut self, now: Instant) -> Option<Completion<Error>> {
        self.pump(now);
        self.ended.pop_front()
    }

    /// Does what can be done on all links without waiting.
    fn pump(&mut self, now: Instant) {
        let mut index = 0;
        while let Some(peer) = self.peers.get_mut(index) {
            let mut done = peer.receive(&mut self.ended, &mut self.ignored);
            let mut is_over = false;
            if done.is_ok() {
                is_over = peer.expire(now, &mut self.ended);
                done = peer.send(&self.regions, &mut self.ended);
            }
            match done {
                Ok(()) if is_over => drop(self.peers.swap_remove(index)),
                Ok(()) => index = index.saturating_add(1),
                Err(kind) => self.drop_peer(index, kind),
            }
        }
    }

    /// Drops a link that failed; what was under way on it has failed too.
    fn drop_peer(&mut self, index: usize, kind: crate::transport::ErrorKind) {
        let peer = self.peers.swap_remove(index);
        for flight in peer.flights {
            self.ended.push_back(flight.end(Err(Error::Link(kind))));
        }
    }

    /// Finds the link to `session`, or makes one.
    fn peer(&mut self, session: &str) -> Result<usize, Error> {
        let mut peers = self.peers.iter();
        if let Some(index) = peers.position(|peer| peer.session == session) {
            return Ok(index);
        }
        if self.peers.len() >= self.max_links.max(1) {
            let idle = self.peers.iter().enumerate();
            let idle = idle.filter(|(_, peer)| peer.flights.is_empty());
            let oldest = idle.min_by_key(|(_, peer)| peer.used);
            let (oldest, _) = oldest.ok_or(ErrorKind::Busy)?;
            drop(self.peers.swap_remove(oldest));
        }
        let link = self.connect.connect(session);
        let link = link.map_err(|error| Error::NoLink(error.kind()))?;
        self.peers.push(Peer::new(session.into(), link));
        Ok(self.peers.len().saturating_sub(1))
    }

    /// Checks a transfer, and makes its metadata.
    fn prepare(&mut self, transfer: &Transfer, id: Id) -> Result<(usize, Vec<u8>), Error> {
        if self.in_flight() >= self.max_in_flight {
            return Err(ErrorKind::Busy.into());
        }
        let (limit, actual) = (self.max_push_bytes, transfer.byte_len());
        if actual > limit {
            return Err(Error::TooLarge { limit, actual });
        }
        let (limit, actual) = (MAX_PIECES, transfer.pieces().len());
        if actual > limit {
            return Err(Error::TooManyPieces { limit, actual });
        }
        let region = self.regions.owning(transfer.slot());
        let region = region.ok_or(ErrorKind::ForeignSlot)?;
        region.bytes(transfer.slot())?;
        let pieces = transfer.pieces().iter();
        let pieces = pieces.map(|piece| (piece.address(), piece.len()));
        let metadata = wire::write_push(id, transfer.session(), pieces);
        // The session is the caller's, and whatever text it is it can be written.
        let metadata = metadata.map_err(|_| ErrorKind::Backend)?;
        Ok((self.peer(transfer.session())?, metadata))
    }
}

impl<C: Connect> DataPlane for Plane<C> {
    type Error = Error;

    fn session_id(&self) -> &str {
        &self.session
    }

    fn register(&mut self, options: RegionOptions) -> Result<Region, Error> {
        Ok(self.regions.register(options)?)
    }

    fn push(&mut self, transfer: Transfer) -> Result<PushId, (Transfer, Error)> {
        let (origin, push) = (self.origin, self.next);
        let id = Id { origin, push };
        let (index, metadata) = match self.prepare(&transfer, id) {
            Ok(prepared) => prepared,
            Err(error) => return Err((transfer, error)),
        };
        self.next = push.saturating_add(1);
        self.uses = self.uses.saturating_add(1);
        let deadline = Instant::now().checked_add(self.timeout);
        let flight = Flight::new(id, transfer, metadata, deadline);
        if let Some(peer) = self.peers.get_mut(index) {
            peer.used = self.uses;
            peer.flights.push_back(flight);
            if let Err(kind) = peer.send(&self.regions, &mut self.ended) {
                self.drop_peer(index, kind);
            }
        }
        Ok(PushId::new(push))
    }

    fn poll_completion(&mut self) -> Option<Completion<Error>> {
        if let Some(ended) = self.ended.pop_front() {
            return Some(ended);
        }
        self.poll_completion_at(Instant::now())
    }

    fn wait_completion(&mut self, timeout: Duration) -> Option<Completion<Error>> {
        let start = Instant::now();
        loop {
            let ended = self.poll_completion();
            if ended.is_some() || self.peers.iter().all(|peer| peer.flights.is_empty()) {
                return ended;
            }
            let now = Instant::now();
            let left = timeout.checked_sub(now.saturating_duration_since(start))?;
            if left.is_zero() {
                return None;
            }
            self.wait(now, left);
        }
    }
}

impl<C: Connect> Plane<C> {
    /// Waits for one link on which a push is under way, for at most `left`.
    fn wait(&mut self, now: Instant, left: Duration) {
        let busy = |peer: &&mut Peer<C::Link>| !peer.flights.is_empty();
        let count = self.peers.iter_mut().filter(busy).count();
        let Some(turn) = self.turn.checked_rem(count) else {
            return;
        };
        self.turn = turn.saturating_add(1);
        let peers = self.peers.iter_mut().enumerate();
        let mut peers = peers.filter(|(_, peer)| busy(peer));
        let Some((index, peer)) = peers.nth(turn) else {
            return;
        };
        // Alone, and with nothing to send, it is waited for to the end.
        let mut longest = left;
        if count > 1 || !peer.is_all_sent() {
            longest = longest.min(SLICE);
        }
        if let Some(due) = peer.next_deadline() {
            longest = longest.min(due.saturating_duration_since(now));
        }
        if let Err(kind) = peer.wait(longest, &mut self.ended, &mut self.ignored) {
            self.drop_peer(index, kind);
        }
    }
}

impl<C: Connect> fmt::Debug for Plane<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plane")
            .field("session", &self.session)
            .field("in_flight", &self.in_flight())
            .field("links", &self.links())
            .finish_non_exhaustive()
    }
}

/// Far more than a worker has requests at a time.
const DEFAULT_IN_FLIGHT: usize = 256;

/// More peers than an instance has in a deployment of a rack.
const DEFAULT_LINKS: usize = 64;

/// The frame cap of a transport with the default caps.
const DEFAULT_PUSH_BYTES: u64 = 1 << 30;

/// What the transports wait for by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
