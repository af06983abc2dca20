//! The tool at both ends: every pattern, over every transport of this build.

use std::fs;
use std::path::Path;

use crate::processes::signal;
use crate::support::{Process, TRANSPORTS, folder, read_bundle, send_to, write_bundle};

/// A message of two tensors, one of them large, whose scalars say its number.
fn message(number: usize) -> Vec<Vec<u8>> {
    let metadata = format!(
        "{{\"tensor_descriptors\":[{{\"field_name\":\"a\",\"shape\":[2],\"dtype\":\"int8\",\"list_index\":-1}},\
         {{\"field_name\":\"b\",\"shape\":[100000],\"dtype\":\"uint8\",\"list_index\":-1}}],\"scalar_fields\":{{\n\"number\":{number}}}}}"
    );
    vec![metadata.into_bytes(), vec![1, 2], vec![7; 100_000]]
}

/// The numbers that were printed, in order.
fn numbers(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        object["scalar_fields"]["number"].as_u64().unwrap()
    };
    lines.iter().map(number).collect()
}

/// Such a message in a file.
fn write_message(folder: &Path, number: usize) -> String {
    let bundle = write_bundle(folder, &format!("{number}.bundle"), &message(number));
    bundle.to_str().unwrap().to_owned()
}

#[test]
fn what_one_sends_the_other_receives_in_order() {
    let folder = folder();
    let files: Vec<_> = (0..3)
        .map(|number| write_message(folder.path(), number))
        .collect();
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    for &transport in TRANSPORTS {
        for (sends, receives) in [("push", "pull"), ("pair", "pair"), ("req", "rep")] {
            let case = format!("{transport} {sends}");
            let options = format!("--json --count 7 --transport {transport} --pattern");
            let (receiver, endpoint) =
                Process::receiver(&format!("--timeout 60 {options} {receives}"), &[]);
            let sender = Process::words(
                &format!("send --connect {endpoint} {options} {sends}"),
                &files,
            );
            let replies = sender.succeeded(&case);
            let lines = receiver.succeeded(&case);
            assert_eq!(numbers(&lines), [0, 1, 2, 0, 1, 2, 0], "{case}");
            let answered = if sends == "req" { 7 } else { 0 };
            assert_eq!(replies.len(), answered, "{case}");
        }
    }
}

#[test]
fn what_is_published_reaches_who_has_joined() {
    let folder = folder();
    let bundle = write_message(folder.path(), 5);
    for &transport in TRANSPORTS {
        let endpoint = folder.ipc(transport);
        let options = format!("--count 2 --transport {transport} --pattern");
        let receiver = Process::words(
            &format!("recv --json --timeout 60 {options} sub --bind"),
            &[&endpoint],
        );
        receiver.bound();
        let sender = Process::words(
            &format!("send {options} pub --connect"),
            &[&endpoint, &bundle],
        );
        sender.succeeded(transport);
        assert_eq!(
            numbers(&receiver.succeeded(transport)),
            [5, 5],
            "{transport}"
        );
    }
}

#[test]
fn a_malformed_message_is_said_to_be_and_the_next_one_is_printed() {
    let folder = folder();
    let bad = b"{\"tensor_descriptors\":7}".to_vec();
    let bad = write_bundle(folder.path(), "bad.bundle", &[bad]);
    let good = write_message(folder.path(), 1);
    let (receiver, endpoint) = Process::receiver("--json --count 2 --timeout 60", &[]);
    send_to(&endpoint, &[bad.to_str().unwrap(), &good]);
    let (code, lines, notes) = receiver.end();
    assert_eq!(code, Some(2), "{notes:?}");
    assert_eq!(
        lines[0],
        r#"{"kind":"error","error":"WrongType","offset":22,"message":"expected array, found number at byte 22"}"#
    );
    assert_eq!(numbers(&lines[1..]), [1]);
    assert!(
        notes[0].contains("malformed message: WrongType"),
        "{notes:?}"
    );
}

#[test]
fn an_empty_line_stands_between_messages() {
    let folder = folder();
    let bundle = write_message(folder.path(), 1);
    let (receiver, endpoint) = Process::receiver("--count 2 --timeout 60", &[]);
    send_to(&endpoint, &["--count", "2", &bundle]);
    let lines = receiver.succeeded("recv");
    let messages: Vec<_> = lines.split(|line| line.is_empty()).collect();
    assert_eq!(messages.len(), 2, "{lines:?}");
    assert_eq!(messages[0], messages[1]);
    assert_eq!(messages[0][0], "2 tensors, 97.7 KiB");
}

#[test]
fn ctrl_c_ends_a_receiver_with_a_summary() {
    let folder = folder();
    let bundle = write_message(folder.path(), 1);
    let (receiver, endpoint) = Process::receiver("--json", &[]);
    send_to(&endpoint, &["--count", "3", &bundle]);
    for _ in 0..3 {
        receiver.line();
    }
    signal("INT", receiver.id());
    let (code, lines, notes) = receiver.end();
    assert_eq!((code, lines.len()), (Some(130), 0));
    assert!(
        notes
            .last()
            .unwrap()
            .starts_with("received 3 messages, 293.5 KiB"),
        "{notes:?}"
    );
}

#[test]
fn ctrl_c_ends_a_sender_that_waits_for_a_receiver() {
    let folder = folder();
    let bundle = write_message(folder.path(), 1);
    let sender = Process::words("send --bind tcp://127.0.0.1:*", &[&bundle]);
    sender.bound();
    signal("INT", sender.id());
    let (code, _, notes) = sender.end();
    assert_eq!(code, Some(130), "{notes:?}");
    assert_eq!(notes, ["sent 0 messages, 0 B"]);
}

#[test]
fn a_rate_is_kept_to() {
    let folder = folder();
    let bundle = write_message(folder.path(), 1);
    let (receiver, endpoint) = Process::receiver("--json --count 6 --timeout 60", &[]);
    let started = std::time::Instant::now();
    send_to(&endpoint, &["--count", "6", "--rate", "20", &bundle]);
    // Five pauses between six messages.
    assert!(started.elapsed().as_millis() >= 250);
    receiver.succeeded("recv");
}

#[test]
fn a_receiver_that_gets_too_few_says_how_many() {
    let folder = folder();
    let bundle = write_message(folder.path(), 1);
    let (receiver, endpoint) = Process::receiver("--json --count 2 --timeout 2", &[]);
    send_to(&endpoint, &[&bundle]);
    let (code, lines, notes) = receiver.end();
    assert_eq!((code, lines.len()), (Some(1), 1));
    assert!(
        notes
            .last()
            .unwrap()
            .contains("1 of 2 messages came, then none for 2 s"),
        "{notes:?}"
    );
}

/// From each transport to each, with a record of what went by.
#[test]
fn a_relay_passes_messages_on_between_transports() {
    for &from in TRANSPORTS {
        for &to in TRANSPORTS {
            for (sends, receives) in [("push", "pull"), ("req", "rep")] {
                relayed(from, to, sends, receives);
            }
        }
    }
}

fn relayed(from: &str, to: &str, sends: &str, receives: &str) {
    let case = format!("{sends} over {from}, {receives} over {to}");
    let folder = folder();
    let bundle = write_message(folder.path(), 9);
    let (first, last) = (folder.ipc("first"), folder.ipc("last"));
    let tee = folder.path().join("tee");
    let limits = "--count 3 --timeout 60";
    let receiver = Process::words(
        &format!("recv --json --transport {to} --pattern {receives} {limits} --bind"),
        &[&last],
    );
    receiver.bound();
    let relay = Process::words(
        &format!(
            "relay --pattern {receives} --from-transport {from} --to-transport {to} {limits} --from"
        ),
        &[&first, "--to", &last, "--tee", tee.to_str().unwrap()],
    );
    relay.bound();
    let sender = Process::words(
        &format!("send --json --transport {from} --pattern {sends} --count 3 --connect"),
        &[&first, &bundle],
    );
    let replies = sender.succeeded(&case);
    relay.succeeded(&case);
    assert_eq!(numbers(&receiver.succeeded(&case)), [9; 3], "{case}");
    let answered = if sends == "req" { 3 } else { 0 };
    assert_eq!(replies.len(), answered, "{case}");
    let names = fs::read_dir(&tee).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    let expected: &[&str] = if answered == 0 {
        &[
            "message000000.bundle",
            "message000001.bundle",
            "message000002.bundle",
        ]
    } else {
        &[
            "back000001.bundle",
            "back000003.bundle",
            "back000005.bundle",
            "message000000.bundle",
            "message000002.bundle",
            "message000004.bundle",
        ]
    };
    assert_eq!(names, expected, "{case}");
    assert!(
        read_bundle(&tee.join("message000000.bundle")) == message(9),
        "{case}"
    );
}

#[test]
fn what_is_recorded_twice_into_one_folder_is_all_kept() {
    let folder = folder();
    let bundle = write_message(folder.path(), 1);
    let saved = folder.path().join("saved");
    let save = saved.to_str().unwrap();
    for round in 1..=2 {
        let (receiver, endpoint) = Process::receiver("--count 1 --timeout 60 --save", &[save]);
        send_to(&endpoint, &[&bundle]);
        let lines = receiver.succeeded("recv");
        assert_eq!(lines[0], "2 tensors, 97.7 KiB");
        assert_eq!(fs::read_dir(&saved).unwrap().count(), round);
    }
}

#[cfg(not(feature = "nng"))]
#[test]
fn a_build_without_nng_says_how_to_get_it() {
    let output = crate::support::run(["recv", "--transport", "nng", "--bind", "tcp://127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        crate::support::text(&output.stderr)
            .contains("cargo install tensorwire --features cli,nng")
    );
}
