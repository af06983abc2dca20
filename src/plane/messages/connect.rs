//! How a plane reaches a session, and how an inlet is reached.

use core::time::Duration;

use crate::transport::{Frames, RecvFrames, SendFrames, TransportError, Wait};

/// How a plane reaches a session: it makes a link to the inlet of that id.
///
/// Any `FnMut(&str) -> Result<Link, Error>` is one. A link sends pushes, in order, and
/// receives their answers; over ZeroMQ, `Dealers` (feature `zmq`) makes such links.
///
/// The id comes from a peer. Over sockets it says which endpoint to connect to, so
/// do not connect to what you would not talk to.
///
/// # Examples
///
/// Of all hosts, those of one network alone:
///
/// ```
/// # #[cfg(feature = "zmq")] {
/// use tensorwire::plane::messages::{Connect, Dealers};
/// use tensorwire::transport::zmq;
///
/// let mut dealers = Dealers::new(&zmq::Context::new());
/// let mut connect = move |session: &str| match session.starts_with("tcp://10.") {
///     true => dealers.connect(session),
///     false => Err(zmq::Error::Unreachable),
/// };
/// assert!(Connect::connect(&mut connect, "tcp://192.0.2.1:5555").is_err());
/// # }
/// ```
pub trait Connect {
    /// Pushes go out on it, and their answers come in.
    type Link: SendFrames + RecvFrames;
    /// Why there is no link.
    type Error: TransportError;

    /// Makes a link to the inlet of `session`.
    ///
    /// The plane calls it when it has none: for the first push to the session, and
    /// for the first one after a link failed. It is not to wait for the peer.
    ///
    /// # Errors
    ///
    /// The transport's own. [`ErrorKind::InvalidInput`] and [`ErrorKind::Unreachable`] say
    /// that the session is unknown, any other kind that the peer is gone.
    ///
    /// [`ErrorKind::InvalidInput`]: crate::transport::ErrorKind::InvalidInput
    /// [`ErrorKind::Unreachable`]: crate::transport::ErrorKind::Unreachable
    fn connect(&mut self, session: &str) -> Result<Self::Link, Self::Error>;
}

impl<F, L, E> Connect for F
where
    F: FnMut(&str) -> Result<L, E>,
    L: SendFrames + RecvFrames,
    E: TransportError,
{
    type Link = L;
    type Error = E;

    fn connect(&mut self, session: &str) -> Result<L, E> {
        self(session)
    }
}

/// Where an inlet receives pushes, each of which it can answer.
///
/// A ZeroMQ `ROUTER` socket is one; [`Links`](super::Links) makes one of links that have one
/// peer each.
pub trait Listen {
    /// What a received message is kept in, with whom to answer.
    type Message: Frames;
    /// Why receiving or answering failed.
    type Error: TransportError;

    /// Receives the next message into `message`, in place of what it held.
    ///
    /// # Errors
    ///
    /// As [`RecvFrames::recv_frames`].
    fn recv_frames(&mut self, message: &mut Self::Message, wait: Wait) -> Result<(), Self::Error>;

    /// Sends `frames`, as one message, to the peer that sent `message`. It does not wait:
    /// a peer that does not take its answers must not stop the others.
    ///
    /// # Errors
    ///
    /// As [`SendFrames::send_frames`].
    fn answer(&mut self, message: &Self::Message, frames: &[&[u8]]) -> Result<(), Self::Error>;
}

/// How long one of several links is waited for before the next one is looked at.
pub(super) const SLICE: Duration = Duration::from_millis(1);
