//! The data plane over messages: what arrives, what does not, and what the pusher is told.

#![cfg(feature = "std")]

#[path = "../common/counting.rs"]
mod counting;
mod faults;
mod hostile;
mod limits;
mod pushes;
mod written;
#[cfg(feature = "zmq")]
mod zmq;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tensorwire::plane::messages::{Adder, Error, Inlet, Links, Plane};
use tensorwire::plane::{Completion, DataPlane, PushId, Region, RegionOptions, Transfer};
use tensorwire::transfer::pool::Slot;
use tensorwire::transport::loopback::{self, Loopback, Options, Script};

/// Connects by a pair of ends, whose far one is given to an inlet.
type Connect = Box<dyn FnMut(&str) -> Result<Loopback, loopback::Error> + Send>;

/// The scripts of one connection: for pushes, for answers.
type Scripts = (Script, Script);

/// A receiver and a sender in one process, who take turns.
struct World {
    receiver: Plane<Connect>,
    received: Region,
    inlet: Inlet<Links<Loopback>>,
    adder: Adder<Loopback>,
    sender: Plane<Connect>,
    region: Region,
}

impl World {
    fn new() -> Self {
        Self::scripted(Options::new(), [])
    }

    /// The first connections that are made have these scripts.
    fn scripted(options: Options, scripts: impl IntoIterator<Item = Scripts>) -> Self {
        let listen = Links::new();
        let adder = listen.adder();
        let mut receiver = Plane::new(SESSION, nobody());
        let received = receiver.register(REGION).unwrap();
        let inlet = receiver.inlet(listen);
        let connect = connect(adder.clone(), options, scripts);
        let mut sender = Plane::new("sender", connect);
        let region = sender.register(REGION).unwrap();
        Self {
            receiver,
            received,
            inlet,
            adder,
            sender,
            region,
        }
    }

    /// A slot of the sender with `fill` in all its bytes.
    fn slot(&self, fill: u8) -> Slot {
        let mut slot = self.region.pool().allocate(BLOCK).unwrap();
        self.region.bytes_mut(&mut slot).unwrap().fill(fill);
        slot
    }

    /// Pushes the first `len` bytes of a slot filled with `fill` to `address`.
    fn push(&mut self, fill: u8, len: usize, address: u64) -> PushId {
        let mut transfer = Transfer::new(self.slot(fill), SESSION);
        transfer.add_piece(0..len, address).unwrap();
        self.sender.push(transfer).unwrap()
    }

    /// Lets the inlet take all that is there, and returns how many pushes were written.
    fn take_all(&mut self) -> usize {
        let mut written = 0;
        while let Some(taken) = self.inlet.poll() {
            written += usize::from(taken.is_ok());
        }
        written
    }

    /// Ends a push, at a time when those without an answer are given up.
    fn end(&mut self) -> Option<Completion<Error>> {
        self.sender.poll_completion_at(later())
    }

    fn address(&self, offset: usize) -> u64 {
        self.received.address_of(offset).unwrap()
    }
}

fn nobody() -> Connect {
    Box::new(|_: &str| Err(loopback::Error::Closed))
}

fn connect(
    adder: Adder<Loopback>,
    options: Options,
    scripts: impl IntoIterator<Item = Scripts>,
) -> Connect {
    let scripts: VecDeque<Scripts> = scripts.into_iter().collect();
    let scripts = Arc::new(Mutex::new(scripts));
    Box::new(move |_: &str| {
        let (mut near, mut far) = options.clone().pair();
        if let Some((pushes, answers)) = scripts.lock().unwrap().pop_front() {
            near.script(pushes);
            far.script(answers);
        }
        adder.add(far);
        Ok(near)
    })
}

/// When every push that waits for an answer is given up.
fn later() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

/// Blocks of 4 KiB, 16 of them.
const REGION: RegionOptions = RegionOptions::new(16 * BLOCK).with_min_block(BLOCK);

const BLOCK: usize = 4096;

const SESSION: &str = "receiver";
