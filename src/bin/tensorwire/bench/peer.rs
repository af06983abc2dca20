//! The other process: it sends back what it gets, or counts it.

use std::time::{Duration, Instant};

use super::{COUNT, PATIENCE, STOP, STREAM};
use crate::args::{BenchPeerArguments, SendPattern};
use crate::endpoint::{self, Link, Place, Received};
use crate::exit::{Done, Failure};
use crate::signal;

pub(crate) fn run(arguments: &BenchPeerArguments) -> Result<Done, Failure> {
    signal::watch()?;
    let place = Place {
        transport: arguments.transport,
        endpoint: &arguments.endpoint,
        bind: false,
    };
    let mut link = endpoint::sender(place, SendPattern::Pair)?;
    let mut heard = Instant::now();
    let mut counted = None;
    // Without a word for so long, the other end is gone.
    while !signal::interrupted() && heard.elapsed() < PATIENCE {
        let mut next = Next::Nothing;
        let received = link.receive(signal::GLANCE, &mut |frames| {
            next = Next::of(frames, counted.is_some());
            Ok(())
        })?;
        if !matches!(received, Received::Nothing) {
            heard = Instant::now();
        }
        match next {
            Next::Count => {
                let count: u64 = counted.take().unwrap_or_default();
                reply(&mut *link, &[COUNT, &count.to_le_bytes()])?;
            }
            Next::Echo(frames) => {
                let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
                reply(&mut *link, &frames)?;
            }
            Next::Message => counted = counted.map(|count: u64| count.saturating_add(1)),
            Next::Nothing => {}
            Next::Stop => break,
            Next::Stream => counted = Some(0),
        }
    }
    link.close(Duration::from_secs(1))?;
    Ok(Done::Whole)
}

/// What a message asks for.
enum Next {
    Count,
    Echo(Vec<Vec<u8>>),
    Message,
    Nothing,
    Stop,
    Stream,
}

impl Next {
    fn of(frames: &[&[u8]], counting: bool) -> Self {
        match frames {
            [COUNT] => Self::Count,
            [STOP] => Self::Stop,
            [STREAM] => Self::Stream,
            _ if counting => Self::Message,
            frames => Self::Echo(frames.iter().map(|frame| frame.to_vec()).collect()),
        }
    }
}

fn reply(link: &mut dyn Link, frames: &[&[u8]]) -> Result<bool, Failure> {
    endpoint::send_until(link, frames, Some(PATIENCE))
}
