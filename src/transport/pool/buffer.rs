//! One buffer: its room, and the way back.

use core::fmt;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{BUFFER_ALIGN, PoolError, Shared};

/// The room of one buffer. It is boxed once, so that a transport can take it along
/// under one address.
pub(in crate::transport) struct Slot {
    room: Vec<u8>,
    /// Where in the room the bytes start, so that they are aligned.
    start: usize,
    len: usize,
    /// None while the slot is in its pool, which would be kept by it otherwise.
    home: Option<Arc<Shared>>,
}

impl Slot {
    pub(super) fn new(bytes: usize) -> Result<Box<Self>, PoolError> {
        let len = bytes
            .checked_add(BUFFER_ALIGN)
            .ok_or(PoolError::OutOfMemory)?;
        let mut room = Vec::new();
        room.try_reserve_exact(len)
            .map_err(|_| PoolError::OutOfMemory)?;
        // Written, so that the pages are there.
        room.resize(len, 0);
        let start = room.as_ptr().align_offset(BUFFER_ALIGN);
        Ok(Box::new(Self {
            room,
            start,
            len: 0,
            home: None,
        }))
    }

    pub(in crate::transport) fn bytes(&self) -> &[u8] {
        let end = self.start.saturating_add(self.len);
        self.room.get(self.start..end).unwrap_or_default()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let end = self.start.saturating_add(self.len);
        self.room.get_mut(self.start..end).unwrap_or_default()
    }
}

/// A buffer of a [`BufferPool`](super::BufferPool): it goes back when dropped.
pub struct PooledBuffer {
    /// None only while it is taken apart.
    slot: Option<Box<Slot>>,
}

impl PooledBuffer {
    pub(super) fn taken(mut slot: Box<Slot>, len: usize, home: &Arc<Shared>) -> Self {
        slot.len = len;
        slot.home = Some(home.clone());
        Self { slot: Some(slot) }
    }

    /// Shortens the buffer to its first `len` bytes; does nothing if it is not longer.
    pub fn truncate(&mut self, len: usize) {
        if let Some(slot) = &mut self.slot {
            slot.len = slot.len.min(len);
        }
    }

    /// Takes the slot out, to be put in again.
    #[cfg(feature = "zmq")]
    pub(in crate::transport) fn into_slot(mut self) -> Option<Box<Slot>> {
        self.slot.take()
    }

    #[cfg(feature = "zmq")]
    pub(in crate::transport) fn from_slot(slot: Box<Slot>) -> Self {
        Self { slot: Some(slot) }
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        self.slot.as_ref().map_or(&[], |slot| slot.bytes())
    }
}

impl AsMut<[u8]> for PooledBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.slot.as_mut().map_or(&mut [], |slot| slot.bytes_mut())
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        if let Some(mut slot) = self.slot.take()
            && let Some(home) = slot.home.take()
        {
            home.take_back(slot);
        }
    }
}

impl fmt::Debug for PooledBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.as_ref().len();
        f.debug_struct("PooledBuffer").field("len", &len).finish()
    }
}
