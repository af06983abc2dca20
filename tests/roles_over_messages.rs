//! A whole pipeline whose tensors move over ZeroMQ: what workers on different hosts do.
//!
//! The head node and its workers take turns on one thread; the control messages are handed over, and the tensors go over
//! tcp from one worker's plane to the next one's inlet.
#![cfg(feature = "zmq")]

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use tensorwire::message::{NO_SCALARS, encode_to_vec};
use tensorwire::plane::messages::{Dealers, Inlet, Plane, session_id};
use tensorwire::plane::{DataPlane, PushId, Region, RegionOptions};
use tensorwire::transfer::coordinator::{Coordinator, Event, Settings, Topology, Workers};
use tensorwire::transfer::manifest::Storage;
use tensorwire::transfer::worker::{self, Input, Instance, Job, Site};
use tensorwire::transfer::{RequestId, Role};
use tensorwire::transport::zmq::{Context, Router, Socket};
use tensorwire::{Decoder, Options, Scalar, TensorView};

const ROLES: [Role; 3] = [Role::Encoder, Role::Denoiser, Role::Decoder];
const ELEMENTS: usize = 100_000;
const PATIENCE: Duration = Duration::from_secs(60);

struct Worker {
    instance: Instance,
    plane: Plane<Dealers>,
    inlet: Inlet<Socket<Router>>,
    region: Region,
    pushes: HashMap<PushId, Job>,
}

impl Worker {
    fn new(context: &Context, role: Role, preallocated: usize) -> Self {
        let router = context.router().bind("tcp://127.0.0.1:*").unwrap();
        let session = session_id(router.endpoint());
        let mut plane = Plane::new(session.clone(), Dealers::new(context));
        let region = plane.register(RegionOptions::new(4 << 20)).unwrap();
        let site = Site::new(
            &session,
            region.base(),
            region.pool().clone(),
            endpoint(role),
        );
        let settings = worker::Settings::new().with_preallocated(preallocated, 1 << 20);
        Self {
            instance: Instance::new(role, site, settings).unwrap(),
            inlet: plane.inlet(router),
            plane,
            region,
            pushes: HashMap::new(),
        }
    }

    /// Works at once, and says what there is to say.
    fn turn(&mut self, now: Duration, mut send: impl FnMut(Vec<Vec<u8>>)) {
        while let Some(written) = self.inlet.poll() {
            written.unwrap();
        }
        while let Some(worker::Event::Ready(received)) = self.instance.poll_event() {
            self.work(received, now, &mut send);
        }
        while let Some(order) = self.instance.poll_push() {
            let (job, transfer) = order.into_transfer();
            self.pushes
                .insert(self.plane.push(transfer).map_err(drop).unwrap(), job);
        }
        while let Some(completion) = self.plane.poll_completion() {
            let job = self.pushes.remove(&completion.id()).unwrap();
            let (slot, result) = completion.into_parts();
            assert!(result.is_ok(), "{result:?}");
            self.instance.handle_pushed(&job, slot, result, now);
        }
        let mut buffer = Vec::new();
        while let Some(outgoing) = self.instance.poll_transmit(&mut buffer) {
            let frames = outgoing.frames(&buffer);
            send(frames.iter().map(|frame| frame.to_vec()).collect());
        }
    }

    fn work(
        &mut self,
        received: worker::Received,
        now: Duration,
        send: &mut impl FnMut(Vec<Vec<u8>>),
    ) {
        let mut storage = Storage::<4>::new();
        let loaded = self.region.load(
            received.slot(),
            received.manifest(),
            &mut storage,
            &Options::new(),
        );
        let latents = loaded.unwrap().tensor("latents").unwrap();
        let doubled: Vec<f32> = latents
            .elements::<f32>()
            .unwrap()
            .map(|x| 2.0 * x)
            .collect();
        let job = received.job().clone();
        drop(received);
        if self.instance.role().is_last() {
            self.instance.finish(&job, now).unwrap();
            let output = [TensorView::from_slice("output", &[ELEMENTS], &doubled).unwrap()];
            let scalars = [("request_id", Scalar::from(job.request().text()))];
            let metadata = encode_to_vec(&output, &scalars).unwrap();
            send(vec![metadata, output[0].bytes().to_vec()]);
        } else {
            self.stage(&job, &doubled, now);
        }
    }

    fn stage(&mut self, job: &Job, latents: &[f32], now: Duration) {
        let tensors = [TensorView::from_slice("latents", &[ELEMENTS], latents).unwrap()];
        let stored = self.region.store(&tensors).unwrap();
        let staged = self.instance.stage(job, stored, &NO_SCALARS, now);
        staged.map_err(|(_, error)| error).unwrap();
    }
}

fn endpoint(role: Role) -> &'static str {
    role.name()
}

/// What goes in for a request, by its number.
fn latents(request: usize) -> Vec<f32> {
    (0..ELEMENTS)
        .map(|i| ((request + i) % 251) as f32)
        .collect()
}

/// Slots are asked for, or preallocated ones; either way what goes in comes out four times as large.
fn run(preallocated: usize) {
    const REQUESTS: usize = 12;
    let context = Context::new();
    let mut workers = ROLES.map(|role| {
        let slots = if role.is_first() { 0 } else { preallocated };
        Worker::new(&context, role, slots)
    });
    let one = |role| Workers::new([endpoint(role)], 2);
    let [encoder, denoiser, decoder] = ROLES.map(one);
    let topology = Topology::new(encoder, denoiser, decoder);
    let mut head = Coordinator::new(topology, Settings::new()).unwrap();

    let start = Instant::now();
    let mut results: VecDeque<(Role, Vec<Vec<u8>>)> = VecDeque::new();
    for worker in &mut workers {
        let role = worker.instance.role();
        worker.turn(Duration::ZERO, |frames| results.push_back((role, frames)));
    }
    for request in 0..REQUESTS {
        let id = RequestId::from(request.to_string().as_str());
        head.handle_request(&id, request.to_string().into_bytes(), Duration::ZERO)
            .unwrap();
    }
    let (mut finished, mut buffer, mut decoder) = (0, Vec::new(), Decoder::new());
    while finished < REQUESTS {
        let now = start.elapsed();
        assert!(now < PATIENCE, "{finished} of {REQUESTS}: {head:#?}");
        for (role, frames) in results.drain(..) {
            head.handle_frames(role, &frames, now).unwrap();
            while let Some(event) = head.poll_event() {
                match event {
                    Event::Finished { request } => {
                        let number: usize = request.text().raw().parse().unwrap();
                        let message = decoder.decode(&frames).unwrap();
                        let output = message.tensor("output").unwrap();
                        let expected = latents(number).into_iter().map(|x| 4.0 * x);
                        assert!(output.elements::<f32>().unwrap().eq(expected));
                        finished += 1;
                    }
                    Event::Registered { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        while let Some(outgoing) = head.poll_transmit(&mut buffer) {
            let role = outgoing.role();
            let worker = workers.iter_mut().find(|to| to.instance.role() == role);
            let worker = worker.unwrap();
            let frames = outgoing.frames();
            let input = worker.instance.handle_frames(&frames, now);
            if let Input::Work { job, payload } = input.unwrap() {
                let number = std::str::from_utf8(payload).unwrap().parse().unwrap();
                worker.stage(&job, &latents(number), now);
            }
        }
        for worker in &mut workers {
            let role = worker.instance.role();
            worker.turn(now, |frames| results.push_back((role, frames)));
        }
    }
    let paths = [Role::Denoiser, Role::Decoder].map(|role| {
        let statistics = head.role_statistics(role).unwrap();
        (statistics.fast_path, statistics.slow_path)
    });
    match preallocated {
        0 => assert_eq!(paths, [(0, REQUESTS as u64); 2]),
        _ => assert!(paths.iter().all(|&(fast, _)| fast > 0), "{paths:?}"),
    }
    // All is back but what is preallocated.
    for worker in &workers {
        let slots = if worker.instance.role().is_first() {
            0
        } else {
            preallocated
        };
        let pool = worker.region.pool();
        pool.reclaim();
        assert_eq!(pool.stats().allocated_bytes(), slots << 20);
        assert!(worker.instance.is_empty());
    }
}

#[test]
fn requests_pass_a_pipeline_whose_slots_are_asked_for() {
    run(0);
}

#[test]
fn requests_pass_a_pipeline_with_preallocated_slots() {
    run(2);
}
