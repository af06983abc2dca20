//! The thread that computes: one task after the other, while the loop goes on with messages.

use std::sync::mpsc::{Receiver, Sender};

use tensorwire::json::Value;
use tensorwire::plane::{Region, WeakRegion};
use tensorwire::transfer::Role;
use tensorwire::transfer::manifest::Decoder;
use tensorwire::transfer::worker::{Job, Received};
use tensorwire::transport::{SendFrames, zmq};

use crate::Result;
use crate::work::{Input, Made, Output, Work};

/// What is to be done for a request.
pub(crate) enum Task {
    /// The role before has made something.
    Received(Received),
    /// The client has sent something.
    Work { job: Job, payload: Vec<u8> },
}

/// What it came to.
pub(crate) struct Done {
    pub(crate) job: Job,
    /// Or why it failed.
    pub(crate) result: Result<Made, String>,
}

pub(crate) struct Computer {
    role: Role,
    work: Box<dyn Work>,
    /// The loop's: when it ends, however it does, its memory goes.
    region: WeakRegion,
    decoder: Decoder,
    /// The loop's socket, which wakes it.
    wake: zmq::Socket<zmq::Push>,
}

impl Computer {
    pub(crate) fn new(
        role: Role,
        work: Box<dyn Work>,
        region: WeakRegion,
        wake: zmq::Socket<zmq::Push>,
    ) -> Self {
        Self {
            role,
            work,
            region,
            decoder: Decoder::new(),
            wake,
        }
    }

    /// Does what there is to do, until there are to be no more tasks.
    pub(crate) fn run(mut self, tasks: &Receiver<Task>, done: &Sender<Done>) {
        for task in tasks {
            let Some(region) = self.region.upgrade() else {
                return;
            };
            let (job, result) = match task {
                Task::Received(received) => {
                    let result = self.received(&received, &region);
                    // Given back before the answer: its slot is free for the next.
                    (received.job().clone(), result)
                }
                Task::Work { job, payload } => {
                    let result = self.work(&job, &payload, &region);
                    (job, result)
                }
            };
            let result = result.map_err(|error| error.to_string());
            // Neither is of use to a loop that has ended.
            if done.send(Done { job, result }).is_err() || self.wake.send(&[b""]).is_err() {
                return;
            }
        }
    }

    fn received(&mut self, received: &Received, region: &Region) -> Result<Made> {
        let bytes = region.bytes(received.slot())?;
        let manifest = self.decoder.decode(received.manifest(), bytes.len())?;
        let tensors: Vec<_> = manifest.attach(bytes)?.tensors().collect();
        let output = Output::new((!self.role.is_last()).then_some(region));
        compute(
            &mut *self.work,
            &Input {
                request_id: &received.request().to_string(),
                payload: &[],
                tensors: &tensors,
                scalars: received.scalars(),
            },
            output,
        )
    }

    fn work(&mut self, job: &Job, payload: &[u8], region: &Region) -> Result<Made> {
        let input = Input {
            request_id: &job.request().to_string(),
            payload,
            tensors: &[],
            scalars: Value::parse(b"{}")?.as_object()?,
        };
        compute(&mut *self.work, &input, Output::new(Some(region)))
    }
}

fn compute(work: &mut dyn Work, input: &Input<'_>, mut output: Output<'_>) -> Result<Made> {
    work.run(input, &mut output)?;
    output.finish()
}
