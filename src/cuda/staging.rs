//! Bytes on their way through the ring: one slot at a time, filled by the host, then the device's.
//!
//! ```text
//!  slot   | a ....... | b .. | gap | first part of c .......... |
//!           copied with one call     with another: other memory
//!           +---------------- one event behind both ------------+
//! ```

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr::NonNull;

use cudarc::driver::sys::CUdeviceptr;

use super::adapter::Shared;
use super::error::{CudaError, Step};
use super::ring::Slots;
use super::tensor::offset;
use crate::device::{ALIGN, ErrorKind};
use crate::transport::{Deadline, Expired, Wait};

/// The slot that is being filled, and where its bytes go. Dropped, it gives the slot back as if nothing had been.
///
/// It holds one slot at most, and none while it waits for one.
#[derive(Debug)]
pub(super) struct Staging {
    shared: Arc<Shared>,
    slot: Option<Slots>,
    /// How far the slot is filled.
    at: usize,
    pieces: Vec<Piece>,
}

/// Where bytes go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// Memory that is used until what is on the stream has run, and has room for the bytes.
    pub(super) address: CUdeviceptr,
    /// Which allocation that is in: those of one are copied together if they are neighbours.
    pub(super) group: usize,
    /// What an error is about.
    pub(super) tensor: usize,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// From here in the slot.
    at: usize,
    len: usize,
    target: Target,
}

impl Staging {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            slot: None,
            at: 0,
            pieces: Vec::new(),
        }
    }

    /// Goes on to where a tensor may start.
    ///
    /// # Safety
    ///
    /// As [`send`](Self::send).
    pub(super) unsafe fn align(&mut self) -> Result<(), CudaError> {
        let Some(slot) = &self.slot else {
            return Ok(());
        };
        match self.at.checked_next_multiple_of(ALIGN) {
            Some(at) if at < slot.bytes().len() => {
                self.at = at;
                Ok(())
            }
            // SAFETY: the caller's.
            _ => unsafe { self.send() },
        }
    }

    /// Returns room for up to `len` bytes of one tensor. `ahead` bytes are to come in all, this tensor's among them.
    ///
    /// Errors: the ring's, and then all is as it was.
    pub(super) fn room(
        &mut self,
        len: usize,
        ahead: usize,
        wait: Wait,
    ) -> Result<&mut [u8], CudaError> {
        self.take(ahead, wait)?;
        let (from, slot) = (self.at, self.slot.as_mut());
        let bytes = slot.map(Slots::bytes_mut).unwrap_or_default();
        let to = bytes.len().min(from.saturating_add(len));
        Ok(bytes.get_mut(from..to).unwrap_or_default())
    }

    /// Returns the next `len` bytes of the slot, as they are by now: those that are about to be [filled](Self::filled).
    pub(super) fn next(&self, len: usize) -> &[u8] {
        let bytes = self.slot.as_ref().map(Slots::bytes).unwrap_or_default();
        let to = self.at.saturating_add(len);
        bytes.get(self.at..to).unwrap_or_default()
    }

    /// Takes a slot if there is none yet.
    pub(super) fn take(&mut self, ahead: usize, wait: Wait) -> Result<(), CudaError> {
        if self.slot.is_none() {
            let ring = &self.shared.ring;
            let slot = ring.take(ahead.min(ring.slot_bytes()), wait)?;
            (self.slot, self.at) = (Some(slot), 0);
        }
        Ok(())
    }

    /// Takes the first `len` bytes of the last [`room`](Self::room) as filled; they go to `target`. Sends the slot if it is full.
    ///
    /// Errors: `Length` for more than there was; the driver's, and then what was in the slot is lost.
    ///
    /// # Safety
    ///
    /// As [`send`](Self::send), for `len` bytes from `target` on.
    pub(super) unsafe fn filled(&mut self, len: usize, target: Target) -> Result<(), CudaError> {
        if len == 0 {
            return Ok(());
        }
        let (at, full) = match &self.slot {
            Some(slot) => (self.at, slot.bytes().len()),
            None => (0, 0),
        };
        let end = at.saturating_add(len);
        if end > full {
            let expected = full.saturating_sub(at);
            let actual = len;
            let kind = ErrorKind::Length { expected, actual };
            return Err(CudaError::new(kind, Step::Stage).of_tensor(target.tensor));
        }
        match self.pieces.last_mut() {
            Some(last) if last.goes_on(at, target) => last.len = end.saturating_sub(last.at),
            _ => self.pieces.push(Piece { at, len, target }),
        }
        self.at = end;
        if end == full {
            // SAFETY: the caller's.
            return unsafe { self.send() };
        }
        Ok(())
    }

    /// Puts the copies out of the slot on the stream to the device, and gives the slot to the ring until they have run.
    ///
    /// Errors: the driver's; the slot is the ring's then too.
    ///
    /// # Safety
    ///
    /// The memory of every target since the last slot was sent is the device's of this adapter, nobody else
    /// uses it before what is put on the stream `to_device` here has run, and it is freed after that.
    pub(super) unsafe fn send(&mut self) -> Result<(), CudaError> {
        self.at = 0;
        let Some(slot) = self.slot.take() else {
            return Ok(());
        };
        let stream = &self.shared.to_device;
        let mut sent = Ok(());
        let mut tried = false;
        for piece in self.pieces.drain(..) {
            let Some(source) = slot.bytes().get(piece.at..) else {
                continue;
            };
            let source = NonNull::from(source).cast();
            let (driver, target) = (&self.shared.driver, piece.target);
            tried = true;
            // SAFETY: `copy_to_device` asks two things until the copy has run.
            // - The source is pinned and nobody writes to it: it is part of the slot, as `filled` saw to, and the slot
            //   is not touched between here and `submit`, whose event is behind the copy.
            // - The target is the device's, of that length, and nobody else's: the caller says so.
            let copied =
                unsafe { driver.copy_to_device(target.address, source, piece.len, stream) };
            if let Err(error) = copied {
                sent = Err(error.of_tensor(target.tensor));
                break;
            }
        }
        self.pieces.clear();
        if tried {
            // Also after an error: what was put on the stream before uses the slot, and who knows about the last.
            let submitted = slot.submit(stream);
            sent?;
            submitted?;
        }
        Ok(())
    }

    /// Copies all `bytes` of a tensor to `target`, waiting for room `until` then. `ahead` as with [`room`](Self::room).
    ///
    /// What is copied is shown to `look`, piece by piece, each with the place where it starts.
    ///
    /// Errors: as [`room`](Self::room) and [`filled`](Self::filled).
    ///
    /// # Safety
    ///
    /// As [`filled`](Self::filled), for all of the bytes.
    pub(super) unsafe fn copy(
        &mut self,
        mut bytes: &[u8],
        mut target: Target,
        mut ahead: usize,
        until: Deadline,
        mut look: impl FnMut(usize, &[u8]),
    ) -> Result<(), CudaError> {
        // SAFETY: the caller's.
        unsafe { self.align() }?;
        let mut done = 0_usize;
        while !bytes.is_empty() {
            let room = self.room(bytes.len(), ahead, left(until));
            let room = room.map_err(|error| error.of_tensor(target.tensor))?;
            let len = room.len();
            let (now, rest) = bytes.split_at_checked(len).unwrap_or((bytes, &[]));
            room.copy_from_slice(now);
            look(done, room);
            // SAFETY: the caller's.
            unsafe { self.filled(len, target) }?;
            target.address = offset(target.address, len);
            ahead = ahead.saturating_sub(len);
            done = done.saturating_add(len);
            bytes = rest;
        }
        Ok(())
    }
}

impl Piece {
    /// Tells whether bytes at `at` of the slot for `target` lie behind these as they do here.
    fn goes_on(&self, at: usize, target: Target) -> bool {
        self.target.group == target.group
            && at
                .checked_sub(self.at)
                .is_some_and(|distance| offset(self.target.address, distance) == target.address)
    }
}

/// How long to wait from now on.
pub(super) fn left(until: Deadline) -> Wait {
    match until.remaining() {
        Ok(core::time::Duration::MAX) => Wait::Forever,
        Ok(left) => Wait::UpTo(left),
        Err(Expired::TimedOut) => Wait::UpTo(core::time::Duration::ZERO),
        Err(_) => Wait::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (bytes in the slot, address, group, whether they are one copy with 100 bytes at 512 for 0x7000 of group 3)
    const NEXT: &[(usize, CUdeviceptr, usize, bool)] = &[
        (612, 0x7064, 3, true),
        (768, 0x7100, 3, true),
        // The same gap in the slot and in memory, or none.
        (768, 0x7200, 3, false),
        (1024, 0x7100, 3, false),
        // Memory that happens to lie behind is not part of one copy.
        (768, 0x7100, 4, false),
        // What comes before.
        (256, 0x6f00, 3, false),
    ];

    #[test]
    fn neighbours_in_the_slot_and_in_one_allocation_are_one_copy() {
        let target = |address, group| Target {
            address,
            group,
            tensor: 0,
        };
        let piece = Piece {
            at: 512,
            len: 100,
            target: target(0x7000, 3),
        };
        for &(at, address, group, expected) in NEXT {
            let actual = piece.goes_on(at, target(address, group));
            assert_eq!(actual, expected, "{at} for {address:#x} of {group}");
        }
    }
}
