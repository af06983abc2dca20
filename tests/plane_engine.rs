//! A data plane made with the public API alone, shaped as an RDMA engine: memory of a device, one-sided
//! writes by scatter lists, and completions that come later.

#![cfg(feature = "std")]

use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tensorwire::plane::{
    Completion, DataPlane, ErrorKind, Memory, MemoryKind, PushId, Region, RegionOptions, Transfer,
    WeakRegion,
};
use tensorwire::transfer::pool::{WindowTable, Writing};

const KIND: MemoryKind = MemoryKind::Device { ordinal: 1 };
const BLOCK: usize = 512;

/// What was registered, by the address of its first byte.
type Fabric = Arc<Mutex<BTreeMap<u64, Registered>>>;

struct Registered {
    session: String,
    table: WindowTable,
    /// What the device has, and no instruction of the host reaches.
    bytes: Vec<u8>,
}

/// A registration handle: dropped, the memory is deregistered.
struct Handle {
    fabric: Fabric,
    address: u64,
    len: usize,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

// SAFETY: the rules of `Memory`.
// 1. The fields never change.
// 2. The kind is none of the host.
// 3. There are no bytes for the host.
unsafe impl Memory for Handle {
    fn as_ptr(&self) -> NonNull<u8> {
        NonNull::dangling()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn kind(&self) -> MemoryKind {
        KIND
    }

    fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.fabric.lock().unwrap().remove(&self.address);
    }
}

struct Engine {
    fabric: Fabric,
    session: String,
    regions: Vec<WeakRegion>,
    posted: VecDeque<Posted>,
    pushes: u64,
}

/// A request that the engine works at.
struct Posted {
    id: PushId,
    transfer: Transfer,
    source: u64,
    targets: Vec<Target>,
    /// How often it is asked after before it has ended.
    polls: u32,
}

/// Where a piece goes.
struct Target {
    /// The memory, and where in it.
    base: u64,
    offset: usize,
    /// The window, which cannot be closed for so long.
    _writing: Writing,
}

impl Engine {
    fn new(fabric: &Fabric, session: &str) -> Self {
        Self {
            fabric: Arc::clone(fabric),
            session: session.to_owned(),
            regions: Vec::new(),
            posted: VecDeque::new(),
            pushes: 0,
        }
    }

    fn post(&self, transfer: &Transfer) -> Result<(u64, Vec<Target>), ErrorKind> {
        let mut regions = self.regions.iter().filter_map(WeakRegion::upgrade);
        let source = regions.find(|region| region.pool().owns(transfer.slot()));
        let source = source.ok_or(ErrorKind::ForeignSlot)?.base();
        let fabric = self.fabric.lock().unwrap();
        let mut targets = Vec::new();
        for piece in transfer.pieces() {
            let (address, len) = (piece.address(), piece.len() as u64);
            let peers = fabric.iter();
            let mut peers = peers.filter(|(_, peer)| peer.session == transfer.session());
            let found = peers.find_map(|(&base, peer)| {
                let offset = piece.offset_in(base, peer.bytes.len()).ok()?;
                Some((base, offset, peer.table.begin_write(offset, piece.len())))
            });
            let (base, offset, writing) = found.ok_or(ErrorKind::OutOfBounds { address, len })?;
            targets.push(Target {
                base,
                offset,
                _writing: writing?,
            });
        }
        Ok((source, targets))
    }

    /// What the device does by itself.
    fn write(&self, posted: &Posted) -> Result<u64, ErrorKind> {
        let mut fabric = self.fabric.lock().unwrap();
        let start = posted.transfer.slot().offset();
        for (piece, target) in posted.transfer.pieces().iter().zip(&posted.targets) {
            let range = piece.source();
            let source = &fabric[&posted.source].bytes[start + range.start..start + range.end];
            let bytes = source.to_vec();
            let peer = fabric.get_mut(&target.base).ok_or(ErrorKind::PeerGone)?;
            peer.bytes[target.offset..target.offset + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(posted.transfer.byte_len())
    }
}

impl DataPlane for Engine {
    type Error = ErrorKind;

    fn session_id(&self) -> &str {
        &self.session
    }

    fn register(&mut self, options: RegionOptions) -> Result<Region, ErrorKind> {
        let kind = options.kind();
        if kind != KIND {
            return Err(ErrorKind::Unsupported { kind });
        }
        let (table, len) = (WindowTable::new(), options.len().next_power_of_two());
        let mut fabric = self.fabric.lock().unwrap();
        let address = (1 << 63) + ((fabric.len() as u64) << 32);
        let registered = Registered {
            session: self.session.clone(),
            table: table.clone(),
            bytes: vec![0; len],
        };
        fabric.insert(address, registered);
        drop(fabric);
        let handle = Handle {
            fabric: Arc::clone(&self.fabric),
            address,
            len,
        };
        let region = Region::new(Box::new(handle), options.min_block(), Arc::new(table))?;
        self.regions.push(region.downgrade());
        Ok(region)
    }

    fn push(&mut self, transfer: Transfer) -> Result<PushId, (Transfer, ErrorKind)> {
        let (source, targets) = match self.post(&transfer) {
            Ok(posted) => posted,
            Err(error) => return Err((transfer, error)),
        };
        let id = PushId::new(self.pushes);
        self.pushes += 1;
        self.posted.push_back(Posted {
            id,
            transfer,
            source,
            targets,
            polls: 2,
        });
        Ok(id)
    }

    fn poll_completion(&mut self) -> Option<Completion<ErrorKind>> {
        let first = self.posted.front_mut()?;
        first.polls -= 1;
        if first.polls > 0 {
            return None;
        }
        let posted = self.posted.pop_front()?;
        let result = self.write(&posted);
        Some(Completion::new(
            posted.id,
            posted.transfer.into_slot(),
            result,
        ))
    }

    fn wait_completion(&mut self, _timeout: Duration) -> Option<Completion<ErrorKind>> {
        while !self.posted.is_empty() {
            if let Some(completion) = self.poll_completion() {
                return Some(completion);
            }
        }
        None
    }
}

fn device(fabric: &Fabric, region: &Region, offset: usize) -> u8 {
    fabric.lock().unwrap()[&region.base()].bytes[offset]
}

#[test]
fn an_engine_with_memory_of_its_own_is_a_data_plane() {
    let fabric = Fabric::default();
    let mut sender = Engine::new(&fabric, "sender");
    let mut receiver = Engine::new(&fabric, "receiver");
    let options = RegionOptions::new(4 * BLOCK)
        .with_min_block(BLOCK)
        .with_kind(KIND);
    let (ours, theirs) = (
        sender.register(options).unwrap(),
        receiver.register(options).unwrap(),
    );
    let host = sender.register(options.with_kind(MemoryKind::Host));
    let kind = MemoryKind::Host;
    assert_eq!(host.unwrap_err(), ErrorKind::Unsupported { kind });

    // The slots are numbers: the host has no bytes of them.
    let slot = ours.pool().allocate(BLOCK).unwrap();
    assert_eq!(
        ours.bytes(&slot),
        Err(ErrorKind::Unsupported { kind: KIND })
    );
    let bytes = (0..BLOCK).map(|at| (at % 251) as u8 + 1);
    fabric.lock().unwrap().get_mut(&ours.base()).unwrap().bytes[..BLOCK]
        .copy_from_slice(&bytes.collect::<Vec<_>>());

    // Two pieces to two windows, as one request.
    let landings = [(); 2].map(|()| theirs.pool().allocate(BLOCK).unwrap().open());
    let places = landings.each_ref().map(|landing| landing.offset());
    let mut transfer = Transfer::new(slot, receiver.session_id());
    for (source, place) in [(0..100, places[0]), (100..101, places[1] + 7)] {
        let address = theirs.address_of(place).unwrap();
        transfer.add_piece(source, address).unwrap();
    }
    let id = sender.push(transfer).unwrap();

    // It is under way: the slot is the engine's, and no window is closed under it.
    assert!(sender.poll_completion().is_none());
    let landings = landings.map(|landing| landing.close().unwrap_err().into_landing());
    assert_eq!(device(&fabric, &theirs, places[0]), 0);
    let completion = sender.wait_completion(Duration::MAX).unwrap();
    assert_eq!((completion.id(), completion.result()), (id, Ok(101)));
    let slots = landings.map(|landing| landing.close().unwrap());
    assert_eq!(device(&fabric, &theirs, places[0] + 99), 100);
    assert_eq!(device(&fabric, &theirs, places[1] + 7), 101);
    drop(slots);

    // A late one is refused whole, and one to memory that is not registered any more.
    let (slot, _) = completion.into_parts();
    let address = theirs.base();
    let mut transfer = Transfer::new(slot, "receiver");
    transfer.add_piece(0..1, address).unwrap();
    let (transfer, error) = sender.push(transfer).unwrap_err();
    assert_eq!(error, ErrorKind::Closed);
    drop(theirs);
    let (transfer, error) = sender.push(transfer).unwrap_err();
    assert_eq!(error, ErrorKind::OutOfBounds { address, len: 1 });
    drop(transfer);
    assert_eq!(ours.pool().stats().allocations(), 0);
}
