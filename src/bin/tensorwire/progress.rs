//! How it is going: a line on a terminal, and a summary at the end.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::note;
use crate::table;

/// Messages counted as they go by, with their rate on the last line of a terminal.
pub(crate) struct Rate {
    bar: ProgressBar,
    verb: &'static str,
    started: Option<Instant>,
    drawn: Option<Instant>,
    messages: u64,
    bytes: usize,
}

impl Rate {
    /// Starts with no messages; `verb` says what becomes of them.
    pub(crate) fn new(verb: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::default_spinner());
        bar.set_message("waiting");
        bar.tick();
        Self {
            bar,
            verb,
            started: None,
            drawn: None,
            messages: 0,
            bytes: 0,
        }
    }

    /// Counts a message.
    pub(crate) fn count(&mut self, frames: &[&[u8]]) {
        self.started.get_or_insert_with(Instant::now);
        self.messages += 1;
        let bytes: usize = frames.iter().map(|frame| frame.len()).sum();
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Draws the line, if it is time to.
    pub(crate) fn draw(&mut self) {
        if self.bar.is_hidden() || self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        self.drawn = Some(Instant::now());
        if self.messages > 0 {
            self.bar.set_message(self.text());
        }
        self.bar.tick();
    }

    /// Prints something while the line is out of the way.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    pub(crate) const fn messages(&self) -> u64 {
        self.messages
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Takes the line away, and says on stderr what there was in all.
    pub(crate) fn finish(&self) {
        self.clear();
        note(&self.text());
    }

    fn text(&self) -> String {
        let elapsed = self
            .started
            .map_or(Duration::ZERO, |started| started.elapsed());
        let messages = table::count(self.messages, "message");
        let text = format!("{} {messages}, {}", self.verb, table::bytes(self.bytes));
        let seconds = elapsed.as_secs_f64();
        // One message has no rate, and a moment neither.
        if self.messages < 2 || seconds < 1e-3 {
            return text;
        }
        let rate = self.messages as f64 / seconds;
        let bandwidth = table::bytes((self.bytes as f64 / seconds) as usize);
        format!("{text} in {seconds:.1} s: {rate:.0} messages/s, {bandwidth}/s")
    }
}

/// Often enough for people.
const REDRAW: Duration = Duration::from_millis(100);
