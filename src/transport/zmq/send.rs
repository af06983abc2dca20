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
    /// [`Routed::envelope`](super::Routed::envelope) gave it. Sending there fails with [`Error::Unreachable`] if there is no such peer.
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
        self.staged.clear();
        for frame in frames {
            let staged = Outgoing::with_room(frame.len()).map_err(Error::from_errno)?;
            self.staged.push(staged);
        }
        let bytes = |index: usize| frames.get(index).copied().unwrap_or_default();
        let sent = self.send_staged(envelope, bytes, wait);
        self.staged.clear();
        sent.map_err(|(error, _)| error)
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
        self.staged.clear();
        let sent = self.stage(parts, bytes).and_then(|()| {
            let bytes = |index: usize| match parts.get(index) {
                Some(Part::Borrowed(bytes)) => *bytes,
                _ => &[],
            };
            self.send_staged(envelope, bytes, wait)
        });
        if let Err((error, Progress::Nothing)) = sent {
            // Back to where they were.
            for (staged, part) in self.staged.drain(..).zip(parts) {
                if let Some(buffer) = staged.reclaim() {
                    *part = Part::Owned(buffer);
                }
            }
            return Err(error);
        }
        self.staged.clear();
        parts.clear();
        sent.map_err(|(error, _)| error)
    }

    /// Makes a frame of every part, so that nothing but the connection can fail
    /// once the first one is sent.
    fn stage(
        &mut self,
        parts: &mut [Part<'_>],
        total: &mut usize,
    ) -> Result<(), (Error, Progress)> {
        let refused = |errno| (Error::from_errno(errno), Progress::Nothing);
        for part in parts {
            let staged = match part {
                Part::Borrowed(bytes) => {
                    *total = total.saturating_add(bytes.len());
                    Outgoing::with_room(bytes.len()).map_err(refused)?
                }
                Part::Owned(buffer) => {
                    let bytes = buffer.as_ref();
                    *total = total.saturating_add(bytes.len());
                    if bytes.len() < self.options.copy_below {
                        Outgoing::copied(bytes).map_err(refused)?
                    } else {
                        let lent = mem::replace(part, Part::Borrowed(&[]));
                        let Part::Owned(buffer) = lent else { continue };
                        match Outgoing::lent(buffer) {
                            Ok(staged) => staged,
                            Err((buffer, errno)) => {
                                *part = Part::Owned(buffer);
                                return Err(refused(errno));
                            }
                        }
                    }
                }
            };
            self.staged.push(staged);
        }
        Ok(())
    }

    /// Sends the staged frames. The first one may wait; the others go after it at
    /// once or not at all, so that none of them can reach another peer.
    fn send_staged<'a>(
        &mut self,
        envelope: Option<&[u8]>,
        bytes: impl Fn(usize) -> &'a [u8],
        wait: Wait,
    ) -> Result<(), (Error, Progress)> {
        let mut staged = mem::take(&mut self.staged);
        let sent = self.send_all(envelope, &mut staged, bytes, wait);
        self.staged = staged;
        sent
    }

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
            let mut frame = Outgoing::copied(envelope).map_err(errno)?;
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
    if let Ok(mut last) = Outgoing::copied(&[]) {
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
