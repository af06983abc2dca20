//! Sockets of NNG.

use std::time::Duration;

use tensorwire::transport::Observed as _;
use tensorwire::transport::nng::{Builder, Context, Error, Kind, Socket};

use super::{Close, Link, Peers, Place, both, input, output};
use crate::args::{RecvPattern, SendPattern};
use crate::exit::Failure;

pub(super) fn receiver(place: Place<'_>, pattern: RecvPattern) -> Result<Box<dyn Link>, Failure> {
    let context = Context::new();
    Ok(match pattern {
        RecvPattern::Pair => both(open(context.pair0(), place)?, Peers::Awaited),
        RecvPattern::Pull => input(open(context.pull(), place)?),
        RecvPattern::Rep => both(open(context.reply(), place)?, Peers::LeaveFirst),
        RecvPattern::Sub => input(open(context.subscribe().topic(b""), place)?),
    })
}

pub(super) fn sender(
    place: Place<'_>,
    pattern: SendPattern,
    queue: u32,
) -> Result<Box<dyn Link>, Failure> {
    let context = Context::new();
    Ok(match pattern {
        SendPattern::Pair => both(
            open(context.pair0().send_high_water(queue), place)?,
            Peers::Awaited,
        ),
        // Not a short queue: what it has no room for it drops.
        SendPattern::Pub => output(open(context.publish(), place)?, false),
        SendPattern::Push => output(open(context.push().send_high_water(queue), place)?, true),
        SendPattern::Req => both(open(context.request(), place)?, Peers::Awaited),
    })
}

fn open<K: Kind>(builder: Builder<K>, place: Place<'_>) -> Result<Socket<K>, Failure> {
    let opened = match (place.bind, place.endpoint.strip_suffix(":*")) {
        // As ZeroMQ has it, for any port that is free.
        (true, Some(host)) => builder.listen(&format!("{host}:0")),
        (true, None) => builder.listen(place.endpoint),
        (false, _) => builder.dial(place.endpoint),
    };
    opened.map_err(|error: Error| place.not_there(&error))
}

impl<K: Kind> Close for Socket<K> {
    fn close(self, linger: Duration) -> Result<(), Failure> {
        Self::close(self, linger);
        Ok(())
    }

    fn endpoint(&self) -> &str {
        Self::endpoint(self)
    }

    /// NNG queues for peers that never come.
    fn has_peer(&self) -> bool {
        let counters = self.counters();
        counters.connects > counters.disconnects
    }
}
