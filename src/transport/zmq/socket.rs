//! A socket, apart from what goes through it.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use alloc::borrow::ToOwned;
use alloc::ffi::CString;
use alloc::string::String;
use alloc::vec::Vec;

use super::builder::Options;
use super::endpoint::{self, Use};
use super::kind::{Kind, Subscribe};
use super::monitor::Monitor;
use super::raw::{self, Outgoing};
use super::{Context, Error};
use crate::transport::{Counters, Observed, Recorder};

/// A ZeroMQ socket of one kind.
///
/// What it can do depends on the kind: a [`Pull`](super::Pull) socket has no
/// `send`. It is used by one thread at a time and may be moved to another.
pub struct Socket<K> {
    pub(super) socket: ::zmq::Socket,
    context: Context,
    pub(super) options: Options,
    endpoint: String,
    /// The timeouts in force, so as to set them only on change.
    pub(super) recv_millis: i32,
    pub(super) send_millis: i32,
    /// How many receives are still to wait without a look.
    pub(super) waits: u8,
    /// The frames of the message being sent; all of them empty between calls.
    pub(super) staged: Vec<Outgoing>,
    /// Whether any endpoint is a connection that libzmq reads in batches.
    pub(super) batched: bool,
    pub(super) recorder: Recorder,
    monitor: Option<Monitor>,
    kind: PhantomData<K>,
}

impl<K: Kind> Socket<K> {
    pub(super) fn open(context: Context, options: Options) -> Result<Self, Error> {
        let mut socket = context.inner().socket(K::TYPE)?;
        options.apply::<K>(&socket)?;
        if K::TYPE == ::zmq::SocketType::ROUTER {
            // Or else a message to nobody is dropped without a word.
            socket.set_router_mandatory(true)?;
        }
        let monitor = if options.count_connections {
            Some(Monitor::start(&context, &mut socket)?)
        } else {
            None
        };
        Ok(Self {
            socket,
            context,
            options,
            endpoint: String::new(),
            recv_millis: FOREVER,
            send_millis: FOREVER,
            waits: 0,
            staged: Vec::new(),
            batched: false,
            recorder: Recorder::new("zmq"),
            monitor,
            kind: PhantomData,
        })
    }

    /// Binds to one more endpoint, and returns it with what libzmq chose: the port
    /// for `tcp://127.0.0.1:*`.
    ///
    /// # Errors
    ///
    /// [`Error::Endpoint`], [`Error::EndpointWithNul`], or [`Error::System`] for what
    /// else libzmq says.
    pub fn bind(&mut self, endpoint: &str) -> Result<&str, Error> {
        let text = self.prepare(endpoint, Use::Bind)?;
        raw::bind(&mut self.socket, &text).map_err(Error::of_endpoint)?;
        self.endpoint = match self.socket.get_last_endpoint()? {
            Ok(actual) => actual,
            // Not text once more: then it is what was asked for.
            Err(_) => endpoint.to_owned(),
        };
        Ok(&self.endpoint)
    }

    /// Connects to one more endpoint. The peer need not be there yet.
    ///
    /// # Errors
    ///
    /// [`Error::Endpoint`], [`Error::EndpointWithNul`], or [`Error::System`] for what
    /// else libzmq says.
    pub fn connect(&mut self, endpoint: &str) -> Result<(), Error> {
        let text = self.prepare(endpoint, Use::Connect)?;
        raw::connect(&mut self.socket, &text).map_err(Error::of_endpoint)?;
        endpoint.clone_into(&mut self.endpoint);
        Ok(())
    }

    /// Closes the socket, and lets what was sent still leave for up to `linger`.
    ///
    /// It returns at once: the messages leave in the background, and dropping the
    /// last handle of the context waits for them; see [the module](super) on closing.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], if the context is terminated already.
    pub fn close(self, linger: Duration) -> Result<(), Error> {
        if K::SENDS {
            self.socket.set_linger(millis(linger))?;
        }
        Ok(())
    }

    /// Checks the endpoint, notes how it is read, and turns IPv6 on for one with an
    /// address in brackets, which libzmq does not do by itself.
    fn prepare(&mut self, endpoint: &str, using: Use) -> Result<CString, Error> {
        let text = CString::new(endpoint).map_err(|_| Error::EndpointWithNul)?;
        endpoint::check(endpoint, using)?;
        self.batched |= !endpoint.starts_with("inproc:");
        if endpoint.starts_with("tcp://[") {
            self.socket.set_ipv6(true)?;
        }
        Ok(text)
    }

    /// Returns the endpoint last bound or connected to; empty if there is none.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the context that the socket lives in.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the socket as an item of [`zmq::poll`](::zmq::poll), to be waited for
    /// together with others.
    #[must_use]
    pub fn poll_item(&self, events: ::zmq::PollEvents) -> ::zmq::PollItem<'_> {
        self.socket.as_poll_item(events)
    }
}

impl Socket<Subscribe> {
    /// Subscribes to messages whose first frame starts with `prefix`.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], if the context is terminated.
    pub fn subscribe(&mut self, prefix: &[u8]) -> Result<(), Error> {
        Ok(self.socket.set_subscribe(prefix)?)
    }

    /// Removes one subscription to `prefix`.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], if the context is terminated.
    pub fn unsubscribe(&mut self, prefix: &[u8]) -> Result<(), Error> {
        Ok(self.socket.set_unsubscribe(prefix)?)
    }
}

impl<K: Kind> Observed for Socket<K> {
    /// Returns what the socket has done so far.
    ///
    /// A frame over the cap that libzmq refused itself is not seen here, nor what a
    /// PUB socket dropped for a slow subscriber: libzmq does not tell. Connections
    /// are counted if [`Builder::count_connections`](super::Builder::count_connections)
    /// asks for it.
    fn counters(&self) -> Counters {
        let mut counters = self.recorder.counters();
        if let Some(monitor) = &self.monitor {
            counters.connects = monitor.connects();
            counters.disconnects = monitor.disconnects();
        }
        counters
    }
}

impl<K> Drop for Socket<K> {
    fn drop(&mut self) {
        // Before the socket is closed, and its events with it.
        if let Some(monitor) = self.monitor.take() {
            monitor.stop(&mut self.socket);
        }
    }
}

impl<K> fmt::Debug for Socket<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = core::any::type_name::<K>().rsplit("::").next();
        f.debug_struct("Socket")
            .field("kind", &kind.unwrap_or_default())
            .field("endpoint", &self.endpoint)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Converts a time to wait to libzmq's terms: whole milliseconds, rounded up.
pub(super) fn millis(time: Duration) -> i32 {
    if time == Duration::MAX {
        return FOREVER;
    }
    let millis = time.as_nanos().div_ceil(1_000_000);
    i32::try_from(millis).unwrap_or(i32::MAX)
}

/// What libzmq takes for no limit, and has to begin with.
const FOREVER: i32 = -1;
