//! A stage: receives, compares, sends its own tensors on.

use std::io::{Write, stdout};
use std::time::Duration;

use tensorwire::Scalar;
use tensorwire::json::Object;
use tensorwire::message::{NO_TENSORS, Updated, encode_to_vec};
use tensorwire::transport::{Part, RecvFrames, SendFrames, Wait, zmq};

use crate::Result;
use crate::inbox::{Inbox, Receipt};
use crate::plan::{Size, Stage};

/// How many messages may wait on either side of a socket: they are large.
pub(crate) const HIGH_WATER: u32 = 2;

/// How long the last message, which is a small one, may take to leave.
const LINGER: Duration = Duration::from_secs(5);

/// Set for a message that tells each stage to end.
pub(crate) const STOP: &str = "stop";

/// Set in the place of tensors for a request that failed.
pub(crate) const ERROR: &str = "_disagg_error";

/// Whether the payloads were as sent, so far.
pub(crate) const VERIFIED: &str = "verified";

pub(crate) struct StageRun {
    pub(crate) stage: Stage,
    /// Where messages come from: an endpoint, with an `@` before it to bind.
    pub(crate) source: String,
    /// Where they go, likewise.
    pub(crate) out: String,
    pub(crate) size: Size,
    /// Whether to flip a byte of the first payload sent.
    pub(crate) corrupt: bool,
}

pub(crate) fn run(run: &StageRun) -> Result<()> {
    let context = zmq::Context::new();
    let mut pull = open_pull(&context, &run.source)?;
    let mut push = open_push(&context, &run.out)?;
    writeln!(stdout(), "READY {} {}", pull.endpoint(), push.endpoint())?;
    let mut inbox = Inbox::default();
    loop {
        // For as long as the head is there; without it this process ends.
        pull.recv_frames(&mut inbox.message, Wait::Forever)?;
        let (mut parts, next) = answer(run, &mut inbox)?;
        push.send_parts(&mut parts, Wait::Configured)?;
        match next {
            Next::Go(receipt) => writeln!(stdout(), "{}", serde_json::to_string(&receipt)?)?,
            Next::Skip => {}
            Next::Stop => return Ok(()),
        }
    }
}

/// What a stage does after a message.
enum Next {
    Go(Box<Receipt>),
    Skip,
    Stop,
}

/// The frames of the answer to what was received.
fn answer(run: &StageRun, inbox: &mut Inbox) -> Result<(Vec<Part<'static>>, Next)> {
    let opened = match inbox.decode() {
        Ok(opened) => opened,
        Err(error) => return Ok((failed("", &error.to_string())?, Next::Skip)),
    };
    let scalars = opened.message.scalars();
    let flag = |name| scalars.get(name).and_then(|value| value.as_bool().ok());
    if opened.message.is_empty() && (flag(STOP) == Some(true) || scalars.get(ERROR).is_some()) {
        // Passed on as it is.
        let next = if flag(STOP) == Some(true) {
            Next::Stop
        } else {
            Next::Skip
        };
        return Ok((vec![Part::from(encode_to_vec(NO_TENSORS, &scalars)?)], next));
    }
    let index = match scalars.field("index").and_then(|index| index.as_u64()) {
        Ok(index) => index,
        Err(error) => {
            let id = scalars.get("request_id").and_then(|id| id.as_str().ok());
            let id = id.map(|id| id.to_cow_lossy()).unwrap_or_default();
            return Ok((failed(&id, &error.to_string())?, Next::Skip));
        }
    };
    let receipt = opened.compare(run.stage.receives(), run.size, index);
    let verified = receipt.fault.is_none() && flag(VERIFIED) != Some(false);
    Ok((
        results(run, scalars, verified, index)?,
        Next::Go(Box::new(receipt)),
    ))
}

/// The stage's own tensors, with the scalars it got.
///
/// The payloads are moved into the parts: they are sent from where they lie.
fn results(
    run: &StageRun,
    received: Object<'_>,
    verified: bool,
    index: u64,
) -> Result<Vec<Part<'static>>> {
    let message = run.stage.sends();
    let scalars = [(VERIFIED, Scalar::from(verified))];
    let scalars = Updated::new(received, &scalars);
    let metadata = encode_to_vec(&message.descriptors(run.size)?, &scalars)?;
    let mut parts = vec![Part::from(metadata)];
    for tensor in message.tensors() {
        let mut payload = tensor.payload(run.size, index)?;
        if run.corrupt && index == 0 && parts.len() == 1 {
            let middle = payload.len() / 2;
            payload[middle] ^= 0x10;
        }
        parts.push(Part::from(payload));
    }
    Ok(parts)
}

/// An error reply: it has no tensors.
fn failed(request_id: &str, error: &str) -> Result<Vec<Part<'static>>> {
    let scalars = [
        ("request_id", Scalar::from(request_id)),
        (ERROR, Scalar::from(error)),
    ];
    Ok(vec![Part::from(encode_to_vec(NO_TENSORS, &scalars)?)])
}

/// A PULL socket at an endpoint, bound if there is an `@` before it.
pub(crate) fn open_pull(
    context: &zmq::Context,
    endpoint: &str,
) -> Result<zmq::Socket<zmq::Pull>, zmq::Error> {
    let builder = context.pull().recv_high_water(HIGH_WATER);
    match endpoint.strip_prefix('@') {
        Some(endpoint) => builder.bind(endpoint),
        None => builder.connect(endpoint),
    }
}

/// A PUSH socket, likewise. It waits for its peer, so that a send times out if there is none.
pub(crate) fn open_push(
    context: &zmq::Context,
    endpoint: &str,
) -> Result<zmq::Socket<zmq::Push>, zmq::Error> {
    let builder = context
        .push()
        .send_high_water(HIGH_WATER)
        .immediate(true)
        .linger(LINGER);
    match endpoint.strip_prefix('@') {
        Some(endpoint) => builder.bind(endpoint),
        None => builder.connect(endpoint),
    }
}
