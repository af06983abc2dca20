//! A worker under such a head node, with a data plane and a local worker that do as they like.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tensorwire::json::Object;
use tensorwire::message::NO_SCALARS;
use tensorwire::transfer::pool::{Pool, WindowTable, Writing};
use tensorwire::transfer::worker::{
    Event, Input, Job, Output, PushOrder, Received, Settings, Site,
};
use tensorwire::transfer::{Control, Instance, Role};

use super::said::{IDS, Random, message};

const BLOCK: usize = 1024;
const BLOCKS: usize = 8;
const MAX_REQUESTS: usize = 6;

struct Worker {
    machine: Instance,
    pool: Pool,
    table: WindowTable,
    now: Duration,
    jobs: Vec<Job>,
    received: Vec<Received>,
    orders: Vec<PushOrder>,
    writes: Vec<Writing>,
}

fn any<T>(random: &mut Random, of: &mut Vec<T>) -> Option<T> {
    let at = (!of.is_empty()).then(|| random.below(of.len()))?;
    Some(of.swap_remove(at))
}

impl Worker {
    fn take(&mut self) {
        let mut buffer = Vec::new();
        while self.machine.poll_transmit(&mut buffer).is_some() {}
        self.orders
            .extend(std::iter::from_fn(|| self.machine.poll_push()));
        while let Some(event) = self.machine.poll_event() {
            if let Event::Ready(received) = event {
                self.jobs.push(received.job().clone());
                self.received.push(received);
            }
        }
        assert!(self.machine.len() <= 2 * MAX_REQUESTS);
    }

    fn answer(&mut self, random: &mut Random) {
        let Some(job) = any(random, &mut self.jobs) else {
            return;
        };
        match random.below(4) {
            0 => drop(self.machine.fail(&job, "out of memory", self.now)),
            1 => drop(self.machine.finish(&job, self.now)),
            _ => {
                let slot = self.pool.allocate(8);
                let output = slot.map_or_else(
                    |_| Output::empty(),
                    |slot| Output::new(slot, random.below(9), Object::default()).unwrap(),
                );
                drop(self.machine.stage(&job, output, &NO_SCALARS, self.now));
            }
        }
        // Some are answered twice.
        if random.below(4) == 0 {
            self.jobs.push(job);
        }
    }

    fn push(&mut self, random: &mut Random) {
        let Some(order) = any(random, &mut self.orders) else {
            return;
        };
        let result = match random.below(3) {
            0 => Err("no such session"),
            1 => Ok(order.len as u64),
            _ => Ok(random.number()),
        };
        self.machine
            .handle_pushed(&order.job, order.slot, result, self.now);
    }

    fn happen(&mut self, random: &mut Random, slot: (u64, u64), is_long: bool) {
        match random.below(100) {
            0 => self.now = Duration::ZERO,
            1 => {
                let time = Duration::from_secs(random.below(700) as u64);
                self.now = self.now.saturating_add(time);
            }
            2 if is_long => self.now = Duration::MAX,
            3 => self.machine.handle_timeout(self.now),
            4..=15 => self.answer(random),
            16..=22 => {
                if let Some(received) = any(random, &mut self.received) {
                    thread::spawn(move || drop(received)).join().unwrap();
                }
            }
            23..=30 => self.push(random),
            31..=33 => {
                let write = self.table.begin_write(random.below(BLOCKS) * BLOCK, 1);
                self.writes.extend(write);
            }
            34..=37 => drop(any(random, &mut self.writes)),
            38..=44 => {
                let id = format!("r{}", random.below(IDS));
                let frames = [id.as_bytes(), b"work"];
                let input = self.machine.handle_frames(&frames, self.now);
                if let Ok(Input::Work { job, .. }) = input {
                    self.jobs.push(job);
                }
            }
            _ => {
                let frames = message(random, slot);
                let _ = self.machine.handle_frames(&frames, self.now);
            }
        }
    }

    /// All let go of what they have, and time passes.
    fn wind_down(&mut self) {
        self.writes.clear();
        for _ in 0..6 {
            self.received.clear();
            for order in std::mem::take(&mut self.orders) {
                let result = Err("closed");
                self.machine
                    .handle_pushed::<&str>(&order.job, order.slot, result, self.now);
            }
            self.now = self.now.saturating_add(Duration::from_secs(1000));
            self.machine.handle_timeout(self.now);
            self.take();
        }
        self.pool.reclaim();
    }
}

fn play(seed: u64) {
    let random = &mut Random::new(seed);
    let role = random.pick(Role::ALL);
    let preallocated = random.below(3) * usize::from(!role.is_first());
    let table = WindowTable::new();
    let windows = Arc::new(table.clone());
    let pool = Pool::with_windows(BLOCKS * BLOCK, BLOCK, windows).unwrap();
    // Up to the very last address.
    let base = u64::MAX - (BLOCKS * BLOCK) as u64;
    let settings = Settings::new()
        .with_preallocated(preallocated, BLOCK)
        .with_max_requests(MAX_REQUESTS);
    let site = Site::new("here", base, pool.clone(), "endpoint");
    let mut worker = Worker {
        machine: Instance::new(role, site, settings).unwrap(),
        pool,
        table,
        now: Duration::ZERO,
        jobs: Vec::new(),
        received: Vec::new(),
        orders: Vec::new(),
        writes: Vec::new(),
    };
    let mut buffer = Vec::new();
    worker.machine.poll_transmit(&mut buffer).unwrap();
    let Ok(Control::Register(register)) = Control::decode(&buffer) else {
        panic!("no registration");
    };
    let slot = register.preallocated_slots.iter().next();
    let slot = slot.map_or((0, 0), |slot| (slot.slot_id, slot.offset));
    // At the end of time no deadline can be told any more.
    let is_long = seed.is_multiple_of(8);
    for _ in 0..3000 {
        worker.happen(random, slot, is_long);
        worker.take();
    }
    worker.wind_down();
    if !is_long {
        assert!(worker.machine.is_empty(), "seed {seed}");
        // All preallocated slots are there, and open.
        let blocks = worker.pool.stats().allocations();
        assert_eq!((blocks, worker.table.len()), (preallocated, preallocated));
    }
    drop(worker.machine);
    worker.pool.reclaim();
    assert_eq!(worker.pool.stats().allocations(), 0, "seed {seed}");
}

#[test]
fn requests_end_and_no_slot_is_lost() {
    (0..120).for_each(play);
}
