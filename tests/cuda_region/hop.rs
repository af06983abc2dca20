//! From one worker's device into another's, by way of a data plane.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;
use tensorwire::cuda::{Cuda, PinnedRegion};
use tensorwire::json::Value;
use tensorwire::plane::memory::Hub;
use tensorwire::plane::{DataPlane, Transfer};
use tensorwire::transfer::manifest::Decoder;

use crate::common::{
    PATIENCE, SLOT_BYTES, assert_same, downloaded, open, sources, upload_all, variety,
};
use crate::simulated;

/// Pushes what the device has, by way of `from`, into a slot of `to`, and from there to the device; it comes back as it was.
fn hop<P: DataPlane>(sender: &mut P, receiver: &mut P) {
    let (cuda, stream) = open(8, SLOT_BYTES);
    let from = cuda.pin(&crate::region(sender, 4 << 20)).unwrap();
    let to = cuda.pin(&crate::region(receiver, 4 << 20)).unwrap();
    for seed in 0..5 {
        one(
            &cuda,
            &stream,
            sender,
            receiver.session_id(),
            (&from, &to),
            seed,
        );
    }
    assert_eq!(from.region().pool().stats().allocated_bytes(), 0);
    assert_eq!(to.region().pool().stats().allocated_bytes(), 0);
}

fn one<P: DataPlane>(
    cuda: &Cuda,
    stream: &Arc<CudaStream>,
    sender: &mut P,
    session: &str,
    (from, to): (&PinnedRegion, &PinnedRegion),
    seed: u64,
) {
    let given = variety(seed);
    let tensors = upload_all(cuda, stream, &given);
    let storing = from.store(sources(&tensors), stream).unwrap();
    drop(tensors);
    let (slot, used_len, manifest) = storing.finish(PATIENCE).unwrap().into_parts();

    let landing = to.region().pool().allocate(used_len).unwrap().open();
    let address = to.region().address_of(landing.offset()).unwrap();
    let mut transfer = Transfer::new(slot, session);
    transfer.add_piece(0..used_len, address).unwrap();
    sender.push(transfer).map_err(|(_, error)| error).unwrap();
    let completion = sender.wait_completion(Duration::from_secs(60)).unwrap();
    let (_slot, pushed) = completion.into_parts();
    assert_eq!(pushed.unwrap(), used_len as u64);

    let slot = landing.close().unwrap();
    let object = Value::parse(&manifest).unwrap().as_object().unwrap();
    let mut decoder = Decoder::new();
    let manifest = decoder.decode(object, slot.len()).unwrap();
    let (tensors, loading) = to.load(slot, &manifest, stream).unwrap();
    let all: Vec<_> = tensors.iter().collect();
    assert_same(downloaded(cuda, stream, &all).tensors(), &given);
    drop(loading.finish(PATIENCE).unwrap());
}

#[test]
fn tensors_hop_from_device_to_device_between_threads() {
    simulated::test(
        "hop::tensors_hop_from_device_to_device_between_threads",
        || {
            let hub = Hub::new();
            let (mut sender, mut receiver) = (hub.join("a").unwrap(), hub.join("b").unwrap());
            hop(&mut sender, &mut receiver);
        },
    );
}

#[test]
fn tensors_hop_where_allocating_and_freeing_wait_for_the_device() {
    let name = "hop::tensors_hop_where_allocating_and_freeing_wait_for_the_device";
    simulated::test_with(name, &[("SIMCUDA_POOLS", "0")], || {
        let hub = Hub::new();
        let (mut sender, mut receiver) = (hub.join("a").unwrap(), hub.join("b").unwrap());
        hop(&mut sender, &mut receiver);
    });
}

#[cfg(all(feature = "shared-memory", unix))]
#[test]
fn tensors_hop_from_device_to_device_through_shared_memory() {
    use tensorwire::plane::shared::Builder;

    simulated::test(
        "hop::tensors_hop_from_device_to_device_through_shared_memory",
        || {
            let name = format!("tensorwire-test-region-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let builder = Builder::new().with_folder(&folder);
            let (mut sender, mut receiver) =
                (builder.clone().build().unwrap(), builder.build().unwrap());
            hop(&mut sender, &mut receiver);
            drop((sender, receiver));
            std::fs::remove_dir(&folder).unwrap();
        },
    );
}
