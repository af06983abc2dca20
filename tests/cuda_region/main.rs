//! Slots of a data plane, pinned: out of them to the device and back by manifest, without a copy on the host.

#![cfg(feature = "cuda")]

#[path = "../common/cuda.rs"]
mod common;
mod faults;
mod hop;
mod load;
mod order;
#[path = "../simulated/mod.rs"]
mod simulated;
mod store;

use std::sync::Arc;

use cudarc::driver::CudaStream;
use tensorwire::cuda::{Cuda, Loading, PinnedRegion, RegionError, Tensor};
use tensorwire::device::Tensors;
use tensorwire::json::Value;
use tensorwire::plane::memory::{self, Hub};
use tensorwire::plane::{DataPlane, Region, RegionOptions};
use tensorwire::transfer::manifest::{Decoder, Entry, Plan, encode_into};
use tensorwire::transfer::pool::Slot;

use common::{Given, PATIENCE, SLOT_BYTES, assert_same, downloaded, variety};

/// A device, and a pinned region of a plane.
pub(crate) struct Bed {
    pub(crate) pinned: PinnedRegion,
    pub(crate) region: Region,
    pub(crate) plane: memory::Plane,
    pub(crate) hub: Hub,
    pub(crate) cuda: Cuda,
    pub(crate) stream: Arc<CudaStream>,
}

pub(crate) fn region(plane: &mut impl DataPlane, len: usize) -> Region {
    let options = RegionOptions::new(len).with_min_block(4096);
    plane.register(options).unwrap()
}

impl Bed {
    pub(crate) fn new() -> Self {
        let hub = Hub::new();
        let mut plane = hub.join("worker").unwrap();
        let region = region(&mut plane, 4 << 20);
        let (cuda, stream) = common::open(4, SLOT_BYTES);
        Self {
            pinned: cuda.pin(&region).unwrap(),
            region,
            plane,
            hub,
            cuda,
            stream,
        }
    }

    /// Asserts that no slot is taken, once the device has done with all.
    pub(crate) fn assert_free(&self) {
        self.cuda.poll().unwrap();
        assert_eq!(self.region.pool().stats().allocated_bytes(), 0);
    }

    /// Brings them back and looks.
    pub(crate) fn assert_loaded(&self, tensors: &Tensors<Tensor>, given: &[Given]) {
        let all: Vec<_> = tensors.iter().collect();
        let back = downloaded(&self.cuda, &self.stream, &all);
        assert_same(back.tensors(), given);
    }

    /// Loads by the text of a manifest that is good.
    pub(crate) fn load(
        &self,
        slot: Slot,
        manifest: &[u8],
    ) -> Result<(Tensors<Tensor>, Loading), (Option<Slot>, RegionError)> {
        let mut decoder = Decoder::new();
        let object = Value::parse(manifest).unwrap().as_object().unwrap();
        let manifest = decoder.decode(object, slot.len()).unwrap();
        self.pinned.load(slot, &manifest, &self.stream)
    }
}

/// Tensors in a slot, and what a peer says about them.
pub(crate) struct Laid {
    pub(crate) given: Vec<Given>,
    pub(crate) offsets: Vec<usize>,
}

impl Laid {
    /// As a writer lays them out.
    pub(crate) fn planned(given: Vec<Given>) -> Self {
        let descriptors = given.iter().map(|given| given.info.descriptor());
        let plan = Plan::new(descriptors).unwrap();
        let offsets = plan.entries().map(|entry| entry.offset()).collect();
        Self { given, offsets }
    }

    pub(crate) fn manifest(&self) -> Vec<u8> {
        let entries = self.given.iter().zip(&self.offsets);
        let entries: Vec<_> = entries
            .map(|(given, &offset)| Entry::new(given.info.descriptor(), offset).unwrap())
            .collect();
        let mut buffer = vec![0; 8192];
        encode_into(&entries, &mut buffer).unwrap().to_vec()
    }

    /// Takes a slot and writes the tensors there, as a peer's push does.
    pub(crate) fn put(&self, region: &Region) -> Slot {
        let mut slot = region.pool().allocate(600_000).unwrap();
        let bytes = region.bytes_mut(&mut slot).unwrap();
        bytes.fill(0xee);
        for (given, &offset) in self.given.iter().zip(&self.offsets) {
            bytes[offset..offset + given.bytes.len()].copy_from_slice(&given.bytes);
        }
        slot
    }
}

#[test]
fn the_memory_is_pinned_where_it_is_until_nobody_uses_it() {
    simulated::test(
        "the_memory_is_pinned_where_it_is_until_nobody_uses_it",
        || {
            let Bed {
                pinned,
                region,
                cuda,
                stream: _stream,
                plane: _plane,
                hub: _hub,
            } = Bed::new();
            let slot = region.pool().allocate(4 << 20).unwrap();
            let is_pinned = || simulated::is_pinned(region.bytes(&slot).unwrap());
            assert_eq!(pinned.region().base(), region.base());
            if !simulated::scripted() {
                return;
            }
            assert!(is_pinned());
            assert_eq!(simulated::live().registered, 1);
            let other = pinned.clone();
            drop(pinned);
            assert!(is_pinned());
            drop(other);
            assert!(!is_pinned());
            assert_eq!(simulated::live().registered, 0);
            drop(cuda.pin(&region).unwrap());
            assert!(!is_pinned());
        },
    );
}

#[test]
fn memory_that_is_pinned_already_or_a_devices_is_refused() {
    use std::ptr::NonNull;
    use tensorwire::plane::{ErrorKind, Memory, MemoryKind};
    use tensorwire::transfer::pool::WindowTable;

    #[derive(Debug)]
    struct OfDevice;

    // SAFETY: the rules of `Memory`: nothing changes, and there are no bytes for the host.
    unsafe impl Memory for OfDevice {
        fn as_ptr(&self) -> NonNull<u8> {
            NonNull::dangling()
        }

        fn len(&self) -> usize {
            8192
        }

        fn kind(&self) -> MemoryKind {
            MemoryKind::Device { ordinal: 3 }
        }

        fn address(&self) -> u64 {
            1 << 40
        }
    }

    simulated::test(
        "memory_that_is_pinned_already_or_a_devices_is_refused",
        || {
            let bed = Bed::new();
            let Err(RegionError::Cuda(error)) = bed.cuda.pin(&bed.region) else {
                panic!("pinned twice");
            };
            assert_eq!(
                error.to_string(),
                "pinning memory: CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"
            );
            let windows = Arc::new(WindowTable::new());
            let device = Region::new(Box::new(OfDevice), 4096, windows).unwrap();
            let kind = MemoryKind::Device { ordinal: 3 };
            let error = bed.cuda.pin(&device).unwrap_err();
            assert_eq!(error, RegionError::Plane(ErrorKind::Unsupported { kind }));
            assert_eq!(error.to_string(), "not possible with memory of device 3");
            // The first one is as it was.
            let laid = Laid::planned(variety(1));
            let slot = laid.put(&bed.region);
            let (tensors, _loading) = bed.load(slot, &laid.manifest()).unwrap();
            bed.assert_loaded(&tensors, &laid.given);
        },
    );
}

#[test]
fn the_region_is_kept_until_the_memory_is_not_pinned_any_more() {
    simulated::test(
        "the_region_is_kept_until_the_memory_is_not_pinned_any_more",
        || {
            let Bed {
                pinned,
                region,
                mut plane,
                hub,
                cuda,
                stream: _stream,
            } = Bed::new();
            let mut other = hub.join("peer").unwrap();
            let theirs = self::region(&mut other, 4096);
            let landing = region.pool().allocate(1).unwrap().open();
            let address = region.address_of(landing.offset()).unwrap();
            let mut push = || {
                let slot = theirs.pool().allocate(4096).unwrap();
                let mut transfer = tensorwire::plane::Transfer::new(slot, "worker");
                transfer.add_piece(0..4096, address).unwrap();
                match other.push(transfer) {
                    Ok(_) => loop {
                        if let Some(completion) = other.poll_completion() {
                            break completion.into_parts().1;
                        }
                    },
                    Err((_, error)) => Err(error),
                }
            };
            drop(region);
            assert_eq!(push(), Ok(4096));
            drop((pinned, cuda));
            assert!(push().is_err());
            assert!(plane.poll_completion().is_none());
        },
    );
}

/// Ends what is under way, and gives the slot back.
pub(crate) fn finish(loading: Loading) -> Slot {
    loading.finish(PATIENCE).unwrap()
}
