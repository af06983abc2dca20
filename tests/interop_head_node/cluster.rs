//! A head node with its workers, and what every test ends with: nothing leaked, nothing left behind.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::process::{PATIENCE, Python, Server, Worker, endpoint};
use super::processes::Folder;

/// What a cluster is made of.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) scheme: &'static str,
    pub(crate) policy: &'static str,
    pub(crate) roles: &'static [&'static str],
    pub(crate) workers: usize,
    /// Slots that a worker lets the head node give away.
    pub(crate) preallocated: usize,
    pub(crate) slot_mib: usize,
    /// How large the output of each encoder is, in MiB; the last one holds for the others too.
    pub(crate) sizes_mib: &'static [usize],
    /// How many requests a worker has at a time.
    pub(crate) capacity: usize,
    /// How long a request may take, in seconds.
    pub(crate) timeout: u64,
}

pub(crate) const THREE: &[&str] = &["encoder", "denoiser", "decoder"];

pub(crate) const SPLIT: &[&str] = &["prompt_encoder", "image_encoder", "denoiser", "decoder"];

impl Default for Setup {
    fn default() -> Self {
        Self {
            scheme: "ipc",
            policy: "round_robin",
            roles: THREE,
            workers: 1,
            preallocated: 4,
            slot_mib: 1,
            sizes_mib: &[1],
            capacity: 4,
            timeout: PATIENCE.as_secs(),
        }
    }
}

pub(crate) struct Cluster {
    setup: Setup,
    pub(crate) server: Server,
    /// By role and index; `None` while it is killed.
    workers: BTreeMap<(&'static str, usize), Option<Worker>>,
    work: BTreeMap<(&'static str, usize), String>,
    results: BTreeMap<&'static str, String>,
    /// Whether a worker was: what others have for it is held until it expires.
    killed: bool,
    segments: Folder,
    _sockets: Folder,
}

impl Cluster {
    pub(crate) fn start(python: &Python, setup: Setup) -> Self {
        let sockets = Folder::new(&std::env::temp_dir());
        let segments = Folder::new(Path::new("/dev/shm"));
        let at = |name: &str| endpoint(setup.scheme, &sockets, name);
        let mut work = BTreeMap::new();
        let mut results = BTreeMap::new();
        for &role in setup.roles {
            results.insert(role, at(&format!("{role}-result")));
            for index in 0..setup.workers {
                work.insert((role, index), at(&format!("{role}-{index}")));
            }
        }
        let options = [
            format!("--frontend={}", at("frontend")),
            format!("--timeout={}", setup.timeout),
            format!("--policy={}", setup.policy),
            format!("--capacity={}", setup.capacity),
        ];
        let mut endpoints = Vec::new();
        endpoints.extend(work.iter().map(|((role, _), at)| format!("{role}={at}")));
        endpoints.push("results".to_owned());
        endpoints.extend(results.iter().map(|(role, at)| format!("{role}={at}")));
        let mut cluster = Self {
            server: Server::start(python, &options, &endpoints),
            workers: BTreeMap::new(),
            work,
            results,
            killed: false,
            segments,
            setup,
            _sockets: sockets,
        };
        let workers: Vec<_> = cluster.work.keys().copied().collect();
        for (role, index) in workers {
            cluster.start_worker(role, index);
        }
        cluster.await_workers();
        cluster
    }

    pub(crate) fn start_worker(&mut self, role: &'static str, index: usize) {
        let sizes = self.setup.sizes_mib;
        let size = sizes.get(index).or_else(|| sizes.last()).unwrap();
        let options = [
            ("--work", self.work[&(role, index)].clone()),
            ("--result", self.results[role].clone()),
            ("--prealloc", self.setup.preallocated.to_string()),
            ("--slot", self.setup.slot_mib.to_string()),
            ("--size", size.to_string()),
            ("--pool", "64".to_owned()),
            ("--segments", self.segments.path().display().to_string()),
        ];
        let worker = Worker::start(role, &options);
        self.workers.insert((role, index), Some(worker));
    }

    pub(crate) fn kill_worker(&mut self, role: &'static str, index: usize) {
        let worker = self.workers.get_mut(&(role, index)).unwrap();
        worker.take().unwrap().kill();
        self.killed = true;
    }

    pub(crate) fn await_workers(&mut self) {
        let count = self.setup.workers;
        let roles = self.setup.roles.iter().map(|&role| (role, count));
        self.server.await_workers(&roles.collect());
    }

    /// Sends these requests all at once, and waits until each came to what it has to.
    pub(crate) fn expect_outputs<S: AsRef<str>>(&mut self, requests: &[S]) {
        for request in requests {
            self.server.send(request.as_ref(), None);
        }
        for request in requests {
            let reply = self.server.reply(request.as_ref());
            self.expect_output(request.as_ref(), &reply);
        }
    }

    /// Holds what a client got against what the pipeline computes; of which size, if encoders differ, is theirs.
    pub(crate) fn expect_output(&self, request: &str, reply: &Value) {
        assert_eq!(reply["error"], Value::Null, "{request}");
        let output = &reply["output"];
        assert_eq!(output["dtype"], "uint8", "{request}");
        let sizes = self.setup.sizes_mib.iter();
        let expected: Vec<_> = sizes
            .map(|&mib| super::expected_output(request, mib))
            .collect();
        assert!(expected.contains(output), "{request}: {output}");
    }

    /// Ends all, and holds what is left of it against nothing; returns what each worker told.
    pub(crate) fn finish(mut self) -> BTreeMap<(&'static str, usize), Vec<Value>> {
        self.expect_nothing_held();
        let mut told = BTreeMap::new();
        for (&name, worker) in &mut self.workers {
            let lines = worker.take().unwrap().finish();
            let end = &lines.last().unwrap()["end"];
            assert_eq!(end["leaked_bytes"], 0, "{name:?}: {end}");
            if !self.killed {
                assert_eq!(end["held_bytes"], 0, "{name:?}: {end}");
            }
            told.insert(name, lines);
        }
        assert!(
            self.segments.names().is_empty(),
            "{:?}",
            self.segments.names()
        );
        self.server.finish();
        told
    }

    /// The head node counts no request as still with a worker.
    fn expect_nothing_held(&mut self) {
        let stats = self.server.stats();
        assert_eq!(stats["pending_requests"], 0, "{stats}");
        for &role in self.setup.roles {
            let pool = &stats["worker_pools"][role];
            let free = vec![self.setup.capacity; self.setup.workers];
            assert_eq!(
                pool["free_slots"],
                serde_json::json!(free),
                "{role}: {stats}"
            );
            assert_eq!(pool["queue_depth"], 0, "{role}: {stats}");
        }
    }
}
