//! How far it is: a bar on a terminal, where there is time to see one.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Bytes counted as they are written.
pub(super) struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: bool,
}

impl Progress {
    pub(super) fn new(total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style =
            "{bar:30} {percent:>3} %  {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        let mut progress = Self {
            bar,
            started: Instant::now(),
            shown: false,
        };
        if total >= LARGE {
            progress.show();
        }
        progress
    }

    pub(super) fn count(&mut self, bytes: usize) {
        if !self.shown && self.started.elapsed() >= LONG {
            self.show();
        }
        self.bar.inc(bytes as u64);
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// From now on, if stderr is a terminal.
    fn show(&mut self) {
        self.shown = true;
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.tick();
    }
}

/// What is quicker, nobody waits for.
const LONG: Duration = Duration::from_millis(500);

/// So much is seldom quicker.
const LARGE: u64 = 64 << 20;
