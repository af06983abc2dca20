//! The loopback as a test bed.

use std::error::Error as StdError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::loopback::{self, Error, Fault, Options};
use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Transport, Wait};

use crate::copied;
use crate::owned::Counted;

#[test]
fn frames_lie_where_they_are_shifted_to() {
    for shift in 0..64 {
        let (mut left, mut right) = Options::new().with_shift(shift).pair();
        for len in [0, 1, 33, 4096] {
            let mut parts = vec![
                Part::from(vec![1; len]),
                Part::from(&[2; 64][..len.min(64)]),
            ];
            left.send_parts(&mut parts, Wait::Configured).unwrap();
            let message = right.recv().unwrap();
            for frame in message.frames() {
                assert_eq!(frame.as_ref().as_ptr() as usize % 64, shift);
            }
            assert_eq!(message.frame(0), Some(&vec![1; len][..]));
        }
    }
}

#[test]
fn owned_buffers_pass_through_unmoved() {
    let (mut left, mut right) = loopback::pair();
    let tensor = vec![1_u8; 10];
    let address = tensor.as_ptr();
    left.send_parts(&mut vec![Part::from(tensor)], Wait::Never)
        .unwrap();
    let message = right.recv().unwrap();
    assert_eq!(message.frame(0).unwrap().as_ptr(), address);
}

#[test]
fn a_panic_in_the_drop_of_an_owner_goes_to_who_drops_the_message() {
    let (mut left, mut right) = loopback::pair();
    let drops = Arc::new(AtomicUsize::new(0));
    let mut send = |text: &[u8]| {
        let owner = Part::owned(Counted::panicking(10, &drops));
        left.send_parts(&mut vec![owner, Part::from(text)], Wait::Never)
            .unwrap();
    };
    send(b"dropped");
    send(b"replaced");
    send(b"next");
    let message = right.recv().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(message))).is_err());
    let mut message = right.recv().unwrap();
    let receive = AssertUnwindSafe(|| right.recv_into(&mut message));
    assert!(catch_unwind(receive).is_err());
    // Nothing was lost by that, and nothing is dropped twice.
    right.recv_into(&mut message).unwrap();
    assert_eq!(message.frame(1), Some(&b"next"[..]));
    assert_eq!(drops.load(Ordering::SeqCst), 2);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(message))).is_err());
    assert_eq!(drops.load(Ordering::SeqCst), 3);
}

#[test]
fn a_script_drops_fails_and_delays() {
    let (mut left, mut right) = loopback::pair();
    let delay = Duration::from_millis(50);
    left.script(&[(0, Fault::Drop), (2, Fault::Fail), (3, Fault::Delay(delay))]);
    left.send(&[b"0"]).unwrap();
    left.send(&[b"1"]).unwrap();
    assert_eq!(left.send(&[b"2"]), Err(Error::Injected { message: 2 }));
    let start = Instant::now();
    left.send(&[b"3"]).unwrap();
    left.send(&[b"4"]).unwrap();

    assert_eq!(copied(&right.recv().unwrap()), [b"1"]);
    let mut message = loopback::Message::default();
    assert_eq!(right.try_recv_into(&mut message), Err(Error::WouldBlock));
    assert_eq!(copied(&right.recv().unwrap()), [b"3"]);
    assert!(start.elapsed() >= delay);
    assert_eq!(copied(&right.recv().unwrap()), [b"4"]);
    // The way back has no script.
    right.send(&[b"answer"]).unwrap();
    assert_eq!(copied(&left.recv().unwrap()), [b"answer"]);
}

#[test]
fn what_was_sent_outlives_the_sender() {
    let (mut left, mut right) = loopback::pair();
    left.send(&[b"last words"]).unwrap();
    left.close();
    assert_eq!(right.send(&[b"too late"]), Err(Error::Closed));
    assert_eq!(copied(&right.recv().unwrap()), [b"last words"]);
    assert_eq!(right.recv().unwrap_err(), Error::Closed);
}

#[test]
fn closing_wakes_the_other_end() {
    let (left, mut right) = loopback::pair();
    let waiting = thread::spawn(move || right.recv().unwrap_err());
    thread::sleep(Duration::from_millis(10));
    drop(left);
    assert_eq!(waiting.join().unwrap(), Error::Closed);
}

#[test]
fn code_may_be_generic_over_both_halves() {
    fn echo<T: Transport>(transport: &mut T) -> Result<usize, Box<dyn StdError + Send + Sync>> {
        let message = transport.recv()?;
        let frames: Vec<&[u8]> = message.frames().iter().map(AsRef::as_ref).collect();
        transport.send(&frames)?;
        Ok(frames.len())
    }
    let (mut left, mut right) = loopback::pair();
    left.send(&[b"a", b"b"]).unwrap();
    assert_eq!(echo(&mut &mut right).unwrap(), 2);
    assert_eq!(copied(&left.recv().unwrap()), [b"a", b"b"]);
    drop(left);
    assert!(echo(&mut right).unwrap_err().is::<Error>());
}
