//! Peers that are killed while they send.

use std::process::Child;
use std::time::{Duration, Instant};

use tensorwire::transport::{Caps, Frames, RecvFrames, SendFrames, TransportError, Wait};

use crate::alone;
use crate::{Backend, PATIENCE, Served, over_each_endpoint};

over_each_endpoint! {
    a_peer_that_is_killed_leaves_no_torn_message
}

/// How many peers are killed.
const KILLS: u64 = 25;

/// The lengths of the frames of a message, told by its number: so that a frame that is
/// missing, or of another message, is found.
fn lengths(number: u64) -> impl Iterator<Item = usize> {
    let frames = 2 + number % 4;
    (0..frames).map(move |frame| match (number + frame) % 5 {
        0 => 0,
        1 => 30,
        2 => 5000,
        3 => 70_000,
        _ => 2_000_000,
    })
}

/// The frames of message `number` of peer `peer`: all that is in them can be told.
fn fill(peer: u64, number: u64) -> Vec<Vec<u8>> {
    let mut frames = vec![[peer.to_le_bytes(), number.to_le_bytes()].concat()];
    for (frame, len) in lengths(number).enumerate() {
        frames.push(vec![(peer + number + frame as u64) as u8; len]);
    }
    frames
}

/// Checks that a message is whole, and returns whose it is and which.
fn check<M: Frames>(message: &M) -> (u64, u64) {
    let head = message.frame(0).unwrap();
    let (peer, number) = head.split_at(8);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let (peer, number) = (word(peer), word(number));
    assert_eq!(message.frames().len(), 1 + lengths(number).count());
    for (index, len) in lengths(number).enumerate() {
        let frame = message.frame(index + 1).unwrap();
        let expected = (peer + number + index as u64) as u8;
        assert_eq!(frame.len(), len, "frame {index} of {number} of {peer}");
        assert!(frame.iter().all(|&byte| byte == expected));
    }
    (peer, number)
}

fn a_peer_that_is_killed_leaves_no_torn_message<B: Backend>(endpoint: &str) {
    let mut served = Served::<B>::new(endpoint, Caps::new());
    let mut message = Default::default();
    let mut received = 0;
    for peer in 0..KILLS {
        let number = peer.to_string();
        let child = alone::spawn("killed::sender", &[B::NAME, &served.endpoint, &number]);
        let mut child = Some(Killed(child));
        // Wait until it sends; then for a time that is another for each.
        let mut next = 0;
        let mut kill_at = None;
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < PATIENCE, "nothing came from {peer}");
            if kill_at.is_some_and(|at| Instant::now() >= at) {
                child = None;
            }
            let killed = child.is_none();
            let wait = Wait::UpTo(Duration::from_millis(if killed { 50 } else { 1 }));
            match served.rx.recv_frames(&mut message, wait) {
                Ok(()) => {
                    assert_eq!(check(&message), (peer, next), "another message");
                    next += 1;
                    let delay = Duration::from_micros(700 * peer);
                    kill_at.get_or_insert_with(|| Instant::now() + delay);
                }
                Err(error) if error.kind().is_wait() && killed => break,
                Err(error) => assert!(error.kind().is_wait(), "{error}"),
            }
        }
        received += next;
        served.exchange(3);
    }
    println!("{KILLS} peers killed, {received} messages of theirs, all whole");
}

/// A process that is killed when this is dropped, by SIGKILL.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
#[ignore = "run by the tests above, in a process of its own, and killed"]
fn sender() {
    let arguments = alone::arguments();
    let [backend, endpoint, peer] = arguments.as_slice() else {
        return;
    };
    let peer = peer.parse().unwrap();
    match backend.as_str() {
        #[cfg(feature = "nng")]
        <crate::nng::Nng as Backend>::NAME => send_on::<crate::nng::Nng>(endpoint, peer),
        #[cfg(feature = "zmq")]
        <crate::zmq::Zmq as Backend>::NAME => send_on::<crate::zmq::Zmq>(endpoint, peer),
        other => panic!("no backend {other}"),
    }
}

/// Sends until it is killed.
fn send_on<B: Backend>(endpoint: &str, peer: u64) {
    let mut tx = B::connect(endpoint);
    for number in 0.. {
        let frames = fill(peer, number);
        let frames: Vec<_> = frames.iter().map(Vec::as_slice).collect();
        tx.send(&frames).unwrap();
    }
}
