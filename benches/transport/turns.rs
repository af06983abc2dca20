//! Contestants in turns: all of them between the same two threads, so that they differ in nothing else.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::common::folder::Folder;
use super::end::{End, Endpoints, HighWater, Sample, Way};

/// How often all contestants connect anew, as a connection is fast or slow by luck
/// and stays so; how long one set of connections may be used, and for how few turns.
const CONNECTIONS: usize = 6;
const BUDGET: Duration = Duration::from_millis(250);
const FEWEST: usize = 2;

/// How long a turn takes about.
const TURN: Duration = Duration::from_millis(4);

/// Round trips before those that count: the threads are awake then.
const WARM_UP: usize = 5;

/// What is measured.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Measure {
    /// Each round trip.
    RoundTrip,
    /// The time by message of a stream of them, one for each turn.
    Stream,
}

/// What the other thread is to do next.
enum Job {
    Echo(usize, usize),
    Send(usize, usize),
}

/// What was measured of one contestant.
pub(crate) struct Times {
    /// In nanoseconds, sorted.
    sorted: Vec<f64>,
    /// The median of each turn, in the order of turns.
    by_turn: Vec<f64>,
}

impl Times {
    pub(crate) fn quantile(&self, quantile: f64) -> f64 {
        at(&self.sorted, quantile)
    }

    /// By how much it takes longer than `other`, turn by turn: the quartiles.
    pub(crate) fn ratio(&self, other: &Self) -> [f64; 3] {
        let mut ratios: Vec<_> = self
            .by_turn
            .iter()
            .zip(&other.by_turn)
            .map(|(mine, theirs)| mine / theirs)
            .collect();
        ratios.sort_by(f64::total_cmp);
        [0.25, 0.5, 0.75].map(|quantile| at(&ratios, quantile))
    }
}

fn at(sorted: &[f64], quantile: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * quantile).round() as usize]
}

/// Has the contestants move messages like `sample`, in turns.
pub(crate) fn take_turns(
    measure: Measure,
    ways: &[Way],
    scheme: &str,
    sample: &Sample,
    mark: HighWater,
) -> Vec<Times> {
    let mut turns = vec![Vec::new(); ways.len()];
    let mut counts = vec![1; ways.len()];
    for _ in 0..CONNECTIONS {
        let turns = &mut turns;
        connect_and_measure(measure, ways, scheme, sample, mark, &mut counts, turns);
    }
    turns
        .into_iter()
        .map(|turns: Vec<Vec<f64>>| {
            let by_turn = turns.iter().map(|turn| at(turn, 0.5)).collect();
            let mut sorted: Vec<_> = turns.into_iter().flatten().collect();
            sorted.sort_by(f64::total_cmp);
            Times { sorted, by_turn }
        })
        .collect()
}

/// Adds to each contestant's turns those over one set of connections; `counts` is
/// how many messages a turn of each has, as some take a thousand times as long as others.
fn connect_and_measure(
    measure: Measure,
    ways: &[Way],
    scheme: &str,
    sample: &Sample,
    mark: HighWater,
    counts: &mut [usize],
    turns: &mut [Vec<Vec<f64>>],
) {
    let folder = Folder::new();
    let (mut here, mut there): (Vec<_>, Vec<_>) = ways
        .iter()
        .enumerate()
        .map(|(number, way)| way(&Endpoints::new(scheme, folder.path(), number), mark).into())
        .unzip();
    let (jobs, orders) = channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            for job in orders {
                match job {
                    Job::Echo(index, count) => {
                        let end: &mut Box<dyn End> = &mut there[index];
                        for _ in 0..count {
                            end.recv(sample);
                            end.send(sample);
                        }
                    }
                    Job::Send(index, count) => {
                        for _ in 0..count {
                            there[index].send(sample);
                        }
                    }
                }
            }
        });
        measure_all(measure, &mut here, sample, &jobs, counts, turns);
        drop(jobs);
    });
}

/// For each contestant, the times of each turn, sorted.
fn measure_all(
    measure: Measure,
    ends: &mut [Box<dyn End>],
    sample: &Sample,
    jobs: &Sender<Job>,
    counts: &mut [usize],
    turns: &mut [Vec<Vec<f64>>],
) {
    // The first turn over a connection is not counted.
    for (index, count) in counts.iter_mut().enumerate() {
        while turn(measure, ends, index, *count, sample, jobs).1 < TURN {
            *count *= 2;
        }
    }
    let start = Instant::now();
    let mut round = 0;
    while round < FEWEST || start.elapsed() < BUDGET {
        for offset in 0..ends.len() {
            // Another one first in each round.
            let index = (round + offset) % ends.len();
            let (mut samples, _) = turn(measure, ends, index, counts[index], sample, jobs);
            samples.sort_by(f64::total_cmp);
            turns[index].push(samples);
        }
        round += 1;
    }
}

/// One turn: what was measured, and how long it took in all.
fn turn(
    measure: Measure,
    ends: &mut [Box<dyn End>],
    index: usize,
    count: usize,
    sample: &Sample,
    jobs: &Sender<Job>,
) -> (Vec<f64>, Duration) {
    let end = &mut ends[index];
    if measure == Measure::Stream {
        jobs.send(Job::Send(index, count + 1)).unwrap();
        // The first one tells that the other thread is awake.
        end.recv(sample);
        let start = Instant::now();
        for _ in 0..count {
            end.recv(sample);
        }
        let took = start.elapsed();
        return (vec![took.as_nanos() as f64 / count as f64], took);
    }
    jobs.send(Job::Echo(index, count + WARM_UP)).unwrap();
    for _ in 0..WARM_UP {
        end.send(sample);
        end.recv(sample);
    }
    let mut samples = Vec::with_capacity(count);
    let start = Instant::now();
    let mut last = start;
    for _ in 0..count {
        end.send(sample);
        end.recv(sample);
        let now = Instant::now();
        samples.push((now - last).as_nanos() as f64);
        last = now;
    }
    (samples, last - start)
}
