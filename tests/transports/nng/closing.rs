//! Closing: what was sent arrives, and nobody waits without a reason.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::nng::{Context, Error, Pull, Socket};
use tensorwire::transport::{Frames, Observed, RecvFrames, SendFrames};

use super::links::{inproc, ipc, push_pull, set_up, until};
use crate::Setup;

fn endpoints() -> [String; 3] {
    [inproc(), ipc(), "tcp://127.0.0.1:0".into()]
}

/// Long enough for a machine that is busy, and far less than the linger.
const SOON: Duration = Duration::from_secs(10);

fn number_of(message: &impl Frames) -> u32 {
    u32::from_le_bytes(message.frame(0).unwrap().try_into().unwrap())
}

#[test]
fn what_was_sent_last_arrives_whatever_its_size() {
    for endpoint in endpoints() {
        for round in 0..30 {
            let (mut push, mut pull) = push_pull(&endpoint, Setup::default());
            let tensor = vec![round as u8; [1, 5000, 3 << 20][round % 3]];
            for number in 0..4_u32 {
                push.send(&[&number.to_le_bytes(), &tensor]).unwrap();
            }
            drop(push);
            for number in 0..4 {
                let message = pull.recv().unwrap();
                assert_eq!(number_of(&message), number, "{endpoint} {round}");
                assert_eq!(message.frame(1), Some(&tensor[..]));
            }
        }
    }
}

#[test]
fn what_was_sent_to_several_peers_arrives() {
    for listen in endpoints() {
        let context = Context::new();
        let push = set_up(context.push(), Setup::default()).listen(&listen);
        let mut push = push.unwrap();
        let pull = || {
            let pull = set_up(context.pull(), Setup::default());
            pull.dial(push.endpoint()).unwrap()
        };
        let pulls: Vec<_> = (0..3).map(|_| pull()).collect();
        let tensor = vec![0_u8; 1 << 20];
        for number in 0..60_u32 {
            push.send(&[&number.to_le_bytes(), &tensor]).unwrap();
        }
        drop(push);
        let (received, start) = (AtomicU32::new(0), Instant::now());
        let receive = |mut pull: Socket<Pull>| {
            let mut numbers = Vec::new();
            while received.load(Ordering::Relaxed) < 60 && start.elapsed() < SOON {
                match pull.recv_frames_within(Duration::from_millis(10)) {
                    Ok(message) => {
                        numbers.push(number_of(&message));
                        received.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => assert_eq!(error, Error::TimedOut),
                }
            }
            numbers
        };
        let mut numbers: Vec<_> = thread::scope(|scope| {
            let readers = pulls.into_iter();
            let readers: Vec<_> = readers.map(|pull| scope.spawn(|| receive(pull))).collect();
            let numbers = readers.into_iter().map(|reader| reader.join().unwrap());
            numbers.flatten().collect()
        });
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..60), "{listen}");
    }
}

/// Receiving with a time, into a new message.
trait RecvWithin: RecvFrames {
    fn recv_frames_within(&mut self, time: Duration) -> Result<Self::Message, Self::RecvError> {
        let mut message = Self::Message::default();
        self.recv_frames(&mut message, tensorwire::transport::Wait::UpTo(time))?;
        Ok(message)
    }
}

impl<T: RecvFrames> RecvWithin for T {}

#[test]
fn a_receiver_that_comes_late_still_gets_what_a_dropped_sender_left() {
    for endpoint in [inproc(), ipc()] {
        let context = Context::new();
        let push = set_up(context.push(), Setup::default());
        let mut push = push.dial(&endpoint).unwrap();
        push.send(&[b"last words"]).unwrap();
        drop(push);
        let pull = set_up(context.pull(), Setup::default());
        let mut pull = pull.listen(&endpoint).unwrap();
        assert_eq!(pull.recv().unwrap().frame(0), Some(&b"last words"[..]));
    }
}

#[test]
fn what_is_sent_beside_a_socket_with_several_endpoints_arrives() {
    let context = Context::new();
    let endpoint = inproc();
    let pull = set_up(context.pull(), Setup::default());
    let mut pull = pull.listen(&endpoint).unwrap();
    let push = || {
        let push = set_up(context.push(), Setup::default());
        push.dial(&endpoint).unwrap()
    };
    // What it sends is taken, and it does not know from which endpoint.
    let mut other = push();
    other.dial("tcp://127.0.0.1:9").unwrap();
    for _ in 0..20 {
        other.send(&[b"from the other"]).unwrap();
        pull.recv().unwrap();
    }
    other.close(Duration::ZERO);
    let mut push = push();
    for number in 0..5_u32 {
        push.send(&[&number.to_le_bytes()]).unwrap();
    }
    drop(push);
    for number in 0..5 {
        assert_eq!(number_of(&pull.recv_frames_within(SOON).unwrap()), number);
    }
}

#[test]
fn a_request_sent_last_arrives_also_after_one_that_was_sent_several_times() {
    for endpoint in endpoints() {
        let context = Context::new();
        let reply = set_up(context.reply(), Setup::default());
        let mut reply = reply.listen(&endpoint).unwrap();
        let request = set_up(context.request(), Setup::default());
        let request = request.resend(Duration::from_millis(50));
        let mut request = request.dial(reply.endpoint()).unwrap();
        request.send(&[b"anybody there?"]).unwrap();
        for _ in 0..3 {
            reply.recv().unwrap();
        }
        reply.send(&[b"yes"]).unwrap();
        request.recv().unwrap();
        let tensor = vec![1_u8; 32 << 20];
        request.send(&[&tensor]).unwrap();
        drop(request);
        loop {
            let question = reply.recv_frames_within(SOON).unwrap();
            if question.byte_count() == tensor.len() {
                break;
            }
        }
    }
}

#[test]
fn the_end_of_the_context_waits_for_what_is_left() {
    for endpoint in [ipc(), "tcp://127.0.0.1:0".into()] {
        let (receivers, senders) = (Context::new(), Context::new());
        let pull = set_up(receivers.pull(), Setup::default());
        let mut pull = pull.listen(&endpoint).unwrap();
        let push = set_up(senders.push(), Setup::default());
        let mut push = push.dial(pull.endpoint()).unwrap();
        let tensor = vec![7_u8; 8 << 20];
        for _ in 0..5 {
            push.send(&[&tensor]).unwrap();
        }
        let read = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(200));
                for _ in 0..5 {
                    assert_eq!(pull.recv().unwrap().byte_count(), 8 << 20);
                    read.fetch_add(1, Ordering::Relaxed);
                }
            });
            drop(push);
            drop(senders);
            // One may be in the system's hands, one in NNG's, and one was just handed over.
            let read = read.load(Ordering::Relaxed);
            assert!(read >= 2, "{read} over {endpoint}");
        });
    }
}

#[test]
fn nobody_waits_when_all_has_left() {
    for endpoint in endpoints() {
        let start = Instant::now();
        let (mut push, mut pull) = push_pull(&endpoint, Setup::default());
        for _ in 0..10 {
            push.send(&[b"message"]).unwrap();
            pull.recv().unwrap();
        }
        drop(push);
        drop(pull);
        assert!(start.elapsed() < SOON, "{endpoint}");
    }
}

#[test]
fn nobody_waits_longer_than_the_linger_for_a_peer_that_never_comes() {
    let context = Context::new();
    let linger = Duration::from_millis(150);
    let start = Instant::now();
    for endpoint in [inproc(), ipc(), "tcp://127.0.0.1:9".into()] {
        let mut push = context.push().linger(linger).dial(&endpoint).unwrap();
        push.send(&[b"to nobody"]).unwrap();
    }
    drop(context);
    assert!(start.elapsed() >= linger);
    assert!(start.elapsed() < SOON);
}

#[test]
fn a_linger_of_zero_gives_up_at_once() {
    let context = Context::new();
    let mut push = context.push().dial(&ipc()).unwrap();
    push.send(&[b"to nobody"]).unwrap();
    push.close(Duration::ZERO);
    let start = Instant::now();
    drop(context);
    assert!(start.elapsed() < SOON);
}

#[test]
fn a_reply_sent_last_arrives_and_one_to_nobody_holds_up_nobody() {
    for endpoint in endpoints() {
        let context = Context::new();
        let reply = set_up(context.reply(), Setup::default());
        let mut reply = reply.listen(&endpoint).unwrap();
        let request = || {
            let request = set_up(context.request(), Setup::default());
            request.dial(reply.endpoint()).unwrap()
        };
        let (mut gone, mut request) = (request(), request());
        gone.send(&[b"who is there?"]).unwrap();
        reply.recv().unwrap();
        let lost = reply.counters().disconnects;
        drop(gone);
        until("a disconnect", || reply.counters().disconnects > lost);
        reply.send(&[b"nobody any more"]).unwrap();

        let tensor = vec![1_u8; 5 << 20];
        request.send(&[b"a tensor, please"]).unwrap();
        reply.recv().unwrap();
        reply.send(&[&tensor]).unwrap();
        drop(reply);
        assert_eq!(request.recv().unwrap().frame(0), Some(&tensor[..]));
        drop(request);
        let start = Instant::now();
        drop(context);
        assert!(start.elapsed() < SOON, "{endpoint}");
    }
}

#[test]
fn nobody_waits_for_what_was_lost_with_a_connection() {
    for pair in [false, true] {
        let start = Instant::now();
        let (senders, receivers) = (Context::new(), Context::new());
        let tensor = vec![0_u8; 16 << 20];
        if pair {
            let left = set_up(receivers.pair0(), Setup::default()).listen(&ipc());
            let left = left.unwrap();
            let right = set_up(senders.pair0(), Setup::default());
            let mut right = right.dial(left.endpoint()).unwrap();
            lose(&mut right, &tensor, left);
        } else {
            let pull = set_up(receivers.pull(), Setup::default()).listen("tcp://127.0.0.1:0");
            let pull = pull.unwrap();
            let push = set_up(senders.push(), Setup::default());
            let mut push = push.dial(pull.endpoint()).unwrap();
            lose(&mut push, &tensor, pull);
        }
        drop(senders);
        assert!(start.elapsed() < SOON, "pair: {pair}");
    }

    /// Sends more than the system keeps, and then the receiver goes.
    fn lose<S: SendFrames + Observed, R>(sender: &mut S, tensor: &[u8], receiver: R) {
        until("a connection", || sender.counters().connects > 0);
        sender.send(&[tensor]).unwrap();
        thread::sleep(Duration::from_millis(50));
        drop(receiver);
    }
}

#[test]
fn what_is_queued_behind_a_lost_connection_still_goes() {
    for endpoint in [ipc(), "tcp://127.0.0.1:0".into()] {
        let (mut push, pull) = push_pull(&endpoint, Setup::default());
        // Lost while nothing is under way: a connection that ends as a message is written to it
        // stays in a list of NNG's, which then writes to memory that was freed, or aborts (nanomsg/nng
        // issue 1653).
        until("a connection", || push.counters().connects > 0);
        let (context, endpoint) = (pull.context().clone(), pull.endpoint().to_owned());
        drop(pull);
        until("a disconnect", || push.counters().disconnects > 0);
        for number in 1..20_u32 {
            push.send(&[&number.to_le_bytes()]).unwrap();
        }
        drop(push);
        thread::sleep(Duration::from_millis(50));
        let mut pull = set_up(context.pull(), Setup::default())
            .listen(&endpoint)
            .unwrap();
        for number in 1..20 {
            assert_eq!(number_of(&pull.recv().unwrap()), number, "{endpoint}");
        }
    }
}
