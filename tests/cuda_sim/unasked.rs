//! Nothing waits for the device that was not told to.

use cudarc::driver::{CudaContext, CudaSlice, DevicePtr as _};
use tensorwire::DType;
use tensorwire::cuda::Source;
use tensorwire::device::{Device as _, DeviceTensor as _, Download as _, Landing as _, TensorInfo};
use tensorwire::message::Decoder;
use tensorwire::transport::Wait;

use crate::given::{Given, SLOT_BYTES, frames, open_with, options, upload_message};
use crate::simulated::{self, Streams};

/// The calls that wait for the device, or may.
const WAIT: &[&str] = &[
    "cuCtxSynchronize",
    "cuEventSynchronize",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuStreamSynchronize",
];

#[test]
fn with_a_device_that_stands_still_every_call_comes_back() {
    let name = "unasked::with_a_device_that_stands_still_every_call_comes_back";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let (cuda, stream) = open_with(options().with_ring(80, SLOT_BYTES));
        let other = cuda.context().new_stream().unwrap();
        let given = [
            Given::new("latents", DType::Float32, &[4000]),
            Given::of_len("a", 10),
            Given::of_len("b", 900),
            Given::of_len("none", 0),
        ];
        let wire = frames(&given);
        let mut slice: CudaSlice<f32> = stream.alloc_zeros(4000).unwrap();
        let mut copy: CudaSlice<u8> = other.alloc_zeros(16_000).unwrap();
        let frame = |given: &Given| {
            let mut pinned = cuda.allocate_pinned(given.bytes.len()).unwrap();
            pinned.as_mut().copy_from_slice(&given.bytes);
            pinned.share()
        };
        let pinned: Vec<_> = given.iter().map(frame).collect();
        simulated::settle();
        let before: Vec<_> = WAIT.iter().map(|call| simulated::calls(call)).collect();
        let kept = pinned.clone();
        simulated::stall(Streams::All);
        for _ in 0..2 {
            let one = cuda.upload(&given[0].view(), &stream, Wait::Never).unwrap();
            assert_eq!(one.is_ready(), Ok(false));
            other.memcpy_dtod(&one.bytes(), &mut copy).unwrap();
            one.wait(Wait::Never).unwrap_err();
            one.wait_on(&other).unwrap();
            drop(upload_message(&cuda, &given, &stream));
            cuda.upload_into(&given[0].view(), &mut slice, Wait::Never)
                .unwrap();
            for (given, frame) in given.iter().zip(&pinned) {
                let tensor = cuda.upload_pinned(&given.descriptor(), frame.clone(), &stream);
                drop(tensor.unwrap());
            }
            let mut decoder = Decoder::new();
            let metadata = decoder.decode_metadata(&wire[0]).unwrap();
            for is_whole in [true, false] {
                let mut landing = cuda.land(&metadata, &stream).unwrap();
                for frame in wire[1..].iter().take(if is_whole { 4 } else { 1 }) {
                    landing.copy_from(frame, Wait::Never).unwrap();
                }
                drop(is_whole.then(|| landing.finish().unwrap()));
            }
            let info = TensorInfo::new(&given[0].descriptor());
            let sources = [Source::new(info, &slice).unwrap(), Source::from(&one)];
            let mut download = cuda
                .download_sources(sources, &stream, Wait::Never)
                .unwrap();
            assert_eq!(download.is_ready(), Ok(false));
            download.wait_on(&other).unwrap();
            let (download, _) = download.finish(Wait::Never).unwrap_err();
            drop((one, download));
            cuda.poll().unwrap();
        }
        drop(cuda.clone());
        drop((slice, copy));
        for (call, before) in WAIT.iter().zip(before) {
            assert_eq!(simulated::calls(call), before, "{call}");
        }
        simulated::release(Streams::All);
        simulated::settle();
        cuda.poll().unwrap();
        drop((kept, pinned));
    });
}

#[test]
fn a_read_that_cudarc_records_nothing_of_is_waited_for() {
    let name = "unasked::a_read_that_cudarc_records_nothing_of_is_waited_for";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let (cuda, stream) = open_with(options());
        let given = Given::of_len("latents", 100);
        let tensor = cuda.upload(&given.view(), &stream, Wait::Never).unwrap();
        // Another handle to the context, which tracks nothing: it has one stream.
        let default = CudaContext::new(0).unwrap().default_stream();
        let before = simulated::calls("cuStreamSynchronize");
        drop(tensor.bytes().device_ptr(&default));
        assert_eq!(simulated::calls("cuStreamSynchronize"), before + 1);
    });
}
