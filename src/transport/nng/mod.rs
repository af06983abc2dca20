//! NNG: messages between threads, processes and hosts.

mod account;
mod builder;
mod error;
mod kind;
mod linger;
mod message;
mod raw;
mod recv;
mod send;
mod socket;

use core::fmt;
use core::time::Duration;

use alloc::sync::Arc;

pub use builder::Builder;
pub use error::Error;
pub use kind::{
    Kind, Pair0, Pair1, Publish, Pull, Push, Receives, Reply, Request, Sends, Subscribe,
};
use linger::{Lingerers, Lingering};
pub use message::Message;
pub use send::Outgoing;
pub use socket::Socket;

pub use super::body::Frame;

/// A handle to what outlives its sockets: the messages that have not left yet.
///
/// Clones are handles to the same. The last one, those of the sockets included,
/// waits on dropping for what is still to be sent; see [the module](self) on
/// closing. NNG's threads, and the `inproc` endpoints, are the whole process's.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    lingerers: Arc<Lingerers>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.lingerers.wait();
    }
}

impl Context {
    /// Makes a context.
    #[must_use]
    pub fn new() -> Self {
        let inner = Arc::default();
        Self { inner }
    }

    /// Makes a builder of a PAIR socket, version 0.
    pub fn pair0(&self) -> Builder<Pair0> {
        Builder::new(self)
    }

    /// Makes a builder of a PAIR socket, version 1.
    pub fn pair1(&self) -> Builder<Pair1> {
        Builder::new(self)
    }

    /// Makes a builder of a PUB socket.
    pub fn publish(&self) -> Builder<Publish> {
        Builder::new(self)
    }

    /// Makes a builder of a PULL socket.
    pub fn pull(&self) -> Builder<Pull> {
        Builder::new(self)
    }

    /// Makes a builder of a PUSH socket.
    pub fn push(&self) -> Builder<Push> {
        Builder::new(self)
    }

    /// Makes a builder of a REP socket.
    pub fn reply(&self) -> Builder<Reply> {
        Builder::new(self)
    }

    /// Makes a builder of a REQ socket.
    pub fn request(&self) -> Builder<Request> {
        Builder::new(self)
    }

    /// Makes a builder of a SUB socket.
    pub fn subscribe(&self) -> Builder<Subscribe> {
        Builder::new(self)
    }

    /// Keeps a dropped socket until what it sent has left.
    fn keep(&self, socket: Lingering) {
        self.inner.lingerers.keep(socket);
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

/// As many as the other transports let wait by default.
pub const DEFAULT_HIGH_WATER: u32 = 1000;

/// How long what was sent goes on its way after its socket is dropped.
pub const DEFAULT_LINGER: Duration = Duration::from_secs(30);

/// How soon a connection is tried again, at first and at most.
pub const DEFAULT_RECONNECT: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(1));

/// How long a call waits: enough for any healthy peer, and not forever.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
