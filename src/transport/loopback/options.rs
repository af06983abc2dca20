//! Setting a pair up.

use core::time::Duration;

use alloc::sync::Arc;

use super::queue::Queue;
use super::{Loopback, Script};
use crate::transport::Caps;

/// How a pair is set up.
///
/// # Examples
///
/// ```
/// use tensorwire::transport::loopback::{Error, Fault, Options};
/// use tensorwire::transport::{Frames, RecvFrames, SendFrames};
///
/// let (mut left, mut right) = Options::new()
///     .with_shift(3)
///     .with_script([(0, Fault::Drop), (1, Fault::Fail)])
///     .pair();
/// left.send(&[b"lost"])?;
/// assert_eq!(left.send(&[b"refused"]), Err(Error::Injected { message: 1 }));
/// left.send(&[b"through, at an odd address"])?;
/// let message = right.recv()?;
/// assert_eq!(message.frame(0).map(|frame| frame.as_ptr() as usize % 64), Some(3));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    pub(super) caps: Caps,
    pub(super) high_water: usize,
    pub(super) recv_timeout: Option<Duration>,
    pub(super) script: Script,
    pub(super) send_timeout: Option<Duration>,
    pub(super) shift: Option<usize>,
}

impl Options {
    /// Makes the default options: no faults, frames wherever they come to lie.
    pub const fn new() -> Self {
        Self {
            caps: Caps::new(),
            high_water: DEFAULT_HIGH_WATER,
            recv_timeout: Some(DEFAULT_TIMEOUT),
            script: Script::new(),
            send_timeout: Some(DEFAULT_TIMEOUT),
            shift: None,
        }
    }

    /// Makes a pair; both ends get these options.
    #[must_use]
    pub fn pair(self) -> (Loopback, Loopback) {
        let one = Arc::new(Queue::new(self.high_water));
        let other = Arc::new(Queue::new(self.high_water));
        let left = Loopback::new(one.clone(), other.clone(), self.clone());
        let right = Loopback::new(other, one, self);
        (left, right)
    }

    /// Sets the caps on received messages; [`Caps::new`] unless set.
    pub fn with_caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Sets how many messages may wait in each direction; 1000 unless set, and 0
    /// is taken as 1.
    pub fn with_high_water(mut self, messages: usize) -> Self {
        self.high_water = messages.max(1);
        self
    }

    /// Sets how long a receive waits, unless the call says otherwise.
    ///
    /// `None` waits forever. The default is 30 seconds.
    pub fn with_recv_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.recv_timeout = timeout;
        self
    }

    /// Sets what happens to the messages that each end sends; see
    /// [`Loopback::script`].
    pub fn with_script(mut self, script: impl Into<Script>) -> Self {
        self.script = script.into();
        self
    }

    /// Sets how long a send waits for room, unless the call says otherwise.
    ///
    /// `None` waits forever. The default is 30 seconds.
    pub fn with_send_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.send_timeout = timeout;
        self
    }

    /// Puts every frame at an address that is `offset` past a multiple of 64.
    /// Owned buffers are then copied too.
    pub fn with_shift(mut self, offset: usize) -> Self {
        self.shift = Some(offset);
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// As many as libzmq lets wait by default.
const DEFAULT_HIGH_WATER: usize = 1000;

/// Long enough for any healthy peer, short enough to notice one that is not.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
