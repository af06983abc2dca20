//! Running the tool.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::processes::Folder;

/// No wait is longer, on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The tool, without the settings of whoever runs the tests.
pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwire"));
    command.args(arguments).stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    command.env("TERM", "xterm-256color");
    command
}

/// Runs the tool on files, which ends by itself.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    command(arguments).output().unwrap()
}

/// Runs the tool with these bytes on its stdin.
pub(crate) fn run_on(stdin: &[u8], arguments: &[&str]) -> Output {
    let mut command = command(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // What the tool does not read, because the start was wrong, is of no account.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

/// Sends to this endpoint, files and options as they follow, and sees it end with 0.
#[track_caller]
pub(crate) fn send_to(endpoint: &str, rest: &[&str]) {
    let arguments = [&[endpoint], rest].concat();
    Process::words("send --connect", &arguments).succeeded("send");
}

/// What it printed, if it was content.
pub(crate) fn printed(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// A folder for this test alone.
pub(crate) fn folder() -> Folder {
    Folder::new(&std::env::temp_dir())
}

/// The transports of this build.
pub(crate) const TRANSPORTS: &[&str] = &[
    "zmq",
    #[cfg(feature = "nng")]
    "nng",
];

/// A message without tensors in a file.
pub(crate) fn write_small(folder: &Path) -> String {
    let metadata = b"{\"tensor_descriptors\":[],\"scalar_fields\":{}}".to_vec();
    let path = write_bundle(folder, "small.bundle", &[metadata]);
    path.to_str().unwrap().to_owned()
}

/// A message of this many bytes, and its metadata, in a file.
pub(crate) fn write_large(folder: &Path, bytes: usize) -> String {
    let metadata = format!(
        r#"{{"tensor_descriptors":[{{"field_name":"a","shape":[{bytes}],"dtype":"uint8","list_index":-1}}],"scalar_fields":{{}}}}"#
    );
    let path = write_bundle(
        folder,
        "large.bundle",
        &[metadata.into_bytes(), vec![7; bytes]],
    );
    path.to_str().unwrap().to_owned()
}

/// Writes the frames of a message to files, and gives their paths in order.
pub(crate) fn write_frames(folder: &Path, frames: &[Vec<u8>]) -> Vec<PathBuf> {
    let write = |(index, frame): (usize, &Vec<u8>)| {
        let path = folder.join(format!("in{index:04}"));
        fs::write(&path, frame).unwrap();
        path
    };
    frames.iter().enumerate().map(write).collect()
}

/// A bundle of these frames in a file.
pub(crate) fn write_bundle(folder: &Path, name: &str, frames: &[Vec<u8>]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, tensorwire::bundle::encode_to_vec(frames).unwrap()).unwrap();
    path
}

/// The frames of a bundle in a file.
pub(crate) fn read_bundle(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    let bundle = tensorwire::bundle::Bundle::decode(&bytes).unwrap();
    bundle.frames().map(<[u8]>::to_vec).collect()
}

/// The tool at work, or a peer of it; it does not outlive this.
pub(crate) struct Process {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Process {
    /// Starts it with the words of this line, and then these.
    pub(crate) fn words(line: &str, rest: &[&str]) -> Self {
        let words = line.split_whitespace().chain(rest.iter().copied());
        Self::spawn(command(words))
    }

    /// Starts a receiver at a port that is free, with these words too, and gives its endpoint.
    pub(crate) fn receiver(line: &str, rest: &[&str]) -> (Self, String) {
        let receiver = Self::words(&format!("recv --bind tcp://127.0.0.1:* {line}"), rest);
        let endpoint = receiver.bound();
        (receiver, endpoint)
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The endpoint that it says it is bound to.
    pub(crate) fn bound(&self) -> String {
        let line = self.stderr.recv_timeout(PATIENCE).unwrap();
        line.strip_prefix("bound to ")
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned()
    }

    /// The next line of its stderr that holds this; those before it are passed over.
    pub(crate) fn said(&self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.stderr.recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("{part} is not said: {error}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    /// The next line of its stdout.
    pub(crate) fn line(&self) -> String {
        self.stdout.recv_timeout(PATIENCE).unwrap()
    }

    /// Waits until it has ended: exit code, the rest of stdout, the rest of stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<String>, Vec<String>) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "does not end");
            thread::sleep(Duration::from_millis(5));
        };
        // The readers end with the pipes.
        let rest = |lines: &Receiver<String>| lines.iter().collect();
        (status.code(), rest(&self.stdout), rest(&self.stderr))
    }

    /// Waits until it has ended, which must be with 0: the rest of stdout.
    #[track_caller]
    pub(crate) fn succeeded(self, case: &str) -> Vec<String> {
        let (code, lines, notes) = self.end();
        assert_eq!(code, Some(0), "{case}: {notes:?}");
        lines
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// Reads all that there is, until the other end is closed.
pub(crate) fn drain(mut pipe: impl std::io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The end of a terminal is an error on Linux.
    let _ = pipe.read_to_end(&mut bytes);
    bytes
}
