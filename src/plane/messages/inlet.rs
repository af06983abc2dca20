//! The receiving end: pushes come in, are checked, written and answered.

use core::time::Duration;
use core::{fmt, mem};

use alloc::string::String;
use alloc::vec::Vec;

use super::connect::Listen;
use super::seen::Seen;
use super::wire::{self, Answer, Id};
use super::{Malformed, Refusal};
use crate::dtype::DType;
use crate::message::{Decoder, Message};
use crate::plane::Region;
use crate::tensor::TensorView;
use crate::transport::{Frames, TransportError, Wait};

/// Writes pushes into the open windows of a region, and answers each.
///
/// There is one for a session, on any thread; the plane that the region is registered
/// with need not be near. What it does with a message, whatever the message holds, is
/// in [the module](super#what-an-inlet-does).
///
/// # Examples
///
/// A thread that does nothing else:
///
/// ```no_run
/// use std::time::Duration;
/// use tensorwire::plane::messages::{Inlet, Listen};
///
/// fn serve(mut inlet: Inlet<impl Listen>) {
///     loop {
///         if let Some(Err(error)) = inlet.wait(Duration::from_secs(1)) {
///             eprintln!("inlet: {error}");
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Inlet<L: Listen> {
    listen: L,
    /// The message received last: its storage is used again.
    message: L::Message,
    target: Target,
}

impl<L: Listen> Inlet<L> {
    /// Makes the inlet of `session`, whose pushes come in by `listen` and go into `region`.
    #[must_use]
    pub fn new(session: impl Into<String>, region: Region, listen: L) -> Self {
        Self {
            listen,
            message: L::Message::default(),
            target: Target {
                region,
                session: session.into(),
                seen: Seen::new(DEFAULT_PLANES),
                max_pieces: DEFAULT_PIECES,
                decoder: Decoder::new(),
                addresses: Vec::new(),
            },
        }
    }

    /// Sets how many pieces one push may have; 1024 unless set, at most 4096.
    #[must_use]
    pub fn with_max_pieces(mut self, pieces: usize) -> Self {
        self.target.max_pieces = pieces.min(MAX_PIECES);
        self
    }

    /// Sets of how many planes the newest push is remembered, those that pushed lately;
    /// 1024 unless set, at least 1. See [the module](super#what-is-promised).
    #[must_use]
    pub fn with_remembered_planes(mut self, planes: usize) -> Self {
        self.target.seen = Seen::new(planes);
        self
    }

    /// Returns the session.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.target.session
    }

    /// Returns the region that is written into.
    #[must_use]
    pub const fn region(&self) -> &Region {
        &self.target.region
    }

    /// Takes one message if one is there, and writes what it pushes.
    ///
    /// `None`: none is there now.
    ///
    /// # Errors
    ///
    /// [`InletError`]; then nothing was written, and the next message is taken by the
    /// next call.
    pub fn poll(&mut self) -> Option<Result<Written, InletError<L::Error>>> {
        self.take(Wait::Never)
    }

    /// Waits for one message, for at most `timeout`, and writes what it pushes.
    ///
    /// `None`: none came.
    ///
    /// # Errors
    ///
    /// As [`poll`](Self::poll).
    pub fn wait(&mut self, timeout: Duration) -> Option<Result<Written, InletError<L::Error>>> {
        self.take(Wait::UpTo(timeout))
    }

    fn take(&mut self, wait: Wait) -> Option<Result<Written, InletError<L::Error>>> {
        if let Err(error) = self.listen.recv_frames(&mut self.message, wait) {
            let came = !error.kind().is_wait();
            return came.then_some(Err(InletError::Transport(error)));
        }
        let taken = self.target.take(self.message.frames());
        let done = match taken {
            Ok((id, outcome)) => self.answer(id, outcome),
            Err(malformed) => Err(InletError::Malformed(malformed)),
        };
        // The payloads are not kept until the next message comes.
        self.message.clear();
        Some(done)
    }

    fn answer(
        &mut self,
        id: Id,
        outcome: Result<u64, Refused>,
    ) -> Result<Written, InletError<L::Error>> {
        let told = Answer {
            id,
            outcome: outcome.map_err(Refused::reason),
        };
        let frame = wire::write_answer(told).unwrap_or_default();
        let sent = self.listen.answer(&self.message, &[&frame]);
        let is_answered = sent.is_ok();
        match outcome {
            Ok(bytes) => Ok(Written { bytes, is_answered }),
            Err(Refused::Malformed(malformed)) => Err(InletError::Malformed(malformed)),
            Err(Refused::Reason(reason)) => Err(InletError::Refused(reason)),
        }
    }
}

/// Where pushes go, apart from where they come in.
#[derive(Debug)]
struct Target {
    region: Region,
    session: String,
    seen: Seen,
    max_pieces: usize,
    decoder: Decoder,
    /// Where the pieces of one push go: its room is used again.
    addresses: Vec<u64>,
}

impl Target {
    /// Does what a message says, if that can be done.
    ///
    /// An error says that the message has no id, and is not to be answered.
    fn take<F: AsRef<[u8]>>(
        &mut self,
        frames: &[F],
    ) -> Result<(Id, Result<u64, Refused>), Malformed> {
        let mut decoder = mem::take(&mut self.decoder);
        let taken = self.take_with(&mut decoder, frames);
        self.decoder = decoder;
        taken
    }

    fn take_with<F: AsRef<[u8]>>(
        &mut self,
        decoder: &mut Decoder,
        frames: &[F],
    ) -> Result<(Id, Result<u64, Refused>), Malformed> {
        let (first, payloads) = frames.split_first().ok_or(Malformed::NoFrames)?;
        let metadata = decoder.decode_metadata(first.as_ref())?;
        let push = match wire::read_push(metadata.scalars()) {
            Ok(push) => push,
            Err((malformed, None)) => return Err(malformed),
            Err((malformed, Some(id))) => return Ok((id, Err(Refused::Malformed(malformed)))),
        };
        if push.session != self.session.as_str() {
            return Ok((push.id, Err(Refusal::UnknownSession.into())));
        }
        let outcome = match metadata.attach(payloads) {
            Ok(message) => self.write(&push, &message),
            Err(error) => Err(Refused::Malformed(error.into())),
        };
        Ok((push.id, outcome))
    }

    /// Writes a push for this session: all of it or, after an error, nothing.
    fn write<F: AsRef<[u8]>>(
        &mut self,
        push: &wire::Push<'_>,
        message: &Message<'_, '_, F>,
    ) -> Result<u64, Refused> {
        let stale = |newest| Refusal::Stale { newest };
        self.seen.note(push.id).map_err(stale)?;
        let pieces = message.len();
        if pieces > self.max_pieces {
            return Err(Refusal::TooMany {
                limit: wide(self.max_pieces),
                actual: wide(pieces),
            }
            .into());
        }
        self.addresses.clear();
        let mut count: usize = 0;
        for address in push.addresses.iter() {
            count = count.saturating_add(1);
            // As many as there are tensors, and those came.
            if count <= pieces {
                let address = address.as_u64();
                self.addresses.push(address.map_err(Malformed::of_address)?);
            }
        }
        if count != pieces {
            return Err(Refusal::Count {
                tensors: wide(pieces),
                addresses: wide(count),
            }
            .into());
        }
        let span = self.span(message)?;
        let Some(span) = span else { return Ok(0) };
        let writing = self.begin(message, span)?;
        let mut written: u64 = 0;
        for (place, bytes) in self.places(message) {
            let place = place?;
            if !bytes.is_empty() {
                self.region.write(&writing, place, bytes)?;
            }
            written = written.saturating_add(wide(bytes.len()));
        }
        Ok(written)
    }
}
