//! Every dtype is read right at every address, and in place just where that is possible.

use std::fmt::Debug;

use half::{bf16, f16};
use tensorwire::error::{CastError, EncodeError};
use tensorwire::tensor::{
    Element, Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu,
};
use tensorwire::{DType, TensorView};

/// A type of element, and its bits in the order of the wire.
trait Bits: Element {
    fn bits(self) -> u128;
}

macro_rules! elements {
    ($($element:ty, $dtype:ident, $size:literal, $bits:expr;)+) => {
        $(impl Bits for $element {
            fn bits(self) -> u128 {
                let bits: fn($element) -> u128 = $bits;
                bits(self)
            }
        })+

        /// (dtype, size of an element), as this test knows them.
        const TABLE: &[(DType, usize)] = &[$((DType::$dtype, $size)),+];

        /// Calls `$visit::<T>()` for each type.
        macro_rules! for_each_element {
            ($visit:ident($argument:expr)) => {
                $($visit::<$element>($argument);)+
            };
        }
    };
}

elements! {
    bf16, BFloat16, 2, |x| x.to_bits().into();
    f16, Float16, 2, |x| x.to_bits().into();
    f32, Float32, 4, |x| x.to_bits().into();
    f64, Float64, 8, |x| x.to_bits().into();
    i8, Int8, 1, |x| x.cast_unsigned().into();
    i16, Int16, 2, |x| x.cast_unsigned().into();
    i32, Int32, 4, |x| x.cast_unsigned().into();
    i64, Int64, 8, |x| x.cast_unsigned().into();
    u8, UInt8, 1, |x| x.into();
    u16, UInt16, 2, |x| x.into();
    u32, UInt32, 4, |x| x.into();
    u64, UInt64, 8, |x| x.into();
    bool, Bool, 1, |x| x.into();
    [f32; 2], Complex64, 8, |[re, im]| u128::from(re.to_bits()) | u128::from(im.to_bits()) << 32;
    [f64; 2], Complex128, 16, |[re, im]| u128::from(re.to_bits()) | u128::from(im.to_bits()) << 64;
    Float8E4M3Fn, Float8E4M3Fn, 1, |x| x.to_bits().into();
    Float8E4M3Fnuz, Float8E4M3Fnuz, 1, |x| x.to_bits().into();
    Float8E5M2, Float8E5M2, 1, |x| x.to_bits().into();
    Float8E5M2Fnuz, Float8E5M2Fnuz, 1, |x| x.to_bits().into();
    Float8E8M0Fnu, Float8E8M0Fnu, 1, |x| x.to_bits().into();
}

#[test]
fn the_table_holds_every_dtype() {
    assert_eq!(TABLE.len(), DType::ALL.len());
    for &dtype in DType::ALL {
        let (_, size) = TABLE.iter().find(|(other, _)| *other == dtype).unwrap();
        assert_eq!(dtype.size(), *size, "{dtype}");
    }
}

/// Bytes at a chosen distance from an address divisible by 16.
#[repr(align(16))]
struct Arena([u8; 512]);

impl Arena {
    fn at(&mut self, offset: usize, length: usize, fill: impl Fn(usize) -> u8) -> &[u8] {
        let bytes = &mut self.0[offset..offset + length];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = fill(index);
        }
        bytes
    }
}

/// Bytes that are values of `dtype`, and otherwise as various as can be.
fn fill(dtype: DType, seed: usize) -> impl Fn(usize) -> u8 {
    move |index| {
        let byte = (index + seed).wrapping_mul(0x9e37_79b9) >> 13;
        match dtype {
            DType::Bool => (byte & 1) as u8,
            _ => byte as u8,
        }
    }
}

/// The elements of `bytes`, put together byte by byte.
fn oracle(bytes: &[u8], size: usize) -> Vec<u128> {
    let element = |bytes: &[u8]| {
        let bytes = bytes.iter().rev();
        bytes.fold(0, |bits, &byte| bits << 8 | u128::from(byte))
    };
    bytes.chunks(size).map(element).collect()
}

fn bits<T: Bits>(elements: &[T]) -> Vec<u128> {
    elements.iter().map(|element| element.bits()).collect()
}

/// Checks every way to read `view`, whose bytes are values of `T`, against the oracle.
fn check_view<T: Bits>(view: &TensorView<'_>) {
    let size = size_of::<T>();
    let bytes = view.bytes();
    let expected = oracle(bytes, size);
    let count = expected.len();
    let address = bytes.as_ptr().addr();
    let aligned = bytes.is_empty() || address.is_multiple_of(align_of::<T>());
    let what = format!("{count} of {} at {address:#x}", T::DTYPE);

    assert_eq!(view.element_count(), count, "{what}");
    assert_eq!(view.is_aligned(), aligned, "{what}");
    assert!(address.is_multiple_of(view.alignment()), "{what}");
    let required = align_of::<T>();
    match view.as_slice::<T>() {
        Ok(slice) => {
            assert!(aligned, "{what}");
            assert_eq!(bits(slice), expected, "{what}");
            assert!(
                slice.is_empty() || slice.as_ptr().addr() == address,
                "{what}"
            );
        }
        Err(error) => {
            assert!(!aligned, "{what}: {error}");
            // The largest power of two in the address, found by trying.
            let divides = |power: &usize| address.is_multiple_of(*power);
            let actual = (0..12).map(|shift| 1 << shift).take_while(divides).last();
            let actual = actual.unwrap();
            assert_eq!(error, CastError::Misaligned { required, actual }, "{what}");
        }
    }

    let elements = view.elements::<T>().unwrap();
    assert_eq!(elements.len(), count, "{what}");
    let forward: Vec<_> = elements.clone().map(T::bits).collect();
    assert_eq!(forward, expected, "{what}");
    let mut backward: Vec<_> = elements.clone().rev().map(T::bits).collect();
    backward.reverse();
    assert_eq!(backward, expected, "{what}");
    for index in 0..=count {
        let element = elements.clone().nth(index).map(T::bits);
        assert_eq!(element, expected.get(index).copied(), "{what}");
    }

    let zeros = vec![0; size * count];
    let shape = [count];
    let zero = TensorView::from_bytes("zero", T::DTYPE, &shape, &zeros).unwrap();
    let zeros: Vec<T> = zero.elements::<T>().unwrap().collect();
    let mut target = zeros.clone();
    assert_eq!(view.copy_to_slice(&mut target), Ok(()), "{what}");
    assert_eq!(bits(&target), expected, "{what}");
    if let Some(short) = zeros.split_last().map(|(_, short)| short) {
        let mut target = short.to_vec();
        let (expected, actual) = (count, count - 1);
        let error = CastError::Length { expected, actual };
        assert_eq!(view.copy_to_slice(&mut target), Err(error), "{what}");
        assert_eq!(bits(&target), bits(short), "{what}: touched");
        match view.as_slice_or_copy(&mut target) {
            Ok(slice) => assert!(aligned && bits(slice).len() == count, "{what}"),
            Err(other) => assert!(!aligned && other == error, "{what}"),
        }
    }

    let mut scratch = zeros.clone();
    scratch.extend(zeros.first());
    let room = scratch.as_ptr().addr();
    let slice = view.as_slice_or_copy(&mut scratch).unwrap();
    assert_eq!(bits(slice), expected, "{what}");
    if count > 0 {
        let place = if aligned { address } else { room };
        assert_eq!(slice.as_ptr().addr(), place, "{what}");
    }
}

#[test]
fn every_dtype_is_read_right_at_every_address() {
    fn check<T: Bits + Debug>(arena: &mut Arena) {
        let size = size_of::<T>();
        for offset in 0..16 {
            for count in [0, 1, 2, 3, 17] {
                let bytes = arena.at(offset, count * size, fill(T::DTYPE, offset * 31 + count));
                let shape = [count];
                let view = TensorView::from_bytes("x", T::DTYPE, &shape, bytes).unwrap();
                assert_eq!(view.bytes().as_ptr(), bytes.as_ptr());
                check_view::<T>(&view);
                check_view::<T>(&view.flatten());
                for index in 0..count {
                    let row = view.index(index).unwrap();
                    assert_eq!((row.rank(), row.bytes().len()), (0, size));
                    check_view::<T>(&row);
                }
                assert!(view.index(count).is_none());
            }
        }
    }
    let mut arena = Box::new(Arena([0; 512]));
    for_each_element!(check(&mut arena));
}

#[test]
fn a_length_that_is_not_the_shapes_makes_no_view() {
    let mut arena = Box::new(Arena([0; 512]));
    for &(dtype, size) in TABLE {
        for offset in 0..16 {
            for count in [0, 1, 2, 3, 17] {
                let expected = count * size;
                let near = expected.saturating_sub(size + 1)..=expected + size + 1;
                for actual in near.filter(|&length| length != expected) {
                    let bytes = arena.at(offset, actual, fill(dtype, 0));
                    let shape = [count];
                    let result = TensorView::from_bytes("x", dtype, &shape, bytes);
                    let error = EncodeError::ByteLength { expected, actual };
                    assert_eq!(result.unwrap_err(), error, "{dtype}");
                }
            }
        }
    }
}

#[test]
fn a_view_without_elements_is_a_slice_at_every_address() {
    fn check<T: Bits>(arena: &Arena) {
        const EMPTY: [&[usize]; 4] = [&[0], &[0, 3], &[5, 0], &[2, 0, 7]];
        for offset in 0..16 {
            for shape in EMPTY {
                let bytes = &arena.0[offset..offset];
                let view = TensorView::from_bytes("x", T::DTYPE, shape, bytes).unwrap();
                check_view::<T>(&view);
                assert_eq!(view.as_slice::<T>(), Ok(&[][..]));
            }
        }
    }
    let arena = Arena([0; 512]);
    for_each_element!(check(&arena));
}

#[test]
fn a_byte_that_is_no_bool_is_found_where_it_is() {
    let mut arena = Box::new(Arena([0; 512]));
    for byte in [2, 3, 0x7f, 0x80, 0xff] {
        for count in [1, 2, 3, 17, 64] {
            for index in 0..count {
                for offset in 0..16 {
                    // A later one beside it: the first is named.
                    let good = fill(DType::Bool, index);
                    let fill = |at| if at >= index { byte } else { good(at) };
                    let bytes = arena.at(offset, count, fill);
                    let shape = [count];
                    let view = TensorView::from_bytes("x", DType::Bool, &shape, bytes).unwrap();
                    let error = CastError::InvalidBool { index, byte };
                    assert_eq!(view.as_slice::<bool>(), Err(error));
                    assert_eq!(view.elements::<bool>().err(), Some(error));
                    let mut target = vec![true; count];
                    assert_eq!(view.copy_to_slice(&mut target), Err(error));
                    assert_eq!(target, vec![true; count]);
                    assert_eq!(view.as_slice_or_copy(&mut target), Err(error));
                    assert_eq!(view.bytes(), bytes);
                    // Only the part that is asked for is looked at.
                    let before = (0..index).map(|at| view.index(at).unwrap());
                    for row in before {
                        assert!(row.as_slice::<bool>().is_ok());
                    }
                }
            }
        }
    }
}

#[test]
fn no_dtype_is_read_as_another() {
    fn check<T: Bits>(count: &mut usize) {
        let bytes = [0; 16];
        for &(dtype, size) in TABLE.iter().filter(|(dtype, _)| *dtype != T::DTYPE) {
            for elements in [0, 1] {
                let bytes = &bytes[..elements * size];
                let shape = [elements];
                let view = TensorView::from_bytes("x", dtype, &shape, bytes).unwrap();
                let (expected, actual) = (T::DTYPE, dtype);
                let error = CastError::WrongDType { expected, actual };
                assert_eq!(view.as_slice::<T>(), Err(error));
                assert_eq!(view.elements::<T>().err(), Some(error));
                assert_eq!(view.copy_to_slice::<T>(&mut []), Err(error));
                assert_eq!(view.as_slice_or_copy::<T>(&mut []), Err(error));
            }
            *count += 1;
        }
    }
    let mut count = 0;
    for_each_element!(check(&mut count));
    assert_eq!(count, 20 * 19);
}

#[cfg(feature = "num-complex")]
#[test]
fn complex_numbers_are_the_pairs_that_they_are_made_of() {
    use num_complex::Complex;
    let pairs = [[1.5_f32, -2.0], [f32::INFINITY, 0.0]];
    let view = TensorView::from_slice("x", &[2], &pairs).unwrap();
    let numbers = view.as_slice::<Complex<f32>>().unwrap();
    assert_eq!((numbers[0].re, numbers[0].im), (1.5, -2.0));
    assert!(
        view.elements::<Complex<f32>>()
            .unwrap()
            .eq(numbers.iter().copied())
    );
}

/// Frames as a transport delivers them: a test over sockets sends
/// [`message`](frames::message) and hands what arrives to
/// [`check_frames`](frames::check_frames).
mod frames {
    use super::{Bits, TABLE, bf16, check_view, f16, fill};
    use super::{Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu};
    use tensorwire::TensorView;
    use tensorwire::message::{Message, Scalar, Storage, encode_into};

    /// Elements of each tensor: frames from nothing to past the 8 KiB that libzmq batches.
    const COUNTS: &[usize] = &[0, 1, 2, 3, 17, 33, 130, 1100];

    const TENSORS: usize = 20 * COUNTS.len();

    fn payload(index: usize) -> Vec<u8> {
        let (dtype, size) = TABLE[index / COUNTS.len()];
        let length = COUNTS[index % COUNTS.len()] * size;
        (0..length).map(fill(dtype, index)).collect()
    }

    /// A message of every dtype in frames of every size class; frame 0 is the metadata.
    pub(super) fn message() -> Vec<Vec<u8>> {
        let payloads: Vec<_> = (0..TENSORS).map(payload).collect();
        let names: Vec<_> = (0..TENSORS).map(|index| format!("t{index}")).collect();
        let shapes: Vec<_> = (0..TENSORS)
            .map(|index| [COUNTS[index % COUNTS.len()]])
            .collect();
        let views: Vec<_> = (0..TENSORS)
            .map(|index| {
                let (dtype, _) = TABLE[index / COUNTS.len()];
                let shape = &shapes[index];
                TensorView::from_bytes(names[index].as_str(), dtype, shape, &payloads[index])
                    .unwrap()
            })
            .collect();
        let scalars = [("request_id", Scalar::from("alignment"))];
        let mut metadata = vec![0; 1 << 16];
        let length = encode_into(&views, &scalars, &mut metadata).unwrap().len();
        metadata.truncate(length);
        let mut frames = vec![metadata];
        frames.extend(payloads);
        frames
    }

    /// Checks that `frames` are [`message`] and are read right where they lie.
    pub(super) fn check_frames(frames: &[impl AsRef<[u8]>]) {
        let mut storage = Box::<Storage<TENSORS>>::default();
        let message = Message::decode(frames, &mut *storage).unwrap();
        assert_eq!(message.len(), TENSORS);
        for (index, view) in message.tensors().enumerate() {
            assert!(view.bytes() == payload(index), "{:?}", view.name());
            check_any(&view);
        }
    }

    fn check_any(view: &TensorView<'_>) {
        fn check<T: Bits>(view: &TensorView<'_>) {
            if T::DTYPE == view.dtype() {
                check_view::<T>(view);
            }
        }
        for_each_element!(check(view));
    }

    #[test]
    fn a_message_is_read_right_wherever_its_frames_lie() {
        let message = message();
        check_frames(&message);
        for offset in 0..16 {
            let shifted: Vec<_> = message
                .iter()
                .map(|frame| Shifted::new(frame, offset))
                .collect();
            check_frames(&shifted);
        }
    }

    /// A frame at a chosen distance from an address divisible by 16.
    struct Shifted {
        room: Vec<u8>,
        start: usize,
        length: usize,
    }

    impl Shifted {
        fn new(frame: &[u8], offset: usize) -> Self {
            let mut room = vec![0xa5; frame.len() + 32];
            let start = room.as_ptr().align_offset(16) + offset;
            room[start..start + frame.len()].copy_from_slice(frame);
            Self {
                room,
                start,
                length: frame.len(),
            }
        }
    }

    impl AsRef<[u8]> for Shifted {
        fn as_ref(&self) -> &[u8] {
            &self.room[self.start..self.start + self.length]
        }
    }
}
