//! Peers that say nothing, or garbage, or too much, or die in the middle of a message.
//!
//! All the while a good peer is served, and memory is bounded. Each test runs over each
//! backend and endpoint of the table at the foot of this file; a further backend is an
//! implementation of [`Backend`] and rows in the table.

#![cfg(all(any(feature = "nng", feature = "zmq"), unix))]

#[path = "../common/alone.rs"]
mod alone;
mod caps;
mod garbage;
mod killed;
#[cfg(feature = "nng")]
mod nng;
mod raw;
#[cfg(feature = "zmq")]
mod zmq;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tensorwire::transport::{Caps, Frames, Observed, RecvFrames, SendFrames, TransportError};

use crate::raw::Raw;

/// A transport as these tests see it: one end is bound, any number connect to it.
pub(crate) trait Backend {
    type Tx: SendFrames;
    type Rx: RecvFrames + Observed;

    /// What it is called in the arguments of a process.
    const NAME: &'static str;

    /// What its peers say first: thrown at the others.
    const GREETING: &'static [u8];

    /// Binds a receiver; returns it with the endpoint to connect to.
    fn bind(endpoint: &str, caps: Caps) -> (Self::Rx, String);

    fn connect(endpoint: &str) -> Self::Tx;

    /// Makes a peer that sends, and that they take messages from, of a stream.
    fn shake_hands(stream: &mut Raw);

    /// What starts a frame, or body, of `len` bytes that is a message by itself.
    fn announce(endpoint: &str, len: u64) -> Vec<u8>;

    /// Further starts of messages that are too large, and what they are called.
    const ANNOUNCED: &'static [(&'static str, &'static [u8])] = &[];

    /// Called before a stream ends that was not good for anything.
    fn before_the_end(_stream: &mut Raw) {}

    /// Whether it takes bytes for a message that come without a greeting.
    const HEARS_NOISE: bool = false;

    /// Whether a frame over its cap is an error here, and not only a connection that ends.
    const TELLS_OF_LARGE_FRAMES: bool;

    /// Whether a connection counts as one before a greeting came.
    const COUNTS_STRANGERS: bool;

    /// How many connections it takes at once without waiting for one to end.
    const AT_ONCE: usize = 100;
}

/// A good peer, and the receiver that it and all the bad ones are connected to.
pub(crate) struct Served<B: Backend> {
    pub(crate) rx: B::Rx,
    pub(crate) endpoint: String,
    tx: B::Tx,
    message: <B::Rx as RecvFrames>::Message,
    next: u64,
    /// Messages that came from somebody else.
    pub(crate) strangers: u64,
    /// Messages of somebody else that were over a cap.
    pub(crate) refused: u64,
}

impl<B: Backend> Served<B> {
    pub(crate) fn new(endpoint: &str, caps: Caps) -> Self {
        let (rx, endpoint) = B::bind(endpoint, caps);
        let tx = B::connect(&endpoint);
        let mut served = Self {
            rx,
            endpoint,
            tx,
            message: Default::default(),
            next: 0,
            strangers: 0,
            refused: 0,
        };
        served.exchange(10);
        served
    }

    /// Sends so many numbered messages, each of which arrives whole and in order.
    #[track_caller]
    pub(crate) fn exchange(&mut self, messages: u64) {
        for _ in 0..messages {
            let number = self.next.to_le_bytes();
            self.tx.send(&[&number, b"", &[7; 3000], &number]).unwrap();
            loop {
                match self.rx.recv_into(&mut self.message) {
                    Err(error) if B::TELLS_OF_LARGE_FRAMES && error.refused().is_some() => {
                        self.refused += 1;
                        continue;
                    }
                    result => result.unwrap(),
                }
                let frames = self.message.frames();
                if B::HEARS_NOISE && frames.first().map(AsRef::as_ref) != Some(&number) {
                    self.strangers += 1;
                    continue;
                }
                assert_eq!(frames.len(), 4);
                assert_eq!(frames[0].as_ref(), number);
                assert_eq!(frames[2].as_ref(), [7; 3000]);
                assert_eq!(frames[3].as_ref(), number);
                break;
            }
            self.message.clear();
            self.next += 1;
        }
    }
}

/// Has the memory of the process to itself: each test takes it first.
pub(crate) fn alone_in_the_process() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The memory of this process that is resident, or 0 where the system does not tell.
pub(crate) fn resident() -> u64 {
    alone::memory().map_or(0, |(resident, _)| resident)
}

/// Checks that memory did not grow by more than `bound` bytes since `before`.
#[track_caller]
pub(crate) fn assert_bounded(before: u64, bound: u64, what: &str) {
    let grown = resident().saturating_sub(before);
    println!("{what}: resident memory grew by {grown} bytes");
    assert!(grown <= bound, "{what}: {grown} bytes, at most {bound}");
}

/// Long enough never to be reached by a test that passes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The table: which backend is met over which endpoints. `FILE` stands for a file of
/// the test's own.
macro_rules! over_each_endpoint {
    ($($test:ident)*) => {$(
        mod $test {
            #[cfg(feature = "nng")]
            #[test]
            fn over_nng_ipc() {
                crate::run("ipc://FILE", super::$test::<crate::nng::Nng>);
            }

            #[cfg(feature = "nng")]
            #[test]
            fn over_nng_tcp() {
                crate::run("tcp://127.0.0.1:0", super::$test::<crate::nng::Nng>);
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_ipc() {
                crate::run("ipc://FILE", super::$test::<crate::zmq::Zmq>);
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_tcp() {
                crate::run("tcp://127.0.0.1:*", super::$test::<crate::zmq::Zmq>);
            }
        }
    )*};
}
pub(crate) use over_each_endpoint;

/// Runs a test over an endpoint of the table.
pub(crate) fn run(endpoint: &str, test: fn(&str)) {
    let _alone = alone_in_the_process();
    let file = alone::SocketFile::new();
    test(&endpoint.replace("ipc://FILE", &file.endpoint()));
}
