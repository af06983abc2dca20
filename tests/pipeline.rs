//! The pipeline example as its user runs it: what it prints, what it returns, and
//! that nothing stays behind. With small tensors, as the stages are debug builds.

#![cfg(feature = "zmq")]

#[path = "common/processes.rs"]
mod processes;

use std::process::{Output, Stdio};

use processes::{example, text};

fn run(args: &[&str]) -> Output {
    processes::run("pipeline", args)
}

#[test]
fn json_is_one_object_with_all_the_figures() {
    let output = run(&["--small", "--requests", "3", "--json"]);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout).lines().count(), 1);

    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verified"], true);
    assert_eq!(report["faults"].as_array().unwrap().len(), 0);
    assert_eq!(report["requests"], 3);
    let messages = report["messages"].as_array().unwrap();
    /// (message, from, to, tensors)
    const WAYS: &[(&str, &str, &str, usize)] = &[
        ("request", "head", "encoder", 0),
        ("embeds", "encoder", "denoiser", 3),
        ("latents", "denoiser", "decoder", 2),
        ("output", "decoder", "head", 1),
    ];
    assert_eq!(messages.len(), WAYS.len());
    for (row, &(message, from, to, tensors)) in messages.iter().zip(WAYS) {
        assert_eq!(row["message"], message);
        assert_eq!(
            (&row["from"], &row["to"]),
            (&from.into(), &to.into()),
            "{message}"
        );
        assert_eq!(row["tensors"], tensors, "{message}");
        assert!(row["bytes"].as_u64().unwrap() > 400, "{message}");
        let received = &row["received"];
        assert_eq!(received["messages"], 3, "{message}");
        assert_eq!(received["views"], 3 * tensors, "{message}");
        assert_eq!(received["allocations"], 0, "{message}");
        let median = received["decode_median_ns"].as_u64().unwrap();
        assert!(
            median > 0 && median <= received["decode_p99_ns"].as_u64().unwrap(),
            "{message}"
        );
        assert!(
            received["decode_first_ns"].as_u64().unwrap() > 0,
            "{message}"
        );
        assert!(
            received["misaligned"].as_u64() <= received["views"].as_u64(),
            "{message}"
        );
    }
    let throughput = report["throughput"].as_array().unwrap();
    assert_eq!(throughput.len(), 3);
    for row in throughput {
        for figure in ["tensorwire", "libzmq", "ratio"] {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{figure}");
        }
    }
}

#[test]
fn the_table_names_every_message() {
    let output = run(&["--small", "--requests", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for word in [
        "head > encoder",
        "embeds",
        "latents",
        "output",
        "every byte was as sent",
    ] {
        assert!(table.contains(word), "{word} in {table}");
    }
}

#[test]
fn one_flipped_byte_fails_the_run_and_is_named() {
    /// (who sends it, what the message on stderr says)
    const CORRUPT: &[(&str, &str)] = &[
        (
            "encoder",
            "what the encoder sent differs: prompt_embeds: byte",
        ),
        ("denoiser", "what the denoiser sent differs: latents: byte"),
        ("decoder", "what the decoder sent differs: output: byte"),
    ];
    for &(stage, said) in CORRUPT {
        let output = run(&["--small", "--requests", "2", "--json", "--corrupt", stage]);
        assert_eq!(output.status.code(), Some(1), "{stage}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains(said), "{stage}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stage}: {stderr}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["verified"], false, "{stage}");
    }
}

#[test]
fn wrong_arguments_are_told_apart_from_a_failed_run() {
    const WRONG: &[&[&str]] = &[
        &["--bogus"],
        &["--requests"],
        &["--requests", "0"],
        &["--python", "vae"],
        &["--small", "--python", "all"],
        &["--corrupt", "denoiser", "--python", "denoiser"],
    ];
    for args in WRONG {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("--requests"));
}

/// What happens when processes are killed; they are found in `/proc`.
#[cfg(target_os = "linux")]
mod killed {
    use std::process::Child;
    use std::thread::sleep;
    use std::time::Duration;

    use super::processes::{children, gone, signal, within};
    use super::*;

    /// A run that goes on until it is ended.
    fn endless() -> Child {
        let mut command = example("pipeline");
        command.args(["--small", "--requests", "100000"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(Stdio::null()).spawn().unwrap()
    }

    fn all_stages(head: &Child) -> Vec<(u32, String)> {
        within(Duration::from_secs(30), "three stages", || {
            let stages = children(head.id());
            (stages.len() == 3 && stages.iter().all(|(_, line)| line.contains("--stage")))
                .then_some(stages)
        })
    }

    #[test]
    fn a_killed_stage_fails_the_run_in_bounded_time() {
        for stage in ["encoder", "denoiser", "decoder"] {
            let mut head = endless();
            let stages = all_stages(&head);
            // Into the work.
            sleep(Duration::from_millis(100));
            let (pid, _) = stages
                .iter()
                .find(|(_, line)| line.contains(stage))
                .unwrap();
            signal("KILL", *pid);
            let ended = || head.try_wait().unwrap();
            let status = within(Duration::from_secs(20), "the end of the run", ended);
            assert_eq!(status.code(), Some(1), "{stage}");
            let output = head.wait_with_output().unwrap();
            let stderr = text(&output.stderr);
            assert!(
                stderr.contains(&format!("the {stage} ended early")),
                "{stderr}"
            );
            assert!(stages.iter().all(|(pid, _)| gone(*pid)), "{stage}");
        }
    }

    #[test]
    fn no_stage_outlives_a_killed_head() {
        let mut head = endless();
        let stages = all_stages(&head);
        signal("KILL", head.id());
        head.wait().unwrap();
        within(Duration::from_secs(10), "the end of the stages", || {
            stages.iter().all(|(pid, _)| gone(*pid)).then_some(())
        });
    }
}
