//! The head node: takes requests, and leads each through the workers of its roles.
//!
//! A [`Coordinator`] does no I/O, reads no clock and has no thread. It is told
//! what came and what time it is, and asked what to send, what happened, and
//! when to be called again. Its messages are those of the Python head node
//! (`orchestrator.py`, release 0.5.23), and so is the order in which workers are
//! chosen; Python workers and ours can serve it side by side.
//!
//! ```text
//!   client's request          [id, work]                    transfer_* | [id, work]
//!  ------------------> handle_request          poll_transmit ----------------------> work sockets
//!                               |                  ^                                 of the workers
//!                               v                  |
//!                         +--------------------------------+
//!   result socket         |  queue of the first role       |
//!   of each role          |  queues of the others          |   poll_event: Finished, Failed,
//!  ---------------------> |  places and slots of workers   | ------------> Retrying, Registered
//!   handle_frames, or     +--------------------------------+
//!   handle_control,             ^                  |
//!   handle_reply                |                  v
//!                        handle_timeout       poll_timeout
//! ```
//!
//! After each `handle_*` call ask [`poll_transmit`](Coordinator::poll_transmit) and
//! [`poll_event`](Coordinator::poll_event) until they have nothing more, and call
//! [`handle_timeout`](Coordinator::handle_timeout) when
//! [`poll_timeout`](Coordinator::poll_timeout) says. Time is the duration since any
//! fixed start, and never goes back.
//!
//! # A request
//!
//! `from` is the worker with the output, `to` the one that is to get it. The
//! states are those of [`Step`].
//!
//! ```text
//!               handle_request
//!                     |
//!                     v           a free place: work sent
//!      +-----> Queued (no from) ----------------------------+
//!      |                                                    |
//!      | retry            transfer_staged of at             v
//!      |       Queued (from) <-------------------------- Working (at)
//!      |          |     |                                 ^     |
//!      |  a free  |     |  a free place                   |     | decoder's reply
//!      |  place:  |     |  and slot:     transfer_pushed  |     v
//!      |  ALLOC   v     |  PUSH          of from: READY   |   finished
//!      |    Allocating  |                                 |
//!      |          |     +-----------> Pushing ------------+
//!      |          |                      ^
//!      |          +----------------------+
//!      |            transfer_allocated of to: PUSH
//!      |
//!      +--- any of these: a worker restarted or is gone, a push failed, or the attempt took too long
//!           any of these: failed, cancelled, timed out ----> Over, if a worker is still to answer
//! ```
//!
//! A worker's place is taken from when it is chosen until its output is with the
//! next (`transfer_pushed`), for a decoder until its reply, and in any case until
//! the request ends.
//!
//! # Every message in every state
//!
//! `at`, `from` and `to` stand for their role: messages come by the socket of a
//! role, and the request says which worker it is. *unexpected* and *not involved*
//! are [`ProtocolError`]s, and leave everything as it was.
//!
//! | | Queued | Working | Allocating | Pushing | Over | unknown |
//! |---|---|---|---|---|---|---|
//! | `transfer_staged`, `transfer_done` staged | of `from`: unexpected | of `at`: queued for the next role | unexpected | unexpected | of the reader: it is free | unknown request; the worker is told to drop it |
//! | `transfer_allocated` | unexpected | unexpected | of `to`: PUSH; too small, wrapping, out of its pool, in another pool than it registered: an error | unexpected | of the allocator: it is free | as above |
//! | `transfer_pushed` | unexpected | unexpected | unexpected | of `from`: READY | of the writer: it is free | unknown request |
//! | `transfer_done`, finished | unexpected | of a decoder: finished; of another: failed | unexpected | unexpected | of the reader: it is free | unknown request |
//! | a decoder's tensor message without error | unexpected | finished | unexpected | unexpected | of the reader: it is free | unknown request |
//! | an error, `transfer_abort` | of `from`: failed | of `at`: failed | of either: failed | of `from`: failed or retried; of `to`: failed | of the user: it is free | unknown request |
//! | `transfer_register` | the same again: nothing. Another: the requests of the worker end or are retried | | | | of the owner: its slot is forgotten; of the user: it is free | |
//! | `transfer_alloc`, `_push`, `_ready`, `_register_ack`, unknown types | an error | | | | | |
//!
//! From a role that has no part in the request each of them is *not involved*.
//! So is the duplicate of any message whose step is past. A `transfer_pushed`
//! that comes before its `transfer_staged` was seen is *unexpected*, and rightly
//! so: the sender pushes only when told where to, and it is told only after its
//! `transfer_staged` came. Whatever the order of its two sockets, no sender that
//! keeps to the protocol can cause that; and if it were remembered, the receiver
//! would be sent to a slot into which nobody has written.
//!
//! # Preallocated slots
//!
//! The output goes into the shortest free slot of the receiver's that is long
//! enough, if there is one. The slot stays whole: it comes back with the length
//! that was registered, when its receiver has staged its own output, has replied
//! or has failed. That goes for decoders too. (The Python head node looks at one
//! slot only, takes it back as long as the last output was, and never takes back
//! a decoder's.)
//!
//! When a request ends early, its slot may still be written to, or read. Then it
//! stays out until the writer says that it pushed or failed, or the reader that it
//! is through, or either of them registers anew or is lost, or
//! [`Settings::with_quarantine`] is over. So long the id of the request is taken, and so it
//! is, slot or not, while a worker is to answer to work or ALLOC: its answer would be taken for one to the
//! next request of that id.
//! A slot that was allocated is treated alike: its receiver is told to free it
//! when nobody can write to it any more, as it may give the place to another.
//!
//! A registration is taken whole or not at all: if a slot lies outside the pool,
//! past the last address, not at its address, or over another, or if two have one
//! number, it is refused, and what the worker registered before stays.
//!
//! # When a request ends early
//!
//! Each worker that has something of it, but for one that said that it failed, gets
//! `transfer_abort` with the request's id: a receiver that may be written to
//! when that is over, the others at once. Workers of the Python release log it
//! and go on. Places are free at once.
//!
//! # What is retried
//!
//! With [`Settings::with_retries`] an attempt is followed by another, from the work of the first role, if it
//! ended by no fault of the request's own. The others end the request.
//!
//! | an attempt ends as | retried |
//! |---|---|
//! | a worker that had a part in it registers anew, or is [lost](Coordinator::handle_lost) | yes |
//! | its sender reports an error, or aborts, while it pushes: the receiver may have died, whatever the text says | yes |
//! | it took longer than [`Settings::with_attempt_timeout`] | yes |
//! | a worker reports an error at any other time: of its work, of room for a slot, of what it was sent | no |
//! | a worker other than the last has nothing for the next | no |
//! | the service cancels it, or [`Settings::with_timeout`] is over | no |
//!
//! # When a worker dies
//!
//! The head node has no word from a worker that has died, and none of what it had. It learns of it in one of four ways:
//!
//! - *Its successor registers* at the same endpoint: what hung on it is retried or fails at once, its
//!   slots are those of the new registration, and slots of others that it was writing to are free.
//! - *The service says so* by [`Coordinator::handle_lost`]: the same, and the worker is left out until it
//!   registers again. If no other of its role is there, requests wait in the queue; they may fail by
//!   their timeout.
//! - *A sender cannot push to it*: that request is retried. The worker is taken for alive: the fault may be the
//!   sender's.
//! - *Not at all*: it keeps its turn. What hangs on it, and what it is given later, is retried when the attempt
//!   took too long, or fails when the request did. As its places are then given back, it gets as much again and
//!   again: no policy knows who is dead. So either every worker that dies is started again, or
//!   the service calls `handle_lost`.
//!
//! A failed push cannot be told from a good one when a Python sender says
//! `transfer_pushed` all the same. Ours answers with an error.
//!
//! # Allocations
//!
//! Once buffers have grown to the sizes of the traffic, a request costs one allocation,
//! for its work, and now and then those of an entry among the timers or among the
//! requests that workers have. Its id is shared with the caller's. Messages are written into buffers that are used
//! again. Failures and retries cost their texts and ids.

mod ending;
mod error;
mod event;
mod flow;
mod input;
mod lost;
mod outbox;
mod policy;
mod request;
mod settings;
mod slots;
mod stage;
mod statistics;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::collections::HashMap;

pub use error::{ProtocolError, RequestError, Step};
pub use event::{Event, Failure, FailureKind, Outgoing};
pub use input::InputError;
pub use policy::Policy;
pub use settings::{Settings, Topology, TopologyError, Workers};
pub use statistics::{RoleStatistics, Statistics};

use crate::message::{CONTROL_MARKER, Decoder};
use crate::transfer::message::Control;
use crate::transfer::{RequestId, Role};
use outbox::Outbox;
use request::{Output, Request, State};
use stage::Stage;

/// The head node's side of the transfer protocol, without I/O.
///
/// See the [module's docs](self).
///
/// # Driving it
///
/// A driver has a socket to each worker, one for the results of each role, and a clock:
///
/// ```text
/// loop {
///     for each new request  head.handle_request(&id, work, now)
///     transmit: while let Some(outgoing) = head.poll_transmit(&mut buffer)
///                   work socket of outgoing.role(), outgoing.worker() sends outgoing.frames()
///     wait for: a message at any result socket, or a new request,
///               but no longer than head.poll_timeout()
///     for each message      log errors of head.handle_frames(role of the socket, &frames, now)
///                           events, before the message is let go of
///     head.handle_timeout(now)
///     events: while let Some(event) = head.poll_event()
///                 Event::Finished { request }: the message just handled is its result
///                 Event::Failed { request, failure }: tell its client
/// }
/// ```
///
/// Over ZeroMQ, as sglang's workers have it, a work socket is a PUSH that connects to the worker's
/// work endpoint, and a result socket a PULL that is bound. Have them send without
/// waiting: a worker that is gone must not stop the others, and its requests run into their
/// timeout. `HeadNode` of the example `disaggregated` is such a driver.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use tensorwire::transfer::coordinator::{Coordinator, Event, Settings, Topology, Workers};
/// use tensorwire::transfer::{RequestId, Role};
///
/// let workers = |endpoint: &str| Workers::new([endpoint], 2);
/// let topology = Topology::new(workers("tcp://e:1"), workers("tcp://n:1"), workers("tcp://d:1"));
/// let mut head = Coordinator::new(topology, Settings::new())?;
/// let mut now = Duration::ZERO;
///
/// let id = RequestId::from("r1");
/// head.handle_request(&id, b"pickle".to_vec(), now)?;
/// let mut buffer = Vec::new();
/// let work = head.poll_transmit(&mut buffer).ok_or("nothing to send")?;
/// assert_eq!((work.role(), work.worker()), (Role::Encoder, 0));
/// assert_eq!(work.frames(), [&b"r1"[..], b"pickle"]);
///
/// now = Duration::from_secs(600);
/// assert_eq!(head.poll_timeout(), Some(now));
/// head.handle_timeout(now);
/// assert!(matches!(head.poll_event(), Some(Event::Failed { request, .. }) if request == id));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Coordinator {
    settings: Settings,
    stages: Vec<Stage>,
    /// Attempts by the id that they have on the wire, and the slots of some that are over.
    requests: HashMap<RequestId, Request>,
    /// The clients' requests that are under way: what each is called on the wire.
    clients: HashMap<RequestId, RequestId>,
    /// Attempts that a worker has or had something of, by serial number.
    placed: BTreeMap<u64, RequestId>,
    /// When to look at an attempt again: (when, its serial number).
    timers: BTreeMap<(Duration, u64), RequestId>,
    outbox: Outbox,
    /// Storage of outputs, to be used again.
    spare: Vec<Output>,
    events: VecDeque<Event>,
    decoder: Decoder,
    serial: u64,
    /// Of all that has ended; how many are active is not kept here.
    totals: Statistics,
}

impl Coordinator {
    /// Makes the head node of a pipeline.
    ///
    /// # Errors
    ///
    /// [`TopologyError`]: a role has no worker, or no place, or two workers have one endpoint.
    pub fn new(topology: Topology, settings: Settings) -> Result<Self, TopologyError> {
        topology.check()?;
        let stages = topology.stages.into_iter().enumerate();
        let stages = stages
            .map(|(index, (role, workers))| Stage::new(role, index, workers, settings.policy));
        Ok(Self {
            settings,
            stages: stages.collect(),
            requests: HashMap::new(),
            clients: HashMap::new(),
            placed: BTreeMap::new(),
            timers: BTreeMap::new(),
            outbox: Outbox::default(),
            spare: Vec::new(),
            events: VecDeque::new(),
            decoder: Decoder::with_options(settings.options),
            serial: 0,
            totals: Statistics::default(),
        })
    }

    /// Takes a client's request: `work` is what its first worker gets, unopened.
    ///
    /// Exactly one [`Event::Finished`] or [`Event::Failed`] follows for it, at the
    /// latest when its [timeout](Settings::with_timeout) is over.
    ///
    /// # Errors
    ///
    /// [`RequestError`]; then nothing has changed.
    pub fn handle_request(
        &mut self,
        request: &RequestId,
        work: Vec<u8>,
        now: Duration,
    ) -> Result<(), RequestError> {
        let text = request.text();
        let len = text.raw().len();
        if len == 0 || text.as_plain().is_none() {
            return Err(RequestError::NoText);
        }
        if text.raw().as_bytes() == CONTROL_MARKER {
            return Err(RequestError::Reserved);
        }
        let limit = self.settings.max_id_len();
        if len > limit {
            return Err(RequestError::IdTooLong { len, limit });
        }
        if self.clients.contains_key(request) || self.requests.contains_key(request) {
            return Err(RequestError::Duplicate);
        }
        let limit = self.settings.max_requests;
        // What is over and waited for is not of a client's any more, but costs the same.
        let is_full = self.clients.len() >= limit;
        if is_full || self.requests.len() >= limit.saturating_mul(2) {
            return Err(RequestError::Full { limit });
        }
        self.clients.insert(request.clone(), request.clone());
        let attempt = Request {
            client: request.clone(),
            attempt: 0,
            serial: 0,
            deadline: now.saturating_add(self.settings.timeout),
            wake: Duration::ZERO,
            work: Some(Arc::new(work)),
            output: self.spare.pop().unwrap_or_default(),
            state: State::Queued {
                stage: 0,
                from: None,
            },
        };
        let serial = self.insert(request.clone(), attempt);
        if let Some(first) = self.stages.first_mut() {
            first.queue.push_back((request.clone(), serial));
            first.waiting = first.waiting.saturating_add(1);
        }
        self.dispatch(now);
        Ok(())
    }

    /// Handles a control message of a worker of `role`.
    ///
    /// # Errors
    ///
    /// [`ProtocolError`]; then it is as if the message had not come. (A worker that
    /// has a slot for a request that nobody knows is told to free it.)
    pub fn handle_control(
        &mut self,
        role: Role,
        control: &Control<'_>,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        self.control(role, control, now)?;
        self.dispatch(now);
        Ok(())
    }

    /// Ends a request whose client wants it no more; tells whether it was under way.
    pub fn cancel(&mut self, request: &RequestId, now: Duration) -> bool {
        let Some(id) = self.clients.get(request).cloned() else {
            return false;
        };
        self.fail(&id, Failure::new(FailureKind::Cancelled), None, now);
        self.dispatch(now);
        true
    }

    /// Ends what took too long, as of `now`.
    pub fn handle_timeout(&mut self, now: Duration) {
        while let Some((&(when, _), id)) = self.timers.first_key_value() {
            if when > now {
                break;
            }
            let id = id.clone();
            let request = self.requests.get(&id);
            let after = match self.settings.attempt_timeout {
                Some(after) if request.is_some_and(|request| now < request.deadline) => after,
                _ => self.settings.timeout,
            };
            self.expire(&id, FailureKind::TimedOut { after }, now);
        }
        self.dispatch(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout), unless an input comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let first = self.timers.first_key_value();
        first.map(|(&(when, _), _)| when)
    }

    /// Returns the next message to send, in order; `buffer` holds what is written anew for it.
    ///
    /// Its storage is swapped with one of ours, to be used again.
    pub fn poll_transmit<'b>(&'b mut self, buffer: &'b mut Vec<u8>) -> Option<Outgoing<'b>> {
        let stages = &self.stages;
        let role = |stage: usize| stages.get(stage).map_or(Role::Decoder, |stage| stage.role);
        self.outbox.poll(buffer, role)
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
