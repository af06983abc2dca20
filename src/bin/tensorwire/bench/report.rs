//! What was measured: a histogram for people, numbers for scripts.

use std::fmt::Write as _;
use std::time::Duration;

use super::Stream;
use crate::args::{BenchArguments, Transport};
use crate::json;
use crate::output::{BOLD, CYAN, DIM, RESET};
use crate::table;

/// What was measured.
pub(super) struct Report {
    transport: Transport,
    endpoint: String,
    size: usize,
    /// In order of length.
    times: Vec<Duration>,
    stream: Stream,
}

impl Report {
    pub(super) fn new(
        arguments: &BenchArguments,
        endpoint: &str,
        mut times: Vec<Duration>,
        stream: Stream,
    ) -> Self {
        times.sort_unstable();
        Self {
            transport: arguments.transport,
            endpoint: endpoint.to_owned(),
            size: arguments.size,
            times,
            stream,
        }
    }

    /// The time that this share of the round trips stayed within.
    fn percentile(&self, share: f64) -> Duration {
        let last = self.times.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        self.times.get(index).copied().unwrap_or_default()
    }

    fn mean(&self) -> Duration {
        let sum: Duration = self.times.iter().sum();
        let count = u32::try_from(self.times.len()).unwrap_or(u32::MAX);
        sum.checked_div(count).unwrap_or_default()
    }

    /// Messages and payload bytes a second, one way.
    fn rates(&self) -> (f64, f64) {
        let seconds = self.stream.elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return (0.0, 0.0);
        }
        let messages = self.stream.messages as f64 / seconds;
        (messages, messages * self.size as f64)
    }

    /// One JSON object; times are in microseconds.
    pub(super) fn json(&self) -> String {
        let micros = |time: Duration| json::number(time.as_nanos() as f64 / 1e3);
        let (messages, bytes) = self.rates();
        format!(
            r#"{{"kind":"bench","transport":"{}","endpoint":{},"size":{},"latency":{{"round_trips":{},"min_us":{},"mean_us":{},"p50_us":{},"p90_us":{},"p99_us":{},"p999_us":{},"max_us":{}}},"throughput":{{"messages":{},"seconds":{},"messages_per_second":{},"bytes_per_second":{}}}}}"#,
            self.transport.name(),
            json::string(&self.endpoint),
            self.size,
            self.times.len(),
            micros(self.percentile(0.0)),
            micros(self.mean()),
            micros(self.percentile(0.5)),
            micros(self.percentile(0.9)),
            micros(self.percentile(0.99)),
            micros(self.percentile(0.999)),
            micros(self.percentile(1.0)),
            self.stream.messages,
            json::number(self.stream.elapsed.as_secs_f64()),
            json::number(messages),
            json::number(bytes),
        )
    }

    /// A histogram and the numbers below it, no wider than the terminal.
    pub(super) fn text(&self, width: Option<usize>) -> String {
        let mut text = format!(
            "{BOLD}{}{RESET} at {CYAN}{}{RESET}, two processes,\n{} a message\n\n",
            self.transport.name(),
            crate::safe_text::line(&self.endpoint),
            table::bytes(self.size),
        );
        let _ = writeln!(
            text,
            "{BOLD}there and back{RESET}, {} round trips",
            self.times.len()
        );
        text.push_str(&self.histogram(width.unwrap_or(80)));
        for (name, share) in [
            ("p50", 0.5),
            ("p90", 0.9),
            ("p99", 0.99),
            ("p99.9", 0.999),
            ("max", 1.0),
        ] {
            let _ = writeln!(text, "  {name:<6} {:>9}", micros(self.percentile(share)));
        }
        let (messages, bytes) = self.rates();
        let _ = writeln!(
            text,
            "\n{BOLD}one way{RESET}, {} messages in {:.1} s\n  {messages:.0} messages/s, {}/s",
            self.stream.messages,
            self.stream.elapsed.as_secs_f64(),
            table::bytes(bytes as usize),
        );
        text
    }

    /// A bar for each span of times, from the fastest to that of all but one in a hundred, each
    /// span longer than the last by the same share; what took longer has one bar.
    fn histogram(&self, width: usize) -> String {
        let mut text = String::new();
        let last = self.percentile(0.99);
        let mut from = self.percentile(0.0);
        let ratio = last.as_secs_f64() / from.as_secs_f64().max(1e-9);
        let step = ratio.powf(1.0 / BARS).clamp(1.02, 1.5);
        let mut spans = Vec::new();
        while spans.len() < MOST_BARS && from <= last {
            let to = from.mul_f64(step).max(from + Duration::from_nanos(100));
            spans.push((from, to));
            from = to;
        }
        let within = |from: Duration, to: Duration| {
            let below = |limit: Duration| self.times.partition_point(|&time| time < limit);
            below(to) - below(from)
        };
        let mut bars: Vec<_> = spans
            .iter()
            .map(|&(from, to)| (micros(from), within(from, to)))
            .collect();
        let rest = within(from, Duration::MAX);
        if rest > 0 {
            bars.push((format!("> {}", micros(from)), rest));
        }
        let most = bars
            .iter()
            .map(|(_, count)| *count)
            .max()
            .unwrap_or(0)
            .max(1);
        // Before the bar: two spaces, the time, a space; behind it a space and the count.
        let room = width.saturating_sub(2 + 14 + 1 + 1 + 9).clamp(4, 60);
        for (time, count) in bars {
            let eighths = (count as f64 / most as f64 * (room * 8) as f64).ceil() as usize;
            let mut bar = "█".repeat(eighths / 8);
            bar.extend(
                EIGHTHS
                    .get(eighths % 8)
                    .into_iter()
                    .filter(|_| !eighths.is_multiple_of(8)),
            );
            let _ = writeln!(text, "  {time:>14} {CYAN}{bar}{RESET} {DIM}{count}{RESET}");
        }
        text
    }
}

/// How many bars are aimed at, and the most that are drawn.
const BARS: f64 = 12.0;
const MOST_BARS: usize = 16;

/// Blocks of so many eighths, the first of them never used.
const EIGHTHS: &[char] = &[' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A time for people.
fn micros(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1000.0 {
        format!("{micros:.1} µs")
    } else {
        format!("{:.2} ms", micros / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(times: Vec<Duration>) -> Report {
        let stream = Stream {
            messages: 1000,
            elapsed: Duration::from_millis(500),
        };
        let mut times = times;
        times.sort_unstable();
        Report {
            transport: Transport::Zmq,
            endpoint: "tcp://127.0.0.1:1".into(),
            size: 4096,
            times,
            stream,
        }
    }

    #[test]
    fn percentiles_and_rates_are_those_of_the_times() {
        let report = report((1..=1000).rev().map(Duration::from_micros).collect());
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        let latency = &json["latency"];
        assert_eq!(latency["round_trips"], 1000);
        for (key, value) in [
            ("min_us", 1.0),
            ("p50_us", 501.0),
            ("p90_us", 900.0),
            ("p99_us", 990.0),
            ("max_us", 1000.0),
            ("mean_us", 500.5),
        ] {
            assert!(
                (latency[key].as_f64().unwrap() - value).abs() < 0.01,
                "{key}"
            );
        }
        assert_eq!(json["throughput"]["messages_per_second"], 2000.0);
        assert_eq!(json["throughput"]["bytes_per_second"], 8_192_000.0);
    }

    #[test]
    fn the_histogram_counts_every_round_trip_and_fits() {
        for times in [
            vec![],
            vec![Duration::ZERO; 3],
            (1..=5000).map(Duration::from_micros).collect(),
        ] {
            let report = report(times);
            for width in [20, 60, 200] {
                let text = anstream::adapter::strip_str(&report.histogram(width)).to_string();
                let counts = text
                    .lines()
                    .map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap());
                assert_eq!(counts.sum::<usize>(), report.times.len(), "{text}");
                for line in text.lines() {
                    assert!(line.chars().count() <= width.max(34), "{line}");
                }
            }
        }
    }
}
