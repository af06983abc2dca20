//! Any backend once more, its calls as futures that a thread waits for.

use std::error::Error;
use std::sync::OnceLock;

use tensorwire::transport::conformance::{Backend, Check, Setup};
use tensorwire::transport::tokio::{self as awaiting, Async, Readiness};
use tensorwire::transport::{Part, RecvFrames, SendFrames, Wait};
use tokio::runtime::Runtime;

use crate::{Planned, plan};

/// Plans `backend` with its futures.
pub(crate) fn plan_awaited<B>(backend: B) -> Planned
where
    B: Backend,
    B::Sender: Readiness,
    B::Receiver: Readiness,
{
    let name = format!("{}, awaited", backend.name());
    plan(Awaited { backend, name })
}

struct Awaited<B> {
    backend: B,
    name: String,
}

/// An end whose futures the calling thread waits for.
struct End<T: Readiness> {
    end: Async<T>,
}

/// What all ends are registered with.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap())
}

impl<T: Readiness> End<T> {
    fn new(transport: T) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let _guard = runtime().enter();
        let end = Async::new(transport)?;
        Ok(Self { end })
    }
}

impl<T: SendFrames + Readiness> SendFrames for End<T> {
    type SendError = awaiting::Error<T::SendError>;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), Self::SendError> {
        runtime().block_on(self.end.send_frames(frames, wait))
    }

    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), Self::SendError> {
        runtime().block_on(self.end.send_parts(parts, wait))
    }
}

impl<T: RecvFrames + Readiness> RecvFrames for End<T> {
    type Message = T::Message;
    type RecvError = awaiting::Error<T::RecvError>;

    fn recv_frames(
        &mut self,
        message: &mut Self::Message,
        wait: Wait,
    ) -> Result<(), Self::RecvError> {
        runtime().block_on(self.end.recv_frames(message, wait))
    }
}

impl<B> Backend for Awaited<B>
where
    B: Backend,
    B::Sender: Readiness,
    B::Receiver: Readiness,
{
    type Sender = End<B::Sender>;
    type Receiver = End<B::Receiver>;

    fn name(&self) -> &str {
        &self.name
    }

    fn open(
        &self,
        setup: &Setup,
    ) -> Result<(Self::Sender, Self::Receiver), Box<dyn Error + Send + Sync>> {
        let (sender, receiver) = self.backend.open(setup)?;
        Ok((End::new(sender)?, End::new(receiver)?))
    }

    fn restart_receiver(
        &self,
        receiver: Self::Receiver,
        setup: &Setup,
    ) -> Result<Option<Self::Receiver>, Box<dyn Error + Send + Sync>> {
        let receiver = receiver.end.into_inner();
        let receiver = self.backend.restart_receiver(receiver, setup)?;
        receiver.map(End::new).transpose()
    }

    fn restart_sender(
        &self,
        sender: Self::Sender,
        setup: &Setup,
    ) -> Result<Option<Self::Sender>, Box<dyn Error + Send + Sync>> {
        let sender = self
            .backend
            .restart_sender(sender.end.into_inner(), setup)?;
        sender.map(End::new).transpose()
    }

    // No counters: a future that waits counts each time that it finds no room.

    fn skip(&self, check: Check) -> Option<&'static str> {
        self.backend.skip(check)
    }
}
