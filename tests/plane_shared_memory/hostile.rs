//! A peer that writes what it likes into a segment.

use std::fs::File;
use std::os::unix::fs::FileExt;

use tensorwire::plane::{DataPlane, ErrorKind};
use tensorwire::transfer::pool::Landing;

use crate::process::Process;
use crate::{Folder, MIB, base, filled, push, push_slot, register};

#[test]
fn a_header_is_looked_at_once() {
    let folder = Folder::new();
    let (mut plane, mut peer) = (folder.plane(), folder.plane());
    let region = register(&mut plane, 2 * MIB);
    let theirs = register(&mut peer, 2 * MIB);
    let session = peer.session_id().to_owned();
    let landing = theirs.pool().allocate(MIB).unwrap().open();
    assert_eq!(
        push(&mut plane, &region, (1, MIB), &session, base(&session, 1)),
        Ok(1 << 20)
    );
    let segment = File::options()
        .write(true)
        .open(folder.segment(&session, 1))
        .unwrap();
    for garbage in [[0; 4096], [0xff; 4096], [0x5a; 4096]] {
        segment.write_all_at(&garbage, 0).unwrap();
        // Who has mapped it goes by what it has read then.
        assert_eq!(
            push(&mut plane, &region, (2, MIB), &session, base(&session, 1)),
            Ok(1 << 20)
        );
        let pushed = push(
            &mut plane,
            &region,
            (2, MIB + 1),
            &session,
            base(&session, 1),
        );
        let past = ErrorKind::PastWindow {
            len: (1 << 20) + 1,
            room: 1 << 20,
        };
        assert_eq!(pushed, Err(past));
        // Who comes now does not take it for a segment.
        let mut late = folder.plane();
        let own = register(&mut late, MIB);
        let pushed = push(&mut late, &own, (2, 8), &session, base(&session, 1));
        assert_eq!(pushed, Err(ErrorKind::UnknownSession));
        // And to its owner it means nothing at all.
        assert_eq!((theirs.base(), theirs.len()), (base(&session, 1), 2 * MIB));
    }
    let slot = landing.close().unwrap();
    assert!(crate::is_filled(theirs.bytes(&slot).unwrap(), 2));
}

#[test]
fn what_stands_in_a_window_moves_no_bound_of_its_owner() {
    let folder = Folder::new();
    let (mut plane, mut peer) = (folder.plane(), folder.plane());
    let region = register(&mut plane, 4 * MIB);
    let theirs = register(&mut peer, 4 * MIB);
    let session = peer.session_id().to_owned();
    let segment = File::options()
        .write(true)
        .open(folder.segment(&session, 1))
        .unwrap();
    let base = theirs.base();
    let mib = 1 << 20;
    let dead = (1 << 63) | 77;
    // (state, length, what a push of 1 MiB to the window is told)
    for (state, len, expected) in [
        (0, mib, Err(ErrorKind::Closed)),
        (1, u64::MAX, Err(ErrorKind::Closed)),
        (1, u64::MAX - mib + 1, Err(ErrorKind::Closed)),
        (1, 1 << 63, Err(ErrorKind::Closed)),
        (1, 3 * mib + 1, Err(ErrorKind::Closed)),
        (1, 0, Err(ErrorKind::Closed)),
        (1, 1, Err(ErrorKind::PastWindow { len: mib, room: 1 })),
        // Writers that do not live.
        (dead, mib, Ok(mib)),
        (u64::MAX, mib, Ok(mib)),
        (12_345, mib, Ok(mib)),
    ] {
        let first = theirs.pool().allocate(MIB).unwrap();
        let slot = theirs.pool().allocate(MIB).unwrap();
        let landing = slot.open();
        let mut garbage = [0; 16];
        garbage[..8].copy_from_slice(&u64::to_ne_bytes(state));
        garbage[8..].copy_from_slice(&u64::to_ne_bytes(len));
        segment.write_all_at(&garbage, 4096 + 64).unwrap();
        let pushed = push(&mut plane, &region, (5, MIB), &session, base + mib);
        assert_eq!(pushed, expected, "{state:#x} {len:#x}");
        // The owner gets back what it gave: no writer of that name lives.
        let slot = landing.close().unwrap();
        assert_eq!((slot.offset(), slot.len()), (MIB, MIB));
        assert_eq!(theirs.bytes(&slot).unwrap().len(), MIB);
        let pushed = push(&mut plane, &region, (5, MIB), &session, base + mib);
        assert_eq!(pushed, Err(ErrorKind::Closed), "{state:#x} {len:#x}");
        drop((first, slot));
        assert_eq!(theirs.pool().stats().allocated_bytes(), 0);
    }
    // Whoever names a living plane as the writer keeps the block for as long as that lives.
    let landing = theirs.pool().allocate(MIB).unwrap().open();
    let mut living = folder.plane();
    let half = &living.session_id()["shm-1-".len()..][..16];
    let writer = u64::from_str_radix(half, 16).unwrap();
    segment.write_all_at(&writer.to_ne_bytes(), 4096).unwrap();
    let landing = landing.close().unwrap_err().into_landing();
    let own = register(&mut living, MIB);
    let pushed = push(&mut living, &own, (5, MIB), &session, base);
    assert_eq!(pushed, Err(ErrorKind::Closed));
    drop(landing);
    assert_eq!(theirs.pool().reclaim(), 0);
    drop((own, living));
    assert_eq!(theirs.pool().reclaim(), 1);
}

#[test]
fn a_plane_does_not_push_into_a_slot_of_its_own_that_others_say_is_open() {
    let folder = Folder::new();
    let mut plane = folder.plane();
    let region = register(&mut plane, 2 * MIB);
    let session = plane.session_id().to_owned();
    let slot = region.pool().allocate(MIB).unwrap();
    let segment = File::options()
        .write(true)
        .open(folder.segment(&session, 1))
        .unwrap();
    let mut open = [0; 16];
    open[..8].copy_from_slice(&9_u64.to_ne_bytes());
    open[8..].copy_from_slice(&(1_u64 << 20).to_ne_bytes());
    segment.write_all_at(&open, 4096).unwrap();
    let pushed = push(&mut plane, &region, (5, MIB), &session, region.base());
    assert_eq!(pushed, Err(ErrorKind::Closed));
    assert!(region.bytes(&slot).unwrap().iter().all(|&byte| byte == 0));
}

#[test]
fn a_window_of_a_plane_of_its_own_is_no_longer_than_it_made_it() {
    let folder = Folder::new();
    let mut plane = folder.plane();
    let region = register(&mut plane, 4 * MIB);
    let session = plane.session_id().to_owned();
    let landing = region.pool().allocate(MIB).unwrap().open();
    let slot = region.pool().allocate(MIB).unwrap();
    assert_eq!((landing.offset(), slot.offset()), (0, MIB));
    let segment = File::options()
        .write(true)
        .open(folder.segment(&session, 1))
        .unwrap();
    let (base, mib) = (region.base(), 1 << 20);
    for len in [2 * mib, 4 * mib] {
        segment
            .write_all_at(&u64::to_ne_bytes(len), 4096 + 8)
            .unwrap();
        for address in [base + mib, base + mib / 2, base + 1] {
            let pushed = push(&mut plane, &region, (5, MIB), &session, address);
            assert_eq!(pushed, Err(ErrorKind::Closed), "{address} of {len}");
            assert!(region.bytes(&slot).unwrap().iter().all(|&byte| byte == 0));
        }
        let pushed = push(&mut plane, &region, (5, MIB), &session, base);
        assert_eq!(pushed, Ok(mib));
    }
    assert!(crate::is_filled(
        region.bytes(&landing.close().unwrap()).unwrap(),
        5
    ));
}

#[test]
fn garbage_written_all_the_time_breaks_nothing_but_pushes() {
    const ROUNDS: usize = 3000;
    /// What the garbage makes of pushes sooner or later: how soon is up to the scheduler. Busy
    /// they are where it changed between two looks alone: a writer that is garbage does not live.
    const EACH: [&str; 2] = ["Closed", "Ok"];
    let folder = Folder::new();
    let (mut plane, mut peer) = (folder.plane(), folder.plane());
    let region = register(&mut plane, 2 * MIB);
    let theirs = register(&mut peer, 8 * MIB);
    let session = peer.session_id().to_owned();
    let segment = folder.segment(&session, 1);
    // The header and all eight windows.
    let len = (4096 + 8 * 64).to_string();
    // Mapped while the header is good.
    let landing = theirs.pool().allocate(1).unwrap().open();
    assert_eq!(
        push(&mut plane, &region, (5, 8), &session, theirs.base()),
        Ok(8)
    );
    drop(landing);
    let mut scribbler = Process::start("scribbler", &folder, &[segment.to_str().unwrap(), &len]);
    assert_eq!(scribbler.hear(), "ready");

    let kept = filled(&theirs, MIB, 99);
    let mut landings: Vec<Landing> = Vec::new();
    let mut slot = filled(&region, 2 * MIB, 5);
    let mut told = std::collections::BTreeMap::new();
    let (mut closed, mut busy) = (0, 0);
    for round in 0..100 * ROUNDS {
        if round >= ROUNDS && EACH.iter().all(|&kind| told.contains_key(kind)) {
            break;
        }
        if let Ok(slot) = theirs.pool().allocate([MIB, 2 * MIB][round % 2]) {
            let place = slot.offset()..slot.offset() + slot.len();
            assert!(place.end <= 8 * MIB && place.start % slot.len() == 0);
            assert_eq!(theirs.bytes(&slot).unwrap().len(), slot.len());
            landings.push(slot.open());
        }
        let address = theirs.base() + ((round % 8) * MIB) as u64;
        let len = [1, MIB, 2 * MIB][round % 3];
        let pushed;
        (slot, pushed) = push_slot(&mut plane, slot, len, &session, address);
        let kind = match pushed {
            Ok(bytes) => {
                assert_eq!(bytes, len as u64);
                "Ok".to_owned()
            }
            Err(ErrorKind::PastWindow { len: told, room }) => {
                assert!(told == len as u64 && room < told);
                "PastWindow".to_owned()
            }
            Err(ErrorKind::OutOfBounds { address: told, .. }) => {
                assert!(told == address && address + len as u64 > theirs.base() + (8 << 20));
                "OutOfBounds".to_owned()
            }
            Err(kind) => format!("{kind:?}"),
        };
        *told.entry(kind).or_insert(0) += 1;
        let is_time = landings.len() > 3 || round % 5 == 0;
        let Some(landing) = landings.pop_if(|_| is_time) else {
            continue;
        };
        let place = (landing.offset(), landing.len());
        match landing.close() {
            Ok(slot) => {
                assert_eq!((slot.offset(), slot.len()), place);
                assert_eq!(theirs.bytes(&slot).unwrap().len(), place.1);
                closed += 1;
            }
            // Looked at while it changed.
            Err(_) => busy += 1,
        }
    }
    scribbler.kill();
    eprintln!("pushes: {told:?}; {closed} landings closed, {busy} busy");
    let known = [
        "Busy",
        "Closed",
        "Ok",
        "OutOfBounds",
        "PastWindow",
        "UnknownSession",
    ];
    assert!(
        told.keys().all(|kind| known.contains(&kind.as_str())),
        "{told:?}"
    );
    assert!(EACH.iter().all(|&kind| told.contains_key(kind)), "{told:?}");
    assert!(closed > 0);

    // Then all of it is as it was.
    drop(landings);
    theirs.pool().reclaim();
    assert_eq!(theirs.pool().stats().allocated_bytes(), MIB);
    assert_eq!(
        (kept.offset(), theirs.bytes(&kept).unwrap().len()),
        (0, MIB)
    );
    let landing = theirs.pool().allocate(4 * MIB).unwrap().open();
    let address = theirs.address_of(landing.offset()).unwrap();
    let mut late = folder.plane();
    let own = register(&mut late, MIB);
    let pushed = push(&mut late, &own, (6, 8), &session, address);
    // The header is spoiled for good, the windows are not.
    assert_eq!(pushed, Err(ErrorKind::UnknownSession));
    drop(landing);
    drop(kept);
    assert_eq!(theirs.pool().stats().allocated_bytes(), 0);
}
