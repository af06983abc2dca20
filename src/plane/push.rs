//! What a push is to move.

use core::fmt;
use core::ops::Range;

use alloc::string::String;
use alloc::vec::Vec;

use super::{ErrorKind, Slot};
use crate::convert::to_u64;

/// Bytes to push: the slot that they lie in, and where each piece of it goes.
///
/// It owns the slot, so that nobody writes to it meanwhile.
///
/// # Examples
///
/// ```
/// use tensorwire::plane::{ErrorKind, Transfer};
/// use tensorwire::transfer::pool::Pool;
///
/// let pool = Pool::new(1 << 20)?;
/// let mut transfer = Transfer::new(pool.allocate(4096)?, "denoiser-0");
/// transfer.add_piece(0..4096, 0x7f00_0000_0000)?;
/// assert_eq!(transfer.byte_len(), 4096);
///
/// let too_far = transfer.add_piece(0..2_000_000, 0x7f00_0000_0000);
/// assert_eq!(
///     too_far,
///     Err(ErrorKind::SourceOutOfBounds { end: 2_000_000, slot_len: 1 << 20 })
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Transfer {
    slot: Slot,
    session: String,
    pieces: Vec<Piece>,
}

impl Transfer {
    /// A transfer out of `slot` to the session of this name; without pieces, of no bytes.
    #[must_use]
    pub fn new<S: Into<String>>(slot: Slot, session: S) -> Self {
        Self {
            slot,
            session: session.into(),
            pieces: Vec::new(),
        }
    }

    /// Adds the bytes of the slot in `source`, to be written from `address` on.
    ///
    /// Of two pieces that overlap at the far end, either may win.
    ///
    /// # Errors
    ///
    /// [`SourceOutOfBounds`](ErrorKind::SourceOutOfBounds) if `source` is not inside the slot; then
    /// nothing is added.
    pub fn add_piece(&mut self, source: Range<usize>, address: u64) -> Result<(), ErrorKind> {
        let slot_len = self.slot.len();
        let end = source.end;
        if source.start > end || end > slot_len {
            return Err(ErrorKind::SourceOutOfBounds { end, slot_len });
        }
        self.pieces.push(Piece {
            start: source.start,
            end,
            address,
        });
        Ok(())
    }

    /// Returns the slot that is pushed from.
    pub const fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Returns the session that is pushed to.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Returns the pieces, each inside the slot.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns how many bytes all pieces have together.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        let lens = self.pieces.iter().map(|piece| piece.byte_len());
        lens.fold(0, u64::saturating_add)
    }

    /// Returns the slot, and does not push.
    pub fn into_slot(self) -> Slot {
        self.slot
    }
}

/// A piece of a transfer: bytes in a row, in the slot as at the far end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece {
    start: usize,
    end: usize,
    address: u64,
}

impl Piece {
    /// A piece of `len` bytes for `address`, as a peer sent it.
    pub(super) const fn received(address: u64, len: usize) -> Self {
        Self {
            start: 0,
            end: len,
            address,
        }
    }

    /// Returns where its bytes lie in the slot.
    #[must_use]
    pub const fn source(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns how many bytes it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether it has no bytes, which is allowed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the address of its first byte at the far end: a number, and no pointer.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Returns its offset in a pool of `pool_len` bytes whose first byte has the address `base`.
    ///
    /// For those who implement a plane: this is the check of the address and the length that a
    /// peer has sent.
    ///
    /// # Errors
    ///
    /// [`OutOfBounds`](ErrorKind::OutOfBounds) if not all of its bytes lie in the pool.
    pub fn offset_in(&self, base: u64, pool_len: usize) -> Result<usize, ErrorKind> {
        offset_in(base, pool_len, self.address, self.byte_len())
    }

    pub(super) fn byte_len(&self) -> u64 {
        to_u64(self.len())
    }
}

/// Returns the offset of `len` bytes at `address` in a pool of `pool_len` bytes at `base`.
///
/// `0 <= address - base` and `address - base + len <= pool_len`, and no sum wraps.
pub(super) fn offset_in(
    base: u64,
    pool_len: usize,
    address: u64,
    len: u64,
) -> Result<usize, ErrorKind> {
    let offset = || {
        let offset = usize::try_from(address.checked_sub(base)?).ok()?;
        let end = offset.checked_add(usize::try_from(len).ok()?)?;
        (end <= pool_len).then_some(offset)
    };
    offset().ok_or(ErrorKind::OutOfBounds { address, len })
}

/// Which push of a plane it is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PushId {
    value: u64,
}

impl PushId {
    /// For those who implement a plane: a number that no other push of the plane has.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self { value }
    }

    /// Returns the number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.value
    }
}

impl fmt::Display for PushId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "push {}", self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_pool_with_all_its_bytes_or_not_at_all() {
        let out = |address, len| Err(ErrorKind::OutOfBounds { address, len });
        let base = u64::MAX - 4095;
        for (base, address, len, expected) in [
            (1000, 1000, 4096, Ok(0)),
            (1000, 5096, 0, Ok(4096)),
            (1000, 5095, 1, Ok(4095)),
            (1000, 999, 0, out(999, 0)),
            (1000, 5097, 0, out(5097, 0)),
            (1000, 1001, 4096, out(1001, 4096)),
            (1000, 1000, u64::MAX, out(1000, u64::MAX)),
            (1000, u64::MAX, 2, out(u64::MAX, 2)),
            (0, 0, 4097, out(0, 4097)),
            (base, u64::MAX, 1, Ok(4095)),
            (base, u64::MAX, 2, out(u64::MAX, 2)),
            (base, 0, 1, out(0, 1)),
        ] {
            let found = offset_in(base, 4096, address, len);
            assert_eq!(found, expected, "{len} bytes at {address}");
        }
    }
}
