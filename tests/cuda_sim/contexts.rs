//! Several handles to one context, each with streams that it alone knows of: cudarc counts and tracks in each for itself.

use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr as _, DevicePtrMut as _};
use tensorwire::DType;
use tensorwire::cuda::{Cuda, Source};
use tensorwire::device::{Device as _, Download as _, TensorInfo};
use tensorwire::transport::Wait;

use crate::given::{Given, open, read_at};
use crate::simulated;

const LEN: usize = 3000;

/// The adapter, a stream of its context, and the default stream of another handle, which has made no stream and so tracks nothing.
fn apart() -> (Cuda, Arc<CudaStream>, Arc<CudaStream>) {
    let (cuda, stream) = open();
    let other = CudaContext::new(0).unwrap();
    assert!(other == *cuda.context() && !other.is_in_multi_stream_mode());
    (cuda, stream, other.default_stream())
}

fn bytes(slice: &CudaSlice<u8>) -> Vec<u8> {
    let (address, _read) = slice.device_ptr(slice.stream());
    read_at(slice.stream(), address, slice.num_bytes())
}

#[test]
fn what_is_on_the_stream_of_the_target_comes_before_the_upload() {
    let name = "contexts::what_is_on_the_stream_of_the_target_comes_before_the_upload";
    simulated::test(name, || {
        let (cuda, _, default) = apart();
        for _ in 0..5 {
            let given = Given::of_len("latents", LEN);
            let mut slice: CudaSlice<u8> = default.alloc_zeros(LEN).unwrap();
            cuda.upload_into(&given.view(), &mut slice, Wait::Forever)
                .unwrap();
            assert!(bytes(&slice) == given.bytes);
        }
    });
}

#[test]
fn a_read_on_a_stream_that_is_not_tracked_is_over_before_the_memory_is_freed() {
    let name =
        "contexts::a_read_on_a_stream_that_is_not_tracked_is_over_before_the_memory_is_freed";
    simulated::test(name, || {
        let (cuda, stream, default) = apart();
        let given = Given::of_len("latents", LEN);
        for _ in 0..5 {
            let mut copy: CudaSlice<u8> = default.alloc_zeros(LEN).unwrap();
            let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
            default.memcpy_dtod(&tensor.bytes(), &mut copy).unwrap();
            drop(tensor);
            assert!(bytes(&copy) == given.bytes);
        }
    });
}

#[test]
fn a_source_that_is_not_tracked_can_be_freed_and_changed_at_once() {
    let name = "contexts::a_source_that_is_not_tracked_can_be_freed_and_changed_at_once";
    simulated::test(name, || {
        let (cuda, _, default) = apart();
        let given = Given::of_len("latents", LEN);
        let info = TensorInfo::new(&given.descriptor());
        for is_freed in [false, true, false, true] {
            let mut slice: CudaSlice<u8> = default.alloc_zeros(LEN).unwrap();
            cuda.upload_into(&given.view(), &mut slice, Wait::Forever)
                .unwrap();
            let source = Source::new(info.clone(), &slice).unwrap();
            let download = cuda
                .download_sources([source], &default, Wait::Forever)
                .unwrap();
            if is_freed {
                drop(slice);
            } else {
                let next = Given::of_len("next", LEN);
                cuda.upload_into(&next.view(), &mut slice, Wait::Forever)
                    .unwrap();
                default.memset_zeros(&mut slice).unwrap();
            }
            let downloaded = download.finish(Wait::Forever).map_err(|(_, error)| error);
            let downloaded = downloaded.unwrap();
            let view = downloaded.tensors().next().unwrap();
            assert!(view.bytes() == given.bytes);
        }
    });
}

#[test]
fn a_source_is_read_behind_what_its_own_stream_does() {
    let name = "contexts::a_source_is_read_behind_what_its_own_stream_does";
    simulated::test(name, || {
        let (cuda, stream, default) = apart();
        let info = TensorInfo::new(&Given::of_len("zeros", LEN).descriptor());
        let slice: CudaSlice<u8> = default.alloc_zeros(LEN).unwrap();
        let source = Source::new(info, &slice).unwrap();
        // The producer is another one than the stream that cudarc thinks needs no waiting for.
        let download = cuda
            .download_sources([source], &stream, Wait::Forever)
            .unwrap();
        let downloaded = download.finish(Wait::Forever).map_err(|(_, error)| error);
        let downloaded = downloaded.unwrap();
        assert!(downloaded.tensors().next().unwrap().bytes() == [0; LEN]);
    });
}

#[test]
fn a_tensor_of_one_handle_belongs_to_a_stream_of_another() {
    let name = "contexts::a_tensor_of_one_handle_belongs_to_a_stream_of_another";
    simulated::test(name, || {
        let (cuda, stream, default) = apart();
        let given = Given::new("latents", DType::Float32, &[LEN]);
        for _ in 0..3 {
            let tensor = cuda.upload(&given.view(), &default, Wait::Forever).unwrap();
            let mut copy: CudaSlice<u8> = stream.alloc_zeros(4 * LEN).unwrap();
            stream.memcpy_dtod(&tensor.bytes(), &mut copy).unwrap();
            let download = cuda.download(&[&tensor], &stream, Wait::Never);
            drop(tensor);
            drop(download);
            assert!(bytes(&copy) == given.bytes);
        }
    });
}

#[test]
fn a_read_that_could_not_be_recorded_is_over_before_the_memory_is_freed() {
    let name = "contexts::a_read_that_could_not_be_recorded_is_over_before_the_memory_is_freed";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let (cuda, stream, default) = apart();
        let other = cuda.context().new_stream().unwrap();
        let given = Given::of_len("latents", LEN);
        for reader in [&other, &default] {
            for is_kept_before in [false, true] {
                let tensor = cuda.upload(&given.view(), &stream, Wait::Forever).unwrap();
                let mut copy: CudaSlice<u8> = reader.alloc_zeros(LEN).unwrap();
                reader.synchronize().unwrap();
                let code = CUresult::CUDA_ERROR_INVALID_VALUE;
                if is_kept_before {
                    for context in [cuda.context(), reader.context()] {
                        context.record_err::<()>(Err(DriverError(code)));
                    }
                } else {
                    // The reader does not wait for the upload: so the host does.
                    simulated::fail("cuStreamWaitEvent", 0, code);
                }
                // As `memcpy_dtod` does, which tells first what is kept.
                let bytes = tensor.bytes();
                let (source, read) = bytes.device_ptr(reader);
                let (target, written) = copy.device_ptr_mut(reader);
                // SAFETY: both are memory of the device of that length, and stay until the copy has run.
                unsafe { result::memcpy_dtod_async(target, source, LEN, reader.cu_stream()) }
                    .unwrap();
                drop((read, written));
                drop(tensor);
                simulated::fail_no_more();
                let kept = [cuda.context(), reader.context()].map(|context| context.check_err());
                assert!(kept.iter().any(Result::is_err));
                assert!(read_at(reader, target, LEN) == given.bytes);
            }
        }
    });
}
