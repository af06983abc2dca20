//! Slots of a transfer, and their manifests.

mod draft;
mod faults;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::choices::Choose;
use super::shown::Shown;
use super::{Generated, Mismatch, NearlyValid, Parameters, Tensor, mismatch, mutation};
use crate::error::DecodeErrorKind;
use crate::transfer::manifest::Tensors;

pub use faults::SlotMutation;

use draft::Draft;

/// A valid manifest, and the bytes of the slot that it is of.
///
/// The tensors lie where Python puts them, or elsewhere: in any order, at odd offsets, with
/// gaps that are not zeros. Besides the payload a slot has at most 512 bytes per tensor.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "arbitrary")] {
/// use arbitrary::{Arbitrary, Unstructured};
/// use tensorwire::json::Value;
/// use tensorwire::testing::FilledSlot;
/// use tensorwire::transfer::manifest::Decoder;
///
/// let sent = FilledSlot::arbitrary(&mut Unstructured::new(b"\x04from a fuzzer"))?;
/// // Elsewhere it is a part of a control message.
/// let object = Value::parse(sent.manifest().as_bytes())?.as_object()?;
/// let mut decoder = Decoder::new();
/// let manifest = decoder.decode(object, sent.slot().len())?;
/// sent.compare(&manifest.attach(sent.slot())?)?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct FilledSlot {
    manifest: String,
    slot: Vec<u8>,
    tensors: Vec<Tensor>,
    offsets: Vec<usize>,
}

impl FilledSlot {
    /// Returns the manifest: the text of a JSON object.
    #[must_use]
    pub fn manifest(&self) -> &str {
        &self.manifest
    }

    /// Returns the bytes of the slot.
    #[must_use]
    pub fn slot(&self) -> &[u8] {
        &self.slot
    }

    /// Returns the tensors, in wire order.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns where each of them starts, in bytes from the start of the slot.
    #[must_use]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Holds the tensors of a decoded manifest against these.
    ///
    /// # Errors
    ///
    /// The first [`Mismatch`].
    pub fn compare(&self, tensors: &Tensors<'_, '_>) -> Result<(), Mismatch> {
        let views = (0..tensors.len()).map(|index| tensors.get(index));
        let views: Vec<_> = views.flatten().collect();
        mismatch::tensors(&self.tensors, views.into_iter())?;
        for (index, &offset) in self.offsets.iter().enumerate() {
            let entry = tensors.manifest().entry(index);
            if entry.is_none_or(|entry| entry.offset() != offset) {
                return Err(Mismatch::Offset(index));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for FilledSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilledSlot")
            .field("manifest", &self.manifest)
            .field("offsets", &self.offsets)
            .field("slot", &Shown(&self.slot))
            .finish_non_exhaustive()
    }
}

impl Generated for FilledSlot {
    type Mutation = SlotMutation;
    type ErrorKind = DecodeErrorKind;

    const MUTATIONS: &'static [SlotMutation] = SlotMutation::ALL;

    fn generate(choices: &mut dyn Choose, parameters: &Parameters) -> Self {
        let draft = Draft::generate(choices, parameters, 0);
        let manifest = draft.manifest(choices);
        Self {
            manifest,
            slot: draft.slot,
            tensors: draft.tensors,
            offsets: draft.offsets,
        }
    }

    fn generate_nearly(choices: &mut dyn Choose, parameters: &Parameters) -> NearlyValid<Self> {
        let all = (Self::MUTATIONS, SlotMutation::EntriesNoArray);
        let needs = SlotMutation::needs;
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
    use crate::json::Value;
    use crate::transfer::manifest::Decoder;

    #[test]
    fn another_offset_is_told() {
        // Two tensors, all else the simplest.
        let mut sent = FilledSlot::generate(&mut Bytes::new(&[0, 2]), &Parameters::new());
        let manifest = sent.manifest.clone();
        let object = Value::parse(manifest.as_bytes())
            .unwrap()
            .as_object()
            .unwrap();
        let slot = sent.slot.clone();
        let mut decoder = Decoder::new();
        let manifest = decoder.decode(object, slot.len()).unwrap();
        let tensors = manifest.attach(&slot).unwrap();
        assert_eq!(sent.compare(&tensors), Ok(()));
        sent.offsets[1] -= 1;
        assert_eq!(sent.compare(&tensors), Err(Mismatch::Offset(1)));
    }
}
