//! Signals neither end a call nor cut a message.

#![cfg(all(any(feature = "nng", feature = "zmq"), target_os = "linux"))]

use std::ffi::{c_int, c_ulong};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(feature = "zmq")]
use tensorwire::transport::zmq;
use tensorwire::transport::{ErrorKind, Frames, RecvFrames, SendFrames, TransportError, Wait};

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
    under_fire_each(Duration::from_micros(500), f)
}

/// Sends a signal to this thread after each `pause` while `f` runs.
fn under_fire_each<R>(pause: Duration, f: impl FnOnce() -> R) -> R {
    // SAFETY: the handler touches an atomic and nothing else.
    unsafe { signal(SIGNAL, count) };
    let target = pthread_self();
    let done = Arc::new(AtomicBool::new(false));
    let stop = done.clone();
    let gun = thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            // SAFETY: the target waits for this thread to end before it ends.
            unsafe { pthread_kill(target, SIGNAL) };
            if pause.is_zero() {
                thread::yield_now();
            } else {
                thread::sleep(pause);
            }
        }
    });
    let result = f();
    done.store(true, Ordering::SeqCst);
    gun.join().unwrap();
    result
}

#[cfg(feature = "zmq")]
#[test]
fn calls_go_on_with_the_time_left() {
    let context = zmq::Context::new();
    let pull = context.pull().bind("tcp://127.0.0.1:*").unwrap();
    let push = context.push().connect(pull.endpoint()).unwrap();
    let idle = context.push().bind("tcp://127.0.0.1:*").unwrap();
    go_on_with_the_time_left(push, pull, idle);
}

#[cfg(feature = "zmq")]
#[test]
fn sockets_open_and_close_whatever_signals_come() {
    let context = zmq::Context::new();
    under_fire_each(Duration::ZERO, || {
        for number in 0..25 {
            let endpoint = format!("inproc://signals-{number}");
            let pull = context.pull().count_connections(true);
            let pull = pull.bind(&endpoint).unwrap();
            let push = context.push().count_connections(true);
            let push = push.connect(&endpoint).unwrap();
            drop((push, pull));
        }
    });
}

#[cfg(all(feature = "tokio", feature = "zmq"))]
#[test]
fn futures_wait_on_whatever_signals_come() {
    use tensorwire::transport::tokio::Async;

    let context = zmq::Context::new();
    let pull = context.pull().bind("inproc://signals").unwrap();
    let mut push = context.push().connect("inproc://signals").unwrap();
    let sender = thread::spawn(move || {
        for number in 0..10_000_u32 {
            push.send(&[&number.to_le_bytes()]).unwrap();
            thread::sleep(Duration::from_micros(10));
        }
    });
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    under_fire_each(Duration::ZERO, || {
        runtime.block_on(async {
            let mut pull = Async::new(pull).unwrap();
            for number in 0..10_000_u32 {
                let message = pull.recv().await.unwrap();
                assert_eq!(message.frame(0), Some(&number.to_le_bytes()[..]));
            }
        });
    });
    sender.join().unwrap();
}

#[cfg(feature = "nng")]
#[test]
fn calls_to_nng_go_on_with_the_time_left() {
    use tensorwire::transport::nng::Context;

    let context = Context::new();
    let pull = context.pull().listen("tcp://127.0.0.1:0").unwrap();
    let push = context.push().dial(pull.endpoint()).unwrap();
    // Full, as it has a queue where ZeroMQ has none yet.
    let idle = context.push().send_high_water(1).linger(Duration::ZERO);
    let mut idle = idle.listen("tcp://127.0.0.1:0").unwrap();
    idle.try_send(&[b"to nobody"]).unwrap();
    go_on_with_the_time_left(push, pull, idle);
}

/// From `push` to `pull`; `idle` has no peer and no room.
fn go_on_with_the_time_left<S, R>(mut push: S, mut pull: R, mut idle: S)
where
    S: SendFrames + Send + 'static,
    R: RecvFrames,
{
    let mut message = R::Message::default();

    under_fire(|| {
        let time = Duration::from_millis(80);
        let start = Instant::now();
        let error = pull
            .recv_frames(&mut message, Wait::UpTo(time))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let error = idle
            .send_frames(&[b"to nobody"], Wait::UpTo(time))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
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
