//! Whole clusters of the real machines, over a network that is played, with a made-up clock.
//!
//! A head node, one to three workers of each role, their local workers, their memory and the
//! wires between them; what happens next is chosen by a seed or by a fuzzer's bytes. Each
//! step is one of: a client asks or gives up, a message arrives, a local worker does
//! something, bytes are moved, time passes, a worker dies, and is there again at once, after
//! some time, or never. On the way and at the end is checked:
//!
//! - no slot is given away while somebody writes to it or reads it for another request, and
//!   nobody writes to a slot that was given to another;
//! - what a worker reads is what the one before it wrote, and stays so until it is through;
//! - what the client gets is what all its roles together make of what it sent;
//! - each request ends exactly once, and in time;
//! - where no message is lost and nobody restarts, what is no longer wanted is freed by a message,
//!   and not by waiting;
//! - at the end every place is free, every slot is back, every pool is whole, and no machine
//!   remembers a request.
//!
//! Messages are late by up to [`MESSAGE_TIMEOUT`], copies by twice that; pushes take up to
//! [`PUSH_TIMEOUT`], and local workers read for up to [`READ_TIMEOUT`]. What the machines
//! wait for is longer, as their docs demand.

pub mod choices;
mod client;
mod flights;
mod messages;
mod network;
mod node;
mod steps;
mod tally;
mod tasks;
mod time;

use std::collections::BTreeMap;
use std::time::Duration;

use choices::Choices;
use client::Client;
use network::Network;
use node::Node;
pub use tally::Tally;
use tensorwire::transfer::coordinator::{Coordinator, Policy, Settings, Topology, Workers};
use tensorwire::transfer::{RequestId, Role};

/// How late a message is at the most.
pub const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a push takes at the most.
pub const PUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a local worker has a received slot at the most.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the head node keeps away what may be in use: longer than a late copy, a push and a reader together.
pub const QUARANTINE: Duration = Duration::from_secs(25);

/// How long the head node gives a request.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a receiver keeps an allocated slot: longer than the head node can still send somebody there.
pub const FILL_TIMEOUT: Duration = Duration::from_secs(120);

/// How long an output waits: longer than the head node can still want it.
pub const STAGE_TIMEOUT: Duration = Duration::from_secs(100);

/// What a cluster is like.
#[derive(Clone, Debug)]
pub struct Config {
    pub roles: &'static [Role],
    pub workers: Vec<usize>,
    pub capacity: u32,
    pub preallocated: usize,
    pub preallocated_len: usize,
    pub pool_blocks: usize,
    pub policy: Policy,
    pub retries: u32,
    pub attempt_timeout: Option<Duration>,
    pub steps: u32,
    /// Out of 256 messages.
    pub loss: u32,
    /// Out of 256 messages.
    pub copies: u32,
    /// Whether work and READY are copied, which begin a request at a worker, or else the others.
    ///
    /// Not both: a copy of the first two that comes late begins the request anew at a worker that is
    /// through with it, and a late PUSH of before would then move the output of this second
    /// life. The wire has nothing to tell them apart by.
    pub copies_begin: bool,
    /// Out of 256 pushes, at each stage of theirs.
    pub bad_pushes: u32,
    /// Out of 256 jobs.
    pub bad_jobs: u32,
    /// Out of 1024 steps.
    pub restarts: u32,
    /// Out of 256 requests.
    pub cancels: u32,
    /// Every message comes, and once, and every worker lives.
    pub is_whole: bool,
}

const THREE: &[Role] = &[Role::Encoder, Role::Denoiser, Role::Decoder];
const SPLIT: &[Role] = &[
    Role::PromptEncoder,
    Role::ImageEncoder,
    Role::Denoiser,
    Role::Decoder,
];

impl Config {
    /// Whether everybody hears all that he has to hear.
    pub fn is_reliable(&self) -> bool {
        self.loss == 0 && self.restarts == 0 && !(self.copies_begin && self.copies > 0)
    }

    pub fn choose(choices: &mut dyn Choices) -> Self {
        let roles = if choices.chance(96) { SPLIT } else { THREE };
        let mut rare = |parts: u32| {
            if choices.chance(96) {
                choices.below(parts)
            } else {
                0
            }
        };
        let (loss, copies, bad_pushes) = (rare(48), rare(64), rare(64));
        let (bad_jobs, restarts, cancels) = (rare(64), rare(48), rare(96));
        Self {
            roles,
            workers: roles
                .iter()
                .map(|_| 1 + choices.below(3) as usize)
                .collect(),
            capacity: 1 + choices.below(3),
            preallocated: choices.below(3) as usize,
            preallocated_len: [64, 100, 256][choices.below(3) as usize],
            pool_blocks: [16, 16, 8, 32][choices.below(4) as usize],
            policy: [Policy::RoundRobin, Policy::MostFree][choices.below(2) as usize],
            retries: choices.below(3),
            attempt_timeout: choices.chance(128).then_some(Duration::from_secs(20)),
            steps: 40 + choices.below(120),
            loss,
            copies,
            copies_begin: choices.chance(128),
            bad_pushes,
            bad_jobs,
            restarts,
            cancels,
            is_whole: loss == 0 && copies == 0 && restarts == 0,
        }
    }
}

/// A cluster and all that is known of it.
pub struct Cluster<'c> {
    choices: &'c mut dyn Choices,
    config: Config,
    now: Duration,
    head: Coordinator,
    nodes: Vec<Node>,
    network: Network,
    clients: BTreeMap<RequestId, Client>,
    /// Whom the head node gave each place to: (session, address).
    assigned: BTreeMap<(String, u64), RequestId>,
    buffer: Vec<u8>,
    tally: Tally,
    traced: bool,
    /// What the decoder's reply that is being handled says.
    reply: Option<u32>,
    /// Whether the [`Config`] was so, before the end.
    is_reliable: bool,
}

impl<'c> Cluster<'c> {
    pub fn new(choices: &'c mut dyn Choices, traced: bool) -> Self {
        let config = Config::choose(choices);
        let mut nodes = Vec::new();
        for (&role, &count) in config.roles.iter().zip(&config.workers) {
            for index in 0..count {
                nodes.push(Node::new(role, nodes.len(), index, 0, &config));
            }
        }
        let workers = |at: usize| {
            let role = config.roles[at];
            let endpoints = (0..config.workers[at]).map(|index| format!("{role}{index}"));
            Workers::new(endpoints, config.capacity)
        };
        let topology = if config.roles.len() == 3 {
            Topology::new(workers(0), workers(1), workers(2))
        } else {
            Topology::with_split_encoder(workers(0), workers(1), workers(2), workers(3))
        };
        let mut settings = Settings::new()
            .with_policy(config.policy)
            .with_timeout(REQUEST_TIMEOUT)
            .with_quarantine(QUARANTINE)
            .with_retries(config.retries)
            .with_max_requests(12);
        if let Some(timeout) = config.attempt_timeout {
            settings = settings.with_attempt_timeout(timeout);
        }
        let mut cluster = Self {
            now: Duration::ZERO,
            head: Coordinator::new(topology, settings).unwrap(),
            network: Network::new(nodes.len()),
            nodes,
            clients: BTreeMap::new(),
            assigned: BTreeMap::new(),
            buffer: Vec::new(),
            tally: Tally::default(),
            traced,
            reply: None,
            is_reliable: config.is_reliable(),
            choices,
            config,
        };
        cluster.note(|cluster| format!("{:?}", cluster.config));
        for node in 0..cluster.nodes.len() {
            cluster.flush(node);
        }
        cluster
    }

    /// Plays a schedule to its end, and checks that everything is whole then.
    pub fn run(mut self) -> Tally {
        let mut left = self.config.steps;
        while left > 0 && !self.choices.is_over() {
            self.step();
            left -= 1;
        }
        self.wind_down();
        self.check_whole();
        self.tally
    }

    fn note(&self, line: impl FnOnce(&Self) -> String) {
        if self.traced {
            println!("{:>9.3} {}", self.now.as_secs_f64(), line(self));
        }
    }

    fn check_whole(&mut self) {
        for (id, client) in &self.clients {
            assert!(client.ended.is_some(), "{id} has not ended");
        }
        let statistics = self.head.statistics();
        assert_eq!(statistics.active, 0);
        assert_eq!(self.head.poll_timeout(), None, "the head node waits");
        self.tally.retried = statistics.retried;
        for &role in self.config.roles {
            let role_statistics = self.head.role_statistics(role).unwrap();
            let there = role_statistics.workers - role_statistics.lost;
            let places = there * self.config.capacity as usize;
            assert_eq!(role_statistics.free_places, places, "places of {role}");
            assert_eq!((role_statistics.queued, role_statistics.running), (0, 0));
            let out = (
                role_statistics.lent_slots,
                role_statistics.quarantined_slots,
            );
            assert_eq!(out, (0, 0), "slots of {role}");
            if !role.is_first() {
                let slots = role_statistics.registered * self.config.preallocated;
                assert_eq!(role_statistics.free_slots, slots, "slots of {role}");
            }
            self.tally.fast_path += role_statistics.fast_path;
            self.tally.slow_path += role_statistics.slow_path;
        }
        for node in &self.nodes {
            node.check_whole();
        }
        self.tally.lost = self.network.lost;
        self.tally.copied = self.network.copied;
    }
}

/// Plays the schedule of a seed.
pub fn run_seed(seed: u64, traced: bool) -> Tally {
    let mut choices = choices::Seeded::new(seed);
    Cluster::new(&mut choices, traced).run()
}
