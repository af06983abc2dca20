//! What the processes tell of a request, and the figures over all of them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A line that a worker says, as JSON.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// It is through with a request.
    Step(Step),
    /// It moved a request's bytes to the next role.
    Moved(Moved),
    /// It ends.
    End(End),
}

/// What one role did for one request; times as [`now_ns`] has them.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Step {
    pub(crate) request: String,
    /// When its work came, and lay in the slot.
    pub(crate) came_ns: u64,
    /// When its output was there.
    pub(crate) done_ns: u64,
    /// Whether the text of an error went out, and no output.
    pub(crate) failed: bool,
    /// Whether the work came in a slot that the head node gave away unasked; `None` if in none.
    pub(crate) preallocated: Option<bool>,
}

/// Bytes on their way from a role to the next.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Moved {
    pub(crate) request: String,
    pub(crate) bytes: u64,
    /// What was copied for it since the role computed it: `bytes` if each byte was once.
    pub(crate) copied_bytes: u64,
}

/// How a worker was when it ended.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct End {
    pub(crate) pool_bytes: u64,
    /// The most that was taken at a time; the preallocated slots always are.
    pub(crate) high_water_bytes: u64,
    /// What was taken for requests, when it was told to end.
    pub(crate) held_bytes: u64,
    /// What was taken when nobody had any slot any more.
    pub(crate) leaked_bytes: u64,
}

/// The time by the clock that all processes of the host share.
pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // Good until the year 2554.
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0))
}
