//! Setting a socket up.

use core::marker::PhantomData;
use core::time::Duration;

use alloc::vec::Vec;

use ::nng::options::protocol::reqrep::ResendTime;
use ::nng::options::{
    Options as _, ReconnectMaxTime, ReconnectMinTime, RecvBufferSize, RecvMaxSize, SendBufferSize,
};

use super::kind::sealed::{Flow, Queue};
use super::kind::{Kind, Request, Subscribe};
use super::socket::Socket;
use super::{
    Context, DEFAULT_HIGH_WATER, DEFAULT_LINGER, DEFAULT_RECONNECT, DEFAULT_TIMEOUT, Error,
};
use crate::bundle::{ALIGNMENT, ENTRY_LEN, HEADER_LEN};
use crate::transport::Caps;

/// Sets a socket up; made by a [`Context`].
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tensorwire::transport::{Caps, RecvFrames, TransportError, nng};
///
/// let context = nng::Context::new();
/// let mut pull = context
///     .pull()
///     .caps(Caps::new().with_frames(9))
///     .recv_timeout(Some(Duration::from_millis(1)))
///     .listen("tcp://127.0.0.1:0")?;
/// assert!(pull.recv().is_err_and(|error| error.kind().is_wait()));
/// # Ok::<(), nng::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder<K> {
    context: Context,
    options: Options,
    kind: PhantomData<K>,
}

impl<K: Kind> Builder<K> {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            options: Options::default(),
            kind: PhantomData,
        }
    }

    /// Opens the socket and lets it listen at `endpoint`.
    ///
    /// [`Socket::endpoint`] then gives the endpoint with what the system chose:
    /// the port for `tcp://127.0.0.1:0`; see [`Socket::listen`].
    ///
    /// Over `ipc://` NNG first removes a file of that name, whosever it is: choose a name that
    /// nothing else has.
    ///
    /// # Errors
    ///
    /// [`Error::Endpoint`] for an endpoint that is none, or a port that is none,
    /// [`Error::System`] for what else NNG does not take.
    pub fn listen(self, endpoint: &str) -> Result<Socket<K>, Error> {
        let mut socket = self.open()?;
        socket.listen(endpoint)?;
        Ok(socket)
    }

    /// Opens the socket and connects it to `endpoint`, in the background and again
    /// whenever the connection is lost. The peer need not be there yet, and nothing tells
    /// of one that never comes; see [`Socket::dial`].
    ///
    /// # Errors
    ///
    /// As [`Builder::listen`].
    pub fn dial(self, endpoint: &str) -> Result<Socket<K>, Error> {
        let mut socket = self.open()?;
        socket.dial(endpoint)?;
        Ok(socket)
    }

    /// Opens the socket, neither listening nor connected yet.
    ///
    /// # Errors
    ///
    /// [`Error::System`], if NNG does not take an option or has no memory left.
    pub fn open(self) -> Result<Socket<K>, Error> {
        Socket::open(self.context, self.options)
    }

    /// Sets the caps on received messages; [`Caps::new`] unless set.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.options.caps = caps;
        self
    }

    /// Sets how long messages that were sent may still leave after the socket is
    /// dropped.
    ///
    /// [`Duration::MAX`] is forever. The default is [`DEFAULT_LINGER`]. A socket
    /// that only receives has nothing to leave and does not linger.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.options.linger = linger;
        self
    }

    /// Sets how soon a lost connection, or one that was refused, is tried again: a
    /// random part of `first`, of twice that the next time, and so on up to `longest`.
    ///
    /// The default is [`DEFAULT_RECONNECT`].
    pub fn reconnect(mut self, first: Duration, longest: Duration) -> Self {
        self.options.reconnect = (first, longest);
        self
    }

    /// Sets how many received messages may wait, for sockets that have a queue of
    /// them (Pair, and Subscribe, which drops what it has no room for); 1 to 8192,
    /// [`DEFAULT_HIGH_WATER`] unless set.
    ///
    /// The others take one message from each peer when the last one is fetched.
    pub fn recv_high_water(mut self, messages: u32) -> Self {
        self.options.recv_high_water = messages;
        self
    }

    /// Sets how long a receive waits, unless the call says otherwise.
    ///
    /// `None` waits forever. The default is [`DEFAULT_TIMEOUT`].
    pub fn recv_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.options.recv_timeout = timeout;
        self
    }

    /// Sets how many messages to be sent may wait, for sockets that have a queue of
    /// them (Push, Pair, and Publish for each peer); 1 to 8192,
    /// [`DEFAULT_HIGH_WATER`] unless set.
    pub fn send_high_water(mut self, messages: u32) -> Self {
        self.options.send_high_water = messages;
        self
    }

    /// Sets how long a send waits for room, unless the call says otherwise.
    ///
    /// `None` waits forever. The default is [`DEFAULT_TIMEOUT`].
    pub fn send_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.options.send_timeout = timeout;
        self
    }
}

impl Builder<Request> {
    /// Sets after which time without a reply the request is sent once more, to
    /// whichever peer has room.
    ///
    /// Unless set it is sent once: a request that is sent twice may be carried out
    /// twice. Then a connection lost before the reply is [`Error::Disconnected`].
    pub fn resend(mut self, after: Duration) -> Self {
        self.options.resend = Some(after);
        self
    }
}

impl Builder<Subscribe> {
    /// Subscribes to messages whose first frame starts with `prefix`.
    ///
    /// May be called several times; without any, nothing is received.
    pub fn topic(mut self, prefix: &[u8]) -> Self {
        self.options.topics.push(prefix.to_vec());
        self
    }
}

/// What a socket was set up with.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) caps: Caps,
    pub(super) linger: Duration,
    pub(super) recv_timeout: Option<Duration>,
    pub(super) send_timeout: Option<Duration>,
    /// For a Subscribe socket: what it subscribed to.
    pub(super) topics: Vec<Vec<u8>>,
    reconnect: (Duration, Duration),
    recv_high_water: u32,
    pub(super) resend: Option<Duration>,
    send_high_water: u32,
}

impl Options {
    /// Returns how long the queue of messages to be sent may get.
    pub(super) fn send_queue(&self) -> i32 {
        high_water(self.send_high_water)
    }

    /// Sets the options that NNG sees to on `socket`.
    pub(super) fn apply<K: Kind>(&self, socket: &::nng::Socket) -> Result<(), Error> {
        let largest = if K::RECEIVES {
            largest_body(self.caps)
        } else {
            MIN_BODY_CAP
        };
        socket.set_opt::<RecvMaxSize>(largest)?;
        let (first, longest) = self.reconnect;
        socket.set_opt::<ReconnectMinTime>(Some(at_least_a_milli(first)))?;
        socket.set_opt::<ReconnectMaxTime>(Some(at_least_a_milli(longest.max(first))))?;
        if K::QUEUES.contains(&Queue::Sent) {
            socket.set_opt::<SendBufferSize>(high_water(self.send_high_water))?;
        }
        if K::QUEUES.contains(&Queue::Received) {
            socket.set_opt::<RecvBufferSize>(high_water(self.recv_high_water))?;
        }
        if K::FLOW == Flow::Requests {
            // `None` is never.
            socket.set_opt::<ResendTime>(self.resend.map(at_least_a_milli))?;
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            caps: Caps::new(),
            linger: DEFAULT_LINGER,
            recv_timeout: Some(DEFAULT_TIMEOUT),
            send_timeout: Some(DEFAULT_TIMEOUT),
            topics: Vec::new(),
            reconnect: DEFAULT_RECONNECT,
            recv_high_water: DEFAULT_HIGH_WATER,
            resend: None,
            send_high_water: DEFAULT_HIGH_WATER,
        }
    }
}

/// The longest body that a message within `caps` may come in.
fn largest_body(caps: Caps) -> usize {
    // Each frame may have padding before it.
    let per_frame = ENTRY_LEN.saturating_add(ALIGNMENT);
    let beside = caps.frames().saturating_mul(per_frame);
    let largest = beside
        .saturating_add(caps.message_bytes())
        .saturating_add(HEADER_LEN)
        .saturating_add(PROTOCOL_BYTES);
    largest.clamp(MIN_BODY_CAP, MAX_BODY_CAP)
}

/// The least that NNG's own cap is set to, so that messages which are a little too
/// large are told of; smaller caps are held to on receiving.
const MIN_BODY_CAP: usize = 1 << 16;

/// The most that NNG takes for its cap (`NNI_MAXSZ`).
const MAX_BODY_CAP: usize = 0xffff_ffff;

/// What protocols put before the bundle, at most: REQ and REP a number for each
/// of 15 hops and the request's own.
const PROTOCOL_BYTES: usize = 64;

/// Converts a mark to NNG's terms.
fn high_water(messages: u32) -> i32 {
    i32::try_from(messages.clamp(1, MAX_HIGH_WATER)).unwrap_or(i32::MAX)
}

/// The longest queue that NNG makes.
const MAX_HIGH_WATER: u32 = 8192;

/// NNG counts whole milliseconds, and takes 0 for none.
fn at_least_a_milli(time: Duration) -> Duration {
    time.max(Duration::from_millis(1))
}
