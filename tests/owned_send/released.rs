//! Owned buffers, lent to libzmq: where they lie, and when they are released.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tensorwire::transport::zmq::{Context, DEFAULT_COPY_BELOW, DEFAULT_LINGER, Error};
use tensorwire::transport::{BufferPool, Frames, Part, PooledBuffer, RecvFrames, SendFrames, Wait};

use crate::counted::{Counted, assert_drops};
use crate::counting;
use crate::{PATIENCE, copied, push_pull};

#[test]
fn over_inproc_the_frame_received_is_the_buffer_sent() {
    struct Custom([u8; 5000]);
    impl AsRef<[u8]> for Custom {
        fn as_ref(&self) -> &[u8] {
            &self.0[100..]
        }
    }

    let (mut push, mut pull) = push_pull("inproc://owned");
    let shared: Arc<[u8]> = vec![3_u8; 4096].into();
    let pool = BufferPool::new(1, 4096);
    let mut pooled = pool.take(4096, Wait::Never).unwrap();
    pooled.as_mut().fill(5);
    let mut parts: Vec<Part<'_>> = vec![
        Part::from(vec![1_u8; 4096]),
        Part::from(vec![2_u8; 100_000].into_boxed_slice()),
        Part::from(shared.clone()),
        Part::owned(Custom([4; 5000])),
        Part::from(pooled),
    ];
    let sent: Vec<(*const u8, usize)> = parts
        .iter()
        .map(|part| (part.as_ref().as_ptr(), part.as_ref().len()))
        .collect();
    push.send_parts(&mut parts, Wait::Configured).unwrap();
    let message = pull.recv().unwrap();
    let received: Vec<(*const u8, usize)> = message
        .frames()
        .iter()
        .map(|frame| (frame.as_ref().as_ptr(), frame.as_ref().len()))
        .collect();
    assert_eq!(sent, received);
    for (index, frame) in message.frames().iter().enumerate() {
        assert!(
            frame
                .as_ref()
                .iter()
                .all(|&byte| usize::from(byte) == index + 1)
        );
    }
    // The receiver holds the sender's `Arc` and its slot, until it lets go.
    assert_eq!(Arc::strong_count(&shared), 2);
    assert_eq!(pool.stats().in_use(), 1);
    drop(message);
    assert_eq!(Arc::strong_count(&shared), 1);
    assert_eq!(pool.stats().in_use(), 0);
}

#[test]
fn a_send_that_fails_gives_every_owner_back_as_it_was() {
    struct Custom(Vec<u8>);
    impl AsRef<[u8]> for Custom {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    let context = Context::new();
    // Nobody is there to send to.
    let mut push = context.push().bind("inproc://nobody").unwrap();
    let bytes = || vec![7_u8; 5000];
    let shared: Arc<[u8]> = bytes().into();
    let pool = BufferPool::new(1, 5000);
    let mut parts = vec![
        Part::from(&b"metadata"[..]),
        Part::from(bytes()),
        Part::from(bytes().into_boxed_slice()),
        Part::from(shared.clone()),
        Part::from(pool.take(5000, Wait::Never).unwrap()),
        Part::owned(Custom(bytes())),
        Part::from(vec![1, 2, 3]),
    ];
    let places = |parts: &[Part<'_>]| -> Vec<_> {
        let bytes = parts.iter().map(AsRef::as_ref);
        bytes.map(|bytes| (bytes.as_ptr(), bytes.len())).collect()
    };
    let before = places(&parts);
    let mut fail = || {
        let error = push.send_parts(&mut parts, Wait::Never).unwrap_err();
        assert_eq!(error, Error::WouldBlock);
    };
    fail();
    for _ in 0..1000 {
        counting::none(&mut fail);
    }
    assert_eq!(places(&parts), before);
    assert_eq!(Arc::strong_count(&shared), 2);
    let mut owners = parts.into_iter().skip(1).map(|part| match part {
        Part::Owned(buffer) => buffer,
        part => panic!("{part:?}"),
    });
    let mut next = || owners.next().unwrap();
    assert_eq!(next().downcast::<Vec<u8>>().unwrap(), bytes());
    assert_eq!(*next().downcast::<Box<[u8]>>().unwrap(), bytes());
    assert_eq!(*next().downcast::<Arc<[u8]>>().unwrap(), bytes());
    assert_eq!(pool.stats().in_use(), 1);
    drop(next().downcast::<PooledBuffer>().unwrap());
    assert_eq!(pool.stats().in_use(), 0);
    assert_eq!(next().downcast::<Custom>().unwrap().0, bytes());
    assert_eq!(next().downcast::<Vec<u8>>().unwrap(), [1, 2, 3]);
}

#[test]
fn small_buffers_are_copied_and_the_limit_can_be_set() {
    for (limit, lent) in [(0, true), (100, true), (101, false), (4096, false)] {
        let context = Context::new();
        let mut pull = context.pull().bind("inproc://limit").unwrap();
        let push = context.push().copy_below(limit);
        let mut push = push.connect("inproc://limit").unwrap();
        let tensor = vec![1_u8; 100];
        let address = tensor.as_ptr();
        // Held so that its address is not given to the copy.
        let keep: Arc<Vec<u8>> = Arc::new(tensor);
        struct Shared(Arc<Vec<u8>>);
        impl AsRef<[u8]> for Shared {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        let mut parts = vec![Part::owned(Shared(keep.clone()))];
        push.send_parts(&mut parts, Wait::Configured).unwrap();
        let message = pull.recv().unwrap();
        assert_eq!(
            message.frame(0).unwrap().as_ptr() == address,
            lent,
            "{limit}"
        );
        assert_eq!(message.frame(0).unwrap(), &keep[..]);
    }
}

#[test]
fn a_received_frame_can_be_sent_on_without_a_copy() {
    let (mut push, mut pull) = push_pull("inproc://owned");
    push.send(&[&[5; 10_000], b"short"]).unwrap();
    let message = pull.recv().unwrap();
    let address = message.frame(0).unwrap().as_ptr();
    let mut parts: Vec<Part<'_>> = message.into_frames().into_iter().map(Part::owned).collect();
    push.send_parts(&mut parts, Wait::Configured).unwrap();
    let again = pull.recv().unwrap();
    assert_eq!(again.frame(0).unwrap().as_ptr(), address);
    assert_eq!(again.frame(1), Some(&b"short"[..]));
}

#[test]
fn owners_are_released_when_nobody_ever_comes() {
    let pool = BufferPool::new(3, 50_000);
    let drops = Arc::new(AtomicUsize::new(0));
    let context = Context::new();
    let push = context.push().linger(Duration::ZERO);
    let mut push = push.connect("tcp://127.0.0.1:9").unwrap();
    for _ in 0..3 {
        let mut parts = vec![
            Part::owned(Counted::new(50_000, &drops)),
            Part::owned(Counted::new(10, &drops)),
            Part::from(pool.take(50_000, Wait::Never).unwrap()),
        ];
        push.send_parts(&mut parts, Wait::Configured).unwrap();
    }
    assert_drops(&drops, 3, "small ones at once");
    assert_eq!(pool.stats().in_use(), 3);
    push.close(Duration::ZERO).unwrap();
    let start = Instant::now();
    drop(context);
    assert!(start.elapsed() < PATIENCE);
    assert_drops(&drops, 6, "large ones with the context");
    assert_eq!(pool.stats().in_use(), 0);
}

#[test]
fn views_outlive_socket_and_context() {
    for endpoint in ["inproc://outlive", "tcp://127.0.0.1:*"] {
        let (mut push, mut pull) = push_pull(endpoint);
        let drops = Arc::new(AtomicUsize::new(0));
        let mut parts = vec![
            Part::from(&b"short"[..]),
            Part::from(&[1; 1000][..]),
            Part::owned(Counted::new(100_000, &drops)),
        ];
        push.send_parts(&mut parts, Wait::Configured).unwrap();
        let message = pull.recv().unwrap();
        drop(push);
        drop(pull);
        assert_eq!(message.frame(0), Some(&b"short"[..]));
        assert_eq!(message.frame(1), Some(&[1; 1000][..]));
        assert_eq!(message.frame(2), Some(&[0x5a; 100_000][..]));
        if endpoint.starts_with("inproc") {
            assert_eq!(drops.load(Ordering::SeqCst), 0);
        }
        drop(message);
        assert_drops(&drops, 1, endpoint);
    }
}

#[test]
fn an_owner_that_panics_when_asked_for_its_bytes_leaves_the_socket_whole() {
    struct Refuses(Arc<AtomicUsize>);
    impl AsRef<[u8]> for Refuses {
        fn as_ref(&self) -> &[u8] {
            panic!("scripted: no bytes")
        }
    }
    impl Drop for Refuses {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    let (mut push, mut pull) = push_pull("inproc://owned");
    let drops = Arc::new(AtomicUsize::new(0));
    let mut parts = vec![
        Part::owned(Counted::new(50_000, &drops)),
        Part::owned(Refuses(drops.clone())),
        Part::owned(Counted::new(50_000, &drops)),
    ];
    let send = AssertUnwindSafe(|| push.send_parts(&mut parts, Wait::Never));
    assert!(catch_unwind(send).is_err());
    drop(parts);
    push.send(&[b"next"]).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [b"next"]);
    assert_drops(&drops, 3, "each once");
}

/// libzmq is the one who drops them, and cannot unwind.
#[test]
fn a_panic_in_the_drop_of_a_lent_owner_stays_there() {
    for endpoint in ["inproc://panics", "tcp://127.0.0.1:*"] {
        let (mut push, mut pull) = push_pull(endpoint);
        let drops = Arc::new(AtomicUsize::new(0));
        for len in [DEFAULT_COPY_BELOW, 300_000] {
            let mut parts = vec![
                Part::owned(Counted::panicking(len, &drops)),
                Part::owned(Counted::panicking(len, &drops)),
                Part::from(&b"tail"[..]),
            ];
            push.send_parts(&mut parts, Wait::Configured).unwrap();
            assert_eq!(pull.recv().unwrap().frame(2), Some(&b"tail"[..]));
        }
        assert_drops(&drops, 4, endpoint);
        push.send(&[b"and on it goes"]).unwrap();
        assert_eq!(copied(&pull.recv().unwrap()), [b"and on it goes"]);
    }
}

#[test]
fn a_panic_in_the_drop_of_a_copied_owner_goes_through_the_send_that_was_done() {
    let (mut push, mut pull) = push_pull("inproc://owned");
    let drops = Arc::new(AtomicUsize::new(0));
    let mut parts = vec![
        Part::owned(Counted::panicking(100, &drops)),
        Part::from(&b"tail"[..]),
    ];
    let send = AssertUnwindSafe(|| push.send_parts(&mut parts, Wait::Configured));
    assert!(catch_unwind(send).is_err());
    assert!(parts.is_empty());
    assert_eq!(pull.recv().unwrap().frame(1), Some(&b"tail"[..]));
    assert_drops(&drops, 1, "by the send");
    push.send(&[b"and on it goes"]).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [b"and on it goes"]);
}

#[test]
fn dropping_waits_for_a_dead_peer_as_long_as_the_linger_and_no_longer() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("tcp://{}", silent.local_addr().unwrap());
    let reader = Context::new();
    let idle = reader.pull().recv_high_water(1);
    let idle = idle.bind("tcp://127.0.0.1:*").unwrap();
    for (name, endpoint, messages) in [
        ("nobody is there", "tcp://127.0.0.1:9", 3),
        ("one who does not shake hands", &silent, 3),
        ("one who does not read", idle.endpoint(), 20),
    ] {
        let drops = Arc::new(AtomicUsize::new(0));
        for linger in [Duration::ZERO, Duration::from_millis(300)] {
            let context = Context::new();
            let mut push = context.push().linger(linger).connect(endpoint).unwrap();
            for _ in 0..messages {
                let mut parts = vec![Part::owned(Counted::new(4 << 20, &drops))];
                push.send_parts(&mut parts, Wait::Configured).unwrap();
            }
            let start = Instant::now();
            drop(push);
            let closed = start.elapsed();
            drop(context);
            let ended = start.elapsed();
            println!("{name}, linger {linger:?}: closed after {closed:?}, ended after {ended:?}");
            // libzmq counts whole milliseconds.
            assert!(
                ended + Duration::from_millis(2) >= linger,
                "{name}: {ended:?}"
            );
            assert!(ended < DEFAULT_LINGER / 2, "{name}: {ended:?}");
        }
        assert_drops(&drops, 2 * messages, name);
    }
}
