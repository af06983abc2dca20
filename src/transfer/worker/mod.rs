//! A worker's side of the protocol: takes requests from the head node, and passes outputs on.
//!
//! The machines do no I/O, read no clock and have no thread. They are told what came
//! and what time it is, and asked what to send, what to push, what happened, and when to be
//! called again. [`Instance`] is a worker of any role; its halves are of use alone: [`Sender`],
//! which is all of an encoder, and [`Receiver`], which is all of a decoder.
//!
//! ```text
//!  head node                          worker                         local worker   data plane
//!   work, ALLOC, READY, PUSH   +--------------------------+
//!  --------------------------> | handle_frames, handle    |
//!                              |        poll_event, Input | ------------->
//!                              |      stage, finish, fail | <-------------
//!                              |                poll_push | ------------------------->
//!  STAGED, ALLOCATED, PUSHED   |            handle_pushed | <-------------------------
//!  <-------------------------- | poll_transmit            |
//!                              |   poll_timeout, handle_timeout
//!                              +--------------------------+
//! ```
//!
//! Time is the duration since any fixed start.
//!
//! # Driving it
//!
//! A driver has a socket for messages of the head node, one to it, a data plane with a region,
//! and a clock. It waits for whichever comes first, hands it over, and then asks for all that
//! there is to do:
//!
//! ```text
//! loop {
//!     wait for: a message, the end of a push, an answer of the local worker,
//!               but no longer than instance.poll_timeout()
//!     now = start.elapsed()
//!     for each message     log errors of instance.handle_frames(&frames, now);
//!                          Input::Work { job, payload } goes to the local worker
//!     for each answer      instance.stage(&job, output, &scalars, now), or
//!                          instance.fail(&job, text, now), or
//!                          instance.finish(&job, now), then send the output
//!     instance.handle_timeout(now)
//!     drive(&mut instance, &mut plane, &mut pushes, now, |frames| result.send(frames))
//!     while let Some(event) = instance.poll_event() {
//!         Event::Ready(received) goes to the local worker, which reads
//!             region.bytes(received.slot()), and drops it; or brings
//!             them to a CUDA device: PinnedRegion::load_received
//!         Event::Over { job, .. }: the local worker lets go of it
//!     }
//! }
//! ```
//!
//! Over ZeroMQ, as sglang's head node has it, work comes by a PULL socket that the worker binds at
//! its work endpoint, and what it sends goes by a PUSH socket that it connects to the result
//! endpoint of its role. To wait for the local worker at the same place, have it send a message
//! too, to an `inproc://` endpoint that the PULL socket is also bound to. Give the PUSH
//! socket a short linger time: one that is unset keeps a worker whose head node is gone from ending.
//!
//! The part that is the same in every driver is a function in the example at [`Instance`]. A whole
//! one, with sockets, shared memory and a thread that computes, is `examples/disaggregated/worker.rs`.
//!
//! # A request
//!
//! The states are those of [`Step`]; what is in parentheses is sent to the head node.
//!
//! ```text
//!  ALLOC, no room                         work of a first role
//!  -------------> Waiting                        |
//!                    | room (ALLOCATED)          |
//!  ALLOC, room       v                 READY     v    stage                  PUSH
//!  ------------> Allocated ------------------> Working ---------> Staged ---------> Pushing
//!  (ALLOCATED)                                 ^ |  |   (STAGED,                       |
//!                                              | |  |    or DONE)     moved (PUSHED)   |
//!  READY with _prealloc_slot_id ---------------+ |  |                                  v
//!                                                |  | finish, fail (error) --------> Ended
//!      stage or fail, while a preallocated slot  |                                    ^
//!      is held                                   +--> Closing ------------------------+
//!                                                     slot is back: as without it
//!
//!  any of these but Pushing: transfer_abort, or too long a wait ---> Ended
//! ```
//!
//! What the local worker is given is a [`Job`]: one life of a request. It ends with its worker's
//! `finish` or `fail`, or with an [`Event::Over`].
//!
//! # Every message in every state
//!
//! *Italics* are a [`ProtocolError`], and nothing has changed. *(error)* is one as well, and
//! the head node is told that the request failed, so that it ends; a slot that was held
//! is freed. Other states and other requests never change.
//!
//! An error is told in the form in which the Python head node ends the request: by encoders
//! as a tensor message with `_disagg_error`, by image encoders and denoisers as `transfer_done`, by
//! decoders as a tensor message with `error`, but before READY as `transfer_done`: with a tensor
//! message the head node would lose the sender's place for good.
//!
//! ## The sender
//!
//! | | unknown | Working | Staged | Pushing | Ended |
//! |---|---|---|---|---|---|
//! | work | Working | *duplicate* | *duplicate* | *duplicate* | Working |
//! | `transfer_push` | *unexpected (error)* | *unexpected* | Pushing; of no bytes PUSHED at once; of too few *truncated (error)* | same place: *duplicate*; another: *unexpected* | as moved: *duplicate*; moved elsewhere, or aborted while staged: *unexpected (error)*; else *unexpected* |
//! | `transfer_abort` | nothing | error told | freed | not begun: error told; begun: nothing, it ends by its push | nothing |
//! | `stage` | over | Staged (STAGED) | staged | staged | over |
//! | `fail` | over | error told | error told | not begun: error told; begun: pushing | over |
//! | `handle_pushed` | slot freed | slot freed | slot freed | all moved: PUSHED; else error told | slot freed |
//! | too long | | error told | error told | never | |
//!
//! PUSH moves what is used of the slot, however much more it asks for. PUSH to the worker's own
//! session is as any other: the data plane decides. While an output is announced there
//! is no second one of its request: by PUSH it would go to where the first was to go, and be read as what
//! was said of the first. So a head node that gives a request up says so by `transfer_abort` before it
//! begins another of that id.
//!
//! Of a middle role, PUSH for a request that the receiver has is *unexpected*, and ALLOC and READY for one
//! that the sender has Staged or Pushing are *duplicates*.
//!
//! ## The receiver
//!
//! | | unknown | Waiting | Allocated | Working, Closing | Ended |
//! |---|---|---|---|---|---|
//! | `transfer_alloc` | room: Allocated (ALLOCATED); none: Waiting; larger than the pool has room for beside its preallocated slots: *pool too small (error)* | *duplicate* | fits: ALLOCATED again; else *duplicate* | *duplicate* | as unknown |
//! | `transfer_ready` | *unexpected (error)* | *unexpected* | Working; other offset: *wrong offset*; tensors not in the slot: *manifest (error)*; somebody writes to it: *busy (error)* | *duplicate* | aborted while allocated: *unexpected (error)*; else *unexpected* |
//! | `transfer_ready` with `_prealloc_slot_id` | Working; no number: *bad slot id (error)*; none of ours: *unknown slot (error)*; not open: *slot in use (error)*; other offset: *wrong offset (error)*; tensors not in it: *manifest (error)*, it stays open; somebody writes to it: *busy*, error told when it is open again, or after 30 seconds | *unexpected* | as without | *duplicate* | as unknown |
//! | `transfer_abort` | nothing | error told | freed | error told when no preallocated slot is held | nothing |
//! | `stage` | over | over | over | the sender's, when no preallocated slot is held; in Closing: staged | over |
//! | `finish` | over | over | over | Ended; while the slot is held: not given back | over |
//! | `fail` | over | over | over | error told when no preallocated slot is held | over |
//! | [`Received`] dropped | | | | slot freed, or open again | slot freed |
//! | too long | | error told | freed, error told | error told when no preallocated slot is held | |
//!
//! Rules behind it:
//!
//! - READY, work and PUSH of a request under way are answered once, by an output or by
//!   an error, also if it is aborted: the head node may wait for it before it gives a slot away.
//! - A preallocated slot is open again before the head node hears anything that makes it give it
//!   away. So an answer waits for the slot, however late it is given back.
//! - A message that came late, for what has ended and was answered, is turned away in silence:
//!   an error would end a request that is well, or another of the same id.
//! - ALLOC waits for room in the order of arrival; a small one does not overtake a large one.
//!
//! Everywhere: `transfer_register_ack`, unknown types, and `transfer_abort` of unknown requests do
//! nothing; messages of workers are *not for a worker*; what the role has no half for is *not of
//! the role*; when [`Settings::with_max_requests`] are under way, a request that would begin is
//! *full (error)*; while too much that was told is not taken, it is a *backlog (error)*; an id of more than [`RequestId::MAX_LEN`](super::RequestId::MAX_LEN) bytes is
//! *too long*, and that in silence.
//!
//! # After a restart
//!
//! A new machine knows nothing of its life before. PUSH of that life is for an unknown request, and so
//! is READY on the slow path: both end it. ALLOC is as good as any. READY on the fast path names
//! a preallocated slot, and would be believed if the new life had one of that number at that
//! place: so the numbers come of the session's name and the pool's address, and of
//! [`Site::with_generation`] where those stay. Slots that were held free themselves when they are
//! dropped, on whatever thread, the machine's or the worker's.
//!
//! To register again with a head node that has restarted, drop the machine and make another.
//!
//! # Memory
//!
//! A request costs its id, shared by all that know it; an entry in a map and one among the
//! deadlines; a [`Received`] with the texts of manifest and scalars; an [`Output`] with the
//! same; and its session's name while it is pushed. Messages are written when asked for, into the
//! caller's buffer. Everything, also what waits to be sent or told, is bounded by [`Settings::with_max_requests`], and found in
//! logarithmic time.

mod error;
mod half;
mod instance;
mod job;
mod outbox;
mod output;
mod preallocated;
mod received;
mod receiver;
mod requests;
mod sender;
mod settings;
mod text;

pub use error::{CallError, ProtocolError, Step};
pub use instance::Instance;
pub use job::{Ending, Event, Input, Job};
pub use outbox::{Outgoing, OutgoingFrames};
pub use output::Output;
pub use received::Received;
pub use receiver::Receiver;
pub use sender::{PushOrder, Sender};
pub use settings::{Settings, Site};
