//! The machines of head node and workers without any I/O: what a request costs them.

use std::hint::black_box;
use std::time::Instant;

use tensorwire::Decoder;
use tensorwire::message::{MessageKind, classify};
use tensorwire::transfer::Control;

use super::cluster::{Cluster, Spent};
use super::common::compare::{contestant, quartiles, show};
use super::quantile;

/// Requests before those that count: by then the ended ones that are remembered are as many as may be.
const WARM_UP: usize = 3000;

/// Turns in which the parts are timed, and the requests of one.
const TURNS: usize = 401;
const TURN: usize = 50;

pub(crate) fn run() {
    println!(
        "machines of a head node and three workers, one thread, no I/O; a request through all"
    );
    for (name, preallocated) in [("fast path", 2), ("slow path", 0)] {
        let mut cluster = Cluster::new(preallocated);
        for _ in 0..WARM_UP {
            cluster.request::<false>();
        }
        cluster.record = Some(Vec::new());
        cluster.request::<false>();
        let record = cluster.record.take().unwrap();
        let payloads: Vec<_> = record
            .iter()
            .filter_map(|frames| match classify(frames) {
                MessageKind::Control { payload } => Some(payload),
                _ => None,
            })
            .collect();
        let bytes: usize = payloads.iter().map(|payload| payload.len()).sum();
        let controls: Vec<_> = payloads
            .iter()
            .map(|payload| Control::decode(payload).unwrap())
            .collect();
        let result = record.last().unwrap();
        let (mut decoder, mut buffer) = (Decoder::new(), vec![0; 4096]);
        let times = quartiles(&mut [
            contestant("request", || cluster.request::<false>()),
            contestant("read", || {
                for payload in &payloads {
                    black_box(Control::decode(black_box(payload)).unwrap());
                }
                black_box(decoder.decode(black_box(result)).unwrap());
            }),
            contestant("written", || {
                for control in &controls {
                    black_box(black_box(control).encode_into(&mut buffer).unwrap());
                }
            }),
        ]);
        let [(_, request), (_, read), (_, written)] = times[..] else {
            unreachable!("three contestants");
        };
        println!(
            "  {name}  {} messages, {} of them control with {bytes} B: {:>8}; reading them {:.0} %, writing the control messages again {:.0} %",
            record.len(),
            payloads.len(),
            show(request),
            read / request * 100.0,
            written / request * 100.0
        );
        let clock = clock();
        let mut turns: Vec<_> = (0..TURNS).map(|_| parts(&mut cluster, clock)).collect();
        turns.sort_by(|one, other| one.iter().sum::<f64>().total_cmp(&other.iter().sum()));
        // Of the turn at the lower quartile, as the time above.
        let parts = turns[TURNS / 4];
        let all: f64 = parts.iter().sum();
        let [head, workers, local] = parts.map(|part| part / all * 100.0);
        println!(
            "  {name}  head node {head:.0} %, workers' machines {workers:.0} %, slots and result {local:.0} %; the parts together {}",
            show(all)
        );
    }
}

/// Nanoseconds by request: head node, workers' machines, the rest.
fn parts(cluster: &mut Cluster, clock: f64) -> [f64; 3] {
    cluster.spent = Spent::default();
    for _ in 0..TURN {
        cluster.request::<true>();
    }
    let spent = cluster.spent;
    [spent.head, spent.workers, spent.local].map(|part| part.spent(clock) / TURN as f64)
}

/// Nanoseconds that a measurement of nothing shows.
fn clock() -> f64 {
    const COUNT: usize = 1001;
    let mut samples = [0.0; COUNT];
    for sample in &mut samples {
        let start = black_box(Instant::now());
        *sample = start.elapsed().as_nanos() as f64;
    }
    quantile(&samples, 0.5)
}
