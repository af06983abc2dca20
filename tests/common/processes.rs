//! Processes that tests start: the examples, what is asked of the system about them, and
//! folders that are gone afterwards.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The example of this name, which cargo has built beside the test.
pub(crate) fn example(name: &str) -> Command {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let mut path = path.join("examples").join(name);
    path.set_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        path.exists(),
        "first: cargo build --all-features --example {name}"
    );
    Command::new(path)
}

/// Runs the example of this name to its end, with nothing on its standard input.
pub(crate) fn run(name: &str, args: &[&str]) -> Output {
    let mut command = example(name);
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

/// What a program has written, which is UTF-8.
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Sends a signal, by its name.
pub(crate) fn signal(name: &str, pid: u32) {
    // The shell's own: a bare Debian has no other.
    let kill = format!("kill -{name} {pid}");
    let status = Command::new("sh").args(["-c", &kill]).status();
    assert!(status.unwrap().success());
}

/// The children of a process, and their command lines.
pub(crate) fn children(parent: u32) -> Vec<(u32, String)> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name, which may hold anything: state and parent.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let of: u32 = fields.nth(1)?.parse().ok()?;
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        (of == parent).then_some((pid, line))
    });
    processes.collect()
}

/// Whether a process has ended.
pub(crate) fn gone(pid: u32) -> bool {
    // A zombie that nobody has waited for is gone too.
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

/// Tries again and again, until there is something.
pub(crate) fn within<T>(limit: Duration, what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        sleep(Duration::from_millis(10));
    }
}

/// A folder of one test alone, with a short name; gone with this.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(parent: &Path) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("tensorwire-test-{}-{count}", std::process::id()));
        // Left by a process of the same number that was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The endpoint of a socket in it.
    pub(crate) fn ipc(&self, name: &str) -> String {
        format!("ipc://{}", self.0.join(name).display())
    }

    /// The names of what lies in it.
    pub(crate) fn names(&self) -> Vec<OsString> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
