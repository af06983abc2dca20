//! What the simulated driver notices, by programs that do wrong.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUresult, CUstream};

use crate::bare::{Bare, LEN, download, free, free_pinned, register, unregister, upload};
use crate::simulated::{self, Streams};

/// Something that is wrong to do.
struct Wrong {
    name: &'static str,
    /// What is said of it, and nothing else.
    said: &'static [&'static str],
    /// Does it, and leaves nothing alive.
    commit: fn(&Bare),
}

const fn wrong(name: &'static str, said: &'static [&'static str], commit: fn(&Bare)) -> Wrong {
    Wrong { name, said, commit }
}

const WRONGS: &[Wrong] = &[
    wrong(
        "a copy from pageable memory",
        &["cuMemcpyHtoDAsync_v2: memory that is not pinned"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), vec![0; LEN]);
            invalid(upload(there, here.as_ptr(), LEN, &bare.a));
            free(there, &bare.a).unwrap();
        },
    ),
    wrong(
        "a copy to pageable memory",
        &["cuMemcpyDtoHAsync_v2: memory that is not pinned"],
        |bare| {
            let (there, mut here) = (bare.device(&bare.a), vec![0; LEN]);
            invalid(download(here.as_mut_ptr(), there, LEN, &bare.a));
            free(there, &bare.a).unwrap();
        },
    ),
    wrong(
        "a copy from pinned memory that is freed",
        &["cuMemcpyHtoDAsync_v2: memory that was pinned, and was freed"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            free_pinned(here).unwrap();
            invalid(upload(there, here, LEN, &bare.a));
            free(there, &bare.a).unwrap();
        },
    ),
    wrong(
        "a copy beyond the end of pinned memory",
        &["cuMemcpyHtoDAsync_v2: 100000 bytes of pinned memory where 99999 are left"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            invalid(upload(there, here.wrapping_add(1), LEN, &bare.a));
            free(there, &bare.a).unwrap();
            free_pinned(here).unwrap();
        },
    ),
    wrong(
        "a copy beyond the end of device memory",
        &["cuMemcpyHtoDAsync_v2: 100000 bytes at 1 of device memory that has 100000"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            invalid(upload(there + 1, here, LEN, &bare.a));
            free(there, &bare.a).unwrap();
            free_pinned(here).unwrap();
        },
    ),
    wrong(
        "a copy to what is no device memory",
        &["cuMemcpyHtoDAsync_v2: 0x40 is no device memory"],
        |bare| {
            let here = bare.pinned();
            invalid(upload(0x40, here, LEN, &bare.a));
            free_pinned(here).unwrap();
        },
    ),
    wrong(
        "a copy to device memory that is freed",
        &["cuMemcpyHtoDAsync_v2: the device memory is freed"],
        |bare| {
            let (there, here) = (bare.device(&bare.a), bare.pinned());
            free(there, &bare.a).unwrap();
            invalid(upload(there, here, LEN, &bare.a));
            free_pinned(here).unwrap();
        },
    ),
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
        "a free of what is no device memory",
        &["cuMemFreeAsync of what is no device memory"],
        |bare| {
            let there = bare.device(&bare.a);
            invalid(free(there + 1, &bare.a));
            free(there, &bare.a).unwrap();
        },
    ),
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
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

#[test]
fn whatever_is_wrong_is_said() {
    simulated::test("wrongs::whatever_is_wrong_is_said", || {
        if !simulated::needs_script("what the simulated driver notices") {
            return;
        }
        let bare = Bare::new();
        let before = simulated::live();
        for Wrong { name, said, commit } in WRONGS {
            commit(&bare);
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
