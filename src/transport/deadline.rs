//! When a call has to be back.

use core::fmt;
use core::time::Duration;

use std::time::Instant;

use super::Wait;

/// When a call has to be back, fixed when it starts to wait.
///
/// For those who implement a transport.
///
/// # Examples
///
/// Try; ask what time is left; wait no longer than that; repeat. In this order, as
/// no time at all is [`Expired::TimedOut`] at once, and yet a call without time gets
/// what is there:
///
/// ```
/// use core::time::Duration;
/// use std::collections::VecDeque;
/// use std::sync::{Condvar, Mutex, PoisonError};
/// use tensorwire::transport::{Deadline, Expired, Wait};
///
/// struct Queue {
///     bodies: Mutex<VecDeque<Vec<u8>>>,
///     came: Condvar,
///     timeout: Option<Duration>,
/// }
///
/// impl Queue {
///     fn take(&self, wait: Wait) -> Result<Vec<u8>, Expired> {
///         let deadline = Deadline::new(wait, self.timeout);
///         let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
///         loop {
///             if let Some(body) = bodies.pop_front() {
///                 return Ok(body);
///             }
///             let left = deadline.remaining()?;
///             let woken = self.came.wait_timeout(bodies, left);
///             bodies = woken.unwrap_or_else(PoisonError::into_inner).0;
///         }
///     }
/// }
///
/// let bodies = Mutex::new(VecDeque::from([b"there".to_vec()]));
/// let queue = Queue { bodies, came: Condvar::new(), timeout: Some(Duration::ZERO) };
/// assert_eq!(queue.take(Wait::Configured)?, b"there"); // though there is no time
/// assert_eq!(queue.take(Wait::Configured), Err(Expired::TimedOut));
/// assert_eq!(queue.take(Wait::Never), Err(Expired::WouldBlock));
/// # Ok::<(), Expired>(())
/// ```
///
/// What it makes of each [`Wait`]:
///
/// ```
/// use core::time::Duration;
/// use tensorwire::transport::{Deadline, Expired, Wait};
///
/// let configured = Some(Duration::from_secs(1));
/// let deadline = Deadline::new(Wait::Configured, configured);
/// assert!(deadline.remaining()? <= Duration::from_secs(1));
/// assert_eq!(Deadline::new(Wait::Forever, configured).remaining()?, Duration::MAX);
/// let never = Deadline::new(Wait::Never, configured);
/// assert_eq!(never.remaining(), Err(Expired::WouldBlock));
/// # Ok::<(), Expired>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    At(Instant),
    Forever,
    Never,
}

/// Why a call does not wait any longer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Expired {
    /// The time was up: [`ErrorKind::TimedOut`](super::ErrorKind::TimedOut).
    TimedOut,
    /// It was not to wait at all: [`ErrorKind::WouldBlock`](super::ErrorKind::WouldBlock).
    WouldBlock,
}

impl fmt::Display for Expired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "timed out",
            Self::WouldBlock => "would block",
        })
    }
}

impl core::error::Error for Expired {}

impl Deadline {
    /// Fixes the deadline of a call that starts to wait now; `configured` is the
    /// transport's timeout, `None` for none.
    #[must_use]
    pub fn new(wait: Wait, configured: Option<Duration>) -> Self {
        let longest = match wait {
            Wait::Configured => configured,
            Wait::Forever => None,
            Wait::Never => return Self { end: End::Never },
            Wait::UpTo(longest) => Some(longest),
        };
        // A deadline past the end of the clock is none.
        let end = match longest.and_then(|longest| Instant::now().checked_add(longest)) {
            Some(at) => End::At(at),
            None => End::Forever,
        };
        Self { end }
    }

    /// Fixes the deadline and returns how long to wait from now on too: so the clock
    /// is read once only.
    ///
    /// # Errors
    ///
    /// As [`Deadline::remaining`].
    pub fn start(wait: Wait, configured: Option<Duration>) -> Result<(Self, Duration), Expired> {
        let deadline = Self::new(wait, configured);
        let left = match (deadline.end, wait, configured) {
            (End::Never, ..) => return Err(Expired::WouldBlock),
            (End::At(_), Wait::UpTo(left), _) | (End::At(_), _, Some(left)) => left,
            _ => Duration::MAX,
        };
        if left.is_zero() {
            return Err(Expired::TimedOut);
        }
        Ok((deadline, left))
    }

    /// Returns how much longer to wait; [`Duration::MAX`] is forever.
    ///
    /// # Errors
    ///
    /// [`Expired::TimedOut`] when the time is up, [`Expired::WouldBlock`] when there
    /// was none to begin with.
    pub fn remaining(self) -> Result<Duration, Expired> {
        match self.end {
            End::At(at) => match at.checked_duration_since(Instant::now()) {
                None | Some(Duration::ZERO) => Err(Expired::TimedOut),
                Some(left) => Ok(left),
            },
            End::Forever => Ok(Duration::MAX),
            End::Never => Err(Expired::WouldBlock),
        }
    }
}
