//! Whole messages, as they come from a role's result socket.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::Coordinator;
use super::error::ProtocolError;
use crate::error::DecodeError;
use crate::json::{Object, Str};
use crate::message::{MessageKind, Options, classify};
use crate::transfer::message::Control;
use crate::transfer::{RequestId, Role};

/// A message that was not handled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum InputError {
    /// It is no message at all.
    Decode(DecodeError),
    /// It is neither a control message nor a tensor message.
    NoMessage,
    /// A tensor message whose scalars name no request.
    NoRequest,
    /// It may not be sent, or not now.
    Protocol(ProtocolError),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(error) => fmt::Display::fmt(error, f),
            Self::NoMessage => f.write_str("neither a control message nor a tensor message"),
            Self::NoRequest => f.write_str("a tensor message without a request_id"),
            Self::Protocol(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl Error for InputError {}

impl From<DecodeError> for InputError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<ProtocolError> for InputError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl Coordinator {
    /// Handles a message of a role's result socket, whichever it is.
    ///
    /// A tensor message is a [reply](Self::handle_reply) to the request that its
    /// scalars name; its error is `_disagg_error`, or else `error`. A decoder's
    /// that has neither the tensor `output` nor the tensor `audio` is an error
    /// too, as it is to the Python head node.
    ///
    /// # Errors
    ///
    /// [`InputError`]; then it is as if the message had not come.
    pub fn handle_frames<F: AsRef<[u8]>>(
        &mut self,
        role: Role,
        frames: &[F],
        now: Duration,
    ) -> Result<(), InputError> {
        match classify(frames) {
            MessageKind::Control { payload } => {
                let options = Options::new();
                let control = Control::decode_with(payload, &options)?;
                Ok(self.handle_control(role, &control, now)?)
            }
            MessageKind::Tensors => {
                // Apart from `self`, which the message does not borrow from.
                let mut decoder = core::mem::take(&mut self.decoder);
                let message = decoder.decode(frames);
                let result = match message {
                    Ok(message) => {
                        let has = |name| message.field(name).is_some();
                        let empty = !has("output") && !has("audio");
                        self.tensors(role, message.scalars(), empty, now)
                    }
                    Err(error) => Err(error.into()),
                };
                self.decoder = decoder;
                result
            }
            _ => Err(InputError::NoMessage),
        }
    }

    fn tensors(
        &mut self,
        role: Role,
        scalars: Object<'_>,
        empty: bool,
        now: Duration,
    ) -> Result<(), InputError> {
        let text = |key| scalars.get(key).and_then(|value| value.as_str().ok());
        let request_id = text("request_id").filter(|id| !id.raw().is_empty());
        let request_id = request_id.ok_or(InputError::NoRequest)?;
        let given = |text: &Str<'_>| !text.raw().is_empty();
        let error = text("_disagg_error").filter(given);
        let mut error = error.or_else(|| text("error").filter(given));
        if role.is_last() && empty && error.is_none() {
            error = Some("Decoder returned no output".into());
        }
        Ok(self.reply(role, request_id, error, now)?)
    }

    /// Handles a tensor message of a role: the decoder's result, or any role's error.
    ///
    /// # Errors
    ///
    /// [`ProtocolError`]; then it is as if the message had not come.
    pub fn handle_reply(
        &mut self,
        role: Role,
        request_id: &RequestId,
        error: Option<&str>,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let error = error.filter(|error| !error.is_empty());
        self.reply(role, request_id.text(), error.map(Str::from), now)
    }

    fn reply(
        &mut self,
        role: Role,
        request_id: Str<'_>,
        error: Option<Str<'_>>,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let stage = self.stage_of(role)?;
        match error {
            Some(error) => self.role_failed(stage, request_id, error, now)?,
            None if role.is_last() => self.finished(stage, request_id, now)?,
            None => return Err(ProtocolError::ReplyWithoutError { role }),
        }
        self.dispatch(now);
        Ok(())
    }
}
