//! A raw NNG peer in Python (pynng) and this crate exchange messages, both ways.
//!
//! The peer writes and reads bundles by code of its own, after the documentation.
//! `tests/interop/setup.sh` gets what it needs and names it in two variables;
//! without them the tests say so in a line that begins with `SKIP`, and pass.

#![cfg(all(feature = "nng", unix))]

#[path = "common/peer.rs"]
mod peer;

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use peer::Peer;
use tensorwire::transport::nng::{Context, Message};
use tensorwire::transport::{Frames, RecvFrames, SendFrames};

#[test]
fn a_raw_peer_in_python_reads_and_writes_our_messages_over_tcp() {
    exchange(["tcp://127.0.0.1:0"; 3].map(str::to_owned));
}

#[test]
fn a_raw_peer_in_python_reads_and_writes_our_messages_over_ipc() {
    let endpoint = |name: &str| {
        let name = format!("tensorwire-pynng-{}-{name}", std::process::id());
        format!("ipc://{}", std::env::temp_dir().join(name).display())
    };
    exchange(["in", "out", "request"].map(endpoint));
}

fn exchange([there, back, asked]: [String; 3]) {
    let Some((python, modules)) = python() else {
        return;
    };
    let context = Context::new();
    let push = context.push().send_timeout(Some(PATIENCE));
    let mut push = push.linger(Duration::from_secs(1)).listen(&there).unwrap();
    let pull = context.pull().recv_timeout(Some(PATIENCE));
    let mut pull = pull.listen(&back).unwrap();
    let reply = context.reply().recv_timeout(Some(PATIENCE));
    let mut reply = reply.listen(&asked).unwrap();
    let child = Command::new(python)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/interop/nng_peer.py"
        ))
        .arg(PATIENCE.as_millis().to_string())
        .args([push.endpoint(), pull.endpoint(), reply.endpoint()])
        .env("PYTHONPATH", modules)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut peer = Peer(child);

    let mut message = Message::default();
    // From Python: pushed, and asked.
    for (number, expected) in theirs().into_iter().enumerate() {
        reply.recv_into(&mut message).unwrap();
        assert!(copied(&message) == expected, "request {number}");
        let reversed: Vec<&[u8]> = expected.iter().rev().map(Vec::as_slice).collect();
        reply.send(&reversed).unwrap();
        pull.recv_into(&mut message).unwrap();
        assert!(copied(&message) == expected, "message {number}");
    }
    // To Python and back.
    for (number, frames) in ours().into_iter().enumerate() {
        let lent: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        push.send(&lent).unwrap();
        pull.recv_into(&mut message).unwrap();
        assert!(copied(&message) == frames, "message {number}");
    }
    push.send(&[b"stop"]).unwrap();
    assert_eq!(copied(&pull.recv().unwrap()), [b"stop"]);
    push.send(&[b"stopped"]).unwrap();
    peer.finish(PATIENCE);
}

/// What the peer sends: `own` of the script.
fn theirs() -> Vec<Vec<Vec<u8>>> {
    let bytes: Vec<u8> = (0..=255).collect();
    vec![
        vec![b"metadata".to_vec()],
        vec![vec![]],
        vec![vec![]; 3],
        vec![
            br#"{"tensor_descriptors":[]}"#.to_vec(),
            bytes.repeat(40),
            vec![],
            vec![0xff; 63],
            vec![1; 64],
            vec![2; 65],
        ],
        (0..200)
            .map(|index| vec![(index % 251) as u8; index])
            .collect(),
        vec![b"large".to_vec(), vec![0x5a; 3 << 20]],
    ]
}

fn ours() -> Vec<Vec<Vec<u8>>> {
    let mut messages = theirs();
    for len in (0..130).chain([4096, 65_535, 65_536, 8 << 20]) {
        messages.push(vec![
            b"head".to_vec(),
            vec![len as u8; len],
            b"tail".to_vec(),
        ]);
    }
    messages.push(vec![b"x".to_vec(); 4096]);
    messages
}

fn copied(message: &Message) -> Vec<Vec<u8>> {
    let frames = message.frames().iter();
    frames.map(|frame| frame.as_ref().to_vec()).collect()
}

/// The interpreter, and where it finds pynng; `None`, said aloud, if `setup.sh` was not run or
/// found nothing.
fn python() -> Option<(OsString, OsString)> {
    let interpreter = std::env::var_os("TENSORWIRE_PYTHON");
    let modules = std::env::var_os("TENSORWIRE_PYNNG");
    let both = interpreter.zip(modules);
    if both.is_none() {
        let reason =
            "TENSORWIRE_PYTHON and TENSORWIRE_PYNNG are not set, see tests/interop/setup.sh";
        // Not `eprintln!`, which the harness captures.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIP: interop with pynng: {reason}").unwrap();
    }
    both
}

/// How long any one thing may take; the start of Python is the slowest.
const PATIENCE: Duration = Duration::from_secs(30);
