//! From the device into slots.

use std::time::Duration;

use cudarc::driver::DevicePtr;
use tensorwire::cuda::{RegionError, Source};
use tensorwire::device::{Device, DeviceError, ErrorKind};
use tensorwire::error::EncodeError;
use tensorwire::plane::{self, Stored};
use tensorwire::transfer::pool::PoolError;
use tensorwire::transport::Wait;
use tensorwire::{DType, Decoder, TensorView};

use crate::common::{Given, PATIENCE, encoded, fill, sources, upload_all, variety, wait_for};
use crate::simulated::{self, Streams};
use crate::{Bed, Laid};

/// Asserts that what was stored is what the host stores of the same.
pub(crate) fn assert_as_by_host(bed: &Bed, stored: &Stored, given: &[Given]) {
    let views: Vec<TensorView<'_>> = given.iter().map(Given::view).collect();
    let expected = bed.region.store(&views).unwrap();
    assert_eq!(stored.used_len(), expected.used_len());
    assert_eq!(stored.slot().len(), expected.slot().len());
    assert!(stored.manifest() == expected.manifest());
    let used = ..stored.used_len();
    let bytes = bed.region.bytes(stored.slot()).unwrap();
    assert!(bytes[used] == bed.region.bytes(expected.slot()).unwrap()[used]);
}

/// Fills all that is free with what others may have left there.
fn soil(bed: &Bed) {
    let mut all = bed.region.pool().allocate(4 << 20).unwrap();
    bed.region.bytes_mut(&mut all).unwrap().fill(0xee);
}

#[test]
fn what_is_stored_is_what_the_host_stores_byte_for_byte() {
    simulated::test(
        "store::what_is_stored_is_what_the_host_stores_byte_for_byte",
        || {
            let bed = Bed::new();
            let empty = vec![Given::new("nothing", DType::Int8, &[0], 1)];
            let small = vec![Given::new("x", DType::Int8, &[1], 1)];
            for given in [variety(1), Vec::new(), empty, small] {
                bed.assert_free();
                soil(&bed);
                let tensors = upload_all(&bed.cuda, &bed.stream, &given);
                let storing = bed.pinned.store(sources(&tensors), &bed.stream).unwrap();
                drop(tensors);
                let stored = storing.finish(PATIENCE).unwrap();
                assert_as_by_host(&bed, &stored, &given);
            }
        },
    );
}

#[test]
fn what_lies_between_tensors_on_the_device_is_not_stored() {
    simulated::test(
        "store::what_lies_between_tensors_on_the_device_is_not_stored",
        || {
            let bed = Bed::new();
            // Each is to be 512 bytes behind the one before, there as here; the last two are neighbours without a gap.
            let mut given: Vec<_> = (0..40)
                .map(|index| Given::member("list", index, DType::UInt8, &[300], 1))
                .collect();
            given.push(Given::new("whole", DType::UInt8, &[512], 2));
            given.push(Given::new("last", DType::UInt8, &[300], 3));
            let laid = Laid::planned(given);
            let loaded = bed.load(laid.put(&bed.region), &laid.manifest()).unwrap();
            let frames = encoded(&laid.given);
            let mut decoder = Decoder::new();
            let message = decoder.decode(&frames).unwrap();
            let uploaded = bed
                .cuda
                .upload_message(&message, &bed.stream, PATIENCE)
                .unwrap();
            for tensors in [&loaded.0, &uploaded] {
                let sources: Vec<_> = tensors.iter().map(Source::from).collect();
                let storing = bed.pinned.store(sources, &bed.stream).unwrap();
                assert_as_by_host(&bed, &storing.finish(PATIENCE).unwrap(), &laid.given);
            }
            if simulated::scripted() {
                let copies = simulated::calls("cuMemcpyDtoHAsync_v2");
                assert_eq!(copies, 2 * 41, "two in one");
            }
        },
    );
}

#[test]
fn a_slot_is_stored_when_its_copies_are_over() {
    simulated::test("store::a_slot_is_stored_when_its_copies_are_over", || {
        if !simulated::needs_script("a_slot_is_stored_when_its_copies_are_over") {
            return;
        }
        let bed = Bed::new();
        let given = variety(2);
        let tensors = upload_all(&bed.cuda, &bed.stream, &given);
        wait_for(&tensors);
        let allocated = || bed.region.pool().stats().allocated_bytes();
        simulated::stall(Streams::All);
        let storing = bed.pinned.store(sources(&tensors), &bed.stream).unwrap();
        let dropped = bed.pinned.store(sources(&tensors), &bed.stream).unwrap();
        assert!(!storing.is_ready().unwrap());
        let (storing, error) = storing.finish(Wait::Never).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotReady);
        let longest = Wait::UpTo(Duration::from_millis(1));
        let (storing, error) = storing.finish(longest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let both = allocated();
        drop(dropped);
        bed.cuda.poll().unwrap();
        assert_eq!(allocated(), both, "the device writes to it");
        simulated::release(Streams::All);
        simulated::settle();
        bed.cuda.poll().unwrap();
        assert_eq!(allocated(), both / 2);
        assert!(storing.is_ready().unwrap());
        let stored = storing.finish(Wait::Never).unwrap();
        assert_as_by_host(&bed, &stored, &given);
        drop(stored);
        bed.assert_free();
    });
}

#[test]
fn what_cannot_be_stored_takes_no_slot_and_no_copy() {
    simulated::test(
        "store::what_cannot_be_stored_takes_no_slot_and_no_copy",
        || {
            let bed = Bed::new();
            let x = Given::new("x", DType::Int8, &[5000], 1).upload(&bed.cuda, &bed.stream);
            let copies = || match simulated::scripted() {
                true => simulated::calls("cuMemcpyDtoHAsync_v2"),
                false => 0,
            };
            let before = copies();
            let twice = [Source::from(&x), Source::from(&x)];
            let error = bed.pinned.store(twice, &bed.stream).unwrap_err();
            let index = 1;
            assert_eq!(
                error,
                RegionError::Encode(EncodeError::DuplicateField { index })
            );
            bed.assert_free();
            let held = bed.region.pool().allocate(4 << 20).unwrap();
            let error = bed
                .pinned
                .store([Source::from(&x)], &bed.stream)
                .unwrap_err();
            let (needed, largest) = (8192, 0);
            let full = PoolError::Full { needed, largest };
            assert_eq!(error, RegionError::Plane(plane::ErrorKind::Pool(full)));
            drop(held);
            assert_eq!(copies(), before);
            bed.assert_free();
        },
    );
}

#[test]
fn the_producers_work_is_waited_for() {
    simulated::test("store::the_producers_work_is_waited_for", || {
        let bed = Bed::new();
        let producer = bed.cuda.context().new_stream().unwrap();
        let mut given = Given::new("x", DType::UInt8, &[3, 1000], 1);
        given.bytes.fill(7);
        let slice = producer.alloc_zeros::<u8>(3000).unwrap();
        if simulated::scripted() {
            simulated::stall(Streams::One(&producer));
        }
        fill(slice.device_ptr(&producer).0, 7, 3000, &producer);
        let source = Source::new(given.info.clone(), &slice).unwrap();
        let storing = bed.pinned.store([source], &producer).unwrap();
        if simulated::scripted() {
            assert!(!storing.is_ready().unwrap());
            simulated::release(Streams::All);
        }
        let stored = storing.finish(PATIENCE).unwrap();
        assert_as_by_host(&bed, &stored, &[given]);
    });
}
