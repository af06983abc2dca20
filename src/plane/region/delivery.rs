//! Bytes of peers, written into the open windows of a region.
#![allow(unsafe_code)]

use core::ptr;

use alloc::vec::Vec;

use super::Region;
use crate::convert::to_u64;
use crate::plane::push::offset_in;
use crate::plane::{ErrorKind, Piece};
use crate::transfer::pool::{WindowTable, Writing};

/// A transfer whose pieces are being written, window by window. Dropped, it is over.
#[derive(Debug)]
pub(in crate::plane) struct Delivery {
    region: Region,
    /// The windows of the region's pool.
    table: WindowTable,
    writings: Vec<Writing>,
}

impl Delivery {
    /// Begins to write `pieces`, all of which lie in the pool and each in one open window. `table`
    /// is the one that the pool of `region` tells of its landings.
    ///
    /// On an error nothing has begun.
    pub(super) fn begin(
        region: Region,
        table: WindowTable,
        pieces: &[Piece],
    ) -> Result<Self, ErrorKind> {
        let mut delivery = Self {
            region,
            table,
            writings: Vec::new(),
        };
        for piece in pieces {
            delivery.enter(piece)?;
        }
        Ok(delivery)
    }

    /// Enters the window of `piece`, unless it was entered before.
    fn enter(&mut self, piece: &Piece) -> Result<(), ErrorKind> {
        let offset = piece.offset_in(self.region.base(), self.region.len())?;
        if !self.covers(offset, piece.len()) {
            let writing = self.table.begin_write(offset, piece.len())?;
            self.writings.push(writing);
        }
        Ok(())
    }

    fn covers(&self, offset: usize, len: usize) -> bool {
        let mut writings = self.writings.iter();
        writings.any(|writing| writing.covers(&self.table, offset, len))
    }

    /// Copies `bytes` to where they belong.
    ///
    /// Refused is what does not lie in a window that was entered, or in no memory of the host.
    pub(in crate::plane) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ErrorKind> {
        let len = to_u64(bytes.len());
        let offset = offset_in(self.region.base(), self.region.len(), address, len)?;
        if !self.covers(offset, bytes.len()) {
            return Err(ErrorKind::Closed);
        }
        let to = self.region.at(offset)?;
        // SAFETY: `ptr::copy_nonoverlapping` asks four things, of `n = bytes.len()` bytes.
        // - The source is valid for reads of `n` bytes: it is a slice.
        // - The destination is valid for writes of `n` bytes: `Region::at` says so of all that
        //   is left of the pool from `offset` on, and `offset_in` has found `n` bytes there.
        // - Both are aligned: they are bytes.
        // - They do not overlap, and nobody else reads or writes the destination meanwhile. It lies
        //   in a window of `self.table` that one of `writings` has entered. The table is the one
        //   that the pool tells of its landings, so when that write began a `Landing` had
        //   these bytes, and no `Slot` has them again before `WindowTable::close` has said
        //   `true`, which it does not before the `Writing` is dropped; if the landing is dropped, its
        //   block is in quarantine until then. A landing gives no bytes, so there is no
        //   reference to them. The table lets one write into a window at a time, and
        //   `&mut self` is the only one that uses this.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
        Ok(())
    }
}
