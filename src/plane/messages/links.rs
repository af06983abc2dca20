//! An inlet's listener over links that have one peer each.

use core::fmt;

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::{Condvar, Mutex, PoisonError};

use super::connect::{Listen, SLICE};
use crate::transport::{
    CapExceeded, Deadline, ErrorKind, Expired, Frames, RecvFrames, SendFrames, TransportError, Wait,
};

/// Receives from many links in turn, and answers on the one a message came from.
///
/// For transports whose links have one peer each: loopback, or PAIR sockets. Links are
/// added at any time, from any thread, by an [`Adder`]; one that fails is dropped, and
/// the others go on.
///
/// # Examples
///
/// ```
/// use tensorwire::plane::messages::{Links, Listen};
/// use tensorwire::transport::{Frames, RecvFrames, SendFrames, Wait, loopback};
///
/// let mut links = Links::new();
/// let (mut pusher, far) = loopback::pair();
/// links.adder().add(far);
///
/// pusher.send(&[b"push"])?;
/// let mut message = Default::default();
/// links.recv_frames(&mut message, Wait::Configured)?;
/// assert_eq!(message.frame(0), Some(&b"push"[..]));
/// links.answer(&message, &[b"answer"])?;
/// assert_eq!(pusher.recv()?.frame(0), Some(&b"answer"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Links<L> {
    links: Vec<(u64, L)>,
    /// Which link to look at first, so that each has its turn.
    next: usize,
    /// The number of the next link that is added.
    number: u64,
    added: Arc<Added<L>>,
}

#[derive(Debug)]
struct Added<L> {
    links: Mutex<Vec<L>>,
    came: Condvar,
}

/// Adds links to a [`Links`] that may be at work on another thread.
#[derive(Debug)]
pub struct Adder<L> {
    added: Arc<Added<L>>,
}

impl<L> Adder<L> {
    /// Adds a link, to be looked at from the next receive on.
    pub fn add(&self, link: L) {
        let mut links = self
            .added
            .links
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        links.push(link);
        drop(links);
        self.added.came.notify_one();
    }
}

impl<L> Clone for Adder<L> {
    fn clone(&self) -> Self {
        let added = self.added.clone();
        Self { added }
    }
}

impl<L> Links<L> {
    /// Makes a listener without links.
    #[must_use]
    pub fn new() -> Self {
        let added = Added {
            links: Mutex::default(),
            came: Condvar::new(),
        };
        Self {
            links: Vec::new(),
            next: 0,
            number: 0,
            added: Arc::new(added),
        }
    }

    /// Returns a way to add links, of which there can be many.
    #[must_use]
    pub fn adder(&self) -> Adder<L> {
        let added = self.added.clone();
        Adder { added }
    }

    /// Returns how many links there are, those added since the last receive not counted.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.links.len()
    }

    /// Tells whether there are no links, those added since the last receive not counted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Takes over what was added; waits a moment for it if there is no link at all.
    fn take_added(&mut self, deadline: Deadline) {
        let lock = self.added.links.lock();
        let mut added = lock.unwrap_or_else(PoisonError::into_inner);
        if self.links.is_empty()
            && added.is_empty()
            && let Ok(left) = deadline.remaining()
        {
            let woken = self.added.came.wait_timeout(added, left.min(LONGEST_WAIT));
            added = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        for link in added.drain(..) {
            self.links.push((self.number, link));
            self.number = self.number.saturating_add(1);
        }
    }
}

impl<L: SendFrames + RecvFrames> Links<L> {
    /// Looks at `count` links in turn, waiting for each for `wait`; tells whether a message
    /// came.
    fn look(
        &mut self,
        message: &mut Linked<L::Message>,
        count: usize,
        wait: Wait,
    ) -> Result<bool, LinksError<L::RecvError, L::SendError>> {
        for _ in 0..count {
            if self.next >= self.links.len() {
                self.next = 0;
            }
            let Some((number, link)) = self.links.get_mut(self.next) else {
                break;
            };
            match link.recv_frames(&mut message.message, wait) {
                Ok(()) => {
                    message.link = *number;
                    self.next = self.next.saturating_add(1);
                    return Ok(true);
                }
                Err(error) => match error.kind() {
                    kind if kind.is_wait() => self.next = self.next.saturating_add(1),
                    ErrorKind::CapExceeded | ErrorKind::Malformed => {
                        self.next = self.next.saturating_add(1);
                        return Err(LinksError::Recv(error));
                    }
                    _ => drop(self.links.remove(self.next)),
                },
            }
        }
        Ok(false)
    }
}

impl<L> Default for Links<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: SendFrames + RecvFrames> FromIterator<L> for Links<L> {
    fn from_iter<I: IntoIterator<Item = L>>(links: I) -> Self {
        let all = Self::new();
        let adder = all.adder();
        links.into_iter().for_each(|link| adder.add(link));
        all
    }
}

impl<L: SendFrames + RecvFrames> Listen for Links<L> {
    type Message = Linked<L::Message>;
    type Error = LinksError<L::RecvError, L::SendError>;

    fn recv_frames(&mut self, message: &mut Self::Message, wait: Wait) -> Result<(), Self::Error> {
        message.clear();
        let deadline = Deadline::new(wait, None);
        loop {
            self.take_added(deadline);
            let mut came = self.look(message, self.links.len(), Wait::Never);
            if matches!(came, Ok(false)) {
                // One of them is waited for, in turn; then all are looked at again.
                let left = deadline.remaining()?;
                came = self.look(message, 1, Wait::UpTo(left.min(SLICE)));
            }
            match came {
                Ok(false) => {}
                Ok(true) => return Ok(()),
                Err(error) => {
                    message.clear();
                    return Err(error);
                }
            }
        }
    }

    fn answer(&mut self, message: &Self::Message, frames: &[&[u8]]) -> Result<(), Self::Error> {
        let mut links = self.links.iter_mut();
        let (_, link) = links
            .find(|(number, _)| *number == message.link)
            .ok_or(LinksError::Gone)?;
        link.try_send(frames).map_err(LinksError::Send)
    }
}

/// A message that came over one of several links.
#[derive(Debug, Default)]
pub struct Linked<M> {
    message: M,
    /// The number of the link it came on.
    link: u64,
}

impl<M: Frames> Frames for Linked<M> {
    type Frame = M::Frame;

    fn frames(&self) -> &[M::Frame] {
        self.message.frames()
    }

    fn clear(&mut self) {
        self.message.clear();
    }

    fn receipt(&self) -> Option<crate::transport::Receipt> {
        self.message.receipt()
    }
}

/// Why receiving from, or answering on, one of several links failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LinksError<R, S> {
    /// The link that the message came on is gone.
    Gone,
    /// A message was lost on a link that goes on.
    Recv(R),
    /// The answer could not be sent.
    Send(S),
    /// The time to wait was up.
    TimedOut,
    /// It cannot be done now, and the call was not to wait.
    WouldBlock,
}

impl<R: TransportError, S: TransportError> TransportError for LinksError<R, S> {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Gone => ErrorKind::Unreachable,
            Self::Recv(error) => error.kind(),
            Self::Send(error) => error.kind(),
            Self::TimedOut => ErrorKind::TimedOut,
            Self::WouldBlock => ErrorKind::WouldBlock,
        }
    }

    fn refused(&self) -> Option<CapExceeded> {
        match self {
            Self::Recv(error) => error.refused(),
            _ => None,
        }
    }
}

impl<R: fmt::Display, S: fmt::Display> fmt::Display for LinksError<R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the link that the message came on is gone"),
            Self::Recv(error) => error.fmt(f),
            Self::Send(error) => error.fmt(f),
            Self::TimedOut => f.write_str("timed out"),
            Self::WouldBlock => f.write_str("would block"),
        }
    }
}

impl<R, S> core::error::Error for LinksError<R, S>
where
    R: fmt::Debug + fmt::Display,
    S: fmt::Debug + fmt::Display,
{
}

impl<R, S> From<Expired> for LinksError<R, S> {
    fn from(expired: Expired) -> Self {
        match expired {
            Expired::WouldBlock => Self::WouldBlock,
            Expired::TimedOut => Self::TimedOut,
        }
    }
}

/// A listener without links looks again after this, so that no clock can overflow.
const LONGEST_WAIT: core::time::Duration = core::time::Duration::from_secs(3600);
