//! The regions of a session, as its plane and its inlets share them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Error;
use crate::plane::region::{Delivery, Inlet};
use crate::plane::{ErrorKind, HostMemory, Piece, Region, RegionOptions, WeakRegion};
use crate::transfer::pool::{Slot, rounded_len};

/// The regions of a session. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Regions {
    registered: Arc<Mutex<Vec<Registered>>>,
}

#[derive(Debug)]
struct Registered {
    region: WeakRegion,
    inlet: Inlet,
}

impl Regions {
    /// Makes a region of the host's memory.
    pub(super) fn register(&self, options: RegionOptions) -> Result<Region, Error> {
        let kind = options.kind();
        if kind != crate::plane::MemoryKind::Host {
            return Err(ErrorKind::Unsupported { kind }.into());
        }
        let min_block = options.min_block();
        let len = rounded_len(options.len(), min_block).map_err(ErrorKind::from)?;
        let memory = HostMemory::new(len).map_err(ErrorKind::from)?;
        let (region, inlet) = Inlet::new(Box::new(memory), min_block)?;
        let mut registered = self.lock();
        registered.retain(|registered| !registered.inlet.is_gone());
        registered.push(Registered {
            region: region.downgrade(),
            inlet,
        });
        Ok(region)
    }

    /// Returns the region that `slot` is of, if it is there.
    pub(super) fn owning(&self, slot: &Slot) -> Option<Region> {
        let registered = self.lock();
        let mut regions = registered.iter();
        regions.find_map(|registered| {
            let region = registered.region.upgrade();
            region.filter(|region| region.pool().owns(slot))
        })
    }

    /// Begins to write `pieces`, all of which lie in one region, each in one open window.
    pub(super) fn begin(&self, pieces: &[Piece]) -> Result<Delivery, ErrorKind> {
        let first = pieces.first().copied().unwrap_or(Piece::received(0, 0));
        let registered = self.lock();
        let mut regions = registered.iter().filter(|registered| {
            let region = registered.region.upgrade();
            region.is_some_and(|region| first.offset_in(region.base(), region.len()).is_ok())
        });
        let (address, len) = (first.address(), u64::try_from(first.len()));
        let len = len.unwrap_or(u64::MAX);
        let region = regions.next();
        let region = region.ok_or(ErrorKind::OutOfBounds { address, len })?;
        match region.inlet.begin(pieces) {
            // It was dropped just now.
            Err(ErrorKind::PeerGone) => Err(ErrorKind::OutOfBounds { address, len }),
            begun => begun,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Registered>> {
        // Each change is one push or one removal.
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
