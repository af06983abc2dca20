//! Where results go: stdout for people, with colours on terminals, or for scripts, byte for byte.

use std::io::{self, BufWriter, IsTerminal as _, Write};

use crate::exit::Failure;
use crate::safe_text;

/// Starts bold text, and ends it and every colour.
pub(crate) const BOLD: &str = "\x1b[1m";
/// Starts what is less important.
pub(crate) const DIM: &str = "\x1b[2m";
/// Starts what is wrong.
pub(crate) const RED: &str = "\x1b[31m";
/// Starts what to look out for.
pub(crate) const YELLOW: &str = "\x1b[33m";
/// Starts what has a name.
pub(crate) const CYAN: &str = "\x1b[36m";
/// Ends all of these.
pub(crate) const RESET: &str = "\x1b[0m";

/// The standard output, and what is known of the terminal that it may be.
pub(crate) struct Output {
    stdout: BufWriter<io::Stdout>,
    terminal: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        Self {
            terminal: stdout.is_terminal(),
            stdout: BufWriter::new(stdout),
        }
    }

    /// How many columns there are; `None` where lines may be as long as they like.
    pub(crate) fn width(&self) -> Option<usize> {
        if !self.terminal {
            return None;
        }
        let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Some(columns.filter(|&columns| columns > 0).unwrap_or(80))
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stdout.write_all(bytes).map_err(Failure::writing)
    }

    /// Writes text whose colours are taken out unless they belong here.
    pub(crate) fn styled(&mut self, text: &str) -> Result<(), Failure> {
        self.flush()?;
        let mut stdout = anstream::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            .map_err(Failure::writing)?;
        stdout.flush().map_err(Failure::writing)
    }

    /// Writes JSON and ends the line; on a terminal nothing of it can be anything but text.
    pub(crate) fn json(&mut self, text: &str) -> Result<(), Failure> {
        if self.terminal {
            self.write(safe_text::json(text).as_bytes())?;
        } else {
            self.write(text.as_bytes())?;
        }
        self.write(b"\n")
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.stdout.flush().map_err(Failure::writing)
    }

    /// Says on stderr what went wrong, on one line.
    pub(crate) fn error(&self, text: &str) {
        note(&format!("{RED}error{RESET}: {text}"));
    }
}

/// Says something on stderr, on a line of its own; without a reader it goes unsaid.
pub(crate) fn note(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{text}");
}
