//! Sources of others: of another handle to the context, of one who panics, and of who keeps them longer than the adapter.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DeviceSlice, SyncOnDrop};
use tensorwire::cuda::{Cuda, Options, Source};
use tensorwire::device::Download;
use tensorwire::transport::Wait;
use tensorwire::{DType, Descriptor, device::TensorInfo};

use crate::common::{Given, PATIENCE, assert_same, fill, in_use, open};
use crate::simulated::{self, Streams};

const LEN: usize = 4096;

fn given(byte: u8) -> Given {
    Given {
        info: TensorInfo::new(&Descriptor::new("x", DType::UInt8, &[LEN]).unwrap()),
        bytes: vec![byte; LEN],
    }
}

/// Bytes of this value, in the order of the slice's own stream.
fn filled(stream: &Arc<CudaStream>, byte: u8) -> CudaSlice<u8> {
    let slice = stream.alloc_zeros::<u8>(LEN).unwrap();
    fill(slice.device_ptr(stream).0, byte, LEN, stream);
    slice
}

fn stall() {
    if simulated::scripted() {
        simulated::stall(Streams::All);
    }
}

fn release() {
    if simulated::scripted() {
        simulated::release(Streams::All);
    }
}

/// A handle that has made no stream does not look at what cudarc's events say, though others of the same context do.
#[test]
fn a_source_of_another_handle_is_not_freed_or_changed_too_early() {
    const NAME: &str = "foreign::a_source_of_another_handle_is_not_freed_or_changed_too_early";
    simulated::test(NAME, || {
        let other = CudaContext::new(0).unwrap().default_stream();
        let (cuda, stream) = open(4, LEN);
        for (producer, has_stream) in [
            (&other, false),
            (&stream, false),
            (&other, true),
            (&stream, true),
        ] {
            let mut slice = filled(&other, 7);
            if *producer != other {
                producer.join(&other).unwrap();
            }
            for byte in [7, 8] {
                let source = Source::new(given(byte).info, &slice).unwrap();
                // The first stream of a handle waits for all there is.
                let another = has_stream.then(|| other.context().new_stream().unwrap());
                stall();
                let download = cuda.download_sources([source], producer, PATIENCE).unwrap();
                // From here on it does not look any more.
                drop(another);
                if byte == 7 {
                    other.memset_zeros(&mut slice).unwrap();
                    fill(slice.device_ptr(&other).0, 8, LEN, &other);
                    if *producer != other {
                        producer.join(&other).unwrap();
                    }
                } else {
                    drop(slice);
                    slice = filled(&other, 9);
                }
                release();
                assert_same(download.finish(PATIENCE).unwrap().tensors(), &[given(byte)]);
            }
        }
    });
}

#[test]
fn a_source_of_the_default_stream_outlasts_the_adapter() {
    const NAME: &str = "foreign::a_source_of_the_default_stream_outlasts_the_adapter";
    simulated::test(NAME, || {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        let slice = filled(&stream, 7);
        let options = Options::new().with_ring(2, LEN);
        let cuda = Cuda::with_context(context, options).unwrap();
        stall();
        let source = Source::new(given(7).info, &slice).unwrap();
        let download = cuda.download_sources([source], &stream, PATIENCE).unwrap();
        // The context has no stream any more but the default one, were it not for the download.
        drop(cuda);
        drop(slice);
        release();
        assert_same(download.finish(PATIENCE).unwrap().tensors(), &[given(7)]);
    });
}

/// Tells where it lies, or not.
struct Moody {
    slice: CudaSlice<u8>,
    stream: Arc<CudaStream>,
    tells: bool,
    asked: std::cell::Cell<u32>,
    /// How often it says what its stream is.
    names: u32,
}

impl DeviceSlice<u8> for Moody {
    fn len(&self) -> usize {
        LEN
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.asked.set(self.asked.get() + 1);
        assert!(self.asked.get() <= self.names, "no stream");
        &self.stream
    }
}

impl DevicePtr<u8> for Moody {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        assert!(self.tells, "no pointer");
        let (pointer, _guard) = self.slice.device_ptr(stream);
        (pointer, SyncOnDrop::Record(None))
    }
}

#[test]
fn a_source_that_panics_leaves_no_slot_to_the_device() {
    const NAME: &str = "foreign::a_source_that_panics_leaves_no_slot_to_the_device";
    simulated::test(NAME, || {
        let (cuda, stream) = open(2, LEN);
        let first = filled(&stream, 7);
        for (tells, names) in [(false, 9), (true, 0), (true, 1), (true, 2), (true, 3)] {
            let second = Moody {
                slice: filled(&stream, 8),
                stream: stream.clone(),
                tells,
                asked: std::cell::Cell::new(0),
                names,
            };
            stream.synchronize().unwrap();
            stall();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let sources = [
                    Source::new(given(7).info, &first).unwrap(),
                    Source::new(given(8).info, &second).unwrap(),
                ];
                drop(cuda.download_sources(sources, &stream, PATIENCE).unwrap());
            }));
            assert!(tells || outcome.is_err());
            // Whatever is free by now is nobody else's.
            let mut free = Vec::new();
            while let Ok(mut pinned) = cuda.take_pinned(LEN, Wait::Never) {
                pinned.as_mut().fill(1);
                free.push(pinned);
            }
            release();
            drop(second);
        }
        if simulated::scripted() {
            simulated::settle();
        }
        assert_eq!(in_use(&cuda), 0);
    });
}
