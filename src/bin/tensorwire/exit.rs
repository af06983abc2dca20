//! How the tool ends: exit codes, and errors on one line.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::{self, ExitCode};
use std::time::Duration;

use tensorwire::bundle;
use tensorwire::error::DecodeError;

use crate::output::{Output, note};
use crate::safe_text;

/// How a subcommand ended that did not fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Done {
    /// By Ctrl-C, after its summary.
    Interrupted,
    /// It did, and some of what came was malformed, which was said at the time.
    SomeMalformed,
    /// It did all it was asked to.
    Whole,
}

/// Why a subcommand did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It could not: files, sockets, conversions that would lose something.
    Could(String),
    /// The input is malformed.
    Malformed(Fault),
    /// Nobody reads the output any more, which is no failure of ours.
    NoReader,
    /// The arguments make no sense.
    Usage(String),
}

impl Failure {
    /// A file that could not be read, made or written.
    pub(crate) fn file(doing: &str, path: &Path, error: &io::Error) -> Self {
        Self::Could(format!("cannot {doing} {}: {error}", path.display()))
    }

    /// Output that could not be written.
    pub(crate) fn writing(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::NoReader;
        }
        Self::Could(format!("cannot write the output: {error}"))
    }

    /// The same, with the name of the file that is malformed.
    pub(crate) fn of_file(self, path: &Path) -> Self {
        match self {
            Self::Malformed(fault) => {
                let text = format!("{}: {}", path.display(), fault.text);
                Self::Malformed(Fault { text, ..fault })
            }
            failure => failure,
        }
    }

    const fn code(&self) -> u8 {
        match self {
            Self::Could(_) => 1,
            Self::Malformed(_) | Self::Usage(_) => 2,
            Self::NoReader => 0,
        }
    }
}

/// What is wrong with a message: its kind, the byte, and a text with the numbers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Fault {
    pub(crate) kind: String,
    pub(crate) offset: usize,
    pub(crate) text: String,
    /// What to do next, if there is more to say than that.
    pub(crate) hint: Option<&'static str>,
}

impl Fault {
    /// A fault whose kind is this variant of an enum.
    pub(crate) fn new(kind: &impl fmt::Debug, offset: usize, text: String) -> Self {
        Self {
            kind: variant(kind),
            offset,
            text,
            hint: None,
        }
    }

    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self::new(&error.kind(), error.offset(), error.to_string())
    }
}

impl From<bundle::Error> for Fault {
    fn from(error: bundle::Error) -> Self {
        Self::new(&error.kind(), error.offset(), format!("bundle: {error}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed message: {}: {}", self.kind, self.text)?;
        match self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// A time that was given in seconds, said in seconds.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// The name of an enum's variant, without its fields.
fn variant(kind: &impl fmt::Debug) -> String {
    let text = format!("{kind:?}");
    let end = text.find(|c: char| !c.is_ascii_alphanumeric());
    text.get(..end.unwrap_or(text.len()))
        .unwrap_or_default()
        .to_owned()
}

/// Says what is wrong with the arguments, or the help that was asked for, and ends.
pub(crate) fn misused(error: &clap::Error) -> ! {
    // The text repeats arguments, which may be names of files that somebody else has made up.
    let harmless = |argument: OsString| {
        let text = argument.to_string_lossy();
        text.chars().all(safe_text::is_printable)
    };
    if !error.use_stderr() || env::args_os().all(harmless) {
        error.exit();
    }
    for line in error.to_string().lines() {
        note(&safe_text::line(line));
    }
    process::exit(error.exit_code())
}

/// Says on stderr what went wrong, and gives the exit code.
pub(crate) fn report(done: Result<Done, Failure>, output: &mut Output) -> ExitCode {
    // What is still in the buffer counts as output that could not be written.
    let done = done.and_then(|done| output.flush().map(|()| done));
    let failure = match done {
        Ok(Done::Whole) => return ExitCode::SUCCESS,
        Ok(Done::Interrupted) => return ExitCode::from(130),
        Ok(Done::SomeMalformed) => return ExitCode::from(2),
        Err(failure) => failure,
    };
    // What went before the failure is output all the same.
    let _ = output.flush();
    match &failure {
        Failure::Could(text) | Failure::Usage(text) => output.error(&safe_text::line(text)),
        Failure::Malformed(fault) => output.error(&safe_text::line(&fault.to_string())),
        Failure::NoReader => {}
    }
    ExitCode::from(failure.code())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwire::message::{Message, Storage};

    #[test]
    fn a_fault_has_the_kind_the_byte_and_the_numbers() {
        let frames = [
            &br#"{"tensor_descriptors":[{"field_name":"x","shape":[2],"dtype":"int8"}]}"#[..],
            b"123",
        ];
        let mut storage = Storage::<4>::new();
        let error = Message::decode(&frames, &mut storage).unwrap_err();
        let fault = Fault::from(error);
        assert_eq!((fault.kind.as_str(), fault.offset), ("FrameLength", 23));
        assert_eq!(
            fault.to_string(),
            "malformed message: FrameLength: descriptor 0: frame of 3 bytes where the shape says 2 at byte 23"
        );
        let error = bundle::Bundle::decode(b"TWBUNDLX................").unwrap_err();
        assert_eq!(Fault::from(error).kind, "BadMagic");
    }
}
