//! A worker of the cluster: the real machine, with a local worker and memory that are models.

use std::time::Duration;

use tensorwire::transfer::pool::{Pool, WindowTable, Writing};
use tensorwire::transfer::worker::{Instance, Job, PushOrder, Received, Settings, Site};
use tensorwire::transfer::{RequestId, Role};

use super::{Config, FILL_TIMEOUT, STAGE_TIMEOUT};

/// The shortest block of a pool: small, so that pools run full.
pub const MIN_BLOCK: usize = 64;

#[derive(Debug)]
pub struct Node {
    pub role: Role,
    pub index: usize,
    pub life: u32,
    pub machine: Instance,
    pub pool: Pool,
    pub table: WindowTable,
    pub memory: Vec<u8>,
    pub base: u64,
    pub session: String,
    /// What the local worker has to do.
    pub tasks: Vec<Task>,
    /// What it has answered, without having given the slot back.
    pub kept: Vec<(Received, Duration)>,
    pub flights: Vec<Flight>,
    /// How many slots it lays out beforehand, and how long each is.
    preallocated: (usize, usize),
    /// Whether it is dead, and when it is there.
    pub dead: bool,
    pub back: Option<Duration>,
    /// When its machine was last asked what has waited too long.
    pub asked: Duration,
}

/// A job of the local worker.
#[derive(Debug)]
pub struct Task {
    pub job: Job,
    pub since: Duration,
    /// What the tensors say, or the client.
    pub token: u32,
    pub has_image: bool,
    pub received: Option<Received>,
    /// It came of a copy of a message: the slot may hold anything.
    pub is_copy: bool,
}

/// A push that is under way.
#[derive(Debug)]
pub struct Flight {
    pub order: PushOrder,
    pub since: Duration,
    /// The bytes to be moved, as they were when the push began.
    pub bytes: Vec<u8>,
    pub stage: Stage,
}

/// How far a push is.
#[derive(Debug)]
pub enum Stage {
    Begun,
    /// Inside of the window; half of the bytes are there.
    Half(Writing),
    Whole(Writing),
}

impl Node {
    pub fn new(role: Role, number: usize, index: usize, life: u32, config: &Config) -> Self {
        let table = WindowTable::new();
        let pool = Pool::with_windows(
            config.pool_blocks * MIN_BLOCK,
            MIN_BLOCK,
            std::sync::Arc::new(table.clone()),
        )
        .unwrap();
        let session = format!("{role}{index}.{life}");
        // As far apart as pools of different processes are, and past 2^63.
        let base = (1 << 63) | ((number as u64) << 40) | (u64::from(life) << 20);
        let site = Site::new(&session, base, pool.clone(), &format!("{role}{index}"));
        let settings = Settings::new()
            .with_preallocated(config.preallocated, config.preallocated_len)
            .with_alloc_timeout(Duration::from_secs(10))
            .with_fill_timeout(FILL_TIMEOUT)
            .with_work_timeout(Duration::from_secs(8))
            .with_stage_timeout(STAGE_TIMEOUT);
        let machine = Instance::new(role, site, settings).unwrap();
        let count = if role.is_first() {
            0
        } else {
            config.preallocated
        };
        let block = config.preallocated_len.next_power_of_two().max(MIN_BLOCK);
        Self {
            role,
            index,
            life,
            machine,
            memory: vec![0xee; pool.len()],
            pool,
            table,
            base,
            session,
            tasks: Vec::new(),
            kept: Vec::new(),
            flights: Vec::new(),
            preallocated: (count, block),
            dead: false,
            back: None,
            asked: Duration::ZERO,
        }
    }

    /// Every slot that the local worker reads, with its request.
    pub fn read_slots(&self) -> impl Iterator<Item = (&Received, bool)> {
        let tasks = self.tasks.iter();
        let tasks = tasks.filter_map(|task| Some((task.received.as_ref()?, task.is_copy)));
        tasks.chain(self.kept.iter().map(|(received, _)| (received, true)))
    }

    /// Where in the memory an address is.
    pub fn offset_of(&self, address: u64, len: usize) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.base)?).ok()?;
        let end = offset.checked_add(len)?;
        (end <= self.memory.len()).then_some(offset)
    }

    /// What stays allocated when nothing is under way: the preallocated slots.
    pub fn check_whole(&self) {
        assert!(self.machine.is_empty(), "{} has requests", self.session);
        assert!(self.tasks.is_empty() && self.kept.is_empty() && self.flights.is_empty());
        self.pool.reclaim();
        let stats = self.pool.stats();
        let (count, len) = self.preallocated;
        let whole = (count, count * len, 0);
        let found = (
            stats.allocations(),
            stats.allocated_bytes(),
            stats.quarantined_blocks(),
        );
        assert_eq!(found, whole, "the pool of {}", self.session);
        // The head node may give them away: they are open, and nothing else is.
        assert_eq!(self.table.len(), count, "the windows of {}", self.session);
    }
}

/// What a request is about, as bytes: of `token`, and of each place its own.
pub fn pattern(token: u32, len: usize) -> Vec<u8> {
    let byte = |at: usize| token.to_le_bytes()[at % 4] ^ (at / 4) as u8;
    (0..len).map(byte).collect()
}

/// What a role makes of what it got.
pub fn work(role: Role, token: u32) -> u32 {
    let number = Role::ALL.iter().position(|&each| each == role).unwrap() as u32;
    token.wrapping_mul(31).wrapping_add(number + 1)
}

/// What comes out of the whole pipeline.
pub fn result_of(roles: &[Role], token: u32, has_image: bool) -> u32 {
    let roles = roles.iter();
    let passed = roles.filter(|&&role| role != Role::ImageEncoder || has_image);
    passed.fold(token, |token, &role| work(role, token))
}

/// Tells whose output a flight moves.
pub fn request_of(flight: &Flight) -> &RequestId {
    flight.order.job.request()
}
