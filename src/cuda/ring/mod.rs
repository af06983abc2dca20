//! A bounded ring of pinned slots.
//!
//! ```text
//!             take                 submit(stream)
//!   free ------------> Slots (host's) ----------> InFlight (the device's) -- drop --> the ring's
//!    ^                   |   ^                        |                                  |
//!    +------ drop -------+   +------- finish ---------+        its event has fired       |
//!    +------------------------------------------------------------------------------------+
//! ```
//!
//! - **Who takes** gets adjacent slots or none. Nobody in here holds some and waits for more; who does so outside may wait for ever.
//! - **Who waits** is served in turn. The first in line looks at the events of what is the ring's, less and less often, and is woken
//!   by what hosts give back.
//! - **Events fire in any order**, and slots come back in that order.
//! - **A handle that is forgotten** (`mem::forget`) keeps its slots, and the memory of the ring, for ever.
//! - **An event that cannot be recorded** leaves its slots in doubt. Each look tries to record it again: on the same stream it fires
//!   after the copy, as it would have.
//! - **The last handle** waits for what is the ring's, and frees the memory; it leaks it if the driver does not say that all is over.
//!
//! There are two locks. That of the state is never held during a call of the driver, so that a slot is given back without waiting
//! for one. That of the looks is held by who looks, so that an event of a run that is the ring's is nobody else's meanwhile.

mod slots;
mod state;
mod statistics;

use core::time::Duration;

use alloc::boxed::Box;
use alloc::sync::Arc;

use std::thread;

use cudarc::driver::{CudaEvent, CudaStream};

use self::slots::Holder;
use self::state::{Pending, Run, State, Turn};
use super::allocation::{ALIGNMENT, Allocation};
use super::backoff::Backoff;
use super::driver::Driver;
use super::error::{CudaError, Step};
use super::keeper::Keeper;
use super::lock::{Guard, Lock, Signal};
use crate::device::ErrorKind;
use crate::transport::{Deadline, Expired, Wait};

pub(super) use self::slots::{InFlight, Slots};
pub use self::statistics::Statistics;

/// A bounded number of pinned slots, side by side in one allocation. Clones are handles to the same.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    shared: Arc<Shared>,
    /// What it keeps may be slots of this ring: who waits for slots looks there too.
    keeper: Arc<Keeper>,
}

/// What the handles share; the keeper is not among it, as it may own handles.
#[derive(Debug)]
pub(super) struct Shared {
    state: Lock<State<Arc<CudaStream>>>,
    /// Something was given back, or to the device, or somebody left the line.
    changed: Signal,
    looks: Lock<()>,
    /// One for each slot; a run uses that of its first.
    events: Box<[Arc<CudaEvent>]>,
    /// `None` once it was freed or leaked.
    memory: Option<Allocation>,
    slot_bytes: usize,
    timeout: Option<Duration>,
    driver: Arc<Driver>,
}

impl Ring {
    /// Allocates `slots` slots of `slot_bytes`, rounded up to a multiple of 256, and an event for each; at least one slot of 256 bytes.
    ///
    /// Errors: `OutOfMemory`; the driver's.
    pub(super) fn new(
        driver: Arc<Driver>,
        slots: usize,
        slot_bytes: usize,
        timeout: Option<Duration>,
    ) -> Result<Self, CudaError> {
        let slots = slots.max(1);
        let slot_bytes = slot_bytes.max(1).checked_next_multiple_of(ALIGNMENT);
        let sizes = slot_bytes.and_then(|bytes| Some((bytes, bytes.checked_mul(slots)?)));
        let Some((slot_bytes, bytes)) = sizes else {
            let kind = ErrorKind::OutOfMemory { bytes: usize::MAX };
            return Err(CudaError::new(kind, Step::AllocatePinned));
        };
        // Before the events: of too many slots this says that there is no memory.
        let memory = Allocation::new(&driver, bytes)?;
        let events = (0..slots)
            .map(|_| driver.create_event().map(Arc::new))
            .collect::<Result<_, _>>()?;
        let shared = Arc::new(Shared {
            state: Lock::new(State::new(slots)),
            changed: Signal::default(),
            looks: Lock::new(()),
            events,
            memory: Some(memory),
            slot_bytes,
            timeout,
            driver: driver.clone(),
        });
        let keeper = Arc::new(Keeper::new(driver, Arc::downgrade(&shared)));
        Ok(Self { shared, keeper })
    }

    /// Takes as many adjacent slots as hold `len` bytes, at least one.
    ///
    /// Their bytes are what was last in them; zeros in those never used.
    ///
    /// Errors: `RingFull`, `TimedOut` by `wait`; `TooLarge` at once; the driver's, if it says that a copy failed.
    pub(super) fn take(&self, len: usize, wait: Wait) -> Result<Slots, CudaError> {
        let shared = &self.shared;
        let needed = shared.slots_for(len)?;
        let mut waiting: Option<Waiting<'_>> = None;
        let mut backoff = Backoff::default();
        // The driver is asked only where too few are known to be free, and by the first in line alone.
        let mut looked = None;
        loop {
            if let Some(fault) = shared.driver.fault() {
                return Err(fault);
            }
            let mut state = shared.state();
            let turn = waiting.as_ref().map(|waiting| waiting.turn);
            // Those in line come first, where one may wait.
            let is_next = turn.map_or_else(
                || wait == Wait::Never || !state.is_awaited(),
                |turn| state.is_next(turn),
            );
            if is_next {
                // Also where slots came free at that: nobody else is told.
                if let Some(Err(error)) = looked {
                    return Err(error);
                }
                if let Some(run) = state.take(needed, len, turn) {
                    drop(state);
                    return Ok(Slots::new(shared, run));
                }
                if looked.is_none() {
                    drop(state);
                    looked = Some(self.poll());
                    continue;
                }
            }
            let Some(waiting) = &waiting else {
                match Deadline::start(wait, shared.timeout) {
                    Ok((deadline, _)) => {
                        let turn = state.line_up();
                        waiting = Some(Waiting {
                            shared,
                            turn,
                            deadline,
                        });
                        continue;
                    }
                    Err(expired) => {
                        state.stalled();
                        return Err(refuse(state, expired, needed));
                    }
                }
            };
            let left = match waiting.deadline.remaining() {
                Ok(left) => left,
                Err(expired) => return Err(refuse(state, expired, needed)),
            };
            looked = None;
            if !is_next || (self.keeper.is_empty() && state.pending(0).is_none()) {
                // Whoever has slots wakes this.
                drop(shared.changed.wait(state, left));
                backoff = Backoff::default();
                continue;
            }
            match backoff.pause() {
                Duration::ZERO => {
                    drop(state);
                    thread::yield_now();
                }
                pause => drop(shared.changed.wait(state, pause.min(left))),
            }
        }
    }

    /// Returns what keeps memory while copies use it.
    pub(super) const fn keeper(&self) -> &Arc<Keeper> {
        &self.keeper
    }

    /// Returns how many bytes a slot has.
    pub(super) fn slot_bytes(&self) -> usize {
        self.shared.slot_bytes
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.shared.state().statistics(self.shared.slot_bytes)
    }

    /// Takes back the slots whose events have fired, and lets go of what is kept for copies that are over.
    ///
    /// Errors: the driver's, if it says that a copy failed.
    pub(super) fn poll(&self) -> Result<(), CudaError> {
        // Both, whatever the first one says.
        let (kept, looked) = (self.keeper.poll(), self.shared.look());
        kept.and(looked)
    }
}

/// The error of a call that goes without.
fn refuse(
    mut state: Guard<'_, State<Arc<CudaStream>>>,
    expired: Expired,
    needed: usize,
) -> CudaError {
    state.refused();
    let free = state.free();
    let kind = match expired {
        Expired::TimedOut => ErrorKind::TimedOut,
        Expired::WouldBlock => ErrorKind::RingFull { needed, free },
    };
    CudaError::new(kind, Step::Stage)
}

/// A place in the line, left when dropped.
struct Waiting<'a> {
    shared: &'a Shared,
    turn: Turn,
    deadline: Deadline,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.leave(self.turn);
        // Somebody else is first now.
        self.shared.wake(state);
    }
}

impl Shared {
    fn state(&self) -> Guard<'_, State<Arc<CudaStream>>> {
        self.state.lock()
    }

    /// Wakes those that wait, outside of the lock. All of them: the first in line may be any.
    fn wake(&self, state: Guard<'_, State<Arc<CudaStream>>>) {
        let is_awaited = state.is_awaited();
        drop(state);
        if is_awaited {
            self.changed.tell_all();
        }
    }

    /// Has those that wait look again, since something that may own slots is the device's now.
    pub(super) fn look_again(&self) {
        self.wake(self.state());
    }

    /// How many slots hold `len` bytes.
    fn slots_for(&self, len: usize) -> Result<usize, CudaError> {
        let needed = len.div_ceil(self.slot_bytes).max(1);
        if needed > self.events.len() {
            let room = self.slot_bytes.saturating_mul(self.events.len());
            let kind = ErrorKind::TooLarge { needed: len, room };
            return Err(CudaError::new(kind, Step::Stage));
        }
        Ok(needed)
    }

    /// The event of `run`. There is one for each slot; `None` is nothing that happens.
    fn event(&self, run: Run) -> Option<&Arc<CudaEvent>> {
        self.events.get(run.first)
    }

    /// Looks at the events of all runs that are the ring's, and takes back those that have fired.
    ///
    /// Errors: the first; all are looked at nevertheless.
    fn look(&self) -> Result<(), CudaError> {
        let _alone = self.looks.lock();
        let mut result = Ok(());
        let mut from = 0;
        loop {
            let Some(pending) = self.state().pending(from) else {
                return result;
            };
            let (Pending::Fire(run) | Pending::Record(run, _)) = pending;
            from = run.first.saturating_add(run.len);
            let Some(event) = self.event(run) else {
                continue;
            };
            if let Pending::Record(_, stream) = &pending {
                match self.driver.record(event, stream) {
                    Ok(()) => {
                        self.state().recorded(run);
                    }
                    Err(error) => {
                        result = result.and(Err(error));
                        continue;
                    }
                }
            }
            match self.driver.is_complete(event) {
                Ok(true) => {
                    let mut state = self.state();
                    state.complete(run);
                    self.wake(state);
                }
                Ok(false) => {}
                Err(error) => result = result.and(Err(error)),
            }
        }
    }

    /// Takes `run` from who holds it.
    fn let_go(&self, run: Run, holder: Holder) {
        if holder != Holder::Ring {
            let mut state = self.state();
            state.let_go(run);
            self.wake(state);
        }
    }

    /// Waits for all that is the ring's; tells whether it is over.
    fn wait_for_all(&self) -> bool {
        let mut from = 0;
        loop {
            let Some(pending) = self.state().pending(from) else {
                return true;
            };
            let (Pending::Fire(run) | Pending::Record(run, _)) = pending;
            let over = match (&pending, self.event(run)) {
                (Pending::Fire(_), Some(event)) => self.driver.synchronize(event),
                (Pending::Record(_, stream), _) => self.driver.synchronize_stream(stream),
                (Pending::Fire(_), None) => return false,
            };
            if over.is_err() {
                return false;
            }
            from = run.first.saturating_add(run.len);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // No handle is left: what is not free is the ring's.
        if !self.wait_for_all()
            && let Some(memory) = self.memory.take()
        {
            memory.leak();
        }
    }
}
