//! Two planes in one hub.

use std::time::Duration;

use tensorwire::plane::memory::{Hub, Plane};
use tensorwire::plane::{
    Completion, DataPlane, ErrorKind, PushId, Region, RegionOptions, Transfer,
};
use tensorwire::transfer::pool::{Landing, Slot};

const LONG: Duration = Duration::from_secs(60);

/// A sender and a receiver with a region each, of 16 slots of 512 bytes.
pub(crate) struct Two {
    pub(crate) hub: Hub,
    pub(crate) sender: Plane,
    pub(crate) ours: Region,
    pub(crate) receiver: Plane,
    pub(crate) theirs: Region,
}

pub(crate) fn options() -> RegionOptions {
    RegionOptions::new(16 * 512).with_min_block(512)
}

pub(crate) fn two() -> Two {
    let hub = Hub::new();
    let mut sender = hub.join("sender").unwrap();
    let mut receiver = hub.join("receiver").unwrap();
    let ours = sender.register(options()).unwrap();
    let theirs = receiver.register(options()).unwrap();
    Two {
        hub,
        sender,
        ours,
        receiver,
        theirs,
    }
}

impl Two {
    /// A slot of the sender, full of `fill`.
    pub(crate) fn filled(&self, len: usize, fill: u8) -> Slot {
        let mut slot = self.ours.pool().allocate(len).unwrap();
        self.ours.bytes_mut(&mut slot).unwrap().fill(fill);
        slot
    }

    /// A landing of the receiver, full of zeros, and its address.
    pub(crate) fn landing(&self, len: usize) -> (Landing, u64) {
        let mut slot = self.theirs.pool().allocate(len).unwrap();
        self.theirs.bytes_mut(&mut slot).unwrap().fill(0);
        let address = self.theirs.address_of(slot.offset()).unwrap();
        (slot.open(), address)
    }

    pub(crate) fn transfer(&self, fill: u8, len: usize, address: u64) -> Transfer {
        let mut transfer = Transfer::new(self.filled(len.max(1), fill), "receiver");
        transfer.add_piece(0..len, address).unwrap();
        transfer
    }

    /// Pushes and gives what it came to, in either way; the slot has come back then.
    pub(crate) fn push(&mut self, transfer: Transfer) -> Result<u64, ErrorKind> {
        let place = transfer.slot().offset();
        let id = match self.sender.push(transfer) {
            Ok(id) => id,
            Err((transfer, error)) => {
                assert_eq!(transfer.slot().offset(), place);
                return Err(error);
            }
        };
        let (slot, result) = ended(&mut self.sender, id);
        assert_eq!(slot.offset(), place);
        result
    }

    pub(crate) fn written<'a>(&'a self, slot: &'a Slot) -> &'a [u8] {
        self.theirs.bytes(slot).unwrap()
    }

    /// Asserts that no slot is held or waited for.
    pub(crate) fn assert_empty(&self) {
        for region in [&self.ours, &self.theirs] {
            let stats = region.pool().stats();
            assert_eq!((stats.allocations(), stats.quarantined_blocks()), (0, 0));
        }
    }
}

pub(crate) fn ended(plane: &mut Plane, id: PushId) -> (Slot, Result<u64, ErrorKind>) {
    let completion: Completion<_> = plane.wait_completion(LONG).unwrap();
    assert_eq!(completion.id(), id);
    completion.into_parts()
}
