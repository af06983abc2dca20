//! A head node and a worker of each role in one thread: their machines alone, messages handed over in memory.

use std::time::{Duration, Instant};

use tensorwire::TensorView;
use tensorwire::json::Value;
use tensorwire::message::{Scalar, encode_into};
use tensorwire::transfer::coordinator::{self, Coordinator, Topology, Workers};
use tensorwire::transfer::manifest::Plan;
use tensorwire::transfer::pool::Pool;
use tensorwire::transfer::worker::{Event, Input, Instance, Job, Output, Settings, Site};
use tensorwire::transfer::{RequestId, Role};

/// The roles, in the order of the pipeline.
pub(crate) const ROLES: [Role; 3] = [Role::Encoder, Role::Denoiser, Role::Decoder];

/// Bytes of each tensor that goes from role to role.
pub(crate) const TENSOR: usize = 4096;

/// A slot that the head node may give away unasked.
pub(crate) const SLOT: usize = 1 << 20;

/// What the client sends.
pub(crate) const WORK: &[u8] = b"a pickled request";

/// Time spent in a part.
#[derive(Clone, Copy, Default)]
pub(crate) struct Part {
    nanoseconds: f64,
    /// How often it was measured, as that takes time itself.
    measured: f64,
}

impl Part {
    fn add(&mut self, start: Option<Instant>) {
        if let Some(start) = start {
            self.nanoseconds += start.elapsed().as_nanos() as f64;
            self.measured += 1.0;
        }
    }

    /// In nanoseconds, without the `clock` of each measurement.
    pub(crate) fn spent(&self, clock: f64) -> f64 {
        self.nanoseconds - self.measured * clock
    }
}

/// Time spent in the parts: head node, workers, and what workers do of their own.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) head: Part,
    pub(crate) workers: Part,
    pub(crate) local: Part,
}

pub(crate) struct Cluster {
    head: Coordinator,
    workers: Vec<Instance>,
    pools: Vec<Pool>,
    manifest: Vec<u8>,
    tensor: Vec<u8>,
    now: Duration,
    count: u64,
    buffers: [Vec<u8>; 3],
    /// What went over the wire, if anybody wants to know.
    pub(crate) record: Option<Vec<Vec<Vec<u8>>>>,
    pub(crate) spent: Spent,
}

pub(crate) fn name(role: Role) -> String {
    format!("inproc://{role}")
}

pub(crate) fn head(endpoint: impl Fn(Role) -> String) -> Coordinator {
    let workers = |role| Workers::new([endpoint(role)], 4);
    let [encoder, denoiser, decoder] = ROLES.map(workers);
    let topology = Topology::new(encoder, denoiser, decoder);
    Coordinator::new(topology, coordinator::Settings::new()).unwrap()
}

impl Cluster {
    /// With so many preallocated slots for each receiver.
    pub(crate) fn new(preallocated: usize) -> Self {
        let settings = Settings::new().with_preallocated(preallocated, SLOT);
        let pools: Vec<_> = ROLES.iter().map(|_| Pool::new(16 << 20).unwrap()).collect();
        let workers = ROLES.iter().zip(&pools).map(|(&role, pool)| {
            let site = Site::new(role.name(), 1 << 40, pool.clone(), &name(role));
            Instance::new(role, site, settings).unwrap()
        });
        let tensor = vec![0; TENSOR];
        let view = [TensorView::from_slice("latents", &[TENSOR], &tensor).unwrap()];
        let plan = Plan::new(&view).unwrap();
        let mut manifest = vec![0; plan.encoded_len()];
        plan.encode_into(&mut manifest).unwrap();
        let mut cluster = Self {
            head: head(name),
            workers: workers.collect(),
            pools,
            manifest,
            tensor,
            now: Duration::ZERO,
            count: 0,
            buffers: [Vec::new(), Vec::new(), vec![0; 1024]],
            record: None,
            spent: Spent::default(),
        };
        for index in 0..ROLES.len() {
            cluster.take_from::<false>(index);
            assert!(cluster.head.poll_event().is_some());
        }
        cluster
    }

    /// Leads one request through all roles. With `MEASURE` the parts are timed.
    pub(crate) fn request<const MEASURE: bool>(&mut self) {
        self.count += 1;
        self.now += Duration::from_micros(100);
        let id = RequestId::from(format!("request-{:06}", self.count).as_str());
        let start = begin::<MEASURE>();
        self.head
            .handle_request(&id, WORK.to_vec(), self.now)
            .unwrap();
        self.spent.head.add(start);
        loop {
            let start = begin::<MEASURE>();
            let [buffer, ..] = &mut self.buffers;
            let Some(outgoing) = self.head.poll_transmit(buffer) else {
                break;
            };
            let frames = outgoing.frames();
            let index = ROLES
                .iter()
                .position(|role| *role == outgoing.role())
                .unwrap();
            note(&mut self.record, &frames);
            self.spent.head.add(start);
            let start = begin::<MEASURE>();
            let input = self.workers[index]
                .handle_frames(&frames, self.now)
                .unwrap();
            let job = match input {
                Input::Work { job, .. } => Some(job),
                _ => None,
            };
            self.spent.workers.add(start);
            if let Some(job) = job {
                self.stage::<MEASURE>(index, &job);
            }
            self.work::<MEASURE>(index);
        }
        let event = self.head.poll_event();
        assert!(
            matches!(event, Some(coordinator::Event::Finished { .. })),
            "{event:?}"
        );
    }

    /// Does what a worker has to do, and passes on what it has to say.
    fn work<const MEASURE: bool>(&mut self, index: usize) {
        self.take_from::<MEASURE>(index);
        let start = begin::<MEASURE>();
        let worker = &mut self.workers[index];
        let (event, order) = (worker.poll_event(), worker.poll_push());
        if let Some(order) = order {
            let len = order.len as u64;
            worker.handle_pushed(&order.job, order.slot, Ok::<_, &str>(len), self.now);
            let over = worker.poll_event();
            assert!(matches!(over, Some(Event::Over { .. })), "{over:?}");
        }
        self.spent.workers.add(start);
        match event {
            Some(Event::Ready(received)) => {
                let job = received.job().clone();
                drop(received);
                if ROLES[index].is_last() {
                    self.finish::<MEASURE>(index, &job);
                } else {
                    self.stage::<MEASURE>(index, &job);
                }
            }
            Some(event) => panic!("{event:?}"),
            None => {}
        }
        self.take_from::<MEASURE>(index);
    }

    /// Passes on what a worker has to say.
    fn take_from<const MEASURE: bool>(&mut self, index: usize) {
        loop {
            let start = begin::<MEASURE>();
            let [_, buffer, _] = &mut self.buffers;
            let outgoing = self.workers[index].poll_transmit(buffer);
            self.spent.workers.add(start);
            let Some(outgoing) = outgoing else {
                return;
            };
            let [_, buffer, _] = &self.buffers;
            let frames = outgoing.frames(buffer);
            note(&mut self.record, &frames);
            let start = begin::<MEASURE>();
            self.head
                .handle_frames(ROLES[index], &frames, self.now)
                .unwrap();
            self.spent.head.add(start);
        }
    }

    /// The worker has an output.
    fn stage<const MEASURE: bool>(&mut self, index: usize, job: &Job) {
        let start = begin::<MEASURE>();
        let slot = self.pools[index].allocate(TENSOR).unwrap();
        let manifest = Value::parse(&self.manifest).unwrap().as_object().unwrap();
        let output = Output::new(slot, TENSOR, manifest).unwrap();
        self.spent.local.add(start);
        let start = begin::<MEASURE>();
        let scalars = [("seed", Scalar::from(7)), ("steps", Scalar::from(50))];
        let worker = &mut self.workers[index];
        worker.stage(job, output, &scalars, self.now).unwrap();
        self.spent.workers.add(start);
    }

    /// The last worker has the result.
    fn finish<const MEASURE: bool>(&mut self, index: usize, job: &Job) {
        let start = begin::<MEASURE>();
        self.workers[index].finish(job, self.now).unwrap();
        self.spent.workers.add(start);
        let start = begin::<MEASURE>();
        let [.., buffer] = &mut self.buffers;
        let view = [TensorView::from_slice("output", &[TENSOR], &self.tensor).unwrap()];
        let id = job.request().to_string();
        let scalars = [("request_id", Scalar::from(id.as_str()))];
        let frames = [
            &*encode_into(&view, &scalars, buffer).unwrap(),
            &self.tensor,
        ];
        note(&mut self.record, &frames);
        self.spent.local.add(start);
        let start = begin::<MEASURE>();
        self.head
            .handle_frames(ROLES[index], &frames, self.now)
            .unwrap();
        self.spent.head.add(start);
    }
}

fn begin<const MEASURE: bool>() -> Option<Instant> {
    MEASURE.then(Instant::now)
}

fn note(record: &mut Option<Vec<Vec<Vec<u8>>>>, frames: &[&[u8]]) {
    if let Some(record) = record {
        record.push(frames.iter().map(|frame| frame.to_vec()).collect());
    }
}
