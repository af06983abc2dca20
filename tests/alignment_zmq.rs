//! Tensors are read out of real ZeroMQ frames, wherever libzmq put them.
//!
//! ```text
//!   payload            where it lies                            address
//!   up to 32 bytes     in the frame itself, and moves with it   a multiple of 8
//!   up to about 8 KiB  in the batch that was read (tcp, ipc)    any
//!   more               in an allocation of its own              8 mod 16
//!   lent, over inproc  where the sender had it                  the sender's
//! ```
//!
//! Every view is checked through every way to its elements, against the bytes
//! that were sent. What libzmq did is counted, and shown with `--nocapture`.

#![cfg(feature = "zmq")]

use std::collections::BTreeMap;

use bytemuck::NoUninit;
use half::{bf16, f16};
use tensorwire::error::CastError;
use tensorwire::message::{Decoder, encode_to_vec};
use tensorwire::tensor::{
    Element, Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu,
};
use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait, zmq};
use tensorwire::{DType, Message, Scalar, TensorView};

#[test]
fn frames_over_tcp_are_read_at_any_address() {
    let seen = exchange("tcp://127.0.0.1:*");
    seen.show("tcp");
    // Hundreds of frames lie in batches, one after the other.
    assert!(seen.misaligned() > 0, "{seen:?}");
}

#[cfg(unix)]
#[test]
fn frames_over_ipc_are_read_at_any_address() {
    let name = format!("tensorwire-alignment-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let seen = exchange(&format!("ipc://{}", path.display()));
    let _ = std::fs::remove_file(path);
    seen.show("ipc");
    assert!(seen.misaligned() > 0, "{seen:?}");
}

#[test]
fn frames_over_inproc_are_read_at_any_address() {
    let seen = exchange("inproc://alignment");
    seen.show("inproc");
    // The sender lends buffers at odd addresses, and there they stay.
    assert!(seen.misaligned() > 0, "{seen:?}");
}

#[test]
fn bools_that_are_none_are_refused_at_any_address() {
    let context = zmq::Context::new();
    let mut pull = context.pull().bind("tcp://127.0.0.1:*").unwrap();
    let mut push = context.push().connect(pull.endpoint()).unwrap();
    let mut decoder = Decoder::new();
    for len in [1, 31, 33, 34, 100, 4096, 8193] {
        let mut bytes = vec![1; len];
        bytes[len - 1] = 2;
        let shape = [len];
        let mask = TensorView::from_bytes("mask", DType::Bool, &shape, &bytes).unwrap();
        let metadata = encode_to_vec(&[mask], NO_SCALARS).unwrap();
        push.send(&[&metadata, &bytes]).unwrap();
        let received = pull.recv().unwrap();
        let message = decoder.decode(received.frames()).unwrap();
        let mask = message.tensor("mask").unwrap();
        let refused = CastError::InvalidBool {
            index: len - 1,
            byte: 2,
        };
        let mut room = vec![false; len];
        assert_eq!(mask.as_slice::<bool>(), Err(refused));
        assert_eq!(mask.elements::<bool>().err(), Some(refused));
        assert_eq!(mask.copy_to_slice(&mut room), Err(refused));
        assert_eq!(mask.as_slice_or_copy(&mut room), Err(refused));
        assert_eq!(mask.to_vec::<bool>(), Err(refused));
        assert!(room.iter().all(|value| !value));
        assert_eq!(mask.bytes(), bytes);
    }
}

/// Sends and checks messages of every dtype and of all sizes.
fn exchange(endpoint: &str) -> Seen {
    let context = zmq::Context::new();
    let mut pull = context.pull().bind(endpoint).unwrap();
    // What is lent is never copied, so that over inproc the addresses are our own.
    let push = context.push().copy_below(0);
    let mut push = push.connect(pull.endpoint()).unwrap();

    // All under way before the first one is read, so that the batches are full.
    let sent: Vec<_> = DType::ALL.iter().copied().map(Sent::new).collect();
    for sent in &sent {
        let frames: Vec<_> = sent.frames().collect();
        push.send(&frames).unwrap();
        let lent = |frame: &[u8]| Part::owned(Shifted::new(frame));
        let mut parts: Vec<_> = frames.iter().map(|frame| lent(frame)).collect();
        push.send_parts(&mut parts, Wait::Configured).unwrap();
    }

    let mut seen = Seen::default();
    let mut decoder = Decoder::new();
    for sent in &sent {
        for _ in 0..2 {
            let received = pull.recv().unwrap();
            let message = decoder.decode(received.frames()).unwrap();
            sent.expect(&message, Some(&mut seen));
            // The small frames lie elsewhere then.
            let moved: Vec<_> = received.into_frames().into_iter().collect();
            let boxed = Box::new(moved);
            let message = decoder.decode(&boxed).unwrap();
            sent.expect(&message, None);
        }
    }
    seen
}

/// The tensors of one dtype in one message.
struct Sent {
    dtype: DType,
    metadata: Vec<u8>,
    /// (name, shape, bytes)
    tensors: Vec<(String, [usize; 2], Vec<u8>)>,
}

impl Sent {
    fn new(dtype: DType) -> Self {
        let size = dtype.size();
        let near = |bytes: usize| (bytes - size..=bytes + size).step_by(size);
        let mut lens: Vec<usize> = (0..4).map(|count| count * size).collect();
        // What still lies in the frame itself, and what does not any more.
        lens.extend((28..=40).filter(|len| len % size == 0));
        lens.extend([64, 256, 1024, 2048].iter().copied().flat_map(near));
        // Where the batch ends, and frames get an allocation of their own.
        lens.extend([4096, 8192, 65_536].iter().copied().flat_map(near));
        let tensors: Vec<_> = lens
            .into_iter()
            .enumerate()
            .map(|(index, len)| {
                let count = len / size;
                let columns = if count.is_multiple_of(2) { 2 } else { 1 };
                let shape = [count / columns, columns];
                (format!("t{index}"), shape, arbitrary(dtype, len, index))
            })
            .collect();
        let views: Vec<_> = tensors
            .iter()
            .map(|(name, shape, bytes)| TensorView::from_bytes(name, dtype, shape, bytes).unwrap())
            .collect();
        let metadata = encode_to_vec(&views, NO_SCALARS).unwrap();
        Self {
            dtype,
            metadata,
            tensors,
        }
    }

    fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let payloads = self.tensors.iter().map(|(_, _, bytes)| bytes.as_slice());
        core::iter::once(self.metadata.as_slice()).chain(payloads)
    }

    fn expect<F: AsRef<[u8]>>(&self, message: &Message<'_, '_, F>, mut seen: Option<&mut Seen>) {
        assert_eq!(message.len(), self.tensors.len());
        let mut misaligned = 0;
        for (index, (name, shape, bytes)) in self.tensors.iter().enumerate() {
            let view = message.tensor(name).unwrap();
            assert_eq!(view.dtype(), self.dtype);
            assert_eq!(view.shape().to_array::<2>(), Ok(*shape));
            assert!(core::ptr::eq(
                view.bytes(),
                message.get(index).unwrap().bytes()
            ));
            expect_elements(&view, bytes);
            misaligned += usize::from(!view.is_aligned());
            if let Some(seen) = &mut seen {
                seen.count(&view);
            }
        }
        assert_eq!(message.cost().misaligned(), misaligned);
    }
}

/// Bytes that differ from tensor to tensor; bools hold bools.
fn arbitrary(dtype: DType, len: usize, seed: usize) -> Vec<u8> {
    let mask = if dtype == DType::Bool { 1 } else { 0xff };
    let mut state = seed as u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8 & mask
    };
    core::iter::repeat_with(next).take(len).collect()
}

/// Reads a view as the Rust type of its dtype, in every way there is.
fn expect_elements(view: &TensorView<'_>, expected: &[u8]) {
    match view.dtype() {
        DType::BFloat16 => expect_all::<bf16>(view, expected),
        DType::Bool => expect_all::<bool>(view, expected),
        DType::Complex128 => expect_all::<[f64; 2]>(view, expected),
        DType::Complex64 => expect_all::<[f32; 2]>(view, expected),
        DType::Float16 => expect_all::<f16>(view, expected),
        DType::Float32 => expect_all::<f32>(view, expected),
        DType::Float64 => expect_all::<f64>(view, expected),
        DType::Float8E4M3Fn => expect_all::<Float8E4M3Fn>(view, expected),
        DType::Float8E4M3Fnuz => expect_all::<Float8E4M3Fnuz>(view, expected),
        DType::Float8E5M2 => expect_all::<Float8E5M2>(view, expected),
        DType::Float8E5M2Fnuz => expect_all::<Float8E5M2Fnuz>(view, expected),
        DType::Float8E8M0Fnu => expect_all::<Float8E8M0Fnu>(view, expected),
        DType::Int16 => expect_all::<i16>(view, expected),
        DType::Int32 => expect_all::<i32>(view, expected),
        DType::Int64 => expect_all::<i64>(view, expected),
        DType::Int8 => expect_all::<i8>(view, expected),
        DType::UInt16 => expect_all::<u16>(view, expected),
        DType::UInt32 => expect_all::<u32>(view, expected),
        DType::UInt64 => expect_all::<u64>(view, expected),
        DType::UInt8 => expect_all::<u8>(view, expected),
        other => panic!("{other} is new"),
    }
}

/// The oracle is the memory of the elements: little-endian, as on the wire.
fn expect_all<T: Element + NoUninit>(view: &TensorView<'_>, expected: &[u8]) {
    fn expect_same<T: NoUninit>(elements: &[T], expected: &[u8]) {
        // Not `assert_eq`: 64 KiB make no message.
        assert!(bytemuck::cast_slice::<T, u8>(elements) == expected);
    }

    let bytes = view.bytes();
    assert!(bytes == expected);
    let address = bytes.as_ptr().addr();
    let aligned = bytes.is_empty() || address.is_multiple_of(align_of::<T>());
    let count = expected.len() / size_of::<T>();
    assert_eq!(view.element_count(), count);
    assert_eq!(view.is_aligned(), aligned);
    assert_eq!(address % view.alignment(), 0);
    assert_ne!(address % (2 * view.alignment()), 0);

    // In place: just if it is aligned.
    match view.as_slice::<T>() {
        Ok(elements) => {
            assert!(aligned);
            assert!(elements.is_empty() || elements.as_ptr().addr() == address);
            expect_same(elements, expected);
        }
        Err(error) => {
            assert!(!aligned);
            let (required, actual) = (align_of::<T>(), view.alignment());
            assert_eq!(error, CastError::Misaligned { required, actual });
        }
    }

    // One by one.
    let elements = view.elements::<T>().unwrap();
    assert_eq!(elements.len(), count);
    expect_same(&elements.clone().collect::<Vec<_>>(), expected);
    let mut reversed: Vec<_> = elements.clone().rev().collect();
    reversed.reverse();
    expect_same(&reversed, expected);
    let mut last = elements.clone();
    let last = last.nth(count.saturating_sub(1));
    assert_eq!(last.is_some(), count > 0);
    if let (Some(last), Some(at)) = (last, expected.len().checked_sub(size_of::<T>())) {
        expect_same(&[last], &expected[at..]);
    }

    // Copied.
    let copied = view.to_vec::<T>().unwrap();
    expect_same(&copied, expected);
    let mut target = copied.clone();
    target.reverse();
    view.copy_to_slice(&mut target).unwrap();
    expect_same(&target, expected);

    // In place or copied.
    target.reverse();
    let place = target.as_ptr().addr();
    let either = view.as_slice_or_copy(&mut target).unwrap();
    expect_same(either, expected);
    if count > 0 {
        let expected = if aligned { address } else { place };
        assert_eq!(either.as_ptr().addr(), expected);
    }
    if !aligned {
        let (expected, actual) = (count, 0);
        let error = view.as_slice_or_copy::<T>(&mut []).unwrap_err();
        assert_eq!(error, CastError::Length { expected, actual });
    }

    // By parts, which lie at other addresses than the whole.
    let flat = view.flatten();
    assert_eq!(flat.shape().to_array::<1>(), Ok([count]));
    assert!(core::ptr::eq(flat.bytes(), bytes));
    let [rows, columns] = view.shape().to_array::<2>().unwrap();
    for row in [0, 1, rows / 2, rows.saturating_sub(1)] {
        let Some(part) = view.index(row) else {
            assert!(row >= rows);
            continue;
        };
        let len = columns * size_of::<T>();
        let expected = &expected[row * len..][..len];
        expect_same(&part.to_vec::<T>().unwrap(), expected);
        assert_eq!(part.as_slice::<T>().is_ok(), part.is_aligned());
    }
    assert!(view.index(rows).is_none());
}

/// A copy at an address that is aligned for nothing.
struct Shifted(Vec<u8>, usize);

impl Shifted {
    fn new(bytes: &[u8]) -> Self {
        let mut buffer: Vec<u8> = Vec::with_capacity(bytes.len() + 1);
        // Still there when the vector has moved: it is the heap's address.
        let shift = usize::from(buffer.as_ptr().addr().is_multiple_of(2));
        buffer.resize(shift, 0xa5);
        buffer.extend_from_slice(bytes);
        Self(buffer, shift)
    }
}

impl AsRef<[u8]> for Shifted {
    fn as_ref(&self) -> &[u8] {
        &self.0[self.1..]
    }
}

/// How the frames lay: (size class, largest power of two in the address up to 64) to how often.
#[derive(Debug, Default)]
struct Seen {
    counts: BTreeMap<(usize, usize), usize>,
    misaligned: usize,
    tensors: usize,
}

impl Seen {
    fn count(&mut self, view: &TensorView<'_>) {
        let len = view.bytes().len();
        if len == 0 {
            return;
        }
        let class = CLASSES.iter().position(|&(most, _)| len <= most).unwrap();
        let alignment = view.alignment().min(64);
        *self.counts.entry((class, alignment)).or_default() += 1;
        self.misaligned += usize::from(!view.is_aligned());
        self.tensors += 1;
    }

    /// How many could not be seen in place.
    fn misaligned(&self) -> usize {
        self.misaligned
    }

    fn show(&self, transport: &str) {
        let Self {
            misaligned,
            tensors,
            ..
        } = self;
        println!("{transport}: {misaligned} of {tensors} payloads misaligned for their dtype");
        println!("  address a multiple of       1     2     4     8    16    32    64");
        for (class, (_, name)) in CLASSES.iter().enumerate() {
            let count = |power| {
                self.counts
                    .get(&(class, 1_usize << power))
                    .copied()
                    .unwrap_or(0)
            };
            let row: String = (0..=6).map(|power| format!("{:6}", count(power))).collect();
            println!("  {name:22}{row}");
        }
    }
}

const NO_SCALARS: &[(&str, Scalar<'_>)] = &[];

/// (largest size, name)
const CLASSES: &[(usize, &str)] = &[
    (32, "1 to 32 bytes"),
    (4096, "to 4 KiB"),
    (8192, "to 8 KiB"),
    (usize::MAX, "more"),
];
