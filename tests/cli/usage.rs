//! What people type, mistakes among it, and what they are told.

use std::ffi::OsStr;
use std::fs;
use std::process::Stdio;

use crate::support::{command, folder, printed, run, run_on, text, write_bundle, write_frames};

/// (arguments, exit code, what stderr says)
const MISTAKES: &[(&[&str], i32, &str)] = &[
    (&[], 2, "Usage: tensorwire <COMMAND>"),
    (&["inspct"], 2, "similar subcommand exists: 'inspect'"),
    (&["inspect"], 2, "required arguments were not provided"),
    (
        &["inspect", "/nonexistent/frame"],
        1,
        "cannot read /nonexistent/frame: No such file",
    ),
    (&["inspect", "/"], 1, "cannot read /: "),
    (&["inspect", "-", "x"], 2, "- is a whole bundle on stdin"),
    (&["inspect", "--bundle", "x", "y"], 2, "cannot be used with"),
    (&["reencode", "/dev/null"], 2, "--out <DIR>"),
    (&["recv"], 2, "--bind <ENDPOINT>"),
    (
        &["recv", "--bind", "a", "--connect", "b"],
        2,
        "cannot be used with",
    ),
    (&["recv", "--bind", "nowhere"], 1, "cannot bind nowhere: "),
    (
        &["recv", "--bind", "nowhere"],
        1,
        "endpoints look like tcp://127.0.0.1:5555",
    ),
    (
        &["recv", "--bind", "tcp://127.0.0.1:*", "--count", "0"],
        2,
        "a count is a whole number above zero",
    ),
    (
        &["recv", "--bind", "tcp://127.0.0.1:*", "--timeout", "-1"],
        2,
        "seconds are a number of at least zero",
    ),
    (
        &["recv", "--bind", "tcp://127.0.0.1:*", "--timeout", "0.05"],
        1,
        "timed out: no message came for 0.05 s",
    ),
    (
        &["recv", "--bind", "tcp://127.0.0.1:*", "--pattern", "fax"],
        2,
        "[possible values: pair, pull, rep, sub]",
    ),
    (
        &["send", "--bind", "tcp://127.0.0.1:*", "Cargo.toml"],
        2,
        "neither a bundle nor",
    ),
    (
        &[
            "send",
            "--bind",
            "tcp://127.0.0.1:*",
            "Cargo.toml",
            "--rate",
            "0",
        ],
        2,
        "a rate is a number above zero",
    ),
    (
        &["recv", "--bind", "inproc://x"],
        2,
        "inproc://x stays within one process",
    ),
    (
        &["send", "--connect", "inproc://x", "Cargo.toml"],
        2,
        "neither a bundle nor",
    ),
    (
        &["relay", "--from", "tcp://127.0.0.1:*", "--to", "inproc://x"],
        2,
        "endpoints look like tcp://127.0.0.1:5555",
    ),
    (
        &["recv", "--bind", "ipc:///nonexistent/folder/x"],
        1,
        "its folder is not there: make that first",
    ),
    (
        &["recv", "--bind", "tcp://192.0.2.1:5555"],
        1,
        "cannot bind tcp://192.0.2.1:5555: ",
    ),
    (
        &["recv", "--bind", "tcp://127.0.0.1:*", "--timeout", "nan"],
        2,
        "seconds are a number of at least zero",
    ),
    (
        &["recv", "--bind", "tcp://127.0.0.1:*", "--count", "-1"],
        2,
        "a count is a whole number above zero",
    ),
    (
        &["bench", "--duration", "-1"],
        2,
        "seconds are a number of at least zero",
    ),
    (&["bench", "--size", "-1"], 2, "not a number of bytes"),
    (&["bench", "--size", "1XB"], 2, "units are B, kB, KiB"),
    (
        &["bench", "--size", "100GiB"],
        2,
        "takes 1073741824 at most",
    ),
    (&["recv"], 2, "<--bind <ENDPOINT>|--connect <ENDPOINT>>"),
    (
        &["recv", "--bind", "tcp://localhost:5555"],
        1,
        "what is bound is an address, no host name",
    ),
    (
        &["man", "bench-peer"],
        2,
        "no command bench-peer: see tensorwire help",
    ),
    (
        &["man", "nothing"],
        2,
        "no command nothing: see tensorwire help",
    ),
    (
        &["convert", "--from", "bundle", "/dev/zero", "x.npz"],
        1,
        "/dev/zero is a pipe or a device",
    ),
    (
        &["convert", "--from", "npz", "/", "x.npz"],
        1,
        "cannot read /: ",
    ),
];

#[test]
fn mistakes_are_told_with_what_to_do() {
    for &(arguments, code, says) in MISTAKES {
        let output = run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
        assert!(
            output.stdout.is_empty() && !stderr.contains("panicked"),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_send_that_nobody_takes_says_so() {
    let folder = folder();
    let metadata = b"{\"tensor_descriptors\":[],\"scalar_fields\":{}}".to_vec();
    let bundle = write_bundle(folder.path(), "m.bundle", &[metadata]);
    let endpoint = folder.ipc("nobody");
    let output = run([
        "send",
        "--connect",
        &endpoint,
        "--timeout",
        "0.1",
        bundle.to_str().unwrap(),
    ]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("took a message") && stderr.contains("is the receiver running"),
        "{stderr}"
    );
    assert!(stderr.contains("sent 0 messages"), "{stderr}");
}

#[test]
fn a_bundle_given_as_a_frame_is_recognized() {
    let folder = folder();
    let bundle = tensorwire::bundle::encode_to_vec(&["{}"]).unwrap();
    let files = write_frames(folder.path(), &[bundle]);
    let output = run(["inspect".as_ref(), files[0].as_os_str()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).ends_with("this is a bundle: give it as --bundle FILE\n"));
}

#[test]
fn a_file_that_convert_knows_is_recognized() {
    let folder = folder();
    for (name, bytes) in [
        ("x.npy", &b"\x93NUMPY\x01\0"[..]),
        ("x", b"PK\x03\x04 an archive"),
        ("x.safetensors", b"\x02\0\0\0\0\0\0\0{}"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let out = folder.path().join("out");
        let commands: [&[&OsStr]; 3] = [
            &["inspect".as_ref(), path.as_ref()],
            &["inspect".as_ref(), "--bundle".as_ref(), path.as_ref()],
            &[
                "reencode".as_ref(),
                path.as_ref(),
                "--out".as_ref(),
                out.as_ref(),
            ],
        ];
        for command in commands {
            let output = run(command.iter().copied());
            assert_eq!(output.status.code(), Some(2), "{command:?}");
            let said = text(&output.stderr);
            assert!(
                said.ends_with("tensorwire convert makes a bundle of such a file\n"),
                "{said}"
            );
        }
    }
}

#[test]
fn a_malformed_file_among_others_is_named() {
    let folder = folder();
    let mut bundle = tensorwire::bundle::encode_to_vec(&["{}"]).unwrap();
    bundle.pop();
    let good = write_bundle(folder.path(), "good.bundle", &[b"{}".to_vec()]);
    for (name, bytes) in [("bad.bundle", &bundle[..]), ("bad.npy", b"\x93NUMPY\x01\0")] {
        let bad = folder.path().join(name);
        fs::write(&bad, bytes).unwrap();
        let named = format!("{}: ", bad.display());
        let output = run(["convert".as_ref(), bad.as_os_str(), "x.npz".as_ref()]);
        assert!(text(&output.stderr).contains(&named), "{output:?}");
        let send = ["send", "--connect", "tcp://127.0.0.1:1"].map(OsStr::new);
        let output = run(send.into_iter().chain([good.as_os_str(), bad.as_os_str()]));
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(&named), "{output:?}");
    }
}

/// The commands that help and manual have.
const COMMANDS: &[&str] = &[
    "inspect", "reencode", "recv", "send", "convert", "relay", "bench",
];

#[test]
fn help_says_what_each_command_does_and_what_exit_codes_mean() {
    let help = run(["--help"]);
    let help = printed(&help);
    for part in COMMANDS.iter().chain(["130", "NO_COLOR"].iter()) {
        assert!(help.contains(part), "{part}");
    }
    for command in COMMANDS {
        let help = run([*command, "--help"]);
        let help = printed(&help);
        assert!(
            help.contains("Usage:") && !help.contains("\u{1b}"),
            "{command}"
        );
    }
    let version = run(["--version"]);
    assert_eq!(
        printed(&version),
        concat!("tensorwire ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn shells_complete_and_the_manual_has_every_command() {
    for (shell, start) in [
        ("bash", "_tensorwire"),
        ("zsh", "#compdef tensorwire"),
        ("fish", "complete -c tensorwire"),
    ] {
        let script = run(["completions", shell]);
        let script = printed(&script);
        assert!(
            script.contains(start) && script.contains("inspect"),
            "{shell}"
        );
    }
    let manual = run(["man"]);
    let manual = printed(&manual);
    assert!(manual.contains(".TH tensorwire 1"));
    for command in COMMANDS {
        assert!(
            manual.contains(&format!("tensorwire\\-{command}")),
            "{command}"
        );
        let page = run(["man", *command]);
        let page = printed(&page);
        assert!(
            page.contains(&format!(".TH tensorwire-{command} 1")) && page.contains("OPTIONS"),
            "{command}: {page}"
        );
    }
}

#[test]
fn output_that_nobody_reads_is_no_failure() {
    // More than any pipe holds.
    let scalars = format!("[{}]", "12345678,".repeat(60_000).trim_end_matches(','));
    let metadata = format!(r#"{{"tensor_descriptors":[],"scalar_fields":{{"l":{scalars}}}}}"#);
    let bundle = tensorwire::bundle::encode_to_vec(&[metadata]).unwrap();
    let folder = folder();
    let path = folder.path().join("large.bundle");
    fs::write(&path, bundle).unwrap();
    let mut command = command(["inspect", "--json", "--bundle", path.to_str().unwrap()]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn metadata_over_the_cap_is_refused_from_stdin_too() {
    let metadata = vec![b' '; (1 << 20) + 1];
    let bundle = tensorwire::bundle::encode_to_vec(&[metadata]).unwrap();
    let output = run_on(&bundle, &["inspect", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("MetadataLimit"));
}

#[test]
fn what_is_no_message_of_ours_is_told_apart() {
    let folder = folder();
    let files = write_frames(
        folder.path(),
        &[b"request-1".to_vec(), b"\x80\x04N.".to_vec()],
    );
    let output = run([
        "inspect".as_ref(),
        files[0].as_os_str(),
        files[1].as_os_str(),
    ]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(
        stderr.ends_with("neither a tensor nor a control message\n"),
        "{stderr}"
    );
}
