//! The tests that every transport passes, for yours.
//!
//! One set of checks, written once against the traits. The crate's own transports are
//! held to it, and so can be one of your own: implement [`Backend`], which opens a
//! pair of connected ends, and [`run`] the suite over it.
//!
//! ```text
//!   Backend::open(&Setup) --> (Sender, Receiver) --> each Check --> Outcome
//!                                                                      |
//!            Matrix  <--  Report per backend  <-------------------------
//! ```
//!
//! # Examples
//!
//! ```
//! use std::error::Error;
//! use tensorwire::transport::conformance::{Backend, Check, Setup, Suite};
//! use tensorwire::transport::loopback::{Loopback, Options};
//!
//! struct InMemory;
//!
//! impl Backend for InMemory {
//!     type Sender = Loopback;
//!     type Receiver = Loopback;
//!
//!     fn name(&self) -> &str {
//!         "loopback"
//!     }
//!
//!     fn open(&self, setup: &Setup) -> Result<(Loopback, Loopback), Box<dyn Error + Send + Sync>> {
//!         Ok(Options::new()
//!             .with_caps(setup.caps())
//!             .with_high_water(usize::try_from(setup.high_water())?)
//!             .with_recv_timeout(Some(setup.timeout()))
//!             .with_send_timeout(Some(setup.timeout()))
//!             .pair())
//!     }
//! }
//!
//! // In a test, all of them: `conformance::run(InMemory).into_result().unwrap()`.
//! let suite = Suite::new().with_checks(&[Check::Order, Check::EmptyFrames]);
//! let report = suite.run(InMemory).into_result()?;
//! assert_eq!(report.passed(), 2);
//! println!("{report}");
//! # Ok::<(), Box<dyn Error>>(())
//! ```
//!
//! # What a check may come out as
//!
//! [`Outcome::Passed`], [`Outcome::Failed`] with what was found instead, or
//! [`Outcome::Skipped`] with a reason. Nothing is skipped in silence: either the
//! backend declared it ([`Backend::skip`]), or it lacks an ability that the check is
//! about, each of which is a method of [`Backend`] with a default that says no.
//!
//! Each check runs on a thread of its own. A panic that comes out of the backend is a
//! failed check; so is a check that is not done after several times the patience of the
//! [`Suite`], and the failure names the calls that do not come back. Its thread is then
//! left behind, as threads cannot be ended from without, and the suite goes on. (Where
//! panics abort, they end the suite too.) [`Suite::with_progress`] tells of each check
//! as it is done.
//!
//! # Where transports differ
//!
//! The checks hold to the contract in the [documentation](super#the-contract) of the
//! transports, no less and no more. What is left to a transport is said at each
//! [`Check`]. The chief cases:
//!
//! - Messages sent to a peer that is dead, or dies, may be lost. Those that do arrive
//!   are in order, and none comes twice: [`Check::ReceiverRestart`].
//! - A message over a cap may be refused by the sender, be refused by the receiver with
//!   [`ErrorKind::CapExceeded`](super::ErrorKind::CapExceeded), or cost its sender the
//!   connection. Only in that last case may messages after it be lost:
//!   [`Check::CapsFrameBytes`].
//! - A transport that is lossy by design, as ZeroMQ's publishers are, has no
//!   back-pressure. It declares that with [`Backend::skip`].
//!
//! A transport with an asynchronous interface is held to the suite by a sender and a
//! receiver that wait for its futures.

mod checks;
mod report;
mod suite;
mod support;
mod watch;

use core::error::Error;
use core::time::Duration;

use alloc::boxed::Box;

use super::{Caps, Counters, RecvFrames, SendFrames};

pub use checks::Check;
pub use report::{Failure, Matrix, NonConforming, Outcome, Report, Verdict};
pub use suite::{Scale, Suite, run};

/// A transport to be held to the suite: how to open it, and what it is able to do.
///
/// Only [`Backend::name`] and [`Backend::open`] have to be implemented. Each other
/// method has a default that says no, and then the checks that need it are skipped,
/// visibly.
pub trait Backend: Send + Sync + 'static {
    /// The sending end.
    type Sender: SendFrames + Send + 'static;

    /// The receiving end.
    type Receiver: RecvFrames + Send + 'static;

    /// Returns the name of the transport and its endpoint, for the report.
    fn name(&self) -> &str;

    /// Opens a pair of ends that are connected, or will be with the first message.
    ///
    /// Several pairs may be open at once, and know nothing of each other. What else a
    /// pair needs (a context, a file) belongs to its ends, and ends with them.
    ///
    /// # Errors
    ///
    /// Whatever the transport says; the check fails with it.
    fn open(
        &self,
        setup: &Setup,
    ) -> Result<(Self::Sender, Self::Receiver), Box<dyn Error + Send + Sync>>;

    /// Closes `receiver` and opens another one in its place, for the same sender:
    /// what a peer does that is restarted.
    ///
    /// `None`, the default, is for a transport whose connections end with their peer.
    ///
    /// # Errors
    ///
    /// As [`Backend::open`].
    fn restart_receiver(
        &self,
        receiver: Self::Receiver,
        setup: &Setup,
    ) -> Result<Option<Self::Receiver>, Box<dyn Error + Send + Sync>> {
        let _ = (receiver, setup);
        Ok(None)
    }

    /// Closes `sender` and opens another one that sends to the same receiver.
    ///
    /// `None`, the default, is for a transport whose connections end with their peer.
    ///
    /// # Errors
    ///
    /// As [`Backend::open`].
    fn restart_sender(
        &self,
        sender: Self::Sender,
        setup: &Setup,
    ) -> Result<Option<Self::Sender>, Box<dyn Error + Send + Sync>> {
        let _ = (sender, setup);
        Ok(None)
    }

    /// Returns the counters of a sender, from a transport that is
    /// [`Observed`](super::Observed); `None`, the default, from one that is not.
    fn sender_counters(&self, sender: &Self::Sender) -> Option<Counters> {
        let _ = sender;
        None
    }

    /// Returns the counters of a receiver; `None` as for
    /// [`Backend::sender_counters`].
    fn receiver_counters(&self, receiver: &Self::Receiver) -> Option<Counters> {
        let _ = receiver;
        None
    }

    /// Returns why `check` does not apply to this transport; `None`, the default, if
    /// it does.
    ///
    /// The reason stands in the report.
    fn skip(&self, check: Check) -> Option<&'static str> {
        let _ = check;
        None
    }
}

/// How a check wants a pair to be set up.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tensorwire::transport::Caps;
/// use tensorwire::transport::conformance::Setup;
///
/// let setup = Setup::new().with_high_water(1).with_timeout(Duration::from_millis(50));
/// assert_eq!(setup.high_water(), 1);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Setup {
    caps: Caps,
    high_water: u32,
    linger: Duration,
    timeout: Duration,
}

impl Setup {
    /// Makes the default setup: messages of up to 8 MiB in up to 4097 frames, of which
    /// 100 may wait, and half a minute to wait for anything.
    pub const fn new() -> Self {
        Self {
            caps: Caps::new()
                .with_frame_bytes(MESSAGE_BYTES)
                .with_message_bytes(MESSAGE_BYTES),
            high_water: 100,
            linger: HALF_A_MINUTE,
            timeout: HALF_A_MINUTE,
        }
    }

    /// Sets the caps.
    pub const fn with_caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Sets how many messages may wait.
    pub const fn with_high_water(mut self, messages: u32) -> Self {
        self.high_water = messages;
        self
    }

    /// Sets how long what was sent may still leave.
    pub const fn with_linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Sets how long a call waits.
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the caps on what is received.
    ///
    /// No check sends a larger message, but those that are about caps: so a transport
    /// with a pool of buffers knows how large they have to be.
    #[must_use]
    pub const fn caps(&self) -> Caps {
        self.caps
    }

    /// Returns how many messages may wait, at each end if each has a queue. At least 1.
    ///
    /// Messages that the receiver keeps may count too, as where they lie in the queue:
    /// no check sends into a full one while it keeps one.
    #[must_use]
    pub const fn high_water(&self) -> u32 {
        self.high_water
    }

    /// Returns how long what was sent may still leave after its sender is dropped.
    #[must_use]
    pub const fn linger(&self) -> Duration {
        self.linger
    }

    /// Returns how long a call waits that is to wait as configured, of either end.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

/// Room for two of the largest frames that most checks send.
const MESSAGE_BYTES: usize = 8 << 20;

/// Long enough never to be reached by a check that passes.
const HALF_A_MINUTE: Duration = Duration::from_secs(30);
