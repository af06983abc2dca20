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
        self.recv_message(None, message, wait)
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
        received
    }
}

impl<K: Kind> Socket<K> {
    /// Receives the frames of one message behind the envelope, if there is one.
    fn recv_message(
        &mut self,
        envelope: Option<&mut Frame>,
        message: &mut Message,
        wait: Wait,
    ) -> Result<(), Error> {
        message.clear();
        let mut frame = Frame::default();
        self.recv_first(&mut frame, wait)?;
        if let Some(envelope) = envelope {
            let alone = !frame.inner.get_more();
            *envelope = frame;
            if alone {
                return Err(Error::EmptyMessage);
            }
            frame = Frame::default();
            self.recv_now(&mut frame)?;
        }
        let mut meter = self.options.caps.meter();
        loop {
            let more = frame.inner.get_more();
            if meter.admit(frame.inner.len()) {
                message.frames.push(frame);
            } else {
                message.clear();
            }
            if !more {
                break;
            }
            frame = Frame::default();
            if let Err(error) = self.recv_now(&mut frame) {
                message.clear();
                return Err(error);
            }
        }
        meter.finish().map_err(Error::Cap)
    }

    /// Receives the first frame of a message.
    fn recv_first(&mut self, frame: &mut Frame, wait: Wait) -> Result<(), Error> {
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
            match self.socket.recv(&mut frame.inner, 0) {
                Err(::zmq::Error::EAGAIN | ::zmq::Error::EINTR) => {}
                done => return Ok(done?),
            }
            left = deadline.remaining()?;
        }
    }

    /// Receives a further frame of a message, which libzmq has in full.
    fn recv_now(&mut self, frame: &mut Frame) -> Result<(), Error> {
        match recv_retrying(&self.socket, frame, ::zmq::DONTWAIT) {
            Err(::zmq::Error::EAGAIN) => Err(Error::Disconnected),
            done => Ok(done?),
        }
    }
}

/// Receives a frame, whatever signals come.
fn recv_retrying(socket: &::zmq::Socket, frame: &mut Frame, flags: i32) -> ::zmq::Result<()> {
    loop {
        match socket.recv(&mut frame.inner, flags) {
            Err(::zmq::Error::EINTR) => {}
            done => return done,
        }
    }
}

/// How many receives wait without looking first, after one that looked in vain.
const WAITS: u8 = 15;
