//! What a head node is told before it starts: its workers, and how patient it is.

use alloc::string::String;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::policy::Policy;
use crate::message::Options;
use crate::transfer::{RequestId, Role};

/// The workers of one role, each by the endpoint at which it takes work.
///
/// A worker is known by its place in this list: it registers with its endpoint,
/// and [`Outgoing::worker`](super::Outgoing::worker) is the index.
#[derive(Clone, Debug)]
pub struct Workers {
    pub(super) endpoints: Vec<String>,
    pub(super) capacity: u32,
}

impl Workers {
    /// Makes the workers at `endpoints`, each with places for `capacity` requests at once.
    ///
    /// The Python head node has 4 for an encoder or decoder, and 2 for a denoiser.
    #[must_use]
    pub fn new<E>(endpoints: E, capacity: u32) -> Self
    where
        E: IntoIterator,
        E::Item: Into<String>,
    {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            capacity,
        }
    }
}

/// Which roles a request passes, and the workers of each.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::coordinator::{Topology, Workers};
///
/// let topology = Topology::new(
///     Workers::new(["tcp://10.0.0.1:5571"], 4),
///     Workers::new(["tcp://10.0.0.2:5571", "tcp://10.0.0.3:5571"], 2),
///     Workers::new(["tcp://10.0.0.1:5572"], 4),
/// );
/// let names: Vec<_> = topology.roles().map(|role| role.name()).collect();
/// assert_eq!(names, ["encoder", "denoiser", "decoder"]);
/// ```
#[derive(Clone, Debug)]
pub struct Topology {
    pub(super) stages: Vec<(Role, Workers)>,
}

impl Topology {
    /// Makes the pipeline encoder, denoiser, decoder.
    #[must_use]
    pub fn new(encoder: Workers, denoiser: Workers, decoder: Workers) -> Self {
        Self {
            stages: [
                (Role::Encoder, encoder),
                (Role::Denoiser, denoiser),
                (Role::Decoder, decoder),
            ]
            .into(),
        }
    }

    /// Makes the pipeline prompt encoder, image encoder, denoiser, decoder.
    ///
    /// A request passes the image encoder only if the scalars of its prompt
    /// encoder have an `image_path` that Python takes for true.
    #[must_use]
    pub fn with_split_encoder(
        prompt_encoder: Workers,
        image_encoder: Workers,
        denoiser: Workers,
        decoder: Workers,
    ) -> Self {
        Self {
            stages: [
                (Role::PromptEncoder, prompt_encoder),
                (Role::ImageEncoder, image_encoder),
                (Role::Denoiser, denoiser),
                (Role::Decoder, decoder),
            ]
            .into(),
        }
    }

    /// Returns the roles, in the order in which a request passes them.
    pub fn roles(&self) -> impl ExactSizeIterator<Item = Role> + '_ {
        self.stages.iter().map(|(role, _)| *role)
    }

    pub(super) fn check(&self) -> Result<(), TopologyError> {
        for &(role, ref workers) in &self.stages {
            if workers.endpoints.is_empty() {
                return Err(TopologyError::NoWorkers { role });
            }
            if workers.capacity == 0 {
                return Err(TopologyError::NoCapacity { role });
            }
            for (second, endpoint) in workers.endpoints.iter().enumerate() {
                let mut earlier = workers.endpoints.iter().take(second);
                if let Some(first) = earlier.position(|earlier| earlier == endpoint) {
                    return Err(TopologyError::SameEndpoint {
                        role,
                        first,
                        second,
                    });
                }
            }
        }
        Ok(())
    }
}

/// How a head node chooses, how long it waits, and how much it takes on.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tensorwire::transfer::coordinator::{Policy, Settings};
///
/// // Each request within ten minutes, and a second try if the first took four.
/// let settings = Settings::new()
///     .with_policy(Policy::MostFree)
///     .with_retries(1)
///     .with_attempt_timeout(Duration::from_secs(240));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub(super) policy: Policy,
    pub(super) timeout: Duration,
    pub(super) attempt_timeout: Option<Duration>,
    pub(super) retries: u32,
    pub(super) quarantine: Duration,
    pub(super) late_writes: Duration,
    pub(super) max_requests: usize,
    pub(super) max_slots: usize,
    pub(super) options: Options,
}

impl Settings {
    /// Makes the defaults: those of the Python head node, where it has one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            policy: Policy::RoundRobin,
            timeout: Duration::from_secs(600),
            attempt_timeout: None,
            retries: 0,
            quarantine: Duration::from_secs(600),
            late_writes: Duration::ZERO,
            max_requests: 65_536,
            max_slots: 1024,
            options: Options::new(),
        }
    }

    /// Sets how the worker is chosen.
    #[must_use]
    pub const fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets after how long a request fails, all its attempts together: 600 seconds by default.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets after how long one attempt is given up, if there is time for another.
    ///
    /// The time begins when the first worker is sent the work.
    /// Without [retries](Self::with_retries) it says nothing; by default there is none.
    #[must_use]
    pub const fn with_attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// Sets how often a request starts anew when an attempt ends by no fault of its own: 0 by default.
    ///
    /// That is when a sender could not push, a worker restarted or was lost, or the attempt took too
    /// long; see [`FailureKind::is_retried`](super::FailureKind::is_retried). A new attempt starts at once, so
    /// pushes to a receiver that is gone use the retries up until the head node knows of it: see
    /// [`handle_lost`](super::Coordinator::handle_lost).
    ///
    /// Each new attempt has an id of its own on the wire, the request's with
    /// `~1`, `~2` and so on behind it, so that a late message of the attempt
    /// before is never taken for one of the new. The workers have to go by the
    /// id that comes with the work. Python's encoders go by the one inside the
    /// pickle: leave this at 0 for them.
    #[must_use]
    pub const fn with_retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets how long a preallocated slot that may still be written to is kept away: 600 seconds by default.
    ///
    /// It has to be longer than a message can be under way and a push can last
    /// together. The slot comes back earlier as soon as it is known to be still: when
    /// whoever uses it says so, registers anew, or is [lost](super::Coordinator::handle_lost).
    #[must_use]
    pub const fn with_quarantine(mut self, quarantine: Duration) -> Self {
        self.quarantine = quarantine;
        self
    }

    /// Sets for how long what a worker pushed may still be written once it is gone: no time by default.
    ///
    /// So it is where the pusher itself writes, as with shared memory: who is gone writes no more.
    /// With [messages](crate::plane::messages) as the data plane what it pushed may be on
    /// its way yet. For so long, and at the most for the
    /// [quarantine](Self::with_quarantine), slots that it may have been writing to stay away.
    #[must_use]
    pub const fn with_late_writes(mut self, late_writes: Duration) -> Self {
        self.late_writes = late_writes;
        self
    }

    /// Sets how many requests may be under way and queued together: 65536 by default.
    ///
    /// Those that ended early, and that a worker has not yet answered, count where they are as
    /// many again.
    #[must_use]
    pub const fn with_max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
        self
    }

    /// Sets how many preallocated slots a worker may register: 1024 by default.
    ///
    /// They are kept as long as the worker is, and a slot costs about 100 bytes.
    #[must_use]
    pub const fn with_max_slots(mut self, slots: usize) -> Self {
        self.max_slots = slots;
        self
    }

    /// Sets how messages are read: the caps, and strict JSON.
    ///
    /// A message over the 1 MiB that [`Limits`](crate::Limits) allow by default is
    /// refused, and its request waits for its timeout. Python's prompt encoders write reference
    /// images into the scalars, as base64, and so do those behind them: with a
    /// split encoder allow as much as the images of a request take, and let the workers do so too.
    #[must_use]
    pub const fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The longest id of a client's request, in bytes.
    pub(super) const fn max_id_len(&self) -> usize {
        if self.retries == 0 {
            return RequestId::MAX_LEN;
        }
        // Another attempt has its number behind it, `~4294967295` at the most.
        RequestId::MAX_LEN.saturating_sub(11)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

/// No head node can work like this.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TopologyError {
    /// The workers of a role have no place for any request.
    NoCapacity {
        /// The role.
        role: Role,
    },
    /// A role has no workers.
    NoWorkers {
        /// The role.
        role: Role,
    },
    /// Two workers of a role have one endpoint.
    SameEndpoint {
        /// The role.
        role: Role,
        /// Index of the one.
        first: usize,
        /// Index of the other.
        second: usize,
    },
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCapacity { role } => write!(f, "workers of role {role} with 0 places"),
            Self::NoWorkers { role } => write!(f, "no worker of role {role}"),
            Self::SameEndpoint {
                role,
                first,
                second,
            } => write!(f, "one endpoint for {role} {first} and {role} {second}"),
        }
    }
}

impl Error for TopologyError {}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_topology_that_no_request_could_pass_is_refused() {
        let workers = |endpoints: &[&str], capacity| {
            Workers::new(endpoints.iter().map(ToString::to_string), capacity)
        };
        let good = || workers(&["a", "b"], 1);
        assert_eq!(Topology::new(good(), good(), good()).check(), Ok(()));
        let role = Role::Denoiser;
        for (bad, error, text) in [
            (
                workers(&["a"], 0),
                TopologyError::NoCapacity { role },
                "workers of role denoiser with 0 places",
            ),
            (
                workers(&[], 1),
                TopologyError::NoWorkers { role },
                "no worker of role denoiser",
            ),
            (
                workers(&["a", "b", "a"], 1),
                TopologyError::SameEndpoint {
                    role,
                    first: 0,
                    second: 2,
                },
                "one endpoint for denoiser 0 and denoiser 2",
            ),
        ] {
            let split = Topology::with_split_encoder(good(), good(), bad, good());
            assert_eq!(split.check(), Err(error));
            assert_eq!(error.to_string(), text);
        }
    }
}
