//! Sending to a socket.

use core::fmt;
use core::time::Duration;

use alloc::vec::Vec;

use super::Error;
use super::kind::Sends;
use super::kind::sealed::Flow;
use super::linger::Over;
use super::raw::Body;
use super::socket::Socket;
use crate::bundle;
use crate::transport::deadline::Deadline;
use crate::transport::{LendFrames, Loan, Part, SendFrames, Wait};

impl<K: Sends> SendFrames for Socket<K> {
    type SendError = Error;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), Error> {
        self.send_copied(frames.iter().copied(), wait)
    }

    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), Error> {
        self.send_copied(parts.iter().map(AsRef::as_ref), wait)?;
        parts.clear();
        Ok(())
    }
}

impl<K: Sends> LendFrames for Socket<K> {
    type Loan<'a>
        = Outgoing<'a, K>
    where
        Self: 'a;

    fn lend_frames(&mut self, lengths: &[usize], _wait: Wait) -> Result<Outgoing<'_, K>, Error> {
        self.check_turn()?;
        let (mut body, _) = Body::for_frames(lengths.iter().copied())?;
        // Header and table, for a caller that has nothing to write.
        let places = bundle::lend(lengths.iter().copied(), body.as_mut_slice());
        drop(places.map_err(Error::of_lengths)?);
        self.lengths.clear();
        self.lengths.extend_from_slice(lengths);
        let socket = self;
        let body = Some(body);
        Ok(Outgoing { socket, body })
    }
}

/// A message that is being written into the body that NNG will send.
#[must_use = "a message that is dropped is not sent"]
pub struct Outgoing<'a, K: Sends> {
    socket: &'a mut Socket<K>,
    /// There until it is sent.
    body: Option<Body>,
}

impl<K: Sends> Loan for Outgoing<'_, K> {
    type Error = Error;

    fn frames_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let body = self.body.as_mut().map_or(&mut [][..], Body::as_mut_slice);
        let lengths = self.socket.lengths.iter().copied();
        // It is long enough: it was made for these lengths.
        bundle::lend(lengths, body).into_iter().flatten()
    }

    fn send(mut self, wait: Wait) -> Result<(), (Self, Error)> {
        let Some(body) = self.body.take() else {
            return Err((self, Error::Closed));
        };
        let bytes = self.socket.lengths.iter().sum();
        match self.socket.send_counted(body, bytes, wait) {
            Ok(()) => Ok(()),
            Err((body, error)) => {
                self.body = body;
                Err((self, error))
            }
        }
    }
}

impl<K: Sends> fmt::Debug for Outgoing<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("lengths", &self.socket.lengths)
            .finish_non_exhaustive()
    }
}

impl<K: Sends> Socket<K> {
    /// Sends `frames`, copied into one body.
    fn send_copied<'f, I>(&mut self, frames: I, wait: Wait) -> Result<(), Error>
    where
        I: Iterator<Item = &'f [u8]> + Clone,
    {
        self.check_turn()?;
        let (mut body, bytes) = Body::for_frames(frames.clone().map(<[u8]>::len))?;
        let lengths = frames.clone().map(<[u8]>::len);
        let places = bundle::lend(lengths, body.as_mut_slice()).map_err(Error::of_lengths)?;
        for (place, frame) in places.zip(frames) {
            if place.len() != frame.len() {
                // An owner whose `AsRef` gives now this, now that.
                return Err(Error::System(::nng::Error::InvalidInput));
            }
            place.copy_from_slice(frame);
        }
        self.send_counted(body, bytes, wait)
            .map_err(|(_, error)| error)
    }

    /// Turns away a second request before the reply to the first.
    fn check_turn(&self) -> Result<(), Error> {
        if self.awaits_reply {
            return Err(Error::OutOfTurn);
        }
        Ok(())
    }

    /// Sends a body with frames of `bytes`, and counts it.
    fn send_counted(
        &mut self,
        body: Body,
        bytes: usize,
        wait: Wait,
    ) -> Result<(), (Option<Body>, Error)> {
        // The requests before it may have been sent several times each.
        let resends = self.options.resend.is_some();
        let taken = resends.then(|| self.account.taken(&self.socket));
        let sent = self.send_body(body, wait);
        match &sent {
            Ok(()) => {
                self.recorder.sent(bytes);
                match taken {
                    _ if K::FLOW == Flow::Replies => self.account.replied(self.asked_by),
                    Some(taken) => self.account.handed_after(taken),
                    None => self.account.handed(),
                }
                if let Some(pending) = &mut self.pending {
                    pending.start(&self.socket);
                    self.awaits_reply = true;
                }
                if let Over::Inproc { outgoing, .. } = &self.over {
                    outgoing.sent();
                }
            }
            Err((_, error)) => self.recorder.send_failed(error),
        }
        self.note_connections();
        sent
    }

    fn send_body(&mut self, body: Body, wait: Wait) -> Result<(), (Option<Body>, Error)> {
        if K::FLOW == Flow::Replies {
            return self.send_reply(body, wait);
        }
        // The clock is read only where there is time to wait, and a need to.
        let mut unsent = match self.sending.send(&self.socket, body, Duration::ZERO) {
            Err((Some(body), ::nng::Error::TimedOut)) => body,
            done => return done.map_err(sorted),
        };
        let (deadline, mut left) = match Deadline::start(wait, self.options.send_timeout) {
            Ok(started) => started,
            Err(expired) => return Err((Some(unsent), expired.into())),
        };
        loop {
            unsent = match self.sending.send(&self.socket, unsent, left) {
                Err((Some(body), ::nng::Error::TimedOut)) => body,
                done => return done.map_err(sorted),
            };
            left = match deadline.remaining() {
                Ok(left) => left,
                Err(expired) => return Err((Some(unsent), expired.into())),
            };
        }
    }

    /// Sends a reply, in one go: when that fails, NNG knows no more whom it was for.
    fn send_reply(&mut self, body: Body, wait: Wait) -> Result<(), (Option<Body>, Error)> {
        let (time, expired) = match Deadline::start(wait, self.options.send_timeout) {
            // NNG's clock ticks in milliseconds, and a tick may be nearly over.
            Ok((_, left)) => (left.saturating_add(TICK), Error::TimedOut),
            Err(expired) => (Duration::ZERO, expired.into()),
        };
        let sent = self.sending.send(&self.socket, body, time);
        sent.map_err(|(body, error)| match error {
            ::nng::Error::TimedOut => (body, expired),
            error => sorted((body, error)),
        })
    }
}

impl Body {
    /// Makes a body for frames of these lengths, nothing written yet, and tells how many
    /// bytes the frames have together.
    fn for_frames<I>(lengths: I) -> Result<(Self, usize), Error>
    where
        I: Iterator<Item = usize> + Clone,
    {
        let len = bundle::encoded_len(lengths.clone()).map_err(Error::of_lengths)?;
        let body = Self::new(len)?;
        Ok((body, lengths.fold(0, usize::saturating_add)))
    }
}

fn sorted((body, error): (Option<Body>, ::nng::Error)) -> (Option<Body>, Error) {
    (body, error.into())
}

const TICK: Duration = Duration::from_millis(1);
