//! What a worker tells on stdout of what it does, if it is to; the report is made of it.

use std::collections::HashMap;
use std::io::{Write, stdout};

use tensorwire::transfer::Control;
use tensorwire::transfer::pool::{Pool, Slot};
use tensorwire::transfer::worker::{Ending, Job, Outgoing};

use crate::Result;
use crate::compute::Done;
use crate::measure::{End, Moved, Step, Told, now_ns};

#[derive(Default)]
pub(crate) struct Reporter {
    tells: bool,
    /// The offsets of the preallocated slots, and their lengths together.
    preallocated: Vec<u64>,
    preallocated_bytes: u64,
    /// When the work of a job came, and in which kind of slot.
    came: HashMap<Job, (u64, Option<bool>)>,
    copied: HashMap<Job, u64>,
    /// Taken for requests when it was told to end.
    held_bytes: u64,
}

impl Reporter {
    pub(crate) fn new(tells: bool) -> Self {
        Self {
            tells,
            ..Self::default()
        }
    }

    /// A message to the head node: of interest is the registration, which names the slots.
    pub(crate) fn says(&mut self, outgoing: Outgoing, payload: &[u8]) {
        if self.tells
            && outgoing == Outgoing::Control
            && let Ok(Control::Register(register)) = Control::decode(payload)
        {
            let slots = register.preallocated_slots.iter();
            self.preallocated_bytes = slots.clone().map(|slot| slot.size).sum();
            self.preallocated = slots.map(|slot| slot.offset).collect();
        }
    }

    pub(crate) fn came(&mut self, job: &Job, slot: Option<&Slot>) {
        let preallocated = slot.map(|slot| self.preallocated.contains(&(slot.offset() as u64)));
        if self.tells {
            self.came.insert(job.clone(), (now_ns(), preallocated));
        }
    }

    pub(crate) fn done(&mut self, done: &Done) {
        if let Some((came_ns, preallocated)) = self.came.remove(&done.job) {
            tell(&Told::Step(Step {
                request: done.job.to_string(),
                came_ns,
                done_ns: now_ns(),
                failed: done.result.is_err(),
                preallocated,
            }));
        }
    }

    pub(crate) fn copied(&mut self, job: &Job, bytes: u64) {
        if self.tells {
            self.copied.insert(job.clone(), bytes);
        }
    }

    pub(crate) fn over(&mut self, job: &Job, ending: Ending) {
        let copied_bytes = self.copied.remove(job);
        if let (Some(copied_bytes), Ending::Pushed { bytes }) = (copied_bytes, ending) {
            tell(&Told::Moved(Moved {
                request: job.to_string(),
                bytes: bytes as u64,
                copied_bytes,
            }));
        }
    }

    /// It was told to end, and has what it has.
    pub(crate) fn stopped(&mut self, pool: &Pool) {
        let taken = pool.stats().allocated_bytes() as u64;
        self.held_bytes = taken.saturating_sub(self.preallocated_bytes);
    }

    /// Nobody has any slot any more.
    pub(crate) fn ended(self, pool: &Pool) -> Result<()> {
        pool.reclaim();
        let stats = pool.stats();
        let leaked_bytes = stats.allocated_bytes() as u64;
        if self.tells {
            tell(&Told::End(End {
                pool_bytes: stats.pool_bytes() as u64,
                high_water_bytes: stats.high_water() as u64,
                held_bytes: self.held_bytes,
                leaked_bytes,
            }));
        }
        match leaked_bytes {
            0 => Ok(()),
            leaked => Err(format!("{leaked} bytes of the pool leaked").into()),
        }
    }
}

fn tell(told: &Told) {
    if let Ok(line) = serde_json::to_string(told) {
        // Who does not listen is not told.
        let _ = writeln!(stdout(), "{line}");
    }
}
