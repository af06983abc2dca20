//! The tool and a Python peer, over sockets.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::common::{frames, hex, lines};
use crate::support::{Process, folder, read_bundle, run, text, write_bundle};

/// An interpreter that has pyzmq; `None`, said aloud, where there is none.
fn python() -> Option<String> {
    let python = std::env::var("TENSORWIRE_PYTHON").ok();
    if python.is_none() {
        // Not `eprintln!`, which the harness captures.
        let mut stderr = std::io::stderr();
        let reason = "TENSORWIRE_PYTHON is not set, see tests/interop/setup.sh";
        writeln!(stderr, "SKIP: the tool and a Python peer: {reason}").unwrap();
    }
    python
}

/// A Python peer at work, and the endpoint that it has.
fn peer(python: &str, arguments: &[&str], messages: &[Vec<Vec<u8>>]) -> (Process, String) {
    // Through a file: a pipe would have to be written while its output is read.
    let folder = folder();
    let path = folder.path().join("messages");
    let digits = |frame: &Vec<u8>| {
        let digits: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        serde_json::Value::from(digits)
    };
    let line =
        |frames: &Vec<Vec<u8>>| serde_json::Value::from_iter(frames.iter().map(digits)).to_string();
    let text: Vec<_> = messages.iter().map(line).collect();
    fs::write(&path, text.join("\n")).unwrap();
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/peer.py"));
    command.args(arguments);
    command.stdin(Stdio::from(fs::File::open(&path).unwrap()));
    let process = Process::spawn(command);
    let ready = process.line();
    let endpoint = ready
        .strip_prefix("READY ")
        .unwrap_or_else(|| panic!("{ready}"));
    let endpoint = endpoint.to_owned();
    (process, endpoint)
}

/// The messages that a peer printed.
fn came(lines: &[String]) -> Vec<Vec<Vec<u8>>> {
    let frames = |line: &String| {
        let frames: Vec<String> = serde_json::from_str(line).unwrap();
        frames.iter().map(|frame| hex(frame)).collect()
    };
    lines.iter().map(frames).collect()
}

/// Messages of every kind: tensors, control, and one that is malformed.
fn messages() -> Vec<Vec<Vec<u8>>> {
    let tensors = lines("tensors.jsonl");
    let mut messages: Vec<_> = tensors.iter().step_by(23).map(frames).collect();
    messages.push(frames(&lines("transfer.jsonl")[0]));
    messages
}

/// What `inspect --json` says of each.
fn inspected(messages: &[Vec<Vec<u8>>]) -> Vec<String> {
    let folder = folder();
    let inspect = |message: &Vec<Vec<u8>>| {
        let bundle = write_bundle(folder.path(), "m.bundle", message);
        let output = run(["inspect", "--json", "--bundle", bundle.to_str().unwrap()]);
        text(&output.stdout).trim_end().to_owned()
    };
    messages.iter().map(inspect).collect()
}

#[test]
fn what_python_pushes_publishes_or_requests_is_printed_and_saved() {
    let Some(python) = python() else { return };
    let messages = messages();
    let expected = inspected(&messages);
    let count = messages.len().to_string();
    for (theirs, ours) in [
        ("push", "pull"),
        ("pub", "sub"),
        ("req", "rep"),
        ("pair", "pair"),
    ] {
        let folder = folder();
        let saved = folder.path().join("saved");
        let save = saved.to_str().unwrap();
        let options = format!("--json --pattern {ours} --count {count} --timeout 60 --save");
        // The publisher binds, so that the subscriber is there when it starts.
        let (tool, peer) = if theirs == "pub" {
            let (peer, endpoint) = peer(&python, &[theirs, "bind", "tcp://127.0.0.1:*"], &messages);
            let tool = Process::words(&format!("recv --connect {endpoint} {options}"), &[save]);
            (tool, peer)
        } else {
            let (tool, endpoint) = Process::receiver(&options, &[save]);
            let (peer, _) = peer(&python, &[theirs, "connect", &endpoint], &messages);
            (tool, peer)
        };
        let (code, printed, notes) = tool.end();
        assert_eq!(code, Some(0), "{ours}: {notes:?}");
        assert_eq!(printed, expected, "{ours}");
        assert!(
            notes
                .last()
                .unwrap()
                .starts_with(&format!("received {count} messages, ")),
            "{notes:?}"
        );
        for (index, message) in messages.iter().enumerate() {
            let bundle = saved.join(format!("message{index:06}.bundle"));
            assert!(read_bundle(&bundle) == *message, "{ours} {index}");
        }
        if theirs == "req" {
            let (code, replies, _) = peer.end();
            let replies = came(&replies);
            assert_eq!((code, replies.len()), (Some(0), messages.len()));
            assert!(
                replies.iter().all(|reply| reply
                    == &[b"{\"tensor_descriptors\":[],\"scalar_fields\":{}}".to_vec()])
            );
        }
    }
}

#[test]
fn what_is_sent_reaches_python_byte_for_byte() {
    let Some(python) = python() else { return };
    let messages = messages();
    let folder = folder();
    let files: Vec<_> = messages
        .iter()
        .enumerate()
        .map(|(index, message)| {
            let bundle = write_bundle(folder.path(), &format!("{index}.bundle"), message);
            bundle.to_str().unwrap().to_owned()
        })
        .collect();
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let count = messages.len().to_string();
    for (ours, theirs) in [("push", "pull"), ("pub", "sub"), ("req", "rep")] {
        let (peer, endpoint) = peer(&python, &[theirs, "bind", "tcp://127.0.0.1:*", &count], &[]);
        let sender = Process::words(
            &format!("send --json --connect {endpoint} --pattern {ours}"),
            &files,
        );
        let (code, printed, notes) = sender.end();
        assert_eq!(code, Some(0), "{ours}: {notes:?}");
        assert!(
            notes
                .last()
                .unwrap()
                .starts_with(&format!("sent {count} messages, ")),
            "{notes:?}"
        );
        assert!(came(&peer.succeeded(ours)) == messages, "{ours}");
        if ours == "req" {
            assert_eq!(printed, inspected(&messages));
        } else {
            assert!(printed.is_empty());
        }
    }
}

#[test]
fn a_relay_between_two_python_peers_changes_nothing_and_records_all() {
    let Some(python) = python() else { return };
    let mut messages = messages();
    // What is no message of ours goes through as well: work for an encoder.
    messages.push(vec![b"r1".to_vec(), b"\x80\x04]\x94.".to_vec()]);
    let count = messages.len().to_string();
    let folder = folder();
    let tee = folder.path().join("tee");
    let (pull, to) = peer(&python, &["pull", "bind", "tcp://127.0.0.1:*", &count], &[]);
    let relay = Process::words(
        &format!("relay --from tcp://127.0.0.1:* --to {to} --count {count} --timeout 60 --tee"),
        &[tee.to_str().unwrap()],
    );
    let from = relay.bound();
    let (push, _) = peer(&python, &["push", "connect", &from], &messages);
    push.succeeded("push");
    assert_eq!(relay.succeeded("relay").len(), 0);
    assert!(came(&pull.succeeded("pull")) == messages);
    for (index, message) in messages.iter().enumerate() {
        assert!(read_bundle(&tee.join(format!("message{index:06}.bundle"))) == *message);
    }
}

#[test]
fn a_relay_takes_the_replies_of_python_back() {
    let Some(python) = python() else { return };
    let messages = messages();
    let count = messages.len().to_string();
    let folder = folder();
    let tee = folder.path().join("tee");
    let (rep, to) = peer(&python, &["rep", "bind", "tcp://127.0.0.1:*", &count], &[]);
    let relay = Process::words(
        &format!("relay --pattern rep --from tcp://127.0.0.1:* --to {to} --tee"),
        &[tee.to_str().unwrap()],
    );
    let (req, _) = peer(&python, &["req", "connect", &relay.bound()], &messages);
    assert!(came(&req.succeeded("req")) == messages);
    assert!(came(&rep.end().1) == messages);
    assert_eq!(fs::read_dir(&tee).unwrap().count(), messages.len() * 2);
    crate::processes::signal("INT", relay.id());
    let (code, _, notes) = relay.end();
    assert_eq!(code, Some(130), "{notes:?}");
}

#[test]
fn a_relay_between_a_pair_goes_both_ways() {
    let Some(python) = python() else { return };
    let ours = messages();
    let mut theirs = messages();
    theirs.reverse();
    let (right, to) = peer(&python, &["pair", "bind", "tcp://127.0.0.1:*"], &theirs);
    let relay = Process::words(
        &format!(
            "relay --pattern pair --from tcp://127.0.0.1:* --to {to} --timeout 60 --count {}",
            ours.len() * 2
        ),
        &[],
    );
    let (left, _) = peer(&python, &["pair", "connect", &relay.bound()], &ours);
    assert!(came(&left.succeeded("left")) == theirs);
    assert!(came(&right.succeeded("right")) == ours);
    relay.succeeded("relay");
}
