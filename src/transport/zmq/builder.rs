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
/// assert!(pull.recv().is_err_and(|error| error.kind().is_wait()));
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

    /// Opens the socket and binds it to `endpoint`.
    ///
    /// [`Socket::endpoint`] then gives the endpoint with what libzmq chose: the
    /// port for `tcp://127.0.0.1:*`.
    ///
    /// Over `ipc://` libzmq first removes whatever has that name, be it somebody's file or the
    /// socket of a process that is at work: choose a name that nothing else has.
    ///
    /// # Errors
    ///
    /// [`Error::Endpoint`] or [`Error::EndpointWithNul`] for an endpoint that is
    /// none, [`Error::Identity`] for an identity that is none, [`Error::System`] for
    /// what else libzmq does not take.
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
    /// [`Error::Identity`] for an identity that is none; [`Error::System`], if libzmq
    /// does not take an option or has no socket left.
    pub fn open(self) -> Result<Socket<K>, Error> {
        Socket::open(self.context, self.options)
    }

    /// Sets the caps on received messages; [`Caps::new`] unless set.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.options.caps = caps;
        self
    }

    /// Sets the size below which owned buffers are copied instead of lent;
    /// [`DEFAULT_COPY_BELOW`] unless set.
    pub fn copy_below(mut self, bytes: usize) -> Self {
        self.options.copy_below = bytes;
        self
    }

    /// Sets whether connections made and lost are counted, for
    /// [`Counters::connects`](crate::transport::Counters::connects) and
    /// [`Counters::disconnects`](crate::transport::Counters::disconnects); not unless set.
    ///
    /// It counts those over ipc and tcp, also of peers that do not get through the
    /// handshake; libzmq has no events of inproc. It costs a thread for the socket, which
    /// looks four times a second whether it is to end, and nothing for a message.
    pub fn count_connections(mut self, count: bool) -> Self {
        self.options.count_connections = count;
        self
    }

    /// Sets whether messages go only to connections that are established.
    ///
    /// Unless set they also queue for those that are still being made, so that a
    /// send may come before its peer.
    ///
    /// It has a price where the socket connects: when a connection ends, libzmq drops what came
    /// by it and was not received yet, the last answer of a peer that closed among it.
    pub fn immediate(mut self, immediate: bool) -> Self {
        self.options.immediate = immediate;
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

    /// Sets how many received messages may wait, for each peer;
    /// [`DEFAULT_HIGH_WATER`] unless set, and 0 is taken as 1.
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

    /// Sets how many messages to be sent may wait, for each peer;
    /// [`DEFAULT_HIGH_WATER`] unless set, and 0 is taken as 1.
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

impl Builder<Dealer> {
    /// Sets the identity by which a ROUTER knows this socket: 1 to 255 bytes, the
    /// first of them not zero. Unless set, each ROUTER makes one up.
    ///
    /// Another one is [`Error::Identity`] when the socket is opened. Zero is what the
    /// identities start with that ROUTER sockets make up.
    pub fn identity(mut self, identity: &[u8]) -> Self {
        self.options.identity = Some(identity.to_vec());
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
    pub(super) copy_below: usize,
    pub(super) count_connections: bool,
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
    /// Sets the options that libzmq sees to on `socket`.
    pub(super) fn apply<K: Kind>(&self, socket: &::zmq::Socket) -> Result<(), Error> {
        let largest = match K::TYPE {
            ::zmq::SocketType::PUB => MAX_TOPIC_BYTES,
            _ => self.caps.frame_bytes().max(MIN_FRAME_CAP),
        };
        socket.set_maxmsgsize(i64::try_from(largest).unwrap_or(i64::MAX))?;
        socket.set_rcvhwm(high_water(self.recv_high_water))?;
        socket.set_sndhwm(high_water(self.send_high_water))?;
        // Over ipc, a peer that died while its messages had no room would keep a
        // socket that only receives for the whole time.
        let linger = if K::SENDS {
            self.linger
        } else {
            Duration::ZERO
        };
        socket.set_linger(millis(linger))?;
        socket.set_immediate(self.immediate)?;
        if let Some(identity) = &self.identity {
            let len = identity.len();
            if matches!(identity.first(), None | Some(0)) || len > MAX_IDENTITY_BYTES {
                return Err(Error::Identity { len });
            }
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
            count_connections: false,
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

/// The least that libzmq's own cap is set to: it counts the frames of the handshake
/// too, of which an identity of 255 bytes makes the largest. Smaller caps are held
/// to on receiving.
const MIN_FRAME_CAP: usize = 512;

/// The longest identity: its length is one byte on the wire.
const MAX_IDENTITY_BYTES: usize = 255;

/// The longest subscription that a PUB socket takes: all that it receives, and kept
/// by libzmq at a hundred times its size.
const MAX_TOPIC_BYTES: usize = 1 << 16;

/// Converts a mark to libzmq's terms, to which 0 would be no bound at all.
fn high_water(messages: u32) -> i32 {
    i32::try_from(messages.max(1)).unwrap_or(i32::MAX)
}
