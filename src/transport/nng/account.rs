//! What a socket keeps account of: its connections, and what it sent that has not
//! left yet.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::{Arc, Weak};

use std::sync::{Mutex, MutexGuard, PoisonError};

use ::nng::{PipeEvent, Socket};

use super::Error;
use super::kind::sealed::Flow;
use super::raw::{each_transmitted, pipe_id};

/// The account of one socket, which NNG's threads write to as well.
#[derive(Debug, Default)]
pub(super) struct Account {
    connects: AtomicU64,
    disconnects: AtomicU64,
    /// Messages that a send handed to NNG.
    handed: AtomicU64,
    connections: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    /// Those that are there, and how many replies were handed to NNG for each.
    live: BTreeMap<c_int, u64>,
    /// How many messages those took that are gone.
    taken_by_gone: u64,
}

impl Account {
    /// Opens the account of `socket`; one that never sends needs less of it.
    pub(super) fn open(socket: &Socket, sends: bool) -> Result<Arc<Self>, Error> {
        let account = Arc::new(Self::default());
        let ours = account.clone();
        let handle = socket.nng_socket();
        // No panic in here: it would end the process.
        socket.pipe_notify(move |pipe, event| match event {
            PipeEvent::AddPre => {
                if sends {
                    ours.connections().live.insert(pipe_id(pipe), 0);
                }
                ours.connects.fetch_add(1, Ordering::Relaxed);
            }
            PipeEvent::RemovePost => {
                if sends {
                    ours.remove(handle, pipe_id(pipe));
                }
                ours.disconnects.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        })?;
        Ok(account)
    }

    /// Returns how many connections were made, and how many of them were lost.
    pub(super) fn connections_made(&self) -> (u64, u64) {
        // In this order, so that none is lost before it was made.
        let lost = self.disconnects.load(Ordering::Relaxed);
        (self.connects.load(Ordering::Relaxed), lost)
    }

    /// Counts a message that a send handed over.
    pub(super) fn handed(&self) {
        self.handed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message that a send handed over when connections had taken `taken`,
    /// some of those perhaps more than once.
    pub(super) fn handed_after(&self, taken: u64) {
        self.handed
            .store(taken.saturating_add(1), Ordering::Relaxed);
    }

    /// Counts a message that a send handed over as a reply to the connection `pipe`.
    pub(super) fn replied(&self, pipe: c_int) {
        self.handed();
        // NNG drops replies to connections that are gone.
        if let Some(replies) = self.connections().live.get_mut(&pipe) {
            *replies = replies.saturating_add(1);
        }
    }

    /// Tells whether nothing was handed over.
    pub(super) fn is_unused(&self) -> bool {
        self.handed.load(Ordering::Relaxed) == 0
    }

    /// Tells whether connections have taken all that was handed over.
    pub(super) fn is_settled(&self, socket: &Socket, flow: Flow) -> bool {
        let connections = self.connections();
        if flow == Flow::Replies {
            // What a connection did not take in its time is lost with it.
            let mut due = connections.live.clone();
            each_transmitted(socket.nng_socket(), |pipe, sent| {
                if due.get(&pipe).is_some_and(|&replies| sent >= replies) {
                    due.remove(&pipe);
                }
            });
            return due.values().all(|&replies| replies == 0);
        }
        connections.taken(socket) >= self.handed.load(Ordering::Relaxed)
    }

    /// Returns how many connections there are.
    pub(super) fn live(&self) -> usize {
        self.connections().live.len()
    }

    /// Returns how many messages connections have taken so far.
    pub(super) fn taken(&self, socket: &Socket) -> u64 {
        self.connections().taken(socket)
    }

    fn remove(&self, socket: nng_sys::nng_socket, pipe: c_int) {
        let mut connections = self.connections();
        connections.live.remove(&pipe);
        if !self.is_unused() {
            let mut taken = connections.taken_by_gone;
            each_transmitted(socket, |other, sent| {
                if other == pipe {
                    taken = taken.saturating_add(sent);
                }
            });
            connections.taken_by_gone = taken;
        }
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        // A poisoned account is whole all the same: each change is one step.
        let connections = self.connections.lock();
        connections.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    fn taken(&self, socket: &Socket) -> u64 {
        let mut sum = self.taken_by_gone;
        each_transmitted(socket.nng_socket(), |pipe, sent| {
            // One that is going is in the other sum already.
            if self.live.contains_key(&pipe) {
                sum = sum.saturating_add(sent);
            }
        });
        sum
    }
}

/// What went over one inproc endpoint in one direction, between sockets of ours.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    sent: AtomicU64,
    taken: AtomicU64,
    /// Whether it has messages that were taken and not counted as sent.
    uncounted: AtomicBool,
}

impl Traffic {
    /// Finds the account of `endpoint`, in the direction from its listener or to it.
    pub(super) fn of(endpoint: &str, from_listener: bool) -> Arc<Self> {
        let mut known = TRAFFIC.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, traffic| traffic.strong_count() > 0);
        let key = (endpoint.to_owned(), from_listener);
        if let Some(traffic) = known.get(&key).and_then(Weak::upgrade) {
            return traffic;
        }
        let traffic = Arc::new(Self::default());
        known.insert(key, Arc::downgrade(&traffic));
        traffic
    }

    pub(super) fn sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn taken(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Says that a socket sends here that does not know where its messages go.
    pub(super) fn has_uncounted(&self) {
        self.uncounted.store(true, Ordering::Relaxed);
    }

    /// Tells whether receivers took all that was sent.
    pub(super) fn is_settled(&self) -> bool {
        !self.uncounted.load(Ordering::Relaxed)
            && self.taken.load(Ordering::Relaxed) >= self.sent.load(Ordering::Relaxed)
    }
}

static TRAFFIC: Mutex<BTreeMap<(String, bool), Weak<Traffic>>> = Mutex::new(BTreeMap::new());
