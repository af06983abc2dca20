//! The head node of an sglang release, unmodified, drives our workers: requests go in by its client, and what comes out
//! is what they compute.
//!
//! ```text
//!   client  --REQ-->  DiffusionServer  ==PUSH==>  encoder, denoiser, decoder: examples/disaggregated --role ...
//!                     (head_node.py)   <==PULL==  processes of their own, tensors in shared memory
//! ```
//!
//! `tests/interop/setup.sh` gets what the head node needs and names it in three variables;
//! without them the tests say so in a line that begins with `SKIP`, and pass.

#![cfg(all(feature = "shared-memory", feature = "zmq", target_os = "linux"))]

mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod process;
#[path = "../common/processes.rs"]
mod processes;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use cluster::{Cluster, SPLIT, Setup, THREE};
use process::{PATIENCE, Worker, endpoint, python};
use processes::{Folder, example};

#[test]
fn requests_come_to_what_the_roles_compute() {
    let Some(python) = python() else { return };
    /// (scheme, workers of each role, policy, preallocated slots)
    const CLUSTERS: &[(&str, usize, &str, usize)] = &[
        ("ipc", 1, "round_robin", 4),
        ("ipc", 1, "max_free_slots", 0),
        ("ipc", 2, "round_robin", 0),
        ("ipc", 2, "max_free_slots", 4),
        ("tcp", 1, "round_robin", 0),
        ("tcp", 1, "max_free_slots", 4),
        ("tcp", 2, "round_robin", 4),
        ("tcp", 2, "max_free_slots", 0),
    ];
    for &(scheme, workers, policy, preallocated) in CLUSTERS {
        let mut cluster = Cluster::start(
            python,
            Setup {
                scheme,
                policy,
                workers,
                preallocated,
                ..Setup::default()
            },
        );
        cluster.expect_outputs(&names("r", 6));
        let told = cluster.finish();
        // The paths are those that were meant.
        let slots = counts(&told, "denoiser") + counts(&told, "decoder");
        assert_eq!(slots.fast + slots.slow, 12, "{scheme} {workers} {policy}");
        match preallocated {
            0 => assert_eq!(slots.fast, 0, "{scheme} {workers} {policy}"),
            _ => assert_eq!(slots.slow, 0, "{scheme} {workers} {policy}"),
        }
    }
}

#[test]
fn preallocated_slots_are_used_again_and_again_though_python_gives_them_back_smaller() {
    let Some(python) = python() else { return };
    // Two encoders in turn, of small and of large outputs: a slot that took a small one takes no large one any more.
    let mut cluster = Cluster::start(
        python,
        Setup {
            workers: 2,
            preallocated: 2,
            slot_mib: 4,
            sizes_mib: &[1, 3],
            ..Setup::default()
        },
    );
    for round in 0..6 {
        cluster.expect_outputs(&names(&format!("round-{round}"), 4));
    }
    let told = cluster.finish();
    let slots = counts(&told, "denoiser");
    assert_eq!(slots.fast + slots.slow, 24);
    assert!(slots.fast > 4, "none of the four was used again: {slots:?}");
    assert!(slots.slow > 0, "none shrank: {slots:?}");
}

#[test]
fn a_payload_larger_than_a_preallocated_slot_goes_into_one_that_was_asked_for() {
    let Some(python) = python() else { return };
    let mut cluster = Cluster::start(
        python,
        Setup {
            slot_mib: 1,
            sizes_mib: &[3],
            ..Setup::default()
        },
    );
    cluster.expect_outputs(&names("large", 4));
    let told = cluster.finish();
    let slots = counts(&told, "denoiser");
    assert_eq!((slots.fast, slots.slow), (0, 4));
}

#[test]
fn a_request_passes_the_image_encoder_if_it_has_an_image() {
    let Some(python) = python() else { return };
    for (preallocated, scheme) in [(4, "ipc"), (0, "tcp")] {
        let mut cluster = Cluster::start(
            python,
            Setup {
                scheme,
                roles: SPLIT,
                preallocated,
                ..Setup::default()
            },
        );
        let plain = names("plain", 3);
        let with_image = names("with-image", 3);
        for request in &plain {
            cluster.server.send(request, None);
        }
        for request in &with_image {
            cluster.server.send(request, Some("/nowhere/cat.png"));
        }
        for request in plain.iter().chain(&with_image) {
            let reply = cluster.server.reply(request);
            cluster.expect_output(request, &reply);
        }
        let told = cluster.finish();
        let image_encoder = counts(&told, "image_encoder");
        assert_eq!(image_encoder.fast + image_encoder.slow, 3);
        assert_eq!(steps(&told, "denoiser"), 6);
    }
}

#[test]
fn the_client_reads_why_a_role_failed_and_others_are_not_held_up() {
    let Some(python) = python() else { return };
    for (roles, preallocated) in [(THREE, 2), (THREE, 0), (SPLIT, 2)] {
        let mut cluster = Cluster::start(
            python,
            Setup {
                roles,
                preallocated,
                ..Setup::default()
            },
        );
        // More of each than there are slots and places at a worker: none is lost by a failure.
        for round in 0..3 {
            let mut sent = Vec::new();
            for &role in roles {
                let request = format!("fail-{role}-image-{round}");
                cluster.server.send(&request, Some("/nowhere/cat.png"));
                sent.push((request, true));
                let request = format!("good-{role}-{round}");
                cluster.server.send(&request, None);
                sent.push((request, false));
            }
            for (request, fails) in sent {
                let reply = cluster.server.reply(&request);
                if fails {
                    let error = reply["error"].as_str().unwrap_or_default();
                    assert!(error.contains("asked to fail"), "{request}: {reply}");
                    assert_eq!(reply["output"], Value::Null, "{request}");
                } else {
                    cluster.expect_output(&request, &reply);
                }
            }
        }
        cluster.finish();
    }
}

#[test]
fn requests_of_a_killed_worker_end_by_the_timeout_and_its_successor_takes_new_ones() {
    let Some(python) = python() else { return };
    for role in THREE {
        for preallocated in [2, 0] {
            let mut cluster = Cluster::start(
                python,
                Setup {
                    timeout: 4,
                    preallocated,
                    ..Setup::default()
                },
            );
            cluster.expect_outputs(&names("before", 3));
            cluster.kill_worker(role, 0);
            let lost = names("lost", 2);
            for request in &lost {
                cluster.server.send(request, None);
            }
            for request in &lost {
                let reply = cluster.server.reply(request);
                let error = reply["error"].as_str().unwrap_or_default();
                // Who was to push into a slot of the dead, without asking it, finds out at once.
                let known = ["timeout", "push failed: the session is gone"];
                let known = known.iter().any(|known| error.contains(known));
                assert!(known, "{role} {preallocated}: {reply}");
            }
            cluster.start_worker(role, 0);
            await_success(&mut cluster);
            cluster.expect_outputs(&names(&format!("after-{role}-{preallocated}"), 8));
            cluster.finish();
        }
    }
}

#[test]
fn fifty_requests_at_a_time_come_to_what_the_roles_compute() {
    let Some(python) = python() else { return };
    for preallocated in [3, 0] {
        let mut cluster = Cluster::start(
            python,
            Setup {
                workers: 2,
                preallocated,
                ..Setup::default()
            },
        );
        cluster.expect_outputs(&names("many", 50));
        let told = cluster.finish();
        assert_eq!(steps(&told, "decoder"), 50);
    }
}

/// The other way round: our head node leads a worker that knows of the plane what its docs say.
#[test]
fn a_worker_in_python_moves_tensors_between_ours() {
    let Some(python) = python() else { return };
    for preallocated in ["3", "0"] {
        let sockets = Folder::new(&std::env::temp_dir());
        let segments = Folder::new(Path::new("/dev/shm"));
        let mut workers = Vec::new();
        let mut head = example("disaggregated");
        head.args([
            "--role",
            "head",
            "--json",
            "--size",
            "1",
            "--requests",
            "30",
        ]);
        for &role in THREE {
            let at = |name: String| endpoint("ipc", &sockets, &name);
            let (work, result) = (at(role.to_owned()), at(format!("{role}-result")));
            head.args(["--work", &format!("{role}={work}")]);
            head.args(["--result", &format!("{role}={result}")]);
            let mut options = vec![
                ("--work", work),
                ("--result", result),
                ("--segments", segments.path().display().to_string()),
                ("--prealloc", preallocated.to_owned()),
            ];
            if role == "denoiser" {
                workers.push(Worker::start_python(python, &options));
            } else {
                options.push(("--size", "1".to_owned()));
                options.push(("--pool", "32".to_owned()));
                workers.push(Worker::start(role, &options));
            }
        }
        let output = head.output().unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{preallocated}: {report}");
        // It has compared every byte.
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["ok"], true, "{preallocated}: {report}");
        workers.into_iter().map(Worker::finish).for_each(drop);
        assert!(segments.names().is_empty(), "{:?}", segments.names());
    }
}

// ---- what is expected ----

/// What Python says of the output of a request, by the rules of `examples/disaggregated/formula.rs`.
fn expected_output(request: &str, size_mib: usize) -> Value {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in request.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    let seed = hash % 65_521;
    // Rows of 77 * 64 float32, in what is left of the size after 8 KiB.
    let rows = ((size_mib << 20) - (8 << 10)) / (77 * 64 * 4);
    let elements = (0..rows as u64 * 77 * 64).map(|index| (seed + index) % 251);
    let output: Vec<u8> = elements.map(|x| ((2 * x + 1) % 256) as u8).collect();
    json!({"dtype": "uint8", "shape": [output.len()], "sha256": common::sha256(&output)})
}

fn names(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|index| format!("{name}-{index}")).collect()
}

/// Sends requests until some in a row come to what they have to.
///
/// Until the head node has taken up the new registration it sends others to the dead one. And
/// it counts the slot of a push that failed among those of the sender: there, each makes one
/// more push fail, at an address that is none of the receiver's, and is gone with it.
fn await_success(cluster: &mut Cluster) {
    const IN_A_ROW: usize = 6;
    let started = Instant::now();
    let mut good = 0;
    for attempt in 0.. {
        let request = format!("probe-{attempt}");
        cluster.server.send(&request, None);
        let reply = cluster.server.reply(&request);
        if reply["error"].is_null() {
            cluster.expect_output(&request, &reply);
            good += 1;
        } else {
            good = 0;
        }
        if good == IN_A_ROW {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{reply}");
    }
}

// ---- what the workers told ----

#[derive(Debug, Default)]
struct Slots {
    fast: u64,
    slow: u64,
}

impl std::ops::Add for Slots {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            fast: self.fast + other.fast,
            slow: self.slow + other.slow,
        }
    }
}

/// By which path the work of a role came.
fn counts(told: &BTreeMap<(&'static str, usize), Vec<Value>>, role: &str) -> Slots {
    let mut slots = Slots::default();
    for line in of(told, role) {
        match line["step"]["preallocated"].as_bool() {
            Some(true) => slots.fast += 1,
            Some(false) => slots.slow += 1,
            None => {}
        }
    }
    slots
}

fn steps(told: &BTreeMap<(&'static str, usize), Vec<Value>>, role: &str) -> usize {
    of(told, role)
        .filter(|line| line["step"].is_object())
        .count()
}

fn of<'a>(
    told: &'a BTreeMap<(&'static str, usize), Vec<Value>>,
    role: &'a str,
) -> impl Iterator<Item = &'a Value> {
    let lines = told.iter().filter(move |((of, _), _)| *of == role);
    lines.flat_map(|(_, lines)| lines)
}
