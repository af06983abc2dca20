//! Out of slots to the device.

use std::time::Duration;

use tensorwire::DType;
use tensorwire::cuda::RegionError;
use tensorwire::device::{DeviceError, DeviceTensor, ErrorKind};
use tensorwire::error::{CastError, DecodeErrorKind};
use tensorwire::json::Value;
use tensorwire::plane;
use tensorwire::transfer::manifest::Decoder;
use tensorwire::transport::Wait;

use crate::common::{Given, variety};
use crate::simulated::{self, Streams};
use crate::{Bed, Laid, finish};

fn copies() -> u64 {
    match simulated::scripted() {
        true => simulated::calls("cuMemcpyHtoDAsync_v2"),
        false => 0,
    }
}

#[test]
fn tensors_come_out_of_a_slot_wherever_the_manifest_says() {
    let name = "load::tensors_come_out_of_a_slot_wherever_the_manifest_says";
    simulated::test(name, || {
        let bed = Bed::new();
        let planned = Laid::planned(variety(1));
        let mut reversed = Laid::planned(variety(2));
        reversed.given.reverse();
        reversed.offsets.reverse();
        // Members of a list go together on the wire.
        reversed.given[3..5].reverse();
        reversed.offsets[3..5].reverse();
        let mut apart = Laid::planned(variety(3));
        (0..)
            .zip(&mut apart.offsets)
            .for_each(|(index, offset)| *offset += 1024 * index);
        let mut odd = Laid::planned(variety(4));
        (0..)
            .zip(&mut odd.offsets)
            .for_each(|(index, offset)| *offset += 3 * index);
        // Without bytes: one. Large: one, between the eighth and the last.
        for (laid, what, expected) in [
            (planned, "in one go", 3),
            (reversed, "in another order", 3),
            (apart, "with gaps", 9),
            (odd, "at odd offsets", 9),
        ] {
            let slot = laid.put(&bed.region);
            let before = copies();
            let (tensors, loading) = bed.load(slot, &laid.manifest()).unwrap();
            if simulated::scripted() {
                assert_eq!(copies() - before, expected, "{what}");
            }
            bed.assert_loaded(&tensors, &laid.given);
            assert!(tensors.tensor("scale").is_some());
            let members: Vec<_> = tensors.list("skip").map(|(index, _)| index).collect();
            assert_eq!(members, [0, 2]);
            for tensor in &tensors {
                assert_eq!(tensor.device_pointer() % 256, 0, "{what}");
            }
            assert!(loading.is_ready().unwrap());
            drop(finish(loading));
            bed.assert_free();
        }
    });
}

#[test]
fn a_manifest_without_tensors_or_bytes_loads_nothing() {
    simulated::test(
        "load::a_manifest_without_tensors_or_bytes_loads_nothing",
        || {
            let bed = Bed::new();
            let empty = vec![
                Given::new("a", DType::Float32, &[0], 1),
                Given::new("b", DType::Bool, &[3, 0], 1),
            ];
            for given in [Vec::new(), empty] {
                let laid = Laid::planned(given);
                let before = copies();
                let (tensors, loading) = bed.load(laid.put(&bed.region), &laid.manifest()).unwrap();
                bed.assert_loaded(&tensors, &laid.given);
                assert_eq!(copies(), before);
                drop(finish(loading));
                bed.assert_free();
            }
        },
    );
}

#[test]
fn a_slot_comes_back_when_its_copies_are_over() {
    simulated::test("load::a_slot_comes_back_when_its_copies_are_over", || {
        let name = "a_slot_comes_back_when_its_copies_are_over";
        if !simulated::needs_script(name) {
            return;
        }
        let bed = Bed::new();
        let laid = Laid::planned(variety(1));
        let manifest = laid.manifest();
        let allocated = || bed.region.pool().stats().allocated_bytes();
        let slot = laid.put(&bed.region);
        let len = slot.len();
        simulated::stall(Streams::All);
        let (tensors, loading) = bed.load(slot, &manifest).unwrap();
        assert!(!loading.is_ready().unwrap());
        assert!(!tensors.iter().next().unwrap().is_ready().unwrap());
        let (loading, error) = loading.finish(Wait::Never).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotReady);
        let longest = Wait::UpTo(Duration::from_millis(1));
        let (loading, error) = loading.finish(longest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let (_, second) = bed.load(laid.put(&bed.region), &manifest).unwrap();
        drop(second);
        bed.cuda.poll().unwrap();
        assert_eq!(allocated(), 2 * len, "the device has both");
        simulated::release(Streams::All);
        simulated::settle();
        assert_eq!(allocated(), 2 * len, "nobody has looked");
        bed.cuda.poll().unwrap();
        assert_eq!(allocated(), len);
        // What is owned is not given back: it is the owner's to open again, say.
        let slot = loading.finish(Wait::Never).unwrap();
        assert_eq!(allocated(), len);
        drop(slot);
        assert_eq!(allocated(), 0);
        bed.assert_loaded(&tensors, &laid.given);
    });
}

#[test]
fn memory_stays_pinned_while_a_slot_of_it_is_read() {
    simulated::test(
        "load::memory_stays_pinned_while_a_slot_of_it_is_read",
        || {
            let name = "memory_stays_pinned_while_a_slot_of_it_is_read";
            if !simulated::needs_script(name) {
                return;
            }
            let bed = Bed::new();
            let laid = Laid::planned(variety(1));
            let slot = laid.put(&bed.region);
            simulated::stall(Streams::All);
            let (tensors, loading) = bed.load(slot, &laid.manifest()).unwrap();
            let Bed {
                pinned,
                region,
                cuda,
                plane,
                hub,
                stream,
            } = bed;
            drop((loading, pinned, region, plane, hub));
            cuda.poll().unwrap();
            assert_eq!(simulated::live().registered, 1);
            simulated::release(Streams::All);
            simulated::settle();
            cuda.poll().unwrap();
            assert_eq!(simulated::live().registered, 0);
            drop((tensors, cuda, stream));
        },
    );
}

#[test]
fn bools_are_looked_at_before_they_are_typed() {
    simulated::test("load::bools_are_looked_at_before_they_are_typed", || {
        let bed = Bed::new();
        let mut laid = Laid::planned(vec![
            Given::new("good", DType::Bool, &[700], 1),
            Given::new("bad", DType::Bool, &[700], 2),
            Given::new("bytes", DType::UInt8, &[700], 3),
        ]);
        laid.given[1].bytes[600] = 7;
        laid.given[1].bytes[601] = 8;
        let (tensors, _loading) = bed.load(laid.put(&bed.region), &laid.manifest()).unwrap();
        assert!(tensors.tensor("good").unwrap().view::<bool>().is_ok());
        let error = tensors.tensor("bad").unwrap().view::<bool>().unwrap_err();
        let (index, byte) = (600, 7);
        assert_eq!(error, CastError::InvalidBool { index, byte });
        assert!(tensors.tensor("bytes").unwrap().view::<u8>().is_ok());
        bed.assert_loaded(&tensors, &laid.given);
    });
}

#[test]
fn what_is_no_slot_for_the_manifest_comes_back_untouched() {
    simulated::test(
        "load::what_is_no_slot_for_the_manifest_comes_back_untouched",
        || {
            let mut bed = Bed::new();
            let laid = Laid::planned(variety(1));
            let text = laid.manifest();
            let object = Value::parse(&text).unwrap().as_object().unwrap();
            let mut decoder = Decoder::new();
            let calls = || simulated::scripted().then(|| simulated::calls("*"));
            let before = calls();

            let other = crate::region(&mut bed.plane, 1 << 20);
            let foreign = other.pool().allocate(1 << 20).unwrap();
            let manifest = decoder.decode(object, foreign.len()).unwrap();
            let (slot, error) = bed
                .pinned
                .load(foreign, &manifest, &bed.stream)
                .unwrap_err();
            assert_eq!(error, RegionError::Plane(plane::ErrorKind::ForeignSlot));
            assert!(other.pool().owns(&slot.unwrap()));

            let slot = bed.region.pool().allocate(1 << 21).unwrap();
            let (slot, error) = bed.pinned.load(slot, &manifest, &bed.stream).unwrap_err();
            let RegionError::Decode(error) = error else {
                panic!("{error}");
            };
            let (expected, actual) = (1 << 20, 1 << 21);
            assert_eq!(
                error.kind(),
                DecodeErrorKind::SlotLength { expected, actual }
            );
            assert!(bed.region.pool().owns(&slot.unwrap()));
            assert_eq!(calls(), before);

            // What a peer made up is refused before there is anything to load by.
            for hostile in [
                r#"{"x":[{"offset":1048575,"shape":[2],"dtype":"uint8"}]}"#,
                r#"{"x":[{"offset":-1,"shape":[2],"dtype":"uint8"}]}"#,
                r#"{"x":[{"offset":0,"shape":[9223372036854775807],"dtype":"uint8"}]}"#,
                r#"{"x":[{"offset":0,"shape":[2],"dtype":"uint8"}],"y":[{"offset":1,"shape":[2],"dtype":"uint8"}]}"#,
            ] {
                let object = Value::parse(hostile.as_bytes())
                    .unwrap()
                    .as_object()
                    .unwrap();
                decoder.decode(object, 1 << 20).unwrap_err();
            }
        },
    );
}

#[test]
fn the_consumers_stream_waits_and_the_host_does_not() {
    simulated::test(
        "load::the_consumers_stream_waits_and_the_host_does_not",
        || {
            let name = "the_consumers_stream_waits_and_the_host_does_not";
            if !simulated::needs_script(name) {
                return;
            }
            let bed = Bed::new();
            let laid = Laid::planned(variety(1));
            let slot = laid.put(&bed.region);
            // The first stream of the adapter is that to the device.
            simulated::stall(Streams::Made(0));
            let (tensors, loading) = bed.load(slot, &laid.manifest()).unwrap();
            let done = bed.stream.record_event(None).unwrap();
            assert!(!done.is_complete());
            simulated::release(Streams::All);
            bed.assert_loaded(&tensors, &laid.given);
            drop(loading);
        },
    );
}
