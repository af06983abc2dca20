//! The host as a device: what goes in comes out, where it lies, how often it is copied, and what is refused.

#![cfg(feature = "std")]

#[path = "../common/mod.rs"]
mod common;
mod download;
mod landing;
#[cfg(feature = "proptest")]
mod properties;
mod upload;

use tensorwire::device::host::{Host, Stream, Tensor};
use tensorwire::device::{Device, DeviceTensor, Download, Downloaded, Tensors};
use tensorwire::message::Decoder;
use tensorwire::transport::Wait;

/// Where every tensor starts: at a multiple of this.
const ALIGN: usize = 256;

/// The tensors of a message that is all there.
fn uploaded<F: AsRef<[u8]>>(host: &Host, frames: &[F]) -> Tensors<Tensor> {
    let mut decoder = Decoder::new();
    let message = decoder.decode(frames).unwrap();
    host.upload_message(&message, &Stream, Wait::Never).unwrap()
}

fn downloaded(tensors: &Tensors<Tensor>) -> Downloaded {
    let tensors: Vec<_> = tensors.iter().collect();
    let mut download = Host::new()
        .download(&tensors, &Stream, Wait::Never)
        .unwrap();
    assert!(download.is_ready().unwrap());
    download.finish(Wait::Never).unwrap()
}

/// Asserts that the tensors are those of the message, each aligned.
fn assert_same<F: AsRef<[u8]>>(tensors: &Tensors<Tensor>, frames: &[F]) {
    let mut decoder = Decoder::new();
    let message = decoder.decode(frames).unwrap();
    assert_eq!(tensors.len(), message.len());
    for (tensor, sent) in tensors.iter().zip(message.tensors()) {
        let info = tensor.info();
        assert_eq!(format!("{info:?}"), format!("{:?}", sent.descriptor()));
        assert!(info.name() == sent.name());
        assert_eq!(info.list_index(), sent.list_index());
        assert_eq!(info.dtype(), sent.dtype());
        assert!(sent.shape() == info.shape());
        assert_eq!(info.element_count(), sent.element_count());
        assert!(tensor.bytes() == sent.bytes(), "{info:?}");
        assert!(tensor.is_ready().unwrap());
        let empty = tensor.bytes().is_empty();
        assert!(
            empty || address(tensor.bytes()).is_multiple_of(ALIGN),
            "{info:?}"
        );
    }
}

fn address(bytes: &[u8]) -> usize {
    bytes.as_ptr().addr()
}

/// Metadata of plain tensors of bytes, named "0", "1" and so on.
fn metadata_of_bytes(lens: &[usize]) -> Vec<u8> {
    let descriptors = lens.iter().enumerate().map(|(index, len)| {
        format!(r#"{{"field_name":"{index}","shape":[{len}],"dtype":"uint8","list_index":-1}}"#)
    });
    let descriptors = descriptors.collect::<Vec<_>>().join(",");
    format!(r#"{{"tensor_descriptors":[{descriptors}],"scalar_fields":{{}}}}"#).into_bytes()
}

/// A message of such tensors, no two bytes of one tensor next to each other alike.
fn frames_of_bytes(lens: &[usize]) -> Vec<Vec<u8>> {
    let payloads = lens.iter().enumerate().map(|(index, &len)| {
        let bytes = (0..len).map(|at| (at * 31 + index * 7 + at / 251) as u8);
        bytes.collect()
    });
    std::iter::once(metadata_of_bytes(lens))
        .chain(payloads)
        .collect()
}
