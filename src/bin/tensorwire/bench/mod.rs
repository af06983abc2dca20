//! `bench`: latency and throughput between two processes.
//!
//! ```text
//!   this process                       the peer, a process of its own
//!   message            ------------->  sent back as it is                latency, one at a time
//!   [STREAM], message ..., [COUNT] ->  counted; then [COUNT, n]          throughput, one way
//!   [STOP]             ------------->  ends
//! ```

pub(crate) mod peer;
mod report;

use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use tensorwire::TensorView;
use tensorwire::message::{Scalar, encode_to_vec};
use tensorwire::transport::Caps;

use crate::args::{BenchArguments, SendPattern, Transport};
use crate::endpoint::{Place, Received, Sent, Socket, Take};
use crate::exit::{self, Done, Failure};
use crate::output::{Output, note};
use crate::progress::Rate;
use crate::signal;
use report::Report;

/// What tells the peer what comes; none of them is a tensor message.
const STREAM: &[u8] = b"stream";
const COUNT: &[u8] = b"count";
const STOP: &[u8] = b"stop";

pub(crate) fn run(arguments: &BenchArguments, output: &mut Output) -> Result<Done, Failure> {
    signal::watch()?;
    let place = Place {
        transport: arguments.transport,
        endpoint: arguments.endpoint.as_deref().unwrap_or("tcp://127.0.0.1:*"),
        bind: true,
    };
    let payload = payload(arguments.size)?;
    let mut socket = Socket::sender(place, SendPattern::Pair, arguments.size)?;
    let mut peer = Peer::start(arguments.transport, socket.endpoint())?;
    let shape = [arguments.size];
    let cannot = |error| Failure::Could(format!("cannot make the message: {error}"));
    let tensor = TensorView::from_slice("payload", &shape, &payload).map_err(cannot)?;
    let scalars = [("request_id", Scalar::from("bench"))];
    let metadata = encode_to_vec([tensor], &scalars).map_err(cannot)?;
    let message = [&metadata[..], &payload];

    let measured = measure(&mut socket, &message, arguments.duration, &mut peer);
    let interrupted = signal::interrupted();
    let endpoint = socket.endpoint().to_owned();
    // Whatever still waits, nobody waits for it.
    let closed = socket.close(Duration::ZERO);
    let (times, stream) = measured?;
    closed?;
    if interrupted && times.is_empty() {
        note("nothing was measured yet");
        return Ok(Done::Interrupted);
    }
    let report = Report::new(arguments, &endpoint, times, stream);
    if arguments.json {
        output.json(&report.json())?;
    } else {
        output.styled(&report.text(output.width()))?;
    }
    Ok(if interrupted {
        Done::Interrupted
    } else {
        Done::Whole
    })
}

/// Measures both, and lets the peer end.
fn measure(
    socket: &mut Socket,
    message: &[&[u8]],
    duration: Duration,
    peer: &mut Peer,
) -> Result<(Vec<Duration>, Stream), Failure> {
    let mut rate = Rate::new("exchanged");
    let times = latency(socket, message, duration, peer, &mut rate)?;
    let stream = throughput(socket, message, duration, peer, &mut rate)?;
    rate.clear();
    if send(socket, peer, &[STOP])? {
        peer.finish()?;
    }
    Ok((times, stream))
}

/// The bytes of the tensor.
fn payload(size: usize) -> Result<Vec<u8>, Failure> {
    let cap = Caps::new().frame_bytes();
    if size > cap {
        return Err(Failure::Usage(format!(
            "messages of {size} bytes: the other process takes {cap} at most, see --size"
        )));
    }
    let mut payload = Vec::new();
    payload.try_reserve_exact(size).map_err(|_| {
        Failure::Could(format!(
            "no memory for messages of {size} bytes: see --size"
        ))
    })?;
    payload.resize(size, 0x5a);
    Ok(payload)
}

/// How long the peer may take for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Round trips that are not counted: connections are made, and buffers grow.
const WARM_UP: usize = 100;

/// The times there and back of one message after another.
fn latency(
    socket: &mut Socket,
    message: &[&[u8]],
    duration: Duration,
    peer: &mut Peer,
    rate: &mut Rate,
) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::new();
    let mut warm_up = WARM_UP;
    let mut started = Instant::now();
    while !signal::interrupted()
        && (warm_up > 0 || times.is_empty() || started.elapsed() < duration)
    {
        let sent = Instant::now();
        if !send(socket, peer, message)? {
            break;
        }
        let same = |frames: &[&[u8]]| {
            frames
                .iter()
                .map(|frame| frame.len())
                .eq(message.iter().map(|frame| frame.len()))
        };
        let mut is_same = false;
        if !answer(socket, peer, &mut |frames| {
            is_same = same(frames);
            Ok(())
        })? {
            break;
        }
        if !is_same {
            return Err(Failure::Could(
                "the peer sent something else back".to_owned(),
            ));
        }
        if warm_up > 0 {
            warm_up -= 1;
            // A slow warm-up is no measurement, but long enough.
            if sent.duration_since(started) > duration {
                warm_up = 0;
            }
            if warm_up == 0 {
                started = Instant::now();
            }
            continue;
        }
        if times.len() < MOST_TIMES {
            times.push(sent.elapsed());
        }
        rate.count(message);
        rate.draw();
    }
    Ok(times)
}

/// So many times are kept: 160 MB.
const MOST_TIMES: usize = 10_000_000;

/// What went one way: messages, and how long it took until the last had arrived.
pub(crate) struct Stream {
    messages: u64,
    elapsed: Duration,
}

fn throughput(
    socket: &mut Socket,
    message: &[&[u8]],
    duration: Duration,
    peer: &mut Peer,
    rate: &mut Rate,
) -> Result<Stream, Failure> {
    send(socket, peer, &[STREAM])?;
    let started = Instant::now();
    let mut messages = 0_u64;
    while !signal::interrupted() && (messages == 0 || started.elapsed() < duration) {
        if send(socket, peer, message)? {
            messages += 1;
            rate.count(message);
            rate.draw();
        }
    }
    if signal::interrupted() {
        // Nobody waits for what is under way.
        return Ok(Stream {
            messages: 0,
            elapsed: Duration::ZERO,
        });
    }
    send(socket, peer, &[COUNT])?;
    let mut counted = None;
    answer(socket, peer, &mut |frames| {
        if let [COUNT, count] = frames {
            counted = <[u8; 8]>::try_from(*count).ok().map(u64::from_le_bytes);
        }
        Ok(())
    })?;
    let elapsed = started.elapsed();
    if counted != Some(messages) && !signal::interrupted() {
        return Err(Failure::Could(format!(
            "{messages} messages went, {counted:?} came"
        )));
    }
    Ok(Stream { messages, elapsed })
}

/// Sends a message to the peer, as long as that is there; `false` after Ctrl-C.
fn send(socket: &mut Socket, peer: &mut Peer, message: &[&[u8]]) -> Result<bool, Failure> {
    let started = Instant::now();
    while !signal::interrupted() {
        if socket.send(message, signal::GLANCE)? == Sent::Whole {
            return Ok(true);
        }
        peer.check()?;
        if started.elapsed() >= PATIENCE {
            return Err(Failure::Could(format!(
                "the other process takes nothing for {}",
                exit::seconds(PATIENCE)
            )));
        }
    }
    Ok(false)
}

/// Waits for what the peer sends; `false` after Ctrl-C.
fn answer(socket: &mut Socket, peer: &mut Peer, take: &mut Take<'_>) -> Result<bool, Failure> {
    let started = Instant::now();
    while !signal::interrupted() {
        match socket.receive(signal::GLANCE, take)? {
            Received::Message => return Ok(true),
            Received::Nothing if started.elapsed() < PATIENCE => peer.check()?,
            Received::Nothing => {
                return Err(Failure::Could(format!(
                    "the other process says nothing for {}",
                    exit::seconds(PATIENCE)
                )));
            }
            Received::Refused(fault) => return Err(Failure::Could(fault.text)),
        }
    }
    Ok(false)
}

/// The other process, which does not outlive this one.
struct Peer {
    child: Child,
    /// It ends when this does, however this one ends.
    _alive: Option<ChildStdin>,
}

impl Peer {
    fn start(transport: Transport, endpoint: &str) -> Result<Self, Failure> {
        let cannot = |error| {
            Failure::Could(format!(
                "cannot start another process of this tool: {error}"
            ))
        };
        let program = std::env::current_exe().map_err(cannot)?;
        let mut command = Command::new(program);
        command.args([
            "bench-peer",
            "--transport",
            transport.name(),
            "--endpoint",
            endpoint,
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().map_err(cannot)?;
        let _alive = child.stdin.take();
        Ok(Self { child, _alive })
    }

    /// Sees to it that it is still there.
    fn check(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Failure::Could(format!("the other process ended: {status}"))),
            Err(error) => Err(Failure::Could(format!(
                "the other process is lost: {error}"
            ))),
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::Could(format!(
                "the other process failed: {status}"
            ))),
            Err(error) => Err(Failure::Could(format!(
                "the other process is lost: {error}"
            ))),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
