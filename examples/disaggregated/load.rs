//! The clients: they send requests, some at a time, and check what comes back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tensorwire::Decoder;
use tensorwire::transfer::coordinator::{Event, Settings};
use tensorwire::transport::{Frames, zmq};

use crate::Result;
use crate::args::Load;
use crate::builtin::check_output;
use crate::head::HeadNode;
use crate::measure::now_ns;
use crate::progress::Progress;
use crate::stop::Stop;

/// How often to look after what is no message: the workers' processes.
const TICK: Duration = Duration::from_millis(50);

/// How long the workers may take to answer for what has ended without them.
const SETTLING: Duration = Duration::from_secs(10);

/// How long the workers may take until all have registered.
const REGISTRATION: Duration = Duration::from_secs(60);

/// What became of the requests.
#[derive(Default)]
pub(crate) struct Passed {
    pub(crate) took: Duration,
    /// When each was sent and when it ended, by its id.
    pub(crate) sent_ns: BTreeMap<String, u64>,
    pub(crate) ended_ns: BTreeMap<String, u64>,
    /// Of the results.
    pub(crate) bytes: u64,
    /// What was not as it must be, for a person.
    pub(crate) faults: Vec<String>,
    /// The requests that began anew, and why.
    pub(crate) retried: Vec<String>,
    /// How many registrations were of a worker that had restarted.
    pub(crate) restarts: usize,
}

impl Passed {
    pub(crate) fn ended(&self) -> usize {
        self.ended_ns.len()
    }
}

/// The head node's settings for this load.
pub(crate) fn settings(load: &Load) -> Settings {
    Settings::new()
        .with_policy(load.policy)
        .with_timeout(Duration::from_secs(load.timeout_s))
        .with_retries(8)
}

/// Waits until all workers have registered.
pub(crate) fn await_workers(head: &mut HeadNode, workers: usize, stop: &Stop) -> Result<()> {
    let deadline = Instant::now() + REGISTRATION;
    let mut registered = 0;
    while registered < workers {
        stop.check()?;
        if Instant::now() > deadline {
            return Err(format!("{registered} of {workers} workers registered").into());
        }
        head.turn(TICK, |event, _| {
            registered += usize::from(matches!(event, Event::Registered { again: false, .. }));
            Ok(())
        })?;
    }
    Ok(())
}

/// Waits until so many workers have registered again, and the head node has nothing under
/// way: no slot is out any more, of any request.
pub(crate) fn settle(head: &mut HeadNode, passed: &mut Passed, restarts: usize) -> Result<()> {
    let deadline = Instant::now() + SETTLING;
    while (passed.restarts < restarts || head.coordinator().poll_timeout().is_some())
        && Instant::now() < deadline
    {
        head.turn(TICK, |event, _| {
            passed.restarts += usize::from(matches!(event, Event::Registered { again: true, .. }));
            Ok(())
        })?;
    }
    Ok(())
}

/// Sends all requests, and waits until each has ended.
///
/// `tend` is called again and again meanwhile.
pub(crate) fn drive(
    head: &mut HeadNode,
    load: &Load,
    split: bool,
    progress: &mut Progress,
    mut tend: impl FnMut(&mut HeadNode, &Passed) -> Result<()>,
) -> Result<Passed> {
    let mut passed = Passed::default();
    let mut decoder = Decoder::new();
    let (start, mut sent) = (Instant::now(), 0);
    while passed.ended() < load.requests {
        while sent < load.requests && sent - passed.ended() < load.in_flight {
            send(head, &mut passed, name(sent, split))?;
            sent += 1;
        }
        head.turn(TICK, |event, message| {
            take(&mut passed, load, &mut decoder, event, message)
        })?;
        tend(head, &passed)?;
        progress.show(&format!(
            "request {} of {}, {:.1} s",
            passed.ended(),
            load.requests,
            start.elapsed().as_secs_f64()
        ));
    }
    passed.took = start.elapsed();
    Ok(passed)
}

fn send(head: &mut HeadNode, passed: &mut Passed, request: String) -> Result<()> {
    let prompt = format!("a prompt for {request}");
    head.submit(&request, prompt.into_bytes())?;
    passed.sent_ns.insert(request, now_ns());
    Ok(())
}

/// The id of a request; with split encoders, each second one has an image.
fn name(index: usize, split: bool) -> String {
    if split && index % 2 == 1 {
        format!("image-{index}")
    } else {
        format!("request-{index}")
    }
}

fn take(
    passed: &mut Passed,
    load: &Load,
    decoder: &mut Decoder,
    event: Event,
    message: &zmq::Message,
) -> Result<()> {
    match event {
        Event::Failed { request, failure } => {
            passed.ended_ns.insert(request.to_string(), now_ns());
            passed.faults.push(format!("{request}: {failure}"));
        }
        Event::Finished { request } => {
            passed.ended_ns.insert(request.to_string(), now_ns());
            if let Err(error) = check(&request.to_string(), load, decoder, message, passed) {
                passed.faults.push(format!("{request}: {error}"));
            }
        }
        Event::Registered { again, .. } => passed.restarts += usize::from(again),
        Event::Retrying {
            request, failure, ..
        } => passed.retried.push(format!("{request}: {failure}")),
        _ => {}
    }
    Ok(())
}

/// Whether the result is that of this request.
fn check(
    request: &str,
    load: &Load,
    decoder: &mut Decoder,
    message: &zmq::Message,
    passed: &mut Passed,
) -> Result<()> {
    let result = decoder.decode(message.frames())?;
    // Of a second attempt it has `~1` behind it.
    let id = result.scalars().field("request_id")?.as_str()?.to_cow()?;
    if id.split('~').next() != Some(request) {
        return Err(format!("the result of {id}").into());
    }
    let output = result.tensor("output").ok_or("no output")?;
    passed.bytes += output.byte_len() as u64;
    check_output(&id, &output, load.size_mib)
}
