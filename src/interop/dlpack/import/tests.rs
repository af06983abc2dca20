//! What producers hand over, and what they might.

use super::*;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::string::ToString;
use std::thread;

use super::super::Export;
use super::super::abi::{DataType, Device, Version};
use crate::transport::{Frames, RecvFrames, SendFrames, Wait, loopback};

static DELETED: AtomicUsize = AtomicUsize::new(0);

/// Deletes nothing: what it is given lies on the stack of a test.
unsafe extern "C" fn count<T>(_: *mut T) {
    DELETED.fetch_add(1, Ordering::Relaxed);
}

fn managed(tensor: Tensor) -> ManagedTensor {
    ManagedTensor {
        tensor,
        context: ptr::null_mut(),
        deleter: None,
    }
}

fn tensor(data: &[f32], shape: &mut [i64]) -> Tensor {
    Tensor {
        data: data.as_ptr().cast_mut().cast(),
        rank: shape.len().try_into().unwrap(),
        dtype: DataType::of(DType::Float32),
        shape: shape.as_mut_ptr(),
        ..Tensor::EMPTY
    }
}

/// Why this is refused, if it is.
fn refused(tensor: Tensor) -> Option<DlpackError> {
    let mut managed = managed(tensor);
    // SAFETY: its pointers lead to what the test has.
    unsafe { Import::from_raw(&raw mut managed) }.err()
}

const MAX: u64 = i64::MAX.unsigned_abs();

/// A name, a change to a tensor, and what is wrong then.
struct Hostile(&'static str, fn(&mut Tensor), DlpackError);

const HOSTILE: &[Hostile] = &[
    Hostile(
        "a device",
        |tensor| tensor.device = Device { kind: 2, id: 3 },
        DlpackError::Device { kind: 2, id: 3 },
    ),
    Hostile(
        "no code",
        |tensor| tensor.dtype.code = 255,
        DlpackError::DType {
            code: 255,
            bits: 32,
            lanes: 1,
        },
    ),
    Hostile(
        "no such width",
        |tensor| tensor.dtype.bits = 0,
        DlpackError::DType {
            code: 2,
            bits: 0,
            lanes: 1,
        },
    ),
    Hostile(
        "vectors",
        |tensor| tensor.dtype.lanes = 4,
        DlpackError::DType {
            code: 2,
            bits: 32,
            lanes: 4,
        },
    ),
    Hostile(
        "negative rank",
        |tensor| tensor.rank = -1,
        DlpackError::Rank { rank: -1 },
    ),
    Hostile(
        "rank out of reach",
        |tensor| tensor.rank = i32::MAX,
        DlpackError::Rank {
            rank: 2_147_483_647,
        },
    ),
    Hostile(
        "rank one over",
        |tensor| tensor.rank = 65,
        DlpackError::Rank { rank: 65 },
    ),
    Hostile(
        "no shape",
        |tensor| tensor.shape = ptr::null_mut(),
        DlpackError::Null(Pointer::Shape),
    ),
    Hostile(
        "no data",
        |tensor| tensor.data = ptr::null_mut(),
        DlpackError::Null(Pointer::Data),
    ),
    Hostile(
        "offset over isize::MAX",
        |tensor| tensor.byte_offset = u64::MAX,
        DlpackError::OutOfMemory {
            byte_offset: u64::MAX,
            byte_len: 24,
        },
    ),
    Hostile(
        "wrapping offset",
        |tensor| {
            tensor.data = ptr::without_provenance_mut(usize::MAX / 2 + 8);
            tensor.byte_offset = MAX;
        },
        DlpackError::OutOfMemory {
            byte_offset: MAX,
            byte_len: 24,
        },
    ),
    Hostile(
        "wrapping end",
        |tensor| {
            tensor.data = ptr::without_provenance_mut(usize::MAX / 2);
            tensor.byte_offset = MAX;
        },
        DlpackError::OutOfMemory {
            byte_offset: MAX,
            byte_len: 24,
        },
    ),
];

#[test]
fn no_number_of_a_producer_is_believed() {
    let data = [0.0; 6];
    for Hostile(name, change, expected) in HOSTILE {
        let mut shape = [2, 3];
        let mut tensor = tensor(&data, &mut shape);
        change(&mut tensor);
        let error = refused(tensor).unwrap();
        assert_eq!(error, *expected, "{name}");
        assert!(!error.to_string().is_empty());
    }
    /// (dimensions, what is wrong)
    const SHAPES: &[([i64; 2], DlpackError)] = &[
        ([2, -3], DlpackError::NegativeDim { index: 1, dim: -3 }),
        (
            [i64::MIN, 1],
            DlpackError::NegativeDim {
                index: 0,
                dim: i64::MIN,
            },
        ),
        (
            [i64::MAX, 1],
            DlpackError::Encode(EncodeError::ShapeOverflow),
        ),
        (
            [1 << 32, 1 << 32],
            DlpackError::Encode(EncodeError::ShapeOverflow),
        ),
        (
            [0, i64::MAX],
            DlpackError::Encode(EncodeError::ShapeOverflow),
        ),
    ];
    for (shape, expected) in SHAPES {
        let mut shape = *shape;
        assert_eq!(refused(tensor(&data, &mut shape)), Some(*expected));
    }
    // SAFETY: null is refused.
    let error = unsafe { Import::from_raw(ptr::null_mut()) }.unwrap_err();
    assert_eq!(error, DlpackError::Null(Pointer::Tensor));
}

#[test]
fn only_elements_in_order_without_gaps_are_taken() {
    /// (dimensions, strides, at which dimension another stride is expected, and which; -1 at none)
    const CASES: &[([i64; 2], [i64; 2], [i64; 2])] = &[
        ([2, 3], [3, 1], [-1, 0]),
        // Transposed, with gaps, repeated, reversed.
        ([2, 3], [1, 2], [1, 1]),
        ([2, 3], [6, 1], [0, 3]),
        ([2, 3], [0, 1], [0, 3]),
        ([2, 3], [3, -1], [1, 1]),
        ([2, 3], [i64::MIN, 1], [0, 3]),
        // Of one element a stride says nothing, nor of none.
        ([1, 6], [-77, 1], [-1, 0]),
        ([6, 1], [1, i64::MAX], [-1, 0]),
        ([0, 3], [-5, 9], [-1, 0]),
    ];
    let data = [0.0; 6];
    for &(mut shape, mut strides, [index, expected]) in CASES {
        let mut tensor = tensor(&data, &mut shape);
        tensor.strides = strides.as_mut_ptr();
        let expected = usize::try_from(index)
            .ok()
            .map(|index| DlpackError::Strides {
                index,
                expected,
                actual: strides[index],
            });
        assert_eq!(refused(tensor), expected, "{shape:?} {strides:?}");
    }
}

#[test]
fn the_bytes_start_at_the_offset() {
    let data = [1.0, 2.0, 3.0_f32];
    let mut shape = [2];
    let mut managed = managed(Tensor {
        byte_offset: 4,
        ..tensor(&data, &mut shape)
    });
    // SAFETY: its pointers lead to what the test has.
    let import = unsafe { Import::from_raw(&raw mut managed) }.unwrap();
    assert_eq!(import.as_ref().as_ptr(), data[1..].as_ptr().cast());
    assert_eq!(
        import.view("x").unwrap().to_vec::<f32>().unwrap(),
        [2.0, 3.0]
    );
    assert_eq!((import.dtype(), import.shape()), (DType::Float32, &[2][..]));
}

#[test]
fn a_version_that_is_not_known_is_not_looked_into() {
    let mut managed = VersionedTensor {
        version: Version { major: 2, minor: 0 },
        context: ptr::null_mut(),
        deleter: Some(count::<VersionedTensor>),
        flags: 0,
        tensor: Tensor {
            rank: 1,
            shape: ptr::dangling_mut(),
            ..Tensor::EMPTY
        },
    };
    // SAFETY: of another version, of which nothing more is read.
    let error = unsafe { Import::from_raw_versioned(&raw mut managed) }.unwrap_err();
    assert_eq!(error, DlpackError::Version { major: 2, minor: 0 });
    assert_eq!(error.to_string(), "version 2.0 where 1 is known");
}

#[test]
fn what_is_refused_stays_the_callers_and_what_is_taken_is_given_back_once() {
    let data = [1.0];
    let mut shape = [1];
    let mut managed = ManagedTensor {
        tensor: tensor(&data, &mut shape),
        context: ptr::null_mut(),
        deleter: Some(count::<ManagedTensor>),
    };
    managed.tensor.rank = -1;
    let before = DELETED.load(Ordering::Relaxed);
    // SAFETY: its pointers lead to what the test has.
    assert!(unsafe { Import::from_raw(&raw mut managed) }.is_err());
    assert_eq!(DELETED.load(Ordering::Relaxed), before);
    managed.tensor.rank = 1;
    // SAFETY: its pointers lead to what the test has.
    let import = unsafe { Import::from_raw(&raw mut managed) }.unwrap();
    thread::scope(|scope| {
        scope.spawn(move || drop(import));
    });
    assert_eq!(DELETED.load(Ordering::Relaxed), before + 1);
}

/// Counts where its context says.
unsafe extern "C" fn tell(managed: *mut ManagedTensor) {
    // SAFETY: a read; the import has it from the test.
    let context = unsafe { (*managed).context };
    // SAFETY: the test put a counter there, which outlives the import.
    let count = unsafe { &*context.cast::<AtomicUsize>() };
    count.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn the_deleter_is_called_once_wherever_the_import_ends() {
    /// Where it ends, what it does with an import, and how often its deleter is called.
    const ENDS: &[(&str, fn(Import), usize)] = &[
        ("dropped", drop, 1),
        ("forgotten", core::mem::forget, 0),
        ("as a buffer", |import| drop(Buffer::from(import)), 1),
        (
            "on another thread",
            |import| thread::spawn(|| drop(import)).join().unwrap(),
            1,
        ),
        (
            "in a panic",
            |import| {
                let panics = || {
                    let _kept = import;
                    // Without a word on stderr.
                    std::panic::resume_unwind(Box::new(()));
                };
                let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
                assert!(caught.is_err());
            },
            1,
        ),
        (
            "received",
            |import| {
                let (mut sender, mut receiver) = loopback::pair();
                sender
                    .send_parts(&mut alloc::vec![Part::from(import)], Wait::Never)
                    .unwrap();
                let received = receiver.recv().unwrap();
                drop((sender, receiver));
                assert_eq!(received.frames()[0].as_ref(), 1.5_f32.to_le_bytes());
            },
            1,
        ),
        (
            "not sent",
            |import| {
                let (mut sender, receiver) = loopback::pair();
                drop(receiver);
                let mut parts = alloc::vec![Part::from(import)];
                assert!(sender.send_parts(&mut parts, Wait::Never).is_err());
            },
            1,
        ),
    ];
    let data = [1.5];
    for (name, end, expected) in ENDS {
        let count = AtomicUsize::new(0);
        let mut shape = [1];
        let mut managed = ManagedTensor {
            tensor: tensor(&data, &mut shape),
            context: (&raw const count).cast_mut().cast(),
            deleter: Some(tell),
        };
        // SAFETY: its pointers lead to what the test has.
        end(unsafe { Import::from_raw(&raw mut managed) }.unwrap());
        assert_eq!(count.load(Ordering::Relaxed), *expected, "{name}");
    }
    // A producer may have nothing to do.
    let mut shape = [1];
    let mut managed = managed(tensor(&data, &mut shape));
    // SAFETY: its pointers lead to what the test has.
    drop(unsafe { Import::from_raw(&raw mut managed) }.unwrap());
}

#[test]
fn of_all_kinds_of_numbers_and_devices_those_are_taken_that_are_here() {
    let data = [0.0; 4];
    let mut shape = [1];
    let whole = tensor(&data, &mut shape);
    let mut taken = 0;
    for code in 0..=u8::MAX {
        for bits in [0, 1, 4, 6, 7, 8, 9, 16, 24, 32, 64, 80, 128, 255] {
            for lanes in [0, 1, 2, u16::MAX] {
                let dtype = DataType { code, bits, lanes };
                let error = refused(Tensor { dtype, ..whole });
                assert!(matches!(error, None | Some(DlpackError::DType { .. })));
                taken += usize::from(error.is_none());
            }
        }
    }
    assert_eq!(taken, DType::ALL.len());
    let host = (i32::MIN..=i32::MIN + 2).chain(-2..=40).filter(|&kind| {
        let device = Device { kind, id: -7 };
        refused(Tensor { device, ..whole }).is_none()
    });
    // `kDLCPU`, `kDLCUDAHost`, `kDLROCMHost`.
    assert_eq!(host.collect::<Vec<_>>(), [1, 3, 11]);
}

#[test]
fn a_newer_minor_version_is_read_and_so_is_what_may_not_be_written_to() {
    let data = [1.5];
    let mut shape = [1];
    let mut managed = VersionedTensor {
        version: Version {
            major: 1,
            minor: u32::MAX,
        },
        context: ptr::null_mut(),
        deleter: Some(count::<VersionedTensor>),
        flags: u64::MAX,
        tensor: tensor(&data, &mut shape),
    };
    // SAFETY: its pointers lead to what the test has.
    let import = unsafe { Import::from_raw_versioned(&raw mut managed) }.unwrap();
    assert_eq!(import.as_ref(), 1.5_f32.to_le_bytes());
    core::mem::forget(import);
}

#[test]
fn every_dtype_goes_out_and_comes_in() {
    let bytes = [1_u8; 32];
    for &dtype in DType::ALL {
        for versioned in [false, true] {
            let shape = [1, 32 / dtype.size(), 1];
            let view = TensorView::from_bytes("x", dtype, &shape, &bytes).unwrap();
            let export = Export::copy(&view).unwrap();
            let import = if versioned {
                // SAFETY: it is ours, and was asked for nothing else.
                unsafe { Import::from_raw_versioned(export.into_raw_versioned().as_ptr()) }
            } else {
                // SAFETY: as above.
                unsafe { Import::from_raw(export.into_raw().as_ptr()) }
            };
            let import = import.unwrap();
            assert_eq!((import.dtype(), import.shape()), (dtype, &shape[..]));
            assert_eq!(Buffer::from(import).as_ref(), bytes);
        }
    }
}

#[test]
fn tensors_without_dimensions_or_elements_come_in() {
    let data = [1.5];
    let mut none = managed(tensor(&data, &mut []));
    none.tensor.shape = ptr::null_mut();
    // SAFETY: its pointers lead to what the test has.
    let import = unsafe { Import::from_raw(&raw mut none) }.unwrap();
    assert_eq!(import.as_ref(), 1.5_f32.to_le_bytes());
    let mut shape = [0, 7];
    let mut empty = managed(tensor(&data, &mut shape));
    empty.tensor.data = ptr::null_mut();
    empty.tensor.byte_offset = u64::MAX;
    // SAFETY: its pointers lead to what the test has.
    let import = unsafe { Import::from_raw(&raw mut empty) }.unwrap();
    assert!(import.as_ref().is_empty());
}
