//! Blocks and slots lie where the Python peers put them, and come back once.

#![cfg(feature = "std")]

mod common;
#[path = "common/counting.rs"]
mod counting;

/// The model of the fuzz target.
#[allow(dead_code, unreachable_pub, reason = "a part is used here")]
#[path = "../fuzz/src/pool.rs"]
mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use tensorwire::transfer::pool::{
    BuddyAllocator, Landing, Pool, PoolError, Slot, Stats, WindowTable, Windows, rounded_len,
};

use counting::none;
use model::{Operation, Pair};

fn operation(len: usize, min_block: usize) -> impl Strategy<Value = Operation> {
    let any_len = prop_oneof![
        6 => 1..=min_block * 3,
        3 => (0..=len.trailing_zeros()).prop_map(|power| 1_usize << power),
        3 => 1..=len,
        1 => prop_oneof![Just(0), Just(len), Just(len + 1), Just(usize::MAX)],
    ];
    let offset = prop_oneof![
        3 => (0..=len / min_block).prop_map(move |index| index * min_block),
        1 => 0..len * 2,
        1 => prop_oneof![Just(usize::MAX), Just(usize::MAX / 2 + 1)],
    ];
    prop_oneof![
        5 => any_len.prop_map(Operation::Allocate),
        4 => any::<usize>().prop_map(Operation::FreeHeld),
        1 => offset.prop_map(Operation::FreeAt),
        1 => any::<usize>().prop_map(Operation::Quarantine),
        1 => any::<usize>().prop_map(Operation::Sweep),
    ]
}

fn case() -> impl Strategy<Value = (usize, usize, Vec<Operation>)> {
    (0_u32..=12, 0_usize..=200).prop_flat_map(|(power, blocks)| {
        let min_block = 1 << power;
        let len = rounded_len(blocks * min_block, min_block).unwrap();
        let operations = vec(operation(len, min_block), 0..200);
        (Just(blocks * min_block), Just(min_block), operations)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_lie_where_the_model_puts_them((len, min_block, operations) in case()) {
        let mut pair = Pair::new(len, min_block);
        for operation in operations {
            pair.apply(operation);
        }
        pair.empty();
    }
}

#[test]
fn blocks_lie_where_python_has_put_them() {
    let text = common::text("pool/placements.tsv");
    let mut allocator = BuddyAllocator::new(1).unwrap();
    let (mut steps, mut refused) = (0, 0);
    for (number, line) in text.lines().enumerate() {
        let fields: Vec<_> = line.split('\t').collect();
        let numbers: Vec<usize> = fields[1..].iter().map_while(|x| x.parse().ok()).collect();
        let line = || format!("line {}: {line}", number + 1);
        steps += 1;
        match (fields[0], fields[fields.len() - 1]) {
            ("pool", _) => {
                allocator = BuddyAllocator::with_min_block(numbers[0], numbers[1]).unwrap();
                assert_eq!(allocator.len(), numbers[2], "{}", line());
            }
            ("allocate", answer) => {
                let found = allocator.allocate(numbers[0]).map(|block| block.offset());
                assert_eq!(found.ok(), answer.parse().ok(), "{}", line());
                refused += usize::from(found.is_err());
            }
            ("free", answer) => {
                let found = allocator.free(numbers[0]);
                assert_eq!(found.is_ok(), answer == "yes", "{}", line());
                refused += usize::from(found.is_err());
            }
            ("stats", sizes) => {
                let stats = allocator.stats();
                let found = [
                    stats.allocated_bytes(),
                    stats.free_bytes(),
                    stats.allocations(),
                    stats.blocks(),
                ];
                assert_eq!(found, numbers[..], "{}", line());
                let found: Vec<_> = stats
                    .free_blocks_by_size()
                    .map(|(size, count)| format!("{size}:{count}"))
                    .collect();
                assert_eq!(found.join(","), sizes, "{}", line());
            }
            _ => panic!("{}", line()),
        }
    }
    assert!(steps > 1000 && refused > 100);
}

#[test]
fn pools_that_cannot_be_are_refused() {
    const LARGEST: usize = 1 << (usize::BITS - 2);
    for (len, min_block, expected) in [
        (1, 0, PoolError::BadMinBlock { min_block: 0 }),
        (1, 3, PoolError::BadMinBlock { min_block: 3 }),
        (
            usize::MAX,
            1 << 20,
            PoolError::PoolTooLarge { len: usize::MAX },
        ),
        (
            LARGEST + 1,
            LARGEST,
            PoolError::PoolTooLarge { len: LARGEST + 1 },
        ),
        (1, LARGEST * 2, PoolError::PoolTooLarge { len: 1 }),
        (LARGEST, 1, PoolError::OutOfMemory),
    ] {
        let found = BuddyAllocator::with_min_block(len, min_block);
        assert_eq!(found.unwrap_err(), expected, "{len}, {min_block}");
    }
    let mut largest = BuddyAllocator::with_min_block(LARGEST, LARGEST).unwrap();
    assert_eq!(largest.allocate(LARGEST).unwrap().len(), LARGEST);
    assert_eq!(rounded_len(0, 512), Ok(512));
    assert_eq!(rounded_len(513, 512), Ok(1024));
}

#[test]
fn errors_tell_the_numbers() {
    let mut allocator = BuddyAllocator::with_min_block(2048, 512).unwrap();
    allocator.allocate(1000).unwrap();
    allocator.allocate(512).unwrap();
    for (error, text) in [
        (
            allocator.allocate(1024).unwrap_err(),
            "pool is full: 1024 bytes needed, 512 free in one block",
        ),
        (
            allocator.allocate(2049).unwrap_err(),
            "block of 2049 bytes out of a pool of 2048",
        ),
        (allocator.allocate(0).unwrap_err(), "block of no bytes"),
        (
            allocator.free(512).unwrap_err(),
            "no block is allocated at offset 512",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn making_the_allocator_is_the_last_time_it_asks_for_memory() {
    let (mut allocations, mut allocator) =
        counting::calls(|| BuddyAllocator::with_min_block(1 << 20, 512).unwrap());
    assert_eq!(allocations, 1);
    let mut held = [0; 64];
    none(|| {
        for step in 0..5000_usize {
            let place = step * 7 % held.len();
            if held[place] != 0 {
                allocator.free(held[place] - 1).unwrap();
            }
            let block = allocator.allocate(step * 97 % 40_000 + 1);
            held[place] = block.map_or(0, |block| block.offset() + 1);
            let _ = (allocator.stats(), allocator.free(3));
        }
    });
    (allocations, _) = counting::calls(|| drop(allocator));
    assert_eq!(allocations, 1);

    let pool = Pool::new(1 << 30).unwrap();
    none(|| {
        let slots = [1, 5 << 20, 1 << 20].map(|len| pool.allocate(len).unwrap());
        for slot in slots {
            drop(slot.open().close().unwrap());
        }
        drop(pool.allocate(7).unwrap().open());
    });
}

/// How long some work takes in a pool of this many smallest blocks, every other of which is free.
fn time_in_pool_of(blocks: usize) -> Duration {
    let mut allocator = BuddyAllocator::with_min_block(blocks, 1).unwrap();
    for _ in 0..blocks {
        allocator.allocate(1).unwrap();
    }
    for offset in (0..blocks).step_by(2) {
        allocator.free(offset).unwrap();
    }
    let mut held: Vec<_> = (1..blocks).step_by(2).collect();
    let started = Instant::now();
    for step in 0..20_000 {
        // Its buddy leaves the middle of a list, and the first of the list is taken.
        let place = step * 7919 % held.len();
        allocator.free(held[place]).unwrap();
        held[place] = allocator.allocate(1).unwrap().offset();
        assert!(allocator.allocate(blocks).is_err());
        assert!(allocator.free(blocks).is_err());
    }
    started.elapsed()
}

#[test]
fn work_grows_with_the_logarithm_of_the_pool() {
    // Four thousand times as many blocks: a walk over any list of them would take that
    // much longer. Caches account for the rest.
    let (small, large) = (time_in_pool_of(1 << 8), time_in_pool_of(1 << 20));
    assert!(large < small * 200, "{small:?} and {large:?}");
}

#[test]
fn a_slot_frees_its_block_when_it_is_dropped_and_not_when_it_leaks() {
    let pool = Pool::with_windows(4096, 512, Arc::new(WindowTable::new())).unwrap();
    let other = Pool::with_windows(4096, 512, Arc::new(WindowTable::new())).unwrap();
    let clone = pool.clone();
    let first = pool.allocate(512).unwrap();
    let second = clone.allocate(513).unwrap();
    assert_eq!((first.offset(), first.len()), (0, 512));
    assert_eq!((second.offset(), second.len()), (1024, 1024));
    assert!(pool.owns(&second) && clone.owns(&first) && !other.owns(&first));
    drop(first);
    assert_eq!(pool.stats().allocated_bytes(), 1024);

    std::mem::forget(second);
    std::mem::forget(pool.allocate(1).unwrap().open());
    let rest: Vec<_> = std::iter::from_fn(|| pool.allocate(1).ok()).collect();
    assert_eq!(rest.len(), 5);
    drop(rest);
    assert_eq!(pool.reclaim(), 0);
    assert_eq!(pool.stats().allocated_bytes(), 1024 + 512);

    // The book lives on with the last slot.
    let last = other.allocate(4096).unwrap();
    drop(other);
    let landing = last.open();
    drop(landing.close().unwrap());
}

/// Windows that are busy for as long as a test says, and remember what they were told.
#[derive(Debug, Default)]
struct Scripted {
    busy: Mutex<BTreeSet<usize>>,
    told: Mutex<Vec<(&'static str, usize)>>,
}

impl Scripted {
    fn set_busy(&self, offset: usize, is_busy: bool) {
        let mut busy = self.busy.lock().unwrap();
        if is_busy {
            busy.insert(offset);
        } else {
            busy.remove(&offset);
        }
    }

    fn told(&self) -> Vec<(&'static str, usize)> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

impl Windows for Scripted {
    fn open(&self, offset: usize, _len: usize) {
        self.told.lock().unwrap().push(("open", offset));
    }

    fn close(&self, offset: usize) -> bool {
        self.told.lock().unwrap().push(("close", offset));
        !self.busy.lock().unwrap().contains(&offset)
    }
}

fn scripted() -> (Arc<Scripted>, Pool) {
    let windows = Arc::new(Scripted::default());
    let pool = Pool::with_windows(2048, 512, windows.clone()).unwrap();
    (windows, pool)
}

fn quarantined(pool: &Pool) -> (usize, usize, usize) {
    let stats: Stats = pool.stats();
    (
        stats.quarantined_blocks(),
        stats.quarantined_bytes(),
        stats.allocated_bytes(),
    )
}

#[test]
fn a_landing_is_closed_and_opened_again_as_often_as_one_likes() {
    let (windows, pool) = scripted();
    let mut slot = pool.allocate(600).unwrap();
    assert_eq!(windows.told(), []);
    for _ in 0..3 {
        let landing = slot.open();
        assert_eq!((landing.offset(), landing.len()), (0, 1024));
        assert!(pool.owns_landing(&landing));
        slot = landing.close().unwrap();
        assert_eq!((slot.offset(), slot.len()), (0, 1024));
        assert_eq!(windows.told(), [("open", 0), ("close", 0)]);
    }
    drop(slot);
    assert_eq!(windows.told(), []);
    assert_eq!(quarantined(&pool), (0, 0, 0));
}

#[test]
fn a_busy_landing_is_given_back_and_closes_when_the_write_is_over() {
    let (windows, pool) = scripted();
    let landing = pool.allocate(512).unwrap().open();
    windows.set_busy(0, true);
    let busy = landing.close().unwrap_err();
    assert_eq!(
        busy.to_string(),
        "a write into the slot at offset 0 is under way"
    );
    let busy = busy.into_landing().close().unwrap_err();
    assert_eq!(quarantined(&pool), (0, 0, 512));
    windows.set_busy(0, false);
    let slot = busy.into_landing().close().unwrap();
    assert_eq!(
        windows.told(),
        [("open", 0), ("close", 0), ("close", 0), ("close", 0)]
    );
    drop(slot);
    assert_eq!(quarantined(&pool), (0, 0, 0));
    assert_eq!(windows.told(), []);
}

#[test]
fn a_landing_that_is_dropped_under_a_write_lies_in_quarantine_until_it_is_over() {
    let (windows, pool) = scripted();
    let landings = [0, 512, 1024].map(|offset| {
        let slot = pool.allocate(512).unwrap();
        assert_eq!(slot.offset(), offset);
        windows.set_busy(offset, offset != 512);
        slot.open()
    });
    drop(landings);
    // The one without a writer is free at once.
    assert_eq!(quarantined(&pool), (2, 1024, 1024));
    assert_eq!(windows.told().len(), 6);

    // Nobody gets a block in quarantine, and each call asks whether its write is over.
    let full = PoolError::Full {
        needed: 1024,
        largest: 512,
    };
    assert_eq!(pool.allocate(1024).unwrap_err(), full);
    assert_eq!(windows.told(), [("close", 0), ("close", 1024)]);
    let held: Vec<_> = std::iter::from_fn(|| pool.allocate(512).ok()).collect();
    let offsets: Vec<_> = held.iter().map(Slot::offset).collect();
    assert_eq!(offsets, [1536, 512]);
    drop(held);

    windows.set_busy(1024, false);
    let slot = pool.allocate(1024).unwrap();
    assert_eq!(slot.offset(), 1024);
    assert_eq!(quarantined(&pool), (1, 512, 512 + 1024));
    windows.set_busy(0, false);
    assert_eq!(pool.reclaim(), 1);
    assert_eq!(pool.reclaim(), 0);
    assert_eq!(quarantined(&pool), (0, 0, 1024));
    drop(slot);
    let stats = pool.stats();
    assert!(stats.free_blocks_by_size().eq([(2048, 1)]));
}

#[test]
fn a_late_write_finds_its_window_closed_until_it_is_opened_again() {
    let table = WindowTable::new();
    let pool = Pool::with_windows(1024, 512, Arc::new(table.clone())).unwrap();
    let landing = pool.allocate(512).unwrap().open();
    let writing = table.begin_write(0, 512).unwrap();
    drop(landing);
    assert_eq!(quarantined(&pool), (1, 512, 512));
    assert_eq!(table.len(), 1);
    assert!(table.begin_write(0, 1).is_err());
    assert_eq!(pool.allocate(512).unwrap().offset(), 512);
    drop(writing);
    assert!(table.begin_write(0, 1).is_err());
    let slot = pool.allocate(1024).unwrap();
    assert!(table.is_empty());
    assert!(table.begin_write(0, 1).is_err());
    let _landing = slot.open();
    drop(table.begin_write(0, 1024).unwrap());
}

/// Who has which bytes, as the threads of a test claim it.
#[derive(Default)]
struct Claims(Mutex<BTreeMap<usize, usize>>);

impl Claims {
    fn claim(&self, offset: usize, len: usize) {
        let mut claims = self.0.lock().unwrap();
        let before = claims.range(..offset + len).next_back();
        assert!(before.is_none_or(|(start, len)| start + len <= offset));
        claims.insert(offset, len);
    }

    fn give_up(&self, offset: usize) {
        assert!(self.0.lock().unwrap().remove(&offset).is_some());
    }
}

#[test]
fn slots_of_many_threads_never_overlap_and_all_come_back() {
    const THREADS: usize = 8;
    let table = WindowTable::new();
    let pool = Pool::with_windows(64 << 10, 512, Arc::new(table.clone())).unwrap();
    let claims = Claims::default();
    let start = Barrier::new(THREADS);
    let moved = Mutex::new(Vec::<Landing>::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, table, claims) = (pool.clone(), table.clone(), &claims);
            let (start, moved) = (&start, &moved);
            scope.spawn(move || {
                start.wait();
                let mut held = Vec::new();
                for step in 0..2000_usize {
                    let number = step.wrapping_mul(2_654_435_761) ^ (thread * 40_503);
                    if let Ok(slot) = pool.allocate(number % 6000 + 1) {
                        claims.claim(slot.offset(), slot.len());
                        held.push(slot);
                    }
                    if held.len() < 6 && number % 3 != 0 {
                        continue;
                    }
                    let Some(slot) = held.pop() else { continue };
                    if number % 2 == 0 {
                        claims.give_up(slot.offset());
                        drop(slot);
                        continue;
                    }
                    // Given up once the window is open: a write may then hold it up.
                    let landing = slot.open();
                    let writing = table.begin_write(landing.offset(), 1).unwrap();
                    let landing = landing.close().unwrap_err().into_landing();
                    claims.give_up(landing.offset());
                    // Another thread drops it, perhaps under the write.
                    let mut moved = moved.lock().unwrap();
                    let other = moved.pop();
                    moved.push(landing);
                    drop(moved);
                    drop(other);
                    drop(writing);
                }
                for slot in &held {
                    claims.give_up(slot.offset());
                }
            });
        }
    });
    drop(moved);
    pool.reclaim();
    let stats = pool.stats();
    assert_eq!((stats.allocations(), stats.quarantined_blocks()), (0, 0));
    assert!(stats.free_blocks_by_size().eq([(64 << 10, 1)]));
    assert!(table.is_empty() && claims.0.lock().unwrap().is_empty());
}
