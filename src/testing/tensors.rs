//! Tensors that own what they are made of.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::Parameters;
use super::choices::{Choose, noise};
use super::shown::Shown;
use super::text::name;
use crate::dtype::DType;
use crate::error::EncodeError;
use crate::tensor::{Descriptor, TensorView};

/// What decoding has to give of one tensor.
#[derive(Clone)]
pub struct Tensor {
    name: String,
    list_index: Option<u32>,
    dtype: DType,
    shape: Vec<usize>,
    /// The bytes, past as many as move them from the address that the allocator gave.
    buffer: Vec<u8>,
    shift: usize,
}

impl Tensor {
    /// One without elements.
    pub(super) const fn empty(name: String, list_index: Option<u32>, dtype: DType) -> Self {
        Self {
            name,
            list_index,
            dtype,
            shape: Vec::new(),
            buffer: Vec::new(),
            shift: 0,
        }
    }

    pub(super) fn with_shape(mut self, shape: Vec<usize>) -> Self {
        self.shape = shape;
        self
    }

    /// Returns the name of its field.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its index in a list, if it is a member of one.
    #[must_use]
    pub const fn list_index(&self) -> Option<u32> {
        self.list_index
    }

    /// Returns the type of its elements.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns its dimensions, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns its elements: little-endian, the last dimension varying fastest; a `bool` is 0 or 1.
    ///
    /// They start at any address, as those of a received frame do: half of the tensors lie
    /// up to 15 bytes past where an allocation starts.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.shift..).unwrap_or_default()
    }

    /// Returns the tensor as one to send.
    ///
    /// # Errors
    ///
    /// None: the shape and the bytes fit. The type is that of [`TensorView::from_bytes`].
    pub fn view(&self) -> Result<TensorView<'_>, EncodeError> {
        let descriptor = Descriptor::new(&self.name, self.dtype, self.shape.as_slice())?;
        let descriptor = match self.list_index {
            Some(index) => descriptor.with_list_index(index),
            None => descriptor,
        };
        TensorView::new(descriptor, self.bytes())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("name", &self.name)
            .field("list_index", &self.list_index)
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .field("bytes", &Shown(self.bytes()))
            .field("shift", &self.shift)
            .finish()
    }
}

/// Two tensors are the same wherever their bytes lie.
impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.list_index == other.list_index
            && self.dtype == other.dtype
            && self.shape == other.shape
            && self.bytes() == other.bytes()
    }
}

impl Eq for Tensor {}

/// Tensors of one message, none in conflict with another; the members of a list follow one another.
///
/// The first `filled` of them have elements: the caller has seen to it that the parameters allow that.
pub(super) fn tensors(
    choices: &mut dyn Choose,
    parameters: &Parameters,
    filled: usize,
) -> Vec<Tensor> {
    let count = choices.up_to(parameters.tensors()).max(filled);
    let mut room = Room {
        bytes: parameters.bytes(),
        reserved: filled.saturating_mul(parameters.least_size()),
    };
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    while found.len() < count {
        let name = unique(name(choices), &names);
        names.insert(name.clone());
        let is_list = choices.one_in(3);
        let members = if is_list { choices.up_to(3).max(1) } else { 1 };
        let mut next = is_list.then(|| choices.of(&[0, 0, 1, 4090]).unwrap_or_default());
        for _ in 0..members.min(count.saturating_sub(found.len())) {
            let must = found.len() < filled;
            let Some((dtype, shape)) = room.take(choices, parameters, must) else {
                return found;
            };
            let shift = if choices.one_in(2) {
                choices.up_to(15)
            } else {
                0
            };
            let mut buffer = alloc::vec![0; shift];
            buffer.extend(bytes(choices, dtype, byte_len(dtype, &shape)));
            found.push(Tensor {
                name: name.clone(),
                list_index: next,
                dtype,
                shape,
                buffer,
                shift,
            });
            // Holes, at times.
            let step = u32::from(choices.one_in(3)).saturating_add(1);
            next = next.map(|index: u32| index.saturating_add(step));
        }
    }
    found
}

/// `name`, with a number behind it if it is taken.
pub(super) fn unique(name: String, taken: &BTreeSet<String>) -> String {
    let numbered = |number| format!("{name}{number}");
    if !taken.contains(&name) {
        return name;
    }
    let mut names = (0..=taken.len()).map(numbered);
    // Of more names than are taken one is free.
    names.find(|name| !taken.contains(name)).unwrap_or_default()
}

/// What is left of the bytes that a message may have.
struct Room {
    bytes: usize,
    /// Of these, kept for tensors that have to have elements.
    reserved: usize,
}

impl Room {
    /// A dtype and a shape; `None` if not even an empty tensor is allowed.
    fn take(
        &mut self,
        choices: &mut dyn Choose,
        parameters: &Parameters,
        must_fill: bool,
    ) -> Option<(DType, Vec<usize>)> {
        if must_fill {
            self.reserved = self.reserved.saturating_sub(parameters.least_size());
        }
        let free = self.bytes.saturating_sub(self.reserved);
        let mut dtype = choices.of(parameters.dtypes())?;
        if must_fill && dtype.size() > free {
            let dtypes = parameters.dtypes().iter().copied();
            dtype = dtypes.min_by_key(|dtype| dtype.size())?;
        }
        let mut elements = free.checked_div(dtype.size())?;
        let mut rank = choices.up_to(parameters.rank());
        if elements == 0 && rank == 0 {
            // A scalar has an element.
            rank = 1;
        }
        if rank > parameters.rank() {
            return None;
        }
        if rank == 3 && !must_fill && choices.one_in(8) {
            return Some((dtype, alloc::vec![1 << 16, 0, 1 << 8]));
        }
        let mut shape = Vec::new();
        for _ in 0..rank {
            let most = if choices.one_in(8) { LONG } else { SHORT };
            let dim = choices.up_to(elements.min(most));
            let dim = if must_fill { dim.max(1) } else { dim };
            elements = elements.checked_div(dim).unwrap_or(elements);
            shape.push(dim);
        }
        self.bytes = self.bytes.saturating_sub(byte_len(dtype, &shape));
        Some((dtype, shape))
    }
}

fn byte_len(dtype: DType, shape: &[usize]) -> usize {
    let dims = shape.iter().copied();
    dims.fold(dtype.size(), usize::saturating_mul)
}

/// Zeros, all bits set (a NaN, of floats), or anything.
fn bytes(choices: &mut dyn Choose, dtype: DType, len: usize) -> Vec<u8> {
    let mask = if dtype == DType::Bool { 1 } else { 0xff };
    match choices.up_to(4) {
        0 => alloc::vec![0; len],
        1 => alloc::vec![mask; len],
        _ => {
            let seed = choices.up_to(0xffff);
            noise(seed).map(|byte| byte & mask).take(len).collect()
        }
    }
}

/// Most dimensions are at most so long: the tensors stay small.
const SHORT: usize = 4;

/// The others, if the parameters leave room: past what transports treat as small.
const LONG: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::super::choices::Bytes;
    use super::*;

    fn drawn(seed: usize, parameters: &Parameters, filled: usize) -> Vec<Tensor> {
        let choices: Vec<u8> = noise(seed).take(128).collect();
        tensors(&mut Bytes::new(&choices), parameters, filled)
    }

    #[test]
    fn those_that_have_to_have_elements_share_the_room() {
        let parameters = Parameters::new().with_bytes(3);
        let parameters = parameters.with_dtypes(&[DType::Bool, DType::Int16]);
        for seed in 0..500 {
            let drawn = drawn(seed, &parameters, 2);
            assert!(drawn[..2].iter().all(|tensor| !tensor.bytes().is_empty()));
            let bytes: usize = drawn.iter().map(|tensor| tensor.bytes().len()).sum();
            assert!(bytes <= 3, "{drawn:?}");
        }
    }

    #[test]
    fn bools_are_0_or_1() {
        let parameters = Parameters::new().with_dtypes(&[DType::Bool]);
        let all = (0..50).flat_map(|seed| drawn(seed, &parameters, 0));
        let mut seen = BTreeSet::new();
        all.for_each(|tensor| seen.extend(tensor.bytes().to_vec()));
        assert_eq!(seen, BTreeSet::from([0, 1]));
    }

    #[test]
    fn the_same_bytes_are_the_same_wherever_they_lie() {
        let tensor = |buffer: &[u8], shift| Tensor {
            buffer: buffer.to_vec(),
            shift,
            ..Tensor::empty("x".into(), None, DType::Int8).with_shape(alloc::vec![2])
        };
        assert_eq!(tensor(&[1, 2], 0), tensor(&[0, 1, 2], 1));
        assert_ne!(tensor(&[1, 2], 0), tensor(&[1, 2, 3], 1));
        assert_ne!(
            tensor(&[1, 2], 0),
            tensor(&[1, 2], 0).with_shape(alloc::vec![1, 2])
        );
    }
}
