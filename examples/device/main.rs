//! A service that computes on a device, whichever there is.
//!
//! ```text
//!  client (PAIR) ---tcp---> PAIR --> decode --> upload --> compute --> download --+
//!                  <------- PAIR <-- frames sent from where the download left them --+
//! ```
//!
//! ```sh
//! cargo run --release --features zmq --example device                           # in the host's memory
//! cargo run --release --features zmq,cuda --example device -- --device cuda     # on the first CUDA device
//! ```
//!
//! `Service` is written against the trait `Device` and is the same on both. It brings a client of its own, which
//! compares each payload of each answer, sends one bad message, and ends when all is answered. What it prints
//! are medians of the service's steps for each kind of message.

use std::env;
use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::Decoder;
use tensorwire::device::{
    Device, DeviceError, DeviceTensor as _, Download as _, ErrorKind, Tensors, host,
};
use tensorwire::message::{NO_TENSORS, Scalar, encode_to_vec};
use tensorwire::transport::zmq::{self, Context, Pair, Socket};
use tensorwire::transport::{Frames as _, Part, RecvFrames as _, SendFrames as _, Wait};

mod client;
#[path = "../common/percentile.rs"]
mod percentile;

use client::{Client, KINDS};
use percentile::percentile;

type Failure = Box<dyn Error + Send + Sync>;

const USAGE: &str = "usage: device [--device host|cuda] [--requests N]";

/// The key by which sglang's peers tell of an error.
const ERROR: &str = "_disagg_error";

/// How long a request waits for room on the way to the device.
const ROOM: Wait = Wait::UpTo(Duration::from_secs(10));

fn main() -> ExitCode {
    let (mut device, mut requests) = ("host".to_owned(), 20);
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--help", _) => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            ("--device", Some(name)) if ["host", "cuda"].contains(&name.as_str()) => device = name,
            ("--requests", Some(number)) if number.parse().is_ok_and(|number: i64| number > 0) => {
                requests = number.parse().unwrap_or(requests);
            }
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let done = match device.as_str() {
        "cuda" => on_cuda(requests),
        _ => on_host(requests),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("device: {error}");
            ExitCode::FAILURE
        }
    }
}

fn on_host(requests: i64) -> Result<(), Failure> {
    println!("on the host, in memory of its own");
    run(host::Host::new(), host::Stream, requests)
}

#[cfg(feature = "cuda")]
fn on_cuda(requests: i64) -> Result<(), Failure> {
    use tensorwire::cuda::{self, Cuda};

    let found = cuda::availability(0).map_err(|why| format!("no CUDA device: {why}"))?;
    println!(
        "on {}, {} MiB; nothing is computed there",
        found.name,
        found.memory_bytes >> 20
    );
    let device = Cuda::open(0, cuda::Options::new())?;
    let stream = device.context().new_stream()?;
    run(device, stream, requests)
}

#[cfg(not(feature = "cuda"))]
fn on_cuda(_: i64) -> Result<(), Failure> {
    Err("this was built without CUDA: add --features cuda".into())
}

/// What is done with the tensors on the device: all of the service that knows which device it is.
trait Compute: Device {
    /// What each `float32` element is multiplied by.
    const FACTOR: f32;

    /// Multiplies; `None` for a tensor that goes back as it is.
    fn compute(
        &self,
        tensor: &Self::Tensor,
        stream: &Self::Stream,
    ) -> Result<Option<Self::Tensor>, Self::Error>;
}

impl Compute for host::Host {
    const FACTOR: f32 = 2.0;

    fn compute(
        &self,
        tensor: &host::Tensor,
        _: &host::Stream,
    ) -> Result<Option<host::Tensor>, host::HostError> {
        let Ok(elements) = tensor.view::<f32>() else {
            return Ok(None);
        };
        let scaled = elements.iter().map(|element| element * Self::FACTOR);
        self.collect(&tensor.info().descriptor(), scaled).map(Some)
    }
}

/// Kernels are the user's business; here the tensors go to the device and come back.
#[cfg(feature = "cuda")]
impl Compute for tensorwire::cuda::Cuda {
    const FACTOR: f32 = 1.0;

    fn compute(
        &self,
        _: &Self::Tensor,
        _: &Self::Stream,
    ) -> Result<Option<Self::Tensor>, Self::Error> {
        Ok(None)
    }
}

fn run<D: Compute>(device: D, stream: D::Stream, requests: i64) -> Result<(), Failure> {
    let context = Context::new();
    let socket = context.pair().bind("tcp://127.0.0.1:*")?;
    let peer = context.pair().connect(socket.endpoint())?;
    let client = thread::spawn(move || Client::new(peer).run(requests));
    let mut service = Service {
        device,
        stream,
        socket,
        decoder: Decoder::new(),
        costs: Vec::new(),
    };
    let served = service.run();
    let client = client.join().map_err(|_| "the client panicked")?;
    let round_trips = client?;
    served?;
    service.report(&round_trips);
    Ok(())
}

struct Service<D: Device> {
    device: D,
    stream: D::Stream,
    socket: Socket<Pair>,
    decoder: Decoder,
    /// (kind of message, what it cost)
    costs: Vec<(String, Cost)>,
}

/// What one message cost the service.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    tensors: usize,
    bytes: usize,
    /// Bytes that lay in their frames where their elements could not be seen.
    misaligned: usize,
    decode: Duration,
    /// Until the frames were free.
    upload: Duration,
    compute: Duration,
    /// Until all bytes were back.
    download: Duration,
    send: Duration,
}

impl<D: Compute> Service<D> {
    /// Answers message after message, until one says that it is the last.
    fn run(&mut self) -> Result<(), Failure> {
        let mut request = zmq::Message::default();
        loop {
            self.socket.recv_into(&mut request)?;
            let mut cost = Cost::default();
            let (kind, mut parts) = match self.answer(&request, &mut cost) {
                Ok(Some((kind, parts))) => (Some(kind), parts),
                Ok(None) => return Ok(()),
                Err(Refused { error, fatal: true }) => return Err(error),
                Err(Refused { error, .. }) => {
                    let text = error.to_string();
                    let scalars = [(ERROR, Scalar::from(text.as_str()))];
                    (None, vec![encode_to_vec(NO_TENSORS, &scalars)?.into()])
                }
            };
            let start = Instant::now();
            self.socket.send_parts(&mut parts, Wait::Configured)?;
            cost.send = start.elapsed();
            self.costs.extend(kind.map(|kind| (kind, cost)));
        }
    }

    /// The kind of the message and the answer to it; `None` after the last.
    #[allow(clippy::type_complexity)]
    fn answer(
        &mut self,
        request: &zmq::Message,
        cost: &mut Cost,
    ) -> Result<Option<(String, Vec<Part<'static>>)>, Refused> {
        let start = Instant::now();
        let message = self.decoder.decode(request.frames())?;
        cost.decode = start.elapsed();
        if message.scalars().get("last").is_some() {
            return Ok(None);
        }
        let kind = message.scalars().field("kind")?.as_str()?.to_string();
        cost.tensors = message.len();
        cost.bytes = message.cost().payload_bytes();
        cost.misaligned = message.cost().misaligned_bytes();

        let start = Instant::now();
        let refused = Refused::by_device::<D::Error>;
        let tensors = self.device.upload_message(&message, &self.stream, ROOM);
        let tensors = tensors.map_err(refused)?;
        cost.upload = start.elapsed();

        let start = Instant::now();
        let computed = self.compute(&tensors).map_err(refused)?;
        cost.compute = start.elapsed();

        let start = Instant::now();
        let results = tensors.iter().zip(&computed);
        let results = results.map(|(tensor, computed)| computed.as_ref().unwrap_or(tensor));
        let results: Vec<_> = results.collect();
        let download = self.device.download(&results, &self.stream, ROOM);
        let downloaded = download.map_err(refused)?.finish(ROOM);
        let downloaded = downloaded.map_err(|(_, error)| refused(error))?;
        cost.download = start.elapsed();

        let factor = [("factor", Scalar::from(f64::from(D::FACTOR)))];
        Ok(Some((kind, downloaded.into_parts(&factor)?)))
    }

    fn compute(&self, tensors: &Tensors<D::Tensor>) -> Result<Vec<Option<D::Tensor>>, D::Error> {
        let computed = tensors
            .iter()
            .map(|tensor| self.device.compute(tensor, &self.stream));
        computed.collect()
    }

    fn report(&self, round_trips: &[(&str, Duration)]) {
        println!("medians; misaligned are bytes whose elements could not be seen in their frame");
        println!(
            "{:<8} {:>7} {:>9} {:>10} {:>8} {:>9} {:>9} {:>9} {:>9} {:>10}",
            "message",
            "tensors",
            "bytes",
            "misaligned",
            "decode",
            "upload",
            "compute",
            "download",
            "send",
            "round trip"
        );
        for kind in KINDS {
            let costs = self.costs.iter().filter(|(of, _)| of == kind.name);
            let costs: Vec<_> = costs.map(|(_, cost)| *cost).collect();
            let Some(cost) = costs.first() else { continue };
            let step = |step: fn(&Cost) -> Duration| median(costs.iter().map(step));
            let trips = round_trips.iter().filter(|(of, _)| *of == kind.name);
            println!(
                "{:<8} {:>7} {:>9} {:>10} {:>8} {:>9} {:>9} {:>9} {:>9} {:>10}",
                kind.name,
                cost.tensors,
                cost.bytes,
                cost.misaligned,
                step(|cost| cost.decode),
                step(|cost| cost.upload),
                step(|cost| cost.compute),
                step(|cost| cost.download),
                step(|cost| cost.send),
                median(trips.map(|&(_, time)| time)),
            );
        }
        println!("every payload came back as it had to");
    }
}

/// Why a request gets no tensors for an answer.
struct Refused {
    error: Failure,
    /// Whether the service can go on.
    fatal: bool,
}

impl Refused {
    fn by_device<E: DeviceError>(error: E) -> Self {
        let fatal = error.kind() == ErrorKind::Unusable;
        let error = error.into();
        Self { error, fatal }
    }
}

/// A request's own fault: the next one may be right.
impl<E: Into<Failure>> From<E> for Refused {
    fn from(error: E) -> Self {
        let error = error.into();
        let fatal = false;
        Self { error, fatal }
    }
}

/// A time as it is printed.
struct Shown(Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1?}", self.0))
    }
}

fn median(times: impl Iterator<Item = Duration>) -> Shown {
    let nanoseconds: Vec<_> = times
        .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        .collect();
    Shown(Duration::from_nanos(percentile(&nanoseconds, 50)))
}
