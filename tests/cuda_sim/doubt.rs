//! The ring where the driver fails: what is not known to be over is kept, what is known is told, and drops wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cudarc::driver::sys::CUresult;
use tensorwire::cuda::Step;
use tensorwire::device::{DeviceError, ErrorKind};
use tensorwire::transport::Wait;

use super::ring::{TO_DEVICE, address, kind, open, until_in_use, upload};
use super::simulated::{self, Live, Streams};

#[test]
fn the_last_handle_waits_for_what_is_in_flight() {
    let name = "doubt::the_last_handle_waits_for_what_is_in_flight";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let cuda = open(2, 1 << 20);
        let stream = cuda.context().new_stream().unwrap();
        simulated::stall(TO_DEVICE);
        let tensor = upload(&cuda, &[9; 1 << 20], &stream).unwrap();
        simulated::hold("cuEventSynchronize", 0);
        let is_over = Arc::new(AtomicBool::new(false));
        let tells = is_over.clone();
        let drops = thread::spawn(move || {
            drop(cuda);
            tells.store(true, Ordering::SeqCst);
        });
        simulated::await_held(1);
        assert!(!is_over.load(Ordering::SeqCst));
        assert_eq!(simulated::live().pinned, 1);
        simulated::let_go();
        assert_eq!(simulated::live().pinned, 1);
        simulated::release(Streams::All);
        drops.join().unwrap();
        assert_eq!(simulated::live().pinned, 0);
        drop(tensor);
    });
}

#[test]
fn slots_that_the_driver_will_not_tell_of_are_kept() {
    let name = "doubt::slots_that_the_driver_will_not_tell_of_are_kept";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let cuda = open(2, 256);
        let stream = cuda.context().new_stream().unwrap();
        simulated::stall(TO_DEVICE);
        let refusal = CUresult::CUDA_ERROR_NOT_PERMITTED;
        simulated::fail("cuEventRecord", 0, refusal);
        let error = upload(&cuda, &[1; 256], &stream).unwrap_err();
        assert_eq!(
            (error.kind(), error.step()),
            (ErrorKind::Backend, Step::RecordEvent)
        );
        let lost = |in_use, lost| {
            let statistics = cuda.statistics();
            assert_eq!((statistics.in_use, statistics.lost), (in_use, lost));
        };
        lost(1, 1);
        // It is tried again, and fails again.
        simulated::fail("cuEventRecord", 0, refusal);
        assert_eq!(cuda.poll().unwrap_err().step(), Step::RecordEvent);
        lost(1, 1);
        // Who needs no more than there is does not hear of it.
        let rest = cuda.take_pinned(256, Wait::Never).unwrap();
        lost(2, 1);
        // Now it works: the event fires behind the copy, which is held up.
        cuda.poll().unwrap();
        lost(2, 0);
        let full = ErrorKind::RingFull { needed: 1, free: 0 };
        assert_eq!(kind(cuda.take_pinned(1, Wait::Never)), full);
        simulated::release(TO_DEVICE);
        until_in_use(&cuda, 1);
        assert_ne!(
            address(&cuda.take_pinned(1, Wait::Never).unwrap()),
            address(&rest)
        );
    });
}

#[test]
fn a_query_that_fails_is_told_and_asked_again() {
    let name = "doubt::a_query_that_fails_is_told_and_asked_again";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let cuda = open(1, 256);
        let stream = cuda.context().new_stream().unwrap();
        let tensor = upload(&cuda, &[1; 256], &stream).unwrap();
        for wait in [
            Wait::Never,
            Wait::Forever,
            Wait::UpTo(Duration::from_secs(9)),
        ] {
            simulated::fail("cuEventQuery", 0, CUresult::CUDA_ERROR_INVALID_HANDLE);
            let error = cuda.take_pinned(1, wait).unwrap_err();
            assert_eq!(
                (error.kind(), error.step()),
                (ErrorKind::Backend, Step::QueryEvent)
            );
            assert_eq!(cuda.statistics().in_use, 1);
        }
        assert_eq!(cuda.fault(), None);
        drop(cuda.take_pinned(1, Wait::Forever).unwrap());
        drop(tensor);
    });
}

/// (the call that fails in the drop, whether an event could be recorded)
const UNKNOWN: &[(&str, bool)] = &[("cuEventSynchronize", true), ("cuStreamSynchronize", false)];

#[test]
fn memory_is_leaked_where_the_driver_does_not_say_that_copies_are_over() {
    let name = "doubt::memory_is_leaked_where_the_driver_does_not_say_that_copies_are_over";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let mut left = Live::default();
        for &(call, is_recorded) in UNKNOWN {
            let cuda = open(2, 256);
            let stream = cuda.context().new_stream().unwrap();
            let code = CUresult::CUDA_ERROR_NOT_PERMITTED;
            if !is_recorded {
                simulated::fail("cuEventRecord", 0, code);
            }
            let tensor = upload(&cuda, &[1; 256], &stream);
            assert_eq!(tensor.is_ok(), is_recorded);
            let before = simulated::failed();
            simulated::fail(call, 0, code);
            drop((cuda, tensor, stream));
            assert_eq!(simulated::failed(), before + 1, "{call} was called");
            left.pinned += 1;
            left.contexts += 1;
            assert_eq!(simulated::live(), left, "{call}");
        }
        simulated::leaves(left);
    });
}

#[test]
fn a_parked_error_does_not_keep_the_last_handle_from_waiting() {
    let name = "doubt::a_parked_error_does_not_keep_the_last_handle_from_waiting";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        for is_recorded in [true, false] {
            let cuda = open(2, 256);
            let context = cuda.context().clone();
            let stream = context.new_stream().unwrap();
            let code = CUresult::CUDA_ERROR_NOT_PERMITTED;
            if !is_recorded {
                simulated::fail("cuEventRecord", 0, code);
            }
            let tensor = upload(&cuda, &[1; 256], &stream);
            // As cudarc does where something fails in a drop of its own.
            let parked = cudarc::driver::DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE);
            context.record_err::<()>(Err(parked));
            // On a thread where the context is not current either.
            thread::spawn(move || drop((cuda, tensor, stream)))
                .join()
                .unwrap();
            assert_eq!(simulated::live().pinned, 0, "freed, as all is over");
            assert_eq!(context.check_err(), Err(parked), "and it is still told");
        }
    });
}

#[test]
fn after_a_fault_everything_says_so_and_nothing_panics() {
    let name = "doubt::after_a_fault_everything_says_so_and_nothing_panics";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let cuda = open(3, 256);
        let stream = cuda.context().new_stream().unwrap();
        let held = cuda.take_pinned(1, Wait::Never).unwrap();
        let fault = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
        simulated::break_copy(0, fault);
        let tensor = upload(&cuda, &[1; 256], &stream);
        // Who waits for the slot is told, and does not wait for ever.
        let error = cuda.take_pinned(512, Wait::Forever).unwrap_err();
        assert_eq!(
            error.code().map(|code| code.to_string()),
            Some(format!("{fault:?}"))
        );
        let named = cuda.fault().unwrap();
        assert_eq!(named.kind(), ErrorKind::Unusable);
        // Also where there is a free one.
        assert_eq!(cuda.take_pinned(1, Wait::Never).unwrap_err(), named);
        assert_eq!(cuda.poll().unwrap_err(), named);
        drop((held, tensor, stream, cuda));
        // The slot of the copy that broke is nobody's any more.
        let live = simulated::live();
        assert_eq!(live.pinned, 1);
        simulated::leaves(live);
    });
}
