//! Owners are dropped once, for builds without the conformance suite, which has this
//! check and others of them.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait};

use crate::counted::{Counted, assert_drops};
use crate::{Link, Setup, copied, over_each_link};

over_each_link! {
    owners_are_released_once_when_delivered
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
