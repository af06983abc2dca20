//! What the head node tells its service, and what it has to send.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::message::CONTROL_MARKER;
use crate::transfer::{RequestId, Role};

/// Something that the service wants to know.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A request is over and has failed: its client is to be told.
    Failed {
        /// The request, as the client named it.
        request: RequestId,
        /// Why.
        failure: Failure,
    },
    /// A request is over: the decoder's reply that was just handled is for its client.
    Finished {
        /// The request, as the client named it.
        request: RequestId,
    },
    /// A worker registered.
    Registered {
        /// Its role.
        role: Role,
        /// Its index among the workers of the role.
        worker: usize,
        /// How many preallocated slots it brought.
        slots: usize,
        /// Whether it had registered otherwise before, and so has restarted.
        again: bool,
    },
    /// A request starts anew.
    Retrying {
        /// The request, as the client named it.
        request: RequestId,
        /// The attempt that begins, 1 for the first retry.
        attempt: u32,
        /// Why the one before ended.
        failure: Failure,
    },
}

/// Why a request, or an attempt at it, failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    kind: FailureKind,
    text: String,
}

impl Failure {
    pub(super) const fn new(kind: FailureKind) -> Self {
        Self {
            kind,
            text: String::new(),
        }
    }

    pub(super) const fn with_text(kind: FailureKind, text: String) -> Self {
        Self { kind, text }
    }

    /// Returns which kind of failure it is.
    #[must_use]
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns what the worker said, as it said it; empty if no worker said anything.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.kind, f)?;
        if self.text.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", self.text)
    }
}

/// Kinds of failures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The service cancelled it, as when the client went away.
    Cancelled,
    /// A worker other than the last is through, and has nothing for the next.
    NothingStaged {
        /// The worker's role.
        role: Role,
    },
    /// A worker failed.
    RoleFailed {
        /// Its role.
        role: Role,
    },
    /// It took too long.
    TimedOut {
        /// How long it was given.
        after: Duration,
    },
    /// A worker that had a part in it restarted.
    WorkerRestarted {
        /// Its role.
        role: Role,
        /// Its index among the workers of the role.
        worker: usize,
    },
}

impl FailureKind {
    /// What a worker is told that loses a request.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::NothingStaged { .. } => "nothing staged",
            Self::RoleFailed { .. } => "another role failed",
            Self::TimedOut { .. } => "timed out",
            Self::WorkerRestarted { .. } => "another worker restarted",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("cancelled"),
            Self::NothingStaged { role } => {
                write!(f, "{role} error: no output for the next role")
            }
            Self::RoleFailed { role } => write!(f, "{role} error"),
            Self::TimedOut { after } => {
                write!(f, "not completed within {} s", after.as_secs_f64())
            }
            Self::WorkerRestarted { role, worker } => write!(f, "{role} {worker} restarted"),
        }
    }
}

/// A message for a worker's work socket.
#[derive(Debug)]
pub struct Outgoing<'b> {
    role: Role,
    worker: usize,
    frames: [&'b [u8]; 2],
}

impl<'b> Outgoing<'b> {
    pub(super) const fn control(role: Role, worker: usize, payload: &'b [u8]) -> Self {
        Self {
            role,
            worker,
            frames: [CONTROL_MARKER, payload],
        }
    }

    pub(super) fn work(role: Role, worker: usize, id: &'b [u8], work: &'b Arc<Vec<u8>>) -> Self {
        Self {
            role,
            worker,
            frames: [id, work],
        }
    }

    /// Returns the role of the worker.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns the index of the worker among those of its role.
    #[must_use]
    pub const fn worker(&self) -> usize {
        self.worker
    }

    /// Returns the frames: a control message, or the id of a request and its work.
    #[must_use]
    pub const fn frames(&self) -> [&'b [u8]; 2] {
        self.frames
    }
}
