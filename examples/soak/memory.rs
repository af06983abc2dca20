//! The resident memory of this process in the course of a run.

use std::fs;

/// Resident memory by number of messages.
#[derive(Default)]
pub(crate) struct Trace {
    points: Vec<(f64, f64)>,
}

impl Trace {
    /// Takes a sample after `messages`.
    pub(crate) fn sample(&mut self, messages: u64) {
        self.points.push((messages as f64, resident()));
    }

    /// Returns the last sample, in bytes.
    pub(crate) fn last(&self) -> f64 {
        self.points.last().map_or(0.0, |&(_, bytes)| bytes)
    }

    /// Returns the slope of the least squares' line through the second half, in bytes
    /// a message.
    pub(crate) fn slope(&self) -> f64 {
        let points = &self.points[self.points.len() / 2..];
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let (mut products, mut squares) = (0.0, 0.0);
        for &(messages, bytes) in points {
            products += (messages - x) * (bytes - y);
            squares += (messages - x) * (messages - x);
        }
        if squares == 0.0 {
            0.0
        } else {
            products / squares
        }
    }
}

/// The pages that are resident, in bytes; 0 where there is no /proc.
fn resident() -> f64 {
    let pages = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|statm| {
            let resident = statm.split_whitespace().nth(1)?;
            resident.parse::<f64>().ok()
        });
    pages.unwrap_or(0.0) * PAGE
}

/// The usual size of a page.
const PAGE: f64 = 4096.0;
