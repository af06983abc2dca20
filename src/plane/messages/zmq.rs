//! Links and listener over ZeroMQ.

use core::time::Duration;

use super::connect::{Connect, Listen};
use super::session;
use crate::transport::zmq::{Context, Dealer, Error, Routed, Router, Socket};
use crate::transport::{Caps, RecvFrames, SendFrames, Wait};

/// Connects to inlets over ZeroMQ: a DEALER socket for each, where the inlet has a ROUTER
/// socket.
///
/// A session id is the inlet's endpoint, with or without the `#` and 16 hexadecimal digits that
/// [`session_id`](super::session_id) puts behind it. One of a socket of another kind, such as
/// `denoiser-0` or `shm-1-..`, is [`Error::Endpoint`].
///
/// # Examples
///
/// ```
/// use tensorwire::plane::messages::{Connect, Dealers};
/// use tensorwire::transport::{SendFrames, zmq};
///
/// let context = zmq::Context::new();
/// let router = context.router().bind("tcp://127.0.0.1:*")?;
/// let mut dealers = Dealers::new(&context);
/// let mut link = dealers.connect(router.endpoint())?;
/// link.send(&[b"push"])?;
/// # Ok::<(), zmq::Error>(())
/// ```
#[derive(Debug)]
pub struct Dealers {
    context: Context,
    high_water: u32,
    linger: Duration,
}

impl Dealers {
    /// Makes links in `context`, which for `inproc` endpoints is the inlet's.
    #[must_use]
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            high_water: 16,
            linger: Duration::from_secs(1),
        }
    }

    /// Sets how many pushes wait for a peer in a link's own queue, where libzmq keeps a
    /// copy of each; 16 unless set. Further ones wait in their slots.
    #[must_use]
    pub const fn with_high_water(mut self, pushes: u32) -> Self {
        self.high_water = pushes;
        self
    }

    /// Sets how long pushes that were given up stay on their way when their link is
    /// dropped; 1 s unless set. See [on closing](crate::transport::zmq#closing) before
    /// setting it to zero.
    #[must_use]
    pub const fn with_linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }
}

impl Connect for Dealers {
    type Link = Socket<Dealer>;
    type Error = Error;

    fn connect(&mut self, session: &str) -> Result<Self::Link, Error> {
        let dealer = self.context.dealer();
        let dealer = dealer.send_high_water(self.high_water).linger(self.linger);
        dealer.caps(ANSWER_CAPS).connect(session::endpoint(session))
    }
}

impl Listen for Socket<Router> {
    type Message = Routed;
    type Error = Error;

    fn recv_frames(&mut self, message: &mut Routed, wait: Wait) -> Result<(), Error> {
        RecvFrames::recv_frames(self, message, wait)
    }

    fn answer(&mut self, message: &Routed, frames: &[&[u8]]) -> Result<(), Error> {
        self.to(message.envelope()).try_send(frames)
    }
}

/// An answer is one frame of a few hundred bytes.
const ANSWER_CAPS: Caps = Caps::new()
    .with_frames(4)
    .with_frame_bytes(1 << 16)
    .with_message_bytes(1 << 16);
