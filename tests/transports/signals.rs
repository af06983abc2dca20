//! Signals neither end a call nor cut a message.

#![cfg(all(feature = "zmq", target_os = "linux"))]

use std::ffi::{c_int, c_ulong};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::{Frames, RecvFrames, SendFrames, Wait, zmq};

use crate::PATIENCE;

unsafe extern "C" {
    fn pthread_kill(thread: c_ulong, signal: c_int) -> c_int;
    safe fn pthread_self() -> c_ulong;
    fn signal(signal: c_int, handler: extern "C" fn(c_int)) -> usize;
}

/// `SIGUSR1` on Linux.
const SIGNAL: c_int = 10;

static RECEIVED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: c_int) {
    RECEIVED.fetch_add(1, Ordering::Relaxed);
}

/// Sends a signal to this thread every half millisecond while `f` runs.
fn under_fire<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the handler touches an atomic and nothing else.
    unsafe { signal(SIGNAL, count) };
    let target = pthread_self();
    let done = Arc::new(AtomicBool::new(false));
    let stop = done.clone();
    let gun = thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            // SAFETY: the target waits for this thread to end before it ends.
            unsafe { pthread_kill(target, SIGNAL) };
            thread::sleep(Duration::from_micros(500));
        }
    });
    let result = f();
    done.store(true, Ordering::SeqCst);
    gun.join().unwrap();
    result
}

#[test]
fn calls_go_on_with_the_time_left() {
    let context = zmq::Context::new();
    let mut pull = context.pull().bind("tcp://127.0.0.1:*").unwrap();
    let mut push = context.push().connect(pull.endpoint()).unwrap();
    let mut idle = context.push().bind("tcp://127.0.0.1:*").unwrap();
    let mut message = zmq::Message::default();

    under_fire(|| {
        let time = Duration::from_millis(80);
        let start = Instant::now();
        let error = pull
            .recv_frames(&mut message, Wait::UpTo(time))
            .unwrap_err();
        assert_eq!(error, zmq::Error::TimedOut);
        let error = idle
            .send_frames(&[b"to nobody"], Wait::UpTo(time))
            .unwrap_err();
        assert_eq!(error, zmq::Error::TimedOut);
        let waited = start.elapsed();
        assert!(waited >= time * 2, "back after {waited:?}");
        assert!(waited < PATIENCE);
    });

    let sender = thread::spawn(move || {
        under_fire(|| {
            for number in 0..2000_u32 {
                let number = number.to_le_bytes();
                push.send(&[&number, &[1; 2000], b"", &[2; 10_000], b"end"])
                    .unwrap();
            }
            push
        })
    });
    under_fire(|| {
        for number in 0..2000_u32 {
            pull.recv_into(&mut message).unwrap();
            assert_eq!(message.frame(0), Some(&number.to_le_bytes()[..]));
            assert_eq!(message.frames().len(), 5);
            assert_eq!(message.frame(4), Some(&b"end"[..]));
        }
    });
    sender.join().unwrap();
    assert!(RECEIVED.load(Ordering::Relaxed) > 10);
}
