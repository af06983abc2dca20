//! What every transport promises, run over each of them.

#![cfg(feature = "std")]

mod contract;
#[path = "../common/counted.rs"]
mod counted;
mod faults;
#[cfg(feature = "iceoryx2")]
mod iceoryx2;
#[cfg(feature = "nng")]
mod nng;
mod owned;
mod signals;
#[cfg(feature = "zmq")]
mod zmq;

use std::time::Duration;

use tensorwire::transport::{Caps, Frames, RecvFrames, SendFrames, loopback};

/// How a link is to be made.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub caps: Caps,
    pub high_water: u32,
    /// For those that have any.
    #[cfg_attr(not(any(feature = "nng", feature = "zmq")), expect(dead_code))]
    pub linger: Duration,
    pub timeout: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            caps: Caps::new(),
            high_water: 1000,
            linger: PATIENCE,
            timeout: PATIENCE,
        }
    }
}

/// Long enough never to be reached by a test that passes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A way to make one direction of a transport, for tests that run over all.
pub(crate) trait Link {
    type Tx: SendFrames + Send + 'static;
    type Rx: RecvFrames + Send + 'static;

    const NAME: &'static str;

    fn open(setup: Setup) -> (Self::Tx, Self::Rx);
}

pub(crate) struct InMemory;

impl Link for InMemory {
    type Tx = loopback::Loopback;
    type Rx = loopback::Loopback;

    const NAME: &'static str = "loopback";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        loopback::Options::new()
            .with_caps(setup.caps)
            .with_high_water(setup.high_water as usize)
            .with_send_timeout(Some(setup.timeout))
            .with_recv_timeout(Some(setup.timeout))
            .pair()
    }
}

/// Loopback whose frames lie at odd addresses.
pub(crate) struct Shifted;

impl Link for Shifted {
    type Tx = loopback::Loopback;
    type Rx = loopback::Loopback;

    const NAME: &'static str = "loopback, shifted";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        loopback::Options::new()
            .with_caps(setup.caps)
            .with_high_water(setup.high_water as usize)
            .with_send_timeout(Some(setup.timeout))
            .with_recv_timeout(Some(setup.timeout))
            .with_shift(5)
            .pair()
    }
}

/// Runs a generic test over each link.
macro_rules! over_each_link {
    ($($test:ident)*) => {$(
        mod $test {
            #[test]
            fn over_loopback() {
                super::$test::<crate::InMemory>();
            }

            #[test]
            fn over_loopback_shifted() {
                super::$test::<crate::Shifted>();
            }

            #[cfg(feature = "iceoryx2")]
            #[test]
            fn over_iceoryx2() {
                super::$test::<crate::iceoryx2::SharedMemory>();
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_inproc() {
                super::$test::<crate::zmq::Inproc>();
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_ipc() {
                super::$test::<crate::zmq::Ipc>();
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_tcp() {
                super::$test::<crate::zmq::Tcp>();
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_pair() {
                super::$test::<crate::zmq::PairTcp>();
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_dealer() {
                super::$test::<crate::zmq::DealerRouter>();
            }

            #[cfg(feature = "nng")]
            #[test]
            fn over_nng_inproc() {
                super::$test::<crate::nng::Inproc>();
            }

            #[cfg(feature = "nng")]
            #[test]
            fn over_nng_ipc() {
                super::$test::<crate::nng::Ipc>();
            }

            #[cfg(feature = "nng")]
            #[test]
            fn over_nng_tcp() {
                super::$test::<crate::nng::Tcp>();
            }

            #[cfg(feature = "nng")]
            #[test]
            fn over_nng_pair0() {
                super::$test::<crate::nng::PairTcp>();
            }

            #[cfg(feature = "nng")]
            #[test]
            fn over_nng_pair1() {
                super::$test::<crate::nng::Pair1Inproc>();
            }
        }
    )*};
}
pub(crate) use over_each_link;

/// The frames of a message, copied out.
pub(crate) fn copied<M: Frames>(message: &M) -> Vec<Vec<u8>> {
    let frames = message.frames().iter();
    frames.map(|frame| frame.as_ref().to_vec()).collect()
}

/// A frame of `len` bytes that tell which frame of which message it is.
pub(crate) fn pattern(message: usize, frame: usize, len: usize) -> Vec<u8> {
    let seed = message.wrapping_mul(31).wrapping_add(frame.wrapping_mul(7));
    (0..len).map(|index| (seed + index) as u8).collect()
}
