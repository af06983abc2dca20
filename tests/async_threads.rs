//! Waiting as futures takes no thread for each transport.
//!
//! A process of its own: other tests start and end threads all the time.

#![cfg(all(feature = "tokio", target_os = "linux"))]

use std::fs;
use std::time::Duration;

use tensorwire::transport::tokio::{Async, Readiness};
use tensorwire::transport::{RecvFrames, Wait, loopback};

/// How many threads this process has.
fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

async fn assert_no_thread_each<T: RecvFrames + Readiness>(transports: Vec<T>) {
    let before = threads();
    let mut waiting: Vec<_> = transports
        .into_iter()
        .map(|transport| Async::new(transport).unwrap())
        .collect();
    let mut message = T::Message::default();
    for transport in &mut waiting {
        let wait = Wait::UpTo(Duration::from_millis(5));
        assert!(transport.recv_frames(&mut message, wait).await.is_err());
    }
    assert_eq!(threads(), before);
}

#[tokio::test]
async fn waiting_takes_no_thread_for_each_transport() {
    let (left, right): (Vec<_>, Vec<_>) = (0..20).map(|_| loopback::pair()).unzip();
    assert_no_thread_each(right).await;
    drop(left);
    #[cfg(feature = "iceoryx2")]
    {
        let receiver = |number| {
            let name = format!("async threads/{}/{number}", std::process::id());
            let channel = tensorwire::transport::iceoryx2::Builder::new(&name);
            channel.receiver().unwrap()
        };
        assert_no_thread_each((0..20).map(receiver).collect()).await;
    }
    #[cfg(feature = "zmq")]
    {
        let context = tensorwire::transport::zmq::Context::new();
        let socket = |_| context.pull().bind("tcp://127.0.0.1:*").unwrap();
        // The first socket starts the context's own threads.
        let first = socket(0);
        assert_no_thread_each((0..20).map(socket).collect()).await;
        drop(first);
    }
}
