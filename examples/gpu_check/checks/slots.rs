//! Slots of a data plane's region, pinned.

use tensorwire::Options;
use tensorwire::cuda::Source;
use tensorwire::device::{Device, Download};
use tensorwire::json::Value;
use tensorwire::plane::memory::Hub;
use tensorwire::plane::{DataPlane, RegionOptions};
use tensorwire::transfer::manifest::{Manifest, Storage};

use super::frames::mixed;
use crate::Result;
use crate::args::Run;
use crate::gpu::{Gpu, PATIENT, eventually};
use crate::payload::{Payload, compare};

pub(super) fn load_and_store(gpu: &Gpu, run: &Run) -> Result<String> {
    let payloads = mixed(run);
    let len = if run.small { 4 << 20 } else { 64 << 20 };
    let hub = Hub::new();
    let mut plane = hub.join("gpu_check")?;
    let region = plane.register(RegionOptions::new(len).with_min_block(4096))?;
    let pinned = gpu.cuda.pin(&region)?;
    let views = payloads.iter().map(Payload::view);
    let views = views.collect::<Result<Vec<_>>>()?;
    for round in 1..=3 {
        // As it came from a peer; then to the device, back into another slot, and to the device again.
        let (slot, _, manifest) = region.store(&views)?.into_parts();
        let mut storage = Storage::<64>::new();
        let object = Value::parse(&manifest)?.as_object()?;
        let decoded = Manifest::decode_with(object, slot.len(), &mut storage, &Options::new())?;
        let loaded = pinned.load(slot, &decoded, &gpu.stream);
        let (tensors, loading) = loaded.map_err(|(_, error)| error)?;
        drop(loading);
        for (sent, tensor) in payloads.iter().zip(&tensors) {
            compare(&sent.name, &sent.bytes, &gpu.fetch(tensor)?)?;
        }
        let storing = pinned.store(tensors.iter().map(Source::from), &gpu.stream)?;
        drop(tensors);
        let stored = storing.finish(PATIENT).map_err(|(_, error)| error)?;
        if stored.manifest() != manifest {
            return Err(format!("round {round}: another manifest").into());
        }
        let mut storage = Storage::<64>::new();
        let object = Value::parse(stored.manifest())?.as_object()?;
        let len = stored.slot().len();
        let decoded = Manifest::decode_with(object, len, &mut storage, &Options::new())?;
        let attached = decoded.attach(region.bytes(stored.slot())?)?;
        for (sent, view) in payloads.iter().zip(attached.tensors()) {
            compare(&sent.name, &sent.bytes, view.bytes())?;
        }
    }
    eventually("all slots come back", || {
        gpu.cuda.poll()?;
        Ok(region.pool().stats().allocated_bytes() == 0)
    })?;
    // The ring was not needed for any of this, and still works beside.
    let tensor = gpu.cuda.upload(&views[1], &gpu.stream, PATIENT)?;
    let download = gpu.cuda.download(&[&tensor], &gpu.stream, PATIENT)?;
    drop(download.finish(PATIENT).map_err(|(_, error)| error)?);
    Ok(format!("3 rounds of {} tensors", payloads.len()))
}
