//! Loopback, and loopback whose frames lie at odd addresses.

use std::error::Error;

use tensorwire::transport::conformance::{Backend, Setup};
use tensorwire::transport::loopback::{Loopback, Options};
use tensorwire::transport::{Counters, Observed};

use crate::{Planned, plan};

pub(crate) fn backends() -> Vec<Planned> {
    let plain = || InMemory {
        name: "loopback",
        shift: None,
    };
    let shifted = InMemory {
        name: "loopback, shifted",
        shift: Some(5),
    };
    vec![
        plan(plain()),
        plan(shifted),
        #[cfg(feature = "tokio")]
        crate::awaited::plan_awaited(plain()),
    ]
}

struct InMemory {
    name: &'static str,
    shift: Option<usize>,
}

impl Backend for InMemory {
    type Sender = Loopback;
    type Receiver = Loopback;

    fn name(&self) -> &str {
        self.name
    }

    fn open(&self, setup: &Setup) -> Result<(Loopback, Loopback), Box<dyn Error + Send + Sync>> {
        let mut options = Options::new()
            .with_caps(setup.caps())
            .with_high_water(usize::try_from(setup.high_water())?)
            .with_recv_timeout(Some(setup.timeout()))
            .with_send_timeout(Some(setup.timeout()));
        if let Some(shift) = self.shift {
            options = options.with_shift(shift);
        }
        Ok(options.pair())
    }

    fn sender_counters(&self, sender: &Loopback) -> Option<Counters> {
        Some(sender.counters())
    }

    fn receiver_counters(&self, receiver: &Loopback) -> Option<Counters> {
        Some(receiver.counters())
    }
}
