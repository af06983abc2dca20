//! The shared-memory plane: between processes, against hostile ones, and after crashes.

#![cfg(all(feature = "shared-memory", unix))]

#[path = "../common/alone.rs"]
mod alone;
#[path = "../common/counting.rs"]
mod counting;
mod crashes;
mod files;
mod hostile;
mod names;
mod process;
#[path = "../common/processes.rs"]
mod processes;
mod pushes;
mod room;
mod windows;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tensorwire::plane::shared::{Builder, Plane};
use tensorwire::plane::{DataPlane, ErrorKind, PlaneError, Region, RegionOptions, Transfer};
use tensorwire::transfer::pool::Slot;

pub(crate) const MIB: usize = 1 << 20;

/// Long enough never to be reached by a test that passes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A folder for the segments of one test, gone with this.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() {
            shm.into()
        } else {
            env::temp_dir()
        };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tensorwire-test-{}-{number}", std::process::id());
        let path = parent.join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub(crate) fn plane(&self) -> Plane {
        Builder::new().with_folder(&self.0).build().unwrap()
    }

    /// The names of the files in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// The file of the pool that a session registered as its `count`th, from 1.
    pub(crate) fn segment(&self, session: &str, count: u32) -> PathBuf {
        let digits = session.strip_prefix("shm-1-").unwrap();
        let number = number(session, count);
        self.0.join(format!("tensorwire-1-{digits}-{number:08x}"))
    }
}

/// The number of that pool: each session counts from where its lowest digits say.
fn number(session: &str, count: u32) -> u32 {
    let low = &session[session.len() - 4..];
    (u32::from_str_radix(low, 16).unwrap() << 3) + count
}

/// The address of the first byte of that pool.
pub(crate) fn base(session: &str, count: u32) -> u64 {
    u64::from(number(session, count)) << 44
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes `bytes` what only this `seed` makes.
pub(crate) fn fill(bytes: &mut [u8], seed: u64) {
    for (word, number) in bytes.chunks_mut(8).zip(0..) {
        word.copy_from_slice(&pattern(seed, number)[..word.len()]);
    }
}

/// Whether `bytes` are what [`fill`] makes of `seed`.
pub(crate) fn is_filled(bytes: &[u8], seed: u64) -> bool {
    let mut words = bytes.chunks(8).zip(0..);
    words.all(|(word, number)| *word == pattern(seed, number)[..word.len()])
}

fn pattern(seed: u64, number: u64) -> [u8; 8] {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed.rotate_left(17);
    mixed.to_le_bytes()
}

pub(crate) fn register(plane: &mut Plane, len: usize) -> Region {
    plane.register(RegionOptions::new(len)).unwrap()
}

/// A slot of `len` bytes that hold the pattern of `seed`.
pub(crate) fn filled(region: &Region, len: usize, seed: u64) -> Slot {
    let mut slot = region.pool().allocate(len).unwrap();
    fill(&mut region.bytes_mut(&mut slot).unwrap()[..len], seed);
    slot
}

/// Pushes the first `len` bytes of a slot, and gives it back.
pub(crate) fn push_slot(
    plane: &mut Plane,
    slot: Slot,
    len: usize,
    session: &str,
    address: u64,
) -> (Slot, Result<u64, ErrorKind>) {
    let mut transfer = Transfer::new(slot, session);
    transfer.add_piece(0..len, address).unwrap();
    match plane.push(transfer) {
        Ok(id) => {
            let completion = plane.wait_completion(PATIENCE).unwrap();
            assert_eq!(completion.id(), id);
            let (slot, result) = completion.into_parts();
            (slot, result.map_err(|error| error.kind()))
        }
        Err((transfer, error)) => {
            assert!(plane.poll_completion().is_none());
            (transfer.into_slot(), Err(error.kind()))
        }
    }
}

/// Pushes `len` bytes of the pattern of `seed`.
pub(crate) fn push(
    plane: &mut Plane,
    region: &Region,
    (seed, len): (u64, usize),
    session: &str,
    address: u64,
) -> Result<u64, ErrorKind> {
    let slot = filled(region, len, seed);
    push_slot(plane, slot, len, session, address).1
}

/// Numbers that look random, the same in each run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
