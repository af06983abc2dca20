//! A socket, apart from what goes through it.

use core::ffi::c_int;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::time::Duration;

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use std::time::Instant;

use ::nng::options::Options as _;
use ::nng::options::protocol::pubsub;
use ::nng::{Dialer, Listener};

use super::account::{Account, Traffic};
use super::builder::Options;
use super::kind::sealed::Flow;
use super::kind::{Kind, Request, Subscribe};
use super::linger::{Lingering, Over};
use super::raw::{Operation, Pending};
use super::{Context, Error, endpoint};
use crate::transport::{Counters, Observed, Recorder};

/// An NNG socket of one kind.
///
/// What it can do depends on the kind: a [`Pull`](super::Pull) socket has no
/// `send`. It is used by one thread at a time and may be moved to another.
pub struct Socket<K: Kind> {
    pub(super) sending: Operation,
    pub(super) receiving: Operation,
    /// For a Request socket: the receive that is started with each request.
    pub(super) pending: Option<Pending>,
    pub(super) socket: ::nng::Socket,
    pub(super) account: Arc<Account>,
    pub(super) options: Options,
    pub(super) over: Over,
    pub(super) recorder: Recorder,
    /// For a Request socket: whether its request was sent and has no reply yet.
    pub(super) awaits_reply: bool,
    /// For a Reply socket: the connection that the last request came by.
    pub(super) asked_by: c_int,
    /// The lengths of the frames of a loan.
    pub(super) lengths: Vec<usize>,
    context: Context,
    endpoint: String,
    kind: PhantomData<K>,
}

impl<K: Kind> Socket<K> {
    pub(super) fn open(context: Context, options: Options) -> Result<Self, Error> {
        let socket = ::nng::Socket::new(K::PROTOCOL)?;
        options.apply::<K>(&socket)?;
        if !options.topics.is_empty() {
            subscribe_to_all(&socket)?;
        }
        Ok(Self {
            sending: Operation::new()?,
            receiving: Operation::new()?,
            pending: match K::FLOW {
                Flow::Requests => Some(Pending::new()?),
                _ => None,
            },
            account: Account::open(&socket, K::SENDS)?,
            socket,
            options,
            over: Over::Nothing,
            recorder: Recorder::new("nng"),
            awaits_reply: false,
            asked_by: 0,
            lengths: Vec::new(),
            context,
            endpoint: String::new(),
            kind: PhantomData,
        })
    }

    /// Listens at one more endpoint, and returns it with what the system chose: the
    /// port for `tcp://127.0.0.1:0`. For `tcp://*:0`, all addresses, the host is
    /// `0.0.0.0`, which this host can dial; others need its name.
    ///
    /// # Errors
    ///
    /// [`Error::Endpoint`], or [`Error::System`] for what else NNG says.
    pub fn listen(&mut self, endpoint: &str) -> Result<&str, Error> {
        endpoint::check(endpoint, true)?;
        let listener = Listener::new(&self.socket, endpoint).map_err(Error::of_endpoint)?;
        self.note(endpoint::actual(&listener, endpoint), true);
        Ok(&self.endpoint)
    }

    /// Connects to one more endpoint, in the background and again whenever the
    /// connection is lost. The peer need not be there yet. A host that is not there, or a
    /// name that nobody knows, is tried again and again, and no error tells of it.
    ///
    /// # Errors
    ///
    /// [`Error::Endpoint`], or [`Error::System`] for what else NNG says.
    pub fn dial(&mut self, endpoint: &str) -> Result<(), Error> {
        endpoint::check(endpoint, false)?;
        Dialer::new(&self.socket, endpoint, true).map_err(Error::of_endpoint)?;
        self.note(endpoint.to_owned(), false);
        Ok(())
    }

    /// Notes an endpoint that it listens at or connects to.
    fn note(&mut self, endpoint: String, listens: bool) {
        let inproc = endpoint.starts_with("inproc:");
        let outgoing = inproc.then(|| Traffic::of(&endpoint, listens));
        self.over = match (mem::take(&mut self.over), outgoing) {
            (Over::Nothing, Some(outgoing)) => Over::Inproc {
                outgoing,
                incoming: Traffic::of(&endpoint, !listens),
            },
            (Over::Nothing | Over::System, None) => Over::System,
            (before, more) => {
                let mut all = match before {
                    Over::Inproc { outgoing, .. } => alloc::vec![outgoing],
                    Over::Mixed(all) => all,
                    _ => Vec::new(),
                };
                all.extend(more);
                if K::SENDS {
                    all.iter().for_each(|outgoing| outgoing.has_uncounted());
                }
                Over::Mixed(all)
            }
        };
        self.endpoint = endpoint;
    }

    /// Closes the socket, and lets what was sent still leave for up to `linger`.
    ///
    /// It returns at once: the messages leave in the background, and dropping the
    /// last handle of the context waits for them; see [the module](super) on closing.
    pub fn close(mut self, linger: Duration) {
        self.options.linger = linger;
    }

    /// Returns the endpoint last listened at or connected to; empty if there is none.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the context that the socket lives in.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Counts connections that were made and lost since the last look.
    pub(super) fn note_connections(&mut self) {
        let (made, lost) = self.account.connections_made();
        while self.recorder.counters().connects < made {
            self.recorder.connected();
        }
        while self.recorder.counters().disconnects < lost {
            self.recorder.disconnected();
        }
    }
}

impl Socket<Request> {
    /// Gives the request up whose reply is awaited: the next call is a send.
    pub fn abandon(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.give_up();
        }
        self.awaits_reply = false;
    }
}

impl Socket<Subscribe> {
    /// Subscribes to messages whose first frame starts with `prefix`.
    ///
    /// # Errors
    ///
    /// [`Error::System`], if NNG has no memory left.
    pub fn subscribe(&mut self, prefix: &[u8]) -> Result<(), Error> {
        if self.options.topics.is_empty() {
            subscribe_to_all(&self.socket)?;
        }
        self.options.topics.push(prefix.to_vec());
        Ok(())
    }

    /// Removes one subscription to `prefix`, if there is any.
    ///
    /// # Errors
    ///
    /// [`Error::System`], for what NNG says.
    pub fn unsubscribe(&mut self, prefix: &[u8]) -> Result<(), Error> {
        let topics = &mut self.options.topics;
        let Some(index) = topics.iter().position(|topic| topic == prefix) else {
            return Ok(());
        };
        topics.swap_remove(index);
        if topics.is_empty() {
            self.socket.set_opt::<pubsub::Unsubscribe>(Vec::new())?;
        }
        Ok(())
    }
}

/// Lets everything come: topics are looked for in the first frame, and what NNG
/// would look at is the start of the bundle.
fn subscribe_to_all(socket: &::nng::Socket) -> Result<(), Error> {
    Ok(socket.set_opt::<pubsub::Subscribe>(Vec::new())?)
}

impl<K: Kind> Observed for Socket<K> {
    fn counters(&self) -> Counters {
        let mut counters = self.recorder.counters();
        (counters.connects, counters.disconnects) = self.account.connections_made();
        counters
    }
}

impl<K: Kind> Drop for Socket<K> {
    fn drop(&mut self) {
        let linger = self.options.linger;
        if !K::SENDS || linger.is_zero() || self.account.is_unused() {
            return;
        }
        let mut lingering = Lingering {
            socket: self.socket.clone(),
            account: self.account.clone(),
            flow: K::FLOW,
            over: self.over.clone(),
            until: Instant::now().checked_add(linger),
            queued: self.options.send_queue(),
            quiet: None,
        };
        if !lingering.is_done() {
            self.context.keep(lingering);
        }
    }
}

impl<K: Kind> fmt::Debug for Socket<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = core::any::type_name::<K>().rsplit("::").next();
        f.debug_struct("Socket")
            .field("kind", &kind.unwrap_or_default())
            .field("endpoint", &self.endpoint)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
