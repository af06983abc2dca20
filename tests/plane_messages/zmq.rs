//! Over ZeroMQ: one ROUTER for an inlet, a DEALER for each pusher.

use std::thread;
use std::time::Duration;

use tensorwire::plane::messages::{Dealers, Error, InletError, Plane, Refusal, session_id};
use tensorwire::plane::{DataPlane, ErrorKind, PlaneError, RegionOptions, Transfer};
use tensorwire::transport::zmq::{Context, Router, Socket};
use tensorwire::transport::{Caps, Frames, RecvFrames, SendFrames};

use super::{BLOCK, REGION, nobody};

const LONG: Duration = Duration::from_secs(60);

fn router(context: &Context, endpoint: &str) -> Socket<Router> {
    context.router().bind(endpoint).unwrap()
}

/// Several pushers, each on its thread and with a context of its own unless it has to be
/// the inlet's, push over `endpoint`, many times and many bytes.
fn many_push(endpoint: &str, pushers: u8, rounds: usize, len: usize) {
    let context = Context::new();
    let router = router(&context, endpoint);
    let session = session_id(router.endpoint());
    let mut receiver = Plane::new(session.clone(), nobody());
    let options =
        RegionOptions::new(len.next_power_of_two() * usize::from(pushers)).with_min_block(BLOCK);
    let region = receiver.register(options).unwrap();
    let mut inlet = receiver.inlet(router);
    let windows = (0..pushers).map(|_| region.pool().allocate(len).unwrap().open());
    let windows: Vec<_> = windows.collect();
    let threads = (1..=pushers).zip(&windows).map(|(fill, window)| {
        let address = region.address_of(window.offset()).unwrap();
        let session = session.clone();
        let context = match endpoint.starts_with("inproc:") {
            true => context.clone(),
            false => Context::new(),
        };
        thread::spawn(move || {
            let mut sender = Plane::new("", Dealers::new(&context));
            let region = sender.register(RegionOptions::new(len)).unwrap();
            let mut slot = region.pool().allocate(len).unwrap();
            region.bytes_mut(&mut slot).unwrap().fill(fill);
            for _ in 0..rounds {
                let mut transfer = Transfer::new(slot, &*session);
                let third = len / 3;
                transfer
                    .add_piece(third..len, address + third as u64)
                    .unwrap();
                transfer.add_piece(0..third, address).unwrap();
                sender.push(transfer).unwrap();
                let (back, result) = sender.wait_completion(LONG).unwrap().into_parts();
                assert_eq!(result, Ok(len as u64));
                slot = back;
            }
            assert_eq!(sender.ignored(), 0);
        })
    });
    let threads: Vec<_> = threads.collect();
    for _ in 0..usize::from(pushers) * rounds {
        let written = inlet.wait(LONG).unwrap().unwrap();
        assert_eq!(written.bytes(), len as u64);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    for (fill, window) in (1..).zip(windows) {
        let slot = window.close().unwrap();
        let bytes = region.bytes(&slot).unwrap();
        assert!(bytes[..len].iter().all(|&byte| byte == fill));
    }
}

#[test]
fn several_pushers_reach_one_inlet_over_inproc() {
    many_push("inproc://inlet", 3, 50, 10_000);
}

#[test]
fn several_pushers_reach_one_inlet_over_tcp() {
    many_push("tcp://127.0.0.1:*", 3, 50, 10_000);
}

#[test]
fn a_large_push_arrives_over_tcp() {
    many_push("tcp://127.0.0.1:*", 1, 2, 64 << 20);
}

#[test]
fn an_inlet_and_a_pusher_take_turns_on_one_thread() {
    let context = Context::new();
    let router = router(&context, "tcp://127.0.0.1:*");
    let session = session_id(router.endpoint());
    let mut receiver = Plane::new(session.clone(), nobody());
    let received = receiver.register(REGION).unwrap();
    let mut inlet = receiver.inlet(router);
    let landing = received.pool().allocate(BLOCK).unwrap().open();
    let address = received.address_of(landing.offset()).unwrap();
    let mut sender = Plane::new("", Dealers::new(&context));
    let region = sender.register(REGION).unwrap();
    let push = |address: u64, session: &str| {
        let mut transfer = Transfer::new(region.pool().allocate(1).unwrap(), session);
        transfer.add_piece(0..8, address).unwrap();
        transfer
    };
    let endpoint = session.split('#').next().unwrap();
    for (name, transfer, expected) in [
        ("right", push(address, &session), Ok(8)),
        (
            "closed",
            push(address + BLOCK as u64, &session),
            Err(ErrorKind::Closed),
        ),
        // The same endpoint, and another inlet than that which is there now.
        (
            "restarted",
            push(address, &session_id(endpoint)),
            Err(ErrorKind::UnknownSession),
        ),
        ("right again", push(address, &session), Ok(8)),
    ] {
        sender.push(transfer).unwrap();
        let taken = inlet.wait(LONG).unwrap();
        assert_eq!(taken.is_ok(), expected.is_ok(), "{name}");
        let ended = sender.wait_completion(LONG).unwrap();
        let result = ended.result().map_err(|error| error.kind());
        assert_eq!(result, expected, "{name}");
    }
    assert_eq!(sender.links(), 2);
    let (_, error) = sender.push(push(address, "no endpoint")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownSession);
}

#[test]
fn a_peer_that_is_not_there_times_out_and_its_link_is_not_kept() {
    // Bound and closed again: nobody is there.
    let context = Context::new();
    let session = router(&context, "tcp://127.0.0.1:*").endpoint().to_owned();
    let dealers = Dealers::new(&context).with_linger(Duration::from_millis(10));
    let mut sender = Plane::new("", dealers).with_timeout(Duration::from_millis(50));
    let region = sender.register(REGION).unwrap();
    let slot = region.pool().allocate(1).unwrap();
    sender.push(Transfer::new(slot, session)).unwrap();
    let ended = sender.wait_completion(LONG).unwrap();
    assert_eq!(ended.result(), Err(&Error::TimedOut));
    assert_eq!((sender.links(), sender.in_flight()), (0, 0));
}

#[test]
fn garbage_and_too_much_over_tcp_leave_the_inlet_at_work() {
    let context = Context::new();
    let router = context.router().caps(Caps::new().with_frames(3));
    let router = router.bind("tcp://127.0.0.1:*").unwrap();
    let session = session_id(router.endpoint());
    let endpoint = router.endpoint().to_owned();
    let mut receiver = Plane::new(session.clone(), nobody());
    let received = receiver.register(REGION).unwrap();
    let mut inlet = receiver.inlet(router);
    let landing = received.pool().allocate(BLOCK).unwrap().open();
    let address = received.address_of(landing.offset()).unwrap();

    let mut stranger = context.dealer().connect(&endpoint).unwrap();
    stranger.send(&[b"garbage"]).unwrap();
    let error = inlet.wait(LONG).unwrap().unwrap_err();
    assert!(matches!(error, InletError::Malformed(_)), "{error}");
    stranger.send(&[b"a", b"b", b"c", b"d"]).unwrap();
    let error = inlet.wait(LONG).unwrap().unwrap_err();
    assert!(matches!(error, InletError::Transport(_)), "{error}");
    let metadata = format!(
        r#"{{"tensor_descriptors":[],"scalar_fields":{{"_plane":"push","session":"{session}","origin":1,"push":1,"addresses":[{address}]}}}}"#
    );
    stranger.send(&[metadata.as_bytes()]).unwrap();
    let error = inlet.wait(LONG).unwrap().unwrap_err();
    let (tensors, addresses) = (0, 1);
    let refused = Refusal::Count { tensors, addresses };
    assert_eq!(error, InletError::Refused(refused));
    let answer = stranger.recv().unwrap();
    let answer = String::from_utf8_lossy(answer.frame(0).unwrap()).into_owned();
    assert!(answer.ends_with(r#""origin":1,"push":1,"refused":"count","numbers":[0,1]}}"#));

    let mut sender = Plane::new("", Dealers::new(&context));
    let region = sender.register(REGION).unwrap();
    let mut transfer = Transfer::new(region.pool().allocate(1).unwrap(), session);
    transfer.add_piece(0..8, address).unwrap();
    sender.push(transfer).unwrap();
    assert_eq!(inlet.wait(LONG).unwrap().unwrap().bytes(), 8);
    let ended = sender.wait_completion(LONG).unwrap();
    assert_eq!(ended.result(), Ok(8));
}
