//! Processes killed with SIGKILL.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use tensorwire::plane::{DataPlane, ErrorKind};

use crate::process::Process;
use crate::{Folder, MIB, Numbers, base, filled, push, push_slot, register};

const ROUNDS: usize = 20;

/// The state of a window, as it stands in the segment.
pub(crate) fn state(segment: &Path, window: u64) -> u64 {
    let mut state = [0; 8];
    let file = File::open(segment).unwrap();
    file.read_exact_at(&mut state, 4096 + window * 64).unwrap();
    u64::from_ne_bytes(state)
}

/// Whether somebody writes into the window of this state.
pub(crate) fn is_written(state: u64) -> bool {
    state >> 63 == 1
}

#[test]
fn a_killed_sender_keeps_no_block_and_leaves_no_file() {
    let folder = Folder::new();
    let mut plane = folder.plane();
    let region = register(&mut plane, 16 * MIB);
    let session = plane.session_id().to_owned();
    let segment = folder.segment(&session, 1);
    let mut numbers = Numbers(1);
    let mut killed_inside = 0;
    for round in 0..ROUNDS {
        let landing = region.pool().allocate(8 * MIB).unwrap().open();
        let address = region.address_of(landing.offset()).unwrap().to_string();
        let len = (8 * MIB).to_string();
        let mut sender = Process::start("pusher", &folder, &[&session, &address, &len]);
        assert_eq!(sender.hear(), "ready");
        thread::sleep(Duration::from_micros(numbers.next() % 20_000));
        sender.kill();
        let window = (landing.offset() / MIB) as u64;
        let is_inside = is_written(state(&segment, window));
        killed_inside += usize::from(is_inside);
        if round % 2 == 0 {
            let slot = landing.close().unwrap();
            assert_eq!(region.bytes(&slot).unwrap().len(), 8 * MIB);
        } else {
            drop(landing);
        }
        assert_eq!(region.pool().stats().allocated_bytes(), 0, "round {round}");
        drop(region.pool().allocate(16 * MIB).unwrap());
        assert_eq!(folder.names().len(), 4, "the dead sender's files are there");
        drop(folder.plane());
        assert_eq!(folder.names().len(), 2, "those of the living plane alone");
    }
    assert!(killed_inside > 0, "never in the middle of a push");
    drop((region, plane));
    assert!(folder.names().is_empty());
}

#[test]
fn a_window_that_a_killed_sender_stands_in_takes_the_next_push() {
    let folder = Folder::new();
    let (mut plane, mut other) = (folder.plane(), folder.plane());
    let region = register(&mut plane, 16 * MIB);
    let theirs = register(&mut other, 8 * MIB);
    let session = plane.session_id().to_owned();
    let segment = folder.segment(&session, 1);
    let mut numbers = Numbers(3);
    let mut killed_inside = 0;
    // As a preallocated slot, it is open all the time.
    let landing = region.pool().allocate(8 * MIB).unwrap().open();
    let address = region.address_of(landing.offset()).unwrap();
    let window = (landing.offset() / MIB) as u64;
    for round in 0..ROUNDS as u64 {
        let len = (8 * MIB).to_string();
        let arguments = [&*session, &address.to_string(), &len];
        let mut sender = Process::start("pusher", &folder, &arguments);
        assert_eq!(sender.hear(), "ready");
        thread::sleep(Duration::from_micros(numbers.next() % 20_000));
        sender.kill();
        killed_inside += usize::from(is_written(state(&segment, window)));
        for seed in [round, round + 1] {
            let what = (seed, 8 * MIB);
            let pushed = push(&mut other, &theirs, what, &session, address);
            assert_eq!(pushed, Ok(8 << 20), "round {round}");
            assert!(!is_written(state(&segment, window)));
        }
    }
    assert!(killed_inside > 0, "never in the middle of a push");
    let slot = landing.close().unwrap();
    let bytes = region.bytes(&slot).unwrap();
    assert!(crate::is_filled(bytes, ROUNDS as u64));
    let pushed = push(&mut other, &theirs, (1, 8), &session, address);
    assert_eq!(pushed, Err(ErrorKind::Closed));
}

#[test]
fn a_sender_killed_after_its_landing_was_dropped_gives_the_block_back() {
    let folder = Folder::new();
    let mut plane = folder.plane();
    let region = register(&mut plane, 16 * MIB);
    let session = plane.session_id().to_owned();
    let segment = folder.segment(&session, 1);
    let mut quarantined = 0;
    for _ in 0..ROUNDS {
        let landing = region.pool().allocate(8 * MIB).unwrap().open();
        let window = (landing.offset() / MIB) as u64;
        let address = region.address_of(landing.offset()).unwrap().to_string();
        let len = (8 * MIB).to_string();
        let mut sender = Process::start("pusher", &folder, &[&session, &address, &len]);
        assert_eq!(sender.hear(), "ready");
        let mut looks = 0;
        while !is_written(state(&segment, window)) && looks < 1000 {
            looks += 1;
        }
        // It goes on, stopped or not; what was seen may be over by now.
        sender.signal("STOP");
        drop(landing);
        let allocated = region.pool().stats().allocated_bytes();
        if is_written(state(&segment, window)) {
            assert_eq!(allocated, 8 * MIB);
            assert_eq!(region.pool().reclaim(), 0, "it may still write");
            quarantined += 1;
        }
        sender.kill();
        region.pool().reclaim();
        assert_eq!(region.pool().stats().allocated_bytes(), 0);
    }
    assert!(quarantined > 0, "never in the middle of a push");
}

#[test]
fn a_killed_receiver_is_gone_to_its_senders_and_leaves_no_file() {
    let folder = Folder::new();
    let mut plane = folder.plane();
    let region = register(&mut plane, 8 * MIB);
    let mut numbers = Numbers(2);
    let mut slot = filled(&region, 8 * MIB, 3);
    let mut whole = 0;
    for round in 0..ROUNDS {
        let mut receiver = Process::start("worker", &folder, &[&(8 * MIB).to_string()]);
        let session = receiver.hear();
        let address = receiver.ask(&format!("open {}", 8 * MIB)).parse().unwrap();
        let delay = Duration::from_micros(numbers.next() % 20_000);
        let killer = thread::spawn(move || {
            thread::sleep(delay);
            receiver.kill();
        });
        let error = loop {
            let pushed;
            (slot, pushed) = push_slot(&mut plane, slot, 8 * MIB, &session, address);
            match pushed {
                Ok(bytes) => assert_eq!(bytes, 8 << 20),
                Err(error) => break error,
            }
            whole += 1;
        };
        assert_eq!(error, ErrorKind::PeerGone, "round {round}");
        killer.join().unwrap();
        // Its files are still there, and nobody takes them for a living one's.
        assert_eq!(folder.names().len(), 4);
        let pushed;
        (slot, pushed) = push_slot(&mut plane, slot, 8 * MIB, &session, address);
        assert_eq!(pushed, Err(ErrorKind::PeerGone));
        drop(folder.plane());
        assert_eq!(folder.names().len(), 2);
        let pushed;
        (slot, pushed) = push_slot(&mut plane, slot, 8 * MIB, &session, address);
        assert_eq!(pushed, Err(ErrorKind::UnknownSession));
        assert_eq!(plane.mapped_segments(), 0);
    }
    assert!(whole > 0, "no push was in time");
    drop(slot);
    drop((region, plane));
    assert!(folder.names().is_empty());
}

#[test]
fn who_comes_back_is_another_session() {
    let folder = Folder::new();
    let mut plane = folder.plane();
    let region = register(&mut plane, MIB);
    let mut push_to = |session: &str| push(&mut plane, &region, (1, 8), session, base(session, 1));
    let mut peer = folder.plane();
    let theirs = register(&mut peer, MIB);
    let landing = theirs.pool().allocate(1).unwrap().open();
    let old = peer.session_id().to_owned();
    assert_eq!(push_to(&old), Ok(8));
    drop((landing, theirs, peer));
    assert_eq!(push_to(&old), Err(ErrorKind::PeerGone));

    let mut peer = folder.plane();
    let theirs = register(&mut peer, MIB);
    let landing = theirs.pool().allocate(1).unwrap().open();
    assert_ne!(peer.session_id(), old);
    assert_eq!(push_to(peer.session_id()), Ok(8));
    assert_eq!(push_to(&old), Err(ErrorKind::UnknownSession));
    // A region that is dropped is no pool of its session any more.
    drop((landing, theirs));
    assert_eq!(push_to(peer.session_id()), Err(ErrorKind::PeerGone));
    let out = ErrorKind::OutOfBounds {
        address: base(peer.session_id(), 1),
        len: 8,
    };
    assert_eq!(push_to(peer.session_id()), Err(out));
}

#[test]
fn a_sweep_spares_the_living_and_the_files_of_others() {
    let folder = Folder::new();
    let mut plane = folder.plane();
    let region = register(&mut plane, MIB);
    let digits = "8".repeat(32);
    for name in [
        "tensorwire-1-plane-8000000000000000.old",
        "tensorwire-1-x",
        "other",
    ] {
        std::fs::write(folder.0.join(name), "").unwrap();
    }
    let stale = format!("tensorwire-1-{digits}-00000001");
    std::fs::write(folder.0.join(&stale), "").unwrap();
    // Not one of ours: others may read it.
    drop(folder.plane());
    assert!(folder.names().contains(&stale));
    let ours = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(folder.0.join(&stale), ours).unwrap();
    drop(folder.plane());
    assert!(!folder.names().contains(&stale));
    assert_eq!(folder.names().len(), 5);

    // Many planes that come and go at once take nothing from one another.
    thread::scope(|scope| {
        for seed in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                for round in 0..50 {
                    let (mut plane, mut peer) = (folder.plane(), folder.plane());
                    let region = register(&mut plane, MIB);
                    let theirs = register(&mut peer, MIB);
                    let landing = theirs.pool().allocate(1).unwrap().open();
                    // Not always pool 1: what a sweep was faster to lock is made again.
                    let address = theirs.base();
                    let pushed = push(&mut plane, &region, (seed, 8), peer.session_id(), address);
                    assert_eq!(pushed, Ok(8), "round {round}");
                    drop(landing.close().unwrap());
                }
            });
        }
    });
    assert_eq!(folder.names().len(), 5);
    drop((region, plane));
    assert_eq!(folder.names().len(), 3);
}
