//! All that the driver knows, behind one lock.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::env;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::clock::Clock;
use crate::memory::{DeviceMemory, HostMemory};
use crate::script::{Random, Script};
use crate::stream::{Stream, Token};

/// What a call returns: a `CUresult`.
pub(crate) type Code = u32;

pub(crate) const SUCCESS: Code = 0;
pub(crate) const INVALID_VALUE: Code = 1;
pub(crate) const OUT_OF_MEMORY: Code = 2;
pub(crate) const NOT_INITIALIZED: Code = 3;
pub(crate) const INVALID_DEVICE: Code = 101;
pub(crate) const INVALID_CONTEXT: Code = 201;
pub(crate) const INVALID_HANDLE: Code = 400;
pub(crate) const NOT_READY: Code = 600;
pub(crate) const CONTEXT_IS_DESTROYED: Code = 709;
pub(crate) const ALREADY_REGISTERED: Code = 712;
pub(crate) const NOT_REGISTERED: Code = 713;
pub(crate) const NOT_SUPPORTED: Code = 801;

/// What the environment says of driver and devices.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) devices: usize,
    pub(crate) driver_version: i32,
    pub(crate) pools: bool,
    pub(crate) init: Code,
    /// Nothing is copied, nothing is checked, all is over at once.
    pub(crate) noop: bool,
    /// Bytes of each device.
    pub(crate) memory: usize,
    pub(crate) seed: u64,
}

impl Settings {
    fn new() -> Self {
        fn number(name: &str, otherwise: i64) -> i64 {
            let value = env::var(name).ok();
            value.map_or(otherwise, |value| value.parse().expect("a number"))
        }
        Self {
            devices: number("SIMCUDA_DEVICES", 1) as usize,
            driver_version: number("SIMCUDA_DRIVER_VERSION", 12040) as i32,
            pools: number("SIMCUDA_POOLS", 1) != 0,
            init: number("SIMCUDA_INIT", 0) as Code,
            noop: env::var("SIMCUDA_MODE").is_ok_and(|mode| mode == "noop"),
            memory: number("SIMCUDA_MEMORY", 4 << 30) as usize,
            seed: number("SIMCUDA_SEED", 0) as u64,
        }
    }
}

/// The primary context of one device.
#[derive(Debug, Default)]
pub(crate) struct Context {
    pub(crate) retained: usize,
    /// Releasing it was made to fail so often.
    pub(crate) excused: usize,
    /// What every call fails with from now on.
    pub(crate) fault: Option<Code>,
    pub(crate) allocated: usize,
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: usize,
    /// What it was recorded after last, and what is known once that is over.
    pub(crate) recorded: Option<(Arc<Token>, Clock)>,
    pub(crate) excused: bool,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) initialized: bool,
    pub(crate) contexts: Vec<Context>,
    pub(crate) streams: BTreeMap<usize, Stream>,
    pub(crate) stream_count: usize,
    pub(crate) events: HashMap<usize, Event>,
    pub(crate) last_handle: usize,
    pub(crate) device: BTreeMap<u64, DeviceMemory>,
    pub(crate) last_address: u64,
    pub(crate) host: BTreeMap<usize, HostMemory>,
    /// Host memory that was pinned once: start and length.
    pub(crate) host_freed: Vec<(usize, usize)>,
    /// What the host knows to be over.
    pub(crate) known: Clock,
    pub(crate) violations: Vec<String>,
    pub(crate) script: Script,
}

impl State {
    pub(crate) fn violation(&mut self, text: impl Into<String>) {
        let text = text.into();
        if env::var_os("SIMCUDA_TRACE").is_some() {
            eprintln!("simcuda: {text}");
        }
        // One fault that comes again and again need not fill the memory.
        if self.violations.len() < 1000 {
            self.violations.push(text);
        }
    }

    /// A value for a handle that no other object had or will have.
    pub(crate) fn handle(&mut self) -> usize {
        self.last_handle += 64;
        0x51c0_0000 + self.last_handle
    }
}

#[derive(Debug)]
pub(crate) struct Sim {
    pub(crate) settings: Settings,
    pub(crate) changed: Condvar,
    state: Mutex<State>,
}

pub(crate) fn sim() -> &'static Sim {
    static SIM: OnceLock<Sim> = OnceLock::new();
    SIM.get_or_init(|| {
        let settings = Settings::new();
        let contexts = (0..settings.devices).map(|_| Context::default()).collect();
        let script = Script {
            random: Random(settings.seed),
            ..Script::default()
        };
        let state = State {
            contexts,
            script,
            last_address: 0x7_0000_0000_0000,
            ..State::default()
        };
        Sim {
            settings,
            changed: Condvar::new(),
            state: Mutex::new(state),
        }
    })
}

pub(crate) fn lock() -> MutexGuard<'static, State> {
    sim().state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until something has changed.
pub(crate) fn wait(state: MutexGuard<'static, State>) -> MutexGuard<'static, State> {
    let state = sim().changed.wait(state);
    state.unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The device whose context is current on this thread.
    pub(crate) static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
    /// This thread could not set its context since a script said so.
    pub(crate) static BIND_FAILED: Cell<bool> = const { Cell::new(false) };
    /// This thread may copy from and to memory that is not pinned.
    pub(crate) static PAGEABLE: Cell<bool> = Cell::new(env::var_os("SIMCUDA_PAGEABLE").is_some());
}
