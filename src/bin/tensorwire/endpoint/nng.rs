//! Sockets of NNG.

use std::time::Duration;

use tensorwire::transport::nng::{Builder, Context, Error, Kind, Socket};

use super::{Close, Link, Place, both, input, not_there, output};
use crate::args::{RecvPattern, SendPattern};
use crate::exit::Failure;

pub(super) fn receiver(place: Place<'_>, pattern: RecvPattern) -> Result<Box<dyn Link>, Failure> {
    let context = Context::new();
    Ok(match pattern {
        RecvPattern::Pair => both(open(context.pair0(), place)?),
        RecvPattern::Pull => input(open(context.pull(), place)?),
        RecvPattern::Rep => both(open(context.reply(), place)?),
        RecvPattern::Sub => input(open(context.subscribe().topic(b""), place)?),
    })
}

pub(super) fn sender(place: Place<'_>, pattern: SendPattern) -> Result<Box<dyn Link>, Failure> {
    let context = Context::new();
    Ok(match pattern {
        SendPattern::Pair => both(open(context.pair0(), place)?),
        SendPattern::Pub => output(open(context.publish(), place)?),
        // A short queue: a message that nobody takes is soon seen to be stuck.
        SendPattern::Push => output(open(context.push().send_high_water(1), place)?),
        SendPattern::Req => both(open(context.request(), place)?),
    })
}

fn open<K: Kind>(builder: Builder<K>, place: Place<'_>) -> Result<Socket<K>, Failure> {
    let opened = if place.bind {
        builder.listen(place.endpoint)
    } else {
        builder.dial(place.endpoint)
    };
    opened.map_err(|error: Error| not_there(place, &error))
}

impl<K: Kind> Close for Socket<K> {
    fn close(self, linger: Duration) -> Result<(), Failure> {
        Self::close(self, linger);
        Ok(())
    }

    fn endpoint(&self) -> &str {
        Self::endpoint(self)
    }
}
