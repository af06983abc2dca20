//! Sockets of ZeroMQ.

use std::time::Duration;

use tensorwire::transport::zmq::{
    Builder, Context, Dealer, Error, Kind, Message, Routed, Router, Socket,
};
use tensorwire::transport::{Frames as _, Observed as _, RecvFrames as _, SendFrames as _, Wait};

use super::{
    Close, Link, Peers, Place, Received, Sent, Take, both, input, meets_peer, not_received, output,
    receive_from, sent,
};
use crate::args::{RecvPattern, SendPattern};
use crate::exit::Failure;

pub(super) fn receiver(place: Place<'_>, pattern: RecvPattern) -> Result<Box<dyn Link>, Failure> {
    let context = Context::new();
    Ok(match pattern {
        RecvPattern::Pair => both(
            open(context.pair().count_connections(true), place)?,
            Peers::Awaited,
        ),
        RecvPattern::Pull => input(open(context.pull(), place)?),
        RecvPattern::Rep => Box::new(Rep {
            socket: open(context.router(), place)?,
            message: Routed::default(),
            delimited: false,
        }),
        RecvPattern::Sub => input(open(context.subscribe().topic(b""), place)?),
    })
}

pub(super) fn sender(
    place: Place<'_>,
    pattern: SendPattern,
    queue: u32,
) -> Result<Box<dyn Link>, Failure> {
    let context = Context::new();
    // Not `immediate`, with which libzmq drops what came and was not fetched when a peer goes.
    Ok(match pattern {
        SendPattern::Pair => both(
            open(
                context
                    .pair()
                    .send_high_water(queue)
                    .count_connections(true),
                place,
            )?,
            Peers::Awaited,
        ),
        // Not a short queue: what it has no room for it drops.
        SendPattern::Pub => output(open(context.publish(), place)?, false),
        SendPattern::Push => output(
            open(
                context
                    .push()
                    .send_high_water(queue)
                    .count_connections(true),
                place,
            )?,
            true,
        ),
        SendPattern::Req => Box::new(Req {
            socket: open(
                context
                    .dealer()
                    .send_high_water(queue)
                    .count_connections(true),
                place,
            )?,
            message: Message::default(),
        }),
    })
}

fn open<K: Kind>(builder: Builder<K>, place: Place<'_>) -> Result<Socket<K>, Failure> {
    let opened = if place.bind {
        builder.bind(place.endpoint)
    } else {
        builder.connect(place.endpoint)
    };
    opened.map_err(|error: Error| place.not_there(&error))
}

impl<K: Kind> Close for Socket<K> {
    fn close(self, linger: Duration) -> Result<(), Failure> {
        Self::close(self, linger).map_err(|error| Failure::Could(format!("cannot close: {error}")))
    }

    fn endpoint(&self) -> &str {
        Self::endpoint(self)
    }

    /// libzmq queues for peers that never come; connections are counted where that matters.
    fn has_peer(&self) -> bool {
        let counters = self.counters();
        counters.connects > counters.disconnects
    }
}

/// What REP is: a ROUTER that answers the request that it received last.
struct Rep {
    socket: Socket<Router>,
    message: Routed,
    /// Whether an empty frame stood before the request: REQ puts one there, DEALER does not.
    delimited: bool,
}

impl Link for Rep {
    fn receive(&mut self, wait: Duration, take: &mut Take<'_>) -> Result<Received, Failure> {
        if let Err(error) = self.socket.recv_frames(&mut self.message, Wait::UpTo(wait)) {
            return not_received(&error);
        }
        let frames: Vec<&[u8]> = self.message.frames().iter().map(AsRef::as_ref).collect();
        let (frames, delimited) = undelimited(&frames);
        self.delimited = delimited;
        take(frames)?;
        Ok(Received::Message)
    }

    fn send(&mut self, frames: &[&[u8]], wait: Duration) -> Result<Sent, Failure> {
        let mut peer = self.socket.to(self.message.envelope());
        let answered = if self.delimited {
            peer.send_frames(&delimited(frames), Wait::UpTo(wait))
        } else {
            peer.send_frames(frames, Wait::UpTo(wait))
        };
        match answered {
            // Who asked is gone, and with it the need for an answer.
            Err(Error::Unreachable) => Ok(Sent::Whole),
            answered => sent(answered),
        }
    }

    fn endpoint(&self) -> &str {
        self.socket.endpoint()
    }

    fn close(self: Box<Self>, linger: Duration) -> Result<(), Failure> {
        Close::close(self.socket, linger)
    }
}

/// What REQ is: a DEALER that puts an empty frame before each request.
struct Req {
    socket: Socket<Dealer>,
    message: Message,
}

impl Link for Req {
    fn receive(&mut self, wait: Duration, take: &mut Take<'_>) -> Result<Received, Failure> {
        let mut strip = |frames: &[&[u8]]| take(undelimited(frames).0);
        receive_from(&mut self.socket, &mut self.message, wait, &mut strip)
    }

    fn send(&mut self, frames: &[&[u8]], wait: Duration) -> Result<Sent, Failure> {
        if !meets_peer(&self.socket, wait) {
            return Ok(Sent::NoRoom);
        }
        sent(
            self.socket
                .send_frames(&delimited(frames), Wait::UpTo(wait)),
        )
    }

    fn endpoint(&self) -> &str {
        self.socket.endpoint()
    }

    fn close(self: Box<Self>, linger: Duration) -> Result<(), Failure> {
        Close::close(self.socket, linger)
    }
}

fn delimited<'a>(frames: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let empty: &[u8] = &[];
    std::iter::once(empty)
        .chain(frames.iter().copied())
        .collect()
}

/// The message behind an empty frame, and whether there was one.
fn undelimited<'a, 'b>(frames: &'a [&'b [u8]]) -> (&'a [&'b [u8]], bool) {
    match frames {
        [first, rest @ ..] if first.is_empty() && !rest.is_empty() => (rest, true),
        frames => (frames, false),
    }
}
