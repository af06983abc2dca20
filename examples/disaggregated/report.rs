//! The figures, for a person and for a program.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use tensorwire::transfer::Role;

use crate::Result;
use crate::args::Load;
use crate::demo::Outcome;
use crate::load::Passed;
use crate::measure::{End, Moved, Step, Told};
use crate::percentile::percentile;

#[derive(Serialize)]
pub(crate) struct Report {
    ok: bool,
    faults: Vec<String>,
    requests: usize,
    in_flight: usize,
    size_mib: usize,
    seconds: f64,
    steps: Vec<Row>,
    workers: Vec<WorkerRow>,
    killed: Vec<String>,
    retried: Vec<String>,
    restarts: usize,
}

/// A step of a request, over all of them.
#[derive(Serialize)]
struct Row {
    step: String,
    samples: usize,
    p50_ns: u64,
    p99_ns: u64,
    /// Of a step from one worker to another: what the plane moved.
    moved: Option<MovedRow>,
}

#[derive(Serialize)]
struct MovedRow {
    bytes: u64,
    /// How often each of them was copied, from where it was computed to where it is read.
    copies_per_byte: f64,
    /// How many of them went into a preallocated slot, and how many into one that was asked for.
    fast_path: usize,
    slow_path: usize,
}

/// The workers of a role that lived to the end.
#[derive(Serialize)]
struct WorkerRow {
    role: &'static str,
    pools: usize,
    pool_bytes: u64,
    /// The most that one of them had taken at a time.
    high_water_bytes: u64,
    /// What was taken when all was through, and should not have been.
    held_bytes: u64,
    leaked_bytes: u64,
}

impl Report {
    /// Of a head node whose workers are elsewhere: it knows of the requests only.
    pub(crate) fn of_head(load: &Load, passed: Passed) -> Self {
        let mut report = Self {
            ok: false,
            faults: passed.faults,
            requests: load.requests,
            in_flight: load.in_flight,
            size_mib: load.size_mib,
            seconds: passed.took.as_secs_f64(),
            steps: Vec::new(),
            workers: Vec::new(),
            killed: Vec::new(),
            retried: passed.retried,
            restarts: passed.restarts,
        };
        report.add_requests(&passed.sent_ns, &passed.ended_ns);
        report.ok = report.faults.is_empty();
        report
    }

    pub(crate) fn of_demo(load: &Load, outcome: Outcome) -> Self {
        let Outcome {
            passed,
            told,
            killed,
            slots,
        } = outcome;
        let (sent, ended) = (passed.sent_ns.clone(), passed.ended_ns.clone());
        let mut report = Self::of_head(load, passed);
        report.killed = killed;
        report.steps.clear();
        // Where each request is, by the id that it has on the wire: since when, and how it left.
        let mut from = "head node";
        let mut at: BTreeMap<&str, Left<'_>> = BTreeMap::new();
        at.extend(sent.iter().map(|(id, ns)| (id.as_str(), Left::at(*ns))));
        for (role, told) in &told {
            let of = Of::new(*role, told);
            report.add_role(from, &at, &of);
            // Those that pass a role by are where they were.
            if *role != Role::ImageEncoder {
                at.clear();
                from = role.name();
            } else {
                from = "encoders";
            }
            at.extend(of.left());
        }
        let back = ended.iter().filter_map(|(id, ns)| {
            let left = at.get(id.as_str())?;
            Some(ns.saturating_sub(left.done_ns))
        });
        let name = format!("{from} > head node");
        report.steps.push(Row::new(name, back, None));
        report.add_requests(&sent, &ended);
        report.add_leaks(&slots);
        report.ok = report.faults.is_empty();
        report
    }

    /// The way to a role, and what it does there.
    fn add_role(&mut self, from: &str, at: &BTreeMap<&str, Left<'_>>, of: &Of<'_>) {
        let came = of.steps.iter().filter(|step| !step.failed);
        let came = came.filter_map(|step| Some((step, at.get(step.request.as_str())?)));
        let way = came
            .clone()
            .map(|(step, left)| step.came_ns.saturating_sub(left.done_ns));
        let moved = came.clone().filter_map(|(_, left)| left.moved);
        let slots = of.steps.iter().filter_map(|step| step.preallocated);
        let moved = MovedRow::new(moved, slots);
        let name = format!("{from} > {}", of.role);
        self.steps.push(Row::new(name, way, moved));
        let work = came.map(|(step, _)| step.done_ns.saturating_sub(step.came_ns));
        self.steps.push(Row::new(of.role.to_string(), work, None));
        self.workers.push(of.row());
    }

    fn add_requests(&mut self, sent: &BTreeMap<String, u64>, ended: &BTreeMap<String, u64>) {
        let whole = ended.iter().filter_map(|(id, ended)| {
            let sent = sent.get(id)?;
            Some(ended.saturating_sub(*sent))
        });
        self.steps.push(Row::new("request".to_owned(), whole, None));
    }

    fn add_leaks(&mut self, slots: &crate::demo::SlotsOutcome) {
        for name in &slots.files {
            self.faults
                .push(format!("left behind in shared memory: {}", name.display()));
        }
        if slots.not_back > 0 {
            self.faults.push(format!(
                "{} preallocated slots are not back",
                slots.not_back
            ));
        }
        for row in &self.workers {
            for (bytes, what) in [(row.held_bytes, "still held"), (row.leaked_bytes, "leaked")] {
                if bytes > 0 {
                    self.faults.push(format!(
                        "{}: {} {what} in the pool",
                        row.role,
                        show_bytes(bytes)
                    ));
                }
            }
        }
    }

    pub(crate) fn into_result(self) -> Result<()> {
        match self.faults.as_slice() {
            [] => Ok(()),
            [first] => Err(first.clone().into()),
            [first, more @ ..] => Err(format!("{first} (and {} more)", more.len()).into()),
        }
    }

    pub(crate) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write_table(&mut out);
        out
    }

    fn write_table(&self, out: &mut String) -> std::fmt::Result {
        let head = [
            "step",
            "p50",
            "p99",
            "moved",
            "copies/byte",
            "fast path",
            "slow path",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        for row in &self.steps {
            let moved = row.moved.as_ref();
            let show = |show: fn(&MovedRow) -> String| moved.map_or_else(|| "-".to_owned(), show);
            rows.push([
                row.step.clone(),
                show_time(row.p50_ns),
                show_time(row.p99_ns),
                show(|moved| show_bytes(moved.bytes)),
                show(|moved| format!("{:.2}", moved.copies_per_byte)),
                show(|moved| moved.fast_path.to_string()),
                show(|moved| moved.slow_path.to_string()),
            ]);
        }
        write_columns(out, &rows)?;
        if !self.workers.is_empty() {
            writeln!(out)?;
            let head = ["role", "pools", "of", "most taken", "still taken"];
            let mut rows = vec![head.map(str::to_owned)];
            for row in &self.workers {
                rows.push([
                    row.role.to_owned(),
                    row.pools.to_string(),
                    show_bytes(row.pool_bytes),
                    show_bytes(row.high_water_bytes),
                    show_bytes(row.held_bytes + row.leaked_bytes),
                ]);
            }
            write_columns(out, &rows)?;
        }
        writeln!(out)?;
        self.write_notes(out)
    }

    fn write_notes(&self, out: &mut String) -> std::fmt::Result {
        let verdict = if self.ok {
            "every byte was as it must be"
        } else {
            "NOT all was well"
        };
        writeln!(
            out,
            "{} requests in {:.2} s, {} at a time: {verdict}.",
            self.requests, self.seconds, self.in_flight
        )?;
        if !self.killed.is_empty() {
            let killed = self.killed.join(", ");
            writeln!(out, "killed: {killed}; {} registered again.", self.restarts)?;
            let count = self.retried.len();
            writeln!(
                out,
                "retried: {count} requests{}",
                if count > 0 { ":" } else { "." }
            )?;
            for retried in &self.retried {
                writeln!(out, "  {retried}")?;
            }
        }
        if !self.workers.is_empty() && self.ok {
            writeln!(
                out,
                "leaked: nothing; no file is left in shared memory, and all pools are whole."
            )?;
        }
        for fault in &self.faults {
            writeln!(out, "FAULT: {fault}")?;
        }
        Ok(())
    }
}

/// What the workers of a role told, sorted.
struct Of<'a> {
    role: Role,
    steps: Vec<&'a Step>,
    moved: Vec<&'a Moved>,
    ends: Vec<&'a End>,
}

impl<'a> Of<'a> {
    fn new(role: Role, told: &'a [Told]) -> Self {
        let mut of = Self {
            role,
            steps: Vec::new(),
            moved: Vec::new(),
            ends: Vec::new(),
        };
        for told in told {
            match told {
                Told::End(end) => of.ends.push(end),
                Told::Moved(moved) => of.moved.push(moved),
                Told::Step(step) => of.steps.push(step),
            }
        }
        of
    }

    /// When each request was through here, and how it went on.
    fn left(&self) -> impl Iterator<Item = (&'a str, Left<'a>)> {
        let moved = self
            .moved
            .iter()
            .map(|&moved| (moved.request.as_str(), moved));
        let moved: BTreeMap<_, _> = moved.collect();
        self.steps.iter().map(move |&step| {
            let request = step.request.as_str();
            let left = Left {
                done_ns: step.done_ns,
                moved: moved.get(request).copied(),
            };
            (request, left)
        })
    }

    fn row(&self) -> WorkerRow {
        let most = |of: fn(&End) -> u64| self.ends.iter().map(|end| of(end)).max().unwrap_or(0);
        let sum = |of: fn(&End) -> u64| self.ends.iter().map(|end| of(end)).sum();
        WorkerRow {
            role: self.role.name(),
            pools: self.ends.len(),
            pool_bytes: most(|end| end.pool_bytes),
            high_water_bytes: most(|end| end.high_water_bytes),
            held_bytes: sum(|end| end.held_bytes),
            leaked_bytes: sum(|end| end.leaked_bytes),
        }
    }
}

/// When a request was through with a role.
struct Left<'a> {
    done_ns: u64,
    /// What was moved to the next one.
    moved: Option<&'a Moved>,
}

impl Left<'_> {
    const fn at(done_ns: u64) -> Self {
        Self {
            done_ns,
            moved: None,
        }
    }
}

impl MovedRow {
    /// `slots` says of each slot that came whether it was a preallocated one; `None` if none came.
    fn new<'a>(
        moved: impl Iterator<Item = &'a Moved>,
        slots: impl Iterator<Item = bool> + Clone,
    ) -> Option<Self> {
        let (bytes, copied) = moved.fold((0, 0), |(bytes, copied), moved| {
            (bytes + moved.bytes, copied + moved.copied_bytes)
        });
        let row = Self {
            bytes,
            copies_per_byte: copied as f64 / bytes.max(1) as f64,
            fast_path: slots.clone().filter(|&preallocated| preallocated).count(),
            slow_path: slots.filter(|&preallocated| !preallocated).count(),
        };
        (row.fast_path + row.slow_path > 0).then_some(row)
    }
}

impl Row {
    fn new(step: String, samples: impl Iterator<Item = u64>, moved: Option<MovedRow>) -> Self {
        let samples: Vec<_> = samples.collect();
        Self {
            step,
            samples: samples.len(),
            p50_ns: percentile(&samples, 50),
            p99_ns: percentile(&samples, 99),
            moved,
        }
    }
}

/// The first column to the left, the others to the right.
fn write_columns<const N: usize>(out: &mut String, rows: &[[String; N]]) -> std::fmt::Result {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match column {
                0 => write!(out, "{cell:<width$}")?,
                _ => write!(out, "  {cell:>width$}")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn show_bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.2} GB", count as f64 / 1e9),
    }
}

fn show_time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}
