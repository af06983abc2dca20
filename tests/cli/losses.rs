//! What becomes of messages that nobody takes, that cannot be saved, or that come too late.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use tensorwire::transport::zmq::{Context, Message, Routed};
use tensorwire::transport::{Frames as _, RecvFrames as _, SendFrames as _, Wait};

use crate::processes::{gone, signal, within};
use crate::support::{
    PATIENCE, Process, TRANSPORTS, command, folder, read_bundle, run, send_to, text, write_bundle,
    write_large, write_small,
};

const MIB: usize = 1 << 20;

/// A receiver that takes what the connection holds, and no more.
struct Idle {
    endpoint: String,
    _socket: Box<dyn std::any::Any>,
}

impl Idle {
    fn of(transport: &str) -> Self {
        #[cfg(feature = "nng")]
        if transport == "nng" {
            let context = tensorwire::transport::nng::Context::new();
            let socket = context.pull().listen("tcp://127.0.0.1:0").unwrap();
            return Self {
                endpoint: socket.endpoint().to_owned(),
                _socket: Box::new(socket),
            };
        }
        assert_eq!(transport, "zmq");
        let socket = Context::new().pull().recv_high_water(1);
        let socket = socket.bind("tcp://127.0.0.1:*").unwrap();
        Self {
            endpoint: socket.endpoint().to_owned(),
            _socket: Box::new(socket),
        }
    }
}

#[test]
fn what_does_not_leave_in_time_is_said_to_be_lost() {
    for transport in TRANSPORTS {
        let idle = Idle::of(transport);
        let folder = folder();
        let large = write_large(folder.path(), MIB);
        let (code, _, notes) = Process::words(
            &format!("send --transport {transport} --count 64 --timeout 5 --connect"),
            &[&idle.endpoint, &large],
        )
        .end();
        assert_eq!(code, Some(1), "{transport}: {notes:?}");
        assert!(
            notes[0].starts_with("sent 64 messages, 64.0 MiB"),
            "{notes:?}"
        );
        assert!(
            notes[1].contains("had not left after 5 s, and may be lost"),
            "{notes:?}"
        );
    }
}

/// What is not taken yet when all is sent has time to leave.
#[test]
fn what_waits_at_the_end_still_leaves() {
    for relayed in [false, true] {
        let socket = Context::new().pull().recv_high_water(1);
        let mut slow = socket.bind("tcp://127.0.0.1:*").unwrap();
        let folder = folder();
        let large = write_large(folder.path(), MIB);
        let relay = relayed.then(|| {
            Process::words(
                "relay --count 64 --timeout 60 --from tcp://127.0.0.1:* --to",
                &[slow.endpoint()],
            )
        });
        let to = relay.as_ref().map(Process::bound);
        let to = to.as_deref().unwrap_or_else(|| slow.endpoint());
        let sender = Process::words("send --count 64 --timeout 60 --connect", &[to, &large]);
        sender.said("sent 64 messages");
        if let Some(relay) = &relay {
            relay.said("relayed 64 messages");
        }
        let mut message = Message::default();
        for number in 0..64 {
            let received = slow.recv_frames(&mut message, Wait::UpTo(PATIENCE));
            received.unwrap_or_else(|error| panic!("{relayed}, message {number}: {error}"));
        }
        for process in std::iter::once(sender).chain(relay) {
            process.succeeded(if relayed { "relayed" } else { "sent" });
        }
    }
}

/// Of messages as large as this not a thousand are queued, or memory would be full of them.
#[test]
fn no_more_waits_than_memory_bears() {
    for transport in TRANSPORTS {
        let idle = Idle::of(transport);
        let folder = folder();
        let large = write_large(folder.path(), 32 * MIB);
        let (code, _, notes) = Process::words(
            &format!("send --transport {transport} --count 40 --timeout 5 --connect"),
            &[&idle.endpoint, &large],
        )
        .end();
        assert_eq!(code, Some(1), "{transport}: {notes:?}");
        let sent: usize = notes[0].split(' ').nth(1).unwrap().parse().unwrap();
        assert!((1..=20).contains(&sent), "{transport}: {notes:?}");
        assert!(
            notes
                .iter()
                .any(|note| note.contains("took a message for 5 s")),
            "{notes:?}"
        );
    }
}

#[test]
fn a_relay_whose_messages_nobody_takes_keeps_its_timeout() {
    let folder = folder();
    let small = write_small(folder.path());
    let relay = Process::words(
        "relay --timeout 5 --from tcp://127.0.0.1:* --to",
        &[&folder.ipc("nobody")],
    );
    send_to(&relay.bound(), &[&small]);
    let (code, _, notes) = relay.end();
    assert_eq!(code, Some(1), "{notes:?}");
    assert_eq!(
        notes[..2],
        [
            "relayed 0 messages, 0 B",
            "one more message came, which could not be passed on"
        ]
    );
    assert!(
        notes[2]
            .contains("took a message for 5 s: is the receiver running, and does it bind there?"),
        "{notes:?}"
    );
}

#[test]
fn a_relay_that_is_interrupted_says_what_it_had_in_hand() {
    let folder = folder();
    let small = write_small(folder.path());
    let tee = folder.path().join("tee");
    let relay = Process::words(
        "relay --from tcp://127.0.0.1:* --to",
        &[&folder.ipc("nobody"), "--tee", tee.to_str().unwrap()],
    );
    send_to(&relay.bound(), &[&small]);
    let saved = tee.join("message000000.bundle");
    within(PATIENCE, "a message", || saved.exists().then_some(()));
    signal("INT", relay.id());
    let (code, _, notes) = relay.end();
    assert_eq!(code, Some(130), "{notes:?}");
    assert_eq!(
        notes[1..],
        ["one more message came, which could not be passed on"]
    );
}

/// What is passed on when the receiver comes late, or comes back, is all there.
#[test]
fn a_relay_waits_for_a_receiver_and_loses_nothing() {
    for transport in TRANSPORTS {
        let folder = folder();
        let small = write_small(folder.path());
        let to = folder.ipc("to");
        let relay = Process::words(
            &format!(
                "relay --timeout 60 --count 5 --to-transport {transport} --from tcp://127.0.0.1:* --to"
            ),
            &[&to],
        );
        let from = relay.bound();
        send_to(&from, &["--count", "5", &small]);
        let receiver = Process::words(
            &format!("recv --timeout 60 --count 5 --json --transport {transport} --bind"),
            &[&to],
        );
        receiver.bound();
        relay.succeeded(transport);
        assert_eq!(receiver.succeeded(transport).len(), 5, "{transport}");
    }
}

/// Who asks next gets the reply to what it asked.
#[test]
fn a_reply_that_comes_too_late_is_not_taken_for_another() {
    let mut server = Context::new().router().bind("tcp://127.0.0.1:*").unwrap();
    let relay = Process::words(
        "relay --timeout 8 --count 2 --pattern rep --from tcp://127.0.0.1:* --to",
        &[server.endpoint()],
    );
    let from = relay.bound();
    let folder = folder();
    let ask = |number: usize| {
        let metadata =
            format!("{{\"tensor_descriptors\":[],\"scalar_fields\":{{\"number\":{number}}}}}");
        let path = write_bundle(
            folder.path(),
            &format!("{number}.bundle"),
            &[metadata.into_bytes()],
        );
        Process::words(
            "send --json --pattern req --timeout 60 --connect",
            &[&from, path.to_str().unwrap()],
        )
    };
    let (mut first, mut second) = (Routed::default(), Routed::default());
    let patience = Wait::UpTo(PATIENCE);
    let unanswered = ask(1);
    server.recv_frames(&mut first, patience).unwrap();
    relay.said("no reply from ");
    // The relay has gone on, and its next request is under way.
    let answered = ask(2);
    server.recv_frames(&mut second, patience).unwrap();
    for request in [&first, &second] {
        let frames: Vec<&[u8]> = request.frames().iter().map(AsRef::as_ref).collect();
        // Who asked first may be known to be gone.
        let _ = server.to(request.envelope()).send_frames(&frames, patience);
    }
    let lines = answered.succeeded("send");
    assert!(
        lines[0].contains(r#""scalar_fields":{"number":2}"#),
        "{lines:?}"
    );
    relay.succeeded("relay");
    signal("INT", unanswered.id());
    assert_eq!(unanswered.end().0, Some(130));
}

#[test]
fn a_message_that_cannot_be_saved_leaves_no_part_of_it() {
    let folder = folder();
    let large = write_large(folder.path(), MIB);
    let small = write_small(folder.path());
    let saved = folder.path().join("saved");
    // No file may have more than some KiB, as where a disk is full.
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -f 64; trap '' XFSZ; exec \"$0\" \"$@\""]);
    let arguments = "recv --json --bind tcp://127.0.0.1:* --timeout 60 --save";
    let tool = command(arguments.split(' ').chain(saved.to_str()));
    limited.arg(tool.get_program()).args(tool.get_args());
    limited.stdin(Stdio::null());
    let receiver = Process::spawn(limited);
    let endpoint = receiver.bound();
    send_to(&endpoint, &[&small, &large]);
    let (code, lines, notes) = receiver.end();
    assert_eq!((code, lines.len()), (Some(1), 1), "{notes:?}");
    assert!(notes[0].starts_with("received 2 messages, "), "{notes:?}");
    assert!(
        notes[1].contains("message000001.bundle: File too large"),
        "{notes:?}"
    );
    let names: Vec<_> = fs::read_dir(&saved).unwrap().collect();
    assert_eq!(names.len(), 1);
    assert_eq!(read_bundle(&saved.join("message000000.bundle")).len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_files_is_told_before_a_message_comes() {
    for arguments in [
        "recv --bind tcp://127.0.0.1:* --save /proc",
        "relay --from tcp://127.0.0.1:* --to tcp://127.0.0.1:1 --tee /proc",
    ] {
        let output = run(arguments.split(' '));
        assert_eq!(output.status.code(), Some(1));
        let says = text(&output.stderr);
        assert!(says.starts_with("error: cannot write to /proc: "), "{says}");
    }
}

#[test]
fn a_message_that_the_transport_refuses_is_one_json_object_too() {
    let folder = folder();
    let many = write_bundle(folder.path(), "many.bundle", &vec![Vec::new(); 5000]);
    let small = write_small(folder.path());
    let (receiver, endpoint) = Process::receiver("--json --count 1 --timeout 60", &[]);
    send_to(&endpoint, &[many.to_str().unwrap(), &small]);
    let (code, lines, notes) = receiver.end();
    assert_eq!((code, lines.len()), (Some(2), 2), "{notes:?}");
    assert_eq!(
        lines[0],
        r#"{"kind":"error","error":"CapExceeded","offset":0,"message":"message of 5000 frames, at most 4097 allowed"}"#
    );
    assert!(lines[1].starts_with(r#"{"kind":"tensors""#), "{lines:?}");
}

/// A reader that does not read holds up the first Ctrl-C, but not the second.
#[test]
fn ctrl_c_twice_ends_a_receiver_whose_output_nobody_reads() {
    let folder = folder();
    // More than any pipe holds.
    let scalars = format!("[{}0]", "12345678,".repeat(60_000));
    let metadata = format!(r#"{{"tensor_descriptors":[],"scalar_fields":{{"l":{scalars}}}}}"#);
    let bundle = write_bundle(folder.path(), "l.bundle", &[metadata.into_bytes()]);
    let endpoint = folder.ipc("socket");
    let mut receiver = command(["recv", "--json", "--bind", &endpoint]);
    receiver.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut receiver = receiver.spawn().unwrap();
    send_to(&endpoint, &[bundle.to_str().unwrap()]);
    let mut pipe = receiver.stdout.take().unwrap();
    pipe.read_exact(&mut [0]).unwrap();
    within(PATIENCE, "its end", || {
        signal("INT", receiver.id());
        gone(receiver.id()).then_some(())
    });
    assert_eq!(receiver.wait().unwrap().code(), Some(130));
}
