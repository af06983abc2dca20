//! The processes: Python's head node, and our workers as their user starts them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::processes::{Folder, example, signal, within};

/// How long any one thing may take; the start of Python, with torch, is the slowest.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What `setup.sh` found.
pub(crate) struct Python {
    interpreter: OsString,
    /// The release's files.
    release: PathBuf,
    /// Where msgspec is.
    modules: OsString,
}

/// `None`, said aloud once, if it was not run or found nothing.
pub(crate) fn python() -> Option<&'static Python> {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    let find = || {
        let variable = |name: &str| std::env::var_os(name);
        if let (Some(interpreter), Some(codec), Some(modules)) = (
            variable("TENSORWIRE_PYTHON"),
            variable("TENSORWIRE_CODEC"),
            variable("TENSORWIRE_MSGSPEC"),
        ) {
            let release = Path::new(&codec).parent().unwrap().to_owned();
            return Some(Python {
                interpreter,
                release,
                modules,
            });
        }
        let reason = "TENSORWIRE_PYTHON, TENSORWIRE_CODEC and TENSORWIRE_MSGSPEC are not set, see tests/interop/setup.sh";
        // Not `eprintln!`, which the harness captures.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIP: interop with Python's head node: {reason}").unwrap();
        None
    };
    PYTHON.get_or_init(find).as_ref()
}

/// The head node: a `DiffusionServer`.
pub(crate) struct Server {
    process: Process,
    stdin: Option<ChildStdin>,
    /// Answers to requests that nobody has waited for yet.
    replies: BTreeMap<String, Value>,
}

impl Server {
    pub(crate) fn start(python: &Python, options: &[String], endpoints: &[String]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/head_node.py");
        let mut command = Command::new(&python.interpreter);
        command.arg(script).args(options);
        command.arg(&python.release).args(endpoints);
        command.env("PYTHONPATH", &python.modules);
        // It writes a traceback for each request that fails, as some have to here.
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process::start("the head node", command);
        let stdin = process.child.stdin.take();
        let ready = process.event();
        assert_eq!(ready["event"], "ready");
        Self {
            process,
            stdin,
            replies: BTreeMap::new(),
        }
    }

    /// Waits until so many workers of each role have registered.
    pub(crate) fn await_workers(&mut self, workers: &BTreeMap<&'static str, usize>) {
        self.say(&json!({ "await": workers }));
        let event = self.next_but_replies();
        assert_eq!(event["event"], "registered");
    }

    /// Has a client of its own send a request.
    pub(crate) fn send(&mut self, request: &str, image: Option<&str>) {
        self.say(&json!({"request_id": request, "image_path": image}));
    }

    /// What the client of `request` got.
    pub(crate) fn reply(&mut self, request: &str) -> Value {
        while !self.replies.contains_key(request) {
            let event = self.process.event();
            assert_eq!(event["event"], "reply", "{event}");
            self.keep(event);
        }
        self.replies.remove(request).unwrap()
    }

    pub(crate) fn stats(&mut self) -> Value {
        self.say(&json!({"stats": true}));
        self.next_but_replies()["stats"].take()
    }

    pub(crate) fn finish(mut self) {
        drop(self.stdin.take());
        self.process.finish();
    }

    fn say(&mut self, command: &Value) {
        writeln!(self.stdin.as_ref().unwrap(), "{command}").unwrap();
    }

    fn next_but_replies(&mut self) -> Value {
        loop {
            let event = self.process.event();
            if event["event"] != "reply" {
                return event;
            }
            self.keep(event);
        }
    }

    fn keep(&mut self, reply: Value) {
        let request = reply["request_id"].as_str().unwrap().to_owned();
        assert!(
            self.replies.insert(request, reply).is_none(),
            "a second reply"
        );
    }
}

/// One of our workers.
pub(crate) struct Worker {
    process: Process,
    /// What it told so far.
    told: Vec<Value>,
}

impl Worker {
    /// Starts it, and waits until it takes work.
    pub(crate) fn start(role: &str, options: &[(&str, String)]) -> Self {
        let mut command = example("disaggregated");
        command.args(["--role", role, "--report"]);
        for (option, value) in options {
            command.args([option, value.as_str()]);
        }
        Self::ready(role, command)
    }

    /// Starts one in Python, by the release's `protocol.py`.
    pub(crate) fn start_python(python: &Python, options: &[(&str, String)]) -> Self {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/interop/shared_memory_worker.py"
        );
        let mut command = Command::new(&python.interpreter);
        command.arg(script);
        for (option, value) in options {
            command.args([option, value.as_str()]);
        }
        command.arg(python.release.join("protocol.py"));
        Self::ready("a denoiser in Python", command)
    }

    fn ready(name: &str, mut command: Command) -> Self {
        command.stdin(Stdio::null());
        let mut process = Process::start(name, command);
        let line = process.line();
        assert!(line.starts_with("READY "), "{name}: {line}");
        Self {
            process,
            told: Vec::new(),
        }
    }

    /// Kills it: it gets no chance to clean up.
    pub(crate) fn kill(mut self) {
        self.process.child.kill().unwrap();
        self.process.child.wait().unwrap();
    }

    /// Asks it to end, which it has to do well, and returns what it told.
    pub(crate) fn finish(mut self) -> Vec<Value> {
        signal("TERM", self.process.child.id());
        self.process.finish();
        let told = self.process.lines.iter();
        self.told
            .extend(told.map(|line| serde_json::from_str(&line).unwrap()));
        std::mem::take(&mut self.told)
    }
}

/// A process, which does not outlive this.
struct Process {
    name: String,
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(name: &str, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        // Ends with the process, whose end closes the pipe.
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            name: name.to_owned(),
            child,
            lines,
        }
    }

    fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => panic!("{} ended", self.name),
            Err(RecvTimeoutError::Timeout) => {
                panic!("{} says nothing for {PATIENCE:?}", self.name)
            }
        }
    }

    fn event(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn finish(&mut self) {
        let ended = || self.child.try_wait().unwrap();
        let status = within(PATIENCE, &self.name, ended);
        assert!(status.success(), "{}: {status}", self.name);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An endpoint that nobody else has: a file in the folder, or a port of an address that is this process's alone. A port of
/// 127.0.0.1 that was free just now may be the near end of another process's connection a moment later.
pub(crate) fn endpoint(scheme: &str, folder: &Folder, name: &str) -> String {
    static NEXT_PORT: AtomicU16 = AtomicU16::new(20000);
    if scheme == "ipc" {
        return folder.ipc(name);
    }
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let address = Ipv4Addr::new(127, high | 128, middle, low);
    let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
    format!("tcp://{address}:{port}")
}
