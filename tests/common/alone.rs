//! Tests that have a process to themselves: the test binary runs again, for one of them.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A run of the test of this full name, which is one that is ignored.
pub(crate) fn command(test: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command.args(["--test-threads", "1"]);
    command.env(ARGUMENTS, arguments.join("\n"));
    command
}

/// Starts the test `test`, whose output is taken.
pub(crate) fn spawn(test: &str, arguments: &[&str]) -> Child {
    let mut command = command(test, arguments);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Runs the test `test`, which has to pass, and returns the numbers that it tells.
pub(crate) fn run(test: &str, arguments: &[&str]) -> Vec<u64> {
    finish(spawn(test, arguments))
}

/// Waits for a test that was spawned.
pub(crate) fn finish(child: Child) -> Vec<u64> {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let line = text.lines().find_map(|line| line.split_once(TOLD));
    let (_, numbers) = line.expect("the test told nothing");
    numbers
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect()
}

/// What `command` was given; empty where somebody runs the ignored tests by hand.
pub(crate) fn arguments() -> Vec<String> {
    let joined = std::env::var(ARGUMENTS).unwrap_or_default();
    joined.lines().map(str::to_owned).collect()
}

/// Tells numbers to who runs this.
pub(crate) fn tell(numbers: &[u64]) {
    let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
    println!("{TOLD}{}", numbers.join(" "));
}

/// Of the memory of this process, in bytes: what is resident, and the most that was.
/// `None` where the system does not tell.
pub(crate) fn memory() -> Option<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

/// A file for an endpoint, gone with this.
pub(crate) struct SocketFile(PathBuf);

impl SocketFile {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tensorwire-alone-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("ipc://{}", self.0.display())
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It need not be there.
        let _ = fs::remove_file(&self.0);
    }
}

const ARGUMENTS: &str = "TENSORWIRE_TEST_ARGUMENTS";
const TOLD: &str = "told: ";
