//! Tensors and messages to the device: what arrives, what it costs, and what is refused.

use std::time::Duration;

use cudarc::driver::sys::CUresult;
use cudarc::driver::{DevicePtr as _, DeviceSlice as _};
use tensorwire::cuda::{Step, Tensor};
use tensorwire::device::{Device as _, DeviceError as _, DeviceTensor as _, ErrorKind, Tensors};
use tensorwire::error::CastError;
use tensorwire::message::Decoder;
use tensorwire::tensor::{
    Element, Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu, bf16, f16,
};
use tensorwire::transport::Wait;
use tensorwire::{DType, TensorView};

use crate::given::{
    Given, SLOT_BYTES, SLOTS, calls, device_bytes, frames, open, open_with, options, read,
    upload_message,
};
use crate::simulated::{self, Streams};

/// Copies to the device and allocations there so far.
fn copies_and_allocations() -> (u64, u64) {
    (calls("cuMemcpyHtoDAsync_v2"), calls("cuMemAllocAsync"))
}

/// What `action` returns, if it copies to the device and allocates there so often.
#[track_caller]
fn costs<T>(copies: u64, allocations: u64, action: impl FnOnce() -> T) -> T {
    let before = copies_and_allocations();
    let result = action();
    let after = copies_and_allocations();
    if simulated::scripted() {
        let made = (after.0 - before.0, after.1 - before.1);
        assert_eq!(made, (copies, allocations), "copies and allocations");
    }
    result
}

#[test]
fn a_tensor_arrives_with_its_name_and_shape() {
    simulated::test("upload::a_tensor_arrives_with_its_name_and_shape", || {
        let (cuda, stream) = open();
        let given = Given::new("latents", DType::Float32, &[2, 3]);
        let view = given.view().with_list_index(7);
        let tensor = cuda.upload(&view, &stream, Wait::Never).unwrap();
        given.assert_is(&tensor);
        assert_eq!(tensor.info().list_index(), Some(7));
        assert_eq!(tensor.view::<f32>().unwrap().len(), 6);
        assert_eq!(tensor.bytes().len(), 24);
        assert!(tensor.stream() == &stream);
        assert_eq!(tensor.is_ready(), Ok(true));
        assert_eq!(tensor.wait(Wait::Never), Ok(()));
        let (expected, actual) = (DType::Float64, DType::Float32);
        let error = CastError::WrongDType { expected, actual };
        assert_eq!(tensor.view::<f64>().err(), Some(error));
    });
}

#[test]
fn tensors_of_every_dtype_are_seen_as_its_type() {
    fn check<T: Element>(tensors: &Tensors<Tensor>) -> DType {
        let of_type = |tensor: &&Tensor| tensor.info().dtype() == T::DTYPE;
        let tensor = tensors.iter().find(of_type).unwrap();
        assert_eq!(tensor.view::<T>().unwrap().len(), 15, "{}", T::DTYPE);
        for other in tensors.iter().filter(|tensor| !of_type(tensor)) {
            assert!(other.view::<T>().is_err());
        }
        T::DTYPE
    }
    simulated::test(
        "upload::tensors_of_every_dtype_are_seen_as_its_type",
        || {
            let (cuda, stream) = open();
            let given = DType::ALL.iter();
            let given: Vec<_> = given
                .map(|&dtype| Given::new(dtype.name(), dtype, &[3, 5]))
                .collect();
            let tensors = upload_message(&cuda, &given, &stream);
            for (given, tensor) in given.iter().zip(tensors.iter()) {
                given.assert_is(tensor);
            }
            let checked = [
                check::<bf16>(&tensors),
                check::<f16>(&tensors),
                check::<f32>(&tensors),
                check::<f64>(&tensors),
                check::<i8>(&tensors),
                check::<i16>(&tensors),
                check::<i32>(&tensors),
                check::<i64>(&tensors),
                check::<u8>(&tensors),
                check::<u16>(&tensors),
                check::<u32>(&tensors),
                check::<u64>(&tensors),
                check::<bool>(&tensors),
                check::<[f32; 2]>(&tensors),
                check::<[f64; 2]>(&tensors),
                check::<Float8E4M3Fn>(&tensors),
                check::<Float8E4M3Fnuz>(&tensors),
                check::<Float8E5M2>(&tensors),
                check::<Float8E5M2Fnuz>(&tensors),
                check::<Float8E8M0Fnu>(&tensors),
            ];
            assert!(DType::ALL.iter().all(|dtype| checked.contains(dtype)));
        },
    );
}

#[test]
fn bytes_that_are_no_bools_arrive_and_are_not_seen_as_bools() {
    simulated::test(
        "upload::bytes_that_are_no_bools_arrive_and_are_not_seen_as_bools",
        || {
            let (cuda, stream) = open();
            // In the first byte, in the second slot, in the last byte; of two the first is told.
            let len = 2 * SLOT_BYTES + 10;
            for (bad, index) in [
                (&[(0, 2)][..], 0),
                (
                    &[(SLOT_BYTES + 3, 255), (SLOT_BYTES + 4, 2)],
                    SLOT_BYTES + 3,
                ),
                (&[(len - 1, 128)], len - 1),
            ] {
                let mut given = Given::new("mask", DType::Bool, &[len]);
                for &(at, byte) in bad {
                    given.bytes[at] = byte;
                }
                let byte = given.bytes[index];
                let error = CastError::InvalidBool { index, byte };
                let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
                assert_eq!(tensor.view::<bool>().err(), Some(error));
                given.assert_is(&tensor);
                assert_eq!(tensor.bytes().len(), len);

                let both = [Given::new("good", DType::Bool, &[9]), given];
                let tensors = upload_message(&cuda, &both, &stream);
                assert_eq!(tensors.get(0).unwrap().view::<bool>().unwrap().len(), 9);
                assert_eq!(tensors.get(1).unwrap().view::<bool>().err(), Some(error));
            }
            // 2 is a good byte of any other dtype.
            let mut given = Given::of_len("bytes", 3);
            given.bytes = vec![2, 3, 4];
            let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
            assert!(tensor.view::<u8>().is_ok());
        },
    );
}

#[test]
fn a_scalar_has_one_element_and_a_zero_in_the_shape_costs_nothing() {
    simulated::test(
        "upload::a_scalar_has_one_element_and_a_zero_in_the_shape_costs_nothing",
        || {
            let (cuda, stream) = open();
            let scalar = Given::new("scale", DType::Float64, &[]);
            let tensor = cuda.upload(&scalar.view(), &stream, Wait::Never).unwrap();
            scalar.assert_is(&tensor);
            assert_eq!(tensor.view::<f64>().unwrap().len(), 1);

            let empty = Given::new("none", DType::Float32, &[4, 0, 2]);
            let before = calls("*");
            let tensor = cuda.upload(&empty.view(), &stream, Wait::Never).unwrap();
            assert_eq!(tensor.device_pointer(), 0);
            assert_eq!(tensor.is_ready(), Ok(true));
            assert_eq!(tensor.wait_on(&stream), Ok(()));
            assert_eq!(tensor.wait(Wait::Never), Ok(()));
            let view = tensor.view::<f32>().unwrap();
            assert_eq!((view.len(), view.device_ptr(&stream).0), (0, 0));
            let tensor = tensor.into_raw().unwrap_err();
            assert_eq!(tensor.info().shape(), [4, 0, 2]);
            drop(tensor);
            let none = upload_message(&cuda, &[], &stream);
            assert!(none.is_empty());
            let empties = [empty.clone(), Given::new("nil", DType::Bool, &[0])];
            let empties = upload_message(&cuda, &empties, &stream);
            assert_eq!(empties.len(), 2);
            drop(empties);
            assert_eq!(calls("*"), before);

            let given = [empty, scalar, Given::new("nil", DType::Bool, &[0])];
            let tensors = upload_message(&cuda, &given, &stream);
            assert_eq!(tensors.len(), 3);
            for (given, tensor) in given.iter().zip(tensors.iter()) {
                given.assert_is(tensor);
            }
        },
    );
}

#[test]
fn the_source_is_free_as_soon_as_the_call_is_back() {
    simulated::test(
        "upload::the_source_is_free_as_soon_as_the_call_is_back",
        || {
            if !simulated::needs_script("upload::the_source_is_free_as_soon_as_the_call_is_back") {
                return;
            }
            let (cuda, stream) = open();
            simulated::stall(Streams::All);
            let given = Given::of_len("latents", SLOT_BYTES + 1);
            let mut frame = given.bytes.clone();
            let view = TensorView::from_bytes("latents", DType::UInt8, &[SLOT_BYTES + 1], &frame);
            let first = cuda.upload(&view.unwrap(), &stream, Wait::Never).unwrap();
            assert_eq!(first.is_ready(), Ok(false));
            // Changed, and received into again.
            frame.fill(0xee);
            let view = TensorView::from_bytes("latents", DType::UInt8, &[7], &frame[..7]);
            let second = cuda.upload(&view.unwrap(), &stream, Wait::Never).unwrap();
            frame.fill(0x11);
            drop(frame);
            let error = first.wait(Wait::Never).unwrap_err();
            assert_eq!(
                (error.kind(), error.step()),
                (ErrorKind::NotReady, Step::WaitEvent)
            );
            let error = first
                .wait(Wait::UpTo(Duration::from_millis(5)))
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            simulated::release(Streams::All);
            second.wait(Wait::Forever).unwrap();
            assert_eq!(first.is_ready(), Ok(true));
            given.assert_is(&first);
            assert_eq!(read(&second), [0xee; 7]);
        },
    );
}

#[test]
fn tensors_of_any_size_go_through_the_ring_in_chunks() {
    simulated::test(
        "upload::tensors_of_any_size_go_through_the_ring_in_chunks",
        || {
            let (cuda, stream) = open();
            let ring = SLOTS * SLOT_BYTES;
            for len in [
                1,
                255,
                256,
                257,
                SLOT_BYTES - 1,
                SLOT_BYTES,
                SLOT_BYTES + 1,
                2 * SLOT_BYTES,
                ring - 1,
                ring,
                ring + 1,
                10 * ring + 77,
            ] {
                let given = Given::of_len("latents", len);
                let chunks = len.div_ceil(SLOT_BYTES) as u64;
                let upload = || cuda.upload(&given.view(), &stream, Wait::Forever);
                let tensor = costs(chunks, 1, upload).unwrap();
                given.assert_is(&tensor);
            }
            let statistics = cuda.statistics();
            assert!(statistics.high_water <= SLOTS);
            cuda.poll().unwrap();
            assert_eq!(cuda.statistics().in_use, 0);
        },
    );
}

#[test]
fn small_tensors_share_one_copy_and_one_allocation() {
    simulated::test(
        "upload::small_tensors_share_one_copy_and_one_allocation",
        || {
            let (cuda, stream) = open_with(options().with_ring(3, 64 << 10));
            let mut given: Vec<_> = (0..50)
                .map(|index| Given::of_len(&format!("small {index}"), 20 * index + 1))
                .collect();
            let tensors = costs(1, 1, || upload_message(&cuda, &given, &stream));
            assert_eq!(cuda.statistics().taken, 1);
            for (given, tensor) in given.iter().zip(tensors.iter()) {
                given.assert_is(tensor);
            }
            // Memory that is shared stays until the last of them is gone.
            let bytes = device_bytes();
            let mut tensors = tensors.into_vec();
            let last = tensors.pop().unwrap();
            drop(tensors);
            assert_eq!(device_bytes(), bytes);
            given[49].assert_is(&last);
            let last = last.into_raw().unwrap_err();
            drop(last);
            stream.synchronize().unwrap();
            assert_eq!(device_bytes(), 0);

            // Large ones between them have memory, and copies, of their own.
            for (index, at) in [0, 13, 52].into_iter().enumerate() {
                given.insert(at, Given::of_len(&format!("large {index}"), 1025));
            }
            let tensors = costs(4, 4, || upload_message(&cuda, &given, &stream));
            for (given, tensor) in given.iter().zip(tensors.iter()) {
                given.assert_is(tensor);
            }
            drop(tensors);

            // More of them than fit in a slot: nine slots, and three times one has copies to two allocations.
            let (cuda, _) = open();
            let tensors = costs(12, 4, || upload_message(&cuda, &given, &stream));
            for (given, tensor) in given.iter().zip(tensors.iter()) {
                given.assert_is(tensor);
            }

            // None are shared if nobody wants it.
            let (cuda, _) = open_with(options().with_batch_bytes(0));
            let given = [Given::of_len("a", 1), Given::of_len("b", 2)];
            let tensors = costs(2, 2, || upload_message(&cuda, &given, &stream));
            for (given, tensor) in given.iter().zip(tensors.iter()) {
                given.assert_is(tensor);
            }
        },
    );
}

#[test]
fn a_full_ring_is_told_and_nothing_is_left_behind() {
    simulated::test(
        "upload::a_full_ring_is_told_and_nothing_is_left_behind",
        || {
            if !simulated::needs_script("upload::a_full_ring_is_told_and_nothing_is_left_behind") {
                return;
            }
            let (cuda, stream) = open();
            let full = Given::of_len("full", SLOTS * SLOT_BYTES);
            let small = Given::of_len("small", 5);
            simulated::stall(Streams::All);
            let first = cuda.upload(&full.view(), &stream, Wait::Never).unwrap();
            let (bytes, calls) = (device_bytes(), copies_and_allocations());
            assert_eq!(cuda.statistics().in_use, SLOTS);

            let error = cuda
                .upload(&small.view(), &stream, Wait::Never)
                .unwrap_err();
            let (needed, free) = (1, 0);
            assert_eq!(error.kind(), ErrorKind::RingFull { needed, free });
            assert_eq!((error.step(), error.tensor()), (Step::Stage, Some(0)));
            assert!(error.kind().is_wait());
            let short = Wait::UpTo(Duration::from_millis(5));
            let error = cuda.upload(&small.view(), &stream, short).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            // The device was not asked for anything.
            assert_eq!(device_bytes(), bytes);
            assert_eq!(copies_and_allocations(), calls);
            assert_eq!(cuda.statistics().refused, 2);

            // Of a message the error says which tensor there was no room for.
            let wanted = [
                Given::new("none", DType::Float32, &[0]),
                Given::of_len("small", 5),
            ];
            let frames = frames(&wanted);
            let mut decoder = Decoder::new();
            let message = decoder.decode(&frames).unwrap();
            let error = cuda
                .upload_message(&message, &stream, Wait::Never)
                .unwrap_err();
            assert_eq!(error.tensor(), Some(1));
            simulated::release(Streams::All);
            let second = cuda.upload(&small.view(), &stream, Wait::Forever).unwrap();
            full.assert_is(&first);
            small.assert_is(&second);
            drop((first, second));

            // A tensor that does not fit in the ring is stopped half way: what it had is given back.
            simulated::stall(Streams::All);
            let large = Given::of_len("large", SLOTS * SLOT_BYTES + 1);
            let error = cuda
                .upload(&large.view(), &stream, Wait::Never)
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::RingFull { needed, free });
            simulated::release(Streams::All);
            simulated::settle();
            cuda.poll().unwrap();
            assert_eq!((device_bytes(), cuda.statistics().in_use), (0, 0));
            let tensor = cuda.upload(&large.view(), &stream, Wait::Forever).unwrap();
            large.assert_is(&tensor);
        },
    );
}

#[test]
fn a_configured_timeout_is_for_the_whole_call() {
    simulated::test("upload::a_configured_timeout_is_for_the_whole_call", || {
        if !simulated::needs_script("upload::a_configured_timeout_is_for_the_whole_call") {
            return;
        }
        let timeout = Duration::from_millis(20);
        let (cuda, stream) = open_with(options().with_timeout(timeout));
        let large = Given::of_len("large", SLOTS * SLOT_BYTES + 1);
        simulated::stall(Streams::All);
        let error = cuda
            .upload(&large.view(), &stream, Wait::Configured)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        simulated::release(Streams::All);
        let tensor = cuda.upload(&large.view(), &stream, Wait::Forever).unwrap();
        large.assert_is(&tensor);
    });
}

#[test]
fn tensors_that_no_memory_holds_are_refused() {
    simulated::test("upload::tensors_that_no_memory_holds_are_refused", || {
        if !simulated::needs_script("upload::tensors_that_no_memory_holds_are_refused") {
            return;
        }
        let (cuda, stream) = open();
        simulated::fail("cuMemAllocAsync", 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let given = [
            Given::of_len("small", 1),
            Given::of_len("first", 2000),
            Given::of_len("second", 2001),
        ];
        let frames = frames(&given);
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        let error = cuda
            .upload_message(&message, &stream, Wait::Forever)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory { bytes: 2000 });
        assert_eq!(
            (error.step(), error.tensor()),
            (Step::AllocateDevice, Some(1))
        );
        let text = "tensor 1: allocating device memory: no memory for 2000 bytes (CUDA_ERROR_OUT_OF_MEMORY)";
        assert_eq!(error.to_string(), text);
        simulated::settle();
        assert_eq!(device_bytes(), 0);
        assert_eq!(cuda.statistics().in_use, 0);
        assert_eq!(upload_message(&cuda, &given, &stream).len(), 3);
    });
}
