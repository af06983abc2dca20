//! A process at the other end.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// The process, which does not outlive this.
pub(crate) struct Peer(pub(crate) Child);

impl Peer {
    /// Waits until it has ended, and asserts that it ended well.
    pub(crate) fn finish(&mut self, patience: Duration) {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < patience, "the peer does not end");
            thread::sleep(Duration::from_millis(5));
        };
        assert!(status.success(), "{status}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
