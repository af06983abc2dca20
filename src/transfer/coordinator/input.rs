//! Whole messages, as they come from a role's result socket.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::Coordinator;
use super::error::ProtocolError;
use super::request::is_true;
use crate::error::DecodeError;
use crate::json::{Object, Str, Value};
use crate::message::{MessageKind, classify};
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
    /// too, as it is to the Python head node. So is a tensor message that cannot be decoded, if it can
    /// be told which request it is of: no other answer will come.
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
                let control = Control::decode_with(payload, &self.settings.options)?;
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
                    Err(error) => self.invalid(role, frames, error, now),
                };
                self.decoder = decoder;
                result
            }
            _ => Err(InputError::NoMessage),
        }
    }

    /// A tensor message that cannot be decoded fails its request, if that can be read.
    fn invalid<F: AsRef<[u8]>>(
        &mut self,
        role: Role,
        frames: &[F],
        error: DecodeError,
        now: Duration,
    ) -> Result<(), InputError> {
        let limit = self.settings.options.limits().metadata_bytes();
        let metadata = frames.first().map(AsRef::as_ref);
        let metadata = metadata.filter(|metadata| metadata.len() <= limit);
        let request_id = metadata.and_then(request_id).ok_or(error)?;
        let text = alloc::format!("invalid result: {error}");
        let failed = self.reply(role, request_id, Some(Str::from(&*text)), now);
        failed.map_err(|_| InputError::Decode(error))
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
        // What Python takes for true is an error, be it text or not.
        let given = |key| {
            let value = scalars.get(key).filter(|value| is_true(*value))?;
            Some(value.as_str().unwrap_or_else(|_| value.raw().into()))
        };
        let mut error = given("_disagg_error").or_else(|| given("error"));
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

/// The request that the metadata of a tensor message names, whatever else is wrong with it.
fn request_id(metadata: &[u8]) -> Option<Str<'_>> {
    let metadata = Value::parse(metadata).ok()?.as_object().ok()?;
    let scalars = metadata.get("scalar_fields")?.as_object().ok()?;
    let id = scalars.get("request_id")?.as_str().ok()?;
    (!id.raw().is_empty()).then_some(id)
}
