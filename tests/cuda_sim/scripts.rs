//! What a test can make go wrong in the simulated driver, and that what it leaves behind is told.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, CudaEvent};

use crate::simulated::{self, Live};

/// Which of so many new events the driver refused.
fn refused(events: usize) -> Vec<usize> {
    let context = CudaContext::new(0).unwrap();
    let made: Vec<Result<CudaEvent, DriverError>> =
        (0..events).map(|_| context.new_event(None)).collect();
    let failed = made.iter().enumerate().filter(|(_, event)| event.is_err());
    failed.map(|(number, _)| number).collect()
}

#[test]
fn any_call_can_be_made_to_fail() {
    const NAME: &str = "scripts::any_call_can_be_made_to_fail";
    simulated::test(NAME, || {
        if !simulated::needs_script(NAME) {
            return;
        }
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        simulated::fail("cuEventCreate", 3, code);
        simulated::fail("cuEventCreate", 5, code);
        // Each counts the calls that it does not fail; so the second one's sixth is the seventh in all.
        assert_eq!(refused(9), [3, 5]);
        assert_eq!(simulated::failed(), 2);
        assert_eq!(simulated::calls("cuEventCreate"), 9);

        // Whatever is called, it fails once.
        let before = simulated::calls("*");
        refused(0);
        let calls = simulated::calls("*") - before;
        assert!(calls >= 5, "{calls}");
        for call in 0..calls {
            let failed = simulated::failed();
            simulated::fail("*", call, code);
            let outcome = CudaContext::new(0);
            drop(outcome);
            assert_eq!(simulated::failed(), failed + 1, "call {call}");
        }
        assert_eq!(simulated::live(), Live::default());
    });
}

#[test]
fn calls_fail_by_chance_and_by_the_same_for_the_same_seed() {
    const NAME: &str = "scripts::calls_fail_by_chance_and_by_the_same_for_the_same_seed";
    simulated::test(NAME, || {
        if !simulated::needs_script(NAME) {
            return;
        }
        let run = |seed| {
            let context = CudaContext::new(0).unwrap();
            simulated::seed(seed);
            simulated::fail_by_chance(200_000, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let made = (0..100).map(|_| context.new_event(None).is_ok());
            let made: Vec<bool> = made.collect();
            simulated::fail_no_more();
            made
        };
        let first = run(7);
        assert!(first.contains(&true) && first.contains(&false));
        assert_eq!(first, run(7));
        assert_ne!(first, run(8));
    });
}

#[test]
fn a_copy_that_breaks_its_context_breaks_it_for_good() {
    const NAME: &str = "scripts::a_copy_that_breaks_its_context_breaks_it_for_good";
    simulated::test(NAME, || {
        if !simulated::needs_script(NAME) {
            return;
        }
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
        simulated::pageable(|| {
            let there = stream.clone_htod(&[1_u8; 1000]).unwrap();
            simulated::break_copy(0, code);
            let event = stream.record_event(None).unwrap();
            assert_eq!(stream.clone_dtoh(&there).unwrap_err().0, code);
            assert_eq!(event.try_is_complete().unwrap_err().0, code);
            assert_eq!(stream.synchronize().unwrap_err().0, code);
            assert_eq!(context.new_event(None).unwrap_err().0, code);
            drop(there);
            assert_eq!(context.check_err().unwrap_err().0, code);
            simulated::fail_no_more();
            assert_eq!(stream.synchronize().unwrap_err().0, code);
        });
    });
}

#[test]
fn a_call_can_be_held() {
    const NAME: &str = "scripts::a_call_can_be_held";
    simulated::test(NAME, || {
        if !simulated::needs_script(NAME) {
            return;
        }
        let context = CudaContext::new(0).unwrap();
        simulated::hold("cuEventCreate", 1);
        let other = context.clone();
        let thread = std::thread::spawn(move || {
            let _events = [
                other.new_event(None).unwrap(),
                other.new_event(None).unwrap(),
            ];
        });
        simulated::await_held(1);
        assert!(!thread.is_finished());
        assert_eq!(simulated::live().events, 1);
        simulated::let_go();
        thread.join().unwrap();
    });
}

#[test]
fn without_copies_everything_is_over_at_once() {
    const NAME: &str = "scripts::without_copies_everything_is_over_at_once";
    simulated::test_with(NAME, &[("SIMCUDA_MODE", "noop")], || {
        if !simulated::needs_script(NAME) {
            return;
        }
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let there = stream.clone_htod(&[1_u8; 1000]).unwrap();
        let event = stream.record_event(None).unwrap();
        assert!(event.try_is_complete().unwrap());
        assert_eq!(stream.clone_dtoh(&there).unwrap().len(), 1000);
        assert_eq!((simulated::pending(), simulated::copies()), (0, 0));
    });
}

#[test]
fn memory_is_bounded() {
    const NAME: &str = "scripts::memory_is_bounded";
    simulated::test_with(NAME, &[("SIMCUDA_MEMORY", "1000000")], || {
        if !simulated::needs_script(NAME) {
            return;
        }
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let half = stream.alloc_zeros::<u8>(600_000).unwrap();
        let more = stream.alloc_zeros::<u8>(600_000).unwrap_err();
        assert_eq!(more.0, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert_eq!(simulated::device_bytes(), 600_000);
        drop(half);
        stream.synchronize().unwrap();
        drop(stream.alloc_zeros::<u8>(600_000).unwrap());
    });
}

/// (a test below, what it fails with)
const FAILING: &[(&str, &str)] = &[
    ("scripts::failing::leaves_a_context", "contexts: 1"),
    ("scripts::failing::leaves_an_event", "events: 1"),
    ("scripts::failing::leaves_device_memory", "device: 1"),
    ("scripts::failing::leaves_pinned_memory", "pinned: 1"),
    ("scripts::failing::leaves_a_stream", "streams: 1"),
    (
        "scripts::failing::uses_no_context",
        "cuEventCreate without a context on this thread",
    ),
    ("scripts::failing::panics", "the body says no"),
    ("scripts::failing::is_not_there", "0 passed"),
];

#[test]
fn what_is_left_alive_or_said_or_panics_fails_the_test() {
    if simulated::on_device() {
        println!("SKIP: what fails a test needs the simulated driver");
        return;
    }
    for (name, text) in FAILING {
        let (passed, output) = simulated::run(name, &[]);
        assert!(!passed, "{name} passes:\n{output}");
        assert!(output.contains(text), "{name}: {text}, in:\n{output}");
    }
}

/// Tests that fail, as they are to.
mod failing {
    use super::*;

    fn test(name: &str, body: impl FnOnce()) {
        simulated::test(name, body);
    }

    #[test]
    #[ignore = "fails"]
    fn leaves_a_context() {
        test("", || std::mem::forget(CudaContext::new(0).unwrap()));
    }

    #[test]
    #[ignore = "fails"]
    fn leaves_an_event() {
        test("", || {
            let context = CudaContext::new(0).unwrap();
            std::mem::forget(context.new_event(None).unwrap());
        });
    }

    #[test]
    #[ignore = "fails"]
    fn leaves_device_memory() {
        test("", || {
            let stream = CudaContext::new(0).unwrap().default_stream();
            std::mem::forget(stream.alloc_zeros::<u8>(1000).unwrap());
        });
    }

    #[test]
    #[ignore = "fails"]
    fn leaves_pinned_memory() {
        test("", || {
            let _context = CudaContext::new(0).unwrap();
            // SAFETY: nobody reads it.
            unsafe { result::malloc_host(1000, 0) }.unwrap();
        });
    }

    #[test]
    #[ignore = "fails"]
    fn leaves_a_stream() {
        test("", || {
            let context = CudaContext::new(0).unwrap();
            std::mem::forget(context.new_stream().unwrap());
        });
    }

    #[test]
    #[ignore = "fails"]
    fn uses_no_context() {
        test("", || {
            let context = CudaContext::new(0).unwrap();
            // SAFETY: without a context most calls are turned away, which is what is tested.
            unsafe { result::ctx::set_current(std::ptr::null_mut()) }.unwrap();
            let flags = cudarc::driver::sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
            result::event::create(flags).unwrap_err();
            drop(context);
        });
    }

    #[test]
    #[ignore = "fails"]
    fn panics() {
        test("", || panic!("the body says no"));
    }
}
