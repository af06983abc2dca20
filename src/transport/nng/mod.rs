//! NNG: messages between threads, processes and hosts.
//!
//! ```text
//!   kind                 sends           receives          peers
//!   Push -> Pull         in turn         -                 many to many
//!   Pair0 <-> Pair0      yes             yes               one to one
//!   Pair1 <-> Pair1      yes             yes               one to one
//!   Request <-> Reply    in turn         the reply         many to many, one at a time
//!   Publish -> Subscribe to all          by topic          one to many, lossy
//! ```
//!
//! A [`Context`] makes sockets, by a [`Builder`] with safe defaults; either side
//! may listen, the other dials, over `inproc://` (within one process), `ipc://`
//! or `tcp://`. What a socket can do is in its type: a [`Pull`] socket has no
//! `send`. Dialing goes on in the background: the peer may come later, go, and
//! come again. No error tells of a host that is not there; what waits for it times out.
//!
//! # Examples
//!
//! ```
//! use tensorwire::transport::{Frames, RecvFrames, SendFrames, nng};
//!
//! let context = nng::Context::new();
//! let mut pull = context.pull().listen("tcp://127.0.0.1:0")?;
//! let mut push = context.push().dial(pull.endpoint())?;
//!
//! push.send(&[b"metadata", b"a tensor"])?;
//! let mut message = nng::Message::default();
//! pull.recv_into(&mut message)?;
//! assert_eq!(message.frame(1), Some(&b"a tensor"[..]));
//! # Ok::<(), nng::Error>(())
//! ```
//!
//! Frames that are lent, or owned, are copied once, into the body that NNG sends. A
//! producer that writes its tensor there itself copies nothing:
//!
//! ```
//! use tensorwire::message::{Decoder, NO_SCALARS, encode_into, encoded_len};
//! use tensorwire::transport::{Frames, LendFrames, Loan, RecvFrames, Wait, nng};
//! use tensorwire::{DType, Descriptor};
//!
//! let context = nng::Context::new();
//! let mut pull = context.pull().listen("inproc://lent")?;
//! let mut push = context.push().dial("inproc://lent")?;
//!
//! let tensors = [Descriptor::new("latents", DType::Float32, &[64, 64])?];
//! let lengths = [encoded_len(&tensors, &NO_SCALARS)?, 64 * 64 * 4];
//! let mut loan = push.lend_frames(&lengths, Wait::Configured)?;
//! let mut places = loan.frames_mut();
//! encode_into(&tensors, &NO_SCALARS, places.next().ok_or("no place")?)?;
//! for element in places.next().ok_or("no place")?.chunks_exact_mut(4) {
//!     element.copy_from_slice(&0.5_f32.to_le_bytes()); // computed right here
//! }
//! drop(places);
//! loan.send(Wait::Configured).map_err(|(_, error)| error)?;
//!
//! let received = pull.recv()?;
//! let mut decoder = Decoder::new();
//! let message = decoder.decode(received.frames())?;
//! let latents = message.tensor("latents").ok_or("no latents")?;
//! assert!(latents.elements::<f32>()?.eq([0.5; 64 * 64]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # On the wire
//!
//! An NNG message is one body of bytes. Ours is one [bundle](crate::bundle), whose
//! documentation draws each byte, and nothing else; what the protocol puts before
//! it (REQ, REP, PAIR version 1) every NNG library takes off again. So a peer in any language
//! that speaks NNG, or nanomsg, reads and writes messages of ours with a few lines of
//! its own; the tests have one in Python, with pynng. A body that is no bundle is
//! [`Error::Malformed`], with the byte that is wrong; it is dropped, and the
//! next message is intact.
//!
//! # Alignment
//!
//! Frames start at multiples of 64 in the body, and are aligned as the body is.
//! Measured over bodies of many lengths, what always divides their addresses:
//!
//! | protocol | inproc | ipc | tcp |
//! |---|---|---|---|
//! | PUSH to PULL | 16 | 16 | 16 |
//! | PAIR, version 0 | 16 | 16 | 16 |
//! | PAIR, version 1 | 4 | 4 | 4 |
//! | PUB to SUB | 16 | 16 | 16 |
//! | REQ to REP | 4 | 4 | 4 |
//! | REP to REQ | 4 | 4 | 4 |
//!
//! So where 8 bytes matter choose a protocol that puts nothing before the body, or
//! read elements one by one or through a copy, as with any frame that is misaligned.
//!
//! # Request and reply
//!
//! They take turns. A [`Request`] socket that sent a request receives the reply
//! to it next; a second request before that is [`Error::OutOfTurn`], unless
//! [`Socket::abandon`] gives the first one up. A receive that times out gives up
//! nothing: the next one may get the reply. If the connection ends first, the
//! receive is [`Error::Disconnected`], unless [`Builder::resend`] says to ask again.
//!
//! A [`Reply`] socket answers the request that it received last, once;
//! answering before, or twice, is [`Error::OutOfTurn`]. It need not answer: the next
//! receive forgets whom the last request came from. The reply to a peer that is gone is
//! dropped without an error. In one point NNG falls short of the contract of transports: a
//! reply that timed out cannot be sent again, as NNG has forgotten whom to. That
//! takes a peer with several requests under way on one connection that does not read the
//! replies; a [`Request`] socket never does that.
//!
//! ```
//! use tensorwire::transport::{Frames, RecvFrames, SendFrames, nng};
//!
//! let context = nng::Context::new();
//! let mut reply = context.reply().listen("inproc://questions")?;
//! let mut request = context.request().dial("inproc://questions")?;
//!
//! request.send(&[b"how many?"])?;
//! assert_eq!(request.send(&[b"how large?"]), Err(nng::Error::OutOfTurn));
//! assert_eq!(reply.recv()?.frame(0), Some(&b"how many?"[..]));
//! reply.send(&[b"seven"])?;
//! assert_eq!(request.recv()?.frame(0), Some(&b"seven"[..]));
//! # Ok::<(), nng::Error>(())
//! ```
//!
//! # Publishing
//!
//! Publish never waits: a subscriber that has no room, or has not connected yet,
//! misses messages, whole ones. A topic is a prefix of the first frame, as it is
//! over ZeroMQ. NNG itself would compare with the start of the body, which is the
//! same in all bundles: so everything is sent to every subscriber, and what it has
//! no topic for is dropped there. Peers of other makes subscribe to everything, too.
//!
//! # Caps, and what they cannot do
//!
//! Over ipc and tcp NNG is told the longest body that a message within the [`Caps`](super::Caps)
//! can take, but no less than 64 KiB: a peer that announces more is disconnected
//! before it is read, its message is lost, and no error is seen here; a peer that
//! dialed will dial again. What is shorter, and everything over inproc, where NNG has
//! no limit, is received whole and refused as [`Error::Cap`]. NNG gets the memory
//! for a body when its length is announced: what may wait here is bounded by peers x
//! [`Caps::message_bytes`](super::Caps::message_bytes), and by the high-water mark x that for
//! sockets with a queue. There is no authentication: a body is from whoever can connect.
//!
//! # Closing
//!
//! By itself NNG drops what is queued when a socket closes, and over inproc even what
//! the receiver has not fetched. Dropping a [`Socket`] here loses nothing of
//! what was sent: the socket stays open in the background until NNG has handed
//! everything to the system (over ipc and tcp) or the receiver has taken it (over
//! inproc), for at most the linger time ([`DEFAULT_LINGER`] unless set
//! otherwise). Dropping the last handle of a context waits until that is done, over
//! ipc and tcp. What that means in particular:
//!
//! - What is lost: messages that no peer came to fetch within the linger time, and those
//!   in the queues of a process that ends without having dropped its context. A connection
//!   that breaks loses the messages that it had taken, as it does at any time.
//! - If a connection of a Push socket with several peers broke with a message under way,
//!   nothing tells that message from one that is still to go: closing then takes the whole
//!   linger time. So it does for a socket with an inproc endpoint and others beside it,
//!   and for all that send to the same inproc endpoint as such a one.
//! - Publish promises nothing; it stays open until no message has left for 100 ms.
//! - A Pair socket that has a peer turns another one away, but NNG lets that one send
//!   before it learns of it: what it sent until then is lost. So start the next peer of
//!   a Pair when the last one is gone, which [`Counters::disconnects`](super::Counters) tells.
//! - NNG 1.4.0 leaks a connection, its descriptor and its memory, when a socket at either
//!   end closes while it is just being made: over tcp now and then, over ipc often. Where
//!   sockets come and go by the hundred, pass a message before closing.
//! - A dropped socket that lingers still holds the endpoints that it listened at. Let the
//!   receiver listen, where that matters.
//! - A peer that closes a connection with messages of ours unread makes the system
//!   drop what is on its way back: let a Pair finish reading before it closes.
//! - NNG now and then loses a reply whose connection ends right behind it, over ipc and tcp:
//!   29 of 900, on a busy machine, from a Reply socket that was dropped after its last reply.
//!   Who asked sees [`Error::Disconnected`]. The receive that a Request socket keeps under way
//!   makes that rarer and does not rule it out. So let the side that asked close first: keep
//!   a Reply socket until [`Counters::disconnects`](super::Counters) says that its peers have
//!   gone, and go on receiving meanwhile. Or ask again, where a request may be carried out twice.
//! - A socket of another make, over inproc, that closes right after sending, takes along
//!   the last message that a socket here has not fetched. It has nothing like a linger.
//!
//! # What is wrong below
//!
//! The crate `nng` builds NNG 1.4.0, which has flaws that later versions have not. They
//! cannot be mended from here:
//!
//! - A listener over ipc or tcp accepts nobody any more, for good, once a connection
//!   ended before NNG had written its greeting to it (nanomsg/nng issue 1518). Over ipc it
//!   takes one process that ends while it connects, or a stranger that hangs up at once;
//!   over tcp, one that ends the connection by a reset. A dialer gives up likewise, when
//!   the other side hangs up at once. Connections that are there are not concerned.
//!   So keep endpoints from strangers (a folder of the user's own, a closed network), and
//!   where peers come and go by the hundred prefer ZeroMQ. A receiver that has heard
//!   from nobody for too long is mended by opening its socket anew.
//! - A connection of a Push socket that ends at the very moment when a message was
//!   written to it may stay in the list of those that are ready (issue 1653), and the next
//!   message is then written into memory that was freed, or NNG finds its lists damaged and
//!   aborts the process: about once in 200 times that the one peer goes as soon as it has the
//!   message, and others are sent. Where peers of a Push socket come and go while it goes on
//!   sending, prefer Pair, Request, or another transport.

mod account;
mod builder;
mod endpoint;
mod error;
mod kind;
mod linger;
mod message;
mod raw;
#[cfg(feature = "tokio")]
mod readiness;
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
#[cfg(feature = "tokio")]
pub use readiness::Registration;
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

/// How many messages may wait in a queue unless set: as many as over ZeroMQ.
pub const DEFAULT_HIGH_WATER: u32 = 1000;

/// How long what was sent may still leave after its socket is dropped, unless set.
pub const DEFAULT_LINGER: Duration = Duration::from_secs(30);

/// How soon a connection is tried again unless set, at first and at most.
pub const DEFAULT_RECONNECT: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(1));

/// How long a call waits unless set: enough for any healthy peer, and not forever.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
