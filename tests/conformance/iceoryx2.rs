//! Shared memory.

use std::error::Error;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use tensorwire::transport::conformance::{Backend, Setup};
use tensorwire::transport::iceoryx2::{Builder, MAX_DEPTH, Receiver, Sender};
use tensorwire::transport::{Counters, Observed, Part, RecvFrames, SendFrames, Wait};

use crate::{Planned, plan};

pub(crate) fn backends() -> Vec<Planned> {
    vec![plan(SharedMemory)]
}

struct SharedMemory;

/// One end, and how to open another one like it.
struct End<T> {
    end: T,
    builder: Builder,
}

impl<T: SendFrames> SendFrames for End<T> {
    type SendError = T::SendError;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), T::SendError> {
        self.end.send_frames(frames, wait)
    }

    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), T::SendError> {
        self.end.send_parts(parts, wait)
    }
}

impl<T: RecvFrames> RecvFrames for End<T> {
    type Message = T::Message;
    type RecvError = T::RecvError;

    fn recv_frames(&mut self, message: &mut T::Message, wait: Wait) -> Result<(), T::RecvError> {
        self.end.recv_frames(message, wait)
    }
}

impl Backend for SharedMemory {
    type Sender = End<Sender>;
    type Receiver = End<Receiver>;

    fn name(&self) -> &str {
        "iceoryx2"
    }

    fn open(
        &self,
        setup: &Setup,
    ) -> Result<(End<Sender>, End<Receiver>), Box<dyn Error + Send + Sync>> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // Room for what the caps admit and, so that they have something to refuse, for
        // more; with an entry of the table and padding for each frame.
        let frames = setup.caps().frames().max(64);
        let bytes = setup.caps().message_bytes().max(1 << 18);
        let builder = Builder::new(&format!("conformance/{}/{number}", process::id()))
            .caps(setup.caps())
            .depth(usize::try_from(setup.high_water())?.min(MAX_DEPTH))
            .message_bytes(bytes + frames * 128 + 4096)
            .send_timeout(Some(setup.timeout()))
            .recv_timeout(Some(setup.timeout()));
        let sender = builder.clone().sender()?;
        let receiver = builder.clone().receiver()?;
        let sender = End {
            end: sender,
            builder: builder.clone(),
        };
        let receiver = End {
            end: receiver,
            builder,
        };
        Ok((sender, receiver))
    }

    fn restart_receiver(
        &self,
        receiver: End<Receiver>,
        _: &Setup,
    ) -> Result<Option<End<Receiver>>, Box<dyn Error + Send + Sync>> {
        let End { end, builder } = receiver;
        drop(end);
        let end = builder.clone().receiver()?;
        Ok(Some(End { end, builder }))
    }

    fn restart_sender(
        &self,
        sender: End<Sender>,
        _: &Setup,
    ) -> Result<Option<End<Sender>>, Box<dyn Error + Send + Sync>> {
        let End { end, builder } = sender;
        drop(end);
        let end = builder.clone().sender()?;
        Ok(Some(End { end, builder }))
    }

    fn sender_counters(&self, sender: &End<Sender>) -> Option<Counters> {
        Some(sender.end.counters())
    }

    fn receiver_counters(&self, receiver: &End<Receiver>) -> Option<Counters> {
        Some(receiver.end.counters())
    }
}
