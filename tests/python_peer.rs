//! A peer of numpy and pyzmq alone talks to a Rust service, and is one.
//!
//! `tests/interop/setup.sh` finds an interpreter that has both, and names it in `TENSORWIRE_PYTHON`;
//! without it the tests say so in a line that begins with `SKIP`, and pass.

#![cfg(all(feature = "zmq", unix))]

#[path = "common/peer.rs"]
mod peer;
#[path = "common/processes.rs"]
mod processes;

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use tensorwire::message::{Scalar, encode_to_vec, frames};
use tensorwire::transport::{Frames, RecvFrames, SendFrames, zmq};
use tensorwire::{DType, Decoder, Descriptor, TensorView};

use peer::Peer;

/// The scripts, which users start from.
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/python/peer.py");
const SERVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/python/serve.py");

/// No wait is longer.
const PATIENCE: Duration = Duration::from_secs(60);

fn python() -> Option<OsString> {
    let interpreter = std::env::var_os("TENSORWIRE_PYTHON");
    if interpreter.is_none() {
        let reason = "TENSORWIRE_PYTHON is not set, see tests/interop/setup.sh";
        // Not `eprintln!`, which the harness captures.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIP: a peer in Python: {reason}").unwrap();
    }
    interpreter
}

/// The ends of a service: what it takes work from, and where it sends answers.
struct Service {
    pull: zmq::Socket<zmq::Pull>,
    push: zmq::Socket<zmq::Push>,
    received: zmq::Message,
    decoder: Decoder,
}

impl Service {
    fn new() -> Self {
        let context = zmq::Context::new();
        let pull = context.pull().recv_timeout(Some(PATIENCE));
        let push = context.push().send_timeout(Some(PATIENCE));
        Self {
            pull: pull.bind("tcp://127.0.0.1:*").unwrap(),
            push: push.bind("tcp://127.0.0.1:*").unwrap(),
            received: zmq::Message::default(),
            decoder: Decoder::new(),
        }
    }

    /// Starts a script with its two endpoints in this order.
    fn peer(&self, python: OsString, script: &str, endpoints: [&str; 2]) -> Peer {
        let mut command = Command::new(python);
        command.arg(script).args(endpoints);
        Peer(command.stdin(Stdio::null()).spawn().unwrap())
    }
}

/// What ends a peer that serves.
const STOP: &[u8] = br#"{"tensor_descriptors":[],"scalar_fields":{"stop":true}}"#;

/// A tensor of each dtype, none, a scalar, an empty one, and a list with holes.
fn sent() -> Vec<(Descriptor<'static>, Vec<u8>)> {
    let shape: &[usize] = &[2, 3];
    let plain = DType::ALL.iter().map(|&dtype| {
        let len = 6 * dtype.size();
        let bytes = (0..len).map(|index| match dtype {
            DType::Bool => (index % 2) as u8,
            // No exponent of all ones: numpy may change the bits of a NaN.
            _ => (index * 7 % 64) as u8,
        });
        (
            Descriptor::new(dtype.name(), dtype, shape).unwrap(),
            bytes.collect(),
        )
    });
    let float32 = |value: f32| value.to_le_bytes().to_vec();
    let scalar = Descriptor::new("scalar", DType::Float32, &[]).unwrap();
    let empty = Descriptor::new("empty", DType::Float64, &[0, 4]).unwrap();
    let member = Descriptor::new("caf\u{e9}", DType::Float32, &[1]).unwrap();
    let others = [
        (scalar, float32(1.5)),
        (empty, Vec::new()),
        (member.with_list_index(1), float32(-0.25)),
        (member.with_list_index(4), float32(1e9)),
    ];
    plain.chain(others).collect()
}

#[test]
fn a_service_in_python_answers() {
    let Some(python) = python() else { return };
    let mut service = Service::new();
    let endpoints = [service.push.endpoint(), service.pull.endpoint()];
    let mut peer = service.peer(python, SERVE, endpoints);

    let sent = sent();
    let views = sent
        .iter()
        .map(|(descriptor, bytes)| TensorView::new(*descriptor, bytes));
    let views: Vec<_> = views.map(Result::unwrap).collect();
    let scalars = [
        ("request_id", Scalar::from("caf\u{e9}")),
        ("guidance_scale", Scalar::from(7.5)),
        ("huge", Scalar::from(u128::MAX)),
        ("nothing", Scalar::Float(f64::INFINITY)),
    ];
    let metadata = encode_to_vec(&views, &scalars).unwrap();
    // Twice: a peer that answers goes on answering.
    for _ in 0..2 {
        service.push.send(&frames(&metadata, &views)).unwrap();
        service.pull.recv_into(&mut service.received).unwrap();
        let frames = service.received.frames();
        // Byte for byte what this side writes.
        let text = str::from_utf8(frames[0].as_ref());
        assert_eq!(text, str::from_utf8(&metadata));
        let message = service.decoder.decode(frames).unwrap();
        assert_eq!(message.len(), sent.len());
        for (answer, view) in message.tensors().zip(&views) {
            match view.dtype() {
                DType::Float32 if view.list_index().is_none() => {
                    let doubled = view.elements::<f32>().unwrap().map(|value| value * 2.0);
                    assert!(answer.elements::<f32>().unwrap().eq(doubled), "{answer:?}");
                }
                DType::Float64 => {
                    let doubled = view.elements::<f64>().unwrap().map(|value| value * 2.0);
                    assert!(answer.elements::<f64>().unwrap().eq(doubled), "{answer:?}");
                }
                _ => assert_eq!(answer.bytes(), view.bytes(), "{answer:?}"),
            }
        }
        assert_eq!(message.list("caf\u{e9}").unwrap().len(), 5);
    }

    service.push.send(&[STOP]).unwrap();
    peer.finish(PATIENCE);
}

#[test]
fn a_client_in_python_is_answered() {
    let Some(python) = python() else { return };
    let mut service = Service::new();
    let endpoints = [service.pull.endpoint(), service.push.endpoint()];
    let mut peer = service.peer(python, PEER, endpoints);

    service.pull.recv_into(&mut service.received).unwrap();
    let message = service.decoder.decode(service.received.frames()).unwrap();
    assert_eq!(message.scalars().field("seed").unwrap().as_i64(), Ok(42));
    let latents = message.tensor("latents").unwrap();
    assert!(
        latents
            .elements::<f32>()
            .unwrap()
            .eq([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    );
    let masks = message.list("masks").unwrap();
    assert_eq!((masks.len(), masks.present_len()), (3, 2));

    let doubled: Vec<f32> = latents
        .elements::<f32>()
        .unwrap()
        .map(|value| value * 2.0)
        .collect();
    let shape: Vec<usize> = latents.dims().collect();
    let latents = TensorView::from_slice("latents", shape.as_slice(), &doubled).unwrap();
    let masks = masks.present().map(|(_, mask)| mask);
    let answer: Vec<_> = [latents].into_iter().chain(masks).collect();
    let metadata = encode_to_vec(&answer, &message.scalars()).unwrap();
    service.push.send(&frames(&metadata, &answer)).unwrap();
    // It has looked at the answer, and found it right.
    peer.finish(PATIENCE);
}

/// Descriptors of a message of one payload of four bytes, and what is wrong with them.
const BAD: &[(&str, &str)] = &[
    ("no JSON", "{"),
    ("no object", r#"{"field_name":"x""#),
    ("a frame too many", ""),
    (
        "another length",
        r#"{"field_name":"x","shape":[2],"dtype":"float32"}"#,
    ),
    (
        "a length to guess",
        r#"{"field_name":"x","shape":[-1],"dtype":"float32"}"#,
    ),
    (
        "a dtype of numpy's own",
        r#"{"field_name":"x","shape":[1],"dtype":"V4"}"#,
    ),
    ("no shape", r#"{"field_name":"x","dtype":"float32"}"#),
    (
        "a long list",
        r#"{"field_name":"x","shape":[4],"dtype":"int8","list_index":1000000000}"#,
    ),
    (
        "before the list",
        r#"{"field_name":"x","shape":[4],"dtype":"int8","list_index":-2}"#,
    ),
];

#[test]
fn a_service_in_python_outlives_what_is_no_message() {
    let Some(python) = python() else { return };
    let mut service = Service::new();
    let endpoints = [service.push.endpoint(), service.pull.endpoint()];
    let mut peer = service.peer(python, SERVE, endpoints);
    let mut is_refused = |metadata: &str, payloads: usize| {
        let payloads = std::iter::repeat_n(&b"abcd"[..], payloads);
        let sent: Vec<_> = [metadata.as_bytes()].into_iter().chain(payloads).collect();
        service.push.send(&sent).unwrap();
        service.pull.recv_into(&mut service.received).unwrap();
        let answer = service.decoder.decode(service.received.frames()).unwrap();
        answer.is_empty() && answer.scalars().field("_disagg_error").is_ok()
    };
    for (what, descriptors) in BAD {
        let metadata = format!(r#"{{"tensor_descriptors":[{descriptors}],"scalar_fields":{{}}}}"#);
        assert!(is_refused(&metadata, 1), "{what}");
    }
    // As the plain tensor of a name, as a member of its list, and as another plain one.
    let member = |index: i32| {
        format!(r#"{{"field_name":"x","shape":[4],"dtype":"int8","list_index":{index}}}"#)
    };
    for indices in [[-1, 0], [0, -1], [-1, -1]] {
        let [first, second] = indices.map(member);
        let metadata = format!(r#"{{"tensor_descriptors":[{first},{second}]}}"#);
        assert!(is_refused(&metadata, 2), "{indices:?}");
    }
    for metadata in ["__transfer__", "[]", r#"{"scalar_fields":{}}"#, ""] {
        assert!(is_refused(metadata, 0), "{metadata}");
    }
    // And what is one is answered after all that.
    let plain = format!(r#"{{"tensor_descriptors":[{}]}}"#, member(-1));
    assert!(!is_refused(&plain, 1));
    service.push.send(&[STOP]).unwrap();
    peer.finish(PATIENCE);
}

/// As a terminal would start it: who runs tests in the background may have interrupts ignored.
const IN_THE_FOREGROUND: &str = "
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
del sys.argv[0]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name='__main__')
";

#[test]
fn an_interrupt_ends_the_service_in_python_without_a_word() {
    let Some(python) = python() else { return };
    let mut service = Service::new();
    let mut command = Command::new(python);
    command.args(["-c", IN_THE_FOREGROUND, SERVE]);
    command.args([service.push.endpoint(), service.pull.endpoint()]);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut peer = Peer(command.spawn().unwrap());
    // It has been through its work once, and waits.
    service.push.send(&[b"{}"]).unwrap();
    service.pull.recv_into(&mut service.received).unwrap();
    processes::signal("INT", peer.0.id());
    peer.finish(PATIENCE);
    let mut said = String::new();
    let mut stderr = peer.0.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn the_scripts_say_how_they_are_called() {
    let Some(python) = python() else { return };
    for (script, usage) in [(PEER, "peer.py OUT IN"), (SERVE, "serve.py IN OUT")] {
        let run = |arguments: &[&str]| {
            let mut command = Command::new(&python);
            command.arg(script).args(arguments).output().unwrap()
        };
        for help in ["-h", "--help"] {
            let output = run(&[help]);
            assert!(output.status.success());
            assert!(processes::text(&output.stdout).contains(usage));
        }
        for wrong in [&[][..], &["ipc://a"], &["ipc://a", "ipc://b", "ipc://c"]] {
            let output = run(wrong);
            assert!(!output.status.success(), "{wrong:?}");
            let said = processes::text(&output.stderr);
            assert!(
                said.contains(usage) && !said.contains("Traceback"),
                "{said}"
            );
        }
    }
}

#[test]
fn the_peer_needs_numpy_and_pyzmq_alone() {
    let mut modules = Vec::new();
    for script in [PEER, SERVE] {
        let script = fs::read_to_string(script).unwrap();
        let words = script
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>());
        modules.extend(words.filter_map(|words| match words[..] {
            ["import" | "from", module, ..] => Some(module.to_owned()),
            _ => None,
        }));
    }
    assert_eq!(
        modules,
        ["json", "sys", "numpy", "zmq", "sys", "zmq", "peer"]
    );
}
