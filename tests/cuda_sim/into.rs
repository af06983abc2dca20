//! Tensors into memory of the device that is there already.

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaSlice, DevicePtr as _};
use tensorwire::cuda::Step;
use tensorwire::device::{DeviceError as _, ErrorKind};
use tensorwire::tensor::{Element, bf16};
use tensorwire::transport::Wait;
use tensorwire::{DType, TensorView};

use crate::given::{Given, SLOT_BYTES, SLOTS, calls, open, read_at};
use crate::simulated::{self, Streams};

/// The bytes of `slice`, as its stream leaves them.
fn bytes<T>(slice: &CudaSlice<T>) -> Vec<u8> {
    let (address, _read) = slice.device_ptr(slice.stream());
    read_at(slice.stream(), address, slice.num_bytes())
}

#[test]
fn a_slice_of_just_the_length_gets_the_bytes() {
    simulated::test("into::a_slice_of_just_the_length_gets_the_bytes", || {
        let (cuda, stream) = open();
        for elements in [1, 1000, SLOT_BYTES, 10 * SLOT_BYTES + 3] {
            let given = Given::new("latents", DType::Float32, &[elements]);
            let mut slice: CudaSlice<f32> = stream.alloc_zeros(elements).unwrap();
            let before = (calls("cuMemcpyHtoDAsync_v2"), calls("cuMemAllocAsync"));
            cuda.upload_into(&given.view(), &mut slice, Wait::Forever)
                .unwrap();
            let after = (calls("cuMemcpyHtoDAsync_v2"), calls("cuMemAllocAsync"));
            if simulated::scripted() {
                let chunks = (4 * elements).div_ceil(SLOT_BYTES) as u64;
                assert_eq!(after, (before.0 + chunks, before.1));
            }
            assert!(bytes(&slice) == given.bytes, "{elements}");
        }
    });
}

#[test]
fn a_view_of_some_of_a_slice_gets_the_bytes_and_the_rest_stays() {
    simulated::test(
        "into::a_view_of_some_of_a_slice_gets_the_bytes_and_the_rest_stays",
        || {
            let (cuda, stream) = open();
            let given = Given::new("latents", DType::BFloat16, &[5000]);
            let mut slice: CudaSlice<bf16> = stream.alloc_zeros(5010).unwrap();
            let mut view = slice.slice_mut(7..5007);
            cuda.upload_into(&given.view(), &mut view, Wait::Forever)
                .unwrap();
            let bytes = bytes(&slice);
            assert!(bytes[14..10_014] == given.bytes);
            assert_eq!(
                (&bytes[..14], &bytes[10_014..]),
                (&[0; 14][..], &[0; 6][..])
            );
        },
    );
}

#[test]
fn what_does_not_fit_is_refused_before_the_driver_is_called() {
    simulated::test(
        "into::what_does_not_fit_is_refused_before_the_driver_is_called",
        || {
            fn refused<T: Element>(
                tensor: &TensorView<'_>,
                cuda: &tensorwire::cuda::Cuda,
                slice: &mut CudaSlice<T>,
            ) -> ErrorKind {
                let before = calls("*");
                let error = cuda.upload_into(tensor, slice, Wait::Forever).unwrap_err();
                assert_eq!(calls("*"), before);
                assert_eq!((error.step(), error.tensor()), (Step::Stage, Some(0)));
                error.kind()
            }
            let (cuda, stream) = open();
            let given = Given::new("latents", DType::Float32, &[10, 10]);
            let none = Given::new("none", DType::Float32, &[0]);
            let mut mask = Given::new("mask", DType::Bool, &[400]);
            mask.bytes[399] = 2;
            let mut floats: Vec<CudaSlice<f32>> = Vec::new();
            for len in [99, 101, 100, 25, 1] {
                floats.push(stream.alloc_zeros(len).unwrap());
            }
            let mut integers: CudaSlice<i32> = stream.alloc_zeros(100).unwrap();
            let mut bools: CudaSlice<bool> = stream.alloc_zeros(400).unwrap();
            let mut bytes_of: CudaSlice<u8> = stream.alloc_zeros(400).unwrap();
            for slice in [0, 1, 3] {
                let (expected, actual) = (floats[slice].num_bytes(), 400);
                let kind = refused(&given.view(), &cuda, &mut floats[slice]);
                assert_eq!(kind, ErrorKind::Length { expected, actual });
            }
            let (expected, actual) = (4, 0);
            let kind = refused(&none.view(), &cuda, &mut floats[4]);
            assert_eq!(kind, ErrorKind::Length { expected, actual });
            let (expected, actual) = (DType::Int32, DType::Float32);
            let kind = refused(&given.view(), &cuda, &mut integers);
            assert_eq!(kind, ErrorKind::DType { expected, actual });
            // As many bytes, and yet no.
            let (expected, actual) = (DType::UInt8, DType::Float32);
            let kind = refused(&given.view(), &cuda, &mut bytes_of);
            assert_eq!(kind, ErrorKind::DType { expected, actual });
            let (index, byte) = (399, 2);
            let kind = refused(&mask.view(), &cuda, &mut bools);
            assert_eq!(kind, ErrorKind::InvalidBool { index, byte });
            // Nothing was written.
            assert_eq!(bytes(&bools), [0; 400]);
            mask.bytes[399] = 1;
            cuda.upload_into(&mask.view(), &mut bools, Wait::Never)
                .unwrap();
            assert_eq!(bytes(&bools), mask.bytes);
        },
    );
}

#[test]
fn earlier_and_later_uses_on_any_stream_keep_their_order() {
    simulated::test(
        "into::earlier_and_later_uses_on_any_stream_keep_their_order",
        || {
            let (cuda, stream) = open();
            let other = cuda.context().new_stream().unwrap();
            let first = Given::new("first", DType::Float32, &[3000]);
            let second = Given::new("second", DType::Float32, &[3000]);
            let mut slice: CudaSlice<f32> = stream.alloc_zeros(3000).unwrap();
            let mut copies: Vec<CudaSlice<f32>> = Vec::new();
            for _ in 0..2 {
                copies.push(other.alloc_zeros(3000).unwrap());
            }
            for (given, copy) in [&first, &second].into_iter().zip(&mut copies) {
                cuda.upload_into(&given.view(), &mut slice, Wait::Forever)
                    .unwrap();
                other.memcpy_dtod(&slice, copy).unwrap();
            }
            drop(slice);
            assert!(bytes(&copies[0]) == first.bytes);
            assert!(bytes(&copies[1]) == second.bytes);
        },
    );
}

#[test]
fn without_cudarcs_event_tracking_the_stream_of_the_target_is_in_order() {
    simulated::test(
        "into::without_cudarcs_event_tracking_the_stream_of_the_target_is_in_order",
        || {
            let (cuda, stream) = open();
            // SAFETY: `disable_event_tracking` asks to order uses on several streams by other means: one is used.
            unsafe { cuda.context().disable_event_tracking() };
            for _ in 0..5 {
                let given = Given::new("latents", DType::Float32, &[9000]);
                let mut slice: CudaSlice<f32> = stream.alloc_zeros(9000).unwrap();
                let mut copy: CudaSlice<f32> = stream.alloc_zeros(9000).unwrap();
                cuda.upload_into(&given.view(), &mut slice, Wait::Forever)
                    .unwrap();
                stream.memcpy_dtod(&slice, &mut copy).unwrap();
                drop(slice);
                assert!(bytes(&copy) == given.bytes);
            }
        },
    );
}

#[test]
fn a_full_ring_is_told_and_the_target_can_be_used_and_freed() {
    let name = "into::a_full_ring_is_told_and_the_target_can_be_used_and_freed";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        for tracking in [true, false] {
            let (cuda, stream) = open();
            if !tracking {
                // SAFETY: `disable_event_tracking` asks to order uses on several streams by other means: one is used.
                unsafe { cuda.context().disable_event_tracking() };
            }
            let len = SLOTS * SLOT_BYTES + 1;
            let given = Given::of_len("latents", len);
            let mut slice: CudaSlice<u8> = stream.alloc_zeros(len).unwrap();
            simulated::stall(Streams::All);
            let error = cuda
                .upload_into(&given.view(), &mut slice, Wait::Never)
                .unwrap_err();
            let (needed, free) = (1, 0);
            assert_eq!(error.kind(), ErrorKind::RingFull { needed, free });
            assert_eq!(error.tensor(), Some(0));
            // Not one chunk, this time.
            let before = calls("cuMemcpyHtoDAsync_v2");
            cuda.upload_into(&given.view(), &mut slice, Wait::Never)
                .unwrap_err();
            assert_eq!(calls("cuMemcpyHtoDAsync_v2"), before);
            simulated::release(Streams::All);
            cuda.upload_into(&given.view(), &mut slice, Wait::Forever)
                .unwrap();
            assert!(bytes(&slice) == given.bytes);
            simulated::stall(Streams::All);
            cuda.upload_into(&given.view(), &mut slice, Wait::Never)
                .unwrap_err();
            // Freed with copies to it under way.
            drop(slice);
            simulated::release(Streams::All);
        }
    });
}

#[test]
fn where_the_order_cannot_be_had_nothing_is_copied() {
    let name = "into::where_the_order_cannot_be_had_nothing_is_copied";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let (cuda, stream) = open();
        let given = Given::of_len("latents", 5000);
        let mut slice: CudaSlice<u8> = stream.alloc_zeros(5000).unwrap();
        let before = calls("cuMemcpyHtoDAsync_v2");
        // cudarc parks this: it has the stream to the device wait for the zeros.
        simulated::fail("cuStreamWaitEvent", 0, CUresult::CUDA_ERROR_NOT_PERMITTED);
        let error = cuda
            .upload_into(&given.view(), &mut slice, Wait::Forever)
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.step()),
            (ErrorKind::Backend, Step::WaitEvent)
        );
        assert_eq!(calls("cuMemcpyHtoDAsync_v2"), before);
        assert_eq!(bytes(&slice), [0; 5000]);
        cuda.upload_into(&given.view(), &mut slice, Wait::Forever)
            .unwrap();
        assert!(bytes(&slice) == given.bytes);
    });
}

#[test]
fn after_any_error_the_target_can_be_freed_at_once() {
    let name = "into::after_any_error_the_target_can_be_freed_at_once";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let given = Given::of_len("latents", 5000);
        let mut told = 0;
        for is_tracking in [true, false] {
            for call in ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"] {
                for number in 0..6 {
                    let (cuda, stream) = open();
                    if !is_tracking {
                        // SAFETY: `disable_event_tracking` asks to order uses on several streams by other means: one is used.
                        unsafe { cuda.context().disable_event_tracking() };
                    }
                    let mut slice: CudaSlice<u8> = stream.alloc_zeros(5000).unwrap();
                    stream.synchronize().unwrap();
                    simulated::fail(call, number, CUresult::CUDA_ERROR_NOT_PERMITTED);
                    let result = cuda.upload_into(&given.view(), &mut slice, Wait::Forever);
                    simulated::fail_no_more();
                    told += usize::from(result.is_err());
                    drop(slice);
                }
            }
        }
        // Of the ring's event, and of those on either side of the copies, each made, recorded and waited for.
        assert!(told >= 12, "{told}");
    });
}
