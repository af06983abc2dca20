//! All of it: starts the workers, sends the requests, kills a worker now and then, and looks for what is left.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tensorwire::transfer::Role;

use crate::Result;
use crate::args::Demo;
use crate::children::{Plan, Process};
use crate::head::{CAPACITY, HeadNode, Results};
use crate::load::{self, Passed};
use crate::measure::Told;
use crate::progress::Progress;
use crate::stop::Stop;

/// What a run came to.
pub(crate) struct Outcome {
    pub(crate) passed: Passed,
    /// What the workers of each role told, in the order of the roles.
    pub(crate) told: Vec<(Role, Vec<Told>)>,
    /// The workers that were killed, and after how many requests.
    pub(crate) killed: Vec<String>,
    pub(crate) slots: SlotsOutcome,
}

/// What became of the slots.
#[derive(Default)]
pub(crate) struct SlotsOutcome {
    /// Files of shared memory that nobody took away.
    pub(crate) files: Vec<OsString>,
    /// Preallocated slots that the head node has not got back.
    pub(crate) not_back: usize,
}

pub(crate) fn run(demo: &Demo, progress: &mut Progress, stop: &Stop) -> Result<Outcome> {
    let roles: &[Role] = if demo.split {
        &[
            Role::PromptEncoder,
            Role::ImageEncoder,
            Role::Denoiser,
            Role::Decoder,
        ]
    } else {
        &[Role::Encoder, Role::Denoiser, Role::Decoder]
    };
    let sockets = Folder::new(&std::env::temp_dir())?;
    let memory = Path::new("/dev/shm");
    let segments = if memory.is_dir() {
        Folder::new(memory)?
    } else {
        Folder::new(&sockets.path)?
    };
    let endpoint = |name: String| match demo.tcp {
        true => "tcp://127.0.0.1:*".to_owned(),
        false => format!("ipc://{}", sockets.path.join(name).display()),
    };
    let bound = roles
        .iter()
        .map(|&role| (role, endpoint(format!("{role}-result"))));
    let results = Results::bind(&bound.collect::<Vec<_>>())?;

    let mut workers = Vec::new();
    for &role in roles {
        for index in 0..demo.workers {
            let result = results.endpoint(role).ok_or("a role without a socket")?;
            progress.show(&format!("starting {role} {index}"));
            let plan = Plan {
                role,
                index,
                arguments: arguments(demo, result, &segments.path),
            };
            let work = endpoint(format!("{role}-{index}"));
            workers.push(Worker::start(plan, &work)?);
            stop.check()?;
        }
    }
    let endpoints: Vec<_> = workers.iter().map(Worker::endpoint).collect();
    let mut head = results.connect(&endpoints, load::settings(&demo.load))?;
    load::await_workers(&mut head, workers.len(), stop)?;

    let mut told: Vec<_> = roles.iter().map(|&role| (role, Vec::new())).collect();
    let mut keep = |role, lines: Vec<Told>| {
        if let Some((_, told)) = told.iter_mut().find(|(of, _)| *of == role) {
            told.extend(lines);
        }
    };
    let mut killer = demo.kill.map(|seed| Killer::new(seed, demo.load.requests));
    let mut killed = Vec::new();
    let mut passed = load::drive(
        &mut head,
        &demo.load,
        demo.split,
        progress,
        |head, passed| {
            stop.check()?;
            for worker in &mut workers {
                worker.process.check()?;
                keep(worker.process.role(), worker.process.told()?);
            }
            // One that has not yet said that it is there is not killed: nothing would be heard of it.
            let all_there = passed.restarts == killed.len();
            if let Some(killer) = &mut killer
                && all_there
                && let Some(victim) = killer.victim(passed.ended(), workers.len())
            {
                let worker = workers.swap_remove(victim);
                killed.push(format!(
                    "{} after {}",
                    worker.process.name(),
                    passed.ended()
                ));
                let (role, index) = (worker.process.role(), worker.process.index());
                let (lines, dead) = worker.kill()?;
                keep(role, lines);
                // Before the next one can register.
                head.lost(role, index)?;
                workers.push(dead.replace()?);
            }
            Ok(())
        },
    )?;

    progress.show("waiting for the last slots");
    load::settle(&mut head, &mut passed, killed.len())?;
    let not_back = slots_away(&head, roles);
    for worker in workers {
        let role = worker.process.role();
        keep(role, worker.process.finish()?);
    }
    Ok(Outcome {
        passed,
        told,
        killed,
        slots: SlotsOutcome {
            files: segments.names()?,
            not_back,
        },
    })
}

/// The preallocated slots that the head node has given away, and not got back.
fn slots_away(head: &HeadNode, roles: &[Role]) -> usize {
    let roles = roles.iter();
    let statistics = roles.filter_map(|&role| head.coordinator().role_statistics(role));
    statistics
        .map(|role| role.lent_slots + role.quarantined_slots)
        .sum()
}

/// What a worker is started with, apart from its role and where it takes work.
fn arguments(demo: &Demo, result: &str, segments: &Path) -> Vec<String> {
    // What a worker can have at a time: of each request what came and what goes, and what is
    // left of one that began anew.
    let slots = demo.preallocated + 2 * CAPACITY as usize + 2;
    let slot_mib = demo.slot_mib.max(demo.load.size_mib).next_power_of_two();
    let options = [
        ("--result", result.to_owned()),
        ("--prealloc", demo.preallocated.to_string()),
        ("--slot", demo.slot_mib.to_string()),
        ("--size", demo.load.size_mib.to_string()),
        ("--pool", (slots * slot_mib).to_string()),
        ("--timeout", demo.load.timeout_s.to_string()),
        ("--segments", segments.display().to_string()),
    ];
    let options = options.into_iter();
    options
        .flat_map(|(option, value)| [option.to_owned(), value])
        .collect()
}

/// A worker's process, and where it takes work.
struct Worker {
    process: Process,
    work: String,
}

impl Worker {
    fn start(plan: Plan, work: &str) -> Result<Self> {
        let mut process = Process::start(plan, work)?;
        let work = process.endpoint()?;
        Ok(Self { process, work })
    }

    fn endpoint(&self) -> (Role, String) {
        (self.process.role(), self.work.clone())
    }

    /// Kills it; returns what it had told.
    fn kill(self) -> Result<(Vec<Told>, Dead)> {
        let (told, plan) = self.process.kill()?;
        let work = self.work;
        Ok((told, Dead { plan, work }))
    }
}

/// What was a worker.
struct Dead {
    plan: Plan,
    work: String,
}

impl Dead {
    /// Starts another at the same endpoint.
    fn replace(self) -> Result<Worker> {
        Worker::start(self.plan, &self.work)
    }
}

/// Says when to kill whom.
struct Killer {
    state: u64,
    /// After how many requests the next one is killed, if at all.
    next: usize,
    last: usize,
}

impl Killer {
    fn new(seed: u64, requests: usize) -> Self {
        let mut killer = Self {
            state: seed.wrapping_mul(2).wrapping_add(1),
            next: 0,
            // So that what was lost with the last one has company.
            last: requests.saturating_sub(2),
        };
        killer.next = 2 + killer.below(4);
        killer
    }

    fn victim(&mut self, ended: usize, workers: usize) -> Option<usize> {
        if ended < self.next || ended >= self.last {
            return None;
        }
        self.next = ended + 3 + self.below(8);
        Some(self.below(workers))
    }

    /// A number below `limit`, by xorshift.
    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) as usize % limit
    }
}

/// A folder of this run alone, with a short name.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new(parent: &Path) -> Result<Self> {
        let path = parent.join(format!("tensorwire-disaggregated-{}", std::process::id()));
        // Left by a process of the same number that was killed.
        let _ = std::fs::remove_dir_all(&path);
        let cannot = |error| format!("{}: {error}", path.display());
        // Nobody else is to see what its sockets and segments are called.
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.map_err(cannot)?;
        Ok(Self { path })
    }

    /// What lies in it.
    fn names(&self) -> Result<Vec<OsString>> {
        let entries = std::fs::read_dir(&self.path)?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
