//! What happens, line by line, and what is to come of it.

use std::fmt::Write;
use std::time::Duration;

use tensorwire::json::Value;
use tensorwire::message::{MessageKind, classify};
use tensorwire::transfer::coordinator::{Coordinator, Event, Settings, Topology, Workers};
use tensorwire::transfer::message::{
    Abort, Allocated, Done, Location, PreallocatedSlot, Pushed, Register, Staged,
};
use tensorwire::transfer::{Control, RequestId, Role};

/// Where each pool lies, whoever's it is.
pub(crate) const POOL: u64 = 1000;

/// Its length.
pub(crate) const POOL_LEN: u64 = 1000;

/// What happens, line by line: `input | output, output`.
///
/// ```text
/// request r1                          a client's
/// encoder staged r1 8 [scalars]       transfer_staged of 8 bytes
/// denoiser done r1 8                  transfer_done, staged
/// denoiser allocated r1 64 8          a slot of 8 bytes at offset 64
/// encoder pushed r1
/// decoder reply r1                    a tensor message
/// encoder error r1                    a tensor message with an error
/// denoiser failed r1                  transfer_done with an error
/// denoiser finished r1                transfer_done without one
/// denoiser abort r1                   transfer_abort
/// denoiser register 0 s1 0+8 64+16    worker 0, session s1, two slots
/// denoiser lost 0                     the service says that it is gone
/// cancel r1
/// time 600                            in seconds
/// ```
///
/// Outputs are what is sent, events behind an `=`, and errors behind a `!`.
pub(crate) fn play(head: &mut Coordinator, script: &str) {
    let mut now = Duration::ZERO;
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (input, expected) = line.split_once('|').unwrap_or((line, ""));
        let before = format!("{head:?}");
        let words: Vec<_> = input.split_whitespace().collect();
        let result = act(head, &words, &mut now);
        let mut outputs = Vec::new();
        if result.is_err() && sent(head, &mut outputs) == 0 {
            assert_eq!(format!("{head:?}"), before, "{line}");
        }
        sent(head, &mut outputs);
        while let Some(event) = head.poll_event() {
            outputs.push(told(&event));
        }
        if let Err(error) = result {
            outputs.push(format!("!{error}"));
        }
        assert_eq!(outputs.join(", "), expected.trim(), "after {input:?}");
    }
}

/// Plays the inputs of `way`, line by line, whatever they cause.
pub(crate) fn prepare(head: &mut Coordinator, way: &str) -> Vec<String> {
    let mut now = Duration::ZERO;
    for line in way.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        act(head, &words, &mut now).unwrap();
    }
    let mut outputs = Vec::new();
    sent(head, &mut outputs);
    while head.poll_event().is_some() {}
    outputs
}

fn act(head: &mut Coordinator, words: &[&str], now: &mut Duration) -> Result<(), String> {
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let manifest = Value::parse(br#"{"x":[]}"#).unwrap().as_object().unwrap();
    match words[0] {
        "request" => {
            let id = RequestId::from(words[1]);
            let result = head.handle_request(&id, b"work".to_vec(), *now);
            return result.map_err(|error| error.to_string());
        }
        "cancel" => {
            head.cancel(&RequestId::from(words[1]), *now);
            return Ok(());
        }
        "time" => {
            *now = Duration::from_secs(number(1));
            head.handle_timeout(*now);
            return Ok(());
        }
        _ => {}
    }
    let role = Role::from_name(words[0]).unwrap();
    let id = words[2];
    let session = format!("{role}-session");
    let place = |offset| Location::new(session.as_str(), POOL, offset);
    let scalars = words.get(4).copied().unwrap_or("{}").as_bytes();
    let staged = |size| {
        let scalars = Value::parse(scalars).unwrap().as_object().unwrap();
        Staged::new(id, size, manifest, place(0), scalars)
    };
    let mut frames = Vec::new();
    let control = match words[1] {
        "staged" => Control::Staged(staged(number(3))),
        "done" => Control::Done(Done::staged(staged(number(3)))),
        "allocated" => Control::Allocated(Allocated::new(id, place(number(3)), number(4))),
        "pushed" => Control::Pushed(Pushed::new(id)),
        "failed" => Control::Done(Done::failed(id, "out of memory")),
        "finished" => Control::Done(Done::finished(id)),
        "register" => {
            let slots: Vec<_> = words[4..].iter().enumerate().map(slot).collect();
            let endpoint = format!("{}{}", role.name(), words[2]);
            let endpoint = endpoint.as_str();
            let message = Register::new(role, words[3], POOL, POOL_LEN, endpoint, &slots[..]);
            let result = head.handle_control(role, &Control::Register(message), *now);
            return result.map_err(|error| error.to_string());
        }
        "lost" => {
            let news = head.handle_lost(role, words[2].parse().unwrap(), *now);
            return news.then_some(()).ok_or_else(|| "no news".to_string());
        }
        "abort" => {
            frames.push(b"__transfer__".to_vec());
            frames.push(Abort::new(id, "", "gone").to_vec());
            let result = head.handle_frames(role, &frames, *now);
            return result.map_err(|error| error.to_string());
        }
        "reply" | "error" => {
            let error = (words[1] == "error").then_some("out of memory");
            let result = head.handle_reply(role, &RequestId::from(id), error, *now);
            return result.map_err(|error| error.to_string());
        }
        other => panic!("{other}"),
    };
    frames.push(b"__transfer__".to_vec());
    frames.push(control.to_vec());
    let result = head.handle_frames(role, &frames, *now);
    result.map_err(|error| error.to_string())
}

fn slot((index, text): (usize, &&str)) -> PreallocatedSlot {
    let (offset, size) = text.split_once('+').unwrap();
    let (offset, size) = (offset.parse().unwrap(), size.parse().unwrap());
    PreallocatedSlot::new(offset, size, index as u64 + 50, POOL + offset)
}

/// Writes down what is to be sent; returns how much that is.
pub(crate) fn sent(head: &mut Coordinator, outputs: &mut Vec<String>) -> usize {
    let mut buffer = Vec::new();
    let mut count = 0;
    while let Some(outgoing) = head.poll_transmit(&mut buffer) {
        let frames = outgoing.frames();
        let mut text = format!("{}{} ", outgoing.role(), outgoing.worker());
        let MessageKind::Control { payload } = classify(&frames) else {
            assert_eq!(frames[1], b"work");
            let id = std::str::from_utf8(frames[0]).unwrap();
            outputs.push(format!("{text}work {id}"));
            continue;
        };
        match Control::decode(payload).unwrap() {
            Control::Alloc(alloc) => write!(
                text,
                "alloc {} {} from {}",
                alloc.request_id, alloc.data_size, alloc.source_role
            ),
            Control::Push(push) => write!(
                text,
                "push {} {} {} to {}",
                push.request_id, push.transfer_size, push.dest_addr, push.dest_session_id
            ),
            Control::Ready(ready) => {
                assert_eq!(ready.manifest.as_value().raw(), r#"{"x":[]}"#);
                let scalars = ready.scalar_fields.as_value().raw();
                write!(
                    text,
                    "ready {} {} {scalars}",
                    ready.request_id, ready.slot_offset
                )
            }
            Control::Unknown(unknown) => {
                let abort = unknown.abort().unwrap();
                write!(text, "abort {} {}", abort.request_id, abort.reason)
            }
            other => panic!("{other:?}"),
        }
        .unwrap();
        outputs.push(text);
        count += 1;
    }
    count
}

pub(crate) fn told(event: &Event) -> String {
    match event {
        Event::Failed { request, failure } => format!("=failed {request}: {failure}"),
        Event::Finished { request } => format!("=finished {request}"),
        Event::Registered { again, slots, .. } => {
            format!("={} {slots}", if *again { "again" } else { "registered" })
        }
        Event::Retrying {
            request, attempt, ..
        } => format!("=retrying {request} {attempt}"),
        other => format!("{other:?}"),
    }
}

pub(crate) fn workers(role: Role, count: usize, capacity: u32) -> Workers {
    Workers::new((0..count).map(|index| format!("{role}{index}")), capacity)
}

pub(crate) fn head(workers_of_each: usize, settings: Settings) -> Coordinator {
    let of = |role| workers(role, workers_of_each, 2);
    let topology = Topology::new(of(Role::Encoder), of(Role::Denoiser), of(Role::Decoder));
    Coordinator::new(topology, settings).unwrap()
}

/// Every place and every slot is free, and nothing is remembered.
pub(crate) fn is_whole(head: &Coordinator) {
    for &role in Role::ALL {
        let Some(statistics) = head.role_statistics(role) else {
            continue;
        };
        assert_eq!((statistics.queued, statistics.running), (0, 0), "{role}");
        assert_eq!(statistics.lent_slots, 0, "{role}");
        assert_eq!(statistics.quarantined_slots, 0, "{role}");
    }
    assert_eq!(head.statistics().active, 0);
    assert_eq!(head.poll_timeout(), None);
}
