//! The tool where there is little of something.

use std::ffi::OsStr;
use std::process::{Command, Output};

/// Files of at most 512 KiB; without the signal a longer one is an error.
pub(crate) const FULL_DISK: &str = "trap '' XFSZ && ulimit -f 1024";

/// Runs the tool on files in a shell that has set this limit.
pub(crate) fn limited<S: AsRef<OsStr>>(limit: &str, arguments: &[S]) -> Output {
    limited_command(limit, arguments).output().unwrap()
}

/// The tool in a shell that sets this limit, and then becomes it.
pub(crate) fn limited_command<S: AsRef<OsStr>>(limit: &str, arguments: &[S]) -> Command {
    let tool = env!("CARGO_BIN_EXE_tensorwire");
    let script = format!("{limit} && exec '{tool}' \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).args(arguments);
    command
}
