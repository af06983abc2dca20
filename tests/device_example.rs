//! The device example as its user runs it: on the host, on a CUDA device (the simulated one), and told to use
//! what may not be there.

#![cfg(feature = "zmq")]

#[path = "common/processes.rs"]
mod processes;
#[cfg(feature = "cuda")]
#[path = "simulated/mod.rs"]
mod simulated;

use std::process::{Output, Stdio};

use processes::example;

fn run(args: &[&str]) -> Output {
    example("device")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Each kind of message has its row, and the last line says that all is well.
fn assert_served(output: &Output) {
    let lines: Vec<_> = text(&output.stdout).lines().collect();
    for kind in ["small", "medium", "large"] {
        let rows = lines.iter().filter(|line| line.starts_with(kind));
        assert_eq!(rows.count(), 1, "{kind}");
    }
    assert_eq!(
        *lines.last().unwrap(),
        "every payload came back as it had to"
    );
}

#[test]
fn on_the_host_every_payload_comes_back() {
    let output = run(&["--requests", "2"]);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    assert_served(&output);
}

#[test]
fn without_a_device_it_says_so_and_with_one_it_serves() {
    let output = run(&["--device", "cuda", "--requests", "2"]);
    let error = text(&output.stderr);
    match output.status.code() {
        Some(0) => assert_served(&output),
        Some(1) => {
            let (why, without) = (
                "device: no CUDA device: ",
                "device: this was built without CUDA",
            );
            assert!(
                error.starts_with(why) || error.starts_with(without),
                "{error}"
            );
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        other => panic!("{other:?}: {error}"),
    }
}

/// The same service, on the adapter as it is and a driver that is simulated.
#[cfg(feature = "cuda")]
#[test]
fn on_a_cuda_device_every_payload_comes_back() {
    let mut command = example("device");
    command.args(["--device", "cuda", "--requests", "2"]);
    simulated::with_driver(&mut command, &simulated::folder());
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).starts_with("on Simulated device 0, "));
    assert_served(&output);
}

#[test]
fn wrong_arguments_are_told_from_failures() {
    for args in [
        &["--device", "tpu"][..],
        &["--requests", "0"],
        &["--requests"],
        &["now"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).starts_with("usage: device"),
            "{args:?}"
        );
    }
}
