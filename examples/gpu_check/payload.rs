//! Bytes that tell one tensor from another, and messages made of them.

use tensorwire::message::{NO_SCALARS, encode_to_vec, frames};
use tensorwire::{DType, Descriptor, TensorView};

use crate::Result;

/// Bytes that depend on `seed` at each place; for bools 0 and 1.
pub(crate) fn bytes(dtype: DType, len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut filled = vec![0; len];
    for chunk in filled.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let word = state.to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    if dtype == DType::Bool {
        for byte in &mut filled {
            *byte &= 1;
        }
    }
    filled
}

/// A tensor with its bytes.
pub(crate) struct Payload {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Payload {
    /// Of about `len` bytes: rounded down to whole elements.
    pub(crate) fn new(name: impl Into<String>, dtype: DType, len: usize, seed: u64) -> Self {
        let count = len / dtype.size();
        // Two dimensions where that is possible.
        let dims = if count.is_multiple_of(4) {
            vec![4, count / 4]
        } else {
            vec![count]
        };
        Self {
            name: name.into(),
            dtype,
            dims,
            bytes: bytes(dtype, count * dtype.size(), seed),
        }
    }

    pub(crate) fn descriptor(&self) -> Result<Descriptor<'_>> {
        Ok(Descriptor::new(&*self.name, self.dtype, &*self.dims)?)
    }

    pub(crate) fn view(&self) -> Result<TensorView<'_>> {
        Ok(TensorView::new(self.descriptor()?, &self.bytes)?)
    }
}

/// The metadata frame of a message of these.
pub(crate) fn metadata(payloads: &[Payload]) -> Result<Vec<u8>> {
    let descriptors = payloads.iter().map(Payload::descriptor);
    let descriptors = descriptors.collect::<Result<Vec<_>>>()?;
    Ok(encode_to_vec(&descriptors, &NO_SCALARS)?)
}

/// The frames of a message of these.
pub(crate) fn message(payloads: &[Payload]) -> Result<Vec<Vec<u8>>> {
    let views = payloads.iter().map(Payload::view);
    let views = views.collect::<Result<Vec<_>>>()?;
    let metadata = metadata(payloads)?;
    Ok(frames(&metadata, &views)
        .iter()
        .map(|frame| frame.to_vec())
        .collect())
}

/// What differs first, for people.
pub(crate) fn compare(what: &str, expected: &[u8], actual: &[u8]) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    if expected.len() != actual.len() {
        return Err(format!(
            "{what}: {} bytes, expected {}",
            actual.len(),
            expected.len()
        )
        .into());
    }
    let at = expected.iter().zip(actual).position(|(a, b)| a != b);
    Err(format!(
        "{what}: differs from byte {} of {} on",
        at.unwrap_or(0),
        expected.len()
    )
    .into())
}
