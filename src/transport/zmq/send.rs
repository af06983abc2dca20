//! Sending to a socket.

use core::mem;

use alloc::vec::Vec;

use super::Error;
use super::kind::sealed::Remainder;
use super::kind::{Kind, Router, Sends};
use super::raw::Outgoing;
use super::socket::{Socket, millis};
use crate::transport::deadline::Deadline;
use crate::transport::{Part, SendFrames, Wait};

impl<K: Sends> SendFrames for Socket<K> {
    type SendError = Error;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), Error> {
        self.send_borrowed(None, frames, wait)
    }

    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), Error> {
        self.send_mixed(None, parts, wait)
    }
}

impl Socket<Router> {
    /// Returns the way to the peer that `envelope` names.
    ///
    /// [`Routed::envelope`](super::Routed::envelope) gave it. Sending there fails with
    /// [`Error::Unreachable`] if there is no such peer. One that died with its queue full
    /// is there until this socket receives; see [the module](super#envelopes).
    #[must_use]
    pub fn to<'a>(&'a mut self, envelope: &'a [u8]) -> Peer<'a> {
        Peer {
            router: self,
            envelope,
        }
    }
}

/// The way from a ROUTER socket to one of its peers.
#[derive(Debug)]
pub struct Peer<'a> {
    router: &'a mut Socket<Router>,
    envelope: &'a [u8],
}

impl SendFrames for Peer<'_> {
    type SendError = Error;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), Error> {
        self.router.send_borrowed(Some(self.envelope), frames, wait)
    }

    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), Error> {
        self.router.send_mixed(Some(self.envelope), parts, wait)
    }
}

impl<K: Kind> Socket<K> {
    fn send_borrowed(
        &mut self,
        envelope: Option<&[u8]>,
        frames: &[&[u8]],
        wait: Wait,
    ) -> Result<(), Error> {
        let sent = self.copy_and_send(envelope, frames, wait);
        let bytes = frames.iter().map(|frame| frame.len());
        self.note_sent(sent, bytes.fold(0, usize::saturating_add))
    }

    fn send_mixed(
        &mut self,
        envelope: Option<&[u8]>,
        parts: &mut Vec<Part<'_>>,
        wait: Wait,
    ) -> Result<(), Error> {
        let mut bytes = 0;
        let sent = self.stage_and_send(envelope, parts, wait, &mut bytes);
        self.note_sent(sent, bytes)
    }

    /// Counts a message of `bytes`, or why it was not sent.
    fn note_sent(&mut self, sent: Result<(), Error>, bytes: usize) -> Result<(), Error> {
        match &sent {
            Ok(()) => self.recorder.sent(bytes),
            Err(error) => self.recorder.send_failed(error),
        }
        sent
    }

    fn copy_and_send(
        &mut self,
        envelope: Option<&[u8]>,
        frames: &[&[u8]],
        wait: Wait,
    ) -> Result<(), Error> {
        if frames.is_empty() {
            return Err(Error::EmptyMessage);
        }
        self.with_staged(frames.len(), |socket, staged| {
            for (staged, frame) in staged.iter_mut().zip(frames) {
                staged.make_room(frame.len()).map_err(Error::from_errno)?;
            }
            let bytes = |index: usize| frames.get(index).copied().unwrap_or_default();
            let sent = socket.send_all(envelope, staged, bytes, wait);
            sent.map_err(|(error, _)| error)
        })
    }

    /// Sends `parts`, and adds up their lengths in `bytes`.
    fn stage_and_send(
        &mut self,
        envelope: Option<&[u8]>,
        parts: &mut Vec<Part<'_>>,
        wait: Wait,
        bytes: &mut usize,
    ) -> Result<(), Error> {
        if parts.is_empty() {
            return Err(Error::EmptyMessage);
        }
        self.with_staged(parts.len(), |socket, staged| {
            let ready = socket.stage(parts, staged, bytes);
            let sent = ready.and_then(|()| {
                let bytes = |index: usize| match parts.get(index) {
                    Some(Part::Borrowed(bytes)) => *bytes,
                    _ => &[],
                };
                socket.send_all(envelope, staged, bytes, wait)
            });
            if let Err((error, Progress::Nothing)) = sent {
                // Back to where they were.
                for (staged, part) in staged.iter_mut().zip(parts) {
                    if let Some(buffer) = staged.reclaim() {
                        *part = Part::Owned(buffer);
                    }
                }
                return Err(error);
            }
            parts.clear();
            sent.map_err(|(error, _)| error)
        })
    }

    /// Lends `send` the frames to make a message of, `count` of them. They are kept for
    /// the next message; what `send` leaves in them is released.
    fn with_staged(
        &mut self,
        count: usize,
        send: impl FnOnce(&mut Self, &mut [Outgoing]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut staged = mem::take(&mut self.staged);
        if staged.len() < count {
            staged.resize_with(count, Outgoing::default);
        }
        let frames = staged.get_mut(..count).unwrap_or_default();
        let sent = send(self, frames);
        if sent.is_err() {
            frames.iter_mut().for_each(Outgoing::close);
        }
        self.staged = staged;
        sent
    }

    /// Makes a frame of every part, so that nothing but the connection can fail
    /// once the first one is sent.
    fn stage(
        &mut self,
        parts: &mut [Part<'_>],
        staged: &mut [Outgoing],
        total: &mut usize,
    ) -> Result<(), (Error, Progress)> {
        let refused = |errno| (Error::from_errno(errno), Progress::Nothing);
        for (part, staged) in parts.iter_mut().zip(staged) {
            let bytes = part.as_ref();
            *total = total.saturating_add(bytes.len());
            let lent = match part {
                Part::Owned(_) if bytes.len() >= self.options.copy_below => {
                    mem::replace(part, Part::Borrowed(&[]))
                }
                Part::Owned(_) => {
                    staged.copy(bytes).map_err(refused)?;
                    continue;
                }
                Part::Borrowed(_) => {
                    staged.make_room(bytes.len()).map_err(refused)?;
                    continue;
                }
            };
            if let Part::Owned(buffer) = lent
                && let Err((buffer, errno)) = staged.lend(buffer)
            {
                *part = Part::Owned(buffer);
                return Err(refused(errno));
            }
        }
        Ok(())
    }

    /// Sends the staged frames. The first one may wait; the others go after it at
    /// once or not at all, so that none of them can reach another peer.
    fn send_all<'a>(
        &mut self,
        envelope: Option<&[u8]>,
        staged: &mut [Outgoing],
        bytes: impl Fn(usize) -> &'a [u8],
        wait: Wait,
    ) -> Result<(), (Error, Progress)> {
        let nothing = |error| (error, Progress::Nothing);
        if let Some(envelope) = envelope {
            let errno = |errno| nothing(Error::from_errno(errno));
            let mut frame = Outgoing::default();
            frame.copy(envelope).map_err(errno)?;
            self.send_first(&mut frame, &[], ::zmq::SNDMORE, wait)
                .map_err(nothing)?;
        }
        let mut left = staged.len();
        for (index, frame) in staged.iter_mut().enumerate() {
            left = left.saturating_sub(1);
            let flags = if left > 0 { ::zmq::SNDMORE } else { 0 };
            let bytes = bytes(index);
            if index == 0 && envelope.is_none() {
                self.send_first(frame, bytes, flags, wait)
                    .map_err(nothing)?;
                continue;
            }
            let Err(errno) = send_now(&mut self.socket, frame, bytes, flags) else {
                continue;
            };
            if errno != zmq_sys::errno::EAGAIN {
                return Err((Error::from_errno(errno), Progress::Some));
            }
            // Only a lost connection refuses a further frame: room was counted
            // in whole messages, and the first frame took it.
            if left > 0 && K::REMAINDER == Remainder::Swallowed {
                end_swallowing(&mut self.socket);
            }
            return Err((Error::Disconnected, Progress::Some));
        }
        Ok(())
    }

    /// Sends the frame that starts a message, when there is room for a message.
    fn send_first(
        &mut self,
        frame: &mut Outgoing,
        bytes: &[u8],
        flags: i32,
        wait: Wait,
    ) -> Result<(), Error> {
        // As for receiving, the clock is read only where there is time to wait.
        match send_now(&mut self.socket, frame, bytes, flags) {
            Err(zmq_sys::errno::EAGAIN) => {}
            done => return done.map_err(Error::from_errno),
        }
        let deadline = Deadline::new(wait, self.options.send_timeout);
        loop {
            let left = millis(deadline.remaining()?);
            if self.send_millis != left {
                self.socket.set_sndtimeo(left)?;
                self.send_millis = left;
            }
            match frame.send(&mut self.socket, bytes, flags) {
                Err(zmq_sys::errno::EAGAIN | zmq_sys::errno::EINTR) => {}
                done => return done.map_err(Error::from_errno),
            }
        }
    }
}

/// Sends a frame now or not, whatever signals come.
fn send_now(
    socket: &mut ::zmq::Socket,
    frame: &mut Outgoing,
    bytes: &[u8],
    flags: i32,
) -> Result<(), i32> {
    loop {
        match frame.send(socket, bytes, flags | ::zmq::DONTWAIT) {
            Err(zmq_sys::errno::EINTR) => {}
            done => return done,
        }
    }
}

/// Brings a socket that swallows the rest of a message to its end.
fn end_swallowing(socket: &mut ::zmq::Socket) {
    let mut last = Outgoing::default();
    if last.copy(&[]).is_ok() {
        // Swallowed like the rest: it cannot fail but with the context, and then
        // there is no next message.
        let _ = send_now(socket, &mut last, &[], 0);
    }
}

/// How far a send came before it failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Progress {
    Nothing,
    Some,
}
