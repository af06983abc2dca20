//! What is special about shared memory.

mod channels;
mod crashes;
mod hostile;
mod meeting;

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use tensorwire::transport::iceoryx2::{Builder, MAX_DEPTH, Receiver, Sender};

use crate::{Link, Setup};

/// One sender and one receiver.
pub(crate) struct SharedMemory;

impl Link for SharedMemory {
    type Tx = Sender;
    type Rx = Receiver;

    const NAME: &'static str = "iceoryx2";

    fn open(setup: Setup) -> (Sender, Receiver) {
        let builder = Builder::new(&unique_name())
            .caps(setup.caps)
            .depth((setup.high_water as usize).min(MAX_DEPTH))
            .message_bytes(8 << 20)
            .send_timeout(Some(setup.timeout))
            .recv_timeout(Some(setup.timeout));
        let sender = builder.clone().sender().unwrap();
        (sender, builder.receiver().unwrap())
    }
}

/// A channel that no other test knows, nor another run.
pub(crate) fn unique_name() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("test/{}/{number}", process::id())
}
