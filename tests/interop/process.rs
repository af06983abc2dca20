//! The Python process, and the sockets to it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use super::PATIENCE;
use super::messages::Message;
use super::peer::Peer;
use tensorwire::transport::{Part, SendFrames, Wait, zmq};

/// An interpreter with torch, and the codec for it.
pub(crate) struct Python {
    interpreter: OsString,
    codec: OsString,
}

/// What `setup.sh` found, or `None`, said aloud once, if it was not run or found nothing.
pub(crate) fn python() -> Option<&'static Python> {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    let find = || {
        let interpreter = std::env::var_os("TENSORWIRE_PYTHON");
        let codec = std::env::var_os("TENSORWIRE_CODEC");
        if let (Some(interpreter), Some(codec)) = (interpreter, codec) {
            return Some(Python { interpreter, codec });
        }
        let reason =
            "TENSORWIRE_PYTHON and TENSORWIRE_CODEC are not set, see tests/interop/setup.sh";
        // Not `eprintln!`, which the harness captures.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIP: interop with Python: {reason}").unwrap();
        None
    };
    PYTHON.get_or_init(find).as_ref()
}

impl Python {
    /// The names of the messages that the peer has to send.
    pub(crate) fn catalogue(&self) -> &'static [String] {
        static NAMES: OnceLock<Vec<String>> = OnceLock::new();
        NAMES.get_or_init(|| {
            let mut process = Process::start(self, &["list"]);
            let names: Vec<_> = std::iter::from_fn(|| process.line()).collect();
            process.peer.finish(PATIENCE);
            assert!(names.iter().any(|name| name == "video"), "{names:?}");
            names
        })
    }
}

/// Which end binds the sockets; the other one connects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Binder {
    Here,
    There,
}

/// A peer at work, and the way there and back.
pub(crate) struct Session {
    process: Process,
    /// Not connected to a peer that only sends.
    push: zmq::Socket<zmq::Push>,
    pub(crate) pull: zmq::Socket<zmq::Pull>,
    _folder: Folder,
}

impl Session {
    pub(crate) fn start(
        python: &Python,
        scheme: &str,
        binder: Binder,
        mode: &str,
        rest: &[&str],
    ) -> Self {
        let folder = Folder::new();
        let context = zmq::Context::new();
        let push = context.push().linger(LINGER);
        let mut push = push.send_timeout(Some(PATIENCE)).open().unwrap();
        let pull = context.pull().recv_timeout(Some(PATIENCE));
        let mut pull = pull.open().unwrap();
        let there = |name: &str| match scheme {
            "tcp" => "tcp://127.0.0.1:*".to_owned(),
            _ => format!("ipc://{}", folder.0.join(name).display()),
        };
        // In the order of the peer's arguments: what it receives from, what it sends to.
        let mut endpoints = Vec::new();
        match binder {
            Binder::Here => {
                if mode != "send" {
                    endpoints.push(push.bind(&there("in")).unwrap().to_owned());
                }
                endpoints.push(pull.bind(&there("out")).unwrap().to_owned());
            }
            Binder::There => {
                if mode != "send" {
                    endpoints.push(format!("@{}", there("in")));
                }
                endpoints.push(format!("@{}", there("out")));
            }
        }
        let mut arguments = vec![mode];
        arguments.extend(endpoints.iter().map(String::as_str));
        arguments.extend(rest);
        let mut process = Process::start(python, &arguments);
        let ready = process.line().expect("the peer ends before it is ready");
        let mut bound = ready.strip_prefix("READY ").unwrap().split(' ');
        assert_eq!(bound.clone().count(), endpoints.len(), "{ready}");
        if binder == Binder::There {
            if mode != "send" {
                push.connect(bound.next().unwrap()).unwrap();
            }
            pull.connect(bound.next().unwrap()).unwrap();
        }
        Self {
            process,
            push,
            pull,
            _folder: folder,
        }
    }

    /// Sends a message whose buffers go along with it.
    pub(crate) fn send_owned(&mut self, metadata: Vec<u8>, message: &Message) {
        let mut parts = vec![Part::from(metadata)];
        parts.extend(
            message
                .tensors
                .iter()
                .map(|tensor| Part::from(tensor.bytes.clone())),
        );
        self.push.send_parts(&mut parts, Wait::Configured).unwrap();
        assert!(parts.is_empty(), "{}", message.name);
    }

    /// Sends a message whose buffers stay here.
    pub(crate) fn send_lent(&mut self, metadata: &[u8], message: &Message) {
        let mut frames = vec![metadata];
        frames.extend(message.tensors.iter().map(|tensor| &*tensor.bytes));
        self.push.send(&frames).unwrap();
    }

    /// Waits until the peer has done, and done well.
    pub(crate) fn finish(mut self) {
        self.process.peer.finish(PATIENCE);
    }
}

/// The process and its output.
struct Process {
    peer: Peer,
    lines: Receiver<String>,
}

impl Process {
    /// Starts the peer in the mode that comes first among the arguments.
    fn start(python: &Python, arguments: &[&str]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/peer.py");
        let timeout = PATIENCE.as_secs().to_string();
        let mut command = Command::new(&python.interpreter);
        command.args([script, "--timeout", &timeout]);
        command.arg(&python.codec).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
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
        let peer = Peer(child);
        Self { peer, lines }
    }

    /// The next line of its output, or `None` at the end.
    fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("the peer says nothing for {PATIENCE:?}")
            }
        }
    }
}

/// A folder for the sockets of ipc, short-lived and with a short name.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tensorwire-interop-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Left by a process of the same number that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All is answered before a socket is dropped; it is only a failed test that would wait.
const LINGER: Duration = Duration::from_secs(1);
