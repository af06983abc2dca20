//! The loopback as a test bed.

use std::error::Error as StdError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::TensorView;
use tensorwire::error::DecodeErrorKind;
use tensorwire::message::{Decoder, NO_SCALARS, encode_to_vec, frames};
use tensorwire::transport::loopback::{self, Error, Fault, Options, Script};
use tensorwire::transport::{
    Caps, ErrorKind, Frames, LendFrames, Loan, Observed, Part, RecvFrames, SendFrames, Transport,
    TransportError, Wait,
};

use crate::copied;
use crate::counted::Counted;

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
    left.script([(0, Fault::Drop), (2, Fault::Fail), (3, Fault::Delay(delay))]);
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
fn a_delay_past_the_end_of_the_clock_is_not_none() {
    let (mut left, mut right) = loopback::pair();
    left.script([(0, Fault::Delay(Duration::MAX))]);
    left.send(&[b"never"]).unwrap();
    let error = right.try_recv_into(&mut Default::default()).unwrap_err();
    assert_eq!(error, Error::WouldBlock);
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

/// The texts of all messages that come at once.
fn all(right: &mut loopback::Loopback) -> Vec<String> {
    let mut message = loopback::Message::default();
    let mut texts = Vec::new();
    while right.try_recv_into(&mut message).is_ok() {
        let frames = message.frames().iter();
        let texts_of_frames = frames.map(|frame| String::from_utf8_lossy(frame.as_ref()));
        texts.push(texts_of_frames.collect::<Vec<_>>().join("|"));
    }
    texts
}

#[test]
fn each_fault_does_what_it_says_and_no_more() {
    /// (fault of message 1 of 3, what its send gives, what arrives)
    type Row = (Fault, Result<(), Error>, &'static [&'static str]);
    let rows: &[Row] = &[
        (Fault::Drop, Ok(()), &["0", "2"]),
        (
            Fault::Duplicate,
            Ok(()),
            &["0", "head|body", "head|body", "2"],
        ),
        (
            Fault::Fail,
            Err(Error::Injected { message: 1 }),
            &["0", "2"],
        ),
        (
            Fault::Disconnect,
            Err(Error::Disconnected { message: 1 }),
            &["0", "2"],
        ),
        (Fault::TruncateBytes(0), Ok(()), &["0", "head|body", "2"]),
        (Fault::TruncateBytes(1), Ok(()), &["0", "head|bod", "2"]),
        (Fault::TruncateBytes(4), Ok(()), &["0", "head|", "2"]),
        (Fault::TruncateBytes(6), Ok(()), &["0", "he|", "2"]),
        (Fault::TruncateBytes(usize::MAX), Ok(()), &["0", "|", "2"]),
        (Fault::TruncateFrames(1), Ok(()), &["0", "head", "2"]),
        (Fault::TruncateFrames(2), Ok(()), &["0", "2"]),
        (Fault::TruncateFrames(usize::MAX), Ok(()), &["0", "2"]),
        (Fault::Close, Err(Error::Closed), &["0"]),
    ];
    for (fault, sent, arrives) in rows {
        for (shift, owned) in [
            (None, false),
            (Some(3), false),
            (None, true),
            (Some(3), true),
        ] {
            let mut options = Options::new().with_high_water(4);
            if let Some(shift) = shift {
                options = options.with_shift(shift);
            }
            let (mut left, mut right) = options.with_script([(1, *fault)]).pair();
            left.send(&[b"0"]).unwrap();
            let result = if owned {
                let body = Part::from(b"body".to_vec());
                let mut parts = vec![Part::from(&b"head"[..]), body];
                let result = left.send_parts(&mut parts, Wait::Never);
                let kept = matches!(fault, Fault::Fail | Fault::Close);
                assert_eq!(parts.len(), if kept { 2 } else { 0 }, "{fault}");
                result
            } else {
                left.send(&[b"head", b"body"])
            };
            assert_eq!(result, *sent, "{fault}");
            let closed = *fault == Fault::Close;
            assert_eq!(left.send(&[b"2"]).is_err(), closed, "{fault}");
            assert_eq!(all(&mut right), *arrives, "{fault}");
            // Storage that was cut serves again whole.
            if !closed {
                left.send(&[b"again", b"and whole"]).unwrap();
                assert_eq!(all(&mut right), ["again|and whole"], "{fault}");
            }
        }
    }
}

#[test]
fn a_receive_fails_as_scripted_and_the_message_is_there_for_the_next() {
    let (mut left, mut right) = loopback::pair();
    left.script([(0, Fault::FailReceive), (2, Fault::FailReceive)]);
    for text in [b"0", b"1", b"2"] {
        left.send(&[text]).unwrap();
    }
    let mut message = loopback::Message::default();
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(right.recv_into(&mut message).map(|()| copied(&message)));
        assert_eq!(seen.last().unwrap().is_err(), message.frames().is_empty());
    }
    let came = |text: &[u8]| Ok(vec![text.to_vec()]);
    let failed = |message| Err(Error::Injected { message });
    assert_eq!(
        seen,
        [failed(0), came(b"0"), came(b"1"), failed(2), came(b"2")]
    );
    assert_eq!(Error::Injected { message: 0 }.kind(), ErrorKind::Other);
}

#[test]
fn a_seed_makes_the_same_faults_every_time_and_its_printed_list_too() {
    let rates = [
        (Fault::Drop, 100),
        (Fault::Duplicate, 100),
        (Fault::Fail, 100),
        (Fault::FailReceive, 50),
        (Fault::TruncateBytes(3), 50),
        (Fault::Disconnect, 50),
    ];
    let script = Script::seeded(42, &rates);
    let run = |script: Script| {
        let (mut left, mut right) = Options::new().with_script(script).pair();
        let mut log = Vec::new();
        for number in 0..300_u32 {
            let sent = left.send(&[format!("message {number}").as_bytes()]);
            log.push(format!("{sent:?}"));
            log.append(&mut all(&mut right));
        }
        log
    };
    let log = run(script.clone());
    assert_eq!(log, run(script.clone()));
    assert_eq!(log, run(script.planned(300)));
    assert_ne!(log, run(Script::seeded(43, &rates)));
    // Each of them happened.
    let injected = log.iter().filter(|line| line.contains("Injected")).count();
    let disconnected = log
        .iter()
        .filter(|line| line.contains("Disconnected"))
        .count();
    assert!(injected > 10 && disconnected > 3, "{script}");
}

#[test]
fn cut_messages_are_typed_errors_to_the_decoder() {
    let tensors = [
        TensorView::from_slice("timesteps", &[2], &[999.0_f32, 500.0]).unwrap(),
        TensorView::from_slice("steps", &[3], &[1_i64, 2, 3]).unwrap(),
    ];
    let metadata = encode_to_vec(&tensors, &NO_SCALARS).unwrap();
    let whole = metadata.len() + 8 + 24;
    let (mut left, mut right) = loopback::pair();
    let mut received = loopback::Message::default();
    let mut decoder = Decoder::new();
    for cut in 0..=whole {
        left.script([(cut as u64, Fault::TruncateBytes(cut))]);
        left.send(&frames(&metadata, &tensors)).unwrap();
        right.recv_into(&mut received).unwrap();
        assert_eq!(received.byte_count(), whole - cut);
        let decoded = decoder.decode(received.frames());
        let kind = decoded.map(drop).map_err(|error| error.kind());
        match cut {
            0 => assert_eq!(kind, Ok(())),
            1..=32 => assert!(
                matches!(kind, Err(DecodeErrorKind::FrameLength { .. })),
                "{cut}: {kind:?}"
            ),
            _ => assert!(kind.is_err(), "{cut}"),
        }
    }
    for cut in [1, 2] {
        left.script([(whole as u64 + cut as u64, Fault::TruncateFrames(cut))]);
        left.send(&frames(&metadata, &tensors)).unwrap();
        right.recv_into(&mut received).unwrap();
        let decoded = decoder.decode(received.frames());
        let kind = decoded.map(drop).map_err(|error| error.kind());
        assert!(
            matches!(kind, Err(DecodeErrorKind::FrameCount { .. })),
            "{cut}: {kind:?}"
        );
    }
}

#[test]
fn the_ends_count_what_they_did_and_what_was_done_to_them() {
    let caps = Caps::new().with_frames(2);
    let (mut left, mut right) = Options::new().with_caps(caps).with_high_water(4).pair();
    left.script([
        (1, Fault::Drop),
        (2, Fault::Disconnect),
        (3, Fault::FailReceive),
    ]);
    let mut message = loopback::Message::default();
    left.send(&[b"four", b"five5"]).unwrap();
    left.send(&[b"lost"]).unwrap();
    left.send(&[b"cut"]).unwrap_err();
    left.send(&[b"fails"]).unwrap();
    left.send(&[b"three", b"are", b"too many"]).unwrap();
    left.send(&[b"fills up"]).unwrap();
    left.try_send(&[b"no room"]).unwrap_err();
    while !matches!(right.try_recv_into(&mut message), Err(Error::WouldBlock)) {}

    let (sent, received) = (left.counters(), right.counters());
    assert_eq!(
        (sent.messages_sent, sent.bytes_sent),
        (5, 9 + 4 + 5 + 16 + 8)
    );
    assert_eq!((sent.queue_full, sent.dropped), (1, 1));
    assert_eq!(
        (received.messages_received, received.bytes_received),
        (3, 9 + 5 + 8)
    );
    assert_eq!((received.refused_frames, received.dropped), (1, 0));
    assert_eq!((sent.messages_received, received.messages_sent), (0, 0));
}

#[test]
fn receipts_tell_what_was_copied_and_what_is_kept() {
    let (mut left, mut right) = loopback::pair();
    let mut message = loopback::Message::default();
    let mut receive = |parts: Vec<Part<'_>>| {
        let mut parts = parts;
        left.send_parts(&mut parts, Wait::Never).unwrap();
        right.recv_into(&mut message).unwrap();
        let receipt = message.receipt().unwrap();
        (
            receipt.copied_bytes(),
            receipt.allocations(),
            receipt.retained_bytes(),
        )
    };
    let owned = || Part::from(vec![1; 1000]);
    assert_eq!(receive(vec![owned(), owned()]), (0, 1, 2000));
    let (copied, allocations, retained) = receive(vec![Part::from(&[2; 500][..]), owned()]);
    assert_eq!((copied, allocations), (500, 2));
    assert!((1500..3000).contains(&retained), "{retained}");
    // The first storage comes round again, has room for frames, and then for bytes.
    receive(vec![Part::from(&[3; 500][..])]);
    let (copied, allocations, _) = receive(vec![Part::from(&[4; 400][..])]);
    assert_eq!((copied, allocations), (400, 0));
}

#[test]
fn frames_are_written_where_they_are_received() {
    let (mut left, mut right) = Options::new().with_shift(1).with_high_water(1).pair();
    left.script([(1, Fault::Disconnect), (2, Fault::Fail)]);
    let mut loan = left.lend_frames(&[3, 0, 5000], Wait::Never).unwrap();
    let mut addresses = Vec::new();
    for place in loan.frames_mut() {
        addresses.push(place.as_ptr());
        place.fill(9);
    }
    loan.send(Wait::Never).unwrap();
    // What is dropped is not sent.
    drop(left.lend_frames(&[1], Wait::Never).unwrap());
    let mut loan = left.lend_frames(&[2], Wait::Never).unwrap();
    loan.frames_mut().for_each(|place| place.fill(8));
    let (loan, error) = loan.send(Wait::Never).unwrap_err();
    assert_eq!(error, Error::WouldBlock);

    let message = right.recv().unwrap();
    assert_eq!(copied(&message), [vec![9; 3], vec![], vec![9; 5000]]);
    let received = message.frames().iter().map(|frame| frame.as_ref().as_ptr());
    assert!(received.eq(addresses));
    // A send that failed gives the loan back as it was.
    let (loan, error) = loan.send(Wait::Never).unwrap_err();
    assert_eq!(error, Error::Disconnected { message: 1 });
    let (loan, error) = loan.send(Wait::Never).unwrap_err();
    assert_eq!(error, Error::Injected { message: 2 });
    loan.send(Wait::Never).unwrap();
    assert_eq!(copied(&right.recv().unwrap()), [[8, 8]]);
    let error = left.lend_frames(&[], Wait::Never).map(drop).unwrap_err();
    assert_eq!(error, Error::EmptyMessage);
    assert_eq!(left.counters().messages_sent, 2);
}
