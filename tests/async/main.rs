//! The transports as futures: the same contract, and nothing lost when one is dropped.

mod cancel;
mod links;
mod waiting;

use std::future::Future;
use std::time::Duration;

use tensorwire::transport::tokio::{Async, Readiness};
use tensorwire::transport::{Frames, RecvFrames, SendFrames};

/// Longer than anything here takes: reached, something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// One direction of a transport, for tests that run over all.
pub(crate) trait Link {
    type Tx: SendFrames + Readiness + Send + 'static;
    type Rx: RecvFrames<Message: Send> + Readiness + Send + 'static;

    const NAME: &'static str;

    /// Opens both ends, where `high_water` messages may wait.
    fn open(high_water: u32) -> (Self::Tx, Self::Rx);
}

/// Opens both ends as futures.
pub(crate) fn open<L: Link>(high_water: u32) -> (Async<L::Tx>, Async<L::Rx>) {
    let (tx, rx) = L::open(high_water);
    (Async::new(tx).unwrap(), Async::new(rx).unwrap())
}

/// Runs `future` on a runtime of its own; fails if it hangs.
pub(crate) fn run<F: Future>(threads: usize, future: F) -> F::Output {
    let runtime = match threads {
        0 => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build(),
        threads => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build(),
    };
    let limited = async { tokio::time::timeout(PATIENCE, future).await };
    runtime.unwrap().block_on(limited).expect("it hangs")
}

/// The number that a message begins with.
pub(crate) fn number<M: Frames>(message: &M) -> u32 {
    assert_eq!(message.frames().len(), 2);
    let number = message.frame(0).unwrap();
    assert_eq!(message.frame(1).unwrap(), payload(number[0]));
    u32::from_le_bytes(number.try_into().unwrap())
}

/// The second frame of the messages whose number ends in `seed`.
pub(crate) fn payload(seed: u8) -> Vec<u8> {
    vec![seed; usize::from(seed) * 40]
}
