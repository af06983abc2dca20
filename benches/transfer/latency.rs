//! A request from end to end: head node, encoder, denoiser and decoder, over sockets and shared memory.
//!
//! One request at a time, so that each message waits for the one before: as many hops
//! one after the other as there are messages. Beside it the same number of hops between the
//! same threads over bare libzmq, of two frames each way, with nothing done at either end.

use std::process::{Child, Command};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tensorwire::transfer::RequestId;
use tensorwire::transfer::coordinator::{Coordinator, Event};
use tensorwire::transport::zmq::{Context, Message, Pull, Push, Socket};
use tensorwire::transport::{Frames, RecvFrames, SendFrames, Wait};

use super::cluster::{self, ROLES, WORK};
use super::common::compare::show;
use super::common::folder::Folder;
use super::worker::{self, BARE, BARE_LEN, Endpoints, KINDS, STOP, TELL, WORKER};
use super::{quantile, ratios};

/// How often all connect anew, as a connection is fast or slow by luck and stays so.
const CONNECTIONS: usize = 4;

/// How long one set of connections is used, and how many requests a turn has.
const BUDGET: Duration = Duration::from_millis(2000);
const TURN: usize = 20;

/// Requests before those that count.
const WARM_UP: usize = 50;

/// What the head node sends and to which worker, and what it gets for it.
const FAST: &[(usize, usize, &str)] = &[
    (0, 0, "encoder: work > staged"),
    (0, 2, "encoder: push > pushed"),
    (1, 3, "denoiser: ready > done, staged"),
    (1, 2, "denoiser: push > pushed"),
    (2, 3, "decoder: ready > result"),
];
const SLOW: &[(usize, usize, &str)] = &[
    (0, 0, "encoder: work > staged"),
    (1, 1, "denoiser: alloc > allocated"),
    (0, 2, "encoder: push > pushed"),
    (1, 3, "denoiser: ready > done, staged"),
    (2, 1, "decoder: alloc > allocated"),
    (1, 2, "denoiser: push > pushed"),
    (2, 3, "decoder: ready > result"),
];

pub(crate) fn run() {
    println!(
        "a request through head node, encoder, denoiser and decoder; a tensor of 4 KiB each time"
    );
    for scheme in ["ipc", "inproc"] {
        for (name, preallocated, steps) in [("fast path", 2, FAST), ("slow path", 0, SLOW)] {
            let mut times = Times::new(steps.len());
            for _ in 0..CONNECTIONS {
                let mut head = Head::start(scheme, preallocated);
                head.measure(steps, &mut times);
                head.finish();
            }
            times.print(&format!("{scheme}, {name}"), steps);
        }
    }
}

/// In nanoseconds.
struct Times {
    requests: Vec<f64>,
    /// The median of each turn: requests, bare hops, and bare hops awaited on three sockets.
    turns: [Vec<f64>; 3],
    /// By step: from when a message was ready to when its answer was there.
    away: Vec<Vec<f64>>,
    /// By step: in the head node, until its message was ready.
    head: Vec<Vec<f64>>,
    /// In the head node, after the last message.
    end: Vec<f64>,
    /// By worker and kind of message: from when it came until the answer was ready.
    workers: [[Vec<f64>; KINDS.len()]; 3],
}

impl Times {
    fn new(steps: usize) -> Self {
        Self {
            requests: Vec::new(),
            turns: [const { Vec::new() }; 3],
            away: vec![Vec::new(); steps],
            head: vec![Vec::new(); steps],
            end: Vec::new(),
            workers: [const { [const { Vec::new() }; KINDS.len()] }; 3],
        }
    }

    fn print(&self, name: &str, steps: &[(usize, usize, &str)]) {
        let hops = steps.len() * 2;
        let [requests, bare, polled] = &self.turns;
        let [low, ratio, high] = ratios(requests, bare);
        let [_, of_polled, _] = ratios(requests, polled);
        println!(
            "  {name}: p50 {}, p99 {}",
            show(quantile(&self.requests, 0.5)),
            show(quantile(&self.requests, 0.99)),
        );
        println!(
            "  {name}: {hops} bare hops {}, the request {ratio:.2} ({low:.2} to {high:.2}) of that; with three sockets polled {}, {of_polled:.2} of that",
            show(quantile(bare, 0.5)),
            show(quantile(polled, 0.5)),
        );
        println!("| step | head node before it | until the answer | in the worker |");
        println!("|---|---:|---:|---:|");
        let (mut in_workers, mut in_head) = (0.0, quantile(&self.end, 0.5));
        for (index, &(worker, kind, step)) in steps.iter().enumerate() {
            let inside = quantile(&self.workers[worker][kind], 0.5);
            let head = quantile(&self.head[index], 0.5);
            let away = quantile(&self.away[index], 0.5);
            in_workers += inside;
            in_head += head;
            println!(
                "| {step} | {} | {} | {} |",
                show(head),
                show(away),
                show(inside)
            );
        }
        let request = quantile(&self.requests, 0.5);
        println!(
            "  {name}: in the head node {}, in workers {}, on the way {}",
            show(in_head),
            show(in_workers),
            show(request - in_head - in_workers)
        );
    }
}

enum Running {
    Process(Child),
    Thread(JoinHandle<()>),
}

struct Head {
    coordinator: Coordinator,
    start: Instant,
    results: Vec<Socket<Pull>>,
    work: Vec<Socket<Push>>,
    bare_results: Vec<zmq::Socket>,
    bare_work: Vec<zmq::Socket>,
    message: Message,
    buffer: Vec<u8>,
    workers: Vec<Running>,
    count: u64,
    _folder: Folder,
}

impl Head {
    fn start(scheme: &str, preallocated: usize) -> Self {
        let folder = Folder::new();
        let endpoint = |name: String| match scheme {
            "ipc" => format!("ipc://{}/{name}", folder.path().display()),
            _ => format!("inproc://{name}"),
        };
        let (context, bare) = (Context::new(), zmq::Context::new());
        let (mut results, mut bare_results, mut workers) = (Vec::new(), Vec::new(), Vec::new());
        let endpoints = ROLES.map(|role| Endpoints {
            work: endpoint(format!("{role}-work")),
            result: endpoint(format!("{role}-result")),
        });
        for (role, endpoints) in ROLES.into_iter().zip(endpoints.clone()) {
            results.push(context.pull().bind(&endpoints.result).unwrap());
            let socket = bare.socket(zmq::PULL).unwrap();
            socket.bind(&Endpoints::bare(&endpoints.result)).unwrap();
            bare_results.push(socket);
            workers.push(if scheme == "ipc" {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args([WORKER, role.name(), &endpoints.work, &endpoints.result]);
                Running::Process(command.arg(preallocated.to_string()).spawn().unwrap())
            } else {
                let (context, bare) = (context.clone(), bare.clone());
                Running::Thread(std::thread::spawn(move || {
                    worker::run(role, &endpoints, preallocated, &context, &bare);
                }))
            });
        }
        let of = |role| ROLES.iter().position(|of| *of == role).unwrap();
        let mut head = Self {
            coordinator: cluster::head(|role| endpoints[of(role)].work.clone()),
            start: Instant::now(),
            results,
            work: Vec::new(),
            bare_results,
            bare_work: Vec::new(),
            message: Message::default(),
            buffer: Vec::new(),
            workers,
            count: 0,
            _folder: folder,
        };
        // The workers are there when they have registered.
        for (index, role) in ROLES.into_iter().enumerate() {
            head.results[index].recv_into(&mut head.message).unwrap();
            let now = head.start.elapsed();
            let frames = head.message.frames();
            head.coordinator.handle_frames(role, frames, now).unwrap();
            let event = head.coordinator.poll_event();
            assert!(matches!(event, Some(Event::Registered { .. })), "{event:?}");
            head.work
                .push(context.push().connect(&endpoints[index].work).unwrap());
            let socket = bare.socket(zmq::PUSH).unwrap();
            socket
                .connect(&Endpoints::bare(&endpoints[index].work))
                .unwrap();
            head.bare_work.push(socket);
        }
        head
    }

    fn measure(&mut self, steps: &[(usize, usize, &str)], times: &mut Times) {
        let mut unused = Times::new(steps.len());
        for _ in 0..WARM_UP {
            self.request(steps, &mut unused);
        }
        self.bare(steps, false);
        self.told();
        let start = Instant::now();
        while start.elapsed() < BUDGET {
            let from = times.requests.len();
            for _ in 0..TURN {
                self.request(steps, times);
            }
            times.turns[0].push(quantile(&times.requests[from..], 0.5));
            times.turns[1].push(self.bare(steps, false));
            times.turns[2].push(self.bare(steps, true));
        }
        for (all, of_one) in times.workers.iter_mut().zip(self.told()) {
            for (all, of_one) in all.iter_mut().zip(of_one) {
                all.extend(of_one);
            }
        }
    }

    /// One request. `steps` are what is to happen.
    fn request(&mut self, steps: &[(usize, usize, &str)], times: &mut Times) {
        self.count += 1;
        let id = RequestId::from(format!("request-{:06}", self.count).as_str());
        let work = WORK.to_vec();
        let start = Instant::now();
        let mut last = start;
        let now = self.start.elapsed();
        self.coordinator.handle_request(&id, work, now).unwrap();
        for (index, &(to, ..)) in steps.iter().enumerate() {
            let sent = self.transmit(to);
            let from = self.wait();
            self.results[from]
                .recv_frames(&mut self.message, Wait::Never)
                .unwrap();
            let came = Instant::now();
            assert_eq!(from, to);
            times.head[index].push((sent - last).as_nanos() as f64);
            times.away[index].push((came - sent).as_nanos() as f64);
            last = came;
            let now = self.start.elapsed();
            let frames = self.message.frames();
            self.coordinator
                .handle_frames(ROLES[from], frames, now)
                .unwrap();
        }
        let event = self.coordinator.poll_event();
        assert!(matches!(event, Some(Event::Finished { .. })), "{event:?}");
        let end = Instant::now();
        times.end.push((end - last).as_nanos() as f64);
        times.requests.push((end - start).as_nanos() as f64);
    }

    /// Sends what the coordinator has to send: one message, to this worker. Returns when
    /// it was ready: sending wakes the other, which may run before it returns.
    fn transmit(&mut self, to: usize) -> Instant {
        let (mut count, mut ready) = (0, Instant::now());
        while let Some(outgoing) = self.coordinator.poll_transmit(&mut self.buffer) {
            assert_eq!(outgoing.role(), ROLES[to]);
            ready = Instant::now();
            self.work[to].send(&outgoing.frames()).unwrap();
            count += 1;
        }
        assert_eq!(count, 1);
        ready
    }

    /// Waits for a message of any role.
    fn wait(&self) -> usize {
        let items = self
            .results
            .iter()
            .map(|socket| socket.poll_item(zmq::POLLIN));
        poll(items.collect())
    }

    /// As many bare hops as a request has, `TURN` times: the median in nanoseconds.
    fn bare(&mut self, steps: &[(usize, usize, &str)], polled: bool) -> f64 {
        for (worker, socket) in self.work.iter_mut().enumerate() {
            let hops = steps.iter().filter(|(of, ..)| *of == worker).count();
            // One more, which wakes it.
            let count = hops * TURN + 1;
            socket.send(&[BARE, count.to_string().as_bytes()]).unwrap();
        }
        let mut frames = [vec![0; 12], vec![0; BARE_LEN]];
        for (work, results) in self.bare_work.iter().zip(&self.bare_results) {
            worker::send_bare(work, &frames);
            worker::receive_bare(results, &mut frames);
        }
        let mut samples = Vec::with_capacity(TURN);
        for _ in 0..TURN {
            let start = Instant::now();
            for &(worker, ..) in steps {
                worker::send_bare(&self.bare_work[worker], &frames);
                if polled {
                    let sockets = self.bare_results.iter();
                    let items = sockets.map(|socket| socket.as_poll_item(zmq::POLLIN));
                    assert_eq!(poll(items.collect()), worker);
                }
                worker::receive_bare(&self.bare_results[worker], &mut frames);
            }
            samples.push(start.elapsed().as_nanos() as f64);
        }
        quantile(&samples, 0.5)
    }

    /// By worker and kind of message: how long each step took since this was asked.
    fn told(&mut self) -> Vec<[Vec<f64>; KINDS.len()]> {
        let sockets = self.work.iter_mut().zip(&mut self.results);
        let tell = |(work, results): (&mut Socket<Push>, &mut Socket<Pull>)| {
            work.send(&[TELL]).unwrap();
            let message = results.recv().unwrap();
            let text = str::from_utf8(message.frames()[1].as_ref()).unwrap();
            let mut lines = text.lines();
            KINDS.map(|_| {
                let times = lines.next().unwrap().split_whitespace();
                times.map(|time| time.parse().unwrap()).collect()
            })
        };
        sockets.map(tell).collect()
    }

    fn finish(mut self) {
        for socket in &mut self.work {
            socket.send(&[STOP]).unwrap();
        }
        for worker in self.workers {
            match worker {
                Running::Process(mut process) => assert!(process.wait().unwrap().success()),
                Running::Thread(thread) => thread.join().unwrap(),
            }
        }
    }
}

/// Waits until one of the sockets has a message.
fn poll(mut items: Vec<zmq::PollItem<'_>>) -> usize {
    assert!(zmq::poll(&mut items, 30_000).unwrap() > 0, "nothing came");
    items.iter().position(zmq::PollItem::is_readable).unwrap()
}
