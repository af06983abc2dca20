//! Control messages.

mod draft;
mod faults;
mod kinds;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::choices::Choose;
use super::mutation::{self, Needs};
use super::shown::Shown;
use super::{Generated, Mismatch, NearlyValid, Parameters};
use crate::error::DecodeErrorKind;
use crate::message::CONTROL_MARKER;
use crate::transfer::Control;

pub use faults::ControlMutation;

use draft::Draft;
use kinds::KINDS;

/// A valid control message: its frames, and what decoding them has to give.
///
/// Of every type that the protocol has, and of types that it does not have: those are a
/// [`Control::Unknown`].
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "arbitrary")] {
/// use arbitrary::{Arbitrary, Unstructured};
/// use tensorwire::testing::ControlMessage;
/// use tensorwire::transfer::Control;
///
/// let sent = ControlMessage::arbitrary(&mut Unstructured::new(b"\x02from a fuzzer"))?;
/// let frames = sent.frames();
/// sent.compare(&Control::from_frames(&frames)?)?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct ControlMessage {
    payload: Vec<u8>,
    msg_type: &'static str,
    request_id: Option<String>,
}

impl ControlMessage {
    /// Returns its two frames.
    #[must_use]
    pub fn frames(&self) -> [&[u8]; 2] {
        [CONTROL_MARKER, &self.payload]
    }

    /// Returns the second frame, which has all that is said.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Returns its type on the wire: `transfer_push`.
    #[must_use]
    pub const fn msg_type(&self) -> &'static str {
        self.msg_type
    }

    /// Returns the request that it is of, if it is of one.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Holds a decoded message against this one.
    ///
    /// # Errors
    ///
    /// [`Mismatch::MessageType`] or [`Mismatch::RequestId`]; what else a message says is for
    /// [`Control::to_vec`] to show.
    pub fn compare(&self, control: &Control<'_>) -> Result<(), Mismatch> {
        if control.msg_type() != self.msg_type {
            return Err(Mismatch::MessageType);
        }
        let same = match (control.request_id(), &self.request_id) {
            (Some(actual), Some(expected)) => actual == expected.as_str(),
            (None, None) => true,
            _ => false,
        };
        if same {
            Ok(())
        } else {
            Err(Mismatch::RequestId)
        }
    }
}

impl fmt::Debug for ControlMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlMessage")
            .field("payload", &Shown(&self.payload))
            .finish_non_exhaustive()
    }
}
impl Generated for ControlMessage {
    type Mutation = ControlMutation;
    type ErrorKind = DecodeErrorKind;

    const MUTATIONS: &'static [ControlMutation] = ControlMutation::ALL;

    fn generate(choices: &mut dyn Choose, parameters: &Parameters) -> Self {
        let draft = Draft::generate(choices, parameters, KINDS);
        let spelling = draft.spelling;
        let request_id = draft.request_id.clone();
        let (before, after) = (spelling.white(choices), spelling.white(choices));
        let object = draft.members.of_schema(spelling, choices);
        Self {
            payload: [before, &object, after].concat().into_bytes(),
            msg_type: draft.kind.msg_type(),
            request_id,
        }
    }

    fn generate_nearly(choices: &mut dyn Choose, parameters: &Parameters) -> NearlyValid<Self> {
        let all = (Self::MUTATIONS, ControlMutation::NoFrames);
        let needs = |_| Needs::NOTHING;
        let (mutation, parameters) = mutation::choose(all, needs, choices, parameters);
        let draft = Draft::generate(choices, &parameters, &mutation.kinds());
        let (frames, kind) = draft.mutated(mutation, choices);
        NearlyValid::new(frames, mutation, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::super::choices::Bytes;
    use super::*;

    #[test]
    fn another_type_and_another_request_are_told() {
        let sent = ControlMessage::generate(&mut Bytes::new(&[]), &Parameters::new());
        let frames = sent.frames();
        let control = Control::from_frames(&frames).unwrap();
        assert_eq!(sent.compare(&control), Ok(()));
        for request_id in [None, Some("r2".into())] {
            let other = ControlMessage {
                request_id,
                ..sent.clone()
            };
            assert_eq!(other.compare(&control), Err(Mismatch::RequestId));
        }
        let other = ControlMessage {
            msg_type: "transfer_push",
            ..sent.clone()
        };
        assert_eq!(other.compare(&control), Err(Mismatch::MessageType));
    }
}
