//! Tensors out of frames that are pinned: from where they lie.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUresult;
use tensorwire::DType;
use tensorwire::cuda::{Cuda, Pinned, PinnedBytes, Step};
use tensorwire::device::{DeviceError as _, DeviceTensor as _, ErrorKind};
use tensorwire::error::CastError;
use tensorwire::message::Decoder;
use tensorwire::transport::Wait;

use crate::given::{Given, SLOT_BYTES, SLOTS, calls, device_bytes, frames, open};
use crate::simulated::{self, Streams};

/// The bytes in pinned memory of each kind.
fn pinned(cuda: &Cuda, bytes: &[u8]) -> [Pinned; 3] {
    let mut allocated = cuda.allocate_pinned(bytes.len()).unwrap();
    allocated.as_mut().copy_from_slice(bytes);
    let mut taken = cuda.take_pinned(bytes.len(), Wait::Forever).unwrap();
    taken.as_mut().copy_from_slice(bytes);
    let registered = cuda.register(bytes.into()).map_err(|(_, error)| error);
    [allocated, taken, registered.unwrap()]
}

/// Waits for what is on the streams, and lets the adapter see that it is over.
fn settle(cuda: &Cuda, stream: &Arc<CudaStream>) {
    if simulated::scripted() {
        simulated::settle();
    }
    stream.synchronize().unwrap();
    cuda.poll().unwrap();
}

#[test]
fn a_pinned_frame_is_copied_from_where_it_lies() {
    simulated::test(
        "frames::a_pinned_frame_is_copied_from_where_it_lies",
        || {
            let (cuda, stream) = open();
            let given = Given::new("latents", DType::Float32, &[2500]);
            for frame in pinned(&cuda, &given.bytes) {
                // The ring has no part in it: the one copy, of all bytes, has no other pinned memory to come from.
                let before = (cuda.statistics().taken, calls("cuMemcpyHtoDAsync_v2"));
                let frame = frame.share();
                let tensor = cuda
                    .upload_pinned(&given.descriptor(), frame, &stream)
                    .unwrap();
                let after = (cuda.statistics().taken, calls("cuMemcpyHtoDAsync_v2"));
                assert_eq!(after.0, before.0);
                if simulated::scripted() {
                    assert_eq!(after.1, before.1 + 1);
                }
                given.assert_is(&tensor);
                assert_eq!(tensor.view::<f32>().map(|_| ()), Ok(()));
            }
            settle(&cuda, &stream);
            assert_eq!(cuda.statistics().in_use, 0);
        },
    );
}

#[test]
fn a_frame_stays_until_the_device_has_done_with_it() {
    let name = "frames::a_frame_stays_until_the_device_has_done_with_it";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let (cuda, stream) = open();
        let given = Given::of_len("latents", 3 * SLOT_BYTES);
        let at_first = simulated::live();
        let mut tensors = Vec::new();
        simulated::stall(Streams::All);
        for frame in pinned(&cuda, &given.bytes) {
            let frame = frame.share();
            let tensor = cuda.upload_pinned(&given.descriptor(), frame.clone(), &stream);
            tensors.push(tensor.unwrap());
            // The device has a share of it.
            drop(frame.into_pinned().unwrap_err());
        }
        cuda.poll().unwrap();
        let live = simulated::live();
        assert_eq!(live.pinned, at_first.pinned + 1);
        assert_eq!(live.registered, at_first.registered + 1);
        assert_eq!(cuda.statistics().in_use, SLOTS);
        simulated::release(Streams::All);
        settle(&cuda, &stream);
        let live = simulated::live();
        assert_eq!(live.pinned, at_first.pinned);
        assert_eq!(live.registered, at_first.registered);
        assert_eq!(cuda.statistics().in_use, 0);
        for tensor in &tensors {
            given.assert_is(tensor);
        }
    });
}

#[test]
fn frames_of_a_message_that_failed_half_way_stay_until_the_device_has_done_with_them() {
    let name =
        "frames::frames_of_a_message_that_failed_half_way_stay_until_the_device_has_done_with_them";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let (cuda, stream) = open();
        let given = ["first", "second", "third"].map(|name| Given::of_len(name, 5000));
        let at_first = simulated::live().pinned;
        let frames = frames(&given);
        let frames = frames.iter().map(|frame| {
            let mut memory = cuda.allocate_pinned(frame.len()).unwrap();
            memory.as_mut().copy_from_slice(frame);
            memory.share()
        });
        let frames: Vec<PinnedBytes> = frames.collect();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        simulated::stall(Streams::All);
        let code = CUresult::CUDA_ERROR_INVALID_VALUE;
        simulated::fail("cuMemcpyHtoDAsync_v2", 1, code);
        let error = cuda.upload_pinned_message(&message, &stream).unwrap_err();
        assert_eq!(
            (error.step(), error.tensor()),
            (Step::CopyToDevice, Some(1))
        );
        drop(frames);
        cuda.poll().unwrap();
        assert_eq!(simulated::live().pinned, at_first + 3);
        simulated::release(Streams::All);
        settle(&cuda, &stream);
        assert_eq!(simulated::live().pinned, at_first);
    });
}

#[test]
fn a_frame_can_be_received_into_again_when_its_upload_is_over() {
    simulated::test(
        "frames::a_frame_can_be_received_into_again_when_its_upload_is_over",
        || {
            let (cuda, stream) = open();
            let mut frame = cuda.allocate_pinned(5000).unwrap();
            for round in 0..10 {
                let given = Given::new(&format!("round {round}"), DType::UInt8, &[5000]);
                frame.as_mut().copy_from_slice(&given.bytes);
                let bytes = frame.share();
                let tensor = cuda
                    .upload_pinned(&given.descriptor(), bytes.clone(), &stream)
                    .unwrap();
                tensor.wait(Wait::Forever).unwrap();
                cuda.poll().unwrap();
                frame = bytes.into_pinned().unwrap();
                given.assert_is(&tensor);
            }
        },
    );
}

#[test]
fn a_message_in_pinned_frames_is_copied_from_where_it_lies() {
    simulated::test(
        "frames::a_message_in_pinned_frames_is_copied_from_where_it_lies",
        || {
            let (cuda, stream) = open();
            let mut given: Vec<_> = [5, 2000, 0, 9000, 7]
                .into_iter()
                .enumerate()
                .map(|(index, len)| Given::of_len(&index.to_string(), len))
                .collect();
            given.push(Given::new("mask", DType::Bool, &[300]));
            given[5].bytes[299] = 3;
            // All in one piece of pinned memory, as a transport receives into one: at any address.
            let frames = frames(&given);
            let mut memory = cuda
                .allocate_pinned(frames.iter().map(Vec::len).sum())
                .unwrap();
            let mut ranges = Vec::new();
            let mut end = 0;
            for frame in &frames {
                let start = end;
                end += frame.len();
                memory.as_mut()[start..end].copy_from_slice(frame);
                ranges.push(start..end);
            }
            let memory = memory.share();
            let frames: Vec<PinnedBytes> = ranges
                .into_iter()
                .map(|range| memory.slice(range).unwrap())
                .collect();
            drop(memory);
            let mut decoder = Decoder::new();
            let message = decoder.decode(&frames).unwrap();
            assert_eq!(message.payload(1).unwrap().as_ref(), given[1].bytes);
            assert!(message.payload(6).is_none());
            let before = (calls("cuMemcpyHtoDAsync_v2"), calls("cuMemAllocAsync"));
            let tensors = cuda.upload_pinned_message(&message, &stream).unwrap();
            let after = (calls("cuMemcpyHtoDAsync_v2"), calls("cuMemAllocAsync"));
            if simulated::scripted() {
                // One copy for each frame that has bytes; the small ones in one allocation.
                assert_eq!(after, (before.0 + 5, before.1 + 3));
            }
            assert_eq!(cuda.statistics().taken, 0);
            drop(frames);
            for (given, tensor) in given.iter().zip(tensors.iter()) {
                given.assert_is(tensor);
            }
            let (index, byte) = (299, 3);
            let error = CastError::InvalidBool { index, byte };
            let mask = tensors.get(5).unwrap();
            assert_eq!(mask.view::<bool>().err(), Some(error));
            drop(tensors);
            settle(&cuda, &stream);
            assert_eq!(device_bytes(), 0);
        },
    );
}

#[test]
fn frames_of_another_length_are_refused_and_empty_ones_cost_nothing() {
    simulated::test(
        "frames::frames_of_another_length_are_refused_and_empty_ones_cost_nothing",
        || {
            let (cuda, stream) = open();
            let given = Given::of_len("latents", 10);
            let frame = cuda.take_pinned(11, Wait::Never).unwrap().share();
            let before = calls("*");
            for actual in [0, 9, 11] {
                let frame = frame.slice(0..actual).unwrap();
                let error = cuda
                    .upload_pinned(&given.descriptor(), frame, &stream)
                    .unwrap_err();
                let expected = 10;
                assert_eq!(error.kind(), ErrorKind::Length { expected, actual });
                assert_eq!((error.step(), error.tensor()), (Step::Stage, Some(0)));
            }
            let none = Given::of_len("none", 0);
            let empty = frame.slice(3..3).unwrap();
            let tensor = cuda
                .upload_pinned(&none.descriptor(), empty, &stream)
                .unwrap();
            assert_eq!(tensor.is_ready(), Ok(true));
            assert_eq!(calls("*"), before);
        },
    );
}
