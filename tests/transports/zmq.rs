//! What is special about ZeroMQ.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::zmq::{Context, Error, Message, Socket};
use tensorwire::transport::zmq::{Dealer, Pair, Pull, Push, Router};
use tensorwire::transport::{Caps, ErrorKind, Frames, Part, RecvFrames, SendFrames};
use tensorwire::transport::{TransportError, Wait};

use crate::owned::{Counted, assert_drops};
use crate::{Link, PATIENCE, Setup, copied};

pub(crate) struct Inproc;
pub(crate) struct Ipc;
pub(crate) struct Tcp;
pub(crate) struct PairTcp;
pub(crate) struct DealerRouter;

fn push_pull(endpoint: &str, setup: Setup) -> (Socket<Push>, Socket<Pull>) {
    let context = Context::new();
    let pull = context
        .pull()
        .caps(setup.caps)
        .recv_high_water(setup.high_water)
        .recv_timeout(Some(setup.timeout))
        .bind(endpoint)
        .unwrap();
    let push = context
        .push()
        .send_high_water(setup.high_water)
        .send_timeout(Some(setup.timeout))
        .linger(setup.linger)
        .connect(pull.endpoint())
        .unwrap();
    (push, pull)
}

impl Link for Inproc {
    type Tx = Socket<Push>;
    type Rx = Socket<Pull>;

    const NAME: &'static str = "zmq push/pull over inproc";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        push_pull("inproc://link", setup)
    }
}

impl Link for Ipc {
    type Tx = Socket<Push>;
    type Rx = Socket<Pull>;

    const NAME: &'static str = "zmq push/pull over ipc";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        push_pull(&ipc_endpoint(), setup)
    }
}

impl Link for Tcp {
    type Tx = Socket<Push>;
    type Rx = Socket<Pull>;

    const NAME: &'static str = "zmq push/pull over tcp";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        push_pull("tcp://127.0.0.1:*", setup)
    }
}

impl Link for PairTcp {
    type Tx = Socket<Pair>;
    type Rx = Socket<Pair>;

    const NAME: &'static str = "zmq pair over tcp";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        let context = Context::new();
        let builder = || {
            let builder = context.pair().caps(setup.caps);
            builder
                .recv_high_water(setup.high_water)
                .send_high_water(setup.high_water)
                .recv_timeout(Some(setup.timeout))
                .send_timeout(Some(setup.timeout))
                .linger(setup.linger)
        };
        let bound = builder().bind("tcp://127.0.0.1:*").unwrap();
        let connecting = builder().connect(bound.endpoint()).unwrap();
        (connecting, bound)
    }
}

impl Link for DealerRouter {
    type Tx = Socket<Dealer>;
    type Rx = Socket<Router>;

    const NAME: &'static str = "zmq dealer/router over tcp";

    fn open(setup: Setup) -> (Self::Tx, Self::Rx) {
        let context = Context::new();
        let router = context
            .router()
            .caps(setup.caps)
            .recv_high_water(setup.high_water)
            .recv_timeout(Some(setup.timeout))
            .bind("tcp://127.0.0.1:*")
            .unwrap();
        let dealer = context
            .dealer()
            .send_high_water(setup.high_water)
            .send_timeout(Some(setup.timeout))
            .linger(setup.linger)
            .connect(router.endpoint())
            .unwrap();
        (dealer, router)
    }
}

/// A path of its own; libzmq takes the file away when it unbinds.
fn ipc_endpoint() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tensorwire-{}-{number}", std::process::id());
    format!("ipc://{}", std::env::temp_dir().join(name).display())
}

#[test]
fn over_inproc_the_frame_received_is_the_buffer_sent() {
    struct Custom([u8; 5000]);
    impl AsRef<[u8]> for Custom {
        fn as_ref(&self) -> &[u8] {
            &self.0[100..]
        }
    }

    let (mut push, mut pull) = Inproc::open(Setup::default());
    let shared: Arc<[u8]> = vec![3_u8; 4096].into();
    let mut parts: Vec<Part<'_>> = vec![
        Part::from(vec![1_u8; 4096]),
        Part::from(vec![2_u8; 100_000].into_boxed_slice()),
        Part::from(shared.clone()),
        Part::owned(Custom([4; 5000])),
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
    // The receiver holds the sender's `Arc`, until it lets go.
    assert_eq!(Arc::strong_count(&shared), 2);
    drop(message);
    assert_eq!(Arc::strong_count(&shared), 1);
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
    let (mut push, mut pull) = Inproc::open(Setup::default());
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
    let drops = Arc::new(AtomicUsize::new(0));
    let context = Context::new();
    let push = context.push().linger(Duration::ZERO);
    let mut push = push.connect("tcp://127.0.0.1:9").unwrap();
    for _ in 0..3 {
        let mut parts = vec![
            Part::owned(Counted::new(50_000, &drops)),
            Part::owned(Counted::new(10, &drops)),
        ];
        push.send_parts(&mut parts, Wait::Configured).unwrap();
    }
    assert_drops(&drops, 3, "small ones at once");
    push.close(Duration::ZERO).unwrap();
    let start = Instant::now();
    drop(context);
    assert!(start.elapsed() < PATIENCE);
    assert_drops(&drops, 6, "large ones with the context");
}

#[test]
fn the_last_handle_of_a_context_waits_for_what_was_sent() {
    let context = Context::new();
    let mut pull = context.pull().bind("tcp://127.0.0.1:*").unwrap();
    let endpoint = pull.endpoint().to_owned();
    let sender = thread::spawn(move || {
        let mut push = Context::new().push().connect(&endpoint).unwrap();
        for number in 0..20_u32 {
            push.send(&[&number.to_le_bytes(), &[0; 200_000]]).unwrap();
        }
        // Socket and context go here, before anything was received.
    });
    thread::sleep(Duration::from_millis(50));
    for number in 0..20_u32 {
        assert_eq!(
            pull.recv().unwrap().frame(0),
            Some(&number.to_le_bytes()[..])
        );
    }
    sender.join().unwrap();
}

#[test]
fn views_outlive_socket_and_context() {
    for endpoint in ["inproc://outlive", "tcp://127.0.0.1:*"] {
        let (mut push, mut pull) = push_pull(endpoint, Setup::default());
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
fn subscribers_get_what_starts_with_their_topic() {
    let context = Context::new();
    let mut publish = context.publish().bind("tcp://127.0.0.1:*").unwrap();
    let mut subscribe = context
        .subscribe()
        .topic(b"latents/")
        .topic(b"done")
        .connect(publish.endpoint())
        .unwrap();
    // A subscription is under way for a while: call until it answers.
    let mut message = Message::default();
    let start = Instant::now();
    loop {
        publish.send(&[b"done"]).unwrap();
        let wait = Wait::UpTo(Duration::from_millis(5));
        if subscribe.recv_frames(&mut message, wait).is_ok() {
            break;
        }
        assert!(start.elapsed() < PATIENCE);
    }
    publish.send(&[b"latent", b"not quite"]).unwrap();
    publish.send(&[b"other", b"latents/"]).unwrap();
    publish.send(&[b"latents/1", b"one"]).unwrap();
    let mut parts = vec![Part::from(&b"latents/2"[..]), Part::from(vec![2; 9000])];
    publish.send_parts(&mut parts, Wait::Configured).unwrap();
    // Calls from before may still be about.
    loop {
        subscribe.recv_into(&mut message).unwrap();
        if copied(&message) != [b"done"] {
            break;
        }
    }
    assert_eq!(copied(&message), [&b"latents/1"[..], b"one"]);
    subscribe.recv_into(&mut message).unwrap();
    assert_eq!(message.frame(0), Some(&b"latents/2"[..]));
    assert_eq!(message.frame(1), Some(&[2; 9000][..]));
    assert_eq!(
        subscribe.try_recv_into(&mut message),
        Err(Error::WouldBlock)
    );
}

#[test]
fn a_publisher_drops_whole_messages_and_never_waits() {
    let context = Context::new();
    let publish = context.publish().send_high_water(5);
    let mut publish = publish.bind("inproc://lossy").unwrap();
    let subscribe = context.subscribe().topic(b"").recv_high_water(5);
    let mut subscribe = subscribe.connect("inproc://lossy").unwrap();
    subscribe.subscribe(b"more").unwrap();
    subscribe.unsubscribe(b"more").unwrap();
    thread::sleep(Duration::from_millis(50));
    for number in 0..500_u32 {
        publish
            .try_send(&[&number.to_le_bytes(), &[1; 100], b"end"])
            .unwrap();
    }
    let mut message = Message::default();
    let mut last = None;
    while subscribe.try_recv_into(&mut message).is_ok() {
        assert_eq!(message.frames().len(), 3);
        assert_eq!(message.frame(2), Some(&b"end"[..]));
        let number = u32::from_le_bytes(message.frame(0).unwrap().try_into().unwrap());
        assert!(last < Some(number), "in order");
        last = Some(number);
    }
    assert!(last.is_some());
    assert!(last < Some(499), "no room for all");
}

#[test]
fn a_frame_over_the_cap_costs_the_peer_its_connection_and_us_nothing() {
    let caps = Caps::default().with_frame_bytes(1000);
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
    let caps = Caps::default().with_frame_bytes(1 << 20);
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

#[test]
fn endpoints_that_are_none_are_errors() {
    let context = Context::new();
    let nul = context.pull().bind("tcp://127.0.0.1:\0").unwrap_err();
    assert_eq!(nul, Error::EndpointWithNul);
    for endpoint in [
        "",
        "nonsense",
        "tcp://",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:notaport",
        "http://127.0.0.1:80",
        "ipc:///no/such/directory/at/all",
        "ipc:///dev/null/within-a-file",
    ] {
        let error = context.pull().bind(endpoint).unwrap_err();
        assert!(matches!(error, Error::System { .. }), "{endpoint}");
        assert!(!error.to_string().is_empty());
    }
    let mut pull = context.pull().bind("inproc://taken").unwrap();
    assert!(context.pull().bind("inproc://taken").is_err());
    // A second endpoint, and the socket goes on with the first.
    let second = pull.bind("tcp://127.0.0.1:*").unwrap().to_owned();
    assert!(second.starts_with("tcp://127.0.0.1:"), "{second}");
    let mut push = context.push().connect("inproc://taken").unwrap();
    push.send(&[b"first"]).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [b"first"]);
    push.connect(&second).unwrap();
    let ping: Vec<()> = (0..2).map(|_| push.send(&[b"both"]).unwrap()).collect();
    for () in ping {
        assert_eq!(copied(&pull.recv().unwrap()), [b"both"]);
    }
}

#[test]
fn a_peer_may_come_later() {
    let endpoint = ipc_endpoint();
    let context = Context::new();
    let mut push = context.push().connect(&endpoint).unwrap();
    push.send(&[b"early", b"bird"]).unwrap();
    let immediate = context.push().immediate(true);
    let mut immediate = immediate.connect(&endpoint).unwrap();
    assert_eq!(immediate.try_send(&[b"no"]), Err(Error::WouldBlock));
    let mut pull = context.pull().bind(&endpoint).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [&b"early"[..], b"bird"]);
}

#[test]
fn a_socket_may_move_to_another_thread_with_its_messages() {
    fn movable<T: Send>() {}
    fn shareable<T: Send + Sync>() {}
    movable::<Socket<Push>>();
    shareable::<Context>();
    shareable::<Message>();
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

    let (mut push, mut pull) = Inproc::open(Setup::default());
    let drops = Arc::new(AtomicUsize::new(0));
    let mut parts = vec![
        Part::owned(Counted::new(50_000, &drops)),
        Part::owned(Refuses(drops.clone())),
        Part::owned(Counted::new(50_000, &drops)),
    ];
    let send = std::panic::AssertUnwindSafe(|| push.send_parts(&mut parts, Wait::Never));
    assert!(std::panic::catch_unwind(send).is_err());
    drop(parts);
    push.send(&[b"next"]).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [b"next"]);
    assert_drops(&drops, 3, "each once");
}

#[test]
fn several_sockets_can_be_waited_for_together() {
    let context = Context::new();
    let idle = context.pull().bind("inproc://idle").unwrap();
    let mut busy = context.pull().bind("inproc://busy").unwrap();
    let mut push = context.push().connect("inproc://busy").unwrap();
    push.send(&[b"here"]).unwrap();
    let mut items = [idle.poll_item(::zmq::POLLIN), busy.poll_item(::zmq::POLLIN)];
    assert_eq!(::zmq::poll(&mut items, 5000), Ok(1));
    assert!(!items[0].is_readable() && items[1].is_readable());
    assert_eq!(copied(&busy.recv().unwrap()), [b"here"]);
}
