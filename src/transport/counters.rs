//! What a transport has done so far.

#[cfg(feature = "tracing")]
use core::fmt::{self, Write as _};

use super::{Cap, ErrorKind, TransportError};
use crate::convert::to_u64;

/// What a transport has done since it was made.
///
/// Counting is a few additions on the caller's thread, and always on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// Messages handed over by a send.
    pub messages_sent: u64,
    /// The bytes in their frames.
    pub bytes_sent: u64,
    /// Messages given to the caller of a receive.
    pub messages_received: u64,
    /// The bytes in their frames.
    pub bytes_received: u64,
    /// Sends that found no room within their time. A future counts each time that it
    /// tries.
    pub queue_full: u64,
    /// Messages known to be lost: cut by a lost connection, or by the
    /// transport's own rules (a publisher whose subscriber has no room).
    pub dropped: u64,
    /// Received messages refused for [`Caps::frame_bytes`](super::Caps::frame_bytes).
    pub refused_frame_bytes: u64,
    /// Received messages refused for [`Caps::frames`](super::Caps::frames).
    pub refused_frames: u64,
    /// Received messages refused for [`Caps::message_bytes`](super::Caps::message_bytes).
    pub refused_message_bytes: u64,
    /// Received messages refused because they are none: [`ErrorKind::Malformed`].
    pub refused_malformed: u64,
    /// Connections made or accepted, where the transport can tell: NNG always, ZeroMQ
    /// if its builder was told to, shared memory and the loopback never.
    pub connects: u64,
    /// Connections lost, where the transport can tell. A reconnect is one more
    /// connect after a disconnect.
    pub disconnects: u64,
}

/// A transport that counts.
pub trait Observed {
    /// Returns what it has done so far.
    fn counters(&self) -> Counters;
}

impl<T: Observed + ?Sized> Observed for &mut T {
    fn counters(&self) -> Counters {
        (**self).counters()
    }
}

#[cfg(feature = "alloc")]
impl<T: Observed + ?Sized> Observed for alloc::boxed::Box<T> {
    fn counters(&self) -> Counters {
        (**self).counters()
    }
}

/// Counts for a transport; with feature `tracing`, also tells of what went wrong.
///
/// The events have the target `tensorwire::transport`. They hold the name of the
/// transport, numbers, and the text of the error: escaped, so that an error which
/// quotes its peer writes no line of its own and moves no cursor. The errors of this
/// crate's transports quote nobody. A call that only ran out of time is counted and
/// no event, as a caller who polls makes many of those.
///
/// # Examples
///
/// ```
/// use tensorwire::transport::Recorder;
///
/// let mut recorder = Recorder::new("mine");
/// recorder.sent(4096);
/// assert_eq!(recorder.counters().bytes_sent, 4096);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Recorder {
    transport: &'static str,
    counters: Counters,
}

impl Recorder {
    /// Makes a recorder for the transport of this name.
    #[must_use]
    pub const fn new(transport: &'static str) -> Self {
        const NONE: Counters = Counters {
            messages_sent: 0,
            bytes_sent: 0,
            messages_received: 0,
            bytes_received: 0,
            queue_full: 0,
            dropped: 0,
            refused_frame_bytes: 0,
            refused_frames: 0,
            refused_message_bytes: 0,
            refused_malformed: 0,
            connects: 0,
            disconnects: 0,
        };
        Self {
            transport,
            counters: NONE,
        }
    }

    /// Returns the counters as they stand.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Counts a message of `bytes` that was sent.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        add(&mut self.counters.messages_sent, 1);
        add(&mut self.counters.bytes_sent, bytes);
    }

    /// Counts a message of `bytes` that was received.
    #[inline]
    pub fn received(&mut self, bytes: usize) {
        add(&mut self.counters.messages_received, 1);
        add(&mut self.counters.bytes_received, bytes);
    }

    /// Counts a send that failed.
    pub fn send_failed<E: TransportError>(&mut self, error: &E) {
        match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                add(&mut self.counters.queue_full, 1);
                return;
            }
            ErrorKind::Disconnected => add(&mut self.counters.dropped, 1),
            _ => {}
        }
        self.report("send failed", error);
    }

    /// Counts a receive that failed.
    pub fn recv_failed<E: TransportError>(&mut self, error: &E) {
        match error.kind() {
            // Nothing was there: that is no event.
            ErrorKind::TimedOut | ErrorKind::WouldBlock => return,
            ErrorKind::Disconnected => add(&mut self.counters.dropped, 1),
            ErrorKind::Malformed => add(&mut self.counters.refused_malformed, 1),
            _ => {}
        }
        match error.refused().map(|refused| refused.cap()) {
            Some(Cap::FrameBytes) => add(&mut self.counters.refused_frame_bytes, 1),
            Some(Cap::Frames) => add(&mut self.counters.refused_frames, 1),
            Some(Cap::MessageBytes) => add(&mut self.counters.refused_message_bytes, 1),
            None => {}
        }
        self.report("receive failed", error);
    }

    /// Counts messages lost that no error tells of.
    pub fn dropped(&mut self, messages: u64) {
        self.counters.dropped = self.counters.dropped.saturating_add(messages);
        #[cfg(feature = "tracing")]
        tracing::debug!(target: TARGET, transport = self.transport, messages, "dropped");
    }

    /// Counts a connection made or accepted.
    pub fn connected(&mut self) {
        add(&mut self.counters.connects, 1);
        #[cfg(feature = "tracing")]
        tracing::debug!(target: TARGET, transport = self.transport, "connected");
    }

    /// Counts a connection lost.
    pub fn disconnected(&mut self) {
        add(&mut self.counters.disconnects, 1);
        #[cfg(feature = "tracing")]
        tracing::debug!(target: TARGET, transport = self.transport, "disconnected");
    }

    fn report<E: TransportError>(&self, what: &'static str, error: &E) {
        #[cfg(feature = "tracing")]
        tracing::warn!(target: TARGET, transport = self.transport, kind = ?error.kind(), error = %Escaped(error), "{what}");
        #[cfg(not(feature = "tracing"))]
        let _ = (self.transport, what, error);
    }
}

/// Adds without ever wrapping.
fn add(counter: &mut u64, amount: usize) {
    *counter = counter.saturating_add(to_u64(amount));
}

/// A text without line breaks, control characters and what is not ASCII.
#[cfg(feature = "tracing")]
struct Escaped<'a, E>(&'a E);

#[cfg(feature = "tracing")]
impl<E: fmt::Display> fmt::Display for Escaped<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escaper<'f, 'a>(&'f mut fmt::Formatter<'a>);

        impl fmt::Write for Escaper<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                text.chars().try_for_each(|c| match c {
                    ' '..='~' => self.0.write_char(c),
                    c => fmt::Display::fmt(&c.escape_default(), self.0),
                })
            }
        }

        write!(Escaper(f), "{}", self.0)
    }
}

/// The target of all events.
#[cfg(feature = "tracing")]
const TARGET: &str = "tensorwire::transport";

#[cfg(test)]
mod tests {
    use core::fmt;

    use super::*;
    use crate::transport::{CapExceeded, Caps};

    #[derive(Debug)]
    struct Failure(ErrorKind, Option<CapExceeded>);

    impl fmt::Display for Failure {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("failure")
        }
    }

    impl core::error::Error for Failure {}

    impl TransportError for Failure {
        fn kind(&self) -> ErrorKind {
            self.0
        }

        fn refused(&self) -> Option<CapExceeded> {
            self.1
        }
    }

    fn refused(caps: Caps, lengths: &[usize]) -> Failure {
        let mut meter = caps.meter();
        for &len in lengths {
            meter.admit(len);
        }
        Failure(ErrorKind::CapExceeded, meter.finish().err())
    }

    #[test]
    fn each_thing_is_counted_once_and_where_it_belongs() {
        let mut recorder = Recorder::new("test");
        recorder.sent(10);
        recorder.sent(usize::MAX);
        recorder.received(7);
        for kind in [
            ErrorKind::TimedOut,
            ErrorKind::WouldBlock,
            ErrorKind::Disconnected,
            ErrorKind::Closed,
        ] {
            recorder.send_failed(&Failure(kind, None));
            recorder.recv_failed(&Failure(kind, None));
        }
        let caps = Caps::new()
            .with_frame_bytes(1)
            .with_frames(2)
            .with_message_bytes(1);
        for lengths in [&[2][..], &[0, 0, 0], &[1, 1]] {
            recorder.recv_failed(&refused(caps, lengths));
        }
        recorder.recv_failed(&Failure(ErrorKind::Malformed, None));
        recorder.dropped(5);
        recorder.connected();
        recorder.disconnected();
        let expected = Counters {
            messages_sent: 2,
            bytes_sent: u64::MAX,
            messages_received: 1,
            bytes_received: 7,
            queue_full: 2,
            dropped: 7,
            refused_frame_bytes: 1,
            refused_frames: 1,
            refused_message_bytes: 1,
            refused_malformed: 1,
            connects: 1,
            disconnects: 1,
        };
        assert_eq!(recorder.counters(), expected);
    }
}
