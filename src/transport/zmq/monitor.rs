//! Counting connections, for those who ask.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use alloc::format;
use alloc::sync::Arc;

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use super::socket::millis;
use super::{Context, Error, raw};
use crate::transport::Recorder;

/// Counts the connections of one socket, on a thread of its own.
///
/// libzmq tells of connections through a PAIR socket, and its I/O thread waits where
/// nobody reads that: so it is read at once, and not when the socket is next used.
pub(super) struct Monitor {
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Counts {
    connects: AtomicU64,
    disconnects: AtomicU64,
    /// Whether the thread is to end.
    ends: AtomicBool,
}

impl Monitor {
    /// Starts to count the connections of `socket`.
    pub(super) fn start(context: &Context, socket: &mut ::zmq::Socket) -> Result<Self, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let endpoint = format!("inproc://tensorwire-monitor-{number}");
        let counts = Arc::<Counts>::default();
        let shared = counts.clone();
        // What can fail comes before what cannot be taken back: once there are events,
        // libzmq waits for them to be read, in the end too.
        let (give, taken) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("tensorwire zmq".into())
            .spawn(move || {
                if let Ok(events) = taken.recv() {
                    count(&events, &shared);
                }
            })
            .map_err(|error| Error::System {
                errno: error.raw_os_error().unwrap_or(zmq_sys::errno::EAGAIN),
            })?;
        let events = context.inner().socket(::zmq::SocketType::PAIR)?;
        events.set_rcvtimeo(millis(LONGEST_SLEEP))?;
        retrying(|| events.connect(&endpoint))?;
        retrying(|| socket.monitor(&endpoint, EVENTS))?;
        // The thread waits for it.
        let _ = give.send(events);
        Ok(Self {
            counts,
            thread: Some(thread),
        })
    }

    /// Ends the counting; the thread is gone when this returns, and with it its handle
    /// of the context.
    pub(super) fn stop(mut self, socket: &mut ::zmq::Socket) {
        self.counts.ends.store(true, Ordering::Relaxed);
        // If it fails, the context was terminated, which ends the thread too.
        let _ = raw::end_monitor(socket);
        if let Some(thread) = self.thread.take() {
            // It does not panic, and there is nobody to tell.
            let _ = thread.join();
        }
    }

    pub(super) fn connects(&self) -> u64 {
        self.counts.connects.load(Ordering::Relaxed)
    }

    pub(super) fn disconnects(&self) -> u64 {
        self.counts.disconnects.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}

/// Makes a call until no signal interrupts it.
fn retrying(mut call: impl FnMut() -> ::zmq::Result<()>) -> ::zmq::Result<()> {
    loop {
        match call() {
            Err(::zmq::Error::EINTR) => {}
            done => return done,
        }
    }
}

/// Counts events until the last one, or until the context is terminated.
fn count(events: &::zmq::Socket, counts: &Counts) {
    // For its events.
    let mut recorder = Recorder::new("zmq");
    let mut frame = ::zmq::Message::new();
    loop {
        if !next(events, &mut frame, counts) {
            return;
        }
        // An event is its number and a value, in one frame; the address behind it is
        // the peer's business.
        let event = match frame.first_chunk() {
            Some(&number) => i32::from(u16::from_ne_bytes(number)),
            None => 0,
        };
        while frame.get_more() {
            if !next(events, &mut frame, counts) {
                return;
            }
        }
        if event & (ACCEPTED | CONNECTED) != 0 {
            recorder.connected();
        } else if event & DISCONNECTED != 0 {
            recorder.disconnected();
        } else if event & STOPPED != 0 {
            return;
        }
        let counted = recorder.counters();
        counts.connects.store(counted.connects, Ordering::Relaxed);
        counts
            .disconnects
            .store(counted.disconnects, Ordering::Relaxed);
    }
}

/// Waits for the next frame; tells whether there is one, and the counting goes on.
///
/// It does not take the last event to end: a signal to the thread that ends the events
/// makes libzmq lose that one.
fn next(events: &::zmq::Socket, frame: &mut ::zmq::Message, counts: &Counts) -> bool {
    loop {
        match events.recv(frame, 0) {
            Ok(()) => return true,
            Err(::zmq::Error::EAGAIN) if counts.ends.load(Ordering::Relaxed) => return false,
            Err(::zmq::Error::EAGAIN | ::zmq::Error::EINTR) => {}
            Err(_) => return false,
        }
    }
}

/// How long the thread sleeps at most before it looks whether it is to end.
const LONGEST_SLEEP: Duration = Duration::from_millis(250);

/// The events of libzmq, by their numbers in zmq.h.
const CONNECTED: i32 = 0x0001;
const ACCEPTED: i32 = 0x0020;
const DISCONNECTED: i32 = 0x0200;
const STOPPED: i32 = 0x0400;

/// Those that are asked for.
const EVENTS: i32 = CONNECTED | ACCEPTED | DISCONNECTED | STOPPED;
