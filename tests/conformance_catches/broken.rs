//! A transport with one flaw: the loopback, and ends around it.

use std::collections::VecDeque;
use std::error::Error;
use std::mem;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tensorwire::transport::conformance::{Backend, Setup};
use tensorwire::transport::loopback::{Fault, Loopback, Message, Options, Script};
use tensorwire::transport::{Caps, Counters, Observed, Wait};

use crate::flaws::Flaw;
use crate::receiver::Receiver;
use crate::sender::Sender;

/// The loopback, with one flaw.
pub(crate) struct Broken {
    flaw: Flaw,
    first: Mutex<Option<Link>>,
}

/// The sending end, in the hands of both sides, so that either can be replaced.
pub(crate) type Link = Arc<Mutex<Loopback>>;

impl Broken {
    pub(crate) fn new(flaw: Flaw) -> Self {
        let first = Mutex::default();
        Self { flaw, first }
    }

    fn options(&self, setup: &Setup) -> Options {
        let mut options = Options::new()
            .with_caps(setup.caps())
            .with_high_water(setup.high_water() as usize)
            .with_recv_timeout(Some(setup.timeout()))
            .with_send_timeout(Some(setup.timeout()));
        match self.flaw {
            Flaw::DropsEachEleventh => options = options.with_script(every(11, Fault::Drop)),
            Flaw::RepeatsEach13th => options = options.with_script(every(13, Fault::Duplicate)),
            Flaw::IgnoresCaps => options = options.with_caps(Caps::new()),
            Flaw::IgnoresHighWater => options = options.with_high_water(usize::MAX),
            _ => {}
        }
        options
    }
}

/// What happens to message `step - 1`, and each `step` later, for a while.
fn every(step: u64, fault: Fault) -> Script {
    let entries: Vec<(u64, Fault)> = (1..=10).map(|n| (n * step - 1, fault)).collect();
    Script::from(entries.as_slice())
}

impl Backend for Broken {
    type Sender = Sender;
    type Receiver = Receiver;

    fn name(&self) -> &str {
        "broken"
    }

    fn open(&self, setup: &Setup) -> Result<(Sender, Receiver), Box<dyn Error + Send + Sync>> {
        let (left, right) = self.options(setup).pair();
        let link = Arc::new(Mutex::new(left));
        let mut sender = Sender {
            link: link.clone(),
            flaw: self.flaw,
            timeout: setup.timeout(),
            sent: 0,
            held: VecDeque::new(),
            poisoned: false,
        };
        let first = self.first.lock().unwrap().replace(link.clone());
        if let (Flaw::CrossesPairs, Some(first)) = (self.flaw, first) {
            sender.link = first;
        }
        let receiver = Receiver {
            right,
            link,
            flaw: self.flaw,
            timeout: setup.timeout(),
            storage: Message::default(),
            moved: thread::current().id(),
            lose_next: false,
            replay: None,
            alive: Arc::default(),
        };
        Ok((sender, receiver))
    }

    fn restart_receiver(
        &self,
        receiver: Receiver,
        setup: &Setup,
    ) -> Result<Option<Receiver>, Box<dyn Error + Send + Sync>> {
        let (left, right) = self.options(setup).pair();
        let link = receiver.link.clone();
        let old = mem::replace(&mut *link.lock().unwrap(), left);
        if self.flaw == Flaw::LosesItsPlaceOnRestart {
            // What is sent goes elsewhere from now on.
            let (elsewhere, kept) = self.options(setup).with_high_water(1 << 20).pair();
            mem::forget(mem::replace(&mut *link.lock().unwrap(), elsewhere));
            mem::forget(kept);
        }
        drop(old);
        let replay = (self.flaw == Flaw::RepeatsAfterARestart).then_some(0);
        Ok(Some(Receiver {
            right,
            link,
            flaw: self.flaw,
            timeout: setup.timeout(),
            storage: Message::default(),
            moved: thread::current().id(),
            lose_next: false,
            replay,
            alive: Arc::default(),
        }))
    }

    fn restart_sender(
        &self,
        sender: Sender,
        _: &Setup,
    ) -> Result<Option<Sender>, Box<dyn Error + Send + Sync>> {
        if self.flaw == Flaw::DropsTheFirstAfterARestart {
            let mut link = sender.link.lock().unwrap();
            link.script([(10, Fault::Drop)]);
        }
        Ok(Some(sender))
    }

    fn sender_counters(&self, sender: &Sender) -> Option<Counters> {
        let mut counters = sender.link.lock().unwrap().counters();
        if self.flaw == Flaw::MiscountsBytes {
            counters.bytes_sent += 1;
        }
        Some(counters)
    }

    fn receiver_counters(&self, receiver: &Receiver) -> Option<Counters> {
        Some(receiver.right.counters())
    }
}

/// How long a call with this `wait` may take.
pub(crate) fn longest(wait: Wait, configured: Duration) -> Duration {
    match wait {
        Wait::Configured => configured,
        Wait::Never => Duration::ZERO,
        Wait::UpTo(longest) => longest,
        _ => Duration::MAX,
    }
}
