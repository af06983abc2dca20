//! When a call has to be back.

use core::time::Duration;

use std::time::Instant;

use super::Wait;

/// When a call has to be back, fixed when it starts to wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deadline {
    At(Instant),
    Forever,
    Never,
}

/// Why a call does not wait any longer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Expired {
    TimedOut,
    WouldBlock,
}

impl Deadline {
    /// Fixes the deadline of a call that starts to wait now.
    pub(super) fn new(wait: Wait, configured: Option<Duration>) -> Self {
        let longest = match wait {
            Wait::Configured => configured,
            Wait::Forever => None,
            Wait::Never => return Self::Never,
            Wait::UpTo(longest) => Some(longest),
        };
        // A deadline past the end of the clock is none.
        match longest.and_then(|longest| Instant::now().checked_add(longest)) {
            Some(at) => Self::At(at),
            None => Self::Forever,
        }
    }

    /// Fixes the deadline and returns how long to wait from now on too: so the clock
    /// is read once only.
    #[cfg(feature = "zmq")]
    pub(super) fn start(
        wait: Wait,
        configured: Option<Duration>,
    ) -> Result<(Self, Duration), Expired> {
        let deadline = Self::new(wait, configured);
        let left = match (deadline, wait, configured) {
            (Self::Never, ..) => return Err(Expired::WouldBlock),
            (Self::At(_), Wait::UpTo(left), _) | (Self::At(_), _, Some(left)) => left,
            _ => Duration::MAX,
        };
        if left.is_zero() {
            return Err(Expired::TimedOut);
        }
        Ok((deadline, left))
    }

    /// Returns how much longer to wait; [`Duration::MAX`] is forever.
    pub(super) fn remaining(self) -> Result<Duration, Expired> {
        match self {
            Self::At(at) => match at.checked_duration_since(Instant::now()) {
                None | Some(Duration::ZERO) => Err(Expired::TimedOut),
                Some(left) => Ok(left),
            },
            Self::Forever => Ok(Duration::MAX),
            Self::Never => Err(Expired::WouldBlock),
        }
    }
}
