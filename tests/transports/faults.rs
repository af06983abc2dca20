//! The loopback as a test bed.

use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::loopback::{self, Error, Fault, Options};
use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Transport, Wait};

use crate::copied;

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
    assert_eq!(right.recv().unwrap().frame(0).unwrap().as_ptr(), address);
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
    fn echo<T: Transport>(transport: &mut T) -> usize {
        let message = transport.recv().map_err(|_| "receiving").unwrap();
        let frames: Vec<&[u8]> = message.frames().iter().map(AsRef::as_ref).collect();
        transport.send(&frames).map_err(|_| "sending").unwrap();
        frames.len()
    }
    let (mut left, mut right) = loopback::pair();
    left.send(&[b"a", b"b"]).unwrap();
    assert_eq!(echo(&mut &mut right), 2);
    assert_eq!(copied(&left.recv().unwrap()), [b"a", b"b"]);
}
