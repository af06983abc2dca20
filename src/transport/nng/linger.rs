//! Sockets that were dropped while something they sent had not left yet.
//!
//! NNG drops what is queued when a socket closes, cuts what is being written, and
//! over inproc even what the receiver has not fetched yet. So a dropped socket
//! that sent something stays open in the background until all of it has left.

use core::time::Duration;

use alloc::sync::Arc;
use alloc::vec::Vec;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use ::nng::Socket;
use ::nng::options::{Options as _, SendBufferSize};

use super::account::{Account, Traffic};
use super::kind::sealed::Flow;
use super::raw::is_writable;

/// A dropped socket, until what it sent has left.
pub(super) struct Lingering {
    pub(super) socket: Socket,
    pub(super) account: Arc<Account>,
    pub(super) flow: Flow,
    pub(super) over: Over,
    /// When it closes in any case; `None` is never.
    pub(super) until: Option<Instant>,
    /// How long the queue still is, at most.
    pub(super) queued: i32,
    /// For broadcasts: the messages that had left, and since when no more did.
    pub(super) quiet: Option<(u64, Instant)>,
}

/// What a socket is connected over.
#[derive(Clone, Debug, Default)]
pub(super) enum Over {
    /// Nothing yet.
    #[default]
    Nothing,
    /// One inproc endpoint; in this direction.
    Inproc {
        outgoing: Arc<Traffic>,
        incoming: Arc<Traffic>,
    },
    /// Several endpoints, inproc among them; to those.
    Mixed(Vec<Arc<Traffic>>),
    /// Endpoints of the system.
    System,
}

impl Lingering {
    /// Tells whether it can close without losing anything.
    pub(super) fn is_done(&mut self) -> bool {
        let now = Instant::now();
        if self.until.is_some_and(|until| until <= now) {
            return true;
        }
        match &self.over {
            // Nobody can come any more.
            Over::Nothing => true,
            _ if self.flow == Flow::Broadcast => self.is_quiet(now),
            Over::Inproc { outgoing, .. } => outgoing.is_settled(),
            Over::Mixed(_) => self.account.is_settled(&self.socket, self.flow),
            Over::System => self.account.is_settled(&self.socket, self.flow) || self.is_drained(),
        }
    }

    /// Tells whether nothing is left but what was lost with a connection: no count tells
    /// that from what is still to go.
    fn is_drained(&mut self) -> bool {
        let (_, lost) = self.account.connections_made();
        let live = self.account.live();
        match self.flow {
            _ if lost == 0 || live > 1 => false,
            // It went to the connection that is gone.
            Flow::Requests => live == 0,
            Flow::Queued => self.is_queue_empty(live),
            _ => false,
        }
    }

    /// Tells whether the queue is empty and the one connection, if there is one, idle.
    ///
    /// NNG does not say how long a queue is. It does say whether there is room: then
    /// the queue is shorter than it may be, or a connection is idle and so it is empty.
    /// In both cases it may be made shorter by one without losing a message; nobody
    /// sends any more. Without a queue, there is room while a connection is idle.
    fn is_queue_empty(&mut self, live: usize) -> bool {
        loop {
            let set = self.socket.set_opt::<SendBufferSize>(self.queued);
            let Some(has_room) = set.ok().and_then(|()| is_writable(&self.socket)) else {
                return false;
            };
            if self.queued == 0 {
                return has_room || live == 0;
            }
            if !has_room {
                return false;
            }
            self.queued = self.queued.saturating_sub(1);
        }
    }

    /// Tells whether no message has left for a while.
    fn is_quiet(&mut self, now: Instant) -> bool {
        let left = self.account.taken(&self.socket);
        match self.quiet {
            Some((before, since)) if before == left => {
                now.saturating_duration_since(since) >= QUIET
            }
            _ => {
                self.quiet = Some((left, now));
                false
            }
        }
    }

    /// Tells whether the end of the context has to wait for it. Over inproc the
    /// receiver is in this process: it goes on without anybody waiting.
    fn is_awaited(&self) -> bool {
        !matches!(self.over, Over::Inproc { .. })
    }
}

/// The lingering sockets of one context.
#[derive(Default)]
pub(super) struct Lingerers {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Not seen by the thread yet.
    arrived: Vec<Lingering>,
    /// Not closed yet, and to be waited for.
    awaited: usize,
    /// Whether the thread is there.
    running: bool,
}

impl Lingerers {
    /// Takes a socket over. Returns at once, unless there can be no thread.
    pub(super) fn keep(self: &Arc<Self>, mut socket: Lingering) {
        let mut state = self.lock();
        if !state.running {
            let ours = self.clone();
            let thread = thread::Builder::new().name("tensorwire nng".into());
            if thread.spawn(move || ours.run()).is_err() {
                drop(state);
                while !socket.is_done() {
                    thread::sleep(LONGEST_PAUSE);
                }
                return;
            }
            state.running = true;
        }
        if socket.is_awaited() {
            state.awaited = state.awaited.saturating_add(1);
        }
        state.arrived.push(socket);
        self.changed.notify_all();
    }

    /// Waits until no socket has to be waited for.
    pub(super) fn wait(&self) {
        let mut state = self.lock();
        while state.awaited > 0 {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What the thread does: it looks, ever less often, and ends with the last socket.
    fn run(&self) {
        let mut sockets = Vec::new();
        let mut pause = SHORTEST_PAUSE;
        loop {
            let mut state = self.lock();
            if !state.arrived.is_empty() {
                sockets.append(&mut state.arrived);
                pause = SHORTEST_PAUSE;
            }
            if sockets.is_empty() {
                state.running = false;
                return;
            }
            drop(state);
            let mut closed: usize = 0;
            sockets.retain_mut(|socket| {
                let done = socket.is_done();
                if done && socket.is_awaited() {
                    closed = closed.saturating_add(1);
                }
                !done
            });
            let mut state = self.lock();
            if closed > 0 {
                state.awaited = state.awaited.saturating_sub(closed);
                self.changed.notify_all();
            }
            if state.arrived.is_empty() && !sockets.is_empty() {
                let woken = self.changed.wait_timeout(state, pause);
                drop(woken.unwrap_or_else(PoisonError::into_inner));
                pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned state is whole all the same: each change is one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long no message has to leave before a broadcast counts as over.
const QUIET: Duration = Duration::from_millis(100);

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
