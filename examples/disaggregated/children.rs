//! The workers' processes: they never outlive this one, and may be killed on purpose.
//!
//! A worker has its stdin from here and ends when that is closed. On stdout it says,
//! line by line, where it takes work and then what it did.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transfer::Role;

use crate::Result;
use crate::measure::Told;

/// How long a worker may take to start.
const START: Duration = Duration::from_secs(30);

/// How long it may take to end once it is told to.
const END: Duration = Duration::from_secs(10);

const TICK: Duration = Duration::from_millis(10);

/// What a worker is started with.
pub(crate) struct Plan {
    pub(crate) role: Role,
    pub(crate) index: usize,
    pub(crate) arguments: Vec<String>,
}

/// A worker's process.
pub(crate) struct Process {
    plan: Plan,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    /// Starts this program again, as a worker.
    pub(crate) fn start(plan: Plan, work: &str) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--role", plan.role.name(), "--work", work])
            .args(["--report", "--until-stdin-closes"])
            .args(&plan.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // Ctrl-C reaches the head node alone; it ends, and the others by themselves.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let cannot = |error| format!("cannot start the {}: {error}", plan.role);
        let mut child = command.spawn().map_err(cannot)?;
        let stdin = child.stdin.take();
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
            plan,
            child,
            stdin,
            lines,
        })
    }

    /// The role and which of its workers it is, for a person.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.plan.role, self.plan.index)
    }

    pub(crate) const fn role(&self) -> Role {
        self.plan.role
    }

    pub(crate) const fn index(&self) -> usize {
        self.plan.index
    }

    /// Where it takes work, once it does.
    pub(crate) fn endpoint(&mut self) -> Result<String> {
        let name = self.name();
        let line = match self.lines.recv_timeout(START) {
            Ok(line) => line,
            // It has said on stderr why.
            Err(RecvTimeoutError::Disconnected) => return Err(format!("the {name} ended").into()),
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("the {name} said nothing for {} s", START.as_secs()).into());
            }
        };
        let endpoint = line.strip_prefix("READY ");
        let endpoint = endpoint.ok_or_else(|| format!("the {name} began with {line:?}"))?;
        Ok(endpoint.to_owned())
    }

    /// What it told since the last call.
    pub(crate) fn told(&self) -> Result<Vec<Told>> {
        let parsed = self.lines.try_iter().map(|line| read(&line));
        parsed.collect()
    }

    /// Fails if it has ended by itself.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the {} ended early ({status})", self.name()).into()),
        }
    }

    /// Kills it, as the system does one that takes too much memory: it gets no chance to clean up.
    /// Returns what it had told, and the plan to start another.
    pub(crate) fn kill(mut self) -> Result<(Vec<Told>, Plan)> {
        self.child.kill()?;
        self.child.wait()?;
        // The last line may be half of one.
        let told = self.lines.iter().filter_map(|line| read(&line).ok());
        Ok((told.collect(), self.plan.take()))
    }

    /// Tells it to end, waits until it has, and returns what it told since.
    pub(crate) fn finish(mut self) -> Result<Vec<Told>> {
        drop(self.stdin.take());
        let deadline = Instant::now() + END;
        let name = self.name();
        while Instant::now() < deadline {
            match self.child.try_wait()? {
                Some(status) if status.success() => {
                    return self.lines.iter().map(|line| read(&line)).collect();
                }
                Some(status) => return Err(format!("the {name} failed ({status})").into()),
                None => thread::sleep(TICK),
            }
        }
        Err(format!("the {name} did not end within {} s", END.as_secs()).into())
    }
}

impl Plan {
    fn take(&mut self) -> Self {
        Self {
            role: self.role,
            index: self.index,
            arguments: std::mem::take(&mut self.arguments),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stdin.take());
        for _ in 0..100 {
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

fn read(line: &str) -> Result<Told> {
    serde_json::from_str(line).map_err(|error| format!("{line:?}: {error}").into())
}
