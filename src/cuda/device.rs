//! The adapter as a [`Device`](crate::device::Device).

use alloc::sync::Arc;

use cudarc::driver::CudaStream;

use super::adapter::Cuda;
use super::download::Download;
use super::error::CudaError;
use super::landing::Landing;
use super::source::Source;
use super::tensor::Tensor;
use super::upload::only;
use crate::device::{Device, Tensors};
use crate::message::{Message, Metadata};
use crate::tensor::TensorView;
use crate::transport::Wait;

/// Tensors belong to the stream of the call: it waits for them, the host does not. It may be any stream of the
/// adapter's [context](Cuda::context) but the per-thread default stream, which is one handle for many streams.
///
/// An upload larger than the ring goes through while the device empties it: with [`Wait::Never`] it will hardly
/// succeed.
impl Device for Cuda {
    type Stream = Arc<CudaStream>;
    type Tensor = Tensor;
    type Landing = Landing;
    type Download = Download;
    type Error = CudaError;

    fn upload(
        &self,
        tensor: &TensorView<'_>,
        stream: &Arc<CudaStream>,
        wait: Wait,
    ) -> Result<Tensor, CudaError> {
        let bytes = |_| Some(tensor.bytes());
        only(self.upload_staged([tensor.descriptor()], bytes, stream, wait)?)
    }

    fn upload_message<F: AsRef<[u8]>>(
        &self,
        message: &Message<'_, '_, F>,
        stream: &Arc<CudaStream>,
        wait: Wait,
    ) -> Result<Tensors<Tensor>, CudaError> {
        let descriptors = message.metadata().descriptors();
        // A frame that has changed its length since is no tensor any more.
        let bytes = |index| Some(message.get(index)?.bytes());
        self.upload_staged(descriptors, bytes, stream, wait)
    }

    fn land(
        &self,
        metadata: &Metadata<'_, '_>,
        stream: &Arc<CudaStream>,
    ) -> Result<Landing, CudaError> {
        Landing::new(&self.shared, metadata, stream)
    }

    fn download(
        &self,
        tensors: &[&Tensor],
        stream: &Arc<CudaStream>,
        wait: Wait,
    ) -> Result<Download, CudaError> {
        let sources = tensors.iter().map(|&tensor| Source::from(tensor));
        self.download_sources(sources, stream, wait)
    }
}
