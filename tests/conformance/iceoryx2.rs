//! Shared memory, over iceoryx2.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
#[cfg(feature = "tokio")]
use std::task::{self, Poll};
#[cfg(feature = "tokio")]
use std::{io, time::Duration};

use tensorwire::transport::conformance::{Backend, Check, Setup};
use tensorwire::transport::iceoryx2::{Builder, Error as ShmError, Message, Receiver, Sender};
#[cfg(feature = "tokio")]
use tensorwire::transport::tokio::{Direction, Readiness};
use tensorwire::transport::{Counters, Observed, Part, RecvFrames, SendFrames, Wait};

use crate::{Planned, plan};

pub(crate) fn backends() -> Vec<Planned> {
    vec![
        plan(SharedMemory::new("iceoryx2")),
        #[cfg(feature = "tokio")]
        crate::awaited::plan_awaited(SharedMemory::new("iceoryx2")),
    ]
}

/// How much is free in /dev/shm, in KiB, as far as `df` can tell.
fn free_kib() -> Option<u64> {
    let df = Command::new("df").args(["-kP", "/dev/shm"]).output().ok()?;
    let text = String::from_utf8(df.stdout).ok()?;
    text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

/// What the largest payloads take at most, in KiB.
const ENOUGH: u64 = 3 << 20;

/// Channels in a directory of their own, which is removed in the end.
struct SharedMemory {
    name: &'static str,
    directory: PathBuf,
    next: AtomicU32,
}

impl SharedMemory {
    fn new(name: &'static str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = format!("tensorwire-conformance-{}-shm{number}", std::process::id());
        Self {
            name,
            directory: std::env::temp_dir().join(directory),
            next: AtomicU32::new(0),
        }
    }

    fn channel(&self, name: &str, setup: &Setup) -> Result<Builder, Box<dyn Error + Send + Sync>> {
        let caps = setup.caps();
        // Places for what the caps allow, with its table and padding, and for what the
        // checks send that is over the caps: so that it is the receiver who refuses it.
        let table = caps.frames().saturating_mul(16 + 63);
        let place = caps.message_bytes().saturating_add(table);
        Ok(Builder::new(name)
            .directory(&self.directory)
            .caps(caps)
            .depth(usize::try_from(setup.high_water())?)
            .message_bytes(place.saturating_add(100_000))
            .recv_timeout(Some(setup.timeout()))
            .send_timeout(Some(setup.timeout())))
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // It need not be there.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// An end, and the name of its channel.
struct End<T> {
    transport: T,
    name: String,
}

impl Backend for SharedMemory {
    type Sender = End<Sender>;
    type Receiver = End<Receiver>;

    fn name(&self) -> &str {
        self.name
    }

    fn open(
        &self,
        setup: &Setup,
    ) -> Result<(End<Sender>, End<Receiver>), Box<dyn Error + Send + Sync>> {
        let name = format!("channel {}", self.next.fetch_add(1, Ordering::Relaxed));
        let channel = self.channel(&name, setup)?;
        // Known to the receiver from the first: checks use both ends on one thread.
        let sender = End {
            transport: channel.clone().sender()?,
            name: name.clone(),
        };
        let transport = channel.receiver()?;
        Ok((sender, End { transport, name }))
    }

    fn restart_receiver(
        &self,
        receiver: End<Receiver>,
        setup: &Setup,
    ) -> Result<Option<End<Receiver>>, Box<dyn Error + Send + Sync>> {
        let End { transport, name } = receiver;
        drop(transport);
        let transport = self.channel(&name, setup)?.receiver()?;
        Ok(Some(End { transport, name }))
    }

    fn restart_sender(
        &self,
        sender: End<Sender>,
        setup: &Setup,
    ) -> Result<Option<End<Sender>>, Box<dyn Error + Send + Sync>> {
        let End { transport, name } = sender;
        drop(transport);
        let transport = self.channel(&name, setup)?.sender()?;
        Ok(Some(End { transport, name }))
    }

    fn sender_counters(&self, sender: &End<Sender>) -> Option<Counters> {
        Some(sender.transport.counters())
    }

    fn skip(&self, check: Check) -> Option<&'static str> {
        // A full one would kill the process, by SIGBUS.
        let large = check == Check::PayloadSizes && free_kib().is_some_and(|free| free < ENOUGH);
        large.then_some("less than 3 GiB are free in /dev/shm")
    }

    fn receiver_counters(&self, receiver: &End<Receiver>) -> Option<Counters> {
        Some(receiver.transport.counters())
    }
}

impl SendFrames for End<Sender> {
    type SendError = ShmError;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), ShmError> {
        self.transport.send_frames(frames, wait)
    }

    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), ShmError> {
        self.transport.send_parts(parts, wait)
    }
}

impl RecvFrames for End<Receiver> {
    type Message = Message;
    type RecvError = ShmError;

    fn recv_frames(&mut self, message: &mut Message, wait: Wait) -> Result<(), ShmError> {
        self.transport.recv_frames(message, wait)
    }
}

#[cfg(feature = "tokio")]
impl<T: Readiness> Readiness for End<T> {
    type Registration = T::Registration;

    fn register(&mut self) -> io::Result<T::Registration> {
        self.transport.register()
    }

    fn poll_ready(
        &mut self,
        registration: &mut T::Registration,
        direction: Direction,
        cx: &mut task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.transport.poll_ready(registration, direction, cx)
    }

    fn timeout(&self, direction: Direction) -> Option<Duration> {
        self.transport.timeout(direction)
    }
}
