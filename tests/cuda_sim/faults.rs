//! Every call of the driver fails once, in every operation: what is said, what is left, and whether it goes on.

use std::sync::Arc;

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr as _, DriverError};
use tensorwire::cuda::{Cuda, CudaError, PinnedBytes, Step, Tensor};
use tensorwire::device::{
    Device as _, DeviceError as _, DeviceTensor as _, ErrorKind, Landing as _,
};
use tensorwire::message::Decoder;
use tensorwire::transport::Wait;

use crate::given::{Given, SLOT_BYTES, frames, open, open_with, options, read_at};
use crate::simulated::{self, Live, Streams};

/// What the operations work on.
struct Bed {
    cuda: Cuda,
    stream: Arc<CudaStream>,
    other: Arc<CudaStream>,
    /// A few, in several allocations and slots.
    given: Vec<Given>,
    frames: Vec<Vec<u8>>,
    /// The same frames, pinned.
    pinned: Vec<PinnedBytes>,
    /// As long as the last tensor; the one is the stream's, the other the other's.
    slice: CudaSlice<u8>,
    copy: CudaSlice<u8>,
}

impl Bed {
    fn new() -> Self {
        let (cuda, stream) = open();
        let other = cuda.context().new_stream().unwrap();
        let lens = [5, 3 * SLOT_BYTES, 0, 700, 5000];
        let given: Vec<_> = lens
            .into_iter()
            .enumerate()
            .map(|(index, len)| Given::of_len(&index.to_string(), len))
            .collect();
        let frames = frames(&given);
        let pin = |frame: &Vec<u8>| {
            let pinned = cuda.register(frame.clone().into());
            pinned.map_err(|(_, error)| error).unwrap().share()
        };
        Self {
            pinned: frames.iter().map(pin).collect(),
            slice: stream.alloc_zeros(5000).unwrap(),
            copy: other.alloc_zeros(5000).unwrap(),
            cuda,
            stream,
            other,
            given,
            frames,
        }
    }

    /// Waits until nothing is under way, and returns what was parked.
    fn settle(&self) -> Result<(), DriverError> {
        simulated::settle();
        let parked = self.cuda.context().check_err();
        // What could not be recorded is recorded by the first, and has fired by the second.
        self.cuda.poll().unwrap();
        simulated::settle();
        self.cuda.poll().unwrap();
        parked
    }

    /// Fails unless what the operation was to bring is there.
    fn verify(&self, name: &str, arrived: &[(usize, Tensor)]) {
        for (index, tensor) in arrived {
            self.given[*index].assert_is(tensor);
        }
        let slice = match name {
            "upload_into" => &self.slice,
            "view" => &self.copy,
            _ => return,
        };
        let (address, _read) = slice.device_ptr(slice.stream());
        assert!(read_at(slice.stream(), address, 5000) == self.given[4].bytes);
    }
}

/// Who told that an operation failed.
#[derive(Debug)]
enum Told {
    Adapter(CudaError),
    Cudarc,
}

impl From<CudaError> for Told {
    fn from(error: CudaError) -> Self {
        Self::Adapter(error)
    }
}

impl From<DriverError> for Told {
    fn from(_: DriverError) -> Self {
        Self::Cudarc
    }
}

/// Tensors, each with the number of the one that it is to be.
type Arrived = Vec<(usize, Tensor)>;

/// (name, operation)
#[allow(clippy::type_complexity)]
const OPERATIONS: &[(&str, fn(&mut Bed) -> Result<Arrived, Told>)] = &[
    ("upload", |bed| {
        let tensor = (bed.cuda).upload(&bed.given[1].view(), &bed.stream, Wait::Forever)?;
        Ok(vec![(1, tensor)])
    }),
    ("upload_message", |bed| {
        let mut decoder = Decoder::new();
        let message = decoder.decode(&bed.frames).unwrap();
        let tensors = (bed.cuda).upload_message(&message, &bed.stream, Wait::Forever)?;
        Ok(tensors.into_iter().enumerate().collect())
    }),
    ("land", |bed| {
        let mut decoder = Decoder::new();
        let metadata = decoder.decode_metadata(&bed.frames[0]).unwrap();
        let mut landing = bed.cuda.land(&metadata, &bed.stream)?;
        for frame in &bed.frames[1..] {
            if let Err(error) = landing.copy_from(frame, Wait::Forever) {
                // When a slot could not be sent, its bytes are lost: the landing says so from then on.
                if error.step() == Step::CopyToDevice {
                    assert_eq!(landing.room(Wait::Never).err(), Some(error));
                    assert_eq!(landing.filled(0), Err(error));
                    assert_eq!(landing.finish().err(), Some(error));
                }
                return Err(error.into());
            }
        }
        Ok(landing.finish()?.into_iter().enumerate().collect())
    }),
    ("upload_into", |bed| {
        let view = bed.given[4].view();
        bed.cuda.upload_into(&view, &mut bed.slice, Wait::Forever)?;
        Ok(Vec::new())
    }),
    ("upload_pinned", |bed| {
        let (descriptor, frame) = (bed.given[1].descriptor(), bed.pinned[2].clone());
        let tensor = bed.cuda.upload_pinned(&descriptor, frame, &bed.stream)?;
        Ok(vec![(1, tensor)])
    }),
    ("upload_pinned_message", |bed| {
        let mut decoder = Decoder::new();
        let message = decoder.decode(&bed.pinned).unwrap();
        let tensors = bed.cuda.upload_pinned_message(&message, &bed.stream)?;
        Ok(tensors.into_iter().enumerate().collect())
    }),
    ("wait", |bed| {
        let tensor = (bed.cuda).upload(&bed.given[0].view(), &bed.stream, Wait::Forever)?;
        tensor.wait_on(&bed.other)?;
        tensor.wait(Wait::Forever)?;
        Ok(vec![(0, tensor)])
    }),
    ("view", |bed| {
        let tensor = (bed.cuda).upload(&bed.given[4].view(), &bed.stream, Wait::Forever)?;
        bed.other.memcpy_dtod(&tensor.bytes(), &mut bed.copy)?;
        Ok(vec![(4, tensor)])
    }),
];

/// (call, the step that is named when it fails)
const CALLS: &[(&str, Step)] = &[
    ("cuCtxGetCurrent", Step::Enter),
    ("cuCtxSetCurrent", Step::Enter),
    ("cuEventCreate", Step::CreateEvent),
    ("cuEventDestroy_v2", Step::Enter),
    ("cuEventQuery", Step::QueryEvent),
    ("cuEventRecord", Step::RecordEvent),
    ("cuEventSynchronize", Step::WaitEvent),
    ("cuMemAllocAsync", Step::AllocateDevice),
    ("cuMemAlloc_v2", Step::AllocateDevice),
    ("cuMemFreeAsync", Step::FreeDevice),
    ("cuMemFree_v2", Step::FreeDevice),
    ("cuMemcpyHtoDAsync_v2", Step::CopyToDevice),
    ("cuStreamSynchronize", Step::WaitEvent),
    ("cuStreamWaitEvent", Step::WaitEvent),
];

/// cudarc ignores that its guard could not record the read, and what is not recorded is not waited for.
fn is_cudarcs(operation: &str, call: &str) -> bool {
    operation == "view" && matches!(call, "cuEventRecord" | "cuCtxGetCurrent")
}

fn every_call_fails_once() {
    let mut bed = Bed::new();
    let mut failures = 0;
    for &(operation, run) in OPERATIONS {
        // Once before, so that what is made once is there.
        drop(run(&mut bed).unwrap());
        bed.settle().unwrap();
        let before: Vec<_> = CALLS
            .iter()
            .map(|(call, _)| simulated::calls(call))
            .collect();
        drop(run(&mut bed).unwrap());
        let count = |(&(call, _), before)| simulated::calls(call) - before;
        let counts: Vec<_> = CALLS.iter().zip(before).map(count).collect();
        bed.settle().unwrap();
        for (&(call, step), count) in CALLS.iter().zip(counts) {
            if is_cudarcs(operation, call) {
                continue;
            }
            for number in 0..count {
                let code = CUresult::CUDA_ERROR_INVALID_VALUE;
                let what = format!("{call} number {number} in {operation}");
                let (live, failed) = (simulated::live(), simulated::failed());
                simulated::fail(call, number, code);
                let result = run(&mut bed);
                let told = match &result {
                    Ok(_) => false,
                    Err(Told::Cudarc) => true,
                    Err(Told::Adapter(error)) => {
                        assert_told(error, call, step, &what);
                        true
                    }
                };
                let mut parked = bed.cuda.context().check_err();
                // What came in spite of it is all there; else it goes while a call may fail yet, as in a drop.
                if let Ok(arrived) = result {
                    if simulated::failed() > failed {
                        bed.verify(operation, &arrived);
                    }
                    drop(arrived);
                }
                simulated::fail_no_more();
                let later = bed.settle();
                parked = parked.and(later);
                if simulated::failed() > failed {
                    failures += 1;
                    assert!(told || parked.is_err(), "nobody tells of {what}");
                }
                assert_eq!(simulated::live(), live, "{what}");
                let statistics = bed.cuda.statistics();
                assert_eq!((statistics.in_use, statistics.lost), (0, 0), "{what}");
                assert_eq!(bed.cuda.fault(), None);

                let arrived = run(&mut bed).unwrap();
                bed.verify(operation, &arrived);
                drop(arrived);
                bed.settle().unwrap();
                assert_eq!(simulated::live(), live, "after {what}");
            }
        }
    }
    println!("{failures} failures");
    assert!(failures > 150, "{failures}");
}

#[track_caller]
fn assert_told(error: &CudaError, call: &str, step: Step, what: &str) {
    assert_eq!(error.kind(), ErrorKind::Backend, "{what}: {error}");
    let code = error.code().map(|code| code.value());
    assert_eq!(code, Some(1), "{what}: {error}");
    // What was parked comes out at the next call; a context is made current at any step.
    let named = error.step() == step || error.step() == Step::Enter || call.starts_with("cuCtx");
    assert!(named, "{what}: {error}");
    if matches!(error.step(), Step::AllocateDevice | Step::CopyToDevice) {
        assert!(error.tensor().is_some(), "{what}: {error}");
    }
}

/// The same, of whichever tensor.
#[track_caller]
fn assert_same(error: CudaError, fault: CudaError, what: &str) {
    let parts = |error: CudaError| (error.kind(), error.step(), error.code());
    assert_eq!(parts(error), parts(fault), "{what}");
}

#[test]
fn every_call_that_fails_is_told_and_leaves_nothing_behind() {
    let name = "faults::every_call_that_fails_is_told_and_leaves_nothing_behind";
    simulated::test(name, || {
        if simulated::needs_script(name) {
            every_call_fails_once();
        }
    });
}

#[test]
fn the_same_holds_without_memory_pools() {
    let name = "faults::the_same_holds_without_memory_pools";
    simulated::test_with(name, &[("SIMCUDA_POOLS", "0")], || {
        if simulated::needs_script(name) {
            every_call_fails_once();
        }
    });
}

#[test]
fn an_error_that_does_not_go_away_makes_the_adapter_unusable() {
    let name = "faults::an_error_that_does_not_go_away_makes_the_adapter_unusable";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let mut failures = 0;
        for &(operation, run) in OPERATIONS {
            for &(call, _) in CALLS {
                if is_cudarcs(operation, call) {
                    continue;
                }
                let what = format!("{call} in {operation}");
                let mut bed = Bed::new();
                let failed = simulated::failed();
                simulated::fail(call, 0, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
                let first = run(&mut bed).map(drop);
                simulated::fail_no_more();
                if simulated::failed() == failed {
                    continue;
                }
                failures += 1;
                // What is parked is known when the next call looks.
                let second = run(&mut bed).map(drop);
                assert!(first.is_err() || second.is_err(), "{what}");
                let fault = bed.cuda.fault().unwrap_or_else(|| panic!("{what}"));
                assert_eq!(fault.kind(), ErrorKind::Unusable);
                assert_eq!(
                    fault.code().unwrap().to_string(),
                    "CUDA_ERROR_ILLEGAL_ADDRESS"
                );
                for &(_, run) in OPERATIONS {
                    match run(&mut bed).map(drop) {
                        Err(Told::Adapter(error)) => assert_same(error, fault, &what),
                        other => panic!("{what}: {other:?}"),
                    }
                }
                let error = bed.cuda.take_pinned(1, Wait::Never).unwrap_err();
                assert_same(error, fault, &what);
                drop(bed);
                simulated::settle();
            }
        }
        assert!(failures > 40, "{failures}");
    });
}

#[test]
fn a_copy_that_breaks_the_device_is_told_by_whoever_looks_next() {
    let name = "faults::a_copy_that_breaks_the_device_is_told_by_whoever_looks_next";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let mut bed = Bed::new();
        let good = bed
            .cuda
            .upload(&bed.given[0].view(), &bed.stream, Wait::Forever);
        let good = good.unwrap();
        bed.verify("upload", &[]);
        good.wait(Wait::Forever).unwrap();
        simulated::break_copy(0, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        simulated::stall(Streams::All);
        let tensor = bed
            .cuda
            .upload(&bed.given[0].view(), &bed.stream, Wait::Forever);
        let tensor = tensor.unwrap();
        assert_eq!(tensor.is_ready(), Ok(false));
        simulated::release(Streams::All);
        let error = tensor.wait(Wait::Forever).unwrap_err();
        assert_eq!(
            (error.kind(), error.step()),
            (ErrorKind::Backend, Step::QueryEvent)
        );
        let text = "querying an event: CUDA_ERROR_ILLEGAL_ADDRESS";
        assert_eq!(error.to_string(), text);
        let fault = bed.cuda.fault().unwrap();
        assert_eq!(
            (fault.kind(), fault.step()),
            (ErrorKind::Unusable, Step::QueryEvent)
        );
        let text = "querying an event: the device is unusable after an earlier error (CUDA_ERROR_ILLEGAL_ADDRESS)";
        assert_eq!(fault.to_string(), text);
        for &(operation, run) in OPERATIONS {
            match run(&mut bed).map(drop) {
                Err(Told::Adapter(error)) => assert_same(error, fault, operation),
                other => panic!("{operation}: {other:?}"),
            }
        }
        assert_eq!(tensor.is_ready(), Err(fault));
        assert_eq!(tensor.wait_on(&bed.other), Err(fault));
        assert_eq!(bed.cuda.poll(), Err(fault));
        // Nothing of this panics, though every call of the driver fails.
        drop((good, tensor));
        drop(bed);
        // Nobody says that the copy has done with the ring: its memory, which keeps the context, is not freed.
        let (pinned, contexts) = (1, 1);
        simulated::leaves(Live {
            pinned,
            contexts,
            ..Live::default()
        });
    });
}

#[test]
fn a_slot_with_a_copy_that_was_put_on_the_stream_is_not_used_again_before() {
    let name = "faults::a_slot_with_a_copy_that_was_put_on_the_stream_is_not_used_again_before";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let (cuda, stream) = open_with(options().with_ring(1, SLOT_BYTES));
        // Two copies out of one slot, of which the second is refused.
        let given = [Given::of_len("small", 5), Given::of_len("large", 1100)];
        let frames = frames(&given);
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        simulated::stall(Streams::All);
        simulated::fail(
            "cuMemcpyHtoDAsync_v2",
            1,
            CUresult::CUDA_ERROR_NOT_PERMITTED,
        );
        let error = cuda
            .upload_message(&message, &stream, Wait::Never)
            .unwrap_err();
        assert_eq!(
            (error.step(), error.tensor()),
            (Step::CopyToDevice, Some(1))
        );
        assert_eq!(cuda.statistics().in_use, 1);
        let error = cuda
            .upload_message(&message, &stream, Wait::Never)
            .unwrap_err();
        let (needed, free) = (1, 0);
        assert_eq!(error.kind(), ErrorKind::RingFull { needed, free });
        simulated::release(Streams::All);
        let tensors = cuda
            .upload_message(&message, &stream, Wait::Forever)
            .unwrap();
        for (given, tensor) in given.iter().zip(tensors.iter()) {
            given.assert_is(tensor);
        }
    });
}
