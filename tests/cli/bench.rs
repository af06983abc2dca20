//! `bench`, for scripts.

use crate::processes::{children, gone, signal, within};
use crate::support::{PATIENCE, Process, printed, run};

/// The transports of this build.
const TRANSPORTS: &[&str] = &[
    "zmq",
    #[cfg(feature = "nng")]
    "nng",
];

#[test]
fn a_measurement_is_one_json_object() {
    for transport in TRANSPORTS {
        for size in ["0", "64KiB"] {
            let output = run([
                "bench",
                "--json",
                "--transport",
                transport,
                "--size",
                size,
                "--duration",
                "0.2",
            ]);
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
    let bench = Process::start(&["bench", "--duration", "600"]);
    let id = bench.id();
    let peer = within(PATIENCE, "a second process", || {
        let all = children(id);
        all.iter()
            .find(|(_, line)| line.contains("bench-peer"))
            .map(|(peer, _)| *peer)
    });
    signal("INT", id);
    let (code, _, notes) = bench.end();
    assert_eq!(code, Some(130), "{notes:?}");
    within(PATIENCE, "the end of the second process", || {
        gone(peer).then_some(())
    });
}
