//! Receiving from a socket.

use core::time::Duration;

use super::Error;
use super::kind::{Kind, Receives, Router};
use super::message::{Frame, Message, Routed};
use super::socket::{Socket, millis};
use crate::transport::deadline::Deadline;
use crate::transport::{Frames, RecvFrames, Wait};

impl<K: Receives> RecvFrames for Socket<K> {
    type Message = Message;
    type RecvError = Error;

    fn recv_frames(&mut self, message: &mut Message, wait: Wait) -> Result<(), Error> {
        let received = self.recv_message(None, message, wait);
        self.note_received(received)
    }
}

impl RecvFrames for Socket<Router> {
    type Message = Routed;
    type RecvError = Error;

    fn recv_frames(&mut self, routed: &mut Routed, wait: Wait) -> Result<(), Error> {
        let Routed { envelope, message } = routed;
        let received = self.recv_message(Some(envelope), message, wait);
        if received.is_err() {
            routed.clear();
        }
        self.note_received(received)
    }
}

impl<K: Kind> Socket<K> {
    /// Counts a message of so many bytes, or why there is none.
    fn note_received(&mut self, received: Result<usize, Error>) -> Result<(), Error> {
        match received {
            Ok(bytes) => self.recorder.received(bytes),
            Err(error) => {
                self.recorder.recv_failed(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Receives the frames of one message behind the envelope, if there is one, and
    /// returns how many bytes they have.
    fn recv_message(
        &mut self,
        envelope: Option<&mut Frame>,
        message: &mut Message,
        wait: Wait,
    ) -> Result<usize, Error> {
        message.start(self.batched);
        let mut frame = ::zmq::Message::new();
        self.recv_first(&mut frame, wait)?;
        if let Some(envelope) = envelope {
            let alone = !frame.get_more();
            *envelope = Frame::received(frame);
            if alone {
                return Err(Error::EmptyMessage);
            }
            frame = ::zmq::Message::new();
            self.recv_now(&mut frame)?;
        }
        let mut meter = self.options.caps.meter();
        loop {
            let more = frame.get_more();
            if meter.admit(frame.len()) {
                message.push(frame);
            } else {
                message.clear();
            }
            if !more {
                break;
            }
            frame = ::zmq::Message::new();
            if let Err(error) = self.recv_now(&mut frame) {
                message.clear();
                return Err(error);
            }
        }
        let bytes = meter.bytes();
        meter.finish().map_err(Error::Cap)?;
        Ok(bytes)
    }

    /// Receives the first frame of a message.
    fn recv_first(&mut self, frame: &mut ::zmq::Message, wait: Wait) -> Result<(), Error> {
        // To look costs a message that is there no clock; but where there is none
        // it is a system call, while a peer that answers has to be waited for each
        // time. So a look in vain is followed by some waits without one.
        // With no time to wait, the look is all there is.
        let at_once = match wait {
            Wait::Configured => self.options.recv_timeout == Some(Duration::ZERO),
            Wait::Forever => false,
            Wait::Never => true,
            Wait::UpTo(longest) => longest.is_zero(),
        };
        if self.waits == 0 || at_once {
            match recv_retrying(&self.socket, frame, ::zmq::DONTWAIT) {
                Err(::zmq::Error::EAGAIN) => self.waits = WAITS,
                done => return Ok(done?),
            }
        } else {
            self.waits = self.waits.saturating_sub(1);
        }
        let (deadline, mut left) = Deadline::start(wait, self.options.recv_timeout)?;
        loop {
            let timeout = millis(left);
            if self.recv_millis != timeout {
                self.socket.set_rcvtimeo(timeout)?;
                self.recv_millis = timeout;
            }
            match self.socket.recv(frame, 0) {
                Err(::zmq::Error::EAGAIN | ::zmq::Error::EINTR) => {}
                done => return Ok(done?),
            }
            left = deadline.remaining()?;
        }
    }

    /// Receives a further frame of a message, which libzmq has in full.
    fn recv_now(&mut self, frame: &mut ::zmq::Message) -> Result<(), Error> {
        match recv_retrying(&self.socket, frame, ::zmq::DONTWAIT) {
            Err(::zmq::Error::EAGAIN) => Err(Error::Disconnected),
            done => Ok(done?),
        }
    }
}

/// Receives a frame, whatever signals come.
fn recv_retrying(
    socket: &::zmq::Socket,
    frame: &mut ::zmq::Message,
    flags: i32,
) -> ::zmq::Result<()> {
    loop {
        match socket.recv(frame, flags) {
            Err(::zmq::Error::EINTR) => {}
            done => return done,
        }
    }
}

/// How many receives wait without looking first, after one that looked in vain.
const WAITS: u8 = 15;
