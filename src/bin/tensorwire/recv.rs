//! `recv`: messages printed as they come.

use std::time::{Duration, Instant};

use tensorwire::Decoder;
use tensorwire::message::{NO_SCALARS, NO_TENSORS, encode_to_vec};

use crate::args::{Limits, RecvArguments, RecvPattern, Show};
use crate::endpoint::{Received, Sent, Socket, missing};
use crate::exit::{self, Done, Failure, Fault};
use crate::message::{self, Seen};
use crate::output::{Output, note};
use crate::progress::Rate;
use crate::record::Recorder;
use crate::{json, safe_text, signal};

pub(crate) fn run(arguments: &RecvArguments, output: &mut Output) -> Result<Done, Failure> {
    signal::watch()?;
    let mut recorder = arguments.save.as_deref().map(Recorder::new).transpose()?;
    let place = arguments.at.place();
    let mut socket = Socket::receiver(place, arguments.pattern)?;
    socket.tell_bound();
    let answer = encode_to_vec(NO_TENSORS, &NO_SCALARS);
    let answer = answer.map_err(|error| Failure::Could(format!("cannot encode: {error}")))?;
    let mut printer = Printer::new(arguments.show);
    let mut rate = Rate::new("received");
    let mut watch = Watch::new(arguments.limits, place.bind);
    let mut next = |watch: &mut Watch, rate: &mut Rate| {
        let received = socket.receive(signal::GLANCE, &mut |frames| {
            rate.count(frames);
            if let Some(recorder) = &mut recorder {
                recorder.save("message", frames)?;
            }
            rate.aside(|| printer.print(frames, output))
        })?;
        match received {
            Received::Message => {
                watch.heard();
                if arguments.pattern == RecvPattern::Rep
                    && socket.send(&[&answer], ANSWERING)? == Sent::NoRoom
                {
                    rate.aside(|| note("who asked takes no answer: it is dropped"));
                }
            }
            Received::Nothing => {}
            Received::Refused(fault) => {
                watch.heard();
                rate.aside(|| printer.refuse(&fault, output))?;
            }
        }
        rate.draw();
        Ok(())
    };
    let mut received = Ok(());
    while received.is_ok() && watch.goes_on(rate.messages()) {
        received = next(&mut watch, &mut rate);
    }
    rate.finish();
    let closed = socket.close(CLOSING);
    received?;
    closed?;
    match watch.end(rate.messages())? {
        Done::Whole => Ok(printer.done()),
        done => Ok(done),
    }
}

/// How long answers may still leave.
const CLOSING: Duration = Duration::from_secs(1);

/// How long who asked may take to have room for the answer, while others wait.
const ANSWERING: Duration = Duration::from_secs(1);

/// Prints message after message, malformed ones among them.
pub(crate) struct Printer {
    decoder: Decoder,
    show: Show,
    /// How many messages were malformed, or refused by the transport.
    refused: u64,
    /// Whether one stands above the next one already.
    printed: bool,
}

impl Printer {
    pub(crate) const fn new(show: Show) -> Self {
        Self {
            decoder: Decoder::new(),
            show,
            refused: 0,
            printed: false,
        }
    }

    /// How printing ended.
    pub(crate) const fn done(&self) -> Done {
        if self.refused > 0 {
            Done::SomeMalformed
        } else {
            Done::Whole
        }
    }

    /// Prints one; a reader gets it at once, not when a buffer is full.
    pub(crate) fn print(&mut self, frames: &[&[u8]], output: &mut Output) -> Result<(), Failure> {
        match Seen::look(frames, &mut self.decoder) {
            Ok(seen) if self.show.json => {
                let text = json::message(&seen, self.show.stats);
                output.json(&one_line(&text))?;
            }
            Ok(seen) => {
                if self.printed {
                    output.write(b"\n")?;
                }
                self.printed = true;
                message::show(&seen, self.show, output)?;
            }
            Err(fault) => self.fault(&fault, output)?,
        }
        output.flush()
    }

    /// Prints what became of a message that the transport refused.
    fn refuse(&mut self, fault: &Fault, output: &mut Output) -> Result<(), Failure> {
        self.fault(fault, output)?;
        output.flush()
    }

    fn fault(&mut self, fault: &Fault, output: &mut Output) -> Result<(), Failure> {
        self.refused += 1;
        output.error(&safe_text::line(&fault.to_string()));
        if self.show.json {
            output.json(&json::fault(fault))?;
        }
        Ok(())
    }
}

/// The same JSON without line breaks: between its tokens, where alone they stand, they are spaces.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// When it is time to stop.
pub(crate) struct Watch {
    limits: Limits,
    heard: Instant,
    /// Whether senders come here, or are gone to.
    bound: bool,
}

impl Watch {
    pub(crate) fn new(limits: Limits, bound: bool) -> Self {
        Self {
            limits,
            heard: Instant::now(),
            bound,
        }
    }

    /// Whether to wait for more, after so many messages.
    pub(crate) fn goes_on(&self, messages: u64) -> bool {
        let enough = self.limits.count.is_some_and(|count| messages >= count);
        !enough && !self.timed_out() && !signal::interrupted()
    }

    /// Notes that something came.
    pub(crate) fn heard(&mut self) {
        self.heard = Instant::now();
    }

    fn timed_out(&self) -> bool {
        self.limits
            .timeout
            .is_some_and(|timeout| self.heard.elapsed() >= timeout)
    }

    /// What the end means, after so many messages.
    pub(crate) fn end(&self, messages: u64) -> Result<Done, Failure> {
        let timeout = exit::seconds(self.limits.timeout.unwrap_or_default());
        match self.limits.count {
            Some(count) if messages >= count => Ok(Done::Whole),
            _ if signal::interrupted() => Ok(Done::Interrupted),
            Some(count) => Err(Failure::Could(format!(
                "timed out: {messages} of {count} messages came, then none for {timeout}"
            ))),
            None if messages == 0 => Err(Failure::Could(format!(
                "timed out: no message came for {timeout}; {}",
                missing("sender", self.bound)
            ))),
            None => Ok(Done::Whole),
        }
    }
}
