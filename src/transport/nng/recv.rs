//! Receiving from a socket.

use core::time::Duration;

use super::Error;
use super::kind::Receives;
use super::kind::sealed::Flow;
use super::linger::Over;
use super::message::Message;
use super::raw::Body;
use super::socket::Socket;
use crate::transport::deadline::Deadline;
use crate::transport::{Expired, Frames, RecvFrames, Wait};

impl<K: Receives> RecvFrames for Socket<K> {
    type Message = Message;
    type RecvError = Error;

    fn recv_frames(&mut self, message: &mut Message, wait: Wait) -> Result<(), Error> {
        message.clear();
        let received = self.recv_message(message, wait);
        match &received {
            Ok(bytes) => self.recorder.received(*bytes),
            Err(error) => {
                message.clear();
                self.recorder.recv_failed(error);
            }
        }
        self.note_connections();
        received.map(|_| ())
    }
}

impl<K: Receives> Socket<K> {
    /// Receives a message, and returns how many bytes its frames have.
    fn recv_message(&mut self, message: &mut Message, wait: Wait) -> Result<usize, Error> {
        let mut deadline = None;
        let mut skipped: usize = 0;
        loop {
            let body = self.recv_body(&mut deadline, wait)?;
            if let Over::Inproc { incoming, .. } = &self.over {
                incoming.taken();
            }
            let bytes = message.fill(body, self.options.caps)?;
            if K::FLOW != Flow::Broadcast || self.is_wanted(message) {
                return Ok(bytes);
            }
            message.clear();
            // Others may come faster than they are skipped.
            skipped = skipped.saturating_add(1);
            let deadline = self.deadline(&mut deadline, wait);
            match deadline.remaining() {
                Err(Expired::WouldBlock) if skipped < MOST_SKIPPED => {}
                left => drop(left?),
            }
        }
    }

    /// Tells whether the socket subscribed to this message.
    fn is_wanted(&self, message: &Message) -> bool {
        let first = message.frame(0).unwrap_or_default();
        let mut topics = self.options.topics.iter();
        topics.any(|topic| first.starts_with(topic))
    }

    /// Receives a body. The deadline is fixed when there is first a need to wait.
    fn recv_body(&mut self, deadline: &mut Option<Deadline>, wait: Wait) -> Result<Body, Error> {
        if K::FLOW == Flow::Requests {
            let received = self.recv_reply(deadline, wait);
            let goes_on = matches!(received, Err(Error::TimedOut | Error::WouldBlock));
            self.awaits_reply = self.awaits_reply && goes_on;
            return received;
        }
        let mut received = self.receiving.receive(&self.socket, Duration::ZERO);
        while let Err(::nng::Error::TimedOut) = received {
            let left = self.deadline(deadline, wait).remaining()?;
            received = self.receiving.receive(&self.socket, left);
        }
        let body = received?;
        if K::FLOW == Flow::Replies {
            self.asked_by = body.pipe();
        }
        Ok(body)
    }

    /// Receives the reply to a request, by the receive that was started with it. When
    /// the time is up it goes on without us.
    fn recv_reply(&mut self, deadline: &mut Option<Deadline>, wait: Wait) -> Result<Body, Error> {
        if !self.awaits_reply {
            return Err(Error::OutOfTurn);
        }
        let mut left = Duration::ZERO;
        loop {
            match &mut self.pending {
                Some(pending) if pending.wait(left) => return Ok(pending.take()?),
                Some(_) => left = self.deadline(deadline, wait).remaining()?,
                None => return Err(Error::OutOfTurn),
            }
        }
    }

    fn deadline(&self, deadline: &mut Option<Deadline>, wait: Wait) -> Deadline {
        *deadline.get_or_insert_with(|| Deadline::new(wait, self.options.recv_timeout))
    }
}

/// How many messages that nobody subscribed to are passed over at most, in a call
/// that is not to wait: as many as NNG keeps.
const MOST_SKIPPED: usize = 8192;
