//! Tensors on several streams: who waits for whom, without being told.

use std::thread;

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, CudaSlice, DevicePtr as _, DeviceSlice as _};
use tensorwire::DType;
use tensorwire::cuda::Cuda;
use tensorwire::device::{Device as _, DeviceError as _, DeviceTensor as _, ErrorKind};
use tensorwire::transport::Wait;

use crate::given::{
    Given, SLOT_BYTES, calls, device_bytes, open, options, read_at, upload_message,
};
use crate::simulated;

#[test]
fn other_streams_wait_for_the_upload_and_the_memory_waits_for_them() {
    simulated::test(
        "streams::other_streams_wait_for_the_upload_and_the_memory_waits_for_them",
        || {
            let (cuda, stream) = open();
            let others: Vec<_> = (0..3)
                .map(|_| cuda.context().new_stream().unwrap())
                .collect();
            let given = Given::new("latents", DType::Float32, &[3000]);
            let mut copies: Vec<CudaSlice<f32>> = Vec::new();
            for other in others.iter().chain([&stream]) {
                copies.push(other.alloc_zeros(3000).unwrap());
            }
            for _ in 0..3 {
                let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
                let view = tensor.view::<f32>().unwrap();
                // Twice on each: the second time its event is there.
                for _ in 0..2 {
                    for (other, copy) in others.iter().chain([&stream]).zip(&mut copies) {
                        other.memcpy_dtod(&view, copy).unwrap();
                    }
                }
                // Freed at once, though nothing may have run yet.
                drop(tensor);
            }
            for (other, copy) in others.iter().chain([&stream]).zip(&copies) {
                let (address, _read) = copy.device_ptr(other);
                assert!(read_at(other, address, 12_000) == given.bytes);
            }
            // A stream that is told to wait without a view.
            let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
            tensor.wait_on(&others[0]).unwrap();
            assert!(read_at(&others[0], tensor.device_pointer(), 12_000) == given.bytes);
        },
    );
}

#[test]
fn the_default_stream_is_a_stream_like_others() {
    simulated::test(
        "streams::the_default_stream_is_a_stream_like_others",
        || {
            let (cuda, _) = open();
            let stream = cuda.context().default_stream();
            let given = Given::of_len("latents", 3 * SLOT_BYTES);
            let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
            given.assert_is(&tensor);
        },
    );
}

#[test]
fn without_cudarcs_event_tracking_the_own_stream_is_in_order() {
    simulated::test(
        "streams::without_cudarcs_event_tracking_the_own_stream_is_in_order",
        || {
            let (cuda, stream) = open();
            // SAFETY: `disable_event_tracking` asks to order uses on several streams by other means: below, one is used.
            unsafe { cuda.context().disable_event_tracking() };
            for len in [1, 5 * SLOT_BYTES] {
                let given = Given::of_len("latents", len);
                let mut copy: CudaSlice<u8> = stream.alloc_zeros(len).unwrap();
                let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
                stream.memcpy_dtod(&tensor.bytes(), &mut copy).unwrap();
                drop(tensor);
                let (address, _read) = copy.device_ptr(&stream);
                assert!(read_at(&stream, address, len) == given.bytes);
            }
            // Another stream still waits for the upload; that it is over before the memory is freed is the test's to see to.
            let other = cuda.context().new_stream().unwrap();
            let given = Given::of_len("latents", 3000);
            let mut copy: CudaSlice<u8> = other.alloc_zeros(3000).unwrap();
            let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
            other.memcpy_dtod(&tensor.bytes(), &mut copy).unwrap();
            stream.join(&other).unwrap();
            drop(tensor);
            let (address, _read) = copy.device_ptr(&other);
            assert!(read_at(&other, address, 3000) == given.bytes);
        },
    );
}

#[test]
fn streams_that_tensors_cannot_belong_to_are_refused() {
    simulated::test_with(
        "streams::streams_that_tensors_cannot_belong_to_are_refused",
        &[("SIMCUDA_DEVICES", "2")],
        || {
            if !simulated::needs_script(
                "streams::streams_that_tensors_cannot_belong_to_are_refused",
            ) {
                return;
            }
            let (cuda, stream) = open();
            let other = Cuda::open(1, options()).unwrap();
            let abroad = other.context().new_stream().unwrap();
            let each_threads = cuda.context().per_thread_stream();
            let given = Given::of_len("latents", 100);
            let before = calls("cuMemAllocAsync");
            for (stream, name) in [
                (abroad, "CUDA_ERROR_INVALID_CONTEXT"),
                (each_threads, "CUDA_ERROR_NOT_SUPPORTED"),
            ] {
                let refused = cuda
                    .upload(&given.view(), &stream, Wait::Never)
                    .unwrap_err();
                assert_eq!(refused.code().unwrap().to_string(), name);
                assert_eq!(refused.kind(), ErrorKind::Backend);
            }
            assert_eq!(calls("cuMemAllocAsync"), before);
            let tensor = cuda.upload(&given.view(), &stream, Wait::Never).unwrap();
            given.assert_is(&tensor);
        },
    );
}

#[test]
fn devices_without_memory_pools_do_as_well() {
    simulated::test_with(
        "streams::devices_without_memory_pools_do_as_well",
        &[("SIMCUDA_POOLS", "0")],
        || {
            if !simulated::needs_script("streams::devices_without_memory_pools_do_as_well") {
                return;
            }
            let (cuda, stream) = open();
            let given: Vec<_> = [5, 2000, 0, 9000, 7]
                .into_iter()
                .enumerate()
                .map(|(index, len)| Given::of_len(&index.to_string(), len))
                .collect();
            let tensors = upload_message(&cuda, &given, &stream);
            assert_eq!(calls("cuMemAlloc_v2"), 3);
            for (given, tensor) in given.iter().zip(tensors.iter()) {
                given.assert_is(tensor);
            }
            drop(tensors);
            assert_eq!(device_bytes(), 0);
            let tensor = cuda
                .upload(&given[3].view(), &stream, Wait::Forever)
                .unwrap();
            let other = cuda.context().new_stream().unwrap();
            let mut copy: CudaSlice<u8> = other.alloc_zeros(9000).unwrap();
            other.memcpy_dtod(&tensor.bytes(), &mut copy).unwrap();
            drop(tensor);
            let (address, _read) = copy.device_ptr(&other);
            assert!(read_at(&other, address, 9000) == given[3].bytes);
        },
    );
}

#[test]
fn memory_can_be_given_to_another_owner() {
    simulated::test("streams::memory_can_be_given_to_another_owner", || {
        let (cuda, stream) = open();
        let other = cuda.context().new_stream().unwrap();
        let given = Given::new("latents", DType::Float32, &[700]);
        let tensor = cuda.upload(&given.view(), &stream, Wait::Never).unwrap();
        let mut copy: CudaSlice<f32> = other.alloc_zeros(700).unwrap();
        other
            .memcpy_dtod(&tensor.view::<f32>().unwrap(), &mut copy)
            .unwrap();
        let (address, len, owner) = tensor.into_raw().unwrap();
        assert_eq!((len, &owner), (2800, &stream));
        // SAFETY: `upgrade_device_ptr` asks for memory of the stream's context that holds so many elements, and is nobody
        // else's to free: `into_raw` gave it away.
        let slice = unsafe { owner.upgrade_device_ptr::<f32>(address, 700) };
        assert!(read_at(&stream, address, 2800) == given.bytes);
        drop(slice);
    });
}

#[test]
fn a_tensor_becomes_a_slice_that_other_streams_wait_for() {
    let name = "streams::a_tensor_becomes_a_slice_that_other_streams_wait_for";
    simulated::test(name, || {
        let (cuda, stream) = open();
        let other = cuda.context().new_stream().unwrap();
        let given = Given::new("latents", DType::Float32, &[700]);
        for _ in 0..20 {
            let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
            let address = tensor.device_pointer();
            let slice = tensor.into_slice::<f32>().unwrap();
            // Before the other stream reads: a slice of cudarc's remembers one reader, the last.
            assert_eq!(slice.device_ptr(&stream).0, address);
            let mut copy: CudaSlice<f32> = other.alloc_zeros(700).unwrap();
            // Its stream is told of by the slice alone, and it waits for the upload.
            other.memcpy_dtod(&slice, &mut copy).unwrap();
            assert_eq!((slice.len(), slice.stream()), (700, &stream));
            drop(slice);
            let (address, _read) = copy.device_ptr(&other);
            assert!(read_at(&other, address, 2800) == given.bytes);
        }
        stream.synchronize().unwrap();
        other.synchronize().unwrap();
        assert_eq!(device_bytes(), 0);
    });
}

#[test]
fn what_is_no_slice_stays_a_tensor() {
    let name = "streams::what_is_no_slice_stays_a_tensor";
    simulated::test(name, || {
        let (cuda, stream) = open();
        let upload = |given: &Given| cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
        let floats = Given::new("latents", DType::Float32, &[700]);
        let tensor = upload(&floats).into_slice::<i32>().unwrap_err();
        floats.assert_is(&tensor);
        let mut mask = Given::new("mask", DType::Bool, &[9]);
        mask.bytes[3] = 7;
        let mask = upload(&mask).into_slice::<bool>().unwrap_err();
        assert_eq!(mask.bytes().len(), 9);
        let none = Given::new("none", DType::Float32, &[0, 4]);
        let none = upload(&none).into_slice::<f32>().unwrap_err();
        assert_eq!(none.info().shape(), [0, 4]);
        if simulated::scripted() {
            // cudarc panics where it has no event for the slice.
            simulated::fail("cuEventCreate", 0, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let tensor = tensor.into_slice::<f32>().unwrap_err();
            simulated::fail_no_more();
            floats.assert_is(&tensor);
            drop(tensor.into_slice::<f32>().unwrap());
        }
    });
}

#[test]
fn any_thread_may_upload() {
    simulated::test("streams::any_thread_may_upload", || {
        let (cuda, stream) = open();
        thread::scope(|scope| {
            for number in 0..4_usize {
                let (cuda, stream) = (cuda.clone(), stream.clone());
                scope.spawn(move || {
                    for round in 0..20 {
                        let given = Given::of_len("latents", 1 + 977 * number * round);
                        let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
                        given.assert_is(&tensor);
                    }
                });
            }
        });
        cuda.poll().unwrap();
        assert_eq!(cuda.statistics().in_use, 0);
    });
}

/// A handle that has made no stream records no event of cudarc's, though others of the same context do.
#[test]
fn reads_by_another_handle_to_the_context_are_over_before_the_memory_is_freed() {
    simulated::test(
        "streams::reads_by_another_handle_to_the_context_are_over_before_the_memory_is_freed",
        || {
            let (cuda, stream) = open();
            let other = CudaContext::new(0).unwrap().default_stream();
            let given = Given::new("latents", DType::Float32, &[3000]);
            for _ in 0..10 {
                let mut copy: CudaSlice<f32> = other.alloc_zeros(3000).unwrap();
                let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
                other
                    .memcpy_dtod(&tensor.view::<f32>().unwrap(), &mut copy)
                    .unwrap();
                drop(tensor);
                let (address, _read) = copy.device_ptr(&other);
                assert!(read_at(&other, address, 12_000) == given.bytes);
            }
        },
    );
}

#[test]
fn a_tensor_may_go_on_a_thread_that_has_not_called_the_driver_before() {
    simulated::test(
        "streams::a_tensor_may_go_on_a_thread_that_has_not_called_the_driver_before",
        || {
            let (cuda, stream) = open();
            let given = Given::of_len("latents", 3000);
            let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
            thread::spawn(move || drop(tensor)).join().unwrap();
            stream.synchronize().unwrap();
            assert_eq!(device_bytes(), 0);
        },
    );
}
