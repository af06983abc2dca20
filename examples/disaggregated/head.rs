//! The head node: sockets around a [`Coordinator`].
//!
//! ```text
//!   submit ---> +-------------+ ---> PUSH, connected, one for each worker: work and control messages
//!               | Coordinator |
//!   turn   <--- +-------------+ <--- PULL, bound, one for each role: control messages and results
//! ```
//!
//! To serve clients of your own, call [`HeadNode::submit`] for what they send and
//! [`HeadNode::turn`] again and again, which says how each request ended.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tensorwire::transfer::coordinator::{Coordinator, Event, Settings, Topology, Workers};
use tensorwire::transfer::{RequestId, Role};
use tensorwire::transport::{ErrorKind, Frames, RecvFrames, SendFrames, TransportError, Wait, zmq};

use crate::Result;

/// How many requests a worker has at a time.
pub(crate) const CAPACITY: u32 = 4;

/// How long the last messages may take to leave.
const LINGER: Duration = Duration::from_secs(1);

/// The sockets that workers send their results to, before it is known where they are.
pub(crate) struct Results {
    context: zmq::Context,
    sockets: Vec<(Role, zmq::Socket<zmq::Pull>)>,
}

pub(crate) struct HeadNode {
    coordinator: Coordinator,
    start: Instant,
    results: Vec<(Role, zmq::Socket<zmq::Pull>)>,
    work: BTreeMap<(Role, usize), zmq::Socket<zmq::Push>>,
    message: zmq::Message,
    /// Where the coordinator writes its messages.
    buffer: Vec<u8>,
    _context: zmq::Context,
}

impl Results {
    /// Binds one socket for each role.
    pub(crate) fn bind(endpoints: &[(Role, String)]) -> Result<Self> {
        let context = zmq::Context::new();
        let bind = |(role, endpoint): &(Role, String)| -> Result<_> {
            let socket = context.pull().bind(endpoint);
            Ok((
                *role,
                socket.map_err(|error| format!("{endpoint}: {error}"))?,
            ))
        };
        let sockets = endpoints.iter().map(bind).collect::<Result<_>>()?;
        Ok(Self { context, sockets })
    }

    /// Where the workers of a role are to send their results.
    pub(crate) fn endpoint(&self, role: Role) -> Option<&str> {
        let mut sockets = self.sockets.iter();
        let (_, socket) = sockets.find(|(of, _)| *of == role)?;
        Some(socket.endpoint())
    }

    /// Connects to the workers, each at the endpoint where it takes work.
    pub(crate) fn connect(
        self,
        workers: &[(Role, String)],
        settings: Settings,
    ) -> Result<HeadNode> {
        let mut work = BTreeMap::new();
        let of = |role| {
            let of_role = workers.iter().filter(move |(of, _)| *of == role);
            of_role.map(|(_, endpoint)| endpoint.as_str())
        };
        for (role, _) in &self.sockets {
            for (index, endpoint) in of(*role).enumerate() {
                let socket = self.context.push().linger(LINGER).connect(endpoint);
                let socket = socket.map_err(|error| format!("{endpoint}: {error}"))?;
                work.insert((*role, index), socket);
            }
        }
        let workers = |role| Workers::new(of(role), CAPACITY);
        let (denoisers, decoders) = (workers(Role::Denoiser), workers(Role::Decoder));
        let topology = if self.sockets.iter().any(|(role, _)| *role == Role::Encoder) {
            Topology::new(workers(Role::Encoder), denoisers, decoders)
        } else {
            let (prompts, images) = (workers(Role::PromptEncoder), workers(Role::ImageEncoder));
            Topology::with_split_encoder(prompts, images, denoisers, decoders)
        };
        Ok(HeadNode {
            coordinator: Coordinator::new(topology, settings)?,
            start: Instant::now(),
            results: self.sockets,
            work,
            message: zmq::Message::default(),
            buffer: Vec::new(),
            _context: self.context,
        })
    }
}

impl HeadNode {
    /// Takes a client's request; `work` goes to the first role as it is.
    pub(crate) fn submit(&mut self, request: &str, work: Vec<u8>) -> Result<()> {
        let now = self.start.elapsed();
        self.coordinator
            .handle_request(&RequestId::from(request), work, now)?;
        self.transmit()
    }

    /// Waits for messages, up to `at_most`, and handles what is there.
    ///
    /// `on` gets what happened, and the message it happened by: with
    /// [`Event::Finished`] comes the result.
    pub(crate) fn turn(
        &mut self,
        at_most: Duration,
        mut on: impl FnMut(Event, &zmq::Message) -> Result<()>,
    ) -> Result<()> {
        let now = self.start.elapsed();
        let due = self.coordinator.poll_timeout();
        let wait = due.map_or(at_most, |due| due.saturating_sub(now).min(at_most));
        let ready = poll(&self.results, wait)?;

        for (index, (role, socket)) in self.results.iter_mut().enumerate() {
            if !ready.contains(&index) {
                continue;
            }
            while received(socket.recv_frames(&mut self.message, Wait::Never))? {
                let now = self.start.elapsed();
                let frames = self.message.frames();
                if let Err(error) = self.coordinator.handle_frames(*role, frames, now) {
                    // A worker's fault, which harms nobody else.
                    eprintln!("head node: a message from {role}: {error}");
                }
                while let Some(event) = self.coordinator.poll_event() {
                    on(event, &self.message)?;
                }
            }
        }
        self.message.clear();
        self.coordinator.handle_timeout(self.start.elapsed());
        while let Some(event) = self.coordinator.poll_event() {
            on(event, &self.message)?;
        }
        self.transmit()
    }

    /// Takes note that a worker's process has ended: what it had is begun anew elsewhere, or
    /// waits until it registers again. The next [`turn`](Self::turn) says which requests those are.
    pub(crate) fn lost(&mut self, role: Role, worker: usize) -> Result<()> {
        let now = self.start.elapsed();
        self.coordinator.handle_lost(role, worker, now);
        self.transmit()
    }

    pub(crate) const fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    fn transmit(&mut self) -> Result<()> {
        while let Some(outgoing) = self.coordinator.poll_transmit(&mut self.buffer) {
            let socket = self.work.get_mut(&(outgoing.role(), outgoing.worker()));
            let socket = socket.ok_or("a message to a worker that is not there")?;
            match socket.try_send(&outgoing.frames()) {
                // It is as if it were lost on the way: the request runs into its timeout.
                Err(error) if error.kind().is_wait() => {
                    eprintln!("head node: {} takes nothing", outgoing.role());
                }
                sent => sent?,
            }
        }
        Ok(())
    }
}

/// Waits until a socket has a message, and returns which of them have.
fn poll(sockets: &[(Role, zmq::Socket<zmq::Pull>)], wait: Duration) -> Result<Vec<usize>> {
    let items = sockets
        .iter()
        .map(|(_, socket)| socket.poll_item(::zmq::POLLIN));
    let mut items: Vec<_> = items.collect();
    // Rounded up, so as not to wake before it is time.
    let milliseconds = wait.as_micros().div_ceil(1000);
    match ::zmq::poll(&mut items, i64::try_from(milliseconds)?) {
        // A signal came.
        Err(::zmq::Error::EINTR) => return Ok(Vec::new()),
        polled => polled?,
    };
    let readable = items
        .iter()
        .enumerate()
        .filter(|(_, item)| item.is_readable());
    Ok(readable.map(|(index, _)| index).collect())
}

/// Whether there was a message. One that was refused is its sender's fault: the next is intact.
pub(crate) fn received<E: TransportError + 'static>(result: Result<(), E>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            kind if kind.is_wait() => Ok(false),
            ErrorKind::Closed | ErrorKind::Other => Err(error.into()),
            _ => {
                eprintln!("refused: {error}");
                Ok(false)
            }
        },
    }
}
