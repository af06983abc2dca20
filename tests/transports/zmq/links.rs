//! The links of ZeroMQ, for the tests that run over all.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use tensorwire::transport::zmq::{Context, Dealer, Pair, Pull, Push, Router, Socket};
use tensorwire::transport::{RecvFrames, Wait};

use crate::{Link, Setup};

pub(crate) struct Inproc;
pub(crate) struct Ipc;
pub(crate) struct Tcp;
pub(crate) struct PairTcp;
pub(crate) struct DealerRouter;

pub(super) fn push_pull(endpoint: &str, setup: Setup) -> (Socket<Push>, Socket<Pull>) {
    let context = Context::new();
    let pull = context
        .pull()
        .caps(setup.caps)
        .recv_high_water(setup.high_water)
        .recv_timeout(Some(setup.timeout))
        .bind(endpoint)
        .unwrap();
    let push = context
        .push()
        .send_high_water(setup.high_water)
        .send_timeout(Some(setup.timeout))
        .linger(setup.linger)
        .connect(pull.endpoint())
        .unwrap();
    (push, pull)
}

impl Link for Inproc {
    type Tx = Socket<Push>;
    type Rx = Socket<Pull>;

    const NAME: &'static str = "zmq push/pull over inproc";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        push_pull("inproc://link", setup)
    }
}

impl Link for Ipc {
    type Tx = Socket<Push>;
    type Rx = WithFile<Socket<Pull>>;

    const NAME: &'static str = "zmq push/pull over ipc";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        let file = SocketFile::new();
        let (push, socket) = push_pull(&file.endpoint(), setup);
        (
            push,
            WithFile {
                socket,
                _file: file,
            },
        )
    }
}

impl Link for Tcp {
    type Tx = Socket<Push>;
    type Rx = Socket<Pull>;

    const NAME: &'static str = "zmq push/pull over tcp";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        push_pull("tcp://127.0.0.1:*", setup)
    }
}

impl Link for PairTcp {
    type Tx = Socket<Pair>;
    type Rx = Socket<Pair>;

    const NAME: &'static str = "zmq pair over tcp";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        let context = Context::new();
        let builder = || {
            let builder = context.pair().caps(setup.caps);
            builder
                .recv_high_water(setup.high_water)
                .send_high_water(setup.high_water)
                .recv_timeout(Some(setup.timeout))
                .send_timeout(Some(setup.timeout))
                .linger(setup.linger)
        };
        let bound = builder().bind("tcp://127.0.0.1:*").unwrap();
        let connecting = builder().connect(bound.endpoint()).unwrap();
        (connecting, bound)
    }
}

impl Link for DealerRouter {
    type Tx = Socket<Dealer>;
    type Rx = Socket<Router>;

    const NAME: &'static str = "zmq dealer/router over tcp";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        let context = Context::new();
        let router = context
            .router()
            .caps(setup.caps)
            .recv_high_water(setup.high_water)
            .recv_timeout(Some(setup.timeout))
            .bind("tcp://127.0.0.1:*")
            .unwrap();
        let dealer = context
            .dealer()
            .send_high_water(setup.high_water)
            .send_timeout(Some(setup.timeout))
            .linger(setup.linger)
            .connect(router.endpoint())
            .unwrap();
        (dealer, router)
    }
}

/// A file for an endpoint, which libzmq leaves behind: removed in the end, also
/// of a test that fails.
pub(crate) struct SocketFile(PathBuf);

impl SocketFile {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tensorwire-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub(super) fn endpoint(&self) -> String {
        format!("ipc://{}", self.0.display())
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It need not be there.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A socket that is bound to a file.
pub(crate) struct WithFile<S> {
    socket: S,
    _file: SocketFile,
}

impl<S: RecvFrames> RecvFrames for WithFile<S> {
    type Message = S::Message;
    type RecvError = S::RecvError;

    fn recv_frames(&mut self, message: &mut S::Message, wait: Wait) -> Result<(), S::RecvError> {
        self.socket.recv_frames(message, wait)
    }
}
