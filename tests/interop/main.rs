//! The real Python codec and this crate exchange messages, over tcp and ipc and in both directions.
//!
//! ```text
//!   peer.py send   ---->  decoded, checked against the digests that Python sent along, encoded again
//!   peer.py recv   <----  every message of `messages`, and Python's account of it is checked
//!   peer.py echo   <--->  what comes back is what was sent
//! ```
//!
//! `setup.sh` gets what the peer needs and names it in two variables; without
//! them the tests say so in a line that begins with `SKIP`, and pass.

#![cfg(all(feature = "zmq", unix))]

#[path = "../common/mod.rs"]
mod common;
mod messages;
#[path = "../common/peer.rs"]
mod peer;
mod process;
mod rebuild;

use std::time::{Duration, Instant};

use serde_json::json;

use common::sha256;
use messages::{Message, Sent};
use process::{Binder, Python, Session, python};
use tensorwire::dtype::Generation;
use tensorwire::message::{Decoder, Field, encode_into, encode_to_vec, encoded_len};
use tensorwire::transport::{Frames, RecvFrames, zmq};
use tensorwire::{DType, TensorView};

#[test]
fn what_python_sends_is_read_and_written_again_over_tcp() {
    if let Some(python) = python() {
        python_to_rust(python, "tcp", Binder::Here);
    }
}

#[test]
fn what_python_sends_is_read_and_written_again_over_ipc() {
    if let Some(python) = python() {
        python_to_rust(python, "ipc", Binder::There);
    }
}

#[test]
fn python_reads_what_is_sent_to_it_over_tcp() {
    if let Some(python) = python() {
        rust_to_python(python, "tcp", Binder::There);
    }
}

#[test]
fn python_reads_what_is_sent_to_it_over_ipc() {
    if let Some(python) = python() {
        rust_to_python(python, "ipc", Binder::Here);
    }
}

#[test]
fn what_python_sends_back_is_what_was_sent_over_tcp() {
    if let Some(python) = python() {
        there_and_back(python, "tcp", Binder::Here);
    }
}

#[test]
fn what_python_sends_back_is_what_was_sent_over_ipc() {
    if let Some(python) = python() {
        there_and_back(python, "ipc", Binder::There);
    }
}

// ---- Python to here ----

fn python_to_rust(python: &Python, scheme: &str, binder: Binder) {
    let names = python.catalogue();
    let started = Instant::now();
    let mut session = Session::start(python, scheme, binder, "send", &[]);
    let mut decoder = Decoder::new();
    let mut received = zmq::Message::default();
    let mut without_parts = Vec::new();
    for (index, name) in names.iter().enumerate() {
        session.pull.recv_into(&mut received).unwrap();
        let frames = received.frames();
        let message = decoder.decode(frames).unwrap();
        let scalars = message.scalars();
        let number = |key: &str| scalars.field(key).unwrap().as_u64().unwrap();
        let catalogue = scalars.field("catalogue").unwrap().as_str().unwrap();
        assert!(catalogue == name.as_str(), "{catalogue} for {name}");
        assert_eq!(number("index"), index as u64, "{name}");
        assert_eq!(number("count"), names.len() as u64, "{name}");
        expect_digests(name, &message);
        expect_tensors(name, &message);

        // Written again: from what was received, and from parts of our own.
        let views: Vec<_> = message.tensors().collect();
        let again = encode_to_vec(&views, &scalars).unwrap();
        expect_text(name, &again, frames[0].as_ref());
        let rebuilt = rebuild::tensors(&views);
        match rebuild::members(scalars) {
            Some(parts) => {
                let again = encode_to_vec(&rebuilt, parts.as_slice()).unwrap();
                expect_text(name, &again, frames[0].as_ref());
            }
            None => without_parts.push(name.as_str()),
        }
    }
    // Of all the messages, one has a key that is no text.
    assert_eq!(without_parts, ["lone-surrogates"]);
    session.finish();
    println!(
        "{scheme}: {} messages in {:?}",
        names.len(),
        started.elapsed()
    );
}

/// Holds every payload, and every hole, against the digests among the scalars.
fn expect_digests<F: AsRef<[u8]>>(name: &str, message: &tensorwire::Message<'_, '_, F>) {
    let digests = message.scalars().field("sha256").unwrap();
    let mut tensors = 0;
    for (field, digests) in digests.as_object().unwrap() {
        let digests: Vec<_> = digests
            .as_array()
            .unwrap()
            .iter()
            .map(|digest| (!digest.is_null()).then(|| digest.as_str().unwrap()))
            .collect();
        let field = field.to_cow().unwrap();
        match message.field(&field).unwrap() {
            Field::Tensor(tensor) => {
                assert_eq!(digests.len(), 1, "{name} {field}");
                assert!(
                    digests[0].unwrap() == sha256(tensor.bytes()).as_str(),
                    "{name} {field}"
                );
                assert_eq!(tensor.list_index(), None, "{name} {field}");
                assert!(message.tensor(&field).is_some() && message.list(&field).is_none());
                tensors += 1;
            }
            Field::List(list) => {
                assert_eq!(list.len(), digests.len(), "{name} {field}");
                for (index, (member, digest)) in list.iter().zip(&digests).enumerate() {
                    let expected = digest.map(|digest| digest.to_cow().unwrap());
                    let actual = member.map(|member| sha256(member.bytes()));
                    assert_eq!(
                        actual.as_deref(),
                        expected.as_deref(),
                        "{name} {field} {index}"
                    );
                    assert_eq!(
                        list.get(index).is_some(),
                        digest.is_some(),
                        "{name} {field} {index}"
                    );
                }
                assert!(message.tensor(&field).is_none() && message.list(&field).is_some());
                tensors += list.present_len();
            }
            _ => panic!("{name} {field}: neither a tensor nor a list"),
        }
    }
    assert_eq!(message.len(), tensors, "{name}");
}

/// Holds dtypes and shapes against what the catalogue says by the name of the message.
fn expect_tensors<F: AsRef<[u8]>>(name: &str, message: &tensorwire::Message<'_, '_, F>) {
    let expect = |field: &str, dtype: DType, shape: &[usize]| {
        let tensor = message.tensor(field).unwrap();
        assert_eq!(tensor.dtype(), dtype, "{name} {field}");
        assert!(tensor.dims().eq(shape.iter().copied()), "{name} {field}");
    };
    if let Some((group, dtype)) = name.split_once('-')
        && let Some(dtype) = DType::from_name(dtype)
    {
        match group {
            "dtype" => expect("latents", dtype, &[2, 3, 5]),
            "scalar" => expect("sigma", dtype, &[]),
            _ => {
                expect("nothing", dtype, &[0]);
                expect("flat", dtype, &[2, 0, 3]);
            }
        }
        return;
    }
    match name {
        "all-dtypes" => {
            let dtypes = python_dtypes();
            assert_eq!(message.len(), dtypes.len());
            dtypes.for_each(|dtype| expect(dtype.name(), dtype, &[7]));
        }
        "rank-10" => expect("deep", DType::UInt8, &[1, 2, 1, 2, 1, 2, 1, 2, 1, 2]),
        "not-contiguous" => {
            expect("transposed", DType::UInt8, &[4, 3]);
            expect("strided", DType::UInt8, &[4, 3]);
        }
        "list-holes" => {
            let list = message.list("embeds").unwrap();
            let shapes: Vec<_> = list
                .present()
                .map(|(i, t)| (i, t.shape().to_array::<1>()))
                .collect();
            assert_eq!(shapes, [(1, Ok([2])), (4, Ok([0]))]);
            assert_eq!(list.len(), 5);
        }
        "list-64" => {
            let list = message.list("steps").unwrap();
            assert_eq!((list.len(), list.present_len()), (64, 64));
            for (index, tensor) in list.present() {
                assert_eq!(tensor.shape().to_array::<2>(), Ok([index % 5, 3]));
            }
        }
        "no-tensors" | "error-reply" | "list-all-holes" => assert!(message.is_empty()),
        "odd-floats" => {
            let float = |key| message.scalars().field(key).unwrap().as_f64().unwrap();
            assert!(float("nan").is_nan());
            assert_eq!(
                (float("inf"), float("-inf")),
                (f64::INFINITY, f64::NEG_INFINITY)
            );
        }
        "many-fields" => assert_eq!(message.len(), 300),
        "video" => expect("output", DType::UInt8, &[1, 3, 81, 480, 832]),
        _ => {}
    }
}

/// The dtypes that the codec of sglang 0.5.23 has.
fn python_dtypes() -> impl ExactSizeIterator<Item = DType> {
    let known = |dtype: &DType| dtype.generation() <= Generation::Complex;
    let dtypes: Vec<_> = DType::ALL.iter().copied().filter(known).collect();
    dtypes.into_iter()
}

// ---- from here to Python ----

fn rust_to_python(python: &Python, scheme: &str, binder: Binder) {
    let sent: Vec<_> = messages::all()
        .iter()
        .chain(messages::unknown_to_python())
        .collect();
    let started = Instant::now();
    // Each twice: its buffers given away, and lent.
    let count = (2 * sent.len() + 1).to_string();
    let mut session = Session::start(python, scheme, binder, "recv", &[&count]);
    for message in &sent {
        let metadata = metadata_of(message);
        session.send_owned(metadata.clone(), message);
        expect_account(message, &session.pull.recv().unwrap());
        session.send_lent(&metadata, message);
        expect_account(message, &session.pull.recv().unwrap());
    }
    // What it refused has not thrown it off.
    let last = sent[0];
    session.send_lent(&metadata_of(last), last);
    expect_account(last, &session.pull.recv().unwrap());
    session.finish();
    println!("{scheme}: {count} messages in {:?}", started.elapsed());
}

/// The metadata of a message, written by each of the encoder's functions.
fn metadata_of(message: &Message) -> Vec<u8> {
    let views = message.views();
    let metadata = message.encode(&views, &message.scalars);
    let mut buffer = vec![0xa5; metadata.len()];
    match &message.scalars {
        Sent::Parts(parts) => {
            assert_eq!(encoded_len(&views, parts.as_slice()), Ok(metadata.len()));
            encode_into(&views, parts.as_slice(), &mut buffer).unwrap();
        }
        Sent::Text(value) => {
            assert_eq!(encoded_len(&views, value), Ok(metadata.len()));
            encode_into(&views, value, &mut buffer).unwrap();
        }
    }
    assert_eq!(buffer, metadata);
    metadata
}

/// Holds Python's account of a message against what it was.
fn expect_account(message: &Message, answer: &zmq::Message) {
    let name = message.name;
    assert_eq!(answer.frames().len(), 3, "{name}");
    let frame = |index| answer.frame(index).unwrap();
    let account: serde_json::Value = serde_json::from_slice(frame(0)).unwrap();
    if let Some(refusal) = &message.refusal {
        assert_eq!(account, json!({"ok": false, "error": refusal}), "{name}");
        assert!(frame(1).is_empty() && frame(2).is_empty(), "{name}");
        return;
    }
    assert_eq!(account["ok"], true, "{name}: {account}");
    assert_eq!(account["tensors"], message.account(), "{name}");
    expect_text(name, frame(1), &message.as_python_writes_it());
    expect_text(name, frame(2), &message.scalars_as_python_writes_them());
}

// ---- to Python and back ----

fn there_and_back(python: &Python, scheme: &str, binder: Binder) {
    let started = Instant::now();
    let mut session = Session::start(python, scheme, binder, "echo", &[]);
    let mut decoder = Decoder::new();
    let mut received = zmq::Message::default();
    let all = messages::all().iter().chain(messages::unknown_to_python());
    for message in all.clone() {
        let name = message.name;
        session.send_owned(metadata_of(message), message);
        session.pull.recv_into(&mut received).unwrap();
        let frames = received.frames();
        let answer = decoder.decode(frames).unwrap();
        if let Some(refusal) = &message.refusal {
            assert!(answer.is_empty(), "{name}");
            let error = answer.scalars().field("_disagg_error").unwrap();
            assert!(error.as_str().unwrap() == refusal.as_str(), "{name}");
            continue;
        }
        expect_text(name, frames[0].as_ref(), &message.as_python_writes_it());
        let expected = message.in_python_order();
        assert_eq!(answer.len(), expected.len(), "{name}");
        for (actual, expected) in answer.tensors().zip(&expected) {
            expect_same(name, &actual, &expected.view());
        }
        // And once more from what came back.
        let views: Vec<_> = answer.tensors().collect();
        let again = encode_to_vec(&views, &answer.scalars()).unwrap();
        expect_text(name, &again, frames[0].as_ref());
    }
    let stop = messages::stop();
    session.send_lent(&metadata_of(&stop), &stop);
    session.finish();
    println!(
        "{scheme}: {} messages in {:?}",
        all.count(),
        started.elapsed()
    );
}

fn expect_same(name: &str, actual: &TensorView<'_>, expected: &TensorView<'_>) {
    let field = expected.name();
    assert_eq!(actual.name(), field, "{name}");
    assert_eq!(actual.list_index(), expected.list_index(), "{name} {field}");
    assert_eq!(actual.dtype(), expected.dtype(), "{name} {field}");
    assert!(actual.dims().eq(expected.dims()), "{name} {field}");
    // Not `assert_eq`: 97 MB make no message.
    assert!(actual.bytes() == expected.bytes(), "{name} {field}");
}

/// Shows as text what differs: it is ASCII, if all is well.
fn expect_text(name: &str, actual: &[u8], expected: &[u8]) {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    assert_eq!(text(actual), text(expected), "{name}");
}

/// How long any one thing may take; the start of Python, with torch, is the slowest.
const PATIENCE: Duration = Duration::from_secs(60);
