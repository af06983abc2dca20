//! Every message that Python wrote: shown as what it is, and written as it was.

use std::fs;

use crate::common::{frames, lines};
use crate::support::{folder, printed, run, run_on, text, write_bundle, write_frames};

/// What `inspect --json` says of a tensor message: the tensors, and the text of the scalars.
fn parts(stdout: &str) -> (Vec<serde_json::Value>, &str) {
    let rest = stdout
        .strip_prefix(r#"{"kind":"tensors","tensors":"#)
        .unwrap();
    // No string holds bare quotes, so this is where the tensors end.
    let (tensors, scalars) = rest.split_once(r#"],"scalar_fields":"#).unwrap();
    let tensors = serde_json::from_str(&format!("{tensors}]")).unwrap();
    (tensors, scalars.strip_suffix("}\n").unwrap())
}

/// The scalars as they stand in a metadata frame of Python's.
fn scalars(metadata: &[u8]) -> &str {
    let (_, scalars) = text(metadata).split_once(r#"],"scalar_fields":"#).unwrap();
    scalars.strip_suffix('}').unwrap()
}

#[test]
fn every_message_is_inspected_as_the_tensors_that_python_sent() {
    let folder = folder();
    let messages = lines("tensors.jsonl");
    assert_eq!(messages.len(), 269);
    for (number, line) in messages.iter().enumerate() {
        let name = line["name"].as_str().unwrap();
        let frames = frames(line);
        let files = write_frames(folder.path(), &frames);
        let shown = run(["inspect".as_ref(), "--json".as_ref()]
            .into_iter()
            .chain(files.iter().map(|file| file.as_os_str())));
        let shown = printed(&shown);
        assert_eq!(shown.matches('\n').count(), 1, "{name}");
        let (tensors, scalar_fields) = parts(shown);
        assert_eq!(scalar_fields, scalars(&frames[0]), "{name}");
        let expected = line["tensors"].as_array().unwrap();
        assert_eq!(tensors.len(), expected.len(), "{name}");
        for ((tensor, expected), payload) in tensors.iter().zip(expected).zip(&frames[1..]) {
            for key in ["field_name", "list_index", "dtype", "shape", "sha256"] {
                assert_eq!(tensor[key], expected[key], "{name} {key}");
            }
            assert_eq!(tensor["nbytes"], payload.len(), "{name}");
            assert_eq!(tensor.as_object().unwrap().len(), 6, "{name}");
        }

        // The same as a bundle, from stdin; of some, as each takes a process.
        if number % 10 != 0 {
            continue;
        }
        let bundle = tensorwire::bundle::encode_to_vec(&frames).unwrap();
        let again = run_on(&bundle, &["inspect", "--json", "-"]);
        assert_eq!(printed(&again), shown, "{name}");
    }
}

#[test]
fn every_message_is_reencoded_to_the_bytes_that_python_sent() {
    let mut all = lines("tensors.jsonl");
    all.extend(lines("transfer.jsonl"));
    for line in &all {
        let folder = folder();
        let name = line["name"].as_str().unwrap();
        let frames = frames(line);
        let files = write_frames(folder.path(), &frames);
        let out = folder.path().join("deep").join("out");
        let mut arguments = vec!["reencode".as_ref(), "--out".as_ref(), out.as_os_str()];
        arguments.extend(files.iter().map(|file| file.as_os_str()));
        assert_eq!(printed(&run(&arguments)), "", "{name}");
        let mut written: Vec<_> = fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        written.sort();
        assert_eq!(written.len(), frames.len(), "{name}");
        for (index, (path, frame)) in written.iter().zip(&frames).enumerate() {
            assert_eq!(
                path.file_name().unwrap().to_str().unwrap(),
                format!("frame{index:03}.bin")
            );
            assert!(fs::read(path).unwrap() == *frame, "{name}: frame {index}");
        }
    }
}

#[test]
fn every_control_message_is_shown_as_it_came() {
    let folder = folder();
    for line in lines("transfer.jsonl") {
        let name = line["name"].as_str().unwrap();
        let frames = frames(&line);
        let bundle = write_bundle(folder.path(), "control.bundle", &frames);
        let bundle = bundle.to_str().unwrap();
        let shown = run(["inspect", "--json", "--bundle", bundle]);
        let (kind, payload) = (&line["msg_type"], text(&frames[1]));
        assert_eq!(
            printed(&shown),
            format!("{{\"kind\":\"transfer\",\"msg_type\":{kind},\"message\":{payload}}}\n"),
            "{name}"
        );
        let shown = run(["inspect", "--bundle", bundle]);
        assert!(
            printed(&shown).starts_with(&format!("control message {}\n", kind.as_str().unwrap())),
            "{name}"
        );
    }
}

#[test]
fn every_message_has_a_table_without_colours_or_control_characters() {
    let folder = folder();
    for (number, line) in lines("tensors.jsonl").iter().enumerate() {
        let name = line["name"].as_str().unwrap();
        let frames = frames(line);
        let bundle = write_bundle(folder.path(), "message.bundle", &frames);
        let shown = run(["inspect", "--stats", "--bundle", bundle.to_str().unwrap()]);
        let shown = printed(&shown);
        assert!(
            shown.chars().all(|c| c == '\n' || !c.is_control()),
            "{name}"
        );
        let rows = shown.lines().skip(2).take(frames.len() - 1);
        let dtypes = line["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tensor| tensor["dtype"].as_str().unwrap());
        for (row, dtype) in rows.zip(dtypes) {
            assert!(row.contains(dtype), "{name}: {row}");
        }
        if number % 10 != 0 {
            continue;
        }
        let again = run([
            "inspect",
            "--stats",
            "--json",
            "--bundle",
            bundle.to_str().unwrap(),
        ]);
        let (tensors, _) = parts(printed(&again));
        for tensor in &tensors {
            let stats = tensor["stats"].as_object().unwrap();
            assert!(
                stats.keys().eq(["first", "max", "mean", "min", "nan"]),
                "{name}"
            );
        }
    }
}

#[test]
fn an_error_reply_stands_out() {
    let metadata = br#"{"tensor_descriptors":[],"scalar_fields":{"request_id":"r1","_disagg_error":"RuntimeError: \u001b[1mout of memory"}}"#;
    let bundle = tensorwire::bundle::encode_to_vec(&[metadata]).unwrap();
    let shown = run_on(&bundle, &["inspect", "-"]);
    let shown = printed(&shown);
    let says = "error reply: RuntimeError: \\u{1b}[1mout of memory\n";
    assert!(
        shown.starts_with(&format!("0 tensors, 0 B\n{says}")),
        "{shown}"
    );
}
