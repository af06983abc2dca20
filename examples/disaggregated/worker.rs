//! A worker: sockets, shared memory and a thread to compute, around an [`Instance`].
//!
//! ```text
//!             work, bound                                           results, connected
//!  head node --PUSH--> PULL --+                            +--> PUSH --PULL--> head node
//!                       ^     v                            |
//!                       |   +---------------------------------+
//!                       |   |            Instance             |  this thread
//!                       |   +---------------------------------+
//!                       |     | task       ^ done     | push order
//!                       |     v            |          v
//!                       |   +-----------------+   +------------+
//!                       +---|  Work::run      |   | data plane |--> slots of other workers
//!               wakes it    |  a thread       |   +------------+
//!                           +-----------------+
//! ```
//!
//! The loop waits in one place only, for a message: the thread that computes sends one too,
//! of no bytes, when it is done. A push is done here: over shared memory it is one copy.
//! With a plane whose pushes take their time, an engine's, have that
//! send a message too when one has ended.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::json::Value;
use tensorwire::plane::{DataPlane, RegionOptions, shared};
use tensorwire::transfer::pool::Slot;
use tensorwire::transfer::worker::{CallError, Event, Input, Instance, PushOrder, Settings, Site};
use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait, zmq};

use crate::Result;
use crate::args::Worker;
use crate::compute::{Computer, Done, Task};
use crate::head::received;
use crate::reporter::Reporter;
use crate::stop;
use crate::work::{Made, Work};

/// Where the other threads of the process wake the loop.
const WAKE: &str = "inproc://wake";

/// How long the last messages may take to leave.
const LINGER: Duration = Duration::from_secs(1);

/// How long requests that are under way may take to end, once the worker is told to.
const GRACE: Duration = Duration::from_secs(1);

/// Runs a worker until it is told to end.
pub(crate) fn run(options: &Worker, work: Box<dyn Work>) -> Result<()> {
    let role = options.role;
    let context = zmq::Context::new();
    let mut inbox = context.pull().bind(&options.work)?;
    let endpoint = inbox.endpoint().to_owned();
    inbox.bind(WAKE)?;
    let mut results = context.push().linger(LINGER).connect(&options.result)?;

    // Slots in shared memory, and who we are to those that push into them.
    let mut plane = plane(options)?;
    let region = plane.register(RegionOptions::new(options.pool_mib << 20))?;
    let name = options.name.as_deref().unwrap_or(&endpoint);
    let pool = region.pool().clone();
    let site = Site::new(plane.session_id(), region.base(), pool.clone(), name);
    let mut instance = Instance::new(role, site, settings(options))?;

    let (tasks, to_do) = mpsc::channel();
    let (done, answers) = mpsc::channel();
    let wake = context.push().connect(WAKE)?;
    let computer = Computer::new(role, work, region.downgrade(), wake);
    let computing = thread::spawn(move || computer.run(&to_do, &done));

    let stopped = Arc::new(AtomicBool::new(false));
    stop::when_told(options.until_stdin_closes, {
        let (context, stopped) = (context.clone(), Arc::clone(&stopped));
        move || {
            stopped.store(true, Ordering::Relaxed);
            let wake = context.push().linger(LINGER).connect(WAKE);
            // Without it the loop ends with the next message.
            let _ = wake.and_then(|mut wake| wake.send(&[b""]));
        }
    })?;

    let mut reporter = Reporter::new(options.report);
    let start = Instant::now();
    let mut message = zmq::Message::default();
    let mut buffer = Vec::new();
    let mut grace = None;
    writeln!(stdout(), "READY {endpoint}")?;
    loop {
        // What the machine has to say and to move; nothing that can be said waits for a push.
        loop {
            while let Some(outgoing) = instance.poll_transmit(&mut buffer) {
                reporter.says(outgoing, &buffer);
                results.send(&outgoing.frames(&buffer))?;
            }
            let Some(order) = instance.poll_push() else {
                break;
            };
            let (job, copied) = (order.job.clone(), plane.copied_bytes());
            let (slot, result) = push(&mut plane, order);
            reporter.copied(&job, plane.copied_bytes() - copied);
            instance.handle_pushed(&job, slot, result, start.elapsed());
        }
        // What is to be done.
        while let Some(event) = instance.poll_event() {
            match event {
                Event::Ready(received) => {
                    reporter.came(received.job(), Some(received.slot()));
                    tasks.send(Task::Received(received))?;
                }
                Event::Over { job, ending } => reporter.over(&job, ending),
                _ => {}
            }
        }

        // Told to end, it ends when it has nothing under way, and after a while anyway.
        if stopped.load(Ordering::Relaxed) {
            let end = *grace.get_or_insert_with(|| start.elapsed() + GRACE);
            if instance.is_empty() || start.elapsed() >= end {
                break;
            }
        }
        // Until a message comes, or something is due.
        let due = instance.poll_timeout().into_iter().chain(grace).min();
        let wait = match due {
            Some(due) => Wait::UpTo(due.saturating_sub(start.elapsed())),
            None => Wait::Forever,
        };
        if received(inbox.recv_frames(&mut message, wait))? && message.byte_count() > 0 {
            match instance.handle_frames(message.frames(), start.elapsed()) {
                Ok(Input::Work { job, payload }) => {
                    reporter.came(&job, None);
                    let payload = payload.to_vec();
                    tasks.send(Task::Work { job, payload })?;
                }
                Ok(_) => {}
                // The head node's fault, or too late: it was answered, if an answer is due.
                Err(error) => eprintln!("{role}: a message from the head node: {error}"),
            }
        }
        instance.handle_timeout(start.elapsed());
        for done in answers.try_iter() {
            reporter.done(&done);
            answer(&mut instance, &mut results, done, start.elapsed())?;
        }
    }

    reporter.stopped(&pool);
    // Without tasks the computer ends.
    drop((tasks, instance, answers));
    let ended = computing.join();
    ended.map_err(|_| "the thread that computes has panicked")?;
    reporter.ended(&pool)
}

fn plane(options: &Worker) -> Result<shared::Plane> {
    let builder = shared::Builder::new();
    Ok(match &options.segments {
        Some(folder) => builder.with_folder(folder).build()?,
        None => builder.build()?,
    })
}

fn settings(options: &Worker) -> Settings {
    let timeout = Duration::from_secs(options.timeout_s);
    Settings::new()
        .with_preallocated(options.preallocated, options.slot_mib << 20)
        .with_alloc_timeout(timeout)
        .with_fill_timeout(timeout)
        .with_work_timeout(timeout)
        .with_stage_timeout(timeout)
}

/// Moves an output to where the head node said, and gives its slot back with what came of it.
fn push(plane: &mut shared::Plane, order: PushOrder) -> (Slot, Result<u64, shared::Error>) {
    let (_job, transfer) = order.into_transfer();
    if let Err((transfer, error)) = plane.push(transfer) {
        return (transfer.into_slot(), Err(error));
    }
    loop {
        // The only one that is under way: over shared memory it has ended already.
        if let Some(completion) = plane.wait_completion(Duration::from_secs(1)) {
            return completion.into_parts();
        }
    }
}

/// Tells the head node what a task came to.
fn answer(
    instance: &mut Instance,
    results: &mut zmq::Socket<zmq::Push>,
    done: Done,
    now: Duration,
) -> Result<()> {
    let job = &done.job;
    let answered = match done.result {
        Ok(Made::Staged { output, scalars }) => {
            let scalars = Value::parse(&scalars)?;
            let staged = instance.stage(job, output, &scalars, now);
            staged.map_err(|(_, error)| error)
        }
        Ok(Made::Message { metadata, payloads }) => {
            let finished = instance.finish(job, now);
            if finished.is_ok() {
                let payloads = payloads.into_iter().map(Part::from);
                let mut parts: Vec<_> =
                    [Part::from(metadata)].into_iter().chain(payloads).collect();
                results.send_parts(&mut parts, Wait::Configured)?;
            }
            finished
        }
        Err(text) => instance.fail(job, &text, now),
    };
    match answered {
        // The head node gave it up meanwhile, and waits for no answer.
        Ok(()) | Err(CallError::Over) => Ok(()),
        Err(error) => Ok(instance.fail(job, &error.to_string(), now)?),
    }
}
