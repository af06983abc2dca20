//! The links of NNG, for the tests that run over all.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::nng::{Builder, Context, Kind, Pair0, Pair1, Pull, Push, Socket};

use crate::{Link, PATIENCE, Setup};

pub(crate) struct Inproc;
pub(crate) struct Ipc;
pub(crate) struct Tcp;
pub(crate) struct PairTcp;
pub(crate) struct Pair1Inproc;

/// A builder with the options of `setup`.
pub(super) fn set_up<K: Kind>(builder: Builder<K>, setup: Setup) -> Builder<K> {
    builder
        .caps(setup.caps)
        .recv_high_water(setup.high_water)
        .send_high_water(setup.high_water)
        .recv_timeout(Some(setup.timeout))
        .send_timeout(Some(setup.timeout))
        .linger(setup.linger)
}

pub(super) fn push_pull(endpoint: &str, setup: Setup) -> (Socket<Push>, Socket<Pull>) {
    let context = Context::new();
    let pull = set_up(context.pull(), setup).listen(endpoint).unwrap();
    let push = set_up(context.push(), setup).dial(pull.endpoint()).unwrap();
    (push, pull)
}

/// Waits until `condition` holds.
pub(super) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// An endpoint that is nobody else's: the names are the process's.
pub(super) fn inproc() -> String {
    format!("inproc://tensorwire-{}", number())
}

/// An endpoint that is nobody else's. NNG removes its file.
pub(super) fn ipc() -> String {
    let name = format!("tensorwire-nng-{}-{}", std::process::id(), number());
    format!("ipc://{}", std::env::temp_dir().join(name).display())
}

fn number() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

impl Link for Inproc {
    type Tx = Socket<Push>;
    type Rx = Socket<Pull>;

    const NAME: &'static str = "nng push/pull over inproc";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        push_pull(&inproc(), setup)
    }
}

impl Link for Ipc {
    type Tx = Socket<Push>;
    type Rx = Socket<Pull>;

    const NAME: &'static str = "nng push/pull over ipc";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        push_pull(&ipc(), setup)
    }
}

impl Link for Tcp {
    type Tx = Socket<Push>;
    type Rx = Socket<Pull>;

    const NAME: &'static str = "nng push/pull over tcp";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        push_pull("tcp://127.0.0.1:0", setup)
    }
}

impl Link for PairTcp {
    type Tx = Socket<Pair0>;
    type Rx = Socket<Pair0>;

    const NAME: &'static str = "nng pair0 over tcp";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        let context = Context::new();
        let listening = set_up(context.pair0(), setup).listen("tcp://127.0.0.1:0");
        let listening = listening.unwrap();
        let dialing = set_up(context.pair0(), setup).dial(listening.endpoint());
        (dialing.unwrap(), listening)
    }
}

impl Link for Pair1Inproc {
    type Tx = Socket<Pair1>;
    type Rx = Socket<Pair1>;

    const NAME: &'static str = "nng pair1 over inproc";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        let context = Context::new();
        let listening = set_up(context.pair1(), setup).listen(&inproc()).unwrap();
        let dialing = set_up(context.pair1(), setup).dial(listening.endpoint());
        (dialing.unwrap(), listening)
    }
}
