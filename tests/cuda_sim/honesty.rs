//! That the simulated driver does what a driver does, and lets right programs be.

use cudarc::driver::CudaContext;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::CUresult;

use crate::bare::{Bare, LEN, download, free, free_pinned, register, unregister, upload};
use crate::simulated::{self, Streams};

/// What puts the second stream after the first, and how.
struct Order(&'static str, fn(&Bare));

const ORDERS: &[Order] = &[
    Order("an event", |bare| bare.b.join(&bare.a).unwrap()),
    Order("two events, by way of the default stream", |bare| {
        let between = bare.context.default_stream();
        between.join(&bare.a).unwrap();
        bare.b.join(&between).unwrap();
    }),
    Order("a wait of the host for the stream", |bare| {
        bare.a.synchronize().unwrap();
    }),
    Order("a wait of the host for an event", |bare| {
        bare.a.record_event(None).unwrap().synchronize().unwrap();
    }),
    Order("a wait of the host for all", |bare| {
        bare.context.synchronize().unwrap();
    }),
    Order("an event that the host asked", |bare| {
        let event = bare.a.record_event(None).unwrap();
        while !event.is_complete() {
            std::thread::yield_now();
        }
    }),
];

#[test]
fn whatever_is_ordered_is_right() {
    simulated::test("honesty::whatever_is_ordered_is_right", || {
        let bare = Bare::new();
        let (here, back) = (bare.pinned(), bare.pinned());
        for (number, Order(name, order)) in ORDERS.iter().enumerate() {
            // SAFETY: pinned memory of this test's, which no copy uses: the last one was waited for.
            unsafe { here.write_bytes(number as u8, LEN) };
            let there = bare.device(&bare.a);
            upload(there, here, LEN, &bare.a).unwrap();
            order(&bare);
            download(back, there, LEN, &bare.b).unwrap();
            free(there, &bare.b).unwrap();
            bare.b.synchronize().unwrap();
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(back, LEN) };
            assert!(
                bytes.iter().all(|byte| usize::from(*byte) == number),
                "{name}"
            );
            if simulated::scripted() {
                assert_eq!(simulated::violations(), [""; 0], "{name}");
            }
        }
        free_pinned(here).unwrap();
        free_pinned(back).unwrap();
    });
}

#[test]
fn a_clean_program_is_not_reported() {
    simulated::test("honesty::a_clean_program_is_not_reported", || {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let numbers: Vec<u32> = (0..100_000).collect();
        simulated::pageable(|| {
            let there = stream.clone_htod(&numbers).unwrap();
            let other = context.new_stream().unwrap();
            let copy = other.clone_dtod(&there).unwrap();
            assert_eq!(stream.clone_dtoh(&copy).unwrap(), numbers);
        });
    });
}

/// What the documentation says of odd arguments; a real driver agrees, or this test is wrong.
#[test]
fn odd_arguments_get_the_drivers_answers() {
    simulated::test("honesty::odd_arguments_get_the_drivers_answers", || {
        let bare = Bare::new();
        let code = |outcome: Result<(), DriverError>| outcome.unwrap_err().0;
        // SAFETY: the driver checks the length.
        let none = unsafe { result::malloc_sync(0) }.map(drop);
        assert_eq!(code(none), CUresult::CUDA_ERROR_INVALID_VALUE);
        // SAFETY: freeing nothing is fine, as with C's `free`.
        unsafe { result::free_sync(0) }.unwrap();
        let there = bare.device(&bare.a);
        upload(there, [0; 1].as_ptr(), 0, &bare.a).unwrap();
        free(there, &bare.a).unwrap();

        let event = bare.context.new_event(None).unwrap();
        assert!(event.try_is_complete().unwrap(), "never recorded");
        event.synchronize().unwrap();
        bare.a.wait(&event).unwrap();

        let mut bytes = vec![0_u8; 16 << 12];
        register(&mut bytes).unwrap();
        let again = CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        assert_eq!(code(register(&mut bytes[4096..8192])), again);
        unregister(bytes.as_mut_ptr()).unwrap();
        let not = CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        assert_eq!(code(unregister(bytes.as_mut_ptr())), not);
        if simulated::scripted() {
            let said = "cuMemHostUnregister of memory that is not pinned, or not from there on";
            assert_eq!(simulated::take_violations(), [said]);
        }
    });
}

#[test]
fn copies_are_late_and_memory_is_poisoned_until_then() {
    const NAME: &str = "honesty::copies_are_late_and_memory_is_poisoned_until_then";
    simulated::test(NAME, || {
        if !simulated::needs_script(NAME) {
            return;
        }
        let bare = Bare::new();
        let (there, here) = (bare.device(&bare.a), bare.pinned());
        // SAFETY: pinned memory of this test's, until it is freed.
        let byte = || unsafe { here.add(LEN - 1).read_volatile() };
        assert_eq!(byte(), 0xcd, "fresh");
        simulated::stall(Streams::All);
        download(here, there, LEN, &bare.a).unwrap();
        let event = bare.a.record_event(None).unwrap();
        assert_eq!((byte(), simulated::pending()), (0xa5, 2), "asked for");
        assert!(!event.try_is_complete().unwrap());
        simulated::step(Streams::One(&bare.a), 1);
        while byte() == 0xa5 {
            std::thread::yield_now();
        }
        assert!(!event.try_is_complete().unwrap(), "not recorded yet");
        simulated::step(Streams::One(&bare.a), 1);
        event.synchronize().unwrap();
        assert_eq!((byte(), simulated::copies()), (0xcd, 1), "run");
        simulated::release(Streams::All);
        free(there, &bare.a).unwrap();
        free_pinned(here).unwrap();
    });
}

#[test]
fn streams_run_in_any_order_but_where_they_wait() {
    const NAME: &str = "honesty::streams_run_in_any_order_but_where_they_wait";
    simulated::test(NAME, || {
        if !simulated::needs_script(NAME) {
            return;
        }
        let bare = Bare::new();
        simulated::stall(Streams::Made(0));
        let first = bare.a.record_event(None).unwrap();
        let second = bare.b.record_event(None).unwrap();
        second.synchronize().unwrap();
        assert!(
            !first.try_is_complete().unwrap(),
            "the first stream is stalled"
        );
        bare.b.wait(&first).unwrap();
        // Recorded anew: who waits for it from now on waits for this, and who did does not.
        first.record(&bare.b).unwrap();
        let third = bare.b.record_event(None).unwrap();
        assert!(
            !third.try_is_complete().unwrap(),
            "it waits for the first stream"
        );
        simulated::release(Streams::Made(0));
        third.synchronize().unwrap();
        assert!(first.try_is_complete().unwrap());
    });
}

#[test]
fn blocking_streams_and_the_default_stream_wait_for_each_other() {
    const NAME: &str = "honesty::blocking_streams_and_the_default_stream_wait_for_each_other";
    simulated::test(NAME, || {
        if !simulated::needs_script(NAME) {
            return;
        }
        let bare = Bare::new();
        let kind = result::stream::StreamKind::Default;
        let blocking = result::stream::create(kind).unwrap();
        let default = bare.context.default_stream();
        // SAFETY: the stream lives as long as this does.
        let wrapped = unsafe { bare.context.wrap_borrowed_stream(blocking) };
        simulated::stall(Streams::One(&wrapped));
        wrapped.record_event(None).unwrap();
        let event = default.record_event(None).unwrap();
        let other = bare.a.record_event(None).unwrap();
        other.synchronize().unwrap();
        assert!(!event.try_is_complete().unwrap());
        simulated::release(Streams::One(&wrapped));
        event.synchronize().unwrap();
        drop(wrapped);
        // SAFETY: it was made here, and goes once.
        unsafe { result::stream::destroy(blocking) }.unwrap();
    });
}
