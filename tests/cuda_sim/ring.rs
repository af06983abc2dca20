//! The ring of pinned slots: who gets which, who waits, and when they come back.

use std::mem;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use tensorwire::cuda::{Cuda, CudaError, Options, Pinned, Statistics, Tensor};
use tensorwire::device::{Device, DeviceError, ErrorKind};
use tensorwire::transport::Wait;
use tensorwire::{DType, Descriptor, TensorView};

use super::simulated::{self, Live, Streams};

/// The adapter's own stream to the device.
pub(super) const TO_DEVICE: Streams<'_> = Streams::Made(0);

pub(super) fn open(slots: usize, slot_bytes: usize) -> Cuda {
    Cuda::open(0, Options::new().with_ring(slots, slot_bytes)).unwrap()
}

pub(super) fn kind<T>(result: Result<T, CudaError>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

pub(super) fn upload(
    cuda: &Cuda,
    bytes: &[u8],
    stream: &Arc<CudaStream>,
) -> Result<Tensor, CudaError> {
    let shape = [bytes.len()];
    let view = TensorView::from_slice("t", &shape, bytes).unwrap();
    cuda.upload(&view, stream, Wait::Never)
}

pub(super) fn address(pinned: &Pinned) -> usize {
    pinned.as_ref().as_ptr().addr()
}

/// Polls until so many slots are in use. No copy is held up that it waits for, so it ends.
pub(super) fn until_in_use(cuda: &Cuda, slots: usize) {
    while cuda.statistics().in_use != slots {
        cuda.poll().unwrap();
        thread::yield_now();
    }
}

#[test]
fn a_full_ring_is_a_value() {
    simulated::test("ring::a_full_ring_is_a_value", || {
        let cuda = open(3, 1000);
        assert_eq!(cuda.statistics().slot_bytes, 1024, "rounded up to 256");
        let two = cuda.take_pinned(1025, Wait::Never).unwrap();
        let full = |needed, free| ErrorKind::RingFull { needed, free };
        assert_eq!(kind(cuda.take_pinned(1025, Wait::Never)), full(2, 1));
        let one = cuda.take_pinned(0, Wait::Never).unwrap();
        assert_eq!(kind(cuda.take_pinned(1, Wait::Never)), full(1, 0));
        // More than the ring ever has is told apart, also to who would wait.
        let (needed, room) = (3 * 1024 + 1, 3 * 1024);
        let large = ErrorKind::TooLarge { needed, room };
        assert_eq!(kind(cuda.take_pinned(needed, Wait::Forever)), large);
        drop(two);
        let again = cuda.take_pinned(2048, Wait::Never).unwrap();
        drop((one, again));
        assert_eq!(
            cuda.take_pinned(room, Wait::Never).unwrap().as_ref(),
            vec![0; room]
        );
    });
}

#[test]
fn a_ring_of_nothing_is_one_of_one_slot() {
    simulated::test("ring::a_ring_of_nothing_is_one_of_one_slot", || {
        let cuda = open(0, 0);
        let statistics = cuda.statistics();
        assert_eq!((statistics.slots, statistics.slot_bytes), (1, 256));
        assert_eq!(
            cuda.take_pinned(256, Wait::Never).unwrap().as_ref().len(),
            256
        );
        drop(cuda);
        for (slots, slot_bytes) in [(usize::MAX, 256), (3, usize::MAX / 2), (1, usize::MAX)] {
            let options = Options::new().with_ring(slots, slot_bytes);
            let refused = kind(Cuda::open(0, options));
            assert!(
                matches!(refused, ErrorKind::OutOfMemory { .. }),
                "{refused}"
            );
        }
    });
}

#[test]
fn a_call_waits_as_long_as_it_may() {
    simulated::test("ring::a_call_waits_as_long_as_it_may", || {
        let timeout = Duration::from_millis(30);
        let cuda = Cuda::open(0, Options::new().with_ring(1, 256).with_timeout(timeout)).unwrap();
        let taken = cuda.take_pinned(1, Wait::Never).unwrap();
        for wait in [Wait::UpTo(timeout), Wait::Configured] {
            let start = Instant::now();
            assert_eq!(kind(cuda.take_pinned(1, wait)), ErrorKind::TimedOut);
            assert!(start.elapsed() >= timeout, "{wait:?}");
        }
        let nothing = Wait::UpTo(Duration::ZERO);
        assert_eq!(kind(cuda.take_pinned(1, nothing)), ErrorKind::TimedOut);
        let other = cuda.clone();
        let waits = thread::spawn(move || other.take_pinned(1, Wait::Forever).map(drop));
        while cuda.statistics().stalls < 4 {
            thread::yield_now();
        }
        drop(taken);
        waits.join().unwrap().unwrap();
        // What is there is had without any time.
        cuda.take_pinned(1, nothing).unwrap();
    });
}

#[test]
fn those_that_wait_are_served_in_turn() {
    simulated::test("ring::those_that_wait_are_served_in_turn", || {
        let cuda = open(2, 256);
        let first = cuda.take_pinned(1, Wait::Never).unwrap();
        let second = cuda.take_pinned(1, Wait::Never).unwrap();
        let served = Arc::new(Mutex::new(Vec::new()));
        let mut threads = Vec::new();
        // The large one is in line before the small ones.
        for (number, bytes) in [512, 1, 1, 257].into_iter().enumerate() {
            let (cuda, served) = (cuda.clone(), served.clone());
            let before = cuda.statistics().stalls;
            let statistics = cuda.clone();
            threads.push(thread::spawn(move || {
                let taken = cuda.take_pinned(bytes, Wait::Forever).unwrap();
                served.lock().unwrap().push(number);
                drop(taken);
            }));
            while statistics.statistics().stalls == before {
                thread::yield_now();
            }
        }
        drop(first);
        // Who does not wait takes what there is.
        drop(cuda.take_pinned(1, Wait::Never).unwrap());
        assert!(served.lock().unwrap().is_empty());
        drop(second);
        for thread in threads {
            thread.join().unwrap();
        }
        let served = served.lock().unwrap();
        assert_eq!(served[0], 0);
        assert_eq!(served[3], 3, "{served:?}");
    });
}

#[test]
fn slots_apart_are_no_room_for_a_run() {
    simulated::test("ring::slots_apart_are_no_room_for_a_run", || {
        let cuda = open(4, 256);
        let take = || cuda.take_pinned(256, Wait::Never).unwrap();
        let mut slots: Vec<_> = (0..4).map(|_| Some(take())).collect();
        let start = address(slots[0].as_ref().unwrap());
        assert_eq!(start % 256, 0);
        for (number, slot) in slots.iter().enumerate() {
            assert_eq!(address(slot.as_ref().unwrap()), start + 256 * number);
        }
        slots[0] = None;
        slots[2] = None;
        let full = ErrorKind::RingFull { needed: 2, free: 2 };
        assert_eq!(kind(cuda.take_pinned(257, Wait::Never)), full);
        slots[3] = None;
        let run = cuda.take_pinned(257, Wait::Never).unwrap();
        assert_eq!(address(&run), start + 512);
        assert_eq!(run.as_ref().len(), 257);
    });
}

#[test]
fn slots_come_back_in_the_order_in_which_copies_end() {
    let name = "ring::slots_come_back_in_the_order_in_which_copies_end";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let cuda = open(2, 1024);
        let stream = cuda.context().new_stream().unwrap();
        let tensor = upload(&cuda, &[7; 1024], &stream).unwrap();
        until_in_use(&cuda, 0);
        let start = address(&cuda.take_pinned(1, Wait::Never).unwrap());
        simulated::stall(TO_DEVICE);
        let other = cuda.context().new_stream().unwrap();
        let late = upload(&cuda, &[8; 1024], &other).unwrap();
        // The second slot goes the other way, and is let go of before it is there.
        drop(cuda.download(&[&tensor], &stream, Wait::Never).unwrap());
        until_in_use(&cuda, 1);
        for _ in 0..10 {
            let taken = cuda.take_pinned(1, Wait::Never).unwrap();
            assert_eq!(address(&taken), start + 1024, "the first is in flight");
            let full = ErrorKind::RingFull { needed: 1, free: 0 };
            assert_eq!(kind(cuda.take_pinned(1, Wait::Never)), full);
        }
        simulated::release(TO_DEVICE);
        let taken = cuda.take_pinned(2048, Wait::Forever).unwrap();
        assert_eq!(address(&taken), start);
        drop((tensor, late));
    });
}

#[test]
fn who_waits_is_served_when_a_copy_ends() {
    let name = "ring::who_waits_is_served_when_a_copy_ends";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let cuda = open(1, 256);
        let stream = cuda.context().new_stream().unwrap();
        simulated::stall(TO_DEVICE);
        let tensor = upload(&cuda, &[1; 256], &stream).unwrap();
        let short = Wait::UpTo(Duration::from_millis(20));
        assert_eq!(kind(cuda.take_pinned(1, short)), ErrorKind::TimedOut);
        let other = cuda.clone();
        let waits = thread::spawn(move || other.take_pinned(1, Wait::Forever).map(drop));
        while cuda.statistics().stalls < 2 {
            thread::yield_now();
        }
        simulated::release(TO_DEVICE);
        // Nobody else polls.
        waits.join().unwrap().unwrap();
        drop(tensor);
    });
}

#[test]
fn statistics_are_exact() {
    simulated::test("ring::statistics_are_exact", || {
        let cuda = open(4, 512);
        let expect = |in_use, high_water, taken, bytes, stalls, refused| {
            let Statistics {
                slots,
                lost,
                slot_bytes,
                ..
            } = cuda.statistics();
            assert_eq!((slots, lost, slot_bytes), (4, 0, 512));
            let now = cuda.statistics();
            let counts = (now.in_use, now.high_water, now.taken, now.bytes);
            assert_eq!(counts, (in_use, high_water, taken, bytes));
            assert_eq!((now.stalls, now.refused), (stalls, refused));
        };
        expect(0, 0, 0, 0, 0, 0);
        let one = cuda.take_pinned(1, Wait::Never).unwrap();
        expect(1, 1, 1, 1, 0, 0);
        let two = cuda.take_pinned(513, Wait::Never).unwrap();
        expect(3, 3, 2, 514, 0, 0);
        cuda.take_pinned(600, Wait::Never).unwrap_err();
        expect(3, 3, 2, 514, 1, 1);
        cuda.take_pinned(5000, Wait::Never).unwrap_err();
        expect(3, 3, 2, 514, 1, 1);
        cuda.take_pinned(600, Wait::UpTo(Duration::from_millis(1)))
            .unwrap_err();
        expect(3, 3, 2, 514, 2, 2);
        drop(one);
        expect(2, 3, 2, 514, 2, 2);
        let stream = cuda.context().new_stream().unwrap();
        let tensor = upload(&cuda, &[3; 512], &stream).unwrap();
        until_in_use(&cuda, 2);
        expect(2, 3, 3, 1026, 2, 2);
        drop((two, tensor));
        expect(0, 3, 3, 1026, 2, 2);
        drop(cuda.take_pinned(4, Wait::Never).unwrap());
        expect(0, 3, 4, 1030, 2, 2);
    });
}

#[test]
fn a_forgotten_handle_keeps_its_slots_for_ever() {
    simulated::test("ring::a_forgotten_handle_keeps_its_slots_for_ever", || {
        let cuda = open(3, 256);
        let forgotten = cuda.take_pinned(1, Wait::Never).unwrap();
        let start = address(&forgotten);
        mem::forget(forgotten);
        for _ in 0..100 {
            let rest = cuda.take_pinned(512, Wait::Never).unwrap();
            assert_eq!(address(&rest), start + 256);
        }
        let full = ErrorKind::RingFull { needed: 3, free: 2 };
        assert_eq!(kind(cuda.take_pinned(768, Wait::Never)), full);
        assert_eq!(cuda.statistics().in_use, 1);
        drop(cuda);
        // Whoever has the bytes may use them yet.
        if simulated::scripted() {
            simulated::leaves(Live {
                pinned: 1,
                events: 3,
                contexts: 1,
                ..Live::default()
            });
        }
    });
}

#[test]
fn threads_that_hammer_one_ring_never_share_a_slot() {
    simulated::test(
        "ring::threads_that_hammer_one_ring_never_share_a_slot",
        || {
            let cuda = open(5, 256);
            let threads: Vec<_> = (1..=6_usize)
                .map(|number| {
                    let cuda = cuda.clone();
                    thread::spawn(move || hammer(&cuda, number))
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            until_in_use(&cuda, 0);
            let statistics = cuda.statistics();
            assert_eq!(statistics.taken, 6 * ROUNDS as u64);
            assert!(statistics.high_water <= 5);
        },
    );
}

#[test]
fn slots_are_given_back_by_any_thread() {
    simulated::test("ring::slots_are_given_back_by_any_thread", || {
        let cuda = open(3, 256);
        let (give, given) = mpsc::channel::<(u8, Pinned)>();
        let gives_back = thread::spawn(move || {
            let mut count = 0;
            for (mark, pinned) in given {
                assert!(pinned.as_ref().iter().all(|byte| *byte == mark), "shared");
                count += 1;
            }
            count
        });
        let threads: Vec<_> = (0..3_u8)
            .map(|number| {
                let (cuda, give) = (cuda.clone(), give.clone());
                thread::spawn(move || {
                    for round in 0..ROUNDS {
                        let len = 1 + (round * 97 + usize::from(number)) % 700;
                        let mut pinned = cuda.take_pinned(len, Wait::Forever).unwrap();
                        pinned.as_mut().fill(number);
                        give.send((number, pinned)).unwrap();
                        if round % 16 == 0 {
                            cuda.poll().unwrap();
                            assert!(cuda.statistics().in_use <= 3);
                        }
                    }
                })
            })
            .collect();
        drop(give);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(gives_back.join().unwrap(), 3 * ROUNDS);
        assert_eq!(cuda.statistics().in_use, 0);
    });
}

const ROUNDS: usize = 300;

/// Takes, fills, and looks whether it is what was filled in; and brings some to the device.
fn hammer(cuda: &Cuda, number: usize) {
    let stream = cuda.context().new_stream().unwrap();
    let mut random = number;
    for round in 0..ROUNDS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let len = (random >> 33) % 1280;
        let mark = (number * 40 + round % 40) as u8;
        let wait = if round % 3 == 0 {
            Wait::UpTo(Duration::from_secs(60))
        } else {
            Wait::Forever
        };
        let mut pinned = cuda.take_pinned(len, wait).unwrap();
        pinned.as_mut().fill(mark);
        thread::yield_now();
        assert!(pinned.as_ref().iter().all(|byte| *byte == mark), "shared");
        if round % 4 == 0 {
            let shape = [len];
            let descriptor = Descriptor::new("t", DType::UInt8, &shape).unwrap();
            drop(
                cuda.upload_pinned(&descriptor, pinned.share(), &stream)
                    .unwrap(),
            );
        }
    }
}
