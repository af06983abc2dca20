//! Endpoints, contexts, threads.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use tensorwire::transport::zmq::{Context, Error, Message, Push, Socket};
use tensorwire::transport::{
    Caps, ErrorKind, Frames, RecvFrames, SendFrames, TransportError as _, Wait,
};

use super::links::SocketFile;
use crate::copied;

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
fn an_address_in_brackets_is_ipv6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        // Past the harness's capture.
        let _ = writeln!(std::io::stderr(), "SKIP: no IPv6 on this machine");
        return;
    }
    let context = Context::new();
    let mut pull = context.pull().bind("tcp://[::1]:*").unwrap();
    let mut push = context.push().connect(pull.endpoint()).unwrap();
    push.send(&[b"six"]).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [b"six"]);
}

#[test]
fn a_cap_smaller_than_the_handshake_keeps_nobody_out() {
    let context = Context::new();
    let caps = Caps::new().with_frame_bytes(4);
    let mut router = context
        .router()
        .caps(caps)
        .bind("tcp://127.0.0.1:*")
        .unwrap();
    let dealer = context.dealer().identity(&[b'i'; 255]);
    let mut dealer = dealer.connect(router.endpoint()).unwrap();
    dealer.send(&[b"five5"]).unwrap();
    dealer.send(&[b"four"]).unwrap();
    let error = router.recv().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CapExceeded);
    assert_eq!(copied(&router.recv().unwrap()), [b"four"]);
}

#[test]
fn no_time_to_wait_is_time_to_look() {
    let context = Context::new();
    let pull = context.pull().recv_timeout(Some(Duration::ZERO));
    let mut pull = pull.bind("inproc://at-once").unwrap();
    let mut push = context.push().connect("inproc://at-once").unwrap();
    let mut message = Message::default();
    for wait in [Wait::UpTo(Duration::ZERO), Wait::Configured, Wait::Never] {
        for _ in 0..20 {
            let error = pull.recv_frames(&mut message, wait).unwrap_err();
            assert!(error.kind().is_wait());
            push.send(&[b"there"]).unwrap();
            pull.recv_frames(&mut message, wait).unwrap();
        }
    }
}

#[test]
fn a_boxed_transport_is_one() {
    let context = Context::new();
    let mut pull = Box::new(context.pull().bind("inproc://boxed").unwrap());
    let push = context.push().connect("inproc://boxed").unwrap();
    let mut push: Box<dyn SendFrames<SendError = Error>> = Box::new(push);
    push.send(&[b"x"]).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [b"x"]);
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
        "tcp://127.0.0.1:",
        "tcp://127.0.0.1:-1",
        "tcp://127.0.0.1:+80",
        "tcp://127.0.0.1:99999",
        "tcp://[::1]:65536",
        "http://127.0.0.1:80",
        "ipc:///no/such/directory/at/all",
        "ipc:///dev/null/within-a-file",
    ] {
        let error = context.pull().bind(endpoint).unwrap_err();
        let system = endpoint.starts_with("ipc:");
        let kind = if system {
            ErrorKind::Other
        } else {
            ErrorKind::InvalidInput
        };
        assert_eq!(error.kind(), kind, "{endpoint}: {error}");
        assert!(!error.to_string().is_empty());
        if endpoint.starts_with("tcp:") {
            let error = context.push().connect(endpoint).unwrap_err();
            assert_eq!(error.kind(), kind, "connect {endpoint}: {error}");
        }
    }
    // Any port will do to bind to, and is none to connect to.
    for endpoint in ["tcp://127.0.0.1:0", "tcp://127.0.0.1:*"] {
        let pull = context.pull().bind(endpoint).unwrap();
        assert!(!pull.endpoint().ends_with(":0"), "{}", pull.endpoint());
        let error = context.push().connect(endpoint).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{endpoint}");
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
fn a_send_queues_for_a_peer_that_is_connected_to_and_waits_for_any_other() {
    let context = Context::new();
    let push = || {
        let push = context.push().linger(Duration::ZERO).send_high_water(3);
        push.send_timeout(Some(Duration::from_millis(20)))
    };
    let file = SocketFile::new();
    let mut open = push().open().unwrap();
    let mut bound = push().bind("tcp://127.0.0.1:*").unwrap();
    let mut immediate = push().immediate(true).connect(&file.endpoint()).unwrap();
    let mut connected = push().connect(&file.endpoint()).unwrap();
    for (sender, room) in [
        (&mut open, 0),
        (&mut bound, 0),
        (&mut immediate, 0),
        (&mut connected, 3),
    ] {
        for _ in 0..room {
            sender.try_send(&[b"queued"]).unwrap();
        }
        assert_eq!(sender.try_send(&[b"x"]), Err(Error::WouldBlock));
        assert_eq!(sender.send(&[b"x"]), Err(Error::TimedOut));
    }
}

#[test]
fn a_peer_may_come_later() {
    let file = SocketFile::new();
    let endpoint = file.endpoint();
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
