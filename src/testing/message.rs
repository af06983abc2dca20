//! Tensor messages.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::choices::Choose;
use super::draft::Draft;
use super::shown::Shown;
use super::{
    Generated, MessageMutation, Mismatch, NearlyValid, Parameters, Tensor, mismatch, mutation,
};
use crate::error::DecodeErrorKind;
use crate::message::Message;

/// A valid tensor message: its frames, and what decoding them has to give.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "arbitrary")] {
/// use arbitrary::{Arbitrary, Unstructured};
/// use tensorwire::Decoder;
/// use tensorwire::testing::TensorMessage;
///
/// // What a fuzzer brings.
/// let mut input = Unstructured::new(b"\x03whatever it has found");
/// let generated = TensorMessage::arbitrary(&mut input)?;
///
/// let mut decoder = Decoder::new();
/// let frames = generated.frames();
/// let message = decoder.decode(&frames)?;
/// generated.compare(&message)?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct TensorMessage {
    metadata: Vec<u8>,
    tensors: Vec<Tensor>,
    scalars: String,
}

impl TensorMessage {
    /// Returns its frames: the metadata, then the bytes of each tensor.
    #[must_use]
    pub fn frames(&self) -> Vec<&[u8]> {
        let payloads = self.tensors.iter().map(Tensor::bytes);
        core::iter::once(self.metadata()).chain(payloads).collect()
    }

    /// Returns the metadata frame.
    #[must_use]
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// Returns the tensors, in wire order.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns the scalars: the text of a JSON object, as it stands in the metadata.
    #[must_use]
    pub fn scalars(&self) -> &str {
        &self.scalars
    }

    /// Holds a decoded message against this one.
    ///
    /// # Errors
    ///
    /// The first [`Mismatch`]. The scalars are compared as texts: a message that was encoded
    /// anew has to have passed them on as they were.
    pub fn compare<F: AsRef<[u8]>>(&self, message: &Message<'_, '_, F>) -> Result<(), Mismatch> {
        let views = (0..message.len()).map(|index| message.get(index));
        let views: Vec<_> = views.flatten().collect();
        mismatch::tensors(&self.tensors, views.into_iter())?;
        if message.scalars().as_value().raw() != self.scalars {
            return Err(Mismatch::Scalars);
        }
        Ok(())
    }
}

impl fmt::Debug for TensorMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorMessage")
            .field("metadata", &Shown(&self.metadata))
            .field("tensors", &self.tensors)
            .finish_non_exhaustive()
    }
}

impl Generated for TensorMessage {
    type Mutation = MessageMutation;
    type ErrorKind = DecodeErrorKind;

    const MUTATIONS: &'static [MessageMutation] = MessageMutation::ALL;

    fn generate(choices: &mut dyn Choose, parameters: &Parameters) -> Self {
        let draft = Draft::generate(choices, parameters, 0);
        let metadata = draft.metadata(choices).into_bytes();
        Self {
            metadata,
            tensors: draft.tensors,
            scalars: draft.scalars,
        }
    }

    fn generate_nearly(choices: &mut dyn Choose, parameters: &Parameters) -> NearlyValid<Self> {
        let all = (Self::MUTATIONS, MessageMutation::NoFrames);
        let needs = MessageMutation::needs;
        let (mutation, parameters) = mutation::choose(all, needs, choices, parameters);
        let draft = Draft::generate(choices, &parameters, mutation.needs().filled);
        let (frames, kind) = draft.mutated(mutation, choices);
        NearlyValid::new(frames, mutation, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::super::choices::Bytes;
    use super::*;
    use crate::message::Decoder;

    #[test]
    fn other_scalars_are_told_and_so_is_another_spelling_of_them() {
        let mut sent = TensorMessage::generate(&mut Bytes::new(&[]), &Parameters::new());
        let frames = sent.clone();
        let frames = frames.frames();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        assert_eq!(sent.compare(&message), Ok(()));
        sent.scalars = "{ }".into();
        assert_eq!(sent.compare(&message), Err(Mismatch::Scalars));
    }
}
