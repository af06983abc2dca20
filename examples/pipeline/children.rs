//! The other processes: they never outlive the head, and when one ends the head knows.
//!
//! A child has its stdin from the head and ends when that is closed, which the
//! system does however the head ends. It says on stdout, line by line, where it
//! listens, what it measured, and in the end why it failed.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::process::{Child, Command, ExitCode, Stdio, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

/// How long a child may take to start; Python imports torch meanwhile.
const START: Duration = Duration::from_secs(90);

/// How long a child may take to end once it has nothing more to do.
const END: Duration = Duration::from_secs(10);

/// How often to look whether a child is still there.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// What a line begins with that tells why the child ends.
const FAILED: &str = "FAILED ";

/// A child process and what it said.
pub(crate) struct Process {
    name: String,
    child: Child,
    lines: Receiver<String>,
    seen: VecDeque<String>,
    failed: Option<String>,
}

impl Process {
    /// Starts this program again, as something else.
    pub(crate) fn start<S: AsRef<OsStr>>(name: &str, args: &[S]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // Ctrl-C reaches the head alone; it ends, and the others by themselves.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let cannot = |error| format!("cannot start the {name}: {error}");
        let mut child = command.spawn().map_err(cannot)?;
        let out = child.stdout.take().ok_or("a child without stdout")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(std::io::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            name: name.to_owned(),
            child,
            lines,
            seen: VecDeque::new(),
            failed: None,
        })
    }

    /// The endpoints that the child listens at, once it does.
    pub(crate) fn endpoints(&mut self) -> Result<Vec<String>> {
        let line = self.line(START)?;
        let ready = line.strip_prefix("READY ");
        let ready = ready.ok_or_else(|| format!("the {} began with {line:?}", self.name))?;
        Ok(ready.split(' ').map(str::to_owned).collect())
    }

    /// The next line that the child says.
    pub(crate) fn line(&mut self, within: Duration) -> Result<String> {
        let deadline = Instant::now() + within;
        loop {
            match self.lines.recv_timeout(TICK) {
                Ok(line) if line.starts_with(FAILED) => self.failed = Some(line),
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) => self.check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    self.check()?;
                    thread::sleep(TICK);
                }
            }
            if Instant::now() > deadline {
                let (name, seconds) = (&self.name, within.as_secs());
                return Err(format!("the {name} said nothing for {seconds} s").into());
            }
        }
    }

    /// Fails if the child has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        self.drain();
        let name = &self.name;
        Err(match self
            .failed
            .as_deref()
            .and_then(|line| line.strip_prefix(FAILED))
        {
            Some(why) => format!("the {name} failed: {why}"),
            None => {
                format!("the {name} ended early ({status}); run it again, or see what ended it")
            }
        }
        .into())
    }

    /// Waits for the child to end well, and gives what it said since.
    pub(crate) fn finish(mut self) -> Result<VecDeque<String>> {
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            match self.child.try_wait()? {
                Some(status) if status.success() => {
                    self.drain();
                    return Ok(std::mem::take(&mut self.seen));
                }
                Some(_) => self.check()?,
                None => thread::sleep(TICK),
            }
        }
        let (name, seconds) = (&self.name, END.as_secs());
        Err(format!("the {name} did not end within {seconds} s of being told to").into())
    }

    /// Takes in all lines of a child that has ended, or is about to.
    fn drain(&mut self) {
        while let Ok(line) = self.lines.recv_timeout(END) {
            if line.starts_with(FAILED) {
                self.failed = Some(line);
            } else {
                self.seen.push_back(line);
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // First the way in which a guard can take its own child along.
        drop(self.child.stdin.take());
        for _ in 0..20 {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            thread::sleep(TICK);
        }
        // Either fails only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a child's work, and tells the head if it fails.
pub(crate) fn reporting(work: impl FnOnce() -> Result<()>) -> ExitCode {
    on_orphaned(|| exit(1));
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If the head is not there, nobody is.
            let _ = writeln!(stdout(), "{FAILED}{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs another program for as long as the head is there: Python does not watch its stdin.
pub(crate) fn guard(program: &OsStr, args: &[OsString]) -> ExitCode {
    static ORPHANED: AtomicBool = AtomicBool::new(false);
    on_orphaned(|| ORPHANED.store(true, Ordering::Relaxed));
    let spawned = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let _ = writeln!(stdout(), "{FAILED}{}: {error}", program.display());
            return ExitCode::FAILURE;
        }
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return ExitCode::SUCCESS,
            Ok(Some(status)) => {
                let _ = writeln!(stdout(), "{FAILED}Python, {status}");
                return ExitCode::FAILURE;
            }
            _ if ORPHANED.load(Ordering::Relaxed) => {
                let _ = child.kill();
                let _ = child.wait();
                return ExitCode::FAILURE;
            }
            _ => thread::sleep(TICK),
        }
    }
}

/// Does something when the head has closed this process's stdin, or is gone.
fn on_orphaned(then: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        // Nothing ever comes: the read ends with the pipe.
        let _ = stdin().read(&mut [0]);
        then();
    });
}
