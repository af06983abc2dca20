//! Pinned memory of the user's: where it comes from, how long it stays, and how it comes back.

use std::sync::Arc;
use std::thread;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUresult;
use tensorwire::cuda::{Cuda, CudaError, Options, Pinned, PinnedBytes, Step, Tensor};
use tensorwire::device::{DeviceError, ErrorKind};
use tensorwire::transport::{Buffer, Wait};
use tensorwire::{DType, Descriptor};

use super::simulated::{self, Live, Streams};

/// The adapter's own stream to the device.
const TO_DEVICE: Streams<'_> = Streams::Made(0);

fn open() -> Cuda {
    Cuda::open(0, Options::new().with_ring(2, 4096)).unwrap()
}

fn upload(cuda: &Cuda, bytes: PinnedBytes, stream: &Arc<CudaStream>) -> Result<Tensor, CudaError> {
    let shape = [bytes.as_ref().len()];
    let descriptor = Descriptor::new("t", DType::UInt8, &shape).unwrap();
    cuda.upload_pinned(&descriptor, bytes, stream)
}

/// Where pinned memory may come from.
struct Origin {
    name: &'static str,
    make: fn(&Cuda, usize) -> Pinned,
}

const ORIGINS: &[Origin] = &[
    Origin {
        name: "ring",
        make: |cuda, len| cuda.take_pinned(len, Wait::Never).unwrap(),
    },
    Origin {
        name: "allocated",
        make: |cuda, len| cuda.allocate_pinned(len).unwrap(),
    },
    Origin {
        name: "registered",
        make: |cuda, len| cuda.register(vec![0; len].into()).unwrap(),
    },
];

#[test]
fn it_is_written_shared_cut_and_comes_back() {
    simulated::test("pinned::it_is_written_shared_cut_and_comes_back", || {
        let cuda = open();
        for Origin { name: origin, make } in ORIGINS {
            for len in [0, 1, 255, 256, 5000] {
                let mut pinned = make(&cuda, len);
                assert_eq!(pinned.as_ref(), vec![0; len], "{origin}");
                for (index, byte) in pinned.as_mut().iter_mut().enumerate() {
                    *byte = index as u8;
                }
                if simulated::scripted() && len > 0 {
                    assert!(simulated::is_pinned(pinned.as_ref()), "{origin}");
                }
                let bytes = pinned.share();
                assert_eq!(bytes.as_ref().len(), len);
                let all = bytes.slice(0..len).unwrap();
                assert_eq!(all.as_ref(), bytes.as_ref());
                assert!(
                    bytes.slice(0..len + 1).is_none() && bytes.slice(len + 1..len + 1).is_none()
                );
                #[expect(clippy::reversed_empty_ranges, reason = "it is to be refused")]
                let reversed = bytes.slice(1..0);
                assert!(reversed.is_none() && bytes.slice(usize::MAX..usize::MAX).is_none());
                let tail = all.slice(len / 2..len).unwrap();
                assert_eq!(tail.as_ref(), &bytes.as_ref()[len / 2..]);
                assert!(
                    tail.slice(0..len).is_none() || len < 2,
                    "no more than the part"
                );
                // Not while others have some of it.
                let bytes = bytes.try_into_pinned().unwrap_err();
                let head = all.slice(0..len / 2).unwrap();
                assert!(head.slice(0..len).is_none() || len == 0, "nor here");
                drop((all, bytes, head));
                let mut pinned = tail.try_into_pinned().unwrap();
                assert_eq!(pinned.as_ref().len(), len, "all of it");
                pinned.as_mut().fill(0);
            }
        }
        assert_eq!(cuda.statistics().in_use, 0);
    });
}

#[test]
fn an_upload_keeps_it_until_the_copy_is_over() {
    let name = "pinned::an_upload_keeps_it_until_the_copy_is_over";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let cuda = open();
        let stream = cuda.context().new_stream().unwrap();
        let before = simulated::live();
        for Origin { name: origin, make } in ORIGINS {
            let mut pinned = make(&cuda, 3000);
            pinned.as_mut().fill(5);
            let held = simulated::live();
            let bytes = pinned.share();
            simulated::stall(TO_DEVICE);
            let tensor = upload(&cuda, bytes.slice(1000..2000).unwrap(), &stream).unwrap();
            cuda.poll().unwrap();
            // The device has some of it yet, so it is not to be written.
            let bytes = bytes.try_into_pinned().unwrap_err();
            drop((bytes, tensor));
            cuda.poll().unwrap();
            let live = simulated::live();
            assert_eq!(
                (live.pinned, live.registered),
                (held.pinned, held.registered),
                "{origin}"
            );
            assert_eq!(cuda.statistics().in_use, usize::from(*origin == "ring"));
            simulated::release(TO_DEVICE);
            while simulated::live().pinned + simulated::live().registered
                > before.pinned + before.registered
                || cuda.statistics().in_use > 0
            {
                cuda.poll().unwrap();
                thread::yield_now();
            }
        }
    });
}

#[test]
fn it_comes_back_to_be_written_after_the_copy() {
    simulated::test("pinned::it_comes_back_to_be_written_after_the_copy", || {
        let cuda = open();
        let stream = cuda.context().new_stream().unwrap();
        for Origin { make, .. } in ORIGINS {
            let mut pinned = make(&cuda, 2000);
            for round in 0..20 {
                pinned.as_mut().fill(round);
                let mut bytes = pinned.share();
                drop(upload(&cuda, bytes.clone(), &stream).unwrap());
                pinned = loop {
                    cuda.poll().unwrap();
                    match bytes.try_into_pinned() {
                        Ok(pinned) => break pinned,
                        Err(not_yet) => bytes = not_yet,
                    }
                    thread::yield_now();
                };
            }
        }
    });
}

#[test]
fn who_waits_for_slots_is_served_when_an_upload_lets_go_of_some() {
    let name = "pinned::who_waits_for_slots_is_served_when_an_upload_lets_go_of_some";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let cuda = open();
        let stream = cuda.context().new_stream().unwrap();
        // In one order, the other thread waits before the device has the slots; in the other, after.
        for is_first in [true, false] {
            let bytes = cuda.take_pinned(8192, Wait::Never).unwrap().share();
            let stalls = cuda.statistics().stalls;
            simulated::stall(TO_DEVICE);
            let wait_for = || {
                let cuda = cuda.clone();
                thread::spawn(move || cuda.take_pinned(1, Wait::Forever).map(drop))
            };
            let early = is_first.then(wait_for);
            while is_first && cuda.statistics().stalls == stalls {
                thread::yield_now();
            }
            drop(upload(&cuda, bytes, &stream).unwrap());
            let late = (!is_first).then(wait_for);
            while cuda.statistics().stalls == stalls {
                thread::yield_now();
            }
            simulated::release(TO_DEVICE);
            // Nobody else polls.
            for waits in early.into_iter().chain(late) {
                waits.join().unwrap().unwrap();
            }
        }
    });
}

#[test]
fn the_adapter_waits_for_what_it_keeps_or_leaks_it() {
    let name = "pinned::the_adapter_waits_for_what_it_keeps_or_leaks_it";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        for Origin { name: origin, make } in ORIGINS {
            let cuda = open();
            let stream = cuda.context().new_stream().unwrap();
            simulated::stall(TO_DEVICE);
            let tensor = upload(&cuda, make(&cuda, 3000).share(), &stream).unwrap();
            simulated::hold("cuEventSynchronize", 0);
            let drops = thread::spawn(move || drop(cuda));
            simulated::await_held(1);
            // Of the ring too, if it is of the ring; else that is gone by now.
            let live = simulated::live();
            let expected = usize::from(*origin == "registered");
            assert_eq!(
                (live.pinned, live.registered),
                (1 - expected, expected),
                "{origin}"
            );
            simulated::let_go();
            simulated::release(Streams::All);
            drops.join().unwrap();
            drop((tensor, stream));
            assert_eq!(simulated::live(), Live::default(), "{origin}");
        }
        let cuda = open();
        let stream = cuda.context().new_stream().unwrap();
        let bytes = cuda.allocate_pinned(3000).unwrap().share();
        let tensor = upload(&cuda, bytes, &stream).unwrap();
        simulated::fail("cuEventSynchronize", 0, CUresult::CUDA_ERROR_NOT_PERMITTED);
        drop((cuda, tensor, stream));
        let left = simulated::live();
        assert_eq!((left.pinned, left.contexts), (1, 1));
        simulated::leaves(left);
    });
}

#[test]
fn it_outlives_the_adapter_and_goes_with_a_transport() {
    simulated::test(
        "pinned::it_outlives_the_adapter_and_goes_with_a_transport",
        || {
            for Origin { name: origin, make } in ORIGINS {
                let cuda = open();
                let mut pinned = make(&cuda, 700);
                drop(cuda);
                pinned.as_mut().fill(3);
                let frame = Buffer::new(pinned.share());
                // Let go of where no context is current.
                let sent = thread::spawn(move || frame.as_ref().to_vec());
                assert_eq!(sent.join().unwrap(), [3; 700], "{origin}");
                if simulated::scripted() {
                    assert_eq!(simulated::live(), Live::default(), "{origin}");
                }
            }
        },
    );
}

#[test]
fn what_cannot_be_pinned_comes_back_as_it_was() {
    let name = "pinned::what_cannot_be_pinned_comes_back_as_it_was";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let cuda = open();
        let bytes: Box<[u8]> = (0..100).collect();
        let address = bytes.as_ptr();
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        simulated::fail("cuMemHostRegister_v2", 0, code);
        let (bytes, error) = cuda.register(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory { bytes: 100 });
        assert_eq!(error.step(), Step::Register);
        assert_eq!(bytes.as_ptr(), address);
        let pinned = cuda.register(bytes).unwrap();
        assert_eq!(pinned.as_ref().as_ptr(), address);
        assert!(pinned.as_ref().iter().copied().eq(0..100));
        // It stays pinned if the driver says so, and is not freed then.
        simulated::fail("cuMemHostUnregister", 0, CUresult::CUDA_ERROR_NOT_PERMITTED);
        drop(pinned);
        assert_eq!(cuda.poll().unwrap_err().step(), Step::Enter, "told once");
        cuda.poll().unwrap();
        simulated::fail("cuMemHostAlloc", 0, code);
        let error = cuda.allocate_pinned(12_345).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory { bytes: 12_345 });
        let error = cuda.allocate_pinned(usize::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory { bytes: usize::MAX });
        // Nothing was asked of the driver for nothing.
        let calls = simulated::calls("*");
        drop((cuda.allocate_pinned(0), cuda.register(Box::default())));
        assert_eq!(simulated::calls("*"), calls);
    });
}

#[test]
fn what_the_driver_will_not_free_does_not_panic() {
    let name = "pinned::what_the_driver_will_not_free_does_not_panic";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let cuda = open();
        let pinned = cuda.allocate_pinned(100).unwrap();
        simulated::fail("cuMemFreeHost", 0, CUresult::CUDA_ERROR_NOT_PERMITTED);
        drop(pinned);
        let error = cuda.poll().unwrap_err();
        assert_eq!(
            error.code().unwrap().to_string(),
            "CUDA_ERROR_NOT_PERMITTED"
        );
        // Errors that were parked do not keep others from being freed.
        let parked = cudarc::driver::DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE);
        for Origin { make, .. } in ORIGINS {
            let pinned = make(&cuda, 100);
            cuda.context().record_err::<()>(Err(parked));
            thread::spawn(move || drop(pinned)).join().unwrap();
            assert_eq!(cuda.context().check_err(), Err(parked));
        }
        let live = simulated::live();
        assert_eq!((live.pinned, live.registered), (1, 0), "the ring's");
    });
}
