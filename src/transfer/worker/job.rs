//! What the local worker is given to do, and what becomes of it.

use core::fmt;

use super::received::Received;
use crate::transfer::RequestId;

/// One life of a request at this worker: what its local worker answers by.
///
/// A request that is aborted may begin anew under the same id; an answer to the
/// job of before is then refused.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Job {
    request: RequestId,
    serial: u64,
}

impl Job {
    pub(super) const fn new(request: RequestId, serial: u64) -> Self {
        Self { request, serial }
    }

    pub(super) const fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns the request.
    #[must_use]
    pub const fn request(&self) -> &RequestId {
        &self.request
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.request, f)
    }
}

/// What a message of the head node was.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A control message: it was handled.
    Control,
    /// A tensor message, which is no part of this protocol: yours to decode.
    Tensors,
    /// Work of a first role: answer with `stage` or `fail`.
    Work {
        /// The job.
        job: Job,
        /// What the client sent: opaque bytes, never to be unpickled.
        payload: &'a [u8],
    },
}

/// Something that the local worker wants to know.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A job is over, and not by its worker's own call: let go of all that belongs to it.
    Over {
        /// The job.
        job: Job,
        /// How it ended.
        ending: Ending,
    },
    /// Tensors came: read them, drop them, and answer with `stage`, `finish` or `fail`.
    Ready(Received),
}

/// How a job ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Ending {
    /// The head node gave the request up.
    Aborted,
    /// The worker, or the head node, took too long.
    Expired,
    /// The output could not be moved, or was asked for in a way that would have left garbage.
    PushFailed,
    /// The output went to the next role.
    Pushed {
        /// How many bytes.
        bytes: usize,
    },
}
