//! `send`: messages out of files.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::args::{SendArguments, SendPattern, Show};
use crate::convert;
use crate::endpoint::{Received, Socket, Take};
use crate::exit::{self, Done, Failure};
use crate::frames::{self, Loaded};
use crate::output::{Output, note};
use crate::progress::Rate;
use crate::recv::Printer;
use crate::signal;

pub(crate) fn run(arguments: &SendArguments, output: &mut Output) -> Result<Done, Failure> {
    signal::watch()?;
    // All of them first: a file that is none is seen before anything is sent.
    let messages = arguments.files.iter().map(|path| load(path));
    let messages: Vec<Loaded> = messages.collect::<Result<_, _>>()?;
    let largest = messages.iter().map(Loaded::byte_len).max();
    let mut socket = Socket::sender(
        arguments.at.place(),
        arguments.pattern,
        largest.unwrap_or_default(),
    )?;
    socket.tell_bound();
    pause(arguments.delay.unwrap_or(match arguments.pattern {
        SendPattern::Pub => JOINING,
        _ => Duration::ZERO,
    }));
    let mut rate = Rate::new("sent");
    let result = send_all(arguments, &messages, &mut socket, &mut rate, output);
    rate.finish();
    close(socket, linger(arguments.timeout.max(BRIEF)), result)
}

/// How long what was sent may still leave: so long, but not after Ctrl-C.
pub(crate) fn linger(time: Duration) -> Duration {
    if signal::interrupted() { BRIEF } else { time }
}

/// Closes a socket that sent, with this result, which is another where some of it may be lost.
pub(crate) fn close(
    socket: Socket,
    linger: Duration,
    result: Result<Done, Failure>,
) -> Result<Done, Failure> {
    let endpoint = socket.endpoint().to_owned();
    match socket.close(linger) {
        Ok(false) => {}
        Ok(true) => return result,
        // What went wrong first is what is said.
        Err(failure) => return result.and(Err(failure)),
    }
    let text = format!(
        "the last of it had not left after {}, and may be lost: does the receiver at {endpoint} still take messages?",
        exit::seconds(linger)
    );
    match result {
        Ok(Done::Whole | Done::SomeMalformed) => Err(Failure::Could(text)),
        result => {
            note(&text);
            result
        }
    }
}

/// How long a subscriber takes to join.
const JOINING: Duration = Duration::from_millis(500);

/// How long messages may still leave after Ctrl-C.
const BRIEF: Duration = Duration::from_millis(200);

fn send_all(
    arguments: &SendArguments,
    messages: &[Loaded],
    socket: &mut Socket,
    rate: &mut Rate,
    output: &mut Output,
) -> Result<Done, Failure> {
    let show = Show {
        json: arguments.json,
        stats: false,
    };
    let mut printer = Printer::new(show);
    let count = arguments.count.unwrap_or(messages.len() as u64);
    let started = Instant::now();
    let in_turn = messages.iter().cycle().zip(0..count);
    for (message, index) in in_turn {
        if let Some(rate) = arguments.rate {
            let due = Duration::try_from_secs_f64(index as f64 / rate).unwrap_or(Duration::MAX);
            pause(due.saturating_sub(started.elapsed()));
        }
        let frames = message.frames();
        if !socket.send_until(&frames, Some(arguments.timeout))? {
            return Ok(Done::Interrupted);
        }
        rate.count(&frames);
        rate.draw();
        if arguments.pattern == SendPattern::Req {
            let mut print = |frames: &[&[u8]]| rate.aside(|| printer.print(frames, output));
            if !reply(socket, arguments.timeout, &mut print)? {
                return Ok(Done::Interrupted);
            }
        }
    }
    Ok(printer.done())
}

/// Waits for the reply to what was sent; `false` after Ctrl-C.
fn reply(socket: &mut Socket, timeout: Duration, take: &mut Take<'_>) -> Result<bool, Failure> {
    let started = Instant::now();
    while !signal::interrupted() {
        match socket.receive(signal::GLANCE, take)? {
            Received::Message => return Ok(true),
            Received::Nothing if started.elapsed() < timeout => {}
            Received::Nothing => {
                let endpoint = socket.endpoint();
                let timeout = exit::seconds(timeout);
                return Err(Failure::Could(format!(
                    "no reply from {endpoint} for {timeout}"
                )));
            }
            Received::Refused(fault) => return Err(Failure::Malformed(fault)),
        }
    }
    Ok(false)
}

/// Waits so long, or until Ctrl-C.
fn pause(time: Duration) {
    let started = Instant::now();
    while !signal::interrupted() {
        let left = time.saturating_sub(started.elapsed());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(signal::GLANCE));
    }
}

/// The message in a file: a bundle by its first bytes, anything else by its name.
fn load(path: &Path) -> Result<Loaded, Failure> {
    let bytes = frames::read(path)?;
    if frames::is_bundle(&bytes) {
        let loaded = Loaded::from_bundle(bytes).map_err(Failure::Malformed);
        return loaded.map_err(|failure| failure.of_file(path));
    }
    convert::message_of(path, bytes).map_err(|failure| failure.of_file(path))
}
