//! Code that is not the adapter's: it panics, it lies, it comes back, all without a line of `unsafe`.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop};
use tensorwire::cuda::{Cuda, Download, Source};
use tensorwire::device::{Device as _, TensorInfo};
use tensorwire::message::Decoder;
use tensorwire::transport::Wait;

use crate::given::{Given, SLOT_BYTES, SLOTS, frames, open, options};
use crate::simulated::{self, Streams};

/// A slice that panics when it is asked for its stream the n-th time, or for its address.
struct Panics {
    slice: CudaSlice<u8>,
    streams_left: Cell<usize>,
    has_address: bool,
}

impl DeviceSlice<u8> for Panics {
    fn len(&self) -> usize {
        self.slice.len()
    }

    fn stream(&self) -> &Arc<CudaStream> {
        let left = self.streams_left.get().checked_sub(1);
        self.streams_left.set(left.expect("no stream"));
        self.slice.stream()
    }
}

impl DevicePtr<u8> for Panics {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        assert!(self.has_address, "no address");
        // Nothing that cudarc would track.
        let (address, _) = self.slice.device_ptr(stream);
        (address, SyncOnDrop::Record(None))
    }
}

impl DevicePtrMut<u8> for Panics {
    fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        assert!(self.has_address, "no address");
        self.slice.device_ptr_mut(stream)
    }
}

fn panics<T>(work: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

#[test]
fn slots_that_are_being_written_to_are_not_free_when_a_source_panics() {
    let name = "strangers::slots_that_are_being_written_to_are_not_free_when_a_source_panics";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        for (streams_left, has_address) in [(0, true), (1, true), (2, true), (9, false)] {
            let (cuda, stream) = open();
            let given = Given::of_len("latents", 3000);
            let info = TensorInfo::new(&given.descriptor());
            let mut good: CudaSlice<u8> = stream.alloc_zeros(3000).unwrap();
            cuda.upload_into(&given.view(), &mut good, Wait::Forever)
                .unwrap();
            let bad = Panics {
                slice: stream.alloc_zeros(3000).unwrap(),
                streams_left: Cell::new(streams_left),
                has_address,
            };
            stream.synchronize().unwrap();
            simulated::stall(Streams::All);
            let mut download: Option<Download> = None;
            let _is_caught = panics(|| {
                let sources = [
                    Source::new::<u8, _>(info.clone(), &good).unwrap(),
                    Source::from_bytes(info.clone(), &bad).unwrap(),
                ];
                let begun = cuda.download_sources(sources, &stream, Wait::Never);
                download = begun.ok();
            });
            // Sources and slots go at once.
            drop((good, bad));
            cuda.poll().unwrap();
            for len in [SLOTS * SLOT_BYTES, SLOT_BYTES, 1] {
                if let Ok(mut pinned) = cuda.take_pinned(len, Wait::Never) {
                    pinned.as_mut().fill(7);
                    simulated::release(Streams::All);
                    stream.synchronize().unwrap();
                    simulated::settle();
                    assert!(pinned.as_ref().iter().all(|byte| *byte == 7));
                }
            }
            simulated::release(Streams::All);
            drop(download);
        }
    });
}

#[test]
fn a_target_that_panics_leaves_all_as_it_was() {
    let name = "strangers::a_target_that_panics_leaves_all_as_it_was";
    simulated::test(name, || {
        let (cuda, stream) = open();
        let given = Given::of_len("latents", 5 * SLOT_BYTES);
        for (streams_left, has_address) in [(0, true), (9, false)] {
            let mut bad = Panics {
                slice: stream.alloc_zeros(given.bytes.len()).unwrap(),
                streams_left: Cell::new(streams_left),
                has_address,
            };
            assert!(panics(|| cuda.upload_into(
                &given.view(),
                &mut bad,
                Wait::Forever
            )));
        }
        cuda.poll().unwrap();
        assert_eq!(cuda.statistics().in_use, 0);
    });
}

/// A frame that is another one each time it is asked for, and panics in the end.
struct Fickle {
    frames: Vec<Vec<u8>>,
    asked: Cell<usize>,
    panics_at: usize,
}

impl AsRef<[u8]> for Fickle {
    fn as_ref(&self) -> &[u8] {
        let asked = self.asked.get();
        self.asked.set(asked + 1);
        assert_ne!(asked, self.panics_at, "not again");
        &self.frames[asked.min(self.frames.len() - 1)]
    }
}

#[test]
fn frames_that_change_or_panic_are_errors_and_nothing_is_left_behind() {
    let name = "strangers::frames_that_change_or_panic_are_errors_and_nothing_is_left_behind";
    simulated::test(name, || {
        let (cuda, stream) = open();
        let given = [
            Given::of_len("a", 3 * SLOT_BYTES),
            Given::of_len("b", 2 * SLOT_BYTES),
        ];
        let mut arrived = 0;
        for panics_at in 0..6 {
            for later in [0, 1, SLOT_BYTES, 100 * SLOT_BYTES] {
                for same in 0..6 {
                    let fickle = frames(&given)
                        .into_iter()
                        .enumerate()
                        .map(|(index, frame)| {
                            let mut frames = vec![frame; same + 1];
                            if index > 0 {
                                frames.push(vec![1; later]);
                            }
                            Fickle {
                                frames,
                                asked: Cell::new(0),
                                panics_at: if index == 2 { panics_at } else { usize::MAX },
                            }
                        });
                    let fickle: Vec<_> = fickle.collect();
                    let _ = catch_unwind(AssertUnwindSafe(|| {
                        let mut decoder = Decoder::new();
                        let Ok(message) = decoder.decode(&fickle) else {
                            return;
                        };
                        if let Ok(tensors) = cuda.upload_message(&message, &stream, Wait::Forever) {
                            arrived += 1;
                            for (tensor, given) in tensors.iter().zip(&given) {
                                given.assert_is(tensor);
                            }
                        }
                    }));
                }
            }
        }
        assert!(arrived > 0);
        stream.synchronize().unwrap();
        if simulated::scripted() {
            simulated::settle();
        }
        cuda.poll().unwrap();
        assert_eq!(cuda.statistics().in_use, 0);
    });
}

#[test]
fn a_tensor_that_many_streams_have_read_is_freed_on_a_small_stack() {
    let name = "strangers::a_tensor_that_many_streams_have_read_is_freed_on_a_small_stack";
    simulated::test(name, || {
        let (cuda, stream) = open();
        let given = Given::of_len("latents", 1);
        let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
        let streams: Vec<_> = (0..1500)
            .map(|_| cuda.context().new_stream().unwrap())
            .collect();
        for other in &streams {
            let bytes = tensor.bytes();
            drop(bytes.device_ptr(other));
        }
        let small = thread::Builder::new().stack_size(32 << 10);
        small.spawn(move || drop(tensor)).unwrap().join().unwrap();
    });
}

thread_local! {
    static LAST: RefCell<Vec<Box<dyn std::any::Any>>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn all_can_be_dropped_when_a_thread_ends() {
    let name = "strangers::all_can_be_dropped_when_a_thread_ends";
    simulated::test(name, || {
        for _ in 0..10 {
            thread::spawn(|| {
                let (cuda, stream) = open();
                let given = Given::of_len("latents", 7 * SLOT_BYTES);
                let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
                let small = cuda
                    .upload(&Given::of_len("b", 10).view(), &stream, Wait::Forever)
                    .unwrap();
                let download = cuda.download(&[&small], &stream, Wait::Forever).unwrap();
                let pinned = cuda.take_pinned(1, Wait::Forever).unwrap();
                let frame = cuda.allocate_pinned(3000).unwrap().share();
                let kept = Given::of_len("c", 3000);
                let third = cuda.upload_pinned(&kept.descriptor(), frame, &stream);
                LAST.with_borrow_mut(|last| {
                    last.push(Box::new(cuda));
                    last.push(Box::new((tensor, small, third)));
                    last.push(Box::new(download));
                    last.push(Box::new((pinned, stream)));
                });
            })
            .join()
            .unwrap();
        }
    });
}

#[test]
fn a_source_of_another_device_is_refused() {
    let name = "strangers::a_source_of_another_device_is_refused";
    simulated::test_with(name, &[("SIMCUDA_DEVICES", "2")], || {
        if !simulated::needs_script(name) {
            return;
        }
        let (cuda, stream) = open();
        let other = Cuda::open(1, options()).unwrap();
        let abroad = other.context().new_stream().unwrap();
        let given = Given::of_len("latents", 3000);
        let tensor = other.upload(&given.view(), &abroad, Wait::Never).unwrap();
        let copies = simulated::calls("cuMemcpyDtoHAsync_v2");
        for producer in [&stream, &abroad] {
            let refused = cuda
                .download(&[&tensor], producer, Wait::Never)
                .unwrap_err();
            assert!(refused.code().is_some());
        }
        assert_eq!(simulated::calls("cuMemcpyDtoHAsync_v2"), copies);
        assert_eq!(cuda.statistics().in_use, 0);
        // A view on a stream of another context: whoever reads there is waited for.
        let view = tensor.bytes();
        drop(view.device_ptr(&stream));
        drop(tensor);
    });
}
