//! The receiving end: pushes come in, are checked, written and answered.

use core::mem;
use core::time::Duration;

use alloc::string::String;
use alloc::vec::Vec;

use super::connect::Listen;
use super::seen::{Old, Seen};
use super::wire::{self, Answer, Id, Push};
use super::{InletError, MAX_PIECES, Malformed, Refusal, Regions};
use crate::convert::to_u64;
use crate::dtype::DType;
use crate::message::{Decoder, Message};
use crate::plane::Piece;
use crate::tensor::TensorView;
use crate::transport::{Frames, TransportError, Wait};

/// Writes pushes into the open windows of a session, and answers each.
///
/// [`Plane::inlet`](super::Plane::inlet) makes one. It may be moved to another thread,
/// and outlive its plane. What it does with a message, whatever the message holds, is
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
    pub(super) fn new(session: String, regions: Regions, listen: L) -> Self {
        Self {
            listen,
            message: L::Message::default(),
            target: Target {
                regions,
                session,
                seen: Seen::new(DEFAULT_PLANES),
                max_pieces: DEFAULT_PIECES,
                decoder: Decoder::new(),
                pieces: Vec::new(),
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

    /// Returns where pushes come in.
    #[must_use]
    pub const fn listener(&self) -> &L {
        &self.listen
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
        let told = match outcome {
            // As the first time, when the answer may have been lost.
            Err(Refused::Old(Old::Again(outcome))) => outcome,
            outcome => outcome.map_err(Refused::reason),
        };
        let told = Answer { id, outcome: told };
        let frame = wire::write_answer(told).unwrap_or_default();
        let sent = self.listen.answer(&self.message, &[&frame]);
        let is_answered = sent.is_ok();
        match outcome {
            Ok(bytes) => Ok(Written { bytes, is_answered }),
            Err(Refused::Malformed(malformed)) => Err(InletError::Malformed(malformed)),
            Err(Refused::Reason(reason)) => Err(InletError::Refused(reason)),
            Err(Refused::Old(old)) => {
                let newest = match old {
                    Old::Again(_) => id.push,
                    Old::Overtaken(newest) => newest,
                };
                Err(InletError::Refused(Refusal::Stale { newest }))
            }
        }
    }
}

/// A push that was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Written {
    bytes: u64,
    is_answered: bool,
}

impl Written {
    /// Returns how many bytes were written: all of the push.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Tells whether the pusher was told. If not, because it is gone or takes no answers, its
    /// push times out.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        self.is_answered
    }
}

/// Where pushes go, apart from where they come in.
#[derive(Debug)]
struct Target {
    regions: Regions,
    session: String,
    seen: Seen,
    max_pieces: usize,
    decoder: Decoder,
    /// The pieces of one push: its room is used again.
    pieces: Vec<Piece>,
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
        let first = frames.first().map_or(&[][..], AsRef::as_ref);
        let payloads = frames.get(1..).unwrap_or_default();
        let metadata = decoder.decode_metadata(first)?;
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
        push: &Push<'_>,
        message: &Message<'_, '_, F>,
    ) -> Result<u64, Refused> {
        self.seen.note(push.id).map_err(Refused::Old)?;
        let outcome = self.write_new(push, message);
        self.seen.settle(outcome.map_err(Refused::reason));
        outcome
    }

    fn write_new<F: AsRef<[u8]>>(
        &mut self,
        push: &Push<'_>,
        message: &Message<'_, '_, F>,
    ) -> Result<u64, Refused> {
        self.gather(push, message)?;
        if self.pieces.is_empty() {
            return Ok(0);
        }
        let mut delivery = self.regions.begin(&self.pieces).map_err(Refusal::from)?;
        let mut written: u64 = 0;
        for (piece, tensor) in self.pieces.iter().zip(message.tensors()) {
            let bytes = tensor.bytes();
            delivery
                .write(piece.address(), bytes)
                .map_err(Refusal::from)?;
            written = written.saturating_add(to_u64(bytes.len()));
        }
        Ok(written)
    }

    /// Puts addresses and tensors together.
    ///
    /// No more pieces than tensors came, however many addresses there are.
    fn gather<F: AsRef<[u8]>>(
        &mut self,
        push: &Push<'_>,
        message: &Message<'_, '_, F>,
    ) -> Result<(), Refused> {
        self.pieces.clear();
        let (limit, tensors) = (self.max_pieces, message.len());
        if tensors > limit {
            let (limit, actual) = (to_u64(limit), to_u64(tensors));
            return Err(Refusal::TooMany { limit, actual }.into());
        }
        let mut addresses = push.addresses.iter();
        for (index, tensor) in (0..).zip(message.tensors()) {
            let Some(address) = addresses.next() else {
                break;
            };
            if !is_piece(&tensor, index) {
                let piece = index.into();
                return Err(Refusal::Piece { piece }.into());
            }
            let address = wire::read_address(address)?;
            self.pieces
                .push(Piece::received(address, tensor.byte_len()));
        }
        let addresses = self.pieces.len().saturating_add(addresses.count());
        if addresses != tensors {
            let (tensors, addresses) = (to_u64(tensors), to_u64(addresses));
            return Err(Refusal::Count { tensors, addresses }.into());
        }
        Ok(())
    }
}

/// Tells whether a tensor is what a push has at this place: bytes, in the list of pieces.
fn is_piece(tensor: &TensorView<'_>, index: u32) -> bool {
    tensor.list_index() == Some(index)
        && tensor.dtype() == DType::UInt8
        && tensor.rank() == 1
        && tensor.name() == wire::PIECES
}

/// Why nothing was written, as this side knows it.
#[derive(Clone, Copy, Debug)]
enum Refused {
    /// Of which the pusher is told less.
    Malformed(Malformed),
    /// Which is answered as it was the first time, if that is known.
    Old(Old),
    Reason(Refusal),
}

impl Refused {
    const fn reason(self) -> Refusal {
        match self {
            Self::Malformed(_) => Refusal::Malformed,
            Self::Old(Old::Again(_)) => Refusal::Other,
            Self::Old(Old::Overtaken(newest)) => Refusal::Stale { newest },
            Self::Reason(reason) => reason,
        }
    }
}

impl From<Malformed> for Refused {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<Refusal> for Refused {
    fn from(reason: Refusal) -> Self {
        Self::Reason(reason)
    }
}

/// As many pieces as the manifest of any known role has tensors, many times over.
const DEFAULT_PIECES: usize = 1024;

/// Of so many planes the newest push is remembered: 48 KiB.
const DEFAULT_PLANES: usize = 1024;
