//! Tensors of all kinds, and a device to bring them to, for tests that name this by its path.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaStream, DeviceSlice, result};
use tensorwire::cuda::{Cuda, Options, Source, Tensor};
use tensorwire::device::{Device, Download, Downloaded, TensorInfo};
use tensorwire::message::{NO_SCALARS, encode_to_vec};
use tensorwire::transport::Wait;
use tensorwire::{DType, Descriptor, TensorView};

/// Long enough never to be reached by a test that passes.
pub(crate) const PATIENCE: Wait = Wait::UpTo(Duration::from_secs(60));

/// A device with a ring, and a stream of the consumer's.
pub(crate) fn open(slots: usize, slot_bytes: usize) -> (Cuda, Arc<CudaStream>) {
    let cuda = Cuda::open(0, Options::new().with_ring(slots, slot_bytes)).unwrap();
    let stream = cuda.context().new_stream().unwrap();
    (cuda, stream)
}

/// A tensor of the host.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) info: TensorInfo,
    pub(crate) bytes: Vec<u8>,
}

impl Given {
    pub(crate) fn new(name: &str, dtype: DType, shape: &[usize], seed: u64) -> Self {
        let descriptor = Descriptor::new(name, dtype, shape).unwrap();
        Self::described(&descriptor, seed)
    }

    pub(crate) fn member(name: &str, index: u32, dtype: DType, shape: &[usize], seed: u64) -> Self {
        let descriptor = Descriptor::new(name, dtype, shape).unwrap();
        Self::described(&descriptor.with_list_index(index), seed)
    }

    fn described(descriptor: &Descriptor<'_>, seed: u64) -> Self {
        let mut bytes = pattern(seed, descriptor.byte_len());
        if descriptor.dtype() == DType::Bool {
            bytes.iter_mut().for_each(|byte| *byte &= 1);
        }
        Self {
            info: TensorInfo::new(descriptor),
            bytes,
        }
    }

    pub(crate) fn view(&self) -> TensorView<'_> {
        TensorView::new(self.info.descriptor(), &self.bytes).unwrap()
    }

    pub(crate) fn upload(&self, cuda: &Cuda, stream: &Arc<CudaStream>) -> Tensor {
        cuda.upload(&self.view(), stream, PATIENCE).unwrap()
    }
}

/// Bytes that look like chance, the same ones for the same seed.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(next).collect()
}

/// Large and small ones, a list, one without bytes and one without dimensions: some 330 kB.
pub(crate) fn variety(seed: u64) -> Vec<Given> {
    vec![
        Given::new("latents", DType::BFloat16, &[1, 16, 21, 30], seed),
        Given::new("timesteps", DType::Float32, &[2], seed + 1),
        Given::new("mask", DType::Bool, &[300], seed + 2),
        Given::new("nothing", DType::Int64, &[0, 4], seed + 3),
        Given::new("scale", DType::Float64, &[], seed + 4),
        Given::member("skip", 0, DType::Float16, &[33], seed + 5),
        Given::member("skip", 2, DType::Int16, &[5, 5], seed + 6),
        Given::new("weights", DType::Float8E4M3Fn, &[1000], seed + 7),
        Given::new("image", DType::UInt8, &[300, 1000], seed + 8),
        Given::new("spectrum", DType::Complex64, &[7, 11], seed + 9),
    ]
}

/// Bytes of the ring that holds a variety.
pub(crate) const SLOT_BYTES: usize = 128 << 10;

pub(crate) fn upload_all(cuda: &Cuda, stream: &Arc<CudaStream>, given: &[Given]) -> Vec<Tensor> {
    given
        .iter()
        .map(|given| given.upload(cuda, stream))
        .collect()
}

pub(crate) fn sources(tensors: &[Tensor]) -> impl Iterator<Item = Source<'_>> {
    tensors.iter().map(Source::from)
}

/// Fills it as a kernel does that is given the address: cudarc does not know.
pub(crate) fn fill_by_address(tensor: &Tensor, byte: u8, stream: &CudaStream) {
    fill(tensor.device_pointer(), byte, tensor.bytes().len(), stream);
}

/// Fills memory of the device, in the order of `stream`.
pub(crate) fn fill(pointer: u64, byte: u8, len: usize, stream: &CudaStream) {
    stream.context().bind_to_thread().unwrap();
    // SAFETY: the memory is there, and nobody else uses it meanwhile, as the tests see to.
    unsafe { result::memset_d8_async(pointer, byte, len, stream.cu_stream()) }.unwrap();
}

/// The frames of a message of these tensors.
pub(crate) fn encoded(given: &[Given]) -> Vec<Vec<u8>> {
    let descriptors = given.iter().map(|given| given.info.descriptor());
    let mut frames = vec![encode_to_vec(descriptors, &NO_SCALARS).unwrap()];
    frames.extend(given.iter().map(|given| given.bytes.clone()));
    frames
}

/// Waits until the bytes of all are in place.
pub(crate) fn wait_for(tensors: &[Tensor]) {
    tensors
        .iter()
        .for_each(|tensor| tensor.wait(PATIENCE).unwrap());
}

/// How many slots are in use, once it was looked which copies are over.
pub(crate) fn in_use(cuda: &Cuda) -> usize {
    cuda.poll().unwrap();
    cuda.statistics().in_use
}

/// Brings the tensors back.
pub(crate) fn downloaded(cuda: &Cuda, stream: &Arc<CudaStream>, tensors: &[&Tensor]) -> Downloaded {
    let download = cuda.download(tensors, stream, PATIENCE).unwrap();
    download.finish(PATIENCE).unwrap()
}

/// Asserts that what came back is what was given: bytes, names, shapes.
pub(crate) fn assert_same<'a>(tensors: impl IntoIterator<Item = TensorView<'a>>, given: &[Given]) {
    let tensors: Vec<_> = tensors.into_iter().collect();
    assert_eq!(tensors.len(), given.len());
    for (view, given) in tensors.iter().zip(given) {
        let expected = given.info.descriptor();
        assert_eq!(format!("{:?}", view.descriptor()), format!("{expected:?}"));
        assert!(view.bytes() == given.bytes, "{expected:?}");
    }
}
