//! What the simulated driver notices, by programs that do wrong; and that it lets right ones be.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdeviceptr, CUresult, CUstream};
use cudarc::driver::{CudaContext, CudaStream};

use super::simulated::{self, Streams};

const LEN: usize = 100_000;

/// A context, and two streams.
struct Bare {
    context: Arc<CudaContext>,
    a: Arc<CudaStream>,
    b: Arc<CudaStream>,
}

impl Bare {
    fn new() -> Self {
        let context = CudaContext::new(0).unwrap();
        let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        Self { context, a, b }
    }

    /// Pinned memory of `LEN` bytes.
    fn pinned(&self) -> *mut u8 {
        // SAFETY: the context is current on this thread: `new` made it so.
        unsafe { result::malloc_host(LEN, 0) }.unwrap().cast()
    }

    /// Device memory of `LEN` bytes.
    fn device(&self, stream: &CudaStream) -> CUdeviceptr {
        // SAFETY: the stream exists.
        unsafe { result::malloc_async(stream.cu_stream(), LEN) }.unwrap()
    }
}

fn upload(
    to: CUdeviceptr,
    from: *const u8,
    len: usize,
    stream: &CudaStream,
) -> Result<(), DriverError> {
    // SAFETY: none: that the driver notices is what is tested. It touches nothing that is not there.
    unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.cast(), len, stream.cu_stream()) }.result()
}

fn download(
    to: *mut u8,
    from: CUdeviceptr,
    len: usize,
    stream: &CudaStream,
) -> Result<(), DriverError> {
    // SAFETY: as for `upload`.
    unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, len, stream.cu_stream()) }.result()
}

fn free(memory: CUdeviceptr, stream: &CudaStream) -> Result<(), DriverError> {
    // SAFETY: as for `upload`.
    unsafe { sys::cuMemFreeAsync(memory, stream.cu_stream()) }.result()
}

fn free_pinned(memory: *mut u8) -> Result<(), DriverError> {
    // SAFETY: as for `upload`.
    unsafe { sys::cuMemFreeHost(memory.cast()) }.result()
}

fn invalid<T: std::fmt::Debug>(outcome: Result<T, DriverError>) {
    let DriverError(code) = outcome.unwrap_err();
    let named = matches!(
        code,
        CUresult::CUDA_ERROR_INVALID_VALUE
            | CUresult::CUDA_ERROR_INVALID_HANDLE
            | CUresult::CUDA_ERROR_INVALID_CONTEXT
    );
    assert!(named, "{code:?}");
}

/// (what is done, what is said of it, the doing)
///
/// Each leaves nothing alive.
const WRONGS: &[(&str, &[&str], fn(&Bare))] = &[
    (
        "a copy from pageable memory",
        &["cuMemcpyHtoDAsync_v2: memory that is not pinned"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), vec![0; LEN]);
            invalid(upload(there, here.as_ptr(), LEN, &bare.a));
            free(there, &bare.a).unwrap();
        },
    ),
    (
        "a copy to pageable memory",
        &["cuMemcpyDtoHAsync_v2: memory that is not pinned"],
        |bare| {
            let (there, mut here) = (bare.device(&bare.a), vec![0; LEN]);
            invalid(download(here.as_mut_ptr(), there, LEN, &bare.a));
            free(there, &bare.a).unwrap();
        },
    ),
    (
        "a copy from pinned memory that is freed",
        &["cuMemcpyHtoDAsync_v2: memory that was pinned, and was freed"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            free_pinned(here).unwrap();
            invalid(upload(there, here, LEN, &bare.a));
            free(there, &bare.a).unwrap();
        },
    ),
    (
        "a copy beyond the end of pinned memory",
        &["cuMemcpyHtoDAsync_v2: 100000 bytes of pinned memory where 99999 are left"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            invalid(upload(there, here.wrapping_add(1), LEN, &bare.a));
            free(there, &bare.a).unwrap();
            free_pinned(here).unwrap();
        },
    ),
    (
        "a copy beyond the end of device memory",
        &["cuMemcpyHtoDAsync_v2: 100000 bytes at 1 of device memory that has 100000"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            invalid(upload(there + 1, here, LEN, &bare.a));
            free(there, &bare.a).unwrap();
            free_pinned(here).unwrap();
        },
    ),
    (
        "a copy to what is no device memory",
        &["cuMemcpyHtoDAsync_v2: 0x40 is no device memory"],
        |bare| {
            let here = bare.pinned();
            invalid(upload(0x40, here, LEN, &bare.a));
            free_pinned(here).unwrap();
        },
    ),
    (
        "a copy to device memory that is freed",
        &["cuMemcpyHtoDAsync_v2: the device memory is freed"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            free(there, &bare.a).unwrap();
            invalid(upload(there, here, LEN, &bare.a));
            free_pinned(here).unwrap();
        },
    ),
    (
        "a source that changes before the copy has run",
        &["cuMemcpyHtoDAsync_v2 of 100000 bytes: its source changed between the call and the copy"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            simulated::stall(Streams::One(&bare.a));
            upload(there, here, LEN, &bare.a).unwrap();
            // SAFETY: it is pinned memory of this test's; the driver's threads are stalled.
            unsafe { here.add(LEN - 1).write(1) };
            simulated::release(Streams::One(&bare.a));
            free(there, &bare.a).unwrap();
            bare.a.synchronize().unwrap();
            free_pinned(here).unwrap();
        },
    ),
    (
        "a target that is written to before the copy has run",
        &[
            "cuMemcpyDtoHAsync_v2 of 100000 bytes: its target was written to between the call and the copy",
        ],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            simulated::stall(Streams::One(&bare.a));
            download(here, there, LEN, &bare.a).unwrap();
            // SAFETY: it is pinned memory of this test's; the driver's threads are stalled.
            unsafe { here.write(1) };
            simulated::release(Streams::One(&bare.a));
            free(there, &bare.a).unwrap();
            bare.a.synchronize().unwrap();
            free_pinned(here).unwrap();
        },
    ),
    (
        "device memory used on another stream, with nothing between",
        &["device memory: cuMemcpyHtoDAsync_v2 is not ordered after its allocation"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            upload(there, here, LEN, &bare.b).unwrap();
            bare.b.synchronize().unwrap();
            free(there, &bare.a).unwrap();
            free_pinned(here).unwrap();
        },
    ),
    (
        "device memory read while another stream writes it",
        &["device memory: cuMemcpyDtoHAsync_v2 is not ordered after cuMemcpyHtoDAsync_v2"],
        |bare| {
            let (there, here, back) = (bare.device(&bare.a), bare.pinned(), bare.pinned());
            bare.b.join(&bare.a).unwrap();
            upload(there, here, LEN, &bare.a).unwrap();
            download(back, there, LEN, &bare.b).unwrap();
            bare.a.synchronize().unwrap();
            bare.b.synchronize().unwrap();
            free(there, &bare.a).unwrap();
            free_pinned(here).unwrap();
            free_pinned(back).unwrap();
        },
    ),
    (
        "device memory freed while another stream reads it",
        &["device memory: its free is not ordered after cuMemcpyDtoHAsync_v2"],
        |bare| {
            let (there, back) = (bare.device(&bare.a), bare.pinned());
            bare.b.join(&bare.a).unwrap();
            download(back, there, LEN, &bare.b).unwrap();
            free(there, &bare.a).unwrap();
            bare.b.synchronize().unwrap();
            free_pinned(back).unwrap();
        },
    ),
    (
        "device memory freed at once, which a stream may still use",
        &["cuMemFree of device memory while nobody knows that cuMemcpyHtoDAsync_v2 is over"],
        |bare| {
            // SAFETY: what it holds does not matter.
            let there = unsafe { result::malloc_sync(LEN) }.unwrap();
            let here = bare.pinned();
            upload(there, here, LEN, &bare.a).unwrap();
            // SAFETY: none, as for `upload`.
            unsafe { result::free_sync(there) }.unwrap();
            bare.a.synchronize().unwrap();
            free_pinned(here).unwrap();
        },
    ),
    (
        "device memory freed twice",
        &[
            "cuMemFreeAsync of device memory that is freed already",
            "cuMemFree of device memory that is freed already",
        ],
        |bare| {
            let there = bare.device(&bare.a);
            free(there, &bare.a).unwrap();
            invalid(free(there, &bare.a));
            // SAFETY: none, as for `upload`.
            invalid(unsafe { result::free_sync(there) });
        },
    ),
    (
        "a free of what is no device memory",
        &["cuMemFreeAsync of what is no device memory"],
        |bare| {
            let there = bare.device(&bare.a);
            invalid(free(there + 1, &bare.a));
            free(there, &bare.a).unwrap();
        },
    ),
    (
        "pinned memory freed with a copy in flight",
        &["cuMemFreeHost of pinned memory while nobody knows that cuMemcpyHtoDAsync_v2 is over"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            simulated::stall(Streams::One(&bare.a));
            upload(there, here, LEN, &bare.a).unwrap();
            free_pinned(here).unwrap();
            simulated::release(Streams::One(&bare.a));
            free(there, &bare.a).unwrap();
        },
    ),
    (
        "pinned memory freed after its copy has run, which nobody asked",
        &["cuMemFreeHost of pinned memory while nobody knows that cuMemcpyHtoDAsync_v2 is over"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            upload(there, here, LEN, &bare.a).unwrap();
            simulated::settle();
            free_pinned(here).unwrap();
            free(there, &bare.a).unwrap();
        },
    ),
    (
        "registered memory let go with a copy in flight",
        &[
            "cuMemHostUnregister of pinned memory while nobody knows that cuMemcpyHtoDAsync_v2 is over",
        ],
        |bare| {
            let (there, mut here) = (bare.device(&bare.a), vec![0_u8; LEN]);
            register(&mut here).unwrap();
            simulated::stall(Streams::One(&bare.a));
            upload(there, here.as_ptr(), LEN, &bare.a).unwrap();
            unregister(here.as_mut_ptr()).unwrap();
            drop(here);
            simulated::release(Streams::One(&bare.a));
            free(there, &bare.a).unwrap();
        },
    ),
    (
        "a copy into pinned memory that another stream copies from",
        &["pinned memory: cuMemcpyDtoHAsync_v2 is not ordered after cuMemcpyHtoDAsync_v2"],
        |bare| {
            let (one, other) = (bare.device(&bare.a), bare.device(&bare.b));
            let here = bare.pinned();
            // One after the other, and yet by luck alone.
            upload(one, here, LEN, &bare.a).unwrap();
            simulated::settle();
            download(here.wrapping_add(LEN / 2), other, LEN / 2, &bare.b).unwrap();
            bare.a.synchronize().unwrap();
            bare.b.synchronize().unwrap();
            free(one, &bare.a).unwrap();
            free(other, &bare.b).unwrap();
            free_pinned(here).unwrap();
        },
    ),
    (
        "a stream that is used after it was destroyed",
        &[
            "cuStreamSynchronize on a stream that is destroyed or never was",
            "cuStreamDestroy on a stream that is destroyed or never was",
        ],
        |_| {
            let stream = result::stream::create(result::stream::StreamKind::NonBlocking).unwrap();
            // SAFETY: destroyed once; then as for `upload`.
            unsafe { result::stream::destroy(stream) }.unwrap();
            // SAFETY: none, as for `upload`.
            invalid(unsafe { result::stream::synchronize(stream) });
            // SAFETY: none, as for `upload`.
            invalid(unsafe { result::stream::destroy(stream) });
        },
    ),
    (
        "an event that is used after it was destroyed",
        &[
            "cuEventRecord of an event that is destroyed or never was",
            "cuStreamWaitEvent of an event that is destroyed or never was",
            "cuEventQuery of an event that is destroyed or never was",
            "cuEventDestroy of an event that is destroyed or never was",
        ],
        |bare| {
            let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
            let event = result::event::create(flags).unwrap();
            let stream = bare.a.cu_stream();
            // SAFETY: destroyed once.
            unsafe { result::event::destroy(event) }.unwrap();
            // SAFETY: none, as for `upload`.
            invalid(unsafe { result::event::record(event, stream) });
            let wait = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
            // SAFETY: none, as for `upload`.
            invalid(unsafe { result::stream::wait_event(stream, event, wait) });
            // SAFETY: none, as for `upload`.
            invalid(unsafe { result::event::query(event) });
            // SAFETY: none, as for `upload`.
            invalid(unsafe { result::event::destroy(event) });
        },
    ),
    (
        "a call on a thread that has no context",
        &["cuMemAllocAsync without a context on this thread"],
        |bare| {
            let stream = bare.a.cu_stream() as usize;
            let thread = std::thread::spawn(move || {
                // SAFETY: none, as for `upload`.
                invalid(unsafe { result::malloc_async(stream as CUstream, LEN) });
            });
            thread.join().unwrap();
        },
    ),
    (
        "pinned memory that is freed in another way",
        &[
            "cuMemHostUnregister of memory that was pinned in another way",
            "cuMemFreeHost of memory that was pinned in another way",
        ],
        |bare| {
            let (mut registered, pinned) = (vec![0_u8; LEN], bare.pinned());
            register(&mut registered).unwrap();
            invalid(unregister(pinned));
            invalid(free_pinned(registered.as_mut_ptr()));
            unregister(registered.as_mut_ptr()).unwrap();
            free_pinned(pinned).unwrap();
        },
    ),
];

fn register(bytes: &mut [u8]) -> Result<(), DriverError> {
    let start: *mut c_void = bytes.as_mut_ptr().cast();
    // SAFETY: the bytes are there; when they go is what is tested.
    unsafe { sys::cuMemHostRegister_v2(start, bytes.len(), 0) }.result()
}

fn unregister(start: *mut u8) -> Result<(), DriverError> {
    // SAFETY: as for `upload`.
    unsafe { sys::cuMemHostUnregister(start.cast()) }.result()
}

#[test]
fn whatever_is_wrong_is_said() {
    simulated::test("honesty::whatever_is_wrong_is_said", || {
        if !simulated::needs_script("what the simulated driver notices") {
            return;
        }
        let bare = Bare::new();
        let before = simulated::live();
        for (name, said, wrong) in WRONGS {
            wrong(&bare);
            simulated::settle();
            let found = simulated::take_violations();
            // What else may follow from it does not matter here.
            assert!(!found.is_empty(), "{name}: nothing is said");
            for text in *said {
                assert!(
                    found.iter().any(|found| found == text),
                    "{name}: {text}, in {found:#?}"
                );
            }
            assert!(
                found.len() == said.len(),
                "{name}: more than that: {found:#?}"
            );
            assert_eq!(simulated::live(), before, "{name}");
            bare.context.check_err().unwrap();
        }
    });
}

/// (what puts two streams in order, how)
const ORDERS: &[(&str, fn(&Bare))] = &[
    ("an event", |bare| bare.b.join(&bare.a).unwrap()),
    ("two events, by way of the default stream", |bare| {
        let between = bare.context.default_stream();
        between.join(&bare.a).unwrap();
        bare.b.join(&between).unwrap();
    }),
    ("a wait of the host for the stream", |bare| {
        bare.a.synchronize().unwrap();
    }),
    ("a wait of the host for an event", |bare| {
        bare.a.record_event(None).unwrap().synchronize().unwrap();
    }),
    ("a wait of the host for all", |bare| {
        bare.context.synchronize().unwrap();
    }),
    ("an event that the host asked", |bare| {
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
        for (number, (name, order)) in ORDERS.iter().enumerate() {
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
