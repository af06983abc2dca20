//! Sockets of every transport and pattern behind one trait.

#[cfg(feature = "nng")]
mod nng;
mod place;
mod zmq;

use std::time::{Duration, Instant};

use tensorwire::transport::{ErrorKind, Frames, RecvFrames, SendFrames, TransportError, Wait};

use crate::args::{RecvPattern, SendPattern, Transport};
use crate::exit::{self, Failure, Fault};
use crate::output::note;
use crate::signal;

pub(crate) use place::Place;

/// What a received message is handed to.
pub(crate) type Take<'a> = dyn FnMut(&[&[u8]]) -> Result<(), Failure> + 'a;

/// A socket, of whatever transport.
trait Link {
    /// Hands the next message to `take`, if one comes within `wait`.
    fn receive(&mut self, wait: Duration, take: &mut Take<'_>) -> Result<Received, Failure>;

    /// Sends a message if there is room within `wait`; for rep it is the answer to the last one
    /// that was received.
    fn send(&mut self, frames: &[&[u8]], wait: Duration) -> Result<Sent, Failure>;

    /// Where it is bound or connected, with the port that was chosen.
    fn endpoint(&self) -> &str;

    /// Ends it; what was sent may still leave for so long.
    fn close(self: Box<Self>, linger: Duration) -> Result<(), Failure>;
}

/// What came of waiting for a message.
#[derive(Debug)]
pub(crate) enum Received {
    /// One was handed on.
    Message,
    /// None came in time.
    Nothing,
    /// One came that is too large, or no message, and is gone.
    Refused(Fault),
}

/// What came of sending a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sent {
    /// There was no room in time.
    NoRoom,
    /// It is on its way.
    Whole,
}

/// A socket, and which end of a connection it is.
pub(crate) struct Socket {
    // The first to go: the file is there for as long as the socket.
    link: Box<dyn Link>,
    bound: bool,
    #[cfg(unix)]
    _file: Option<place::SocketFile>,
}

impl Socket {
    /// Opens a socket that receives.
    ///
    /// # Errors
    ///
    /// An endpoint that is no good, and a transport that this build has not.
    pub(crate) fn receiver(place: Place<'_>, pattern: RecvPattern) -> Result<Self, Failure> {
        place.check()?;
        let link = match place.transport {
            #[cfg(feature = "nng")]
            Transport::Nng => nng::receiver(place, pattern),
            #[cfg(not(feature = "nng"))]
            Transport::Nng => Err(without_nng()),
            Transport::Zmq => zmq::receiver(place, pattern),
        };
        Ok(Self::new(link?, place))
    }

    /// Opens a socket that sends; no more is queued than memory bears of messages of so many
    /// bytes.
    ///
    /// # Errors
    ///
    /// As [`Socket::receiver`].
    pub(crate) fn sender(
        place: Place<'_>,
        pattern: SendPattern,
        bytes: usize,
    ) -> Result<Self, Failure> {
        place.check()?;
        let queue = queue(bytes);
        let link = match place.transport {
            #[cfg(feature = "nng")]
            Transport::Nng => nng::sender(place, pattern, queue),
            #[cfg(not(feature = "nng"))]
            Transport::Nng => Err(without_nng()),
            Transport::Zmq => zmq::sender(place, pattern, queue),
        };
        Ok(Self::new(link?, place))
    }

    fn new(link: Box<dyn Link>, place: Place<'_>) -> Self {
        // With the name that the library chose, where that was asked for.
        #[cfg(unix)]
        let _file = place::SocketFile::of(Place {
            endpoint: link.endpoint(),
            ..place
        });
        Self {
            link,
            bound: place.bind,
            #[cfg(unix)]
            _file,
        }
    }

    /// Hands the next message to `take`, if one comes within `wait`.
    pub(crate) fn receive(
        &mut self,
        wait: Duration,
        take: &mut Take<'_>,
    ) -> Result<Received, Failure> {
        self.link.receive(wait, take)
    }

    /// Sends a message if there is room within `wait`; for rep it is the answer to the last one
    /// that was received.
    pub(crate) fn send(&mut self, frames: &[&[u8]], wait: Duration) -> Result<Sent, Failure> {
        self.link.send(frames, wait)
    }

    /// Sends a message, for up to `timeout` and until Ctrl-C; `false` after that.
    ///
    /// # Errors
    ///
    /// Nobody takes it in time.
    pub(crate) fn send_until(
        &mut self,
        frames: &[&[u8]],
        timeout: Option<Duration>,
    ) -> Result<bool, Failure> {
        let started = Instant::now();
        while !signal::interrupted() {
            if self.send(frames, signal::GLANCE)? == Sent::Whole {
                return Ok(true);
            }
            let timeout = timeout.filter(|&timeout| started.elapsed() >= timeout);
            if let Some(timeout) = timeout {
                return Err(Failure::Could(format!(
                    "nobody at {} took a message for {}: {}",
                    self.endpoint(),
                    exit::seconds(timeout),
                    missing("receiver", self.bound),
                )));
            }
        }
        Ok(false)
    }

    /// Says where it is bound, if it is: peers need the port that was chosen.
    pub(crate) fn tell_bound(&self) {
        if self.bound {
            note(&format!("bound to {}", self.endpoint()));
        }
    }

    /// Where it is bound or connected, with the port that was chosen.
    pub(crate) fn endpoint(&self) -> &str {
        self.link.endpoint()
    }

    /// Ends it; what was sent may still leave for so long. `false` if that was not enough, as far
    /// as one can tell: some of it may be lost.
    ///
    /// # Errors
    ///
    /// The transport's own.
    pub(crate) fn close(self, linger: Duration) -> Result<bool, Failure> {
        let started = Instant::now();
        self.link.close(linger)?;
        Ok(started.elapsed() < linger)
    }
}

/// What to look at when the other end does not show.
pub(crate) fn missing(peer: &str, bound: bool) -> String {
    let does = if bound { "connect here" } else { "bind there" };
    format!("is the {peer} running, and does it {does}?")
}

/// How many messages of so many bytes may wait until they leave.
fn queue(bytes: usize) -> u32 {
    let room = QUEUED.checked_div(bytes).unwrap_or(MOST_QUEUED);
    u32::try_from(room.clamp(1, MOST_QUEUED)).unwrap_or(1)
}

/// So much memory may be in what waits until it leaves, and so many messages: what the transports
/// have by default.
const QUEUED: usize = 256 << 20;
const MOST_QUEUED: usize = 1000;

#[cfg(not(feature = "nng"))]
fn without_nng() -> Failure {
    Failure::Usage(
        "this build has no NNG: cargo install tensorwire --features cli,nng (needs cmake)"
            .to_owned(),
    )
}

/// What ends a socket.
trait Close {
    fn close(self, linger: Duration) -> Result<(), Failure>;

    /// Whether somebody is there to send to.
    fn has_peer(&self) -> bool;

    fn endpoint(&self) -> &str;
}

/// A socket that receives only.
struct In<T: RecvFrames> {
    socket: T,
    message: T::Message,
}

impl<T: RecvFrames + Close> Link for In<T> {
    fn receive(&mut self, wait: Duration, take: &mut Take<'_>) -> Result<Received, Failure> {
        receive_from(&mut self.socket, &mut self.message, wait, take)
    }

    fn send(&mut self, _: &[&[u8]], _: Duration) -> Result<Sent, Failure> {
        Err(Failure::Usage("this pattern only receives".to_owned()))
    }

    fn endpoint(&self) -> &str {
        self.socket.endpoint()
    }

    fn close(self: Box<Self>, linger: Duration) -> Result<(), Failure> {
        self.socket.close(linger)
    }
}

/// A socket that sends only.
struct Out<T> {
    socket: T,
    /// Whether it has to wait for one: who publishes does not.
    needs_peer: bool,
}

impl<T: SendFrames + Close> Link for Out<T> {
    fn receive(&mut self, _: Duration, _: &mut Take<'_>) -> Result<Received, Failure> {
        Err(Failure::Usage("this pattern only sends".to_owned()))
    }

    fn send(&mut self, frames: &[&[u8]], wait: Duration) -> Result<Sent, Failure> {
        if self.needs_peer && !meets_peer(&self.socket, wait) {
            return Ok(Sent::NoRoom);
        }
        sent(self.socket.send_frames(frames, Wait::UpTo(wait)))
    }

    fn endpoint(&self) -> &str {
        self.socket.endpoint()
    }

    fn close(self: Box<Self>, linger: Duration) -> Result<(), Failure> {
        self.socket.close(linger)
    }
}

/// A socket that does both.
struct Both<T: RecvFrames> {
    socket: T,
    message: T::Message,
    peers: Peers,
}

/// How a socket that does both deals with those at the other end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Peers {
    /// It waits for somebody before it sends.
    Awaited,
    /// It answers who asked, and does not close before they have gone, unless they take long:
    /// NNG now and then loses a reply whose connection ends right behind it.
    #[cfg(feature = "nng")]
    LeaveFirst,
}

impl<T: RecvFrames + SendFrames + Close> Link for Both<T> {
    fn receive(&mut self, wait: Duration, take: &mut Take<'_>) -> Result<Received, Failure> {
        receive_from(&mut self.socket, &mut self.message, wait, take)
    }

    fn send(&mut self, frames: &[&[u8]], wait: Duration) -> Result<Sent, Failure> {
        if self.peers == Peers::Awaited && !meets_peer(&self.socket, wait) {
            return Ok(Sent::NoRoom);
        }
        sent(self.socket.send_frames(frames, Wait::UpTo(wait)))
    }

    fn endpoint(&self) -> &str {
        self.socket.endpoint()
    }

    fn close(self: Box<Self>, linger: Duration) -> Result<(), Failure> {
        #[cfg(feature = "nng")]
        if self.peers == Peers::LeaveFirst {
            wait_until(linger.min(LEAVING), || !self.socket.has_peer());
        }
        self.socket.close(linger)
    }
}

/// How long peers that were answered may take to leave.
#[cfg(feature = "nng")]
const LEAVING: Duration = Duration::from_secs(1);

fn input<T: RecvFrames + Close + 'static>(socket: T) -> Box<dyn Link> {
    let message = T::Message::default();
    Box::new(In { socket, message })
}

fn output<T: SendFrames + Close + 'static>(socket: T, needs_peer: bool) -> Box<dyn Link> {
    Box::new(Out { socket, needs_peer })
}

fn both<T: RecvFrames + SendFrames + Close + 'static>(socket: T, peers: Peers) -> Box<dyn Link> {
    let message = T::Message::default();
    Box::new(Both {
        socket,
        message,
        peers,
    })
}

/// Waits until somebody is there; `false` if nobody comes in time.
fn meets_peer(socket: &impl Close, wait: Duration) -> bool {
    wait_until(wait, || socket.has_peer())
}

/// Waits until something is so; `false` if it is not in time.
fn wait_until(wait: Duration, is_so: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !is_so() {
        let left = wait.saturating_sub(started.elapsed());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(left.min(Duration::from_millis(2)));
    }
    true
}

fn receive_from<T: RecvFrames>(
    socket: &mut T,
    message: &mut T::Message,
    wait: Duration,
    take: &mut Take<'_>,
) -> Result<Received, Failure> {
    if let Err(error) = socket.recv_frames(message, Wait::UpTo(wait)) {
        return not_received(&error);
    }
    let frames: Vec<&[u8]> = message.frames().iter().map(AsRef::as_ref).collect();
    take(&frames)?;
    Ok(Received::Message)
}

fn not_received(error: &impl TransportError) -> Result<Received, Failure> {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Ok(Received::Nothing),
        ErrorKind::CapExceeded | ErrorKind::Disconnected | ErrorKind::Malformed => {
            let fault = Fault::new(&error.kind(), 0, error.to_string());
            Ok(Received::Refused(fault))
        }
        _ => Err(Failure::Could(format!("cannot receive: {error}"))),
    }
}

fn sent(result: Result<(), impl TransportError>) -> Result<Sent, Failure> {
    match result {
        Ok(()) => Ok(Sent::Whole),
        Err(error) if error.kind().is_wait() => Ok(Sent::NoRoom),
        // None of it arrived: it is sent again.
        Err(error) if error.kind() == ErrorKind::Disconnected => Ok(Sent::NoRoom),
        Err(error) => Err(Failure::Could(format!("cannot send: {error}"))),
    }
}
