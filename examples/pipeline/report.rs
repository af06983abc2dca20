//! The figures, for a person and for a program.

use std::fmt::Write;

use serde::Serialize;
use tensorwire::Scalar;
use tensorwire::message::encoded_len;

use crate::Result;
use crate::args::Run;
use crate::head::{IN_FLIGHT, Passed};
use crate::inbox::Receipt;
use crate::link::Throughput;
use crate::measure::{REPEATS, clock_ns};
use crate::percentile::percentile;
use crate::plan::{Message, Request, Stage};
use crate::stage::VERIFIED;

#[derive(Serialize)]
pub(crate) struct Report {
    verified: bool,
    faults: Vec<String>,
    requests: u64,
    in_flight: u64,
    seconds: f64,
    python: Vec<&'static str>,
    /// What the clock adds to each time of a decode.
    clock_ns: u64,
    messages: Vec<Row>,
    throughput: Vec<Throughput>,
}

/// One message, summed over the requests.
#[derive(Serialize)]
struct Row {
    message: &'static str,
    from: &'static str,
    to: &'static str,
    tensors: usize,
    /// Of one message, in all its frames.
    bytes: usize,
    /// Nothing of what a Python stage received.
    received: Option<Received>,
}

#[derive(Serialize)]
struct Received {
    messages: usize,
    decodes_per_message: usize,
    /// The median of the decodes that followed a receive.
    decode_first_ns: u64,
    /// Of all further decodes of the same messages.
    decode_median_ns: u64,
    decode_p99_ns: u64,
    /// In all decodes but the very first, which sizes the decoder's storage.
    allocations: u64,
    allocations_per_decode: f64,
    allocations_in_the_first: u64,
    views: usize,
    misaligned: usize,
    realigned_bytes: usize,
}

impl Report {
    pub(crate) fn new(run: &Run, passed: &Passed, throughput: Vec<Throughput>) -> Result<Self> {
        let rows = Message::ALL.iter().zip(&passed.receipts);
        Ok(Self {
            verified: passed.faults.is_empty(),
            faults: passed.faults.clone(),
            requests: run.requests,
            in_flight: IN_FLIGHT.min(run.requests),
            seconds: passed.took.as_secs_f64(),
            python: run.python.iter().map(|stage| stage.name()).collect(),
            clock_ns: clock_ns(),
            messages: rows
                .map(|(message, receipts)| Row::new(*message, run, receipts))
                .collect::<Result<_>>()?,
            throughput,
        })
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
        let name = |stage: &'static str| {
            if self.python.contains(&stage) {
                format!("{stage}*")
            } else {
                stage.to_owned()
            }
        };
        writeln!(
            out,
            "{:<8} {:<21} {:>7} {:>9} {:>10} {:>9} {:>9} {:>7} {:>11}",
            "message",
            "way",
            "tensors",
            "bytes",
            "decode 1st",
            "median",
            "p99",
            "allocs",
            "misaligned"
        )?;
        for row in &self.messages {
            let way = format!("{} > {}", name(row.from), name(row.to));
            write!(
                out,
                "{:<8} {way:<21} {:>7} {:>9} ",
                row.message,
                row.tensors,
                bytes(row.bytes)
            )?;
            match &row.received {
                None => writeln!(
                    out,
                    "{:>10} {:>9} {:>9} {:>7} {:>11}",
                    "-", "-", "-", "-", "-"
                )?,
                Some(received) => writeln!(
                    out,
                    "{:>10} {:>9} {:>9} {:>7} {:>11}",
                    time(received.decode_first_ns),
                    time(received.decode_median_ns),
                    time(received.decode_p99_ns),
                    number(received.allocations_per_decode),
                    format!("{} of {}", received.misaligned, received.views),
                )?,
            }
        }
        writeln!(out)?;
        writeln!(
            out,
            "{:<8} {:>29} {:>14} {:>7} {:>14}",
            "message", "tensorwire", "bare libzmq", "ratio", "quartiles"
        )?;
        for row in &self.throughput {
            let [ours, bare] =
                [row.tensorwire, row.libzmq].map(|rate| format!("{:.2} GB/s", rate / 1e9));
            let [low, high] = row.ratio_quartiles;
            writeln!(
                out,
                "{:<8} {ours:>29} {bare:>14} {:>7.2} {:>14}",
                row.message,
                row.ratio,
                format!("{low:.2} to {high:.2}")
            )?;
        }
        writeln!(out)?;
        self.write_notes(out)
    }

    fn write_notes(&self, out: &mut String) -> std::fmt::Result {
        let verdict = if self.verified {
            "every byte was as sent"
        } else {
            "NOT every byte was as sent"
        };
        writeln!(
            out,
            "{} requests in {:.2} s, {} at a time: {verdict}.",
            self.requests, self.seconds, self.in_flight
        )?;
        if !self.python.is_empty() {
            writeln!(out, "* in Python; what it receives is not measured here.")?;
        }
        writeln!(
            out,
            "decode: 1st is the one after the receive (median), then each message {REPEATS} times more; \
             {} of each is the clock.",
            time(self.clock_ns)
        )?;
        writeln!(
            out,
            "allocs: for each decode but a decoder's first, which makes its storage."
        )?;
        let copied: usize = self
            .messages
            .iter()
            .filter_map(|row| row.received.as_ref())
            .map(|row| row.realigned_bytes)
            .sum();
        writeln!(
            out,
            "misaligned: views that had to be copied to be read as numbers, {} in all.",
            bytes(copied)
        )?;
        if let [first, ..] = self.throughput.as_slice() {
            writeln!(
                out,
                "throughput: two processes, {} rounds each in turn, medians; encode, send, receive and decode against bare frames; \
                 quartiles of the ratio round by round.",
                first.rounds
            )?;
        }
        Ok(())
    }
}

impl Row {
    fn new(message: Message, run: &Run, receipts: &[Receipt]) -> Result<Self> {
        let head = "head";
        let bytes = match receipts.last() {
            Some(receipt) => receipt.bytes,
            None => planned_bytes(message, run)?,
        };
        Ok(Self {
            message: message.name(),
            from: message.sender().map_or(head, Stage::name),
            to: message.receiver().map_or(head, Stage::name),
            tensors: message.tensors().len(),
            bytes,
            received: (!receipts.is_empty()).then(|| Received::new(receipts)),
        })
    }
}

impl Received {
    fn new(receipts: &[Receipt]) -> Self {
        let timings = || receipts.iter().map(|receipt| &receipt.timing);
        let firsts: Vec<u64> = timings().map(|timing| timing.first_ns).collect();
        let repeats: Vec<u64> = timings()
            .flat_map(|timing| timing.repeats_ns.iter().copied())
            .collect();
        let decodes = repeats.len() + firsts.len() - 1;
        let allocations = timings()
            .skip(1)
            .map(|timing| timing.first_allocations)
            .sum::<u64>()
            + timings()
                .map(|timing| timing.repeats_allocations)
                .sum::<u64>();
        Self {
            messages: receipts.len(),
            decodes_per_message: 1 + REPEATS,
            decode_first_ns: percentile(&firsts, 50),
            decode_median_ns: percentile(&repeats, 50),
            decode_p99_ns: percentile(&repeats, 99),
            allocations,
            allocations_per_decode: allocations as f64 / decodes as f64,
            allocations_in_the_first: timings()
                .next()
                .map_or(0, |timing| timing.first_allocations),
            views: receipts.iter().map(|receipt| receipt.tensors).sum(),
            misaligned: receipts.iter().map(|receipt| receipt.misaligned).sum(),
            realigned_bytes: receipts.iter().map(|receipt| receipt.realigned_bytes).sum(),
        }
    }
}

/// The bytes of a message to a Python stage: of the payloads and of what either codec writes before them.
fn planned_bytes(message: Message, run: &Run) -> Result<usize> {
    let request = Request::new(run.requests.saturating_sub(1));
    let mut scalars = request.scalars().to_vec();
    if message != Message::Request {
        scalars.push((VERIFIED, Scalar::from(true)));
    }
    let descriptors = message.descriptors(run.size)?;
    let payloads = descriptors.iter().map(|descriptor| descriptor.byte_len());
    Ok(payloads.sum::<usize>() + encoded_len(&descriptors, scalars.as_slice())?)
}

pub(crate) fn bytes(count: usize) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.2} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} MB", count as f64 / 1e6),
        _ => format!("{:.2} GB", count as f64 / 1e9),
    }
}

fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..100_000 => format!("{:.2} µs", ns as f64 / 1e3),
        100_000..10_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

/// Whole where it is.
fn number(value: f64) -> String {
    if value == value.trunc() {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}
