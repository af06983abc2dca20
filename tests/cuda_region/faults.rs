//! Every call of the driver that fails between slots and the device.

use cudarc::driver::sys::CUresult;
use tensorwire::cuda::{CudaError, RegionError};
use tensorwire::device::{DeviceError, ErrorKind};

use crate::common::{PATIENCE, in_use, sources, upload_all, variety, wait_for};
use crate::simulated::{self, Live, Streams};
use crate::store::assert_as_by_host;
use crate::{Bed, Laid};

const CODE: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// What was done before may have failed in a drop: that is told once, by the next call.
fn settle(bed: &Bed) {
    simulated::fail_no_more();
    simulated::settle();
    let _parked = bed.cuda.poll();
    simulated::settle();
    bed.assert_free();
    assert_eq!(in_use(&bed.cuda), 0);
    assert!(bed.cuda.fault().is_none());
}

fn cuda(error: RegionError) -> CudaError {
    match error {
        RegionError::Cuda(error) => error,
        other => panic!("{other}"),
    }
}

/// Fails each call of `work` once in turn; each error is checked, and what follows works.
fn each_call_fails(bed: &Bed, at_least: u64, mut work: impl FnMut() -> Result<(), CudaError>) {
    let mut errors = 0;
    for nth in 0.. {
        let failed = simulated::failed();
        simulated::fail("*", nth, CODE);
        let result = work();
        let has_failed = simulated::failed() > failed;
        if let Err(error) = result {
            assert!(has_failed, "call {nth}: {error}");
            assert_eq!(error.kind(), ErrorKind::Backend, "call {nth}");
            let code = error.code().unwrap().to_string();
            assert_eq!(code, "CUDA_ERROR_INVALID_VALUE", "call {nth}");
            errors += 1;
        }
        settle(bed);
        work().unwrap();
        settle(bed);
        if !has_failed {
            break;
        }
    }
    assert!(errors >= at_least, "{errors} errors");
}

#[test]
fn each_call_of_a_load_that_fails_is_told_and_costs_nothing() {
    simulated::test(
        "faults::each_call_of_a_load_that_fails_is_told_and_costs_nothing",
        || {
            let name = "each_call_of_a_load_that_fails_is_told_and_costs_nothing";
            if !simulated::needs_script(name) {
                return;
            }
            let bed = Bed::new();
            let laid = Laid::planned(variety(1));
            let manifest = laid.manifest();
            each_call_fails(&bed, 10, || {
                let slot = laid.put(&bed.region);
                let (tensors, loading) = bed
                    .load(slot, &manifest)
                    .map_err(|(_, error)| cuda(error))?;
                let slot = loading.finish(PATIENCE).map_err(|(_, error)| error)?;
                drop(slot);
                drop(tensors);
                Ok(())
            });
            let (tensors, _loading) = bed.load(laid.put(&bed.region), &manifest).unwrap();
            bed.assert_loaded(&tensors, &laid.given);
        },
    );
}

#[test]
fn each_call_of_a_store_that_fails_is_told_and_costs_nothing() {
    simulated::test(
        "faults::each_call_of_a_store_that_fails_is_told_and_costs_nothing",
        || {
            let name = "each_call_of_a_store_that_fails_is_told_and_costs_nothing";
            if !simulated::needs_script(name) {
                return;
            }
            let bed = Bed::new();
            let given = variety(1);
            let tensors = upload_all(&bed.cuda, &bed.stream, &given);
            wait_for(&tensors);
            each_call_fails(&bed, 10, || {
                let storing = bed.pinned.store(sources(&tensors), &bed.stream);
                let stored = storing.map_err(cuda)?.finish(PATIENCE);
                let stored = stored.map_err(|(_, error)| error)?;
                assert_as_by_host(&bed, &stored, &given);
                Ok(())
            });
        },
    );
}

#[test]
fn a_load_that_failed_before_the_device_had_the_slot_gives_it_back() {
    let name = "faults::a_load_that_failed_before_the_device_had_the_slot_gives_it_back";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let bed = Bed::new();
        let laid = Laid::planned(variety(1));
        let manifest = laid.manifest();
        for (call, code, keeps) in [
            ("cuMemAllocAsync", CUresult::CUDA_ERROR_OUT_OF_MEMORY, true),
            ("cuEventCreate", CODE, true),
            ("cuMemcpyHtoDAsync_v2", CODE, false),
            ("cuEventRecord", CODE, false),
            ("cuStreamWaitEvent", CODE, false),
        ] {
            simulated::stall(Streams::All);
            simulated::fail(call, 0, code);
            let slot = laid.put(&bed.region);
            let (slot, error) = bed.load(slot, &manifest).unwrap_err();
            assert_eq!(slot.is_some(), keeps, "{call}");
            if code != CODE {
                // The small ones together, with the gaps between them.
                let kind = cuda(error).kind();
                assert!(matches!(kind, ErrorKind::OutOfMemory { .. }), "{kind}");
            }
            drop(slot);
            let allocated = bed.region.pool().stats().allocated_bytes();
            assert_eq!(
                allocated == 0,
                keeps,
                "{call}: the device may be reading it"
            );
            // What is not known to be over is known when something else on the stream is.
            simulated::release(Streams::All);
            let slot = laid.put(&bed.region);
            let (_, loading) = bed.load(slot, &manifest).unwrap();
            drop(loading.finish(PATIENCE).unwrap());
            settle(&bed);
        }
    });
}

#[test]
fn a_slot_in_doubt_is_waited_for_before_its_memory_is_unpinned() {
    let name = "faults::a_slot_in_doubt_is_waited_for_before_its_memory_is_unpinned";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let laid = Laid::planned(variety(1));
        for round in 0..20 {
            let bed = Bed::new();
            // That of the load, and that of the second try.
            simulated::fail("cuEventRecord", 0, CODE);
            simulated::fail("cuEventRecord", 0, CODE);
            let (slot, error) = bed
                .load(laid.put(&bed.region), &laid.manifest())
                .unwrap_err();
            assert!(slot.is_none());
            assert_eq!(
                error.to_string(),
                "recording an event: CUDA_ERROR_INVALID_VALUE"
            );
            assert!(bed.region.pool().stats().allocated_bytes() > 0);
            if round % 2 == 0 {
                // What is recorded later on the same stream says that it is over; on the other it does not.
                let storing = bed.pinned.store([], &bed.stream).unwrap();
                drop(storing.finish(PATIENCE).unwrap());
                simulated::settle();
                bed.cuda.poll().unwrap();
                assert!(bed.region.pool().stats().allocated_bytes() > 0);
                let slot = laid.put(&bed.region);
                let len = slot.len();
                simulated::stall(Streams::All);
                let (_, loading) = bed.load(slot, &laid.manifest()).unwrap();
                bed.cuda.poll().unwrap();
                assert_eq!(bed.region.pool().stats().allocated_bytes(), 2 * len);
                simulated::release(Streams::All);
                drop(loading.finish(PATIENCE).unwrap());
                bed.assert_free();
            }
            drop(bed);
            assert_eq!(simulated::live().registered, 0);
        }
    });
}

#[test]
fn memory_that_the_driver_does_not_pin_is_left_as_it_is() {
    let name = "faults::memory_that_the_driver_does_not_pin_is_left_as_it_is";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let mut bed = Bed::new();
        let other = crate::region(&mut bed.plane, 1 << 20);
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        simulated::fail("cuMemHostRegister_v2", 0, code);
        let error = cuda(bed.cuda.pin(&other).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::OutOfMemory { bytes: 1 << 20 });
        drop(bed.cuda.pin(&other).unwrap());
        // Where it cannot be unpinned, it is not freed either, and that is told.
        let pinned = bed.cuda.pin(&other).unwrap();
        simulated::fail("cuMemHostUnregister", 0, CODE);
        drop(pinned);
        let error = bed.cuda.poll().unwrap_err();
        let code = error.code().unwrap().to_string();
        assert_eq!(code, "CUDA_ERROR_INVALID_VALUE");
        let slot = other.pool().allocate(1 << 20).unwrap();
        assert!(simulated::is_pinned(other.bytes(&slot).unwrap()));
    });
}

#[test]
fn a_copy_that_breaks_the_device_leaks_what_it_used() {
    simulated::test(
        "faults::a_copy_that_breaks_the_device_leaks_what_it_used",
        || {
            if !simulated::needs_script("a_copy_that_breaks_the_device_leaks_what_it_used") {
                return;
            }
            let bed = Bed::new();
            let laid = Laid::planned(variety(1));
            let manifest = laid.manifest();
            let first = laid.put(&bed.region);
            let second = laid.put(&bed.region);
            simulated::break_copy(0, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
            simulated::stall(Streams::All);
            let (tensors, loading) = bed.load(first, &manifest).unwrap();
            simulated::release(Streams::All);
            let (loading, error) = loading.finish(PATIENCE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Backend);
            let fault = bed.cuda.fault().unwrap();
            assert_eq!(loading.is_ready(), Err(fault));
            let (second, error) = bed.load(second, &manifest).unwrap_err();
            assert_eq!(cuda(error), fault);
            assert!(second.is_some());
            let error = bed.pinned.store([], &bed.stream).unwrap_err();
            assert_eq!(cuda(error), fault);
            drop((second, loading, tensors));
            let region = bed.region.downgrade();
            drop(bed);
            // The device may read it yet, for all that is known.
            assert!(region.upgrade().is_some());
            let live = simulated::live();
            assert_eq!((live.registered, live.contexts), (1, 1));
            simulated::leaves(Live { ..live });
        },
    );
}
