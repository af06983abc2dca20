//! What a transport tells of through `tracing`: what went wrong, once, and no peer's words.

#![cfg(all(feature = "tracing", feature = "zmq"))]

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use tensorwire::transport::zmq::Context;
use tensorwire::transport::{
    Caps, ErrorKind, Recorder, RecvFrames, SendFrames, TransportError, Wait,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps each event as a line: level, target, fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

/// An error of somebody's transport that quotes its peer.
#[derive(Debug)]
struct Quotes(&'static str);

impl fmt::Display for Quotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peer said {}", self.0)
    }
}

impl std::error::Error for Quotes {}

impl TransportError for Quotes {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

// One test: the subscriber is the process's.
#[test]
fn what_went_wrong_is_told_once_with_numbers_and_no_words_of_the_peer() {
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone()).unwrap();

    let context = Context::new();
    let caps = Caps::new().with_frame_bytes(100).with_frames(3);
    let mut pull = context.pull().caps(caps).bind("inproc://told").unwrap();
    let mut push = context.push().connect("inproc://told").unwrap();
    push.send(&[b"fine"]).unwrap();
    pull.recv().unwrap();
    let mut message = Default::default();
    assert!(pull.recv_frames(&mut message, Wait::Never).is_err());
    assert_eq!(lines.take(), Vec::<String>::new(), "nothing went wrong");

    let warning = format!("{} tensorwire::transport", Level::WARN);
    push.send(&[&[b'!'; 101]]).unwrap();
    push.send(&[b"evil\n", b"\x1b[2J", b"a", b"b"]).unwrap();
    assert!(pull.recv().is_err());
    assert!(pull.recv().is_err());
    assert!(push.send(&[]).is_err());
    let cap = |text: &str| {
        format!("{warning} message=receive failed transport=\"zmq\" kind=CapExceeded error={text}")
    };
    assert_eq!(
        lines.take(),
        [
            cap("frame of 101 bytes, at most 100 allowed"),
            cap("message of 4 frames, at most 3 allowed"),
            format!(
                "{warning} message=send failed transport=\"zmq\" kind=InvalidInput error=message without frames"
            ),
        ]
    );

    Recorder::new("theirs").recv_failed(&Quotes("\n\x1b[31mERROR \u{202e}caf\u{e9}"));
    assert_eq!(
        lines.take(),
        [format!(
            "{warning} message=receive failed transport=\"theirs\" kind=Malformed error=peer said \\n\\u{{1b}}[31mERROR \\u{{202e}}caf\\u{{e9}}"
        )]
    );
}
