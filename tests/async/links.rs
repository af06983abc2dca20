//! The links that the tests run over.

#[cfg(feature = "iceoryx2")]
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(feature = "iceoryx2")]
use tensorwire::transport::iceoryx2;
use tensorwire::transport::loopback;

use crate::Link;

pub(crate) struct InMemory;

impl Link for InMemory {
    type Tx = loopback::Loopback;
    type Rx = loopback::Loopback;

    const NAME: &'static str = "loopback";

    fn open(high_water: u32) -> (Self::Tx, Self::Rx) {
        let options = loopback::Options::new().with_high_water(high_water as usize);
        options.pair()
    }
}

#[cfg(feature = "iceoryx2")]
pub(crate) struct SharedMemory;

#[cfg(feature = "iceoryx2")]
impl Link for SharedMemory {
    type Tx = iceoryx2::Sender;
    type Rx = iceoryx2::Receiver;

    const NAME: &'static str = "iceoryx2";

    fn open(high_water: u32) -> (Self::Tx, Self::Rx) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("async/{}/{number}", std::process::id());
        let channel = iceoryx2::Builder::new(&name).depth(high_water as usize);
        // Known to the receiver from the first.
        let sender = channel.clone().sender().unwrap();
        (sender, channel.receiver().unwrap())
    }
}

#[cfg(feature = "zmq")]
pub(crate) mod zmq {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tensorwire::transport::zmq::{Context, Dealer, Pull, Push, Router, Socket};

    use crate::Link;

    fn push_pull(endpoint: &str, high_water: u32) -> (Socket<Push>, Socket<Pull>) {
        let context = Context::new();
        let pull = context.pull().recv_high_water(high_water);
        let pull = pull.bind(endpoint).unwrap();
        let push = context.push().send_high_water(high_water);
        let push = push.connect(pull.endpoint()).unwrap();
        (push, pull)
    }

    pub(crate) struct Inproc;

    impl Link for Inproc {
        type Tx = Socket<Push>;
        type Rx = Socket<Pull>;

        const NAME: &'static str = "zmq inproc";

        fn open(high_water: u32) -> (Self::Tx, Self::Rx) {
            push_pull("inproc://async", high_water)
        }
    }

    pub(crate) struct Ipc;

    impl Link for Ipc {
        type Tx = Socket<Push>;
        type Rx = Socket<Pull>;

        const NAME: &'static str = "zmq ipc";

        fn open(high_water: u32) -> (Self::Tx, Self::Rx) {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            // An abstract name, of which no file is left.
            let endpoint = format!("ipc://@tensorwire-async-{}-{number}", std::process::id());
            push_pull(&endpoint, high_water)
        }
    }

    pub(crate) struct Tcp;

    impl Link for Tcp {
        type Tx = Socket<Push>;
        type Rx = Socket<Pull>;

        const NAME: &'static str = "zmq tcp";

        fn open(high_water: u32) -> (Self::Tx, Self::Rx) {
            push_pull("tcp://127.0.0.1:*", high_water)
        }
    }

    pub(crate) struct DealerRouter;

    impl Link for DealerRouter {
        type Tx = Socket<Dealer>;
        type Rx = Socket<Router>;

        const NAME: &'static str = "zmq dealer";

        fn open(high_water: u32) -> (Self::Tx, Self::Rx) {
            let context = Context::new();
            let router = context.router().recv_high_water(high_water);
            let router = router.bind("tcp://127.0.0.1:*").unwrap();
            let dealer = context.dealer().send_high_water(high_water);
            let dealer = dealer.connect(router.endpoint()).unwrap();
            (dealer, router)
        }
    }
}

/// Runs a generic test over each link.
macro_rules! over_each_link {
    ($($test:ident)*) => {$(
        mod $test {
            #[test]
            fn over_loopback() {
                super::$test::<crate::links::InMemory>();
            }

            #[cfg(feature = "iceoryx2")]
            #[test]
            fn over_iceoryx2() {
                super::$test::<crate::links::SharedMemory>();
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_inproc() {
                super::$test::<crate::links::zmq::Inproc>();
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_ipc() {
                super::$test::<crate::links::zmq::Ipc>();
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_tcp() {
                super::$test::<crate::links::zmq::Tcp>();
            }

            #[cfg(feature = "zmq")]
            #[test]
            fn over_zmq_dealer() {
                super::$test::<crate::links::zmq::DealerRouter>();
            }
        }
    )*};
}
pub(crate) use over_each_link;
