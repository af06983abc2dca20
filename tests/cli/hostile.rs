//! Malformed messages: exit code 2, one line that says what and where, and never a panic.

use std::process::Output;

use crate::common::hostile::{CASES, Verdict, message, verdict};
use crate::common::lines;
use crate::support::{folder, run, run_on, text, write_frames};

/// Asserts that the message was refused, and gives kind and offset.
fn refused(output: &Output) -> (String, u64) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.matches('\n').count(), 1, "{stderr}");
    assert!(stderr.starts_with("error: malformed message: "), "{stderr}");
    assert!(stderr.chars().all(|c| c == '\n' || !c.is_control()));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let members = object.as_object().unwrap();
    assert_eq!((members.len(), &object["kind"]), (4, &"error".into()));
    let (kind, message) = (
        object["error"].as_str().unwrap(),
        object["message"].as_str().unwrap(),
    );
    assert!(
        stderr.contains(kind) && stderr.contains(message),
        "{stderr}"
    );
    (kind.to_owned(), object["offset"].as_u64().unwrap())
}

#[test]
fn every_hostile_message_gets_the_exit_code_of_its_verdict() {
    let folder = folder();
    let cases = lines("hostile.jsonl");
    assert_eq!(cases.len(), CASES.len());
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let files = write_frames(folder.path(), &message(case));
        let mut arguments = vec!["inspect".as_ref(), "--json".as_ref()];
        arguments.extend(files.iter().map(|file| file.as_os_str()));
        let output = run(&arguments);
        // Control messages are shown, and this one lacks all its keys.
        if id == "E49" {
            assert_eq!(refused(&output), ("MissingKey".into(), 0));
            continue;
        }
        match verdict(&[], id) {
            Verdict::Accept => assert_eq!(output.status.code(), Some(0), "{id}"),
            Verdict::Reject(kind, offset, _) => {
                let name = format!("{kind:?}");
                let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap();
                assert_eq!(refused(&output), (name.to_owned(), offset as u64), "{id}");
                arguments[0] = "reencode".as_ref();
                arguments[1] = "--out=/nonexistent/never".as_ref();
                assert_eq!(run(&arguments).status.code(), Some(2), "{id}");
            }
        }
    }
}

/// (name, bytes, kind, offset)
const BUNDLES: &[(&str, &[u8], &str, u64)] = &[
    ("nothing", b"", "Truncated", 0),
    (
        "other magic",
        b"TWBUNDLX\x01\0\0\0\x01\0\0\0\x18\0\0\0\0\0\0\0",
        "BadMagic",
        7,
    ),
    (
        "version 2",
        b"TWBUNDLE\x02\0\0\0\x01\0\0\0\x18\0\0\0\0\0\0\0",
        "UnknownVersion",
        8,
    ),
    (
        "no frames",
        b"TWBUNDLE\x01\0\0\0\0\0\0\0\x18\0\0\0\0\0\0\0",
        "NoFrames",
        12,
    ),
    (
        "endless frames",
        b"TWBUNDLE\x01\0\0\0\xff\xff\xff\xff\x18\0\0\0\0\0\0\0",
        "FrameCount",
        12,
    ),
];

#[test]
fn a_bundle_that_is_none_is_refused_at_its_byte() {
    for &(name, bytes, kind, offset) in BUNDLES {
        let output = run_on(bytes, &["inspect", "--json", "-"]);
        let (found, at) = refused(&output);
        assert_eq!(
            (found.as_str(), at),
            (kind, offset),
            "{name}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn no_byte_of_a_bundle_makes_the_tool_panic() {
    let frames: [&[u8]; 2] = [
        br#"{"tensor_descriptors":[{"field_name":"x","shape":[2],"dtype":"int8"}],"scalar_fields":{"a":[1]}}"#,
        &[1, 2],
    ];
    let bundle = tensorwire::bundle::encode_to_vec(&frames).unwrap();
    let (mut taken, mut refused) = (0, 0);
    for at in 0..bundle.len() {
        let mut changed = bundle.clone();
        changed[at] ^= if at % 2 == 0 { 0x01 } else { 0x80 };
        let output = run_on(&changed, &["inspect", "--stats", "-"]);
        match output.status.code() {
            Some(0) => taken += 1,
            Some(2) => refused += 1,
            code => panic!("{at}: {code:?} {}", text(&output.stderr)),
        }
    }
    assert!(taken > 2 && refused > 100, "{taken} {refused}");
}
