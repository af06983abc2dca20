//! Tensors that a worker of the transfer protocol has received, out of their slot to the device.

use std::time::Duration;

use tensorwire::cuda::{RegionError, Source};
use tensorwire::json::{Object, Value};
use tensorwire::message::NO_SCALARS;
use tensorwire::plane::{self, DataPlane, Transfer};
use tensorwire::transfer::manifest::Decoder;
use tensorwire::transfer::message::Ready;
use tensorwire::transfer::worker::{CallError, Event, Received, Settings, Site};
use tensorwire::transfer::{Control, Instance, Role};

use crate::common::{PATIENCE, variety};
use crate::simulated::{self, Streams};
use crate::{Bed, Laid, finish};

const NOW: Duration = Duration::ZERO;
const SLOT: usize = 512 << 10;

fn object(text: &[u8]) -> Object<'_> {
    Value::parse(text).unwrap().as_object().unwrap()
}

/// A worker of one preallocated slot, in the region of the bed.
struct Worker {
    instance: Instance,
    slot_id: u64,
    offset: u64,
}

impl Worker {
    fn new(bed: &Bed, role: Role) -> Self {
        let pool = bed.region.pool().clone();
        let site = Site::new("worker", bed.region.base(), pool, "tcp://127.0.0.1:5571");
        let settings = Settings::new().with_preallocated(1, SLOT);
        let mut instance = Instance::new(role, site, settings).unwrap();
        let mut buffer = Vec::new();
        instance.poll_transmit(&mut buffer).unwrap();
        let Control::Register(register) = Control::decode(&buffer).unwrap() else {
            panic!("the first message is no registration");
        };
        let slot = register.preallocated_slots.iter().next().unwrap();
        Self {
            slot_id: slot.slot_id,
            offset: slot.offset,
            instance,
        }
    }

    /// What is received after a peer has pushed the tensors, and the head node has said so.
    fn receive(&mut self, bed: &Bed, laid: &Laid) -> Received {
        let mut peer = bed.hub.join("peer").unwrap();
        let region = crate::region(&mut peer, 1 << 20);
        let slot = laid.put(&region);
        let mut transfer = Transfer::new(slot, "worker");
        let address = bed.region.base() + self.offset;
        transfer.add_piece(0..SLOT, address).unwrap();
        peer.push(transfer).map_err(|(_, error)| error).unwrap();
        let completion = peer.wait_completion(Duration::from_secs(60)).unwrap();
        assert_eq!(completion.into_parts().1.unwrap(), SLOT as u64);

        let scalars = format!(r#"{{"_prealloc_slot_id":{},"seed":7}}"#, self.slot_id);
        let (manifest, scalars) = (laid.manifest(), object(scalars.as_bytes()));
        let ready = Ready::new("r", object(&manifest), self.offset, scalars);
        self.instance.handle(&ready.into(), NOW).unwrap();
        let Some(Event::Ready(received)) = self.instance.poll_event() else {
            panic!("not ready");
        };
        received
    }

    /// How many messages go to the head node.
    fn sent(&mut self) -> usize {
        let mut buffer = Vec::new();
        std::iter::from_fn(|| self.instance.poll_transmit(&mut buffer)).count()
    }
}

#[test]
fn what_a_worker_received_is_loaded_and_its_output_stored() {
    let name = "received::what_a_worker_received_is_loaded_and_its_output_stored";
    simulated::test(name, || {
        let bed = Bed::new();
        let mut worker = Worker::new(&bed, Role::Denoiser);
        for seed in 1..4 {
            let laid = Laid::planned(variety(seed));
            let received = worker.receive(&bed, &laid);
            let job = received.job().clone();
            let mut decoder = Decoder::new();
            let loaded = bed
                .pinned
                .load_received(received, &mut decoder, &bed.stream);
            let (tensors, loading) = loaded.unwrap();
            let sources = tensors.iter().map(Source::from);
            let storing = bed.pinned.store(sources, &bed.stream).unwrap();
            let received = loading.finish(PATIENCE).unwrap();
            let seed = received.scalars().field("seed").unwrap().as_u64();
            assert_eq!(seed, Ok(7));
            drop(received);
            let stored = storing.finish(PATIENCE).unwrap();
            // As it came: the same bytes, where the same plan puts them.
            assert_eq!(stored.manifest(), laid.manifest());
            let bytes = bed.region.bytes(stored.slot()).unwrap();
            for (given, &offset) in laid.given.iter().zip(&laid.offsets) {
                assert!(bytes[offset..][..given.bytes.len()] == given.bytes);
            }
            let staged = worker.instance.stage(&job, stored, &NO_SCALARS, NOW);
            staged.map_err(|(_, error)| error).unwrap();
            assert_eq!(worker.sent(), 1, "the output is announced");
            worker.instance.fail(&job, "enough", NOW).unwrap();
            assert_eq!(worker.sent(), 1);
            bed.cuda.poll().unwrap();
            let allocated = bed.region.pool().stats().allocated_bytes();
            assert_eq!(allocated, SLOT, "the preallocated one is left");
        }
    });
}

#[test]
fn a_received_slot_is_given_back_when_the_device_has_read_it() {
    let name = "received::a_received_slot_is_given_back_when_the_device_has_read_it";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let bed = Bed::new();
        let mut worker = Worker::new(&bed, Role::Decoder);
        let laid = Laid::planned(variety(1));
        for is_dropped in [false, true] {
            let received = worker.receive(&bed, &laid);
            let job = received.job().clone();
            simulated::stall(Streams::All);
            let mut decoder = Decoder::new();
            let loaded = bed
                .pinned
                .load_received(received, &mut decoder, &bed.stream);
            let (tensors, loading) = loaded.unwrap();
            let held = Err(CallError::NotGivenBack);
            assert_eq!(worker.instance.finish(&job, NOW), held);
            if is_dropped {
                drop(loading);
                bed.cuda.poll().unwrap();
                assert_eq!(worker.instance.finish(&job, NOW), held);
                simulated::release(Streams::All);
                simulated::settle();
                assert_eq!(worker.instance.finish(&job, NOW), held, "nobody has looked");
                bed.cuda.poll().unwrap();
            } else {
                simulated::release(Streams::All);
                let received = finish(loading);
                assert_eq!(worker.instance.finish(&job, NOW), held);
                drop(received);
            }
            worker.instance.finish(&job, NOW).unwrap();
            bed.assert_loaded(&tensors, &laid.given);
        }
    });
}

#[test]
fn what_was_received_comes_back_with_an_error() {
    let name = "received::what_was_received_comes_back_with_an_error";
    simulated::test(name, || {
        let mut bed = Bed::new();
        let mut worker = Worker::new(&bed, Role::Decoder);
        let laid = Laid::planned(variety(1));
        let received = worker.receive(&bed, &laid);
        let other = crate::region(&mut bed.plane, 1 << 20);
        let other = bed.cuda.pin(&other).unwrap();
        let mut decoder = Decoder::new();
        let refused = other.load_received(received, &mut decoder, &bed.stream);
        let (received, error) = refused.unwrap_err();
        assert_eq!(error, RegionError::Plane(plane::ErrorKind::ForeignSlot));
        // It is whole: the right region loads it.
        let received = *received.unwrap();
        let loaded = bed
            .pinned
            .load_received(received, &mut decoder, &bed.stream);
        let (tensors, loading) = loaded.unwrap();
        drop(finish(loading));
        bed.assert_loaded(&tensors, &laid.given);
    });
}
