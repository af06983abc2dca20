//! ROUTER sockets and their envelopes.

use tensorwire::transport::zmq::{Context, Dealer, Error, Socket};
use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait};

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
