//! One line on stderr that says how far it is.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// How often there is a line where lines stay: a log, a file.
const EVERY: Duration = Duration::from_secs(5);

pub(crate) struct Progress {
    program: &'static str,
    terminal: bool,
    said: Instant,
}

impl Progress {
    pub(crate) fn new(program: &'static str) -> Self {
        Self {
            program,
            terminal: stderr().is_terminal(),
            said: Instant::now(),
        }
    }

    /// Shows where things are, in place of what was shown before.
    pub(crate) fn show(&mut self, text: &str) {
        if self.terminal {
            // Whether anybody sees it does not matter to the work.
            let _ = write!(stderr(), "\r\x1b[K{text}");
        } else if self.said.elapsed() > EVERY {
            self.say(text);
        }
    }

    /// Says something that stays.
    pub(crate) fn say(&mut self, text: &str) {
        self.clear();
        self.said = Instant::now();
        let _ = writeln!(stderr(), "{}: {text}", self.program);
    }

    pub(crate) fn clear(&mut self) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
