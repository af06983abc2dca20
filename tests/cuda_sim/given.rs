//! Tensors to bring to a device, and what is there afterwards.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Arc;

use cudarc::driver::{CudaStream, result};
use tensorwire::cuda::{Cuda, Options, Tensor};
use tensorwire::device::{Device as _, DeviceTensor as _, Tensors};
use tensorwire::message::{Decoder, NO_SCALARS, encode_to_vec};
use tensorwire::tensor::Descriptor;
use tensorwire::transport::Wait;
use tensorwire::{DType, TensorView};

use crate::simulated;

/// A small ring: most tensors do not fit in a slot, and large ones not in the ring.
pub(crate) const SLOTS: usize = 3;
pub(crate) const SLOT_BYTES: usize = 4096;

/// A device with a small ring, that batches tensors of up to 1 KiB, and a stream of a consumer.
pub(crate) fn open() -> (Cuda, Arc<CudaStream>) {
    open_with(options())
}

pub(crate) fn options() -> Options {
    Options::new()
        .with_ring(SLOTS, SLOT_BYTES)
        .with_batch_bytes(1024)
}

pub(crate) fn open_with(options: Options) -> (Cuda, Arc<CudaStream>) {
    let cuda = Cuda::open(0, options).unwrap();
    let stream = cuda.context().new_stream().unwrap();
    (cuda, stream)
}

/// A tensor on the host.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Given {
    /// With bytes that are others for each name, and good for each dtype.
    pub(crate) fn new(name: &str, dtype: DType, shape: &[usize]) -> Self {
        let len = shape.iter().product::<usize>() * dtype.size();
        let mut bytes = noise(name.bytes().map(u64::from).sum::<u64>() + len as u64, len);
        if dtype == DType::Bool {
            bytes.iter_mut().for_each(|byte| *byte &= 1);
        }
        Self {
            name: name.into(),
            dtype,
            shape: shape.into(),
            bytes,
        }
    }

    /// Bytes, so many.
    pub(crate) fn of_len(name: &str, len: usize) -> Self {
        Self::new(name, DType::UInt8, &[len])
    }

    pub(crate) fn descriptor(&self) -> Descriptor<'_> {
        Descriptor::new(&*self.name, self.dtype, &*self.shape).unwrap()
    }

    pub(crate) fn view(&self) -> TensorView<'_> {
        TensorView::new(self.descriptor(), &self.bytes).unwrap()
    }

    /// Fails unless `tensor` is this one, with its bytes in place.
    #[track_caller]
    pub(crate) fn assert_is(&self, tensor: &Tensor) {
        let info = tensor.info();
        assert!(info.name() == *self.name, "{info:?}");
        assert_eq!((info.dtype(), info.shape()), (self.dtype, &*self.shape));
        assert!(tensor.device_pointer().is_multiple_of(256));
        assert!(read(tensor) == self.bytes, "{info:?} has other bytes");
    }
}

/// The frames of a message: metadata, then a frame each.
pub(crate) fn frames(tensors: &[Given]) -> Vec<Vec<u8>> {
    let descriptors: Vec<_> = tensors.iter().map(Given::descriptor).collect();
    let metadata = encode_to_vec(&descriptors, &NO_SCALARS).unwrap();
    let payloads = tensors.iter().map(|tensor| tensor.bytes.clone());
    std::iter::once(metadata).chain(payloads).collect()
}

/// Uploads a message and returns its tensors.
pub(crate) fn upload_message(
    cuda: &Cuda,
    given: &[Given],
    stream: &Arc<CudaStream>,
) -> Tensors<Tensor> {
    let frames = frames(given);
    let mut decoder = Decoder::new();
    let message = decoder.decode(&frames).unwrap();
    cuda.upload_message(&message, stream, Wait::Forever)
        .unwrap()
}

/// The bytes of a tensor, as its stream leaves them.
pub(crate) fn read(tensor: &Tensor) -> Vec<u8> {
    read_at(
        tensor.stream(),
        tensor.device_pointer(),
        tensor.info().byte_len(),
    )
}

/// The bytes of memory, as `stream` leaves them.
pub(crate) fn read_at(stream: &CudaStream, address: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    if len > 0 {
        stream.synchronize().unwrap();
        // SAFETY: `memcpy_dtoh_sync` asks for so much memory of the device, which the tests have there.
        unsafe { result::memcpy_dtoh_sync(&mut bytes, address) }.unwrap();
    }
    bytes
}

/// How many calls of this name the simulated driver has seen; a real one is not asked.
pub(crate) fn calls(name: &str) -> u64 {
    match simulated::scripted() {
        true => simulated::calls(name),
        false => 0,
    }
}

/// How many bytes of the simulated device are allocated; a real one is not asked.
pub(crate) fn device_bytes() -> usize {
    match simulated::scripted() {
        true => simulated::device_bytes(),
        false => 0,
    }
}

/// Bytes that look like chance, the same ones for the same seed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}
