//! Setting a socket up.

use core::marker::PhantomData;
use core::time::Duration;

use alloc::vec::Vec;

use super::kind::{Dealer, Kind, Subscribe};
use super::socket::{Socket, millis};
use super::{
    Context, DEFAULT_COPY_BELOW, DEFAULT_HIGH_WATER, DEFAULT_LINGER, DEFAULT_TIMEOUT, Error,
};
use crate::transport::Caps;

/// Sets a socket up; made by a [`Context`].
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tensorwire::transport::{Caps, RecvFrames, TransportError, zmq};
///
/// let context = zmq::Context::new();
/// let mut pull = context
///     .pull()
///     .caps(Caps::new().with_frames(9))
///     .recv_high_water(16)
///     .recv_timeout(Some(Duration::from_millis(1)))
///     .bind("tcp://127.0.0.1:*")?;
/// assert!(pull.recv().unwrap_err().kind().is_wait());
/// # Ok::<(), zmq::Error>(())
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

    /// Opens the socket and binds it to `endpoint`;
    /// [`Socket::endpoint`] then says which one that came to be.
    ///
    /// # Errors
    ///
    /// [`Error::EndpointWithNul`], or [`Error::System`] with the number, for an
    /// option too.
    pub fn bind(self, endpoint: &str) -> Result<Socket<K>, Error> {
        let mut socket = self.open()?;
        socket.bind(endpoint)?;
        Ok(socket)
    }

    /// Opens the socket and connects it to `endpoint`.
    ///
    /// # Errors
    ///
    /// As [`Builder::bind`].
    pub fn connect(self, endpoint: &str) -> Result<Socket<K>, Error> {
        let mut socket = self.open()?;
        socket.connect(endpoint)?;
        Ok(socket)
    }

    /// Opens the socket, neither bound nor connected yet.
    ///
    /// # Errors
    ///
    /// [`Error::System`] with the number.
    pub fn open(self) -> Result<Socket<K>, Error> {
        Socket::open(self.context, self.options)
    }

    /// Caps received messages; by default [`Caps::new`].
    pub fn caps(mut self, caps: Caps) -> Self {
        self.options.caps = caps;
        self
    }

    /// Copies owned buffers of fewer bytes instead of lending them; by default
    /// [`DEFAULT_COPY_BELOW`].
    pub fn copy_below(mut self, bytes: usize) -> Self {
        self.options.copy_below = bytes;
        self
    }

    /// Gives messages only to connections that are established; by default also
    /// to those that are still being made, so that a send may come before its peer.
    pub fn immediate(mut self, immediate: bool) -> Self {
        self.options.immediate = immediate;
        self
    }

    /// How long what was sent goes on its way after the socket is dropped; by
    /// default [`DEFAULT_LINGER`], and forever if [`Duration::MAX`].
    pub fn linger(mut self, linger: Duration) -> Self {
        self.options.linger = linger;
        self
    }

    /// How many received messages may wait, for each peer; 0 is taken as 1, by
    /// default [`DEFAULT_HIGH_WATER`].
    pub fn recv_high_water(mut self, messages: u32) -> Self {
        self.options.recv_high_water = messages;
        self
    }

    /// How long a receive waits by default; `None` is forever, unless told
    /// [`DEFAULT_TIMEOUT`].
    pub fn recv_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.options.recv_timeout = timeout;
        self
    }

    /// How many messages to be sent may wait, for each peer; 0 is taken as 1, by
    /// default [`DEFAULT_HIGH_WATER`].
    pub fn send_high_water(mut self, messages: u32) -> Self {
        self.options.send_high_water = messages;
        self
    }

    /// How long a send waits for room by default; `None` is forever, unless told
    /// [`DEFAULT_TIMEOUT`].
    pub fn send_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.options.send_timeout = timeout;
        self
    }
}

impl Builder<Dealer> {
    /// The identity by which a ROUTER knows this socket: 1 to 255 bytes, not
    /// starting with a zero. Unless told, each ROUTER makes one up.
    pub fn identity(mut self, identity: &[u8]) -> Self {
        self.options.identity = Some(identity.to_vec());
        self
    }
}

impl Builder<Subscribe> {
    /// Receives messages whose first frame starts with `prefix`. May be given
    /// several times; without any, nothing is received.
    pub fn topic(mut self, prefix: &[u8]) -> Self {
        self.options.topics.push(prefix.to_vec());
        self
    }
}

/// What a socket was set up with.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) caps: Caps,
    pub(super) copy_below: usize,
    pub(super) recv_timeout: Option<Duration>,
    pub(super) send_timeout: Option<Duration>,
    identity: Option<Vec<u8>>,
    immediate: bool,
    linger: Duration,
    recv_high_water: u32,
    send_high_water: u32,
    topics: Vec<Vec<u8>>,
}

impl Options {
    /// Tells `socket` those that libzmq sees to.
    pub(super) fn apply(&self, socket: &::zmq::Socket) -> Result<(), Error> {
        socket.set_maxmsgsize(i64::try_from(self.caps.frame_bytes()).unwrap_or(i64::MAX))?;
        socket.set_rcvhwm(high_water(self.recv_high_water))?;
        socket.set_sndhwm(high_water(self.send_high_water))?;
        socket.set_linger(millis(self.linger))?;
        socket.set_immediate(self.immediate)?;
        if let Some(identity) = &self.identity {
            socket.set_identity(identity)?;
        }
        for topic in &self.topics {
            socket.set_subscribe(topic)?;
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            caps: Caps::new(),
            copy_below: DEFAULT_COPY_BELOW,
            recv_timeout: Some(DEFAULT_TIMEOUT),
            send_timeout: Some(DEFAULT_TIMEOUT),
            identity: None,
            immediate: false,
            linger: DEFAULT_LINGER,
            recv_high_water: DEFAULT_HIGH_WATER,
            send_high_water: DEFAULT_HIGH_WATER,
            topics: Vec::new(),
        }
    }
}

/// A mark in libzmq's terms, to which 0 would be no bound at all.
fn high_water(messages: u32) -> i32 {
    i32::try_from(messages.max(1)).unwrap_or(i32::MAX)
}
