//! Every call of the driver that fails on the way out.

use cudarc::driver::sys::CUresult;
use tensorwire::DType;
use tensorwire::cuda::{Cuda, CudaError, Source, Step};
use tensorwire::device::{Device, DeviceError, Download, Downloaded, ErrorKind};

use crate::common::{Given, PATIENCE, SLOT_BYTES, assert_same, in_use, open, upload_all, variety};
use crate::simulated::{self, Streams};

const CODE: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// What was done before may have failed in a drop: that is told once, by the next call.
fn settle(cuda: &Cuda) {
    simulated::fail_no_more();
    simulated::settle();
    let _parked = cuda.poll();
    // That may have recorded what could not be recorded before.
    simulated::settle();
    cuda.poll().unwrap();
}

/// Fails each call of `work` once in turn, which is given what `prepare` makes; each error is checked, and what
/// follows works.
fn each_call_fails<T>(
    cuda: &Cuda,
    given: &[Given],
    mut prepare: impl FnMut() -> T,
    mut work: impl FnMut(T) -> Result<Downloaded, CudaError>,
) {
    let mut errors = 0;
    for nth in 0.. {
        let failed = simulated::failed();
        let prepared = prepare();
        simulated::fail("*", nth, CODE);
        let result = work(prepared);
        let has_failed = simulated::failed() > failed;
        if let Err(error) = &result {
            assert!(has_failed, "call {nth}: {error}");
            assert_eq!(error.kind(), ErrorKind::Backend, "call {nth}");
            let code = error.code().unwrap();
            assert_eq!(code.to_string(), "CUDA_ERROR_INVALID_VALUE", "call {nth}");
            errors += 1;
        }
        if let Ok(downloaded) = result {
            assert_same(downloaded.tensors(), given);
        }
        settle(cuda);
        assert_eq!(in_use(cuda), 0, "after call {nth}");
        assert!(cuda.fault().is_none());
        assert_same(work(prepare()).unwrap().tensors(), given);
        if !has_failed {
            break;
        }
    }
    assert!(errors > 5, "{errors} errors");
}

#[test]
fn each_call_that_fails_is_told_and_costs_nothing() {
    simulated::test(
        "faults::each_call_that_fails_is_told_and_costs_nothing",
        || {
            if !simulated::needs_script("each_call_that_fails_is_told_and_costs_nothing") {
                return;
            }
            let (cuda, stream) = open(4, SLOT_BYTES);
            let given = variety(3);
            let tensors = upload_all(&cuda, &stream, &given);
            let all: Vec<_> = tensors.iter().collect();
            let prepare = || ();
            each_call_fails(&cuda, &given, prepare, |()| {
                let download = cuda.download(&all, &stream, PATIENCE)?;
                download.finish(PATIENCE).map_err(|(_, error)| error)
            });
        },
    );
}

#[test]
fn without_tracking_too() {
    simulated::test("faults::without_tracking_too", || {
        if !simulated::needs_script("without_tracking_too") {
            return;
        }
        let (cuda, stream) = open(4, 4096);
        let other = cuda.context().new_stream().unwrap();
        // SAFETY: streams are put in order by hand.
        unsafe { cuda.context().disable_event_tracking() };
        let given = [
            Given::new("x", DType::UInt8, &[4096], 1),
            Given::new("y", DType::UInt8, &[512], 2),
        ];
        let prepare = || {
            let tensors = upload_all(&cuda, &stream, &given);
            other.join(&stream).unwrap();
            tensors
        };
        each_call_fails(&cuda, &given, prepare, |tensors| {
            let sources = tensors.iter().map(Source::from);
            let download = cuda.download_sources(sources, &other, PATIENCE);
            // Freed at once, whatever comes of it.
            drop(tensors);
            download?.finish(PATIENCE).map_err(|(_, error)| error)
        });
    });
}

#[test]
fn the_error_says_which_tensor() {
    simulated::test("faults::the_error_says_which_tensor", || {
        if !simulated::needs_script("the_error_says_which_tensor") {
            return;
        }
        let (cuda, stream) = open(4, SLOT_BYTES);
        let tensors = upload_all(&cuda, &stream, &variety(3));
        let all: Vec<_> = tensors.iter().collect();
        // The fourth has no bytes, and takes no copy.
        for (copy, tensor) in [(0, 0), (2, 2), (3, 4), (8, 9)] {
            simulated::fail("cuMemcpyDtoHAsync_v2", copy, CODE);
            let error = cuda.download(&all, &stream, PATIENCE).unwrap_err();
            assert_eq!(error.tensor(), Some(tensor));
            let text = format!("tensor {tensor}: copying to the host: CUDA_ERROR_INVALID_VALUE");
            assert_eq!(error.to_string(), text);
            settle(&cuda);
        }
    });
}

#[test]
fn what_cudarc_keeps_to_itself_is_told_at_its_step() {
    let name = "faults::what_cudarc_keeps_to_itself_is_told_at_its_step";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let (cuda, stream) = open(4, 4096);
        let given = Given::new("x", DType::UInt8, &[1000], 1);
        let slice = stream.alloc_zeros::<u8>(1000).unwrap();
        let tensor = given.upload(&cuda, &stream);
        // Of each, the first is the adapter's own: to follow the producer.
        for (call, step) in [
            ("cuStreamWaitEvent", Step::WaitEvent),
            ("cuEventRecord", Step::RecordEvent),
        ] {
            let sources = || {
                [
                    Source::from(&tensor),
                    Source::new(given.info.clone(), &slice).unwrap(),
                ]
            };
            for source in sources() {
                settle(&cuda);
                simulated::fail(call, 1, CODE);
                let failing = cuda.download_sources([source], &stream, PATIENCE);
                let error = failing.unwrap_err();
                assert_eq!((error.step(), error.tensor()), (step, Some(0)), "{call}");
            }
            settle(&cuda);
            let download = cuda.download_sources(sources(), &stream, PATIENCE);
            download.unwrap().finish(PATIENCE).unwrap();
        }
    });
}

#[test]
fn a_copy_that_breaks_the_device_is_told_by_all_that_follows() {
    const NAME: &str = "faults::a_copy_that_breaks_the_device_is_told_by_all_that_follows";
    simulated::test(NAME, || {
        if !simulated::needs_script(NAME) {
            return;
        }
        let (cuda, stream) = open(4, SLOT_BYTES);
        let given = variety(3);
        let tensors = upload_all(&cuda, &stream, &given);
        let all: Vec<_> = tensors.iter().collect();
        tensors
            .iter()
            .for_each(|tensor| tensor.wait(PATIENCE).unwrap());
        simulated::stall(Streams::All);
        simulated::break_copy(2, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        let download = cuda.download(&all, &stream, PATIENCE).unwrap();
        simulated::release(Streams::All);
        let (mut download, error) = download.finish(PATIENCE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.code().unwrap().is_sticky());
        let unusable = cuda.fault().unwrap();
        assert_eq!(unusable.kind(), ErrorKind::Unusable);
        assert_eq!(download.is_ready().unwrap_err(), unusable);
        let (download, error) = download.finish(PATIENCE).unwrap_err();
        assert_eq!(error, unusable);
        let again = cuda.download(&all, &stream, PATIENCE).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Unusable);
        // Every call of the driver fails, and nothing panics.
        drop((download, all));
        drop((tensors, stream, cuda));
        let live = simulated::live();
        assert_eq!(
            (live.pinned, live.contexts),
            (1, 1),
            "the ring may be written to"
        );
        simulated::leaves(live);
    });
}
