//! An owner that counts its drops, for tests that name this by its path.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// An owner that counts its drops, and may panic in them.
pub(crate) struct Counted {
    bytes: Vec<u8>,
    drops: Arc<AtomicUsize>,
    panics: bool,
}

impl Counted {
    pub(crate) fn new(len: usize, drops: &Arc<AtomicUsize>) -> Self {
        Self {
            bytes: vec![0x5a; len],
            drops: drops.clone(),
            panics: false,
        }
    }

    /// The same, and then its drop panics.
    pub(crate) fn panicking(len: usize, drops: &Arc<AtomicUsize>) -> Self {
        let mut owner = Self::new(len, drops);
        owner.panics = true;
        owner
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "scripted: an owner panics in its drop");
    }
}

/// Waits for `drops` to reach `expected`, and a little longer for more.
#[track_caller]
pub(crate) fn assert_drops(drops: &AtomicUsize, expected: usize, name: &str) {
    let start = Instant::now();
    while drops.load(Ordering::SeqCst) < expected && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(5));
    assert_eq!(drops.load(Ordering::SeqCst), expected, "{name}");
}

/// Long enough never to be reached by a test that passes.
const PATIENCE: Duration = Duration::from_secs(60);
