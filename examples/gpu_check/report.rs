//! What is printed: a line a check, a table a bench; or all of it as one JSON object.

use std::fmt::Write as _;
use std::io::{Write as _, stdout};
use std::time::Duration;

use tensorwire::cuda::DeviceInfo;

/// How it went, for the exit status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    BarMissed,
    CheckFailed,
    Passed,
}

/// How one check went.
#[derive(Debug)]
pub(crate) enum Outcome {
    Failed(String),
    /// With what was seen, for people.
    Passed(String),
}

pub(crate) struct Report {
    json: bool,
    head: String,
    /// Members of JSON arrays, as they are printed.
    checks: Vec<String>,
    tables: Vec<String>,
    passed: usize,
    failed: usize,
    skipped: usize,
    bars_met: usize,
    bars_missed: usize,
}

impl Report {
    pub(crate) fn new(device: &DeviceInfo, json: bool) -> Self {
        let mut report = Self {
            json,
            head: format!(
                "\"device\":{},\"ordinal\":{},\"memory_bytes\":{},\"driver_version\":{},\"stream_ordered_allocation\":{}",
                quoted(&device.name),
                device.ordinal,
                device.memory_bytes,
                device.driver_version,
                device.has_stream_ordered_allocation
            ),
            checks: Vec::new(),
            tables: Vec::new(),
            passed: 0,
            failed: 0,
            skipped: 0,
            bars_met: 0,
            bars_missed: 0,
        };
        report.say(&format!(
            "{} (device {} of {}), {} MiB, driver for CUDA {}.{}, stream-ordered allocation: {}\n",
            device.name,
            device.ordinal,
            device.device_count,
            device.memory_bytes >> 20,
            device.driver_version / 1000,
            device.driver_version % 1000 / 10,
            if device.has_stream_ordered_allocation {
                "yes"
            } else {
                "no"
            },
        ));
        report
    }

    pub(crate) fn check(&mut self, name: &str, outcome: &Outcome, took: Duration) {
        let (word, said) = match outcome {
            Outcome::Failed(said) => {
                self.failed += 1;
                ("FAIL", said)
            }
            Outcome::Passed(said) => {
                self.passed += 1;
                ("pass", said)
            }
        };
        self.checks.push(format!(
            "{{\"name\":{},\"outcome\":\"{}\",\"said\":{},\"seconds\":{:.3}}}",
            quoted(name),
            word.to_lowercase(),
            quoted(said),
            took.as_secs_f64()
        ));
        self.say(&format!(
            "{word}  {name:<58} {:>7.3} s  {said}\n",
            took.as_secs_f64()
        ));
    }

    /// Something failed that is no check of its own.
    pub(crate) fn failure(&mut self, name: &str, said: &str) {
        self.check(name, &Outcome::Failed(said.to_owned()), Duration::ZERO);
    }

    pub(crate) fn table(&mut self, table: &Table) {
        self.say(&table.text());
        self.tables.push(table.json());
        for met in table.rows.iter().filter_map(|row| row.bar) {
            if met {
                self.bars_met += 1;
            } else {
                self.bars_missed += 1;
            }
        }
    }

    /// Says that a table is left out, and why.
    pub(crate) fn skip_table(&mut self, title: &str, why: &str) {
        self.skipped += 1;
        self.say(&format!("\nSKIP {title}: {why}\n"));
        self.tables.push(format!(
            "{{\"title\":{},\"skipped\":{}}}",
            quoted(title),
            quoted(why)
        ));
    }

    pub(crate) fn finish(&mut self, took: Duration) {
        let Self {
            passed,
            failed,
            skipped,
            bars_met,
            bars_missed,
            ..
        } = *self;
        let seconds = took.as_secs_f64();
        self.say(&format!(
            "\n{passed} checks passed, {failed} failed; {bars_met} bars met, {bars_missed} missed; {skipped} tables skipped; {seconds:.1} s\n"
        ));
        if self.json {
            let whole = format!(
                "{{{},\"checks\":[{}],\"tables\":[{}],\"passed\":{passed},\"failed\":{failed},\"skipped\":{skipped},\"bars_met\":{bars_met},\"bars_missed\":{bars_missed},\"seconds\":{seconds:.1}}}\n",
                self.head,
                self.checks.join(","),
                self.tables.join(",")
            );
            print(&whole);
        }
    }

    pub(crate) const fn verdict(&self) -> Verdict {
        if self.failed > 0 {
            Verdict::CheckFailed
        } else if self.bars_missed > 0 {
            Verdict::BarMissed
        } else {
            Verdict::Passed
        }
    }

    fn say(&mut self, text: &str) {
        if !self.json {
            print(text);
        }
    }
}

/// At once: whoever waits five minutes wants to see something. That nobody reads it is no failure.
fn print(text: &str) {
    let mut out = stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Figures, with what they mean.
pub(crate) struct Table {
    title: &'static str,
    about: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    cells: Vec<String>,
    /// Whether its bar is met, if it has one.
    bar: Option<bool>,
}

impl Table {
    pub(crate) fn new(title: &'static str, about: &'static str, columns: &[&'static str]) -> Self {
        Self {
            title,
            about,
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, name: impl Into<String>, cells: Vec<String>) {
        self.rows.push(Row {
            name: name.into(),
            cells,
            bar: None,
        });
    }

    /// A row that is held against a bar.
    pub(crate) fn row_with_bar(&mut self, name: impl Into<String>, cells: Vec<String>, met: bool) {
        self.rows.push(Row {
            name: name.into(),
            cells,
            bar: Some(met),
        });
    }

    fn text(&self) -> String {
        let names = self.rows.iter().map(|row| row.name.len());
        let first = names
            .chain(self.columns.first().map(|name| name.len()))
            .max()
            .unwrap_or(0);
        let mut text = format!("\n{}\n{}\n\n", self.title, self.about);
        for (index, column) in self.columns.iter().enumerate() {
            let _ = if index == 0 {
                write!(text, "  {column:<first$}")
            } else {
                write!(text, "  {column:>WIDTH$}")
            };
        }
        text.push('\n');
        for row in &self.rows {
            let _ = write!(text, "  {:<first$}", row.name);
            for cell in &row.cells {
                let _ = write!(text, "  {cell:>WIDTH$}");
            }
            text.push_str(match row.bar {
                Some(true) => "  met",
                Some(false) => "  MISSED",
                None => "",
            });
            text.push('\n');
        }
        text
    }

    fn json(&self) -> String {
        let columns: Vec<_> = self.columns.iter().map(|name| quoted(name)).collect();
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                let cells: Vec<_> = row.cells.iter().map(|cell| quoted(cell)).collect();
                let bar = row
                    .bar
                    .map_or("null", |met| if met { "true" } else { "false" });
                format!(
                    "{{\"name\":{},\"cells\":[{}],\"bar_met\":{bar}}}",
                    quoted(&row.name),
                    cells.join(",")
                )
            })
            .collect();
        format!(
            "{{\"title\":{},\"about\":{},\"columns\":[{}],\"rows\":[{}]}}",
            quoted(self.title),
            quoted(self.about),
            columns.join(","),
            rows.join(",")
        )
    }
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        let _ = match character {
            '"' | '\\' => write!(quoted, "\\{character}"),
            control if u32::from(control) < 0x20 => write!(quoted, "\\u{:04x}", u32::from(control)),
            other => write!(quoted, "{other}"),
        };
    }
    quoted.push('"');
    quoted
}

/// Of a column of figures.
const WIDTH: usize = 14;
