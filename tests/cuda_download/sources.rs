//! Sources that cudarc has, and what has to run before they are read, and after.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DeviceSlice};
use half::{bf16, f16};
use tensorwire::cuda::Source;
use tensorwire::device::{DeviceError, Download, ErrorKind, TensorInfo};
use tensorwire::tensor::Element;
use tensorwire::{DType, Descriptor};

use crate::common::{Given, PATIENCE, SLOT_BYTES, assert_same, fill, fill_by_address, open};
use crate::simulated::{self, Streams};

fn info(name: &str, dtype: DType, shape: &[usize]) -> TensorInfo {
    TensorInfo::new(&Descriptor::new(name, dtype, shape).unwrap())
}

fn named(name: &str, dtype: DType, byte: u8, len: usize) -> Given {
    Given {
        info: info(name, dtype, &[len / dtype.size()]),
        bytes: vec![byte; len],
    }
}

#[test]
fn whatever_cudarc_takes_is_a_source() {
    simulated::test("sources::whatever_cudarc_takes_is_a_source", || {
        let (cuda, stream) = open(4, SLOT_BYTES);
        let floats = stream.alloc_zeros::<f32>(100).unwrap();
        let mut halves = stream.alloc_zeros::<f16>(100).unwrap();
        let brains = stream.alloc_zeros::<bf16>(7).unwrap();
        let bools = stream.alloc_zeros::<bool>(9).unwrap();
        let bytes = stream.alloc_zeros::<u8>(24).unwrap();
        let pairs = stream.alloc_zeros::<[f32; 2]>(3).unwrap();
        fill(floats.device_ptr(&stream).0, 1, 400, &stream);
        fill(halves.device_ptr(&stream).0, 2, 200, &stream);
        fill(brains.device_ptr(&stream).0, 3, 14, &stream);
        fill(bools.device_ptr(&stream).0, 1, 9, &stream);
        fill(bytes.device_ptr(&stream).0, 5, 24, &stream);
        fill(pairs.device_ptr(&stream).0, 6, 24, &stream);
        let part = floats.slice(10..20);
        let half = halves.slice_mut(50..);
        let expected = [
            named("floats", DType::Float32, 1, 400),
            named("part", DType::Float32, 1, 40),
            named("half", DType::Float16, 2, 100),
            named("brains", DType::BFloat16, 3, 14),
            named("bools", DType::Bool, 1, 9),
            named("bytes", DType::UInt8, 5, 24),
            named("float8", DType::Float8E5M2, 5, 24),
            named("wide", DType::Complex128, 5, 16),
            named("pairs", DType::Complex64, 6, 24),
        ];
        let info = |index: usize| expected[index].info.clone();
        let wide = bytes.slice(..16);
        let sources = [
            Source::new(info(0), &floats).unwrap(),
            Source::new(info(1), &part).unwrap(),
            Source::new(info(2), &half).unwrap(),
            Source::new(info(3), &brains).unwrap(),
            Source::new(info(4), &bools).unwrap(),
            Source::new(info(5), &bytes).unwrap(),
            Source::from_bytes(info(6), &bytes).unwrap(),
            Source::from_bytes(info(7), &wide).unwrap(),
            Source::new(info(8), &pairs).unwrap(),
        ];
        assert!(sources[3].info().name() == "brains");
        let download = cuda.download_sources(sources, &stream, PATIENCE).unwrap();
        assert_same(download.finish(PATIENCE).unwrap().tensors(), &expected);
    });
}

#[test]
fn another_dtype_or_length_is_refused_before_any_call() {
    simulated::test(
        "sources::another_dtype_or_length_is_refused_before_any_call",
        || {
            fn refused<T: Element, D: DevicePtr<T>>(info: TensorInfo, source: &D) -> ErrorKind {
                Source::new::<T, D>(info, source).unwrap_err().kind()
            }

            let (_cuda, stream) = open(1, 256);
            let floats = stream.alloc_zeros::<f32>(10).unwrap();
            let bytes = stream.alloc_zeros::<u8>(40).unwrap();
            let before = simulated::scripted().then(|| simulated::calls("*"));
            let length = |expected, actual| ErrorKind::Length { expected, actual };
            let dtype = |expected, actual| ErrorKind::DType { expected, actual };
            let of = |dtype, len: usize| info("x", dtype, &[len]);
            for (found, expected) in [
                (refused(of(DType::Float32, 9), &floats), length(36, 40)),
                (refused(of(DType::Float32, 11), &floats), length(44, 40)),
                (refused(of(DType::Float32, 0), &floats), length(0, 40)),
                (
                    refused(of(DType::Int32, 10), &floats),
                    dtype(DType::Int32, DType::Float32),
                ),
                (
                    refused(of(DType::Float8E4M3Fn, 40), &bytes),
                    dtype(DType::Float8E4M3Fn, DType::UInt8),
                ),
            ] {
                assert_eq!(found, expected);
            }
            let error = Source::from_bytes(of(DType::Float64, 4), &bytes).unwrap_err();
            assert_eq!(error.kind(), length(32, 40));
            assert_eq!(
                error.to_string(),
                "copying to the host: 40 bytes where there is room for 32"
            );
            if let Some(before) = before {
                assert_eq!(simulated::calls("*"), before);
            }
        },
    );
}

/// What counts its bytes in a way that does not fit.
struct Endless(Arc<CudaStream>);

impl DeviceSlice<f64> for Endless {
    fn len(&self) -> usize {
        usize::MAX / 2 + 1
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.0
    }
}

impl DevicePtr<f64> for Endless {
    fn device_ptr<'a>(&'a self, _: &'a CudaStream) -> (u64, cudarc::driver::SyncOnDrop<'a>) {
        (0, cudarc::driver::SyncOnDrop::Record(None))
    }
}

#[test]
fn a_length_that_does_not_fit_is_refused() {
    simulated::test("sources::a_length_that_does_not_fit_is_refused", || {
        let (_cuda, stream) = open(1, 256);
        // 8 * (usize::MAX / 2 + 1) is 0, when it wraps.
        let error = Source::new(info("x", DType::Float64, &[0]), &Endless(stream)).unwrap_err();
        let (expected, actual) = (0, usize::MAX);
        assert_eq!(error.kind(), ErrorKind::Length { expected, actual });
    });
}

#[test]
fn the_producers_work_is_waited_for() {
    simulated::test("sources::the_producers_work_is_waited_for", || {
        let (cuda, stream) = open(2, 4096);
        let producer = cuda.context().new_stream().unwrap();
        let given = named("x", DType::UInt8, 9, 4096);
        let tensor = Given::new("x", DType::UInt8, &[4096], 1).upload(&cuda, &stream);
        let slice = producer.alloc_zeros::<u8>(4096).unwrap();
        tensor.wait_on(&producer).unwrap();
        if simulated::scripted() {
            simulated::stall(Streams::One(&producer));
        }
        // Neither is known to cudarc.
        fill_by_address(&tensor, 9, &producer);
        let pointer = slice.device_ptr(&producer).0;
        fill(pointer, 9, 4096, &producer);
        let sources = [
            Source::from(&tensor),
            Source::new(given.info.clone(), &slice).unwrap(),
        ];
        let mut download = cuda.download_sources(sources, &producer, PATIENCE).unwrap();
        if simulated::scripted() {
            assert!(!download.is_ready().unwrap());
            simulated::release(Streams::One(&producer));
        }
        let downloaded = download.finish(PATIENCE).unwrap();
        assert_same(downloaded.tensors(), &[given.clone(), given]);
        stream.join(&producer).unwrap();
    });
}

#[test]
fn without_tracking_what_the_producer_does_later_comes_later() {
    const NAME: &str = "sources::without_tracking_what_the_producer_does_later_comes_later";
    simulated::test(NAME, || {
        let (cuda, stream) = open(4, 4096);
        // SAFETY: streams are put in order by hand.
        unsafe { cuda.context().disable_event_tracking() };
        let given = named("x", DType::UInt8, 9, 4096);
        let tensor = Given::new("x", DType::UInt8, &[4096], 1).upload(&cuda, &stream);
        let slice = stream.alloc_zeros::<u8>(4096).unwrap();
        let pointer = slice.device_ptr(&stream).0;
        fill_by_address(&tensor, 9, &stream);
        fill(pointer, 9, 4096, &stream);
        let sources = [
            Source::from(&tensor),
            Source::new(given.info.clone(), &slice).unwrap(),
        ];
        if simulated::scripted() {
            simulated::stall(Streams::All);
        }
        let download = cuda.download_sources(sources, &stream, PATIENCE).unwrap();
        // Written to, and freed, in the order of the stream: the driver would see it if that came too early.
        fill_by_address(&tensor, 1, &stream);
        fill(pointer, 1, 4096, &stream);
        drop((tensor, slice));
        if simulated::scripted() {
            simulated::release(Streams::All);
        }
        let downloaded = download.finish(PATIENCE).unwrap();
        assert_same(downloaded.tensors(), &[given.clone(), given]);
    });
}

#[test]
fn a_slice_from_before_tracking_is_not_freed_too_early() {
    simulated::test(
        "sources::a_slice_from_before_tracking_is_not_freed_too_early",
        || {
            let (cuda, stream) = open(4, 4096);
            let producer = cuda.context().new_stream().unwrap();
            // SAFETY: streams are put in order by hand.
            unsafe { cuda.context().disable_event_tracking() };
            let slice = stream.alloc_zeros::<u8>(4096).unwrap();
            // SAFETY: the one slice from before is read in order, as is the point here.
            unsafe { cuda.context().enable_event_tracking() };
            producer.join(&stream).unwrap();
            let given = named("x", DType::UInt8, 0, 4096);
            if simulated::scripted() {
                simulated::stall(Streams::All);
            }
            let sources = [Source::new(given.info.clone(), &slice).unwrap()];
            let download = cuda.download_sources(sources, &producer, PATIENCE).unwrap();
            // On its own stream, which is not the producer.
            drop(slice);
            if simulated::scripted() {
                simulated::release(Streams::All);
            }
            assert_same(download.finish(PATIENCE).unwrap().tensors(), &[given]);
        },
    );
}

#[test]
fn tracked_sources_do_not_keep_the_producer_waiting() {
    simulated::test(
        "sources::tracked_sources_do_not_keep_the_producer_waiting",
        || {
            if !simulated::needs_script("tracked_sources_do_not_keep_the_producer_waiting") {
                return;
            }
            let (cuda, stream) = open(4, 4096);
            let given = Given::new("x", DType::UInt8, &[4096], 1);
            let tensor = given.upload(&cuda, &stream);
            let slice = stream.alloc_zeros::<u8>(4096).unwrap();
            tensor.wait(PATIENCE).unwrap();
            stream.synchronize().unwrap();
            // The second stream of the adapter is that to the host.
            simulated::stall(Streams::Made(1));
            let sources = [
                Source::from(&tensor),
                Source::new(info("y", DType::UInt8, &[4096]), &slice).unwrap(),
            ];
            let download = cuda.download_sources(sources, &stream, PATIENCE).unwrap();
            // A kernel that has nothing to do with it.
            stream.synchronize().unwrap();
            simulated::release(Streams::All);
            drop(download);
        },
    );
}
