//! From frames into the host's memory.

use half::{bf16, f16};
use tensorwire::device::host::{Host, Stream};
use tensorwire::device::{Device, DeviceError, DeviceTensor, ErrorKind};
use tensorwire::error::CastError;
use tensorwire::message::Decoder;
use tensorwire::tensor::{
    Element, Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu,
};
use tensorwire::transport::Wait;
use tensorwire::{DType, Descriptor, TensorView};

use crate::{ALIGN, address, assert_same, frames_of_bytes, metadata_of_bytes, uploaded};

/// Uploads `bytes` from an address that no element may have, and sees them as `T`.
fn sees<T: Element>(bytes: &[u8], seen: &mut Vec<DType>) {
    let mut room = vec![0; bytes.len() + ALIGN];
    let odd = 1 + room.as_ptr().align_offset(ALIGN);
    room[odd..odd + bytes.len()].copy_from_slice(bytes);
    let frame = &room[odd..odd + bytes.len()];
    let shape = [2, bytes.len() / T::DTYPE.size() / 2];
    let view = TensorView::from_bytes("x", T::DTYPE, &shape, frame).unwrap();
    assert!(!view.is_aligned() || T::DTYPE.alignment() == 1);

    let tensor = Host::new().upload(&view, &Stream, Wait::Never).unwrap();
    assert_eq!(address(tensor.bytes()) % ALIGN, 0);
    assert_eq!(tensor.bytes(), bytes);
    let elements = tensor.view::<T>().unwrap();
    assert_eq!(elements.as_ptr().addr(), address(tensor.bytes()));
    // As bytes: a NaN is not itself.
    let again = TensorView::from_slice("x", &shape, elements).unwrap();
    assert_eq!(again.bytes(), bytes);

    let other = if T::DTYPE == DType::Int8 {
        tensor.view::<u8>().map(|_| ())
    } else {
        tensor.view::<i8>().map(|_| ())
    };
    assert!(matches!(other, Err(CastError::WrongDType { actual, .. }) if actual == T::DTYPE));
    seen.push(T::DTYPE);
}

#[test]
fn tensors_of_every_dtype_are_seen_in_place_wherever_the_frame_lay() {
    let bytes: Vec<u8> = (0..96).map(|at: u8| at.wrapping_mul(41) ^ 0x5a).collect();
    let bools: Vec<u8> = bytes.iter().map(|byte| byte & 1).collect();
    let mut seen = Vec::new();
    sees::<bf16>(&bytes, &mut seen);
    sees::<f16>(&bytes, &mut seen);
    sees::<f32>(&bytes, &mut seen);
    sees::<f64>(&bytes, &mut seen);
    sees::<i8>(&bytes, &mut seen);
    sees::<i16>(&bytes, &mut seen);
    sees::<i32>(&bytes, &mut seen);
    sees::<i64>(&bytes, &mut seen);
    sees::<u8>(&bytes, &mut seen);
    sees::<u16>(&bytes, &mut seen);
    sees::<u32>(&bytes, &mut seen);
    sees::<u64>(&bytes, &mut seen);
    sees::<bool>(&bools, &mut seen);
    sees::<[f32; 2]>(&bytes, &mut seen);
    sees::<[f64; 2]>(&bytes, &mut seen);
    sees::<Float8E4M3Fn>(&bytes, &mut seen);
    sees::<Float8E4M3Fnuz>(&bytes, &mut seen);
    sees::<Float8E5M2>(&bytes, &mut seen);
    sees::<Float8E5M2Fnuz>(&bytes, &mut seen);
    sees::<Float8E8M0Fnu>(&bytes, &mut seen);
    assert_eq!(seen.len(), DType::ALL.len());
    assert!(DType::ALL.iter().all(|dtype| seen.contains(dtype)));
}

#[test]
fn shapes_of_no_dimension_and_of_no_element_are_kept() {
    /// (shape, bytes)
    const SHAPES: &[(&[usize], usize)] = &[
        (&[], 4),
        (&[0], 0),
        (&[3, 0, 5], 0),
        (&[1 << 40, 0, 1 << 18], 0),
        (&[1, 1, 1, 1], 4),
    ];
    for &(shape, len) in SHAPES {
        let view = TensorView::from_bytes("x", DType::Float32, shape, &[0, 0, 0, 64][..len]);
        let tensor = Host::new()
            .upload(&view.unwrap(), &Stream, Wait::Never)
            .unwrap();
        assert_eq!(tensor.info().shape(), shape);
        let elements: &[f32] = tensor.view().unwrap();
        assert_eq!(elements, &[2.0][..len / 4], "{shape:?}");
        assert_eq!(elements.len(), tensor.info().element_count());
    }
}

#[test]
fn the_frames_are_free_when_an_upload_returns() {
    let lens = [3, 0, 300_000, 256, 1, 70_000];
    for batch_bytes in [0, 1, 256, 100_000, usize::MAX] {
        let host = Host::new().with_batch_bytes(batch_bytes);
        let mut frames = frames_of_bytes(&lens);
        let sent = frames.clone();
        let tensors = uploaded(&host, &frames);
        for frame in &mut frames {
            frame.fill(0xee);
        }
        drop(frames);
        assert_same(&tensors, &sent);
    }
}

#[test]
fn small_tensors_of_a_message_share_one_allocation() {
    let lens = [1, 256, 5000, 257, 0, 100];
    let tensors = uploaded(&Host::new(), &frames_of_bytes(&lens));
    let starts = tensors.iter().map(|tensor| address(tensor.bytes()));
    let starts: Vec<_> = starts.zip(lens).filter(|&(_, len)| len > 0).collect();
    for pair in starts.windows(2) {
        let [(start, len), (next, _)] = pair else {
            unreachable!()
        };
        assert_eq!(next - start, len.next_multiple_of(ALIGN));
    }
    // And it lives as long as any of them.
    let mut tensors = tensors.into_vec();
    let last = tensors.pop().unwrap();
    drop(tensors);
    assert_eq!(last.bytes(), frames_of_bytes(&lens)[6]);
}

#[test]
fn large_tensors_have_their_memory_for_themselves() {
    let host = Host::new().with_batch_bytes(1000);
    assert_eq!(host.batch_bytes(), 1000);
    let frames = frames_of_bytes(&[1001, 1000, 2 << 20]);
    let tensors = uploaded(&host, &frames);
    let [a, b, c]: [_; 3] = tensors.into_vec().try_into().unwrap();
    drop((a, b));
    assert_eq!(c.bytes(), frames[3]);
}

#[test]
fn a_byte_that_is_no_bool_is_moved_and_not_seen_as_one() {
    let metadata = br#"{"tensor_descriptors":[{"field_name":"a","shape":[2],"dtype":"bool"},{"field_name":"b","shape":[3],"dtype":"bool"}]}"#;
    let frames: [&[u8]; 3] = [metadata, &[1, 0], &[1, 0, 0xff]];
    let tensors = uploaded(&Host::new(), &frames);
    let (a, b) = (tensors.tensor("a").unwrap(), tensors.tensor("b").unwrap());
    assert_eq!(a.view::<bool>().unwrap(), [true, false]);
    let invalid = CastError::InvalidBool {
        index: 2,
        byte: 0xff,
    };
    assert_eq!(b.view::<bool>(), Err(invalid));
    assert_eq!(b.bytes(), [1, 0, 0xff]);
}

#[test]
fn more_than_there_is_memory_is_refused_and_says_which_tensor() {
    let host = Host::new();
    // (sizes, which is refused)
    let huge = 1 << 60;
    for (lens, refused) in [(vec![huge], 0), (vec![5, 0, huge, 7], 2)] {
        let metadata = metadata_of_bytes(&lens);
        let mut decoder = Decoder::new();
        let metadata = decoder.decode_metadata(&metadata).unwrap();
        let error = host.land(&metadata, &Stream).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory { bytes: huge });
        assert_eq!(error.tensor(), Some(refused));
        assert_eq!(
            error.to_string(),
            format!("no memory for {huge} bytes, at tensor {refused}")
        );
    }
    // No memory has so many addresses.
    let metadata = metadata_of_bytes(&[usize::MAX >> 1; 2]);
    let mut decoder = Decoder::new();
    let metadata = decoder.decode_metadata(&metadata).unwrap();
    let error = host.land(&metadata, &Stream).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::OutOfMemory { .. }));
    // The next message works.
    let frames = frames_of_bytes(&[10, 20]);
    assert_same(&uploaded(&host, &frames), &frames);
}

#[test]
fn computed_elements_make_a_tensor_or_say_what_is_wrong() {
    let host = Host::new();
    let squares = Descriptor::new("squares", DType::Int32, &[2, 3]).unwrap();
    let tensor = host.collect(&squares, (0..6).map(|x| x * x)).unwrap();
    assert_eq!(tensor.view::<i32>().unwrap(), [0, 1, 4, 9, 16, 25]);
    assert_eq!(address(tensor.bytes()) % ALIGN, 0);
    assert!(tensor.info().name() == "squares");

    let none = Descriptor::new("none", DType::Bool, &[0]).unwrap();
    let tensor = host.collect(&none, std::iter::empty::<bool>()).unwrap();
    assert!(tensor.view::<bool>().unwrap().is_empty());

    let few = host.collect(&squares, 0..5).unwrap_err();
    let (expected, actual) = (24, 20);
    assert_eq!(few.kind(), ErrorKind::Length { expected, actual });
    let mut taken = 0;
    let many = std::iter::repeat_with(|| {
        taken += 1;
        taken
    });
    let many = host.collect(&squares, many).unwrap_err();
    let (expected, actual) = (24, 28);
    assert_eq!(many.kind(), ErrorKind::Length { expected, actual });
    assert_eq!(taken, 7);
    let other = host.collect(&squares, 0..6_u32).unwrap_err();
    let (expected, actual) = (DType::Int32, DType::UInt32);
    assert_eq!(other.kind(), ErrorKind::DType { expected, actual });
}
