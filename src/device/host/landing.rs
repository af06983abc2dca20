//! Payloads that are read straight into the memory of their tensors.

use core::fmt;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::memory::{Memory, Share};
use super::{HostError, Tensor};
use crate::device::{ErrorKind, Place, Plan, TensorInfo, Tensors};
use crate::tensor::Descriptor;
use crate::transport::Wait;

/// How much room is given at once. It is filled with zeros before, as whoever reads into it might read it
/// first: so much of them that they are still in the cache when the bytes come.
const PIECE: usize = 128 << 10;

/// Payloads of a message on their way to where they stay: there is no staging on the host.
///
/// See [`device::Landing`](crate::device::Landing) for how it is filled. The memory of all tensors is reserved at the
/// start, but taken only as the bytes come: a peer that announces much and sends little costs little.
pub struct Landing {
    infos: Vec<TensorInfo>,
    places: Vec<Place>,
    /// By group.
    memories: Vec<Memory>,
    /// The tensor that the next bytes are of.
    index: usize,
    /// How many of its bytes are there.
    filled: usize,
    /// How many bytes the last room had; 0 once some of it was filled.
    room: usize,
    missing: usize,
}

impl Landing {
    pub(super) fn new<'a>(
        descriptors: impl Iterator<Item = Descriptor<'a>>,
        batch_bytes: usize,
    ) -> Result<Self, HostError> {
        let infos: Vec<_> = descriptors
            .map(|descriptor| TensorInfo::new(&descriptor))
            .collect();
        let lens = infos.iter().map(TensorInfo::byte_len);
        let missing = lens.clone().try_fold(0_usize, usize::checked_add);
        let plan = Plan::new(lens, batch_bytes);
        let (Some(missing), Some(plan)) = (missing, plan) else {
            let bytes = usize::MAX;
            return Err(HostError::new(ErrorKind::OutOfMemory { bytes }));
        };
        let mut memories = Vec::with_capacity(plan.groups.len());
        for group in &plan.groups {
            let bytes = group.len;
            let error = HostError::new(ErrorKind::OutOfMemory { bytes });
            let memory = Memory::new(bytes).ok_or_else(|| error.of_tensor(group.first))?;
            memories.push(memory);
        }
        let mut landing = Self {
            infos,
            places: plan.places,
            memories,
            index: 0,
            filled: 0,
            room: 0,
            missing,
        };
        landing.pass_over_full();
        Ok(landing)
    }

    /// Goes on to the next tensor that has bytes to come.
    fn pass_over_full(&mut self) {
        while let Some(place) = self.places.get(self.index)
            && self.filled >= place.len
        {
            self.index = self.index.saturating_add(1);
            self.filled = 0;
        }
    }

    /// Counts `len` bytes of the current tensor as there.
    fn advance(&mut self, len: usize) {
        self.room = 0;
        self.filled = self.filled.saturating_add(len);
        self.missing = self.missing.saturating_sub(len);
        self.pass_over_full();
    }

    /// Where the next bytes go: (the group, the offset in it, how many of this tensor are missing)
    fn next(&self) -> Option<(usize, usize, usize)> {
        let place = self.places.get(self.index)?;
        let offset = place.offset.checked_add(self.filled)?;
        Some((place.group, offset, place.len.checked_sub(self.filled)?))
    }

    /// `actual` bytes were given where the tensor of now has room for `expected`.
    const fn length(&self, expected: usize, actual: usize) -> HostError {
        HostError::new(ErrorKind::Length { expected, actual }).of_tensor(self.index)
    }
}

impl crate::device::Landing for Landing {
    type Tensor = Tensor;
    type Error = HostError;

    fn missing(&self) -> usize {
        self.missing
    }

    /// Up to 128 KiB at once, whatever `wait` says.
    fn room(&mut self, _: Wait) -> Result<&mut [u8], HostError> {
        let Some((group, offset, missing)) = self.next() else {
            self.room = 0;
            return Ok(&mut []);
        };
        let len = missing.min(PIECE);
        self.room = len;
        let error = self.length(0, len);
        let memory = self.memories.get_mut(group);
        memory
            .and_then(|memory| memory.room(offset..offset.checked_add(len)?))
            .ok_or(error)
    }

    fn filled(&mut self, len: usize) -> Result<(), HostError> {
        if len > self.room {
            return Err(self.length(self.room, len));
        }
        self.advance(len);
        Ok(())
    }

    fn finish(self) -> Result<Tensors<Tensor>, HostError> {
        if self.missing > 0 {
            let missing = self.missing;
            let error = HostError::new(ErrorKind::Incomplete { missing });
            return Err(error.of_tensor(self.index));
        }
        let memories: Vec<_> = self.memories.into_iter().map(Arc::new).collect();
        let tensors = self.infos.into_iter().zip(&self.places);
        let tensors = tensors.filter_map(|(info, place)| {
            let memory = memories.get(place.group)?.clone();
            let end = place.offset.checked_add(place.len)?;
            Some(Tensor::new(info, Share::new(memory, place.offset..end)))
        });
        Ok(Tensors::new(tensors.collect()))
    }

    fn copy_from(&mut self, bytes: &[u8], _: Wait) -> Result<(), HostError> {
        if bytes.len() > self.missing {
            return Err(self.length(self.missing, bytes.len()));
        }
        let mut rest = bytes;
        while !rest.is_empty()
            && let Some((group, offset, missing)) = self.next()
        {
            let (now, later) = rest.split_at_checked(missing).unwrap_or((rest, &[]));
            let memory = self.memories.get_mut(group);
            let written = memory.and_then(|memory| memory.write(offset, now));
            written.ok_or_else(|| self.length(0, now.len()))?;
            self.advance(now.len());
            rest = later;
        }
        Ok(())
    }
}

impl fmt::Debug for Landing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Landing")
            .field("tensors", &self.infos.len())
            .field("missing", &self.missing)
            .finish_non_exhaustive()
    }
}
