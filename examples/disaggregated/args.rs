//! The command line.

use std::ffi::OsString;
use std::iter::Peekable;
use std::path::PathBuf;

use tensorwire::transfer::Role;
use tensorwire::transfer::coordinator::Policy;

pub(crate) const HELP: &str = "\
Runs a disaggregated pipeline: encoder, denoiser and decoder as processes of their own, and the head node here. Control
messages go over ZeroMQ, tensors from slot to slot in shared memory. Every payload is checked whole at every step.

usage: disaggregated [OPTION...]
       disaggregated --role ROLE --work ENDPOINT --result ENDPOINT [OPTION...]
       disaggregated --role head --work ROLE=ENDPOINT ... --result ROLE=ENDPOINT ... [OPTION...]

The first is all of it. The second is one worker for a head node elsewhere, an sglang DiffusionServer say: an encoder,
prompt_encoder, image_encoder, denoiser or decoder. It takes work at one endpoint, which it binds, sends its results to
the other, to which it connects, and ends on SIGTERM. The third is the head node for workers elsewhere: it connects to
the endpoints that they take work at and binds those that they send their results to, one for each role.

with all of it, or as the head node:
  --requests N         how many requests there are (24)
  --in-flight N        how many of them at a time (4)
  --size MIB           how much goes from each role to the next, about (8)
  --policy NAME        which worker gets a request: round_robin (the default) or max_free_slots
  --json               prints one JSON object instead of tables
  --help               prints this

with all of it:
  --workers N          how many workers each role has (1)
  --split              a prompt encoder and an image encoder instead of one encoder; every second request has an image
  --tcp                control messages over loopback TCP instead of ipc
  --kill-random [SEED] kills a worker now and then, and starts another in its place; what it had is begun anew

all of them:
  --timeout SECONDS    how long a request may take (60)

with all of it, or as a worker:
  --prealloc N         how many slots a worker lets the head node give away unasked (4); 0 is the slow path for all
  --slot MIB           how large they are (as large as what goes from role to role)

as a worker:
  --pool MIB           how large the pool of slots is (256)
  --size MIB           how much an encoder's output is, about (8)
  --work-endpoint-name NAME
                       what to register as, if the head node knows the work endpoint by another name
  --segments FOLDER    where the shared memory lies (/dev/shm)
  --report             says on stdout, as JSON, what it did for each request
  --until-stdin-closes ends then, too

Exit status: 0 all was well, 1 a payload differed, a request did not end as it should, something leaked or failed,
2 wrong arguments.
";

pub(crate) enum Command {
    Demo(Demo),
    Head(Head),
    Help,
    Worker(Worker),
}

/// All of it, in processes of our own.
pub(crate) struct Demo {
    pub(crate) load: Load,
    pub(crate) workers: usize,
    pub(crate) split: bool,
    pub(crate) tcp: bool,
    pub(crate) preallocated: usize,
    pub(crate) slot_mib: usize,
    pub(crate) kill: Option<u64>,
}

/// The head node, for workers elsewhere.
pub(crate) struct Head {
    pub(crate) load: Load,
    /// For each worker: its role, and where it takes work.
    pub(crate) work: Vec<(Role, String)>,
    /// For each role: where its workers send results.
    pub(crate) result: Vec<(Role, String)>,
}

/// What a head node is to do.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) requests: usize,
    pub(crate) in_flight: usize,
    pub(crate) size_mib: usize,
    pub(crate) policy: Policy,
    pub(crate) timeout_s: u64,
    pub(crate) json: bool,
}

/// One worker.
pub(crate) struct Worker {
    pub(crate) role: Role,
    pub(crate) work: String,
    pub(crate) result: String,
    pub(crate) name: Option<String>,
    pub(crate) preallocated: usize,
    pub(crate) slot_mib: usize,
    pub(crate) pool_mib: usize,
    pub(crate) size_mib: usize,
    pub(crate) timeout_s: u64,
    pub(crate) segments: Option<PathBuf>,
    pub(crate) report: bool,
    pub(crate) until_stdin_closes: bool,
}

pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let mut args = args.peekable();
    let mut given = Given::default();
    while let Some(arg) = args.next() {
        let option = text(&arg)?.to_owned();
        let mut value = || value(&option, &mut args);
        match option.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--in-flight" => given.in_flight = Some(count(&option, &value()?, 1..=1024)?),
            "--json" => given.json = true,
            "--kill-random" => given.kill = Some(seed(&mut args)),
            "--policy" => {
                let name = value()?;
                let unknown = || format!("--policy {name}: no such policy");
                given.policy = Some(Policy::from_name(&name).ok_or_else(unknown)?);
            }
            "--pool" => given.pool_mib = Some(count(&option, &value()?, 1..=1 << 20)?),
            "--prealloc" => given.preallocated = Some(count(&option, &value()?, 0..=1024)?),
            "--report" => given.report = true,
            "--requests" => given.requests = Some(count(&option, &value()?, 1..=1_000_000)?),
            "--result" => given.result.push(value()?),
            "--role" => given.role = Some(value()?),
            "--segments" => given.segments = Some(value()?.into()),
            "--size" => given.size_mib = Some(count(&option, &value()?, 1..=1024)?),
            "--slot" => given.slot_mib = Some(count(&option, &value()?, 1..=1 << 20)?),
            "--split" => given.split = true,
            "--tcp" => given.tcp = true,
            "--timeout" => given.timeout_s = Some(count(&option, &value()?, 1..=86_400)?),
            "--until-stdin-closes" => given.until_stdin_closes = true,
            "--work" => given.work.push(value()?),
            "--work-endpoint-name" => given.name = Some(value()?),
            "--workers" => given.workers = Some(count(&option, &value()?, 1..=16)?),
            other => return Err(format!("{other}: no such option")),
        }
    }
    given.command()
}

#[derive(Default)]
struct Given {
    role: Option<String>,
    work: Vec<String>,
    result: Vec<String>,
    name: Option<String>,
    requests: Option<usize>,
    in_flight: Option<usize>,
    size_mib: Option<usize>,
    slot_mib: Option<usize>,
    pool_mib: Option<usize>,
    preallocated: Option<usize>,
    workers: Option<usize>,
    timeout_s: Option<usize>,
    policy: Option<Policy>,
    split: bool,
    tcp: bool,
    kill: Option<u64>,
    segments: Option<PathBuf>,
    json: bool,
    report: bool,
    until_stdin_closes: bool,
}

impl Given {
    fn command(self) -> Result<Command, String> {
        let size_mib = self.size_mib.unwrap_or(8);
        let slot_mib = self.slot_mib.unwrap_or(size_mib);
        let preallocated = self.preallocated.unwrap_or(4);
        let load = Load {
            requests: self.requests.unwrap_or(24),
            in_flight: self.in_flight.unwrap_or(4),
            size_mib,
            policy: self.policy.unwrap_or(Policy::RoundRobin),
            timeout_s: self.timeout_s.unwrap_or(60) as u64,
            json: self.json,
        };
        match self.role.as_deref() {
            None if !self.work.is_empty() || !self.result.is_empty() => {
                Err("--work and --result: of which --role".into())
            }
            None => Ok(Command::Demo(Demo {
                load,
                workers: self.workers.unwrap_or(1),
                split: self.split,
                tcp: self.tcp,
                preallocated,
                slot_mib,
                kill: self.kill,
            })),
            Some("head") => Ok(Command::Head(Head {
                load,
                work: pairs("--work", self.work)?,
                result: pairs("--result", self.result)?,
            })),
            Some(name) => {
                let unknown = || format!("--role {name}: no such role");
                let role = Role::from_name(name).ok_or_else(unknown)?;
                Ok(Command::Worker(Worker {
                    role,
                    work: one("--work", self.work)?,
                    result: one("--result", self.result)?,
                    name: self.name,
                    preallocated,
                    slot_mib,
                    pool_mib: self.pool_mib.unwrap_or(256),
                    size_mib,
                    timeout_s: load.timeout_s,
                    segments: self.segments,
                    report: self.report,
                    until_stdin_closes: self.until_stdin_closes,
                }))
            }
        }
    }
}

fn text(arg: &OsString) -> Result<&str, String> {
    let shown = || format!("{}: not UTF-8", arg.display());
    arg.to_str().ok_or_else(shown)
}

fn value(option: &str, args: &mut impl Iterator<Item = OsString>) -> Result<String, String> {
    let missing = || format!("{option}: a value is missing");
    Ok(text(&args.next().ok_or_else(missing)?)?.to_owned())
}

/// The next argument, if it is a number; else one that is different each time.
fn seed(args: &mut Peekable<impl Iterator<Item = OsString>>) -> u64 {
    let given = args.peek().and_then(|arg| arg.to_str()?.parse().ok());
    match given {
        Some(seed) => {
            args.next();
            seed
        }
        None => crate::measure::now_ns() % 100_000,
    }
}

fn count(
    option: &str,
    text: &str,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize, String> {
    let (low, high) = (range.start(), range.end());
    let wrong = || format!("{option} {text}: not a number from {low} to {high}");
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(wrong)
}

fn one(option: &str, mut values: Vec<String>) -> Result<String, String> {
    match (values.pop(), values.is_empty()) {
        (Some(value), true) => Ok(value),
        _ => Err(format!("{option}: a worker has one")),
    }
}

fn pairs(option: &str, values: Vec<String>) -> Result<Vec<(Role, String)>, String> {
    if values.is_empty() {
        return Err(format!("{option}: a head node has one for each role"));
    }
    let pair = |value: String| {
        let wrong = || format!("{option} {value}: not ROLE=ENDPOINT");
        let (role, endpoint) = value.split_once('=').ok_or_else(wrong)?;
        Ok((
            Role::from_name(role).ok_or_else(wrong)?,
            endpoint.to_owned(),
        ))
    };
    values.into_iter().map(pair).collect()
}
