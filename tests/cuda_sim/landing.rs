//! Payloads that come piece by piece, into pinned memory.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;
use tensorwire::DType;
use tensorwire::cuda::{Cuda, Landing, Step};
use tensorwire::device::{
    Device as _, DeviceError as _, DeviceTensor as _, ErrorKind, Landing as _,
};
use tensorwire::error::CastError;
use tensorwire::message::Decoder;
use tensorwire::transport::Wait;

use crate::given::{
    Given, Random, SLOT_BYTES, SLOTS, calls, device_bytes, frames, open, open_with, options,
};
use crate::simulated::{self, Streams};

/// Small ones and large ones, empty ones among them, in no order.
fn mixed() -> Vec<Given> {
    let lens = [0, 7, 5000, 0, 256, 1, 20_000, 1024, 1025, 300, 0];
    let lens = lens.into_iter().enumerate();
    lens.map(|(index, len)| Given::of_len(&format!("tensor {index}"), len))
        .collect()
}

fn land(cuda: &Cuda, given: &[Given], stream: &Arc<CudaStream>) -> Landing {
    let frames = frames(given);
    let mut decoder = Decoder::new();
    let metadata = decoder.decode_metadata(&frames[0]).unwrap();
    cuda.land(&metadata, stream).unwrap()
}

/// All payloads, one after the other.
fn payloads(given: &[Given]) -> Vec<u8> {
    given.iter().flat_map(|given| given.bytes.clone()).collect()
}

/// Fills the landing out of `bytes`, `next()` bytes at once at most, until `bytes` are used up.
fn fill(landing: &mut Landing, mut bytes: &[u8], mut next: impl FnMut() -> usize) {
    while !bytes.is_empty() {
        let room = landing.room(Wait::Forever).unwrap();
        assert!(!room.is_empty());
        let len = next().min(room.len()).min(bytes.len());
        let (now, rest) = bytes.split_at(len);
        room[..len].copy_from_slice(now);
        landing.filled(len).unwrap();
        bytes = rest;
    }
}

#[track_caller]
fn assert_arrived(landing: Landing, given: &[Given]) {
    assert_eq!(landing.missing(), 0);
    let tensors = landing.finish().unwrap();
    assert_eq!(tensors.len(), given.len());
    for (given, tensor) in given.iter().zip(tensors.iter()) {
        given.assert_is(tensor);
    }
}

#[test]
fn payloads_arrive_in_pieces_of_any_size() {
    simulated::test("landing::payloads_arrive_in_pieces_of_any_size", || {
        let (cuda, stream) = open();
        let given = mixed();
        let bytes = payloads(&given);
        for most in [1, 3, 255, 256, 257, 4096, usize::MAX] {
            let mut landing = land(&cuda, &given, &stream);
            assert_eq!(landing.missing(), bytes.len());
            fill(&mut landing, &bytes, || most);
            assert!(landing.room(Wait::Never).unwrap().is_empty());
            assert_arrived(landing, &given);
        }
        let mut random = Random(1);
        for _ in 0..20 {
            let mut landing = land(&cuda, &given, &stream);
            fill(&mut landing, &bytes, || 1 + random.below(3000));
            assert_arrived(landing, &given);
        }
        // All at once, and in two goes.
        let mut landing = land(&cuda, &given, &stream);
        landing.copy_from(&bytes, Wait::Forever).unwrap();
        assert_arrived(landing, &given);
        let mut landing = land(&cuda, &given, &stream);
        landing.copy_from(&bytes[..5003], Wait::Forever).unwrap();
        assert_eq!(landing.missing(), bytes.len() - 5003);
        landing.copy_from(&bytes[5003..], Wait::Forever).unwrap();
        assert_arrived(landing, &given);
        cuda.poll().unwrap();
        assert_eq!(cuda.statistics().in_use, 0);
    });
}

#[test]
fn room_is_pinned_aligned_and_of_one_tensor() {
    simulated::test("landing::room_is_pinned_aligned_and_of_one_tensor", || {
        let (cuda, stream) = open();
        let given = [Given::of_len("a", 7), Given::of_len("b", 3 * SLOT_BYTES)];
        let mut landing = land(&cuda, &given, &stream);
        let room = landing.room(Wait::Forever).unwrap();
        assert_eq!((room.len(), room.as_ptr().addr() % 256), (7, 0));
        if simulated::scripted() {
            assert!(simulated::is_pinned(room));
        }
        // It can be asked for again; what is not filled is not taken.
        room.fill(0xee);
        let room = landing.room(Wait::Forever).unwrap();
        room.copy_from_slice(&given[0].bytes);
        landing.filled(3).unwrap();
        assert_eq!(landing.room(Wait::Forever).unwrap().len(), 4);
        landing.filled(0).unwrap();
        assert_eq!(landing.room(Wait::Forever).unwrap().len(), 4);
        landing.filled(4).unwrap();
        let room = landing.room(Wait::Forever).unwrap();
        // Behind the first, in the same slot.
        assert_eq!(
            (room.len(), room.as_ptr().addr() % 256),
            (SLOT_BYTES - 256, 0)
        );
        landing.copy_from(&given[1].bytes, Wait::Forever).unwrap();
        assert_arrived(landing, &given);
    });
}

#[test]
fn neighbours_among_small_tensors_are_one_copy() {
    simulated::test(
        "landing::neighbours_among_small_tensors_are_one_copy",
        || {
            let (cuda, stream) = open_with(options().with_ring(2, 64 << 10));
            let small = (0..30).map(|index| Given::of_len(&format!("small {index}"), 100 + index));
            let mut given: Vec<_> = small.collect();
            for copies in [1, 3] {
                let before = (calls("cuMemcpyHtoDAsync_v2"), calls("cuMemAllocAsync"));
                let mut landing = land(&cuda, &given, &stream);
                landing.copy_from(&payloads(&given), Wait::Forever).unwrap();
                let after = (calls("cuMemcpyHtoDAsync_v2"), calls("cuMemAllocAsync"));
                if simulated::scripted() {
                    let allocations = copies.min(2);
                    assert_eq!(after, (before.0 + copies, before.1 + allocations));
                }
                assert_arrived(landing, &given);
                given.insert(11, Given::of_len("large", 1025));
            }
        },
    );
}

#[test]
fn a_full_ring_leaves_a_landing_as_it_was() {
    let name = "landing::a_full_ring_leaves_a_landing_as_it_was";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let (cuda, stream) = open();
        let given = [
            Given::of_len("a", 7),
            Given::of_len("b", SLOTS * SLOT_BYTES),
        ];
        let bytes = payloads(&given);
        let mut landing = land(&cuda, &given, &stream);
        simulated::stall(Streams::All);
        let error = landing.copy_from(&bytes, Wait::Never).unwrap_err();
        let (needed, free) = (1, 0);
        assert_eq!(error.kind(), ErrorKind::RingFull { needed, free });
        assert_eq!((error.step(), error.tensor()), (Step::Stage, Some(1)));
        // The first starts at 0, the second at 256.
        let taken = 7 + SLOTS * SLOT_BYTES - 256;
        assert_eq!(landing.missing(), bytes.len() - taken);
        for _ in 0..3 {
            let error = landing.room(Wait::Never).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::RingFull { needed, free });
            let wait = Wait::UpTo(Duration::from_millis(2));
            assert_eq!(landing.room(wait).unwrap_err().kind(), ErrorKind::TimedOut);
        }
        // There was no room to fill.
        let (expected, actual) = (0, 1);
        let error = landing.filled(1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Length { expected, actual });
        simulated::release(Streams::All);
        landing.copy_from(&bytes[taken..], Wait::Forever).unwrap();
        assert_arrived(landing, &given);
    });
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    simulated::test("landing::lengths_that_do_not_fit_are_refused", || {
        let (cuda, stream) = open();
        let given = [Given::of_len("a", 7), Given::of_len("b", 9)];
        let bytes = payloads(&given);
        let mut landing = land(&cuda, &given, &stream);
        let refuse = |expected, actual| ErrorKind::Length { expected, actual };
        assert_eq!(landing.filled(1).unwrap_err().kind(), refuse(0, 1));
        landing.room(Wait::Never).unwrap()[..7].copy_from_slice(&bytes[..7]);
        assert_eq!(landing.filled(8).unwrap_err().kind(), refuse(7, 8));
        landing.filled(7).unwrap();
        assert_eq!(landing.filled(1).unwrap_err().kind(), refuse(0, 1));
        let error = landing.copy_from(&bytes[..10], Wait::Never).unwrap_err();
        assert_eq!((error.kind(), error.tensor()), (refuse(9, 10), Some(1)));
        assert_eq!(landing.missing(), 9);
        landing.copy_from(&bytes[7..], Wait::Never).unwrap();
        assert_eq!(landing.filled(1).unwrap_err().kind(), refuse(0, 1));
        assert_arrived(landing, &given);

        let mut landing = land(&cuda, &given, &stream);
        landing.copy_from(&bytes[..9], Wait::Never).unwrap();
        let error = landing.finish().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incomplete { missing: 7 });
        assert_eq!(error.tensor(), Some(1));
    });
}

#[test]
fn a_landing_that_is_dropped_gives_back_what_it_has() {
    simulated::test(
        "landing::a_landing_that_is_dropped_gives_back_what_it_has",
        || {
            let (cuda, stream) = open();
            let given = mixed();
            let bytes = payloads(&given);
            for taken in [0, 1, 7, 5000, 12_000, bytes.len()] {
                let mut landing = land(&cuda, &given, &stream);
                landing.copy_from(&bytes[..taken], Wait::Forever).unwrap();
                drop(landing);
                if simulated::scripted() {
                    simulated::settle();
                } else {
                    cuda.context().synchronize().unwrap();
                }
                cuda.poll().unwrap();
                assert_eq!(
                    (device_bytes(), cuda.statistics().in_use),
                    (0, 0),
                    "{taken}"
                );
            }
        },
    );
}

#[test]
fn a_message_without_bytes_lands_without_the_driver() {
    simulated::test(
        "landing::a_message_without_bytes_lands_without_the_driver",
        || {
            let (cuda, stream) = open();
            let before = calls("*");
            for given in [
                Vec::new(),
                vec![
                    Given::of_len("none", 0),
                    Given::new("nil", DType::Bool, &[3, 0]),
                ],
            ] {
                let mut landing = land(&cuda, &given, &stream);
                assert!(landing.room(Wait::Never).unwrap().is_empty());
                landing.filled(0).unwrap();
                landing.copy_from(&[], Wait::Never).unwrap();
                let tensors = landing.finish().unwrap();
                assert_eq!(tensors.len(), given.len());
                assert!(tensors.iter().all(|tensor| tensor.is_ready() == Ok(true)));
            }
            assert_eq!(calls("*"), before);
        },
    );
}

#[test]
fn bools_are_looked_at_as_they_come() {
    simulated::test("landing::bools_are_looked_at_as_they_come", || {
        let (cuda, stream) = open();
        let mut given = [
            Given::new("good", DType::Bool, &[5000]),
            Given::new("bad", DType::Bool, &[5000]),
            Given::of_len("bytes", 3),
        ];
        given[1].bytes[4321] = 9;
        given[1].bytes[4999] = 8;
        given[2].bytes.fill(7);
        for most in [1000, usize::MAX] {
            let mut landing = land(&cuda, &given, &stream);
            fill(&mut landing, &payloads(&given), || most);
            let tensors = landing.finish().unwrap().into_vec();
            assert!(tensors[0].view::<bool>().is_ok());
            let (index, byte) = (4321, 9);
            let error = CastError::InvalidBool { index, byte };
            assert_eq!(tensors[1].view::<bool>().err(), Some(error));
            assert!(tensors[2].view::<u8>().is_ok());
            given[1].assert_is(&tensors[1]);
        }
    });
}
