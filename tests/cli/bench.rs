//! `bench`, for scripts.

use std::time::{Duration, Instant};

use crate::processes::{children, gone, signal, within};
use crate::support::{PATIENCE, Process, TRANSPORTS, printed, run};

#[test]
fn a_measurement_is_one_json_object() {
    for transport in TRANSPORTS {
        for size in ["0", "64KiB"] {
            let arguments =
                format!("bench --json --transport {transport} --size {size} --duration 0.2");
            let output = run(arguments.split(' '));
            let printed = printed(&output);
            assert_eq!(printed.matches('\n').count(), 1);
            let report: serde_json::Value = serde_json::from_str(printed).unwrap();
            assert_eq!(report["transport"], *transport);
            let latency = &report["latency"];
            assert!(latency["round_trips"].as_u64().unwrap() >= 1, "{report}");
            let times: Vec<_> = ["min_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us"]
                .iter()
                .map(|key| latency[key].as_f64().unwrap())
                .collect();
            assert!(times[0] > 0.0 && times.is_sorted(), "{report}");
            let throughput = &report["throughput"];
            assert!(
                throughput["messages"].as_u64().unwrap() >= 1
                    && throughput["messages_per_second"].as_f64().unwrap() > 0.0,
                "{report}"
            );
        }
    }
}

#[test]
fn ctrl_c_ends_both_processes() {
    let bench = Process::words("bench --duration 600", &[]);
    let id = bench.id();
    let peer = second(&bench);
    signal("INT", id);
    let (code, _, notes) = bench.end();
    assert_eq!(code, Some(130), "{notes:?}");
    within(PATIENCE, "the end of the second process", || {
        gone(peer).then_some(())
    });
}

/// The second process of a bench.
fn second(bench: &Process) -> u32 {
    within(PATIENCE, "a second process", || {
        let all = children(bench.id());
        all.iter()
            .find(|(_, line)| line.contains("bench-peer"))
            .map(|(peer, _)| *peer)
    })
}

#[test]
fn a_second_process_that_is_killed_ends_the_first_at_once() {
    for transport in TRANSPORTS {
        // In the first measurement, and as a rule in the second one, which begins after 2 s.
        for (duration, after) in [("600", 0), ("2", 3)] {
            let bench = Process::words(
                &format!("bench --transport {transport} --duration {duration}"),
                &[],
            );
            let peer = second(&bench);
            std::thread::sleep(Duration::from_secs(after));
            let started = Instant::now();
            signal("KILL", peer);
            let (code, lines, notes) = bench.end();
            assert_eq!((code, lines.len()), (Some(1), 0), "{notes:?}");
            assert!(
                notes[0].contains("the other process ended: signal: 9"),
                "{notes:?}"
            );
            // Not after the half minute that a living one may take.
            assert!(started.elapsed().as_secs() < 25, "{transport} {duration}");
        }
    }
}

#[test]
fn a_first_process_that_is_killed_takes_the_second_along() {
    let bench = Process::words("bench --duration 600", &[]);
    let peer = second(&bench);
    signal("KILL", bench.id());
    let started = Instant::now();
    bench.end();
    within(PATIENCE, "the end of the second process", || {
        gone(peer).then_some(())
    });
    // Not when it has heard nothing for half a minute.
    assert!(started.elapsed().as_secs() < 25);
}
