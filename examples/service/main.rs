//! A service on tokio: tensors come in from many clients and go back scaled.
//!
//! ```text
//!  clients (DEALER) ---tcp---> ROUTER --+
//!                                       +--> select! --> scale --> answer, by envelope
//!  batch jobs (PUSH) --tcp---> PULL ----+         ^
//!                                                 +--- ctrl-c, or all clients served
//! ```
//!
//! ```sh
//! cargo run --release --features tokio,zmq --example service
//! cargo run --release --features tokio,zmq --example service -- --listen tcp://127.0.0.1:7000
//! ```
//!
//! Without an argument it brings clients of its own and ends when they are served.
//! With `--listen` it serves until ctrl-c: then it takes no more, answers what it
//! has, says what it did, and lets the answers leave.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures_core::Stream;
use tensorwire::message::{Scalar, encode_to_vec, frames};
use tensorwire::transport::tokio::Async;
use tensorwire::transport::zmq::{Context, Message, Pull, Routed, Router, Socket};
use tensorwire::transport::{
    ErrorKind, Frames, Part, RecvFrames, SendFrames, TransportError, Wait,
};
use tensorwire::{Decoder, TensorView};

type Failure = Box<dyn Error + Send + Sync>;

const CLIENTS: usize = 4;
const REQUESTS: usize = 250;

/// How long what is there already is still served after the end.
const DRAIN: Duration = Duration::from_secs(2);

const USAGE: &str = "usage: service [--listen ENDPOINT]    (tcp://127.0.0.1:7000, say)";

#[tokio::main]
async fn main() -> ExitCode {
    let listen = match env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => None,
        [flag] if flag == "--help" => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [flag, endpoint] if flag == "--listen" => Some(endpoint.clone()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match serve(listen).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("service: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(listen: Option<String>) -> Result<(), Failure> {
    let context = Context::new();
    let endpoint = listen.as_deref().unwrap_or("tcp://127.0.0.1:*");
    let router = context
        .router()
        .bind(endpoint)
        .map_err(|error| format!("{endpoint}: {error}"))?;
    let jobs = context.pull().bind("tcp://127.0.0.1:*")?;
    println!("clients: {}", router.endpoint());
    println!("jobs:    {}", jobs.endpoint());

    let (clients, jobs_at) = (router.endpoint().to_owned(), jobs.endpoint().to_owned());
    let service = Service {
        clients: Async::new(router)?,
        jobs: Async::new(jobs)?,
        decoder: Decoder::new(),
        answered: 0,
        summed: 0.0,
    };
    let start = Instant::now();
    let done = if listen.is_some() {
        service.run(wait_for_ctrl_c()).await?
    } else {
        let load = tokio::spawn(load(context.clone(), clients, jobs_at));
        service.run(async { load.await? }).await?
    };
    done.report(start.elapsed());

    // What was answered may still be on its way: dropping the sockets and then the
    // context waits for it, which is nothing for a thread of the reactor.
    let leave = move || drop((done, context));
    tokio::task::spawn_blocking(leave).await?;
    println!("closed");
    Ok(())
}

async fn wait_for_ctrl_c() -> Result<(), Failure> {
    Ok(tokio::signal::ctrl_c().await?)
}

struct Service {
    clients: Async<Socket<Router>>,
    jobs: Async<Socket<Pull>>,
    decoder: Decoder,
    answered: u64,
    summed: f64,
}

impl Service {
    /// Serves both sockets until `end`, and then what is there already.
    async fn run(
        mut self,
        end: impl Future<Output = Result<(), Failure>>,
    ) -> Result<Self, Failure> {
        let (mut request, mut job) = (Routed::default(), Message::default());
        let mut end = Box::pin(end);
        loop {
            // Whichever is not taken is dropped: it has lost no message.
            tokio::select! {
                ended = &mut end => {
                    ended?;
                    break;
                }
                received = self.clients.recv_frames(&mut request, Wait::Forever) => {
                    match received {
                        Ok(()) => self.answer(&request).await?,
                        Err(error) => passed_over(error)?,
                    }
                }
                received = self.jobs.recv_frames(&mut job, Wait::Forever) => {
                    match received {
                        Ok(()) => self.take(&job),
                        Err(error) => passed_over(error)?,
                    }
                }
            }
        }
        // A client that goes on sending does not keep the service from ending.
        let end = Instant::now() + DRAIN;
        while Instant::now() < end {
            match self.clients.recv_frames(&mut request, Wait::Never).await {
                Ok(()) => self.answer(&request).await?,
                Err(error) if error.kind().is_wait() => break,
                Err(error) => passed_over(error)?,
            }
        }
        while Instant::now() < end {
            match self.jobs.recv_frames(&mut job, Wait::Never).await {
                Ok(()) => self.take(&job),
                Err(error) if error.kind().is_wait() => break,
                Err(error) => passed_over(error)?,
            }
        }
        Ok(self)
    }

    /// Sends the tensors back, each element doubled; a bad request gets an error.
    async fn answer(&mut self, request: &Routed) -> Result<(), Failure> {
        let mut parts = match scaled(&mut self.decoder, request) {
            Ok(parts) => parts,
            Err(error) => {
                let text = error.to_string();
                let scalars = [("error", Scalar::from(text.as_str()))];
                vec![Part::from(encode_to_vec(
                    &[] as &[TensorView<'_>],
                    &scalars,
                )?)]
            }
        };
        // Not to wait: a client that reads none of a thousand answers, or went away, must
        // not keep the others waiting.
        let sent = self
            .clients
            .send_parts_to(request.envelope(), &mut parts, Wait::Never)
            .await;
        match sent {
            Ok(()) => self.answered += 1,
            Err(error) => eprintln!("not answered: {error}"),
        }
        Ok(())
    }

    /// Adds up what a batch job sends; what is no tensor message is said and passed over.
    fn take(&mut self, job: &Message) {
        let sum = self.decoder.decode(job.frames()).map(|message| {
            let values = message.tensor("x").map(|x| x.elements::<f32>());
            values
                .and_then(Result::ok)
                .map_or(0.0, |values| values.map(f64::from).sum())
        });
        match sum {
            Ok(sum) => self.summed += sum,
            Err(error) => eprintln!("no job: {error}"),
        }
    }

    fn report(&self, elapsed: Duration) {
        println!(
            "answered {} requests in {elapsed:.2?}, jobs summed to {}",
            self.answered, self.summed
        );
    }
}

/// A message that was refused is its sender's fault: the next one is intact. A
/// closed transport is the end.
fn passed_over<E: TransportError>(error: E) -> Result<(), Failure> {
    match error.kind() {
        ErrorKind::Closed | ErrorKind::Other => Err(Box::new(error)),
        _ => {
            eprintln!("refused: {error}");
            Ok(())
        }
    }
}

/// The answer to a request.
fn scaled(decoder: &mut Decoder, request: &Routed) -> Result<Vec<Part<'static>>, Failure> {
    let message = decoder.decode(request.frames())?;
    let x = message.tensor("x").ok_or("no tensor x")?;
    let doubled: Vec<f32> = x.elements::<f32>()?.map(|value| value * 2.0).collect();
    let shape: Vec<usize> = x.dims().collect();
    let tensors = [TensorView::from_slice("x", &shape, &doubled)?];
    let id = message.scalars().field("request_id")?.as_i64()?;
    let scalars = [("request_id", Scalar::from(id))];
    let metadata = encode_to_vec(&tensors, &scalars)?;
    let payload = tensors[0].bytes().to_vec();
    Ok(vec![Part::from(metadata), Part::from(payload)])
}

/// Clients that each send requests and check the answers, and a batch job beside.
async fn load(context: Context, clients: String, jobs: String) -> Result<(), Failure> {
    let mut tasks = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let dealer = context.dealer().connect(&clients)?;
        tasks.spawn(request(Async::new(dealer)?, client));
    }
    let push = context.push().connect(&jobs)?;
    tasks.spawn(async move {
        let mut push = Async::new(push)?;
        let tensors = [TensorView::from_slice("x", &[3], &[1.0_f32, 2.0, 3.0])?];
        let metadata = encode_to_vec(&tensors, &[("job", Scalar::from(1_i64))])?;
        for _ in 0..REQUESTS {
            push.send(&frames(&metadata, &tensors)).await?;
        }
        Ok::<(), Failure>(())
    });
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(())
}

async fn request<T>(mut dealer: Async<T>, client: usize) -> Result<(), Failure>
where
    T: tensorwire::transport::tokio::Readiness + SendFrames + RecvFrames,
{
    let mut decoder = Decoder::new();
    for number in 0..REQUESTS {
        let id = i64::try_from(client * REQUESTS + number)?;
        let x: Vec<f32> = (0..1024_u16).map(f32::from).collect();
        let tensors = [TensorView::from_slice("x", &[32, 32], &x)?];
        let metadata = encode_to_vec(&tensors, &[("request_id", Scalar::from(id))])?;
        dealer.send(&frames(&metadata, &tensors)).await?;
        // The answers as a stream: one is awaited at a time here.
        let answer = next(&mut dealer.messages()).await.ok_or("closed")?;
        let answer = answer.map_err(|error| format!("{:?}: {error}", error.kind()))?;
        let message = decoder.decode(answer.frames())?;
        let doubled = message.tensor("x").ok_or("no x in the answer")?;
        let right = doubled
            .elements::<f32>()?
            .eq(x.iter().map(|value| value * 2.0));
        if !right || message.scalars().field("request_id")?.as_i64()? != id {
            return Err(format!("client {client}: a wrong answer to request {id}").into());
        }
    }
    Ok(())
}

/// The next item of a stream; a crate of stream adapters has this too.
async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|cx| std::pin::Pin::new(&mut *stream).poll_next(cx)).await
}
