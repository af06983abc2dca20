//! Everything at once, by chance: calls that fail, handles dropped in any order by any thread, rings that are full.

use std::sync::{Arc, Mutex};
use std::thread;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUresult;
use tensorwire::cuda::{Cuda, Download, Landing, Options, Pinned, PinnedBytes, Tensor};
use tensorwire::device::{Device as _, Download as _, Downloaded, Landing as _};
use tensorwire::message::Decoder;
use tensorwire::transport::Wait;

use crate::given::{Given, Random, SLOT_BYTES, frames, noise, open_with};
use crate::simulated;

/// What a thread may have, and another may drop.
#[allow(dead_code, reason = "some are there to be dropped")]
enum Thing {
    Cuda(Cuda),
    Download(Download, Vec<u8>),
    Frames(Downloaded, Vec<u8>),
    Landing(Landing, Vec<u8>),
    Pinned(Pinned, u8),
    Shared(PinnedBytes, Vec<u8>),
    Tensor(Tensor, Vec<u8>),
}

const THREADS: u64 = 3;
const STEPS: usize = 150;
const WAIT: Wait = Wait::UpTo(std::time::Duration::from_micros(300));

fn given(name: &str, random: &mut Random) -> Given {
    let len = match random.below(4) {
        0 => random.below(5),
        1 => random.below(900),
        2 => random.below(2 * SLOT_BYTES),
        _ => random.below(6 * SLOT_BYTES),
    };
    Given::of_len(name, len)
}

fn step(
    cuda: &Cuda,
    stream: &Arc<CudaStream>,
    thing: Option<Thing>,
    random: &mut Random,
) -> Option<Thing> {
    let wait = [Wait::Never, WAIT][random.below(2)];
    match (thing, random.below(8)) {
        (Some(_), 7) => None,
        (None, 0) => Some(Thing::Cuda(cuda.clone())),
        (None, 1 | 2) => {
            let given = given("a", random);
            let tensor = cuda.upload(&given.view(), stream, wait).ok()?;
            Some(Thing::Tensor(tensor, given.bytes))
        }
        (None, 3) => {
            let byte = random.next().to_le_bytes()[0];
            let len = random.below(3 * SLOT_BYTES);
            let mut pinned = match random.below(3) {
                0 => cuda.allocate_pinned(len).ok()?,
                1 => cuda.register(vec![0; len].into()).ok()?,
                _ => cuda.take_pinned(len, wait).ok()?,
            };
            pinned.as_mut().fill(byte);
            Some(Thing::Pinned(pinned, byte))
        }
        (None, 4 | 5) => {
            let given = [
                given("a", random),
                given("b", random),
                Given::of_len("z", 3),
            ];
            let frames = frames(&given);
            let mut decoder = Decoder::new();
            let metadata = decoder.decode_metadata(&frames[0]).unwrap();
            let landing = cuda.land(&metadata, stream).ok()?;
            Some(Thing::Landing(landing, frames[1..].concat()))
        }
        (None, 6) => {
            let given = [given("a", random), Given::of_len("y", 30)];
            let frames = frames(&given);
            let mut decoder = Decoder::new();
            let message = decoder.decode(&frames).unwrap();
            let tensors = cuda.upload_message(&message, stream, wait).ok()?;
            let tensor = tensors.into_iter().next()?;
            Some(Thing::Tensor(tensor, given[0].bytes.clone()))
        }
        (None, _) => {
            let _error = cuda.poll();
            None
        }
        (Some(Thing::Landing(mut landing, rest)), _) => {
            let len = random.below(rest.len() + 1);
            let missing = landing.missing();
            assert_eq!(missing, rest.len());
            let _error = landing.copy_from(&rest[..len], wait);
            let rest = rest[missing - landing.missing()..].to_vec();
            if !rest.is_empty() || random.below(2) > 0 {
                return Some(Thing::Landing(landing, rest));
            }
            let _tensors = landing.finish();
            None
        }
        (Some(Thing::Tensor(tensor, bytes)), 0..5) => {
            let download = cuda.download(&[&tensor], stream, wait).ok();
            if random.below(2) > 0 {
                drop(tensor);
            }
            Some(Thing::Download(download?, bytes))
        }
        (Some(Thing::Download(download, bytes)), _) => match download.finish(wait) {
            Ok(frames) => Some(Thing::Frames(frames, bytes)),
            Err((download, _)) => Some(Thing::Download(download, bytes)),
        },
        (Some(Thing::Frames(frames, bytes)), _) => {
            let tensor = frames.tensors().next().unwrap();
            assert!(tensor.bytes() == bytes);
            Some(Thing::Frames(frames, bytes))
        }
        (Some(Thing::Pinned(mut pinned, byte)), at) => {
            assert!(pinned.as_ref().iter().all(|other| *other == byte));
            if at < 4 {
                let bytes = noise(random.next(), pinned.as_ref().len());
                pinned.as_mut().copy_from_slice(&bytes);
                return Some(Thing::Shared(pinned.share(), bytes));
            }
            Some(Thing::Pinned(pinned, byte))
        }
        (Some(Thing::Shared(shared, bytes)), at) => {
            assert!(shared.as_ref() == bytes);
            if at > 4 {
                let pinned = shared.into_pinned().map(|mut pinned| {
                    pinned.as_mut().fill(9);
                    Thing::Pinned(pinned, 9)
                });
                return Some(pinned.unwrap_or_else(|shared| Thing::Shared(shared, bytes)));
            }
            let given = Given::of_len("latents", bytes.len());
            let tensor = cuda.upload_pinned(&given.descriptor(), shared.clone(), stream);
            if random.below(2) > 0 {
                return Some(Thing::Tensor(tensor.ok()?, bytes));
            }
            Some(Thing::Shared(shared, bytes))
        }
        (thing, _) => thing,
    }
}

/// `begin` is called once the device is open.
fn chaos(seed: u64, begin: impl FnOnce()) {
    let options = Options::new()
        .with_ring(5, SLOT_BYTES)
        .with_batch_bytes(1024);
    let things: Mutex<Vec<Thing>> = Mutex::new(Vec::new());
    let (cuda, stream) = open_with(options);
    begin();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (cuda, stream, things) = (cuda.clone(), stream.clone(), &things);
            scope.spawn(move || {
                let mut random = Random(seed * 100 + number);
                for _ in 0..STEPS {
                    let thing = if random.below(3) > 0 {
                        let mut things = things.lock().unwrap();
                        let at = random.below(things.len().max(1));
                        (at < things.len()).then(|| things.swap_remove(at))
                    } else {
                        None
                    };
                    if let Some(thing) = step(&cuda, &stream, thing, &mut random) {
                        things.lock().unwrap().push(thing);
                    }
                }
            });
        }
    });
    let mut things = things.into_inner().unwrap();
    things.push(Thing::Cuda(cuda));
    let mut random = Random(seed);
    while !things.is_empty() {
        drop(things.swap_remove(random.below(things.len())));
    }
}

#[test]
fn nothing_is_used_that_is_not_ones_own() {
    simulated::test("chaos::nothing_is_used_that_is_not_ones_own", || {
        for seed in 0..rounds() {
            chaos(seed, || ());
            if simulated::scripted() {
                assert_eq!(simulated::settle(), [""; 0], "seed {seed}");
                assert_eq!(simulated::live(), simulated::Live::default(), "seed {seed}");
            }
        }
    });
}

/// What is leaked where the driver does not say what is over, is not counted here.
#[test]
fn where_calls_fail_memory_may_leak_and_nothing_worse() {
    let name = "chaos::where_calls_fail_memory_may_leak_and_nothing_worse";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        for seed in 0..rounds() {
            simulated::seed(seed);
            let code = CUresult::CUDA_ERROR_INVALID_VALUE;
            chaos(seed, || simulated::fail_by_chance(3000 * (seed % 10), code));
            simulated::fail_no_more();
            assert_eq!(simulated::settle(), [""; 0], "seed {seed}");
        }
        simulated::leaves(simulated::live());
    });
}

/// The device breaks in the midst of it all.
#[test]
fn when_the_device_breaks_memory_may_leak_and_nothing_worse() {
    let name = "chaos::when_the_device_breaks_memory_may_leak_and_nothing_worse";
    simulated::test(name, || {
        if !simulated::needs_script(name) {
            return;
        }
        let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
        chaos(1, || simulated::break_copy(60, code));
        assert_eq!(simulated::settle(), [""; 0]);
        simulated::leaves(simulated::live());
    });
}

fn rounds() -> u64 {
    std::env::var("TENSORWIRE_CHAOS").map_or(20, |rounds| rounds.parse().unwrap())
}
