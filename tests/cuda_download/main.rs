//! Tensors of a device to the host, and over a transport from where they were copied to.

#![cfg(feature = "cuda")]

#[path = "../common/cuda.rs"]
mod common;
mod faults;
#[path = "../simulated/mod.rs"]
mod simulated;
mod sources;
#[cfg(feature = "zmq")]
mod wire;

use std::mem::ManuallyDrop;
use std::time::Duration;

use tensorwire::cuda::Source;
use tensorwire::device::{Device, DeviceError, Download, ErrorKind, TensorInfo};
use tensorwire::transport::Wait;
use tensorwire::{DType, Decoder, Descriptor};

use common::{
    Given, PATIENCE, SLOT_BYTES, assert_same, downloaded, encoded, in_use, open, upload_all,
    variety,
};
use simulated::Streams;

#[test]
fn tensors_of_all_kinds_come_back_as_they_were() {
    simulated::test("tensors_of_all_kinds_come_back_as_they_were", || {
        let (cuda, stream) = open(8, SLOT_BYTES);
        for seed in 0..5 {
            let given = variety(seed);
            let tensors = upload_all(&cuda, &stream, &given);
            let download = cuda.download(&tensors.iter().collect::<Vec<_>>(), &stream, PATIENCE);
            let download = download.unwrap();
            assert_eq!(download.infos().len(), given.len());
            assert!(download.infos().nth(5).unwrap().name() == "skip");
            let downloaded = download.finish(PATIENCE).unwrap();
            assert_same(downloaded.tensors(), &given);
            // Apart, and in another order.
            let some = [&tensors[8], &tensors[3], &tensors[1]];
            let some = self::downloaded(&cuda, &stream, &some);
            let expected = [given[8].clone(), given[3].clone(), given[1].clone()];
            drop(downloaded);
            assert_same(some.tensors(), &expected);
        }
        assert_eq!(in_use(&cuda), 0);
    });
}

#[test]
fn each_frame_lies_at_a_multiple_of_256_in_one_run_of_slots() {
    simulated::test(
        "each_frame_lies_at_a_multiple_of_256_in_one_run_of_slots",
        || {
            let (cuda, stream) = open(4, SLOT_BYTES);
            let given = variety(7);
            let tensors = upload_all(&cuda, &stream, &given);
            let downloaded = downloaded(&cuda, &stream, &tensors.iter().collect::<Vec<_>>());
            let mut end = 0;
            for view in downloaded.tensors().filter(|view| view.byte_len() > 0) {
                let start = view.bytes().as_ptr().addr();
                assert_eq!(start % 256, 0, "{:?}", view.descriptor());
                assert!(end == 0 || (end..end + 256).contains(&start));
                end = start + view.byte_len();
            }
            assert_eq!(in_use(&cuda), 3);
            drop(downloaded);
            assert_eq!(in_use(&cuda), 0);
        },
    );
}

#[test]
fn small_tensors_of_one_message_come_back_in_one_copy() {
    simulated::test("small_tensors_of_one_message_come_back_in_one_copy", || {
        let (cuda, stream) = open(4, SLOT_BYTES);
        let given: Vec<_> = (0..100)
            .map(|index| Given::member("list", index, DType::Int32, &[index as usize * 3 % 50], 1))
            .collect();
        let frames = encoded(&given);
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        let tensors = cuda.upload_message(&message, &stream, PATIENCE).unwrap();
        let tensors: Vec<_> = tensors.iter().collect();
        let downloaded = downloaded(&cuda, &stream, &tensors);
        assert_same(downloaded.tensors(), &given);
        if simulated::scripted() {
            assert_eq!(simulated::calls("cuMemcpyDtoHAsync_v2"), 1);
        }
    });
}

#[test]
fn nothing_waits_and_sources_can_be_dropped_at_once() {
    simulated::test("nothing_waits_and_sources_can_be_dropped_at_once", || {
        let (cuda, stream) = open(8, SLOT_BYTES);
        let given = variety(1);
        let tensors = upload_all(&cuda, &stream, &given);
        common::wait_for(&tensors);
        if simulated::scripted() {
            simulated::stall(Streams::All);
        }
        let all: Vec<_> = tensors.iter().collect();
        let mut download = cuda.download(&all, &stream, Wait::Never).unwrap();
        drop(all);
        drop(tensors);
        // What is allocated now may be what was freed.
        let mut next = variety(2).pop().unwrap();
        next.info = TensorInfo::new(&Descriptor::new("next", DType::Complex64, &[7, 11]).unwrap());
        let next_tensor = next.upload(&cuda, &stream);
        if simulated::scripted() {
            assert!(!download.is_ready().unwrap());
            let (waiting, error) = download.finish(Wait::Never).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotReady);
            let longest = Wait::UpTo(Duration::from_millis(1));
            let (waiting, error) = waiting.finish(longest).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            download = waiting;
            simulated::release(Streams::All);
        }
        let downloaded = download.finish(PATIENCE).unwrap();
        assert_same(downloaded.tensors(), &given);
        let next_back = self::downloaded(&cuda, &stream, &[&next_tensor]);
        assert_same(next_back.tensors(), &[next]);
    });
}

#[test]
fn more_than_the_ring_has_is_too_large_and_more_than_is_free_is_ring_full() {
    const NAME: &str = "more_than_the_ring_has_is_too_large_and_more_than_is_free_is_ring_full";
    simulated::test(NAME, || {
        let (cuda, stream) = open(4, 4096);
        let given = Given::new("x", DType::UInt8, &[2, 4000], 3);
        let tensor = given.upload(&cuda, &stream);
        // 8000 rounded up to a multiple of 256, and 8000 more: 16,192; one more byte does not fit.
        let small = Given::new("y", DType::UInt8, &[193], 3).upload(&cuda, &stream);
        let three = [&tensor, &tensor, &small];
        tensor.wait(PATIENCE).unwrap();
        small.wait(PATIENCE).unwrap();
        let error = cuda.download(&three, &stream, PATIENCE).unwrap_err();
        let (needed, room) = (8192 + 8192 + 193, 4 * 4096);
        assert_eq!(error.kind(), ErrorKind::TooLarge { needed, room });
        assert_eq!(
            error.to_string(),
            "staging: 16577 bytes in staging at once where it has 16384"
        );
        assert_eq!(in_use(&cuda), 0);

        let both = downloaded(&cuda, &stream, &[&tensor, &tensor]);
        let full = cuda.download(&[&small], &stream, Wait::Never).unwrap_err();
        let (needed, free) = (1, 0);
        assert_eq!(full.kind(), ErrorKind::RingFull { needed, free });
        let longest = Wait::UpTo(Duration::from_millis(1));
        let late = cuda.download(&[&small], &stream, longest).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        drop(both);
        let download = cuda.download(&[&small], &stream, Wait::Never).unwrap();
        download.finish(PATIENCE).unwrap();
    });
}

#[test]
fn tensors_without_a_byte_take_no_slot_and_no_call() {
    simulated::test("tensors_without_a_byte_take_no_slot_and_no_call", || {
        let (cuda, stream) = open(1, 256);
        let given = [
            Given::new("a", DType::Float32, &[0, 7], 1),
            Given::new("b", DType::Bool, &[0], 1),
        ];
        let tensors = upload_all(&cuda, &stream, &given);
        let before = simulated::scripted().then(|| simulated::calls("cuMemcpyDtoHAsync_v2"));
        let held = cuda.take_pinned(256, Wait::Never).unwrap();
        let all: Vec<_> = tensors.iter().collect();
        for some in [&all[..0], &all] {
            let mut download = cuda.download(some, &stream, Wait::Never).unwrap();
            assert!(download.is_ready().unwrap());
            let downloaded = download.finish(Wait::Never).unwrap();
            assert_same(downloaded.tensors(), &given[..some.len()]);
        }
        drop(held);
        if let Some(before) = before {
            assert_eq!(simulated::calls("cuMemcpyDtoHAsync_v2"), before);
        }
    });
}

#[test]
fn a_download_dropped_early_gives_its_slots_back_when_its_copies_are_over() {
    const NAME: &str = "a_download_dropped_early_gives_its_slots_back_when_its_copies_are_over";
    simulated::test(NAME, || {
        let (cuda, stream) = open(2, SLOT_BYTES);
        let given = Given::new("x", DType::UInt8, &[2 * SLOT_BYTES], 3);
        let tensor = given.upload(&cuda, &stream);
        tensor.wait(PATIENCE).unwrap();
        for _ in 0..10 {
            if simulated::scripted() {
                simulated::stall(Streams::All);
            }
            drop(cuda.download(&[&tensor], &stream, PATIENCE).unwrap());
            if simulated::scripted() {
                let error = cuda.take_pinned(1, Wait::Never).unwrap_err();
                let (needed, free) = (1, 0);
                assert_eq!(error.kind(), ErrorKind::RingFull { needed, free });
                simulated::release(Streams::All);
            }
            drop(cuda.take_pinned(2 * SLOT_BYTES, PATIENCE).unwrap());
        }
        let back = downloaded(&cuda, &stream, &[&tensor]);
        assert_same(back.tensors(), &[given]);
    });
}

#[test]
fn slots_of_a_leaked_download_are_never_used_again() {
    const NAME: &str = "slots_of_a_leaked_download_are_never_used_again";
    simulated::test(NAME, || {
        let (cuda, stream) = open(3, 4096);
        let given = Given::new("x", DType::UInt8, &[4096], 3);
        let tensor = given.upload(&cuda, &stream);
        // Leaked for as long as anybody looks: the test itself is not to leak.
        let flying = cuda.download(&[&tensor], &stream, PATIENCE).unwrap();
        let flying = ManuallyDrop::new(flying);
        let sent = ManuallyDrop::new(downloaded(&cuda, &stream, &[&tensor]));
        let leaked: Vec<_> = sent.tensors().map(|view| view.bytes().as_ptr()).collect();
        for _ in 0..20 {
            let back = downloaded(&cuda, &stream, &[&tensor]);
            assert_same(back.tensors(), std::slice::from_ref(&given));
            assert!(
                back.tensors()
                    .all(|view| !leaked.contains(&view.bytes().as_ptr()))
            );
        }
        assert_eq!(in_use(&cuda), 2);
        let error = cuda.take_pinned(8192, Wait::Never).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::RingFull { .. }));
        drop((
            ManuallyDrop::into_inner(flying),
            ManuallyDrop::into_inner(sent),
        ));
    });
}

#[test]
fn a_download_outlives_its_device() {
    simulated::test("a_download_outlives_its_device", || {
        let (cuda, stream) = open(4, SLOT_BYTES);
        let given = variety(4);
        let tensors = upload_all(&cuda, &stream, &given);
        let all: Vec<_> = tensors.iter().collect();
        let first = cuda.download(&all, &stream, PATIENCE).unwrap();
        drop(all);
        drop((tensors, stream, cuda));
        let downloaded = first.finish(PATIENCE).unwrap();
        assert_same(downloaded.tensors(), &given);
    });
}

#[test]
fn a_stream_can_be_made_to_wait_until_the_sources_are_read() {
    const NAME: &str = "a_stream_can_be_made_to_wait_until_the_sources_are_read";
    simulated::test(NAME, || {
        let (cuda, stream) = open(1, 4096);
        let other = cuda.context().new_stream().unwrap();
        let mut given = Given::new("x", DType::UInt8, &[4096], 3);
        let tensor = given.upload(&cuda, &stream);
        let download = cuda.download(&[&tensor], &stream, PATIENCE).unwrap();
        download.wait_on(&other).unwrap();
        common::fill_by_address(&tensor, 7, &other);
        assert_same(
            download.finish(PATIENCE).unwrap().tensors(),
            &[given.clone()],
        );
        // The other stream's work is waited for.
        given.bytes.fill(7);
        let again = cuda.download(&[&tensor], &other, PATIENCE).unwrap();
        assert_same(again.finish(PATIENCE).unwrap().tensors(), &[given]);
        // The memory is freed on `stream`.
        stream.join(&other).unwrap();
    });
}

#[test]
fn sources_and_tensors_go_in_one_download() {
    simulated::test("sources_and_tensors_go_in_one_download", || {
        let (cuda, stream) = open(4, SLOT_BYTES);
        let given = variety(1);
        let tensors = upload_all(&cuda, &stream, &given);
        let computed = stream.alloc_zeros::<f32>(10).unwrap();
        let zeros = Given {
            info: TensorInfo::new(&Descriptor::new("zeros", DType::Float32, &[2, 5]).unwrap()),
            bytes: vec![0; 40],
        };
        let mut all: Vec<_> = common::sources(&tensors).collect();
        all.insert(4, Source::new(zeros.info.clone(), &computed).unwrap());
        let download = cuda.download_sources(all, &stream, PATIENCE).unwrap();
        let mut expected = given;
        expected.insert(4, zeros);
        assert_same(download.finish(PATIENCE).unwrap().tensors(), &expected);
    });
}
