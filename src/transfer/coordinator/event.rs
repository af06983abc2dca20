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
        /// Whether it had registered otherwise before, or was lost, and so has restarted.
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
    /// A worker could not move its output to the next: this is about the way there, not its work.
    PushFailed {
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
    /// A worker that had a part in it is gone, as [`handle_lost`](super::Coordinator::handle_lost) was told.
    WorkerLost {
        /// Its role.
        role: Role,
        /// Its index among the workers of the role.
        worker: usize,
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
    /// Tells whether an attempt that ends so is followed by another, while [retries] and time are left.
    ///
    /// It is if the attempt ended by no fault of the request's own: a push failed, a
    /// worker restarted or is gone, or the attempt took too long. What a worker said of its own
    /// work would be said again, and a request that was cancelled is wanted no more.
    ///
    /// [retries]: super::Settings::with_retries
    #[must_use]
    pub const fn is_retried(self) -> bool {
        match self {
            Self::Cancelled | Self::NothingStaged { .. } | Self::RoleFailed { .. } => false,
            Self::PushFailed { .. }
            | Self::TimedOut { .. }
            | Self::WorkerLost { .. }
            | Self::WorkerRestarted { .. } => true,
        }
    }

    /// Tells whether it is the end of this worker.
    pub(super) fn is_end_of(self, of: Role, index: usize) -> bool {
        match self {
            Self::WorkerLost { role, worker } | Self::WorkerRestarted { role, worker } => {
                role == of && worker == index
            }
            _ => false,
        }
    }

    /// What a worker is told that loses a request.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::NothingStaged { .. } => "nothing staged",
            Self::PushFailed { .. } => "a push failed",
            Self::RoleFailed { .. } => "another role failed",
            Self::TimedOut { .. } => "timed out",
            Self::WorkerLost { .. } => "another worker is gone",
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
            Self::PushFailed { role } => write!(f, "{role} could not push"),
            Self::RoleFailed { role } => write!(f, "{role} error"),
            Self::TimedOut { after } => {
                write!(f, "not completed within {} s", after.as_secs_f64())
            }
            Self::WorkerLost { role, worker } => write!(f, "{role} {worker} is gone"),
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
