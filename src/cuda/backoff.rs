//! Waiting for the device without keeping a core busy, and without a call that cannot be told to stop.

use core::time::Duration;

use std::thread;

use cudarc::driver::CudaEvent;

use super::driver::Driver;
use super::error::{CudaError, Step};
use crate::device::ErrorKind;
use crate::transport::{Deadline, Expired, Wait};

/// How long to pause between two looks at an event: not at all at first, then longer and longer.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    looks: u32,
}

impl Backoff {
    /// Returns the next pause.
    pub(super) fn pause(&mut self) -> Duration {
        self.looks = self.looks.saturating_add(1);
        match self.looks.checked_sub(SPINS) {
            None => Duration::ZERO,
            Some(doublings) => FIRST_PAUSE
                .saturating_mul(2_u32.saturating_pow(doublings))
                .min(LONGEST_PAUSE),
        }
    }
}

/// Looks in a row, of about a microsecond each: a copy of 64 KiB takes two or three.
const SPINS: u32 = 16;
/// A tenth of what a copy of 8 MiB takes; sleeping has a grain of 50 us anyway.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
/// Much shorter than what anybody notices, and seldom enough to cost nothing.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Waits until `event` has fired.
///
/// Errors: `NotReady`, `TimedOut` by `wait`, for which `configured` is the timeout; the driver's.
pub(super) fn wait_for(
    driver: &Driver,
    event: &CudaEvent,
    wait: Wait,
    configured: Option<Duration>,
) -> Result<(), CudaError> {
    let mut deadline = None;
    let mut backoff = Backoff::default();
    while !driver.is_complete(event)? {
        let left = deadline
            .get_or_insert_with(|| Deadline::new(wait, configured))
            .remaining();
        let left = left.map_err(|expired| {
            let kind = match expired {
                Expired::TimedOut => ErrorKind::TimedOut,
                Expired::WouldBlock => ErrorKind::NotReady,
            };
            CudaError::new(kind, Step::WaitEvent)
        })?;
        match backoff.pause() {
            Duration::ZERO => thread::yield_now(),
            pause => thread::sleep(pause.min(left)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_short() {
        let mut backoff = Backoff::default();
        let pauses: alloc::vec::Vec<_> = (0..100).map(|_| backoff.pause()).collect();
        assert!(pauses.is_sorted());
        assert_eq!(pauses[0], Duration::ZERO);
        assert_eq!(pauses[15], FIRST_PAUSE);
        assert_eq!(pauses[99], LONGEST_PAUSE);
        backoff.looks = u32::MAX;
        assert_eq!(backoff.pause(), LONGEST_PAUSE);
    }
}
