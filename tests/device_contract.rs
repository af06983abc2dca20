//! What holds for every device: the same checks on the host and on the CUDA adapter, over the simulated driver or a real one.

#![cfg(feature = "std")]

mod common;
#[cfg(feature = "cuda")]
mod simulated;

use std::time::Duration;

use tensorwire::device::{
    Device, DeviceError, DeviceTensor, Download, Downloaded, ErrorKind, Landing, Tensors,
};
use tensorwire::json::Value;
use tensorwire::message::{Decoder, NO_SCALARS, encode_to_vec};
use tensorwire::transport::Wait;
use tensorwire::{DType, Descriptor, TensorView};

use common::{frames, lines};

/// Long enough never to be reached by a test that passes.
const PATIENCE: Wait = Wait::UpTo(Duration::from_secs(60));

/// Makes a test of each check for each device.
macro_rules! on_each_device {
    ($($check:ident)+) => {
        mod host {
            use tensorwire::device::host::{Host, Stream};

            $(#[test]
            fn $check() {
                super::$check(&Host::new(), &Stream);
            })+
        }

        #[cfg(feature = "cuda")]
        mod cuda {
            use tensorwire::cuda::{Cuda, Options};

            // A ring that many messages here do not fit in at once.
            $(#[test]
            fn $check() {
                super::simulated::test(concat!("cuda::", stringify!($check)), || {
                    let options = Options::new().with_ring(4, 64 << 10).with_batch_bytes(4096);
                    let cuda = Cuda::open(0, options).unwrap();
                    let stream = cuda.context().new_stream().unwrap();
                    super::$check(&cuda, &stream);
                });
            })+
        }
    };
}

on_each_device! {
    messages_come_back_byte_for_byte
    frames_are_free_when_an_upload_returns
    tensors_are_found_by_name_and_place
    a_single_tensor_goes_up_and_comes_down
    payloads_land_in_pieces_of_any_size
    a_room_is_filled_once_and_not_beyond
    too_many_bytes_are_refused_and_the_landing_goes_on
    a_landing_with_bytes_missing_gives_no_tensors
    a_landing_may_be_given_up
    tensors_may_go_before_their_download
    a_download_is_in_the_order_asked_for
    no_tensors_are_no_trouble
}

fn upload<D: Device>(
    device: &D,
    stream: &D::Stream,
    frames: &[impl AsRef<[u8]>],
) -> Tensors<D::Tensor> {
    let mut decoder = Decoder::new();
    let message = decoder.decode(frames).unwrap();
    device.upload_message(&message, stream, PATIENCE).unwrap()
}

fn download<D: Device>(device: &D, stream: &D::Stream, tensors: &[&D::Tensor]) -> Downloaded {
    let download = device.download(tensors, stream, PATIENCE).unwrap();
    finish(download)
}

fn finish<D: Download>(download: D) -> Downloaded {
    let downloaded = download.finish(PATIENCE);
    downloaded.map_err(|(_, error)| error).unwrap()
}

/// Asserts that tensors on the device are those of the message.
fn assert_same<D: Device>(
    device: &D,
    stream: &D::Stream,
    tensors: &Tensors<D::Tensor>,
    frames: &[impl AsRef<[u8]>],
) {
    let mut decoder = Decoder::new();
    let message = decoder.decode(frames).unwrap();
    let tensors: Vec<_> = tensors.iter().collect();
    let downloaded = download(device, stream, &tensors);
    let scalars = message.scalars();
    let parts = downloaded.into_parts(&scalars).unwrap();
    assert_eq!(parts.len(), frames.len());
    for (index, (part, frame)) in parts.iter().zip(frames).enumerate() {
        assert!(part.as_ref() == frame.as_ref(), "frame {index}");
    }
}

/// A message of tensors of bytes, named "0", "1" and so on.
fn message_of(lens: &[usize]) -> Vec<Vec<u8>> {
    let names: Vec<_> = (0..lens.len()).map(|index| index.to_string()).collect();
    let descriptors = names.iter().zip(lens);
    let descriptors = descriptors
        .map(|(name, len)| Descriptor::new(name, DType::UInt8, std::slice::from_ref(len)).unwrap());
    let metadata = encode_to_vec(descriptors, &NO_SCALARS).unwrap();
    let payloads = lens.iter().enumerate().map(|(index, &len)| {
        let bytes = (0..len).map(|at| (at * 31 + index * 7 + at / 251) as u8);
        bytes.collect()
    });
    std::iter::once(metadata).chain(payloads).collect()
}

fn land<D: Device>(device: &D, stream: &D::Stream, frames: &[Vec<u8>]) -> D::Landing {
    let mut decoder = Decoder::new();
    let metadata = decoder.decode_metadata(&frames[0]).unwrap();
    device.land(&metadata, stream).unwrap()
}

/// Lists with holes, escaped names, every dtype, no dimension, no element: all is in the recordings.
fn messages_come_back_byte_for_byte<D: Device>(device: &D, stream: &D::Stream) {
    let mut too_large = 0;
    for line in lines("tensors.jsonl") {
        let frames = frames(&line);
        let tensors = upload(device, stream, &frames);
        // What comes back at once has to fit in the ring.
        if frames.iter().map(Vec::len).sum::<usize>() > 200_000 {
            too_large += 1;
            continue;
        }
        assert_same(device, stream, &tensors, &frames);
    }
    assert!(too_large < 20, "{too_large} of 269");
}

fn frames_are_free_when_an_upload_returns<D: Device>(device: &D, stream: &D::Stream) {
    // Larger than a slot, and next to each other.
    let mut frames = message_of(&[5, 100_000, 0, 4096, 4097, 1]);
    let sent = frames.clone();
    let tensors = upload(device, stream, &frames);
    for frame in &mut frames {
        frame.fill(0xee);
    }
    drop(frames);
    assert_same(device, stream, &tensors, &sent);
}

fn tensors_are_found_by_name_and_place<D: Device>(device: &D, stream: &D::Stream) {
    let frames: [&[u8]; 5] = [
        br#"{"tensor_descriptors":[{"field_name":"caf\u00e9","shape":[1,2],"dtype":"uint8","list_index":2},{"field_name":"x","shape":[],"dtype":"bool","list_index":-1},{"field_name":"caf\u00e9","shape":[0],"dtype":"complex128","list_index":0},{"field_name":"y","shape":[2],"dtype":"bool","list_index":-1}],"scalar_fields":{"seed":NaN}}"#,
        &[1, 2],
        &[1],
        &[],
        // The second is no bool: it is moved all the same.
        &[0, 7],
    ];
    let tensors = upload(device, stream, &frames);
    assert_eq!((tensors.len(), tensors.is_empty()), (4, false));
    let x = tensors.tensor("x").unwrap();
    assert_eq!(x.info().dtype(), DType::Bool);
    assert!(x.info().shape().is_empty());
    assert_eq!(x.info().byte_len(), 1);
    let list = tensors.list("café").map(|(index, tensor)| {
        let info = tensor.info();
        (index, info.shape().to_vec(), info.dtype())
    });
    assert!(list.eq([
        (2, vec![1, 2], DType::UInt8),
        (0, vec![0], DType::Complex128)
    ]));
    assert!(tensors.tensor("café").is_none() && tensors.list("x").next().is_none());
    assert!(tensors.get(3).unwrap().info().name() == "y" && tensors.get(4).is_none());
    assert_same(device, stream, &tensors, &frames);
    for tensor in &tensors {
        // All of it came back, so it was there.
        assert!(tensor.is_ready().unwrap());
    }
}

fn a_single_tensor_goes_up_and_comes_down<D: Device>(device: &D, stream: &D::Stream) {
    for len in [0, 1, 255, 70_000, 150_000] {
        let bytes: Vec<_> = (0..len).map(|at: usize| (at % 251) as u8).collect();
        let view = TensorView::from_bytes("x", DType::Int8, std::slice::from_ref(&len), &bytes);
        let view = view.unwrap().with_list_index(3);
        let tensor = device.upload(&view, stream, PATIENCE).unwrap();
        assert_eq!(tensor.info().list_index(), Some(3));
        let downloaded = download(device, stream, &[&tensor]);
        let came = downloaded.tensors().next().unwrap();
        assert!(came.bytes() == bytes && came.name() == "x", "{len}");
    }
}

fn payloads_land_in_pieces_of_any_size<D: Device>(device: &D, stream: &D::Stream) {
    let frames = message_of(&[0, 1, 700, 256, 0, 70_001, 5000, 0]);
    let payloads = frames[1..].concat();
    for piece in [1, 255, 257, 4096, usize::MAX] {
        let mut landing = land(device, stream, &frames);
        let mut rest = &payloads[..];
        while !rest.is_empty() {
            assert_eq!(landing.missing(), rest.len());
            let room = landing.room(PATIENCE).unwrap();
            assert!(!room.is_empty() && room.len() <= rest.len());
            let len = room.len().min(piece);
            room[..len].copy_from_slice(&rest[..len]);
            landing.filled(len).unwrap();
            rest = &rest[len..];
        }
        assert!(landing.room(PATIENCE).unwrap().is_empty());
        let tensors = landing.finish().unwrap();
        assert_same(device, stream, &tensors, &frames);

        let mut landing = land(device, stream, &frames);
        for bytes in payloads.chunks(piece) {
            landing.copy_from(bytes, PATIENCE).unwrap();
        }
        let tensors = landing.finish().unwrap();
        assert_same(device, stream, &tensors, &frames);
    }
}

fn a_room_is_filled_once_and_not_beyond<D: Device>(device: &D, stream: &D::Stream) {
    let frames = message_of(&[4, 6]);
    let mut landing = land(device, stream, &frames);
    let length = |error: <D::Landing as Landing>::Error, expected, actual| {
        assert_eq!(error.kind(), ErrorKind::Length { expected, actual });
    };
    length(landing.filled(1).unwrap_err(), 0, 1);
    // A room ends where its tensor does.
    assert_eq!(landing.room(PATIENCE).unwrap().len(), 4);
    length(landing.filled(5).unwrap_err(), 4, 5);
    landing.room(PATIENCE).unwrap()[..3].copy_from_slice(&frames[1][..3]);
    landing.filled(3).unwrap();
    length(landing.filled(1).unwrap_err(), 0, 1);
    // A room that is not used takes nothing.
    landing.room(PATIENCE).unwrap().fill(0xee);
    landing.filled(0).unwrap();
    assert_eq!(landing.missing(), 7);
    landing.copy_from(&frames[1][3..], PATIENCE).unwrap();
    landing.copy_from(&frames[2], PATIENCE).unwrap();
    length(landing.filled(1).unwrap_err(), 0, 1);
    let tensors = landing.finish().unwrap();
    assert_same(device, stream, &tensors, &frames);
}

fn too_many_bytes_are_refused_and_the_landing_goes_on<D: Device>(device: &D, stream: &D::Stream) {
    let frames = message_of(&[4, 6]);
    let payloads = frames[1..].concat();
    let mut landing = land(device, stream, &frames);
    landing.copy_from(&payloads[..3], PATIENCE).unwrap();
    let error = landing.copy_from(&[0xee; 8], PATIENCE).unwrap_err();
    let (expected, actual) = (7, 8);
    assert_eq!(error.kind(), ErrorKind::Length { expected, actual });
    assert_eq!(landing.missing(), 7);
    landing.copy_from(&payloads[3..], PATIENCE).unwrap();
    landing.copy_from(&[], PATIENCE).unwrap();
    assert!(landing.copy_from(&[0], PATIENCE).is_err());
    let tensors = landing.finish().unwrap();
    assert_same(device, stream, &tensors, &frames);
}

fn a_landing_with_bytes_missing_gives_no_tensors<D: Device>(device: &D, stream: &D::Stream) {
    let frames = message_of(&[4, 0, 6]);
    let payloads = frames[1..].concat();
    /// (bytes given, bytes missing, the tensor that the next one is of)
    const CUTS: &[(usize, usize, usize)] = &[(0, 10, 0), (3, 7, 0), (4, 6, 2), (9, 1, 2)];
    for &(given, missing, tensor) in CUTS {
        let mut landing = land(device, stream, &frames);
        landing.copy_from(&payloads[..given], PATIENCE).unwrap();
        assert_eq!(landing.missing(), missing);
        let error = landing.finish().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Incomplete { missing });
        assert_eq!(error.tensor(), Some(tensor), "{given}");
    }
    // The next message works.
    let tensors = upload(device, stream, &frames);
    assert_same(device, stream, &tensors, &frames);
}

/// A peer that goes away costs nothing, however often.
fn a_landing_may_be_given_up<D: Device>(device: &D, stream: &D::Stream) {
    let frames = message_of(&[300, 50_000]);
    let payloads = frames[1..].concat();
    for given in [0, 1, 300, 301, 50_000] {
        let mut landing = land(device, stream, &frames);
        landing.copy_from(&payloads[..given], PATIENCE).unwrap();
        landing.room(PATIENCE).unwrap().fill(0xee);
    }
    let tensors = upload(device, stream, &frames);
    assert_same(device, stream, &tensors, &frames);
}

fn tensors_may_go_before_their_download<D: Device>(device: &D, stream: &D::Stream) {
    let frames = message_of(&[10, 30_000]);
    let tensors = upload(device, stream, &frames);
    let asked: Vec<_> = tensors.iter().collect();
    let download = device.download(&asked, stream, PATIENCE).unwrap();
    drop(tensors);
    // And others take their memory, perhaps.
    let others = upload(device, stream, &message_of(&[11, 29_000]));
    drop(others);
    let downloaded = finish(download);
    let parts = downloaded
        .into_parts(&Value::parse(b"{}").unwrap())
        .unwrap();
    assert!(parts.iter().map(AsRef::as_ref).eq(frames.iter()));
}

fn a_download_is_in_the_order_asked_for<D: Device>(device: &D, stream: &D::Stream) {
    let frames = message_of(&[1, 5000, 3]);
    let tensors = upload(device, stream, &frames);
    let order = [2, 0, 1, 2];
    let asked = order.map(|index| tensors.get(index).unwrap());
    let downloaded = download(device, stream, &asked);
    let came: Vec<_> = downloaded.tensors().collect();
    assert_eq!(came.len(), order.len());
    for (view, index) in came.iter().zip(order) {
        assert!(view.name() == index.to_string().as_str());
        assert!(view.bytes() == frames[index + 1], "{index}");
    }
    // Two of one name make no message.
    assert!(downloaded.into_parts(&NO_SCALARS).is_err());
}

fn no_tensors_are_no_trouble<D: Device>(device: &D, stream: &D::Stream) {
    for lens in [&[][..], &[0, 0]] {
        let frames = message_of(lens);
        let tensors = upload(device, stream, &frames);
        assert_eq!(tensors.len(), lens.len());
        assert_same(device, stream, &tensors, &frames);
        let landing = land(device, stream, &frames);
        assert_eq!(landing.missing(), 0);
        assert_same(device, stream, &landing.finish().unwrap(), &frames);
    }
    assert_eq!(download(device, stream, &[]).tensors().count(), 0);
}
