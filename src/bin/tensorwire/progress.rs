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
    last: Option<Instant>,
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
            last: None,
            drawn: None,
            messages: 0,
            bytes: 0,
        }
    }

    /// Counts a message.
    pub(crate) fn count(&mut self, frames: &[&[u8]]) {
        let now = Instant::now();
        self.started.get_or_insert(now);
        self.last = Some(now);
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
        // Not until now: waiting for more that does not come is no part of it.
        let elapsed = match (self.started, self.last) {
            (Some(started), Some(last)) => last.duration_since(started),
            _ => Duration::ZERO,
        };
        let messages = table::count(self.messages, "message");
        let text = format!("{} {messages}, {}", self.verb, table::bytes(self.bytes));
        let seconds = elapsed.as_secs_f64();
        // One message has no rate, and a moment neither.
        if self.messages < 2 || seconds < 1e-3 {
            return text;
        }
        let rate = self.messages as f64 / seconds;
        let digits = if rate < 10.0 { 1 } else { 0 };
        let bandwidth = table::bytes((self.bytes as f64 / seconds) as usize);
        format!("{text} in {seconds:.1} s: {rate:.digits$} messages/s, {bandwidth}/s")
    }
}

/// Often enough for people.
const REDRAW: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(time: Duration) {
        let started = Instant::now();
        while started.elapsed() < time {}
    }

    #[test]
    fn waiting_for_more_does_not_lower_the_rate() {
        let mut rate = Rate::new("received");
        assert_eq!(rate.text(), "received 0 messages, 0 B");
        rate.count(&[b"12", b"3"]);
        assert_eq!(rate.text(), "received 1 message, 3 B");
        spin(Duration::from_millis(5));
        rate.count(&[b"123"]);
        let text = rate.text();
        assert!(text.starts_with("received 2 messages, 6 B in "), "{text}");
        spin(Duration::from_millis(20));
        assert_eq!(rate.text(), text);
    }
}
