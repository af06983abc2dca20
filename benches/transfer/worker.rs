//! A worker with sockets and shared memory around its machine, and next to no work: what it does is the protocol.

use std::fmt::Write as _;
use std::str;
use std::time::{Duration, Instant};

use tensorwire::TensorView;
use tensorwire::message::{Scalar, encode_into};
use tensorwire::plane::{DataPlane, Region, RegionOptions, Transfer, shared};
use tensorwire::transfer::manifest::Decoder;
use tensorwire::transfer::worker::{
    Event, Input, Instance, Job, Output, PushOrder, Received, Settings, Site,
};
use tensorwire::transfer::{Control, Role};
use tensorwire::transport::zmq::{Context, Message, Pull, Push, Socket};
use tensorwire::transport::{Frames, RecvFrames, SendFrames};

use super::cluster::{SLOT, TENSOR};

/// The argument that makes this program a worker.
pub(crate) const WORKER: &str = "worker";

/// First frames that are no part of the protocol: bounce so many messages over the bare sockets,
/// tell what the steps took, end.
pub(crate) const BARE: &[u8] = b"bare";
pub(crate) const TELL: &[u8] = b"tell";
pub(crate) const STOP: &[u8] = b"stop";

/// Bytes of the second frame of a bare message: about those of a control message.
pub(crate) const BARE_LEN: usize = 256;

/// The kinds of messages that a worker gets.
pub(crate) const KINDS: [&str; 4] = ["work", "alloc", "push", "ready"];

/// Where one worker takes work and sends results, over the transport and over bare sockets.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    pub(crate) work: String,
    pub(crate) result: String,
}

impl Endpoints {
    pub(crate) fn bare(endpoint: &str) -> String {
        format!("{endpoint}-bare")
    }
}

struct Worker {
    role: Role,
    instance: Instance,
    plane: shared::Plane,
    region: Region,
    results: Socket<Push>,
    decoder: Decoder,
    buffer: Vec<u8>,
    message: Vec<u8>,
    start: Instant,
    /// When the last message was ready to be sent.
    ready: Instant,
}

/// A process: role, work endpoint, result endpoint, preallocated slots.
pub(crate) fn process(arguments: &[String]) {
    let [role, work, result, preallocated] = arguments else {
        panic!("four arguments");
    };
    let role = Role::from_name(role).unwrap();
    let (work, result) = (work.clone(), result.clone());
    let preallocated = preallocated.parse().unwrap();
    let bare = zmq::Context::new();
    run(
        role,
        &Endpoints { work, result },
        preallocated,
        &Context::new(),
        &bare,
    );
}

/// Runs a worker until it is told to stop.
pub(crate) fn run(
    role: Role,
    endpoints: &Endpoints,
    preallocated: usize,
    context: &Context,
    bare_context: &zmq::Context,
) {
    let Endpoints { work, result } = endpoints;
    let inbox = context.pull().recv_timeout(None).bind(work).unwrap();
    let results = context.push().connect(result).unwrap();
    let bare_inbox = bare_context.socket(zmq::PULL).unwrap();
    bare_inbox.bind(&Endpoints::bare(work)).unwrap();
    let bare_results = bare_context.socket(zmq::PUSH).unwrap();
    bare_results.connect(&Endpoints::bare(result)).unwrap();

    let mut plane = shared::Builder::new().with_prefault(true).build().unwrap();
    let region = plane.register(RegionOptions::new(16 << 20)).unwrap();
    let site = Site::new(
        plane.session_id(),
        region.base(),
        region.pool().clone(),
        work,
    );
    let settings = Settings::new().with_preallocated(preallocated, SLOT);
    let mut worker = Worker {
        role,
        instance: Instance::new(role, site, settings).unwrap(),
        plane,
        region,
        results,
        decoder: Decoder::new(),
        buffer: Vec::new(),
        message: vec![0; 1024],
        start: Instant::now(),
        ready: Instant::now(),
    };
    worker.serve(inbox, [&bare_inbox, &bare_results]);
}

impl Worker {
    fn serve(&mut self, mut inbox: Socket<Pull>, bare: [&zmq::Socket; 2]) {
        let mut message = Message::default();
        let mut steps = KINDS.map(|_| Vec::new());
        self.transmit();
        loop {
            inbox.recv_into(&mut message).unwrap();
            let came = Instant::now();
            let frames = message.frames();
            match frames[0].as_ref() {
                BARE => bounce(
                    bare,
                    str::from_utf8(frames[1].as_ref()).unwrap().parse().unwrap(),
                ),
                TELL => {
                    let mut text = String::new();
                    for step in &mut steps {
                        for took in step.drain(..) {
                            write!(text, "{took} ").unwrap();
                        }
                        text.push('\n');
                    }
                    self.results.send(&[TELL, text.as_bytes()]).unwrap();
                }
                STOP => return,
                _ => {
                    let kind = kind(&message);
                    self.handle(&message);
                    steps[kind].push((self.ready - came).as_nanos());
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn handle(&mut self, message: &Message) {
        let now = self.now();
        let input = self.instance.handle_frames(message.frames(), now).unwrap();
        if let Input::Work { job, .. } = input {
            let tensor = [0.5_f32; TENSOR / 4];
            self.stage(&job, &tensor);
        }
        while let Some(event) = self.instance.poll_event() {
            if let Event::Ready(received) = event {
                self.work(received);
            }
        }
        while let Some(order) = self.instance.poll_push() {
            self.push(order);
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        while let Some(outgoing) = self.instance.poll_transmit(&mut self.buffer) {
            self.ready = Instant::now();
            self.results.send(&outgoing.frames(&self.buffer)).unwrap();
        }
    }

    /// Reads what came, and answers.
    fn work(&mut self, received: Received) {
        let job = received.job().clone();
        let mut tensor = [0.0_f32; TENSOR / 4];
        {
            let slot = received.slot();
            let manifest = self
                .decoder
                .decode(received.manifest(), slot.len())
                .unwrap();
            let bytes = self.region.bytes(slot).unwrap();
            let tensors = manifest.attach(bytes).unwrap();
            tensors
                .tensor("latents")
                .unwrap()
                .copy_to_slice(&mut tensor)
                .unwrap();
        }
        drop(received);
        assert_eq!(tensor[TENSOR / 4 - 1], 0.5);
        if !self.role.is_last() {
            return self.stage(&job, &tensor);
        }
        self.instance.finish(&job, self.now()).unwrap();
        let view = [TensorView::from_slice("output", &[TENSOR / 4], &tensor).unwrap()];
        let id = job.request().to_string();
        let scalars = [("request_id", Scalar::from(id.as_str()))];
        let metadata = encode_into(&view, &scalars, &mut self.message).unwrap();
        self.ready = Instant::now();
        self.results.send(&[&*metadata, view[0].bytes()]).unwrap();
    }

    fn stage(&mut self, job: &Job, tensor: &[f32]) {
        let dims = [tensor.len()];
        let view = [TensorView::from_slice("latents", &dims, tensor).unwrap()];
        let (slot, used, manifest) = self.region.store(&view).unwrap().into_parts();
        let manifest = tensorwire::json::Value::parse(&manifest).unwrap();
        let output = Output::new(slot, used, manifest.as_object().unwrap()).unwrap();
        let scalars = [("seed", Scalar::from(7)), ("steps", Scalar::from(50))];
        let now = self.now();
        self.instance.stage(job, output, &scalars, now).unwrap();
    }

    fn push(&mut self, order: PushOrder) {
        let mut transfer = Transfer::new(order.slot, &*order.session_id);
        transfer.add_piece(0..order.len, order.address).unwrap();
        self.plane.push(transfer).unwrap();
        let completion = self.plane.poll_completion().unwrap();
        let (slot, result) = completion.into_parts();
        let now = self.now();
        self.instance.handle_pushed(&order.job, slot, result, now);
    }
}

/// Sends back so many messages as they came.
fn bounce([inbox, results]: [&zmq::Socket; 2], count: usize) {
    let mut frames = [const { Vec::new() }; 2];
    for _ in 0..count {
        receive_bare(inbox, &mut frames);
        send_bare(results, &frames);
    }
}

pub(crate) fn receive_bare(socket: &zmq::Socket, frames: &mut [Vec<u8>; 2]) {
    let mut message = zmq::Message::new();
    for frame in frames {
        socket.recv(&mut message, 0).unwrap();
        frame.clear();
        frame.extend_from_slice(&message);
    }
    assert!(!message.get_more());
}

pub(crate) fn send_bare(socket: &zmq::Socket, [first, second]: &[Vec<u8>; 2]) {
    socket.send(first.as_slice(), zmq::SNDMORE).unwrap();
    socket.send(second.as_slice(), 0).unwrap();
}

/// Which of [`KINDS`] a message is.
fn kind(message: &Message) -> usize {
    match Control::from_frames(message.frames()) {
        Err(_) => 0,
        Ok(Control::Alloc(_)) => 1,
        Ok(Control::Push(_)) => 2,
        Ok(Control::Ready(_)) => 3,
        Ok(other) => panic!("{other:?}"),
    }
}
