//! Peers that send too much, or garbage, or leave in the middle.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::zmq::{Context, Error, Message};
use tensorwire::transport::{
    Caps, ErrorKind, Frames, Part, RecvFrames, SendFrames, TransportError, Wait,
};

use super::links::push_pull;
use crate::{PATIENCE, Setup, copied};

#[test]
fn a_frame_over_the_cap_costs_the_peer_its_connection_and_us_nothing() {
    let caps = Caps::new().with_frame_bytes(1000);
    for endpoint in ["inproc://frame", "tcp://127.0.0.1:*"] {
        let setup = Setup {
            caps,
            ..Setup::default()
        };
        let (mut bad, mut pull) = push_pull(endpoint, setup);
        let mut good = bad.context().push().connect(pull.endpoint()).unwrap();
        bad.send(&[b"metadata", &[0; 1001]]).unwrap();
        if endpoint.starts_with("inproc") {
            let Err(Error::Cap(refused)) = pull.recv() else {
                panic!("not refused");
            };
            assert_eq!((refused.limit(), refused.actual()), (1000, 1001));
        }
        good.send(&[b"metadata", &[1; 1000]]).unwrap();
        let message = pull.recv().unwrap();
        assert_eq!(message.frame(1), Some(&[1; 1000][..]));
    }
}

#[test]
fn garbage_on_a_port_disturbs_nobody() {
    let context = Context::new();
    let caps = Caps::new().with_frame_bytes(1 << 20);
    let mut pull = context.pull().caps(caps).bind("tcp://127.0.0.1:*").unwrap();
    let mut good = context.push().connect(pull.endpoint()).unwrap();
    let address = pull.endpoint().strip_prefix("tcp://").unwrap().to_owned();
    // (whether to shake hands first, what to throw)
    let attacks: &[(bool, Vec<u8>)] = &[
        (false, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        (false, vec![0; 10_000]),
        (false, vec![0xff; 10_000]),
        (false, (0..=255).cycle().take(5000).collect()),
        (false, greeting()[..33].to_vec()),
        (false, greeting()),
        // A frame that says it has 2^63 bytes, one over the cap, a cut one.
        (true, b"\x02\x80\0\0\0\0\0\0\0".to_vec()),
        (true, b"\x02\0\0\0\0\x10\0\0\0".to_vec()),
        (true, b"\x00\x05abc".to_vec()),
        // A thousand frames, and never the last one.
        (true, b"\x01\x01x".repeat(1000)),
        // A command where there should be a frame.
        (true, b"\x04\x05\x04PING".to_vec()),
    ];
    for (number, (shake, attack)) in attacks.iter().enumerate() {
        let mut stream = TcpStream::connect(&address).unwrap();
        if *shake {
            shake_hands(&mut stream);
        }
        let patience = Duration::from_millis(20);
        stream.set_read_timeout(Some(patience)).unwrap();
        // The other side may hang up at any byte.
        let _ = stream.write_all(attack);
        let _ = stream.read(&mut [0; 512]);
        good.send(&[&[number as u8], b"still served"]).unwrap();
        let message = pull.recv().unwrap();
        assert_eq!(copied(&message), [&[number as u8][..], b"still served"]);
    }
    let mut message = Message::default();
    assert_eq!(pull.try_recv_into(&mut message), Err(Error::WouldBlock));
}

/// The greeting of a peer that speaks ZMTP 3.0 with the NULL mechanism.
fn greeting() -> Vec<u8> {
    let mut greeting = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL".to_vec();
    greeting.resize(64, 0);
    greeting
}

/// Makes a PUSH peer of a bare stream.
fn shake_hands(stream: &mut TcpStream) {
    stream.write_all(&greeting()).unwrap();
    stream.read_exact(&mut [0; 64]).unwrap();
    let ready = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH";
    stream.write_all(ready).unwrap();
    // Their READY: flags, length, as many bytes. Before it they take no message.
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    let mut body = vec![0; usize::from(head[1])];
    stream.read_exact(&mut body).unwrap();
}

#[test]
fn a_peer_that_dies_within_a_message_leaves_no_piece_of_it() {
    let context = Context::new();
    let mut pull = context.pull().bind("tcp://127.0.0.1:*").unwrap();
    let address = pull.endpoint().strip_prefix("tcp://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    shake_hands(&mut stream);
    stream.write_all(b"\x00\x05whole").unwrap();
    // One frame with more to come, and half of the next.
    stream.write_all(b"\x01\x05first\x01\x08seco").unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [b"whole"]);
    drop(stream);
    thread::sleep(Duration::from_millis(30));
    let mut good = context.push().connect(pull.endpoint()).unwrap();
    good.send(&[b"next", b"message"]).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [&b"next"[..], b"message"]);
}

/// So many that libzmq looks for news, such as a lost peer, while they are sent.
const FRAMES: usize = 4000;

/// Peers come and go while messages of many frames are sent: none may arrive
/// in pieces, and the socket has to stay at a boundary.
fn peers_come_and_go<S: SendFrames + Send + 'static, R: RecvFrames>(
    mut tx: S,
    connect: impl Fn() -> R,
) {
    let done = Arc::new(AtomicBool::new(false));
    let stop = done.clone();
    let sender = thread::spawn(move || {
        let tensor: Arc<[u8]> = vec![7; 5000].into();
        let mut cut = 0;
        let mut number = 0_u32;
        while !stop.load(Ordering::SeqCst) {
            let start = number.to_le_bytes();
            let mut parts = vec![Part::from(&start[..])];
            for _ in 0..FRAMES / 2 - 1 {
                parts.push(Part::from(&[1; 10][..]));
                parts.push(Part::from(tensor.clone()));
            }
            parts.push(Part::from(&start[..]));
            let sent = tx.send_parts(&mut parts, Wait::UpTo(Duration::from_millis(5)));
            match sent.map_err(|error| error.kind()) {
                Ok(()) => assert!(parts.is_empty()),
                Err(ErrorKind::Disconnected) => {
                    assert!(parts.is_empty());
                    cut += 1;
                }
                Err(ErrorKind::TimedOut) => assert_eq!(parts.len(), FRAMES),
                Err(kind) => panic!("{kind:?}"),
            }
            number += 1;
        }
        cut
    });
    let mut received = 0;
    let start = Instant::now();
    let mut message = R::Message::default();
    for round in 0..60 {
        let mut rx = connect();
        // Leave sooner or later, so as to hit the sender anywhere.
        let stay = Duration::from_micros(200 * (round % 17));
        let arrived = Instant::now();
        while arrived.elapsed() < stay || received == 0 {
            let wait = Wait::UpTo(Duration::from_millis(1));
            match rx.recv_frames(&mut message, wait) {
                Ok(()) => {
                    assert_eq!(message.frames().len(), FRAMES, "a piece of a message");
                    assert_eq!(message.frame(0), message.frame(FRAMES - 1));
                    received += 1;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
            }
            assert!(start.elapsed() < PATIENCE);
        }
    }
    assert!(received > 0);
    done.store(true, Ordering::SeqCst);
    // How many sends a peer cut by leaving is a matter of luck: some, mostly.
    let cut: usize = sender.join().unwrap();
    println!("{received} messages received, {cut} cut");
}

// Not with a linger of zero: see the documentation on closing.
#[test]
fn a_push_socket_loses_peers_and_sends_no_pieces() {
    let context = Context::new();
    for endpoint in ["inproc://come-and-go", "tcp://127.0.0.1:*"] {
        let push = context
            .push()
            .linger(Duration::from_secs(1))
            .send_high_water(3);
        let push = push.bind(endpoint).unwrap();
        let endpoint = push.endpoint().to_owned();
        peers_come_and_go(push, || context.pull().connect(&endpoint).unwrap());
    }
}

#[test]
fn a_pair_socket_loses_its_peer_and_sends_no_pieces() {
    let context = Context::new();
    for endpoint in ["inproc://come-and-go", "tcp://127.0.0.1:*"] {
        let pair = context
            .pair()
            .linger(Duration::from_secs(1))
            .send_high_water(3);
        let pair = pair.bind(endpoint).unwrap();
        let endpoint = pair.endpoint().to_owned();
        peers_come_and_go(pair, || context.pair().connect(&endpoint).unwrap());
    }
}
