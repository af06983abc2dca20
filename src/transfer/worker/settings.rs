//! Who and where a worker is, and how patient.

use alloc::boxed::Box;
use core::time::Duration;

use crate::message::Options;
use crate::transfer::pool::Pool;

/// What a worker registers with: its session on the data plane, its pool, its work socket.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::pool::Pool;
/// use tensorwire::transfer::worker::Site;
///
/// let pool = Pool::new(256 << 20)?;
/// let site = Site::new("denoiser-0", 0x7f00_0000_0000, pool, "tcp://127.0.0.1:5571");
/// assert_eq!(site.work_endpoint(), "tcp://127.0.0.1:5571");
/// # Ok::<(), tensorwire::transfer::pool::PoolError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Site {
    session_id: Box<str>,
    pool_ptr: u64,
    pool: Pool,
    work_endpoint: Box<str>,
    generation: u32,
}

impl Site {
    /// The worker whose session is `session_id`, whose pool has its first byte at `pool_ptr`,
    /// and which takes work at `work_endpoint`, spelled as the head node knows it.
    #[must_use]
    pub fn new(session_id: &str, pool_ptr: u64, pool: Pool, work_endpoint: &str) -> Self {
        Self {
            session_id: session_id.into(),
            pool_ptr,
            pool,
            work_endpoint: work_endpoint.into(),
            generation: 0,
        }
    }

    /// Sets a number that another life of the worker does not have, such as the time of its start: 0 by default.
    ///
    /// Needed where a worker that starts anew has the session's name and the
    /// pool's address of before: it keeps old messages from being taken for new.
    #[must_use]
    pub fn with_generation(mut self, generation: u32) -> Self {
        self.generation = generation;
        self
    }

    /// Returns the data plane's name of the worker.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Returns the address of the pool's first byte.
    #[must_use]
    pub const fn pool_ptr(&self) -> u64 {
        self.pool_ptr
    }

    /// Returns the pool.
    #[must_use]
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns the number of the worker's life.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns where it takes work.
    #[must_use]
    pub fn work_endpoint(&self) -> &str {
        &self.work_endpoint
    }
}

/// How many requests a worker takes, how long it waits, and what it lays out beforehand.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tensorwire::transfer::worker::Settings;
///
/// let settings = Settings::new()
///     .with_preallocated(2, 64 << 20)
///     .with_work_timeout(Duration::from_secs(60));
/// assert_eq!(settings.preallocated(), (2, 64 << 20));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    preallocated: (usize, usize),
    max_requests: usize,
    alloc_timeout: Duration,
    fill_timeout: Duration,
    work_timeout: Duration,
    stage_timeout: Duration,
    options: Options,
}

impl Settings {
    /// The defaults, each of which its setter names.
    #[must_use]
    pub const fn new() -> Self {
        // The time that the Python head node gives a whole request.
        const REQUEST: Duration = Duration::from_secs(600);
        Self {
            preallocated: (0, 0),
            max_requests: 1024,
            alloc_timeout: Duration::from_secs(30),
            fill_timeout: REQUEST,
            work_timeout: REQUEST,
            stage_timeout: REQUEST,
            options: Options::new(),
        }
    }

    /// Lets the head node give away `count` slots of at least `len` bytes unasked: none by default.
    ///
    /// A request that fits into one saves a message and its answer. The Python
    /// workers have two of 64 MiB. They stay taken out of the pool: a longer slot than it can have
    /// beside them is refused.
    #[must_use]
    pub const fn with_preallocated(mut self, count: usize, len: usize) -> Self {
        self.preallocated = (count, len);
        self
    }

    /// Sets how many requests may be under way, and how many ended ones are remembered: 1024 by default.
    ///
    /// A request costs up to about 500 bytes, its texts not counted.
    #[must_use]
    pub const fn with_max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
        self
    }

    /// Sets how long a request waits for room in the pool: 30 seconds by default.
    #[must_use]
    pub const fn with_alloc_timeout(mut self, timeout: Duration) -> Self {
        self.alloc_timeout = timeout;
        self
    }

    /// Sets how long a slot that was asked for waits to be filled: 600 seconds by default.
    #[must_use]
    pub const fn with_fill_timeout(mut self, timeout: Duration) -> Self {
        self.fill_timeout = timeout;
        self
    }

    /// Sets how long the local worker may take: 600 seconds by default.
    #[must_use]
    pub const fn with_work_timeout(mut self, timeout: Duration) -> Self {
        self.work_timeout = timeout;
        self
    }

    /// Sets how long an output waits to be fetched: 600 seconds by default.
    #[must_use]
    pub const fn with_stage_timeout(mut self, timeout: Duration) -> Self {
        self.stage_timeout = timeout;
        self
    }

    /// Sets how messages are read: the caps, and strict JSON.
    #[must_use]
    pub const fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Returns how many slots are laid out beforehand, and their least length in bytes.
    #[must_use]
    pub const fn preallocated(&self) -> (usize, usize) {
        self.preallocated
    }

    /// Returns how many requests may be under way.
    #[must_use]
    pub const fn max_requests(&self) -> usize {
        self.max_requests
    }

    /// Returns how long a request waits for room in the pool.
    #[must_use]
    pub const fn alloc_timeout(&self) -> Duration {
        self.alloc_timeout
    }

    /// Returns how long a slot that was asked for waits to be filled.
    #[must_use]
    pub const fn fill_timeout(&self) -> Duration {
        self.fill_timeout
    }

    /// Returns how long the local worker may take.
    #[must_use]
    pub const fn work_timeout(&self) -> Duration {
        self.work_timeout
    }

    /// Returns how long an output waits to be fetched.
    #[must_use]
    pub const fn stage_timeout(&self) -> Duration {
        self.stage_timeout
    }

    /// Returns how messages are read.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
