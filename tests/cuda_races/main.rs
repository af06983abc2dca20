//! Threads that use one ring at once, for the thread sanitizer; without it, to be looked at by their own asserts.
//!
//! Each scenario runs in a process of its own, on the simulated driver. One has a race planted, on the bytes of a slot:
//! it has to be reported, or the silence about the others would say nothing. There is no test harness, as it
//! takes its results from thread to thread by means of the standard library, which is not compiled with the sanitizer.
//!
//! ```text
//! RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg thread_sanitizer" cargo +nightly test \
//!     --target x86_64-unknown-linux-gnu --no-default-features --features cuda --test cuda_races
//! ```

#[path = "../simulated/mod.rs"]
mod simulated;

use std::env;
use std::process::{self, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread;
use std::time::Duration;

use tensorwire::cuda::{Cuda, Options, Pinned};
use tensorwire::device::{Device, DeviceError, Download};
use tensorwire::transport::Wait;
use tensorwire::{DType, Descriptor, TensorView};

/// (name, what is done, whether the sanitizer has to say something)
const SCENARIOS: &[(&str, fn(), bool)] = &[
    ("threads that take, fill, look and upload", hammer, false),
    ("slots that go from thread to thread", hand_over, false),
    ("threads that wait for one slot", wait, false),
    ("uploads and downloads at once", both_ways, false),
    ("a slot written, then given back", in_order, false),
    ("a slot given back, then written", planted, true),
];

fn main() {
    if env::args().any(|argument| argument == "--list") {
        return;
    }
    if let Ok(name) = env::var(SCENARIO) {
        let (_, run, _) = SCENARIOS.iter().find(|(other, ..)| *other == name).unwrap();
        run();
        assert_eq!(simulated::settle(), Vec::<String>::new());
        assert_eq!(simulated::live(), simulated::Live::default());
        return;
    }
    if simulated::on_device() {
        println!("SKIP: races are looked for on the simulated driver");
        return;
    }
    let mut failed = false;
    for (name, _, is_race) in SCENARIOS {
        if *is_race && !cfg!(thread_sanitizer) {
            println!("SKIP: {name}: needs the thread sanitizer");
            continue;
        }
        let output = child(name).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        let is_reported = text.contains("ThreadSanitizer: data race");
        let is_right = is_reported == *is_race && output.status.success() != *is_race;
        println!("{name}: {}", if is_right { "ok" } else { "FAILED" });
        if !is_right {
            println!("{}{text}", String::from_utf8_lossy(&output.stdout));
        }
        failed |= !is_right;
    }
    process::exit(failed.into());
}

const SCENARIO: &str = "TENSORWIRE_RACES_SCENARIO";

/// This program again, on the simulated driver, for one scenario.
fn child(name: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    simulated::with_driver(&mut command, &simulated::folder());
    command.env(SCENARIO, name).env("TENSORWIRE_SIMCUDA", "1");
    let silent = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/cuda_races/thread_sanitizer.txt"
    );
    command.env("TSAN_OPTIONS", format!("suppressions={silent}"));
    command
}

fn open(slots: usize) -> Cuda {
    Cuda::open(0, Options::new().with_ring(slots, 256)).unwrap()
}

/// Runs `work` on so many threads at once, each with its number.
fn at_once(threads: u8, work: impl Fn(u8) + Send + Sync + 'static) {
    let work = Arc::new(work);
    let threads: Vec<_> = (0..threads)
        .map(|number| {
            let work = work.clone();
            thread::spawn(move || work(number))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

const ROUNDS: usize = 300;

/// Numbers that look like chance, below `limit`.
fn random(seed: &mut usize, limit: usize) -> usize {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % limit
}

/// Fills it, and looks whether somebody else did too.
fn fill(pinned: &mut Pinned, mark: u8) {
    pinned.as_mut().fill(mark);
    thread::yield_now();
    assert!(pinned.as_ref().iter().all(|byte| *byte == mark), "shared");
}

fn hammer() {
    let cuda = open(5);
    let handle = cuda.clone();
    at_once(6, move |number| {
        let stream = handle.context().new_stream().unwrap();
        let mut seed = usize::from(number);
        for round in 0..ROUNDS {
            let len = random(&mut seed, 1280);
            let mut pinned = handle.take_pinned(len, Wait::Forever).unwrap();
            fill(&mut pinned, number);
            match round % 4 {
                0 => {
                    let shape = [len];
                    let descriptor = Descriptor::new("t", DType::UInt8, &shape).unwrap();
                    drop(
                        handle
                            .upload_pinned(&descriptor, pinned.share(), &stream)
                            .unwrap(),
                    );
                }
                1 => assert!(handle.statistics().in_use <= 5),
                _ => {}
            }
        }
    });
    assert_eq!(cuda.statistics().high_water, 5);
}

fn hand_over() {
    let cuda = open(3);
    let handle = cuda.clone();
    // A place for one slot: who swaps it out has it.
    let place = Arc::new(AtomicPtr::<Pinned>::default());
    let shared = place.clone();
    at_once(4, move |number| {
        let mut seed = usize::from(number);
        for _ in 0..ROUNDS {
            let wait = [Wait::Never, Wait::UpTo(Duration::from_millis(1))][random(&mut seed, 2)];
            let taken = handle.take_pinned(random(&mut seed, 500), wait);
            let new = taken.map_or(std::ptr::null_mut(), |mut pinned| {
                fill(&mut pinned, number);
                Box::into_raw(Box::new(pinned))
            });
            let old = shared.swap(new, Ordering::AcqRel);
            if !old.is_null() {
                // SAFETY: it came out of a box, and who swaps it out is the only one to have it.
                let pinned = unsafe { Box::from_raw(old) };
                let bytes = (*pinned).as_ref();
                let first = bytes.first().copied().unwrap_or_default();
                assert!(bytes.iter().all(|byte| *byte == first), "shared");
            }
        }
    });
    let last = place.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !last.is_null() {
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(last) });
    }
    assert_eq!(cuda.statistics().in_use, 0);
}

fn wait() {
    let cuda = open(1);
    let handle = cuda.clone();
    at_once(8, move |number| {
        for round in 0..ROUNDS {
            let wait = match round % 3 {
                0 => Wait::UpTo(Duration::from_micros(50)),
                _ => Wait::Forever,
            };
            match handle.take_pinned(256, wait) {
                Ok(mut pinned) => fill(&mut pinned, number),
                Err(error) => assert!(error.kind().is_wait(), "{error}"),
            }
        }
    });
    assert!(cuda.statistics().stalls > 0);
}

fn both_ways() {
    let cuda = open(4);
    let handle = cuda.clone();
    at_once(4, move |number| {
        let stream = handle.context().new_stream().unwrap();
        let bytes = [number; 700];
        let view = TensorView::from_slice("t", &[700], &bytes).unwrap();
        for _ in 0..ROUNDS / 3 {
            let tensor = handle.upload(&view, &stream, Wait::Forever).unwrap();
            let download = handle.download(&[&tensor], &stream, Wait::Forever).unwrap();
            let frames = download
                .finish(Wait::Forever)
                .map_err(|(_, error)| error)
                .unwrap();
            let tensor = frames.tensors().next().unwrap();
            assert_eq!(tensor.bytes(), bytes);
        }
    });
    drop(cuda);
}

fn in_order() {
    race(false);
}

fn planted() {
    race(true);
}

/// A pointer that crosses threads.
struct Stray(*mut u8);

// SAFETY: as for `&mut u8`; what is done with it is the scenario's.
unsafe impl Send for Stray {}

/// One thread writes to its slot and gives it back; or, `is_late`, the other way round. Then another takes it and
/// writes there too.
fn race(is_late: bool) {
    // It tells when, and orders nothing.
    static IS_BACK: AtomicBool = AtomicBool::new(false);
    let cuda = open(1);
    let mut pinned = cuda.take_pinned(256, Wait::Never).unwrap();
    let stray = Stray(pinned.as_mut().as_mut_ptr());
    let other = cuda.clone();
    let next = thread::spawn(move || {
        while !IS_BACK.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        let mut pinned = other.take_pinned(256, Wait::Never).unwrap();
        pinned.as_mut().fill(2);
    });
    let first = thread::spawn(move || {
        let Stray(pointer) = { stray };
        if is_late {
            drop(pinned);
            // SAFETY: the memory is there, as the ring is. It is not this thread's any more, which is what is planted.
            unsafe { pointer.write(1) };
        } else {
            // SAFETY: the memory is there, and this thread's.
            unsafe { pointer.write(1) };
            drop(pinned);
        }
        IS_BACK.store(true, Ordering::Relaxed);
    });
    first.join().unwrap();
    next.join().unwrap();
}
