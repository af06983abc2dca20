//! Owners that count their drops. The conformance suite has the checks of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait};

use crate::{Link, PATIENCE, Setup, copied, over_each_link};

over_each_link! {
    owners_are_released_once_when_delivered
}

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
pub(crate) fn assert_drops(drops: &AtomicUsize, expected: usize, name: &str) {
    let start = Instant::now();
    while drops.load(Ordering::SeqCst) < expected && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(5));
    assert_eq!(drops.load(Ordering::SeqCst), expected, "{name}");
}

/// Below and above what is copied.
const LENGTHS: [usize; 4] = [0, 100, 5000, 300_000];

fn parts(drops: &Arc<AtomicUsize>) -> Vec<Part<'static>> {
    let mut parts = vec![Part::from(&b"metadata"[..])];
    parts.extend(LENGTHS.map(|len| Part::owned(Counted::new(len, drops))));
    parts
}

fn owners_are_released_once_when_delivered<L: Link>() {
    let (mut tx, mut rx) = L::open(Setup::default());
    let drops = Arc::new(AtomicUsize::new(0));
    let mut list = Vec::new();
    for round in 1..=10 {
        list.append(&mut parts(&drops));
        tx.send_parts(&mut list, Wait::Configured).unwrap();
        assert!(list.is_empty());
        let received = rx.recv().unwrap();
        let lengths: Vec<usize> = copied(&received)[1..].iter().map(Vec::len).collect();
        assert_eq!(lengths, LENGTHS);
        assert!(received.frame(4).unwrap().iter().all(|&byte| byte == 0x5a));
        drop(received);
        assert_drops(&drops, LENGTHS.len() * round, L::NAME);
    }
}
