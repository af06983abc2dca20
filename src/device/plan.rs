//! Which memory of the device each tensor of a message gets.

use alloc::vec::Vec;

/// Where the tensors of one message go: large ones each in a group of its own, small ones one after
/// the other in a common one.
///
/// Each starts at a multiple of [`ALIGN`] of its group. Places are in the order of the tensors.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Plan {
    pub(crate) groups: Vec<Group>,
    pub(crate) places: Vec<Place>,
}

/// Memory that is allocated as one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Group {
    /// In bytes; 0 for tensors without a byte.
    pub(crate) len: usize,
}

/// The place of a tensor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    pub(crate) group: usize,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Plan {
    /// Plans for tensors of these lengths in bytes; those of up to `batch_bytes` share a group.
    ///
    /// `None` if the sum passes `isize::MAX`.
    pub(crate) fn new(lens: impl IntoIterator<Item = usize>, batch_bytes: usize) -> Option<Self> {
        let _ = (lens, batch_bytes);
        todo!()
    }
}

/// Where tensors start, in device memory and in staging: at multiples of this many bytes.
pub(crate) const ALIGN: usize = 256;
