//! The two ends of the pipeline: sends the requests, receives what comes out.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use tensorwire::Scalar;
use tensorwire::json::Object;
use tensorwire::message::{NO_TENSORS, encode_to_vec};
use tensorwire::transport::{RecvFrames, SendFrames, TransportError, Wait, zmq};

use crate::Result;
use crate::args::Run;
use crate::children::{Process, TICK};
use crate::inbox::{Inbox, Receipt};
use crate::plan::{Message, Request, Size, Stage};
use crate::progress::Progress;
use crate::python::Python;
use crate::report::bytes;
use crate::stage::{ERROR, STOP, VERIFIED, open_pull, open_push};

/// How many requests are in the pipeline at a time.
pub(crate) const IN_FLIGHT: u64 = 2;

/// How long the pipeline may take for one answer.
const ANSWER: Duration = Duration::from_secs(60);

/// What became of the requests.
pub(crate) struct Passed {
    /// For each message of [`Message::ALL`], what its receiver says; a Python stage says nothing.
    pub(crate) receipts: [Vec<Receipt>; 4],
    pub(crate) took: Duration,
    /// What differed, for a person.
    pub(crate) faults: Vec<String>,
    /// The requests of which a stage says that what it received differs.
    unverified: Vec<u64>,
}

pub(crate) fn run(run: &Run, python: Option<&Python>, progress: &mut Progress) -> Result<Passed> {
    let context = zmq::Context::new();
    let mut pull = open_pull(&context, "@tcp://127.0.0.1:*")?;
    // From the last to the first, as each has to know where the next one listens.
    let mut next = pull.endpoint().to_owned();
    let mut stages = Vec::new();
    for stage in Stage::ALL.into_iter().rev() {
        let python = python.filter(|_| run.python.contains(&stage));
        let kind = if python.is_some() {
            "in Python"
        } else {
            "in Rust"
        };
        progress.show(&format!("starting the {}, {kind}", stage.name()));
        let mut process = Process::start(stage.name(), &command_line(run, stage, python, &next))?;
        next = process.endpoints()?.swap_remove(0);
        stages.push(process);
    }
    let mut push = open_push(&context, &next)?;

    let mut inbox = Inbox::default();
    let mut passed = Passed {
        receipts: Default::default(),
        took: Duration::ZERO,
        faults: Vec::new(),
        unverified: Vec::new(),
    };
    let (start, mut sent, mut received) = (Instant::now(), 0, 0);
    for index in 0..run.requests {
        while sent < run.requests && sent < index + IN_FLIGHT {
            let metadata = encode_to_vec(NO_TENSORS, &Request::new(sent).scalars())?;
            send(&mut push, &metadata, &mut stages)?;
            sent += 1;
        }
        receive(&mut pull, &mut inbox, &mut stages)?;
        let receipt = look(&mut inbox, run.size, index, &mut passed)?;
        let seconds = start.elapsed().as_secs_f64();
        received += receipt.bytes;
        progress.show(&format!(
            "request {} of {}, {seconds:.1} s, {} came out",
            index + 1,
            run.requests,
            bytes(received),
        ));
        passed.receipts[3].push(receipt);
    }
    passed.took = start.elapsed();

    // Each stage passes it on and ends.
    let stop = encode_to_vec(NO_TENSORS, &[(STOP, Scalar::from(true))])?;
    push.send(&[&stop])?;
    for (process, receipts) in stages.into_iter().rev().zip(&mut passed.receipts) {
        for line in process.finish()? {
            receipts.push(serde_json::from_str(&line)?);
        }
    }
    collect_faults(&mut passed);
    Ok(passed)
}

/// The arguments that make this program a stage, or a guard of one in Python.
fn command_line(run: &Run, stage: Stage, python: Option<&Python>, next: &str) -> Vec<OsString> {
    let mut args = Vec::new();
    match python {
        Some(python) => args.extend(python.guarded_peer()),
        None => {
            if run.size == Size::Small {
                args.push("--small".into());
            }
            if run.corrupt == Some(stage) {
                args.extend(["--corrupt", stage.name()].map(Into::into));
            }
            args.push("--stage".into());
        }
    }
    if python.is_some() {
        args.push("stage".into());
    }
    args.extend([stage.name(), "@tcp://127.0.0.1:*", next].map(Into::into));
    args
}

/// Sends a request when there is room, but does not wait for a stage that is gone.
fn send(push: &mut zmq::Socket<zmq::Push>, metadata: &[u8], stages: &mut [Process]) -> Result<()> {
    attended(stages, "no stage took a request", |wait| {
        push.send_frames(&[metadata], wait)
    })
}

/// Receives an output, likewise.
fn receive(
    pull: &mut zmq::Socket<zmq::Pull>,
    inbox: &mut Inbox,
    stages: &mut [Process],
) -> Result<()> {
    attended(stages, "nothing came out of the pipeline", |wait| {
        pull.recv_frames(&mut inbox.message, wait)
    })
}

/// Tries again and again for a while, and looks after the stages in between.
fn attended(
    stages: &mut [Process],
    in_vain: &str,
    mut attempt: impl FnMut(Wait) -> Result<(), zmq::Error>,
) -> Result<()> {
    let deadline = Instant::now() + ANSWER;
    loop {
        match attempt(Wait::UpTo(TICK)) {
            Ok(()) => return Ok(()),
            Err(error) if !error.kind().is_wait() => return Err(error.into()),
            Err(_) if Instant::now() > deadline => {
                let seconds = ANSWER.as_secs();
                return Err(format!("{in_vain} for {seconds} s").into());
            }
            Err(_) => stages.iter_mut().try_for_each(Process::check)?,
        }
    }
}

/// Looks at an output: whose it is, whether it is whole, whether the scalars are as they were sent.
fn look(inbox: &mut Inbox, size: Size, index: u64, passed: &mut Passed) -> Result<Receipt> {
    let opened = inbox.decode()?;
    let scalars = opened.message.scalars();
    if let Some(error) = scalars.get(ERROR) {
        return Err(format!(
            "request {index}: a stage answered with an error: {}",
            error.raw()
        )
        .into());
    }
    let answered = scalars.field("index")?.as_u64()?;
    if answered != index {
        return Err(format!("request {answered} came out where {index} was due").into());
    }
    let verified = scalars.field(VERIFIED)?.as_bool()?;
    if !returned(scalars, index, verified)? {
        passed.faults.push(format!(
            "request {index}: the scalars are not those that were sent"
        ));
    }
    if !verified {
        passed.unverified.push(index);
    }
    Ok(opened.compare(Message::Output, size, index))
}

/// Whether the scalars are, byte for byte, those of the request, and `verified` as it was read.
///
/// Python has parsed and written them again in between, where a stage is in Python.
fn returned(scalars: Object<'_>, index: u64, verified: bool) -> Result<bool> {
    let request = Request::new(index);
    let mut expected = request.scalars().to_vec();
    expected.push((VERIFIED, Scalar::from(verified)));
    let expected = encode_to_vec(NO_TENSORS, expected.as_slice())?;
    let head = br#"{"tensor_descriptors":[],"scalar_fields":"#;
    let text = scalars.as_value().raw().as_bytes();
    Ok(expected
        .strip_prefix(head)
        .and_then(|rest| rest.strip_suffix(b"}"))
        == Some(text))
}

/// Adds what the receivers found; and what a Python stage found, which does not say what it was.
fn collect_faults(passed: &mut Passed) {
    let mut named = Vec::new();
    for (message, receipts) in Message::ALL.iter().zip(&passed.receipts) {
        let sender = message.sender().map_or("head", Stage::name);
        for receipt in receipts {
            if let Some(fault) = &receipt.fault {
                let index = receipt.index;
                let text = format!("request {index}: what the {sender} sent differs: {fault}");
                passed.faults.push(text);
                named.push(index);
            }
        }
    }
    for index in passed
        .unverified
        .iter()
        .filter(|index| !named.contains(index))
    {
        let text = format!("request {index}: a Python stage says that what it received differs");
        passed.faults.push(text);
    }
}
