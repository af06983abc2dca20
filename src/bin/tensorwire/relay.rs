//! `relay`: messages passed on unchanged, and recorded.

use std::time::{Duration, Instant};

use crate::args::{RecvPattern, RelayArguments};
use crate::endpoint::{self, Link, Place, Received};
use crate::exit::{Done, Failure};
use crate::output::note;
use crate::progress::Rate;
use crate::record::Recorder;
use crate::recv::Watch;
use crate::{safe_text, signal};

pub(crate) fn run(arguments: &RelayArguments) -> Result<Done, Failure> {
    signal::watch()?;
    let recorder = arguments.tee.as_deref().map(Recorder::new).transpose()?;
    let from = Place {
        transport: arguments.from_transport,
        endpoint: &arguments.from,
        bind: !arguments.from_connect,
    };
    let to = Place {
        transport: arguments.to_transport,
        endpoint: &arguments.to,
        bind: arguments.to_bind,
    };
    let mut relay = Relay {
        from: endpoint::receiver(from, arguments.pattern)?,
        to: endpoint::sender(to, arguments.pattern.onward())?,
        recorder,
        rate: Rate::new("relayed"),
        replies: 0,
    };
    for (link, place) in [(&relay.from, from), (&relay.to, to)] {
        if place.bind {
            relay
                .rate
                .aside(|| note(&format!("bound to {}", link.endpoint())));
        }
    }
    let mut watch = Watch::new(arguments.limits);
    let passed = relay.pass(arguments.pattern, &mut watch);
    relay.rate.finish();
    let linger = if signal::interrupted() {
        BRIEF
    } else {
        CLOSING
    };
    let counted = relay.counted();
    relay.from.close(linger)?;
    relay.to.close(linger)?;
    passed?;
    watch.end(counted)
}

/// How long what was passed on may still leave, at the end and after Ctrl-C.
const CLOSING: Duration = Duration::from_secs(10);
const BRIEF: Duration = Duration::from_millis(200);

struct Relay {
    from: Box<dyn Link>,
    to: Box<dyn Link>,
    recorder: Option<Recorder>,
    rate: Rate,
    /// Messages that are not counted: who asks for ten requests does not ask for five.
    replies: u64,
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Back,
    There,
}

impl Relay {
    fn pass(&mut self, pattern: RecvPattern, watch: &mut Watch) -> Result<(), Failure> {
        while watch.goes_on(self.counted()) {
            // With pair both ends are looked at in turn, each for as long as nothing comes there.
            let wait = match pattern {
                RecvPattern::Pair => TURN,
                _ => signal::GLANCE,
            };
            let mut came = self.one(Way::There, wait)?;
            if came && pattern == RecvPattern::Rep {
                self.reply(REPLY)?;
            }
            if pattern == RecvPattern::Pair && watch.goes_on(self.counted()) {
                came |= self.one(Way::Back, TURN)?;
            }
            if came {
                watch.heard();
            }
            self.rate.draw();
        }
        Ok(())
    }

    /// How many messages count for `--count`.
    const fn counted(&self) -> u64 {
        self.rate.messages().saturating_sub(self.replies)
    }

    /// Waits for the reply to a request, and takes it back.
    fn reply(&mut self, timeout: Duration) -> Result<(), Failure> {
        let started = Instant::now();
        while !signal::interrupted() && started.elapsed() < timeout {
            if self.one(Way::Back, signal::GLANCE)? {
                self.replies += 1;
                return Ok(());
            }
        }
        if !signal::interrupted() {
            let text = format!("no reply from {} for {timeout:?}", self.to.endpoint());
            self.rate.aside(|| note(&text));
        }
        Ok(())
    }

    /// Passes one message on, if one comes within `wait`.
    fn one(&mut self, way: Way, wait: Duration) -> Result<bool, Failure> {
        let Self {
            from,
            to,
            recorder,
            rate,
            ..
        } = self;
        let (from, to, what) = match way {
            Way::Back => (to, from, "back"),
            Way::There => (from, to, "message"),
        };
        let received = from.receive(wait, &mut |frames| {
            if let Some(recorder) = recorder {
                recorder.save(what, frames)?;
            }
            if endpoint::send_until(&mut **to, frames, None)? {
                rate.count(frames);
            }
            Ok(())
        })?;
        match received {
            Received::Message => Ok(true),
            Received::Nothing => Ok(false),
            Received::Refused(text) => {
                rate.aside(|| note(&format!("refused: {}", safe_text::line(&text))));
                Ok(false)
            }
        }
    }
}

/// How long one end of a pair is looked at before the other.
const TURN: Duration = Duration::from_millis(2);

/// How long a reply may take.
const REPLY: Duration = Duration::from_secs(600);
