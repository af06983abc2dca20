//! The other process: it sends back what it gets, or counts it.

use std::io;
use std::time::{Duration, Instant};

use super::{COUNT, PATIENCE, STOP, STREAM};
use crate::args::{BenchPeerArguments, SendPattern};
use crate::endpoint::{Place, Received, Socket};
use crate::exit::{Done, Failure};
use crate::signal;

pub(crate) fn run(arguments: &BenchPeerArguments) -> Result<Done, Failure> {
    signal::watch()?;
    let place = Place {
        transport: arguments.transport,
        endpoint: &arguments.endpoint,
        bind: false,
    };
    end_with_parent();
    // Nothing waits to leave: each message is sent back before the next one comes.
    let mut socket = Socket::sender(place, SendPattern::Pair, 0)?;
    let mut heard = Instant::now();
    let mut counted = None;
    let mut echo = Echo::default();
    // Without a word for so long, the other end is gone.
    while !signal::interrupted() && heard.elapsed() < PATIENCE {
        let mut next = Next::Nothing;
        let received = socket.receive(signal::GLANCE, &mut |frames| {
            next = Next::of(frames, counted.is_some());
            if next == Next::Echo {
                echo.fill(frames);
            }
            Ok(())
        })?;
        if !matches!(received, Received::Nothing) {
            heard = Instant::now();
        }
        match next {
            Next::Count => {
                let count: u64 = counted.take().unwrap_or_default();
                reply(&mut socket, &[COUNT, &count.to_le_bytes()])?;
            }
            Next::Echo => {
                reply(&mut socket, &echo.frames())?;
            }
            Next::Message => counted = counted.map(|count: u64| count.saturating_add(1)),
            Next::Nothing => {}
            Next::Stop => break,
            Next::Stream => counted = Some(0),
        }
    }
    socket.close(Duration::from_secs(1))?;
    Ok(Done::Whole)
}

/// A message on its way back, in room that the next one has again.
#[derive(Default)]
struct Echo {
    frames: Vec<Vec<u8>>,
    len: usize,
}

impl Echo {
    fn fill(&mut self, frames: &[&[u8]]) {
        self.len = frames.len();
        if self.frames.len() < frames.len() {
            self.frames.resize_with(frames.len(), Vec::new);
        }
        for (room, frame) in self.frames.iter_mut().zip(frames) {
            room.clear();
            room.extend_from_slice(frame);
        }
    }

    fn frames(&self) -> Vec<&[u8]> {
        self.frames
            .iter()
            .take(self.len)
            .map(Vec::as_slice)
            .collect()
    }
}

/// What a message asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    Count,
    Echo,
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
            _ => Self::Echo,
        }
    }
}

/// Ends this process when the other one has ended, whose pipe is then closed.
fn end_with_parent() {
    std::thread::spawn(|| {
        // Nothing is written to it.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(1);
    });
}

fn reply(socket: &mut Socket, frames: &[&[u8]]) -> Result<bool, Failure> {
    socket.send_until(frames, Some(PATIENCE))
}
