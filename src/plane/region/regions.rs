//! The regions of a session that is written to on its behalf, by the threads of its own process.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Delivery, HostMemory, Region, WeakRegion};
use crate::plane::{ErrorKind, MemoryKind, Piece, RegionOptions};
use crate::transfer::pool::{Slot, WindowTable, rounded_len};

/// The regions of a session, as its plane and whoever brings bytes of peers share them.
/// Clones are the same.
#[derive(Clone, Debug, Default)]
pub(in crate::plane) struct Regions {
    registered: Arc<Mutex<Vec<Registered>>>,
}

#[derive(Debug)]
struct Registered {
    region: WeakRegion,
    /// The windows of its pool, which nobody else has.
    table: WindowTable,
}

impl Regions {
    /// Makes a region of the host's memory.
    pub(in crate::plane) fn register(&self, options: RegionOptions) -> Result<Region, ErrorKind> {
        let kind = options.kind();
        if kind != MemoryKind::Host {
            return Err(ErrorKind::Unsupported { kind });
        }
        let min_block = options.min_block();
        let memory = HostMemory::new(rounded_len(options.len(), min_block)?)?;
        let table = WindowTable::new();
        let region = Region::new(Box::new(memory), min_block, Arc::new(table.clone()))?;
        let mut registered = self.lock();
        registered.retain(|registered| registered.region.upgrade().is_some());
        registered.push(Registered {
            region: region.downgrade(),
            table,
        });
        Ok(region)
    }

    /// Returns the region that `slot` is of, if it is there.
    pub(in crate::plane) fn owning(&self, slot: &Slot) -> Option<Region> {
        let registered = self.lock();
        let mut regions = registered
            .iter()
            .filter_map(|registered| registered.region.upgrade());
        regions.find(|region| region.pool().owns(slot))
    }

    /// Begins to write `pieces`, all of which lie in one region, each in one open window.
    ///
    /// On an error nothing has begun.
    pub(in crate::plane) fn begin(&self, pieces: &[Piece]) -> Result<Delivery, ErrorKind> {
        let first = pieces.first().copied().unwrap_or(Piece::received(0, 0));
        let registered = self.lock();
        let found = registered.iter().find_map(|registered| {
            let region = registered.region.upgrade()?;
            first.offset_in(region.base(), region.len()).ok()?;
            Some((region, registered.table.clone()))
        });
        drop(registered);
        let (address, len) = (first.address(), first.byte_len());
        let (region, table) = found.ok_or(ErrorKind::OutOfBounds { address, len })?;
        Delivery::begin(region, table, pieces)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Registered>> {
        // Each change is one push or one removal.
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
