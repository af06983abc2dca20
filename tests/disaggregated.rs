//! The disaggregated example as its user runs it: what it prints, what it returns, and
//! that nothing stays behind, whoever is killed.

#![cfg(all(feature = "shared-memory", feature = "zmq", target_os = "linux"))]

#[path = "common/processes.rs"]
mod processes;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use processes::{Folder, children, example, gone, signal, text, within};

/// How long any one thing may take.
const PATIENCE: Duration = Duration::from_secs(30);

fn run(args: &[&str]) -> Output {
    processes::run("disaggregated", args)
}

fn report(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn json_is_one_object_with_all_the_figures() {
    /// (arguments, steps from one worker to another, whether by preallocated slots)
    const RUNS: &[(&str, &[&str], bool)] = &[
        ("", &["encoder > denoiser", "denoiser > decoder"], true),
        (
            "--prealloc 0 --tcp --workers 2",
            &["encoder > denoiser", "denoiser > decoder"],
            false,
        ),
        (
            "--split --policy max_free_slots",
            &[
                "prompt_encoder > image_encoder",
                "encoders > denoiser",
                "denoiser > decoder",
            ],
            true,
        ),
        // Slots that are too small for what is to go there.
        (
            "--size 3 --slot 2",
            &["encoder > denoiser", "denoiser > decoder"],
            false,
        ),
    ];
    for &(args, moves, fast) in RUNS {
        let mut arguments = vec!["--json", "--size", "1", "--requests", "9"];
        arguments.extend(args.split_whitespace());
        let output = run(&arguments);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args}: {}",
            text(&output.stderr)
        );
        assert_eq!(text(&output.stdout).lines().count(), 1, "{args}");
        let report = report(&output);
        assert_eq!(report["ok"], true, "{args}");
        assert_eq!(report["requests"], 9, "{args}");
        let steps = report["steps"].as_array().unwrap();
        let last = steps.last().unwrap();
        assert_eq!(
            (&last["step"], &last["samples"]),
            (&"request".into(), &9.into()),
            "{args}"
        );
        let mut moved = 0;
        for step in steps {
            let name = step["step"].as_str().unwrap();
            assert!(
                step["p50_ns"].as_u64() <= step["p99_ns"].as_u64(),
                "{args}: {name}"
            );
            let row = &step["moved"];
            if row.is_null() {
                continue;
            }
            assert!(moves.contains(&name), "{args}: {name}");
            assert_eq!(row["copies_per_byte"], 1.0, "{args}: {name}");
            assert!(row["bytes"].as_u64().unwrap() > 1 << 20, "{args}: {name}");
            let (fast_path, slow_path) = (&row["fast_path"], &row["slow_path"]);
            let none = if fast { slow_path } else { fast_path };
            assert_eq!(none, &0, "{args}: {name}");
            moved += 1;
        }
        assert_eq!(moved, moves.len(), "{args}");
        for worker in report["workers"].as_array().unwrap() {
            assert_eq!(worker["held_bytes"], 0, "{args}: {worker}");
            assert_eq!(worker["leaked_bytes"], 0, "{args}: {worker}");
        }
    }
}

#[test]
fn the_table_names_every_step() {
    let output = run(&["--size", "1", "--requests", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for word in [
        "head node > encoder",
        "encoder > denoiser",
        "copies/byte",
        "fast path",
        "most taken",
        "every byte was as it must be",
        "leaked: nothing",
    ] {
        assert!(table.contains(word), "{word} in {table}");
    }
}

#[test]
fn killed_workers_are_replaced_and_every_request_ends_well() {
    for seed in ["1", "2", "3", "4"] {
        // In the last one a worker may be due to be killed before it has said that it is there.
        for (workers, preallocated, in_flight) in
            [("2", "4", "4"), ("2", "0", "4"), ("1", "4", "32")]
        {
            let output = run(&[
                "--json",
                "--size",
                "1",
                "--requests",
                "40",
                "--workers",
                workers,
                "--prealloc",
                preallocated,
                "--in-flight",
                in_flight,
                "--kill-random",
                seed,
            ]);
            let stderr = text(&output.stderr);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{seed} {workers} {preallocated}: {stderr}"
            );
            let report = report(&output);
            let killed = report["killed"].as_array().unwrap().len();
            assert!(
                killed >= 3,
                "{seed} {workers} {preallocated}: {killed} killed"
            );
            assert_eq!(
                report["restarts"], killed,
                "{seed} {workers} {preallocated}"
            );
            assert_eq!(report["ok"], true, "{seed} {workers} {preallocated}");
        }
    }
}

#[test]
fn a_head_node_leads_workers_that_were_started_by_others() {
    let folder = Folder::new(Path::new("/dev/shm"));
    let mut workers = Vec::new();
    let mut arguments: Vec<String> = ["--role", "head", "--json", "--size", "1", "--requests", "8"]
        .map(str::to_owned)
        .into();
    for role in ["encoder", "denoiser", "decoder"] {
        let (work, result) = (folder.ipc(role), folder.ipc(&format!("{role}-result")));
        workers.push(worker(role, &work, &result, folder.path()));
        arguments.extend(["--work".to_owned(), format!("{role}={work}")]);
        arguments.extend(["--result".to_owned(), format!("{role}={result}")]);
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(report(&output)["ok"], true);
    for mut worker in workers {
        signal("TERM", worker.id());
        let ended = || worker.try_wait().unwrap();
        let status = within(PATIENCE, "the end of a worker", ended);
        assert_eq!(status.code(), Some(0));
    }
    // Of its own they leave nothing: what is left are the sockets' files.
    let mut left = folder.names();
    left.retain(|name| name.to_string_lossy().starts_with("tensorwire-1-"));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn no_worker_outlives_a_killed_head_node() {
    let mut head = example("disaggregated")
        .args(["--size", "1", "--requests", "100000"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let workers = within(PATIENCE, "three workers", || {
        let workers = children(head.id());
        (workers.len() == 3).then_some(workers)
    });
    signal("KILL", head.id());
    head.wait().unwrap();
    within(PATIENCE, "the end of the workers", || {
        workers.iter().all(|(pid, _)| gone(*pid)).then_some(())
    });
    // It had no chance to take them away.
    let name = format!("tensorwire-disaggregated-{}", head.id());
    let segments = Path::new("/dev/shm").join(&name);
    assert_eq!(std::fs::read_dir(&segments).unwrap().count(), 0);
    std::fs::remove_dir(&segments).unwrap();
    std::fs::remove_dir_all(std::env::temp_dir().join(&name)).unwrap();
}

#[test]
fn a_signal_ends_all_and_leaves_nothing() {
    // While workers start, and while requests are under way.
    for (name, workers) in [("INT", 1), ("TERM", 3)] {
        let head = example("disaggregated")
            .args(["--size", "1", "--requests", "100000"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let folder = format!("tensorwire-disaggregated-{}", head.id());
        let workers = within(PATIENCE, "workers", || {
            let started = children(head.id());
            (started.len() == workers).then_some(started)
        });
        signal(name, head.id());
        let output = head.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stderr), "disaggregated: stopped by a signal\n");
        within(PATIENCE, "the end of the workers", || {
            workers.iter().all(|(pid, _)| gone(*pid)).then_some(())
        });
        for parent in [Path::new("/dev/shm"), &std::env::temp_dir()] {
            assert!(!parent.join(&folder).exists(), "{name}: {parent:?}");
        }
    }
}

#[test]
fn wrong_arguments_are_told_apart_from_a_failed_run() {
    const WRONG: &[&str] = &[
        "--bogus",
        "--requests",
        "--requests 0",
        "--role vae --work tcp://127.0.0.1:* --result tcp://127.0.0.1:1",
        "--role encoder --work tcp://127.0.0.1:*",
        "--role head --work encoder=tcp://127.0.0.1:1",
        "--role head --work tcp://127.0.0.1:1 --result encoder=tcp://127.0.0.1:*",
        "--work tcp://127.0.0.1:*",
        "--policy best",
    ];
    for args in WRONG {
        let output = run(&args.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{args}");
        assert!(output.stdout.is_empty(), "{args}");
    }
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("--kill-random"));
    // Right ones that come to nothing.
    let output = run(&[
        "--role",
        "encoder",
        "--work",
        "tcp://nowhere",
        "--result",
        "tcp://127.0.0.1:1",
    ]);
    assert_eq!(output.status.code(), Some(1));
}

// ---- processes ----

/// A worker that takes work by now.
fn worker(role: &str, work: &str, result: &str, segments: &Path) -> Child {
    let mut command = example("disaggregated");
    command.args(["--role", role, "--work", work, "--result", result]);
    command
        .args(["--size", "1", "--pool", "32", "--segments"])
        .arg(segments);
    // Its stdin ends at once, which is none of its business.
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    assert_eq!(line, format!("READY {work}\n"));
    // It says nothing more unless asked to.
    std::thread::spawn(move || assert_eq!(out.bytes().count(), 0));
    child
}
