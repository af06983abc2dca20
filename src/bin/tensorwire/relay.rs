//! `relay`: messages passed on unchanged, and recorded.

use std::mem;
use std::time::{Duration, Instant};

use crate::args::{RecvPattern, RelayArguments};
use crate::endpoint::{Place, Received, Socket};
use crate::exit::{self, Done, Failure};
use crate::output::note;
use crate::progress::Rate;
use crate::record::Recorder;
use crate::recv::Watch;
use crate::{safe_text, send, signal};

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
        from: Socket::receiver(from, arguments.pattern)?,
        to: open(to, arguments.pattern)?,
        recorder,
        rate: Rate::new("relayed"),
        replies: 0,
        in_hand: false,
        patience: arguments.limits.timeout,
    };
    relay.from.tell_bound();
    relay.to.tell_bound();
    let mut watch = Watch::new(arguments.limits, from.bind);
    let passed = relay.pass(arguments.pattern, to, &mut watch);
    relay.rate.finish();
    if relay.in_hand {
        note("one more message came, which could not be passed on");
    }
    let linger = send::linger(CLOSING);
    let done = passed.and_then(|()| watch.end(relay.counted()));
    let closed = relay.from.close(linger);
    send::close(relay.to, linger, done.and_then(|done| closed.and(Ok(done))))
}

/// Opens the socket that messages go by, whose sizes are not known before they come.
fn open(to: Place<'_>, pattern: RecvPattern) -> Result<Socket, Failure> {
    Socket::sender(to, pattern.onward(), 0)
}

/// How long what was passed on may still leave.
const CLOSING: Duration = Duration::from_secs(10);

struct Relay {
    from: Socket,
    to: Socket,
    recorder: Option<Recorder>,
    rate: Rate,
    /// Messages that are not counted: who asks for ten requests does not ask for five.
    replies: u64,
    /// Whether a message came that nobody has taken.
    in_hand: bool,
    /// How long to wait for somebody to take a message, or to reply.
    patience: Option<Duration>,
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Back,
    There,
}

impl Relay {
    fn pass(
        &mut self,
        pattern: RecvPattern,
        to: Place<'_>,
        watch: &mut Watch,
    ) -> Result<(), Failure> {
        while watch.goes_on(self.counted()) {
            // With pair both ends are looked at in turn, each for as long as nothing comes there.
            let wait = match pattern {
                RecvPattern::Pair => TURN,
                _ => signal::GLANCE,
            };
            let mut received = self.pass_one(Way::There, wait)?;
            if matches!(received, Received::Message) && pattern == RecvPattern::Rep {
                self.reply(to)?;
            }
            if pattern == RecvPattern::Pair && watch.goes_on(self.counted()) {
                let back = self.pass_one(Way::Back, TURN)?;
                if matches!(received, Received::Nothing) {
                    received = back;
                }
            }
            if !matches!(received, Received::Nothing) {
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
    fn reply(&mut self, to: Place<'_>) -> Result<(), Failure> {
        let timeout = self.patience.map_or(REPLY, |patience| patience.min(REPLY));
        let started = Instant::now();
        while !signal::interrupted() {
            match self.pass_one(Way::Back, signal::GLANCE)? {
                Received::Message => {
                    self.replies += 1;
                    return Ok(());
                }
                // A reply it was, if none to take back.
                Received::Refused(_) => return Ok(()),
                Received::Nothing if started.elapsed() < timeout => self.rate.draw(),
                Received::Nothing => break,
            }
        }
        if signal::interrupted() {
            return Ok(());
        }
        let (endpoint, timeout) = (self.to.endpoint(), exit::seconds(timeout));
        let text = format!("no reply from {endpoint} for {timeout}");
        // If it comes after all, it must not be taken for the reply to the next request.
        if to.bind {
            return Err(Failure::Could(format!(
                "{text}: ended, as a late one would go to who asks next"
            )));
        }
        self.rate.aside(|| note(&format!("{text}: given up")));
        // Another socket does not get it.
        let again = open(to, RecvPattern::Rep)?;
        mem::replace(&mut self.to, again).close(Duration::ZERO)?;
        Ok(())
    }

    /// Passes one message on, if one comes within `wait`.
    fn pass_one(&mut self, way: Way, wait: Duration) -> Result<Received, Failure> {
        let Self {
            from,
            to,
            recorder,
            rate,
            in_hand,
            patience,
            ..
        } = self;
        let (from, to, what) = match way {
            Way::Back => (to, from, "back"),
            Way::There => (from, to, "message"),
        };
        let received = from.receive(wait, &mut |frames| {
            *in_hand = true;
            if let Some(recorder) = recorder {
                recorder.save(what, frames)?;
            }
            if to.send_until(frames, *patience)? {
                rate.count(frames);
                *in_hand = false;
            }
            Ok(())
        })?;
        if let Received::Refused(fault) = &received {
            rate.aside(|| note(&format!("refused: {}", safe_text::line(&fault.text))));
        }
        Ok(received)
    }
}

/// How long one end of a pair is looked at before the other.
const TURN: Duration = Duration::from_millis(2);

/// How long a reply may take.
const REPLY: Duration = Duration::from_secs(600);
