//! ROUTER sockets and their envelopes.

use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::zmq::{Context, Dealer, Error, Routed, Socket};
use tensorwire::transport::{
    ErrorKind, Frames, Observed, Part, RecvFrames, SendFrames, TransportError, Wait,
};

use crate::{PATIENCE, copied};

#[test]
fn a_router_answers_by_envelope_and_knows_no_strangers() {
    let context = Context::new();
    let mut router = context.router().bind("tcp://127.0.0.1:*").unwrap();
    let dealers = ["a", "another-worker-with-a-rather-long-name-of-its-own", ""];
    let mut dealers: Vec<Socket<Dealer>> = dealers
        .iter()
        .map(|identity| {
            let mut dealer = context.dealer();
            if !identity.is_empty() {
                dealer = dealer.identity(identity.as_bytes());
            }
            dealer.connect(router.endpoint()).unwrap()
        })
        .collect();
    for (number, dealer) in dealers.iter_mut().enumerate() {
        dealer.send(&[&[number as u8], b"", &[7; 5000]]).unwrap();
    }
    let mut envelopes = vec![Vec::new(); dealers.len()];
    for _ in 0..dealers.len() {
        let routed = router.recv().unwrap();
        assert_eq!(routed.frames().len(), 3);
        let number = usize::from(routed.frame(0).unwrap()[0]);
        envelopes[number] = routed.envelope().to_vec();
        // The envelope is a borrow of the message, and may be used as such.
        let mut parts = vec![
            Part::from(routed.frame(0).unwrap()),
            Part::from(vec![8; 9000]),
        ];
        let mut peer = router.to(routed.envelope());
        peer.send_parts(&mut parts, Wait::Configured).unwrap();
        assert!(parts.is_empty());
    }
    assert_eq!(envelopes[0], b"a");
    assert_eq!(envelopes[1].len(), 49);
    assert_eq!(envelopes[2].len(), 5, "made up by the router");
    for (number, dealer) in dealers.iter_mut().enumerate() {
        let answer = dealer.recv().unwrap();
        assert_eq!(answer.frame(0), Some(&[number as u8][..]));
        assert_eq!(answer.frame(1), Some(&[8; 9000][..]));
        assert_eq!(answer.frames().len(), 2);
    }

    let mut parts = vec![Part::from(vec![1; 9000])];
    for stranger in [&b"nobody"[..], b"", &[9; 300]] {
        assert_eq!(
            router.to(stranger).send(&[b"hello"]),
            Err(Error::Unreachable)
        );
        let sent = router.to(stranger).send_parts(&mut parts, Wait::Never);
        assert_eq!(sent, Err(Error::Unreachable));
        assert_eq!(parts[0].as_ref().len(), 9000, "the buffer came back");
    }
    // And none of it went to anybody.
    router.to(b"a").send(&[b"bye"]).unwrap();
    assert_eq!(copied(&dealers[0].recv().unwrap()), [b"bye"]);
}

#[test]
fn a_router_pushes_back_for_a_peer_that_does_not_read() {
    let context = Context::new();
    let mut router = context
        .router()
        .send_high_water(1)
        .bind("inproc://slow")
        .unwrap();
    let dealer = context.dealer().identity(b"slow").recv_high_water(1);
    let mut dealer = dealer.connect("inproc://slow").unwrap();
    let mut sent = 0_u32;
    while router
        .to(b"slow")
        .try_send(&[&sent.to_le_bytes(), b"x"])
        .is_ok()
    {
        sent += 1;
        assert!(sent < 100);
    }
    let error = router.to(b"slow").try_send(&[b"x"]).unwrap_err();
    assert_eq!(error, Error::WouldBlock);
    for number in 0..sent {
        assert_eq!(
            dealer.recv().unwrap().frame(0),
            Some(&number.to_le_bytes()[..])
        );
    }
    router.to(b"slow").send(&[b"room again"]).unwrap();
    assert_eq!(copied(&dealer.recv().unwrap()), [b"room again"]);
}

#[test]
fn a_req_peer_has_an_empty_frame_before_what_it_sends_and_gets() {
    let context = Context::new();
    let mut router = context.router().bind("tcp://127.0.0.1:*").unwrap();
    let peer = ::zmq::Context::new().socket(::zmq::REQ).unwrap();
    peer.connect(router.endpoint()).unwrap();
    peer.set_linger(0).unwrap();
    peer.send_multipart([&b"metadata"[..], b"tensor"], 0)
        .unwrap();
    let routed = router.recv().unwrap();
    assert_eq!(copied(&routed), [&b""[..], b"metadata", b"tensor"]);
    let answer: [&[u8]; 3] = [b"", b"metadata", b"answer"];
    router.to(routed.envelope()).send(&answer).unwrap();
    peer.set_rcvtimeo(PATIENCE.as_millis() as i32).unwrap();
    assert_eq!(
        peer.recv_multipart(0).unwrap(),
        [&b"metadata"[..], b"answer"]
    );
}

#[test]
fn an_identity_that_is_none_is_refused_with_its_length() {
    let context = Context::new();
    for identity in [&b""[..], &[b'i'; 256], &[b'i'; 70_000], b"\0", b"\0made up"] {
        let builder = || context.dealer().identity(identity);
        let len = identity.len();
        for error in [
            builder().open().unwrap_err(),
            builder().bind("inproc://identity").unwrap_err(),
            builder().connect("inproc://identity").unwrap_err(),
        ] {
            assert_eq!(error, Error::Identity { len });
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let text = error.to_string();
            let says = format!("identity of {len} bytes");
            assert!(text.contains(&says), "{text}");
        }
    }
    for identity in [&b"i"[..], b"i\0", &[0xff; 255]] {
        context.dealer().identity(identity).open().unwrap();
    }
}

#[test]
fn a_peer_that_died_with_a_full_queue_is_unreachable_once_the_router_has_received() {
    let context = Context::new();
    // (whether its queue is full when it dies, what the router is told until it receives)
    for (full, told) in [(true, Error::WouldBlock), (false, Error::Unreachable)] {
        let router = context.router().send_high_water(1).linger(Duration::ZERO);
        let mut router = router
            .count_connections(true)
            .bind("tcp://127.0.0.1:*")
            .unwrap();
        let dealer = Context::new().dealer().identity(b"worker");
        let dealer = dealer.recv_high_water(1).linger(Duration::ZERO);
        let mut dealer = dealer.connect(router.endpoint()).unwrap();
        dealer.send(&[b"ready"]).unwrap();
        router.recv().unwrap();
        let mut sends = 0;
        let large = vec![0; 1 << 20];
        while full && sends < 3 {
            // The system may find room for one more.
            let wait = Wait::UpTo(Duration::from_millis(50));
            match router.to(b"worker").send_frames(&[&large], wait) {
                Ok(()) => sends = 0,
                Err(error) => {
                    assert_eq!(error, Error::TimedOut);
                    sends += 1;
                }
            }
        }
        drop(dealer);
        let start = Instant::now();
        while router.counters().disconnects == 0 {
            assert!(start.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(1));
        }
        // libzmq has noticed, and says the same however often it is asked.
        let mut last = None;
        for _ in 0..20 {
            last = router.to(b"worker").try_send(&[b"x"]).err();
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(last, Some(told), "full: {full}");
        // Until the router has received what that peer sent, to its end.
        assert!(router.try_recv_into(&mut Routed::default()).is_err());
        let start = Instant::now();
        while router.to(b"worker").try_send(&[b"x"]) != Err(Error::Unreachable) {
            assert!(start.elapsed() < PATIENCE, "full: {full}");
            let _ = router.try_recv_into(&mut Routed::default());
        }
    }
}

#[test]
fn a_peer_that_the_router_connected_to_stays_reachable_when_it_dies() {
    let context = Context::new();
    let mut dealer = context
        .dealer()
        .identity(b"server")
        .bind("tcp://127.0.0.1:*")
        .unwrap();
    let router = context.router().linger(Duration::ZERO);
    let router = router.send_high_water(2).count_connections(true);
    let mut router = router.connect(dealer.endpoint()).unwrap();
    dealer.send(&[b"ready"]).unwrap();
    router.recv().unwrap();
    drop(dealer);
    let start = Instant::now();
    while router.counters().disconnects == 0 {
        assert!(start.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(1));
    }
    let _ = router.try_recv_into(&mut Routed::default());
    let mut sent = 0;
    let error = loop {
        match router.to(b"server").try_send(&[b"x"]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((sent, error), (2, Error::WouldBlock));
}
