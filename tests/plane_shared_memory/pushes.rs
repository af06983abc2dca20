//! Bytes from process to process.

use std::fs;

use tensorwire::plane::shared::Builder;
use tensorwire::plane::{DataPlane, ErrorKind, MemoryKind, PlaneError, RegionOptions, Transfer};

use crate::process::Process;
use crate::{Folder, MIB, base, counting, filled, is_filled, push, push_slot, register};

#[test]
fn two_processes_push_both_ways() {
    let folder = Folder::new();
    let mut worker = Process::start("worker", &folder, &[&(64 * MIB).to_string()]);
    let theirs = worker.hear();
    let mut plane = folder.plane();
    let region = register(&mut plane, 64 * MIB);
    let lens = [1, 8, 4096, MIB + 1, 64 * MIB];
    for (seed, len) in (1..).zip(lens) {
        let number = seed - 1;
        let address = worker.ask(&format!("open {len}")).parse().unwrap();
        let before = plane.copied_bytes();
        let slot = filled(&region, len, seed);
        let (allocated, (_, pushed)) =
            counting::allocated_bytes(|| push_slot(&mut plane, slot, len, &theirs, address));
        assert_eq!(pushed, Ok(len as u64));
        // Each byte was copied once, and to nowhere on the way.
        assert_eq!(plane.copied_bytes() - before, len as u64);
        assert!(allocated < 4096, "{allocated}");
        assert_eq!(worker.ask(&format!("close {number} {seed} {len}")), "good");

        let landing = region.pool().allocate(len).unwrap().open();
        let address = region.address_of(landing.offset()).unwrap();
        let ours = plane.session_id();
        let said = worker.ask(&format!("push {ours} {address} {} {len}", seed + 100));
        assert_eq!(said, format!("Ok({len})"));
        let slot = landing.close().unwrap();
        let bytes = region.bytes(&slot).unwrap();
        assert!(is_filled(&bytes[..len], seed + 100), "{len}");
    }
    assert_eq!(plane.mapped_segments(), 1);
    worker.end();
    drop((region, plane));
    assert!(folder.names().is_empty());
}

/// The file that is mapped at `address` in this process.
fn mapped_at(address: usize) -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |digits| usize::from_str_radix(digits, 16).ok();
        let inside = (number(start)?..number(end)?).contains(&address);
        inside.then(|| rest.split_whitespace().last().unwrap().to_owned())
    })
}

#[test]
fn what_came_is_seen_where_it_was_written() {
    let folder = Folder::new();
    let mut worker = Process::start("worker", &folder, &[&MIB.to_string()]);
    worker.hear();
    let mut plane = folder.plane();
    let region = register(&mut plane, 4 * MIB);
    let landing = region.pool().allocate(MIB).unwrap().open();
    let address = region.address_of(landing.offset()).unwrap();
    let session = plane.session_id().to_owned();
    let said = worker.ask(&format!("push {session} {address} 3 {MIB}"));
    assert_eq!(said, format!("Ok({MIB})"));
    let slot = landing.close().unwrap();
    let bytes = region.bytes(&slot).unwrap();
    assert!(is_filled(bytes, 3));
    assert!(bytes.as_ptr().addr().is_multiple_of(4096));
    let segment = folder.segment(&session, 1);
    for byte in [bytes.first().unwrap(), bytes.last().unwrap()] {
        let file = mapped_at((&raw const *byte).addr());
        if cfg!(target_os = "linux") {
            assert_eq!(file.as_deref(), segment.to_str());
        }
    }
    // And an address tells nothing of where it lies here.
    assert_eq!(region.base(), base(&session, 1));
    worker.end();
}

#[test]
fn pieces_of_a_slot_go_to_windows_of_more_than_one_pool_or_nowhere() {
    let folder = Folder::new();
    let (mut sender, mut receiver) = (folder.plane(), folder.plane());
    let from = register(&mut sender, MIB);
    let (first, second) = (
        register(&mut receiver, 4 * MIB),
        register(&mut receiver, MIB),
    );
    let session = receiver.session_id().to_owned();
    let landings = [&first, &first, &second].map(|region| {
        let landing = region.pool().allocate(MIB).unwrap().open();
        let address = region.address_of(landing.offset()).unwrap();
        (region, landing, address)
    });
    let [a, b, c] = [0, 1, 2].map(|at: usize| landings[at].2);
    let pieces = [
        (0..1000, a),
        (1000..1001, b + 5),
        (1001..1001, a),
        (1001..3000, c),
        (0..9, a + 2000),
    ];
    let transfer = |extra: Option<u64>| {
        let mut transfer = Transfer::new(filled(&from, MIB, 9), &*session);
        for (source, address) in pieces.clone() {
            transfer.add_piece(source, address).unwrap();
        }
        if let Some(address) = extra {
            transfer.add_piece(0..10, address).unwrap();
        }
        transfer
    };
    // One piece of them that may not be written, and none is.
    for (address, expected) in [
        (a + 2 * MIB as u64, ErrorKind::Closed),
        (
            a + MIB as u64 - 1,
            ErrorKind::PastWindow { len: 10, room: 1 },
        ),
        (
            7,
            ErrorKind::OutOfBounds {
                address: 7,
                len: 10,
            },
        ),
    ] {
        let (_, error) = sender.push(transfer(Some(address))).unwrap_err();
        assert_eq!(error.kind(), expected);
    }
    assert_eq!(sender.copied_bytes(), 0);
    let id = sender.push(transfer(None)).unwrap();
    let completion = sender.poll_completion().unwrap();
    assert_eq!((completion.id(), completion.result()), (id, Ok(3009)));
    let (slot, _) = completion.into_parts();
    let sent = from.bytes(&slot).unwrap();
    let [a, b, c] = landings.map(|(region, landing, _)| {
        let slot = landing.close().unwrap();
        region.bytes(&slot).unwrap().to_vec()
    });
    assert!(a[..1000] == sent[..1000] && a[2000..2009] == sent[..9]);
    assert!(b[5] == sent[1000] && c[..1999] == sent[1001..3000]);
    let zeros = a[1000..2000]
        .iter()
        .chain(&a[2009..])
        .chain(&b[..5])
        .chain(&b[6..]);
    assert!(zeros.chain(&c[1999..]).all(|&byte| byte == 0));
}

#[test]
fn what_a_plane_cannot_do_it_says() {
    let folder = Folder::new();
    let (mut plane, mut other) = (folder.plane(), folder.plane());
    for kind in [MemoryKind::Pinned, MemoryKind::Device { ordinal: 3 }] {
        let error = plane
            .register(RegionOptions::new(MIB).with_kind(kind))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported { kind });
    }
    for options in [
        RegionOptions::new(usize::MAX),
        RegionOptions::new(MIB).with_min_block(1000),
        RegionOptions::new(MIB).with_min_block(0),
    ] {
        let error = plane.register(options).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Pool(_)), "{error}");
    }
    // A slot of another plane's region, and one whose region is gone.
    let (region, theirs) = (register(&mut plane, MIB), register(&mut other, MIB));
    let session = plane.session_id().to_owned();
    let foreign = filled(&theirs, 8, 1);
    let (_, error) = plane.push(Transfer::new(foreign, &*session)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignSlot);
    let slot = filled(&region, 8, 1);
    drop(region);
    let (_, error) = plane.push(Transfer::new(slot, &*session)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignSlot);
    // No pieces are no bytes, of a session that there is.
    let id = other
        .push(Transfer::new(filled(&theirs, 8, 1), &*session))
        .unwrap();
    let completion = other.poll_completion().unwrap();
    assert_eq!((completion.id(), completion.result()), (id, Ok(0)));
}

#[test]
fn a_plane_pushes_to_itself_where_it_let_peers_write() {
    let folder = Folder::new();
    let mut plane = folder.plane();
    let region = register(&mut plane, 4 * MIB);
    let session = plane.session_id().to_owned();
    let landing = region.pool().allocate(MIB).unwrap().open();
    let address = region.address_of(landing.offset()).unwrap();
    let pushed = push(&mut plane, &region, (4, 5000), &session, address);
    assert_eq!(pushed, Ok(5000));
    let slot = landing.close().unwrap();
    assert!(is_filled(&region.bytes(&slot).unwrap()[..5000], 4));
}

#[test]
fn few_segments_stay_mapped_and_those_of_the_dead_do_not() {
    let folder = Folder::new();
    let builder = Builder::new().with_folder(&folder.0).with_prefault(true);
    let mut plane = builder.with_max_mapped(3).build().unwrap();
    let region = register(&mut plane, MIB);
    let mut peers: Vec<_> = (0..5)
        .map(|_| {
            let mut peer = folder.plane();
            let region = register(&mut peer, MIB);
            let landing = region.pool().allocate(MIB).unwrap().open();
            (peer, region, landing)
        })
        .collect();
    let mut push_to = |index: usize, peers: &[(tensorwire::plane::shared::Plane, _, _)]| {
        let session = peers[index].0.session_id();
        let pushed = push(&mut plane, &region, (1, 100), session, base(session, 1));
        assert_eq!(pushed, Ok(100));
        plane.mapped_segments()
    };
    for (index, expected) in [(0, 1), (1, 2), (2, 3), (3, 3), (0, 3), (3, 3), (4, 3)] {
        assert_eq!(push_to(index, &peers), expected, "{index}");
    }
    // 4, 3 and 0 are mapped; two of them go, and the next new one lets go of them.
    peers.truncate(3);
    assert_eq!(push_to(1, &peers), 2);
}

#[test]
fn pieces_come_back_to_a_window_whatever_was_mapped_since() {
    let folder = Folder::new();
    for max_mapped in [0, 1, 2, 3] {
        let builder = Builder::new().with_folder(&folder.0);
        let mut plane = builder.with_max_mapped(max_mapped).build().unwrap();
        let mut peer = folder.plane();
        let region = register(&mut plane, MIB);
        let theirs = [1, 2, 3].map(|_| register(&mut peer, MIB));
        let landings = theirs
            .each_ref()
            .map(|region| region.pool().allocate(1).unwrap().open());
        let mut transfer = Transfer::new(filled(&region, 7, 1), peer.session_id());
        for (from, to) in [0, 1, 2, 0, 0, 1, 2].into_iter().enumerate() {
            let address = theirs[to].base() + from as u64;
            transfer.add_piece(from..from + 1, address).unwrap();
        }
        plane.push(transfer).unwrap();
        let (slot, result) = plane.poll_completion().unwrap().into_parts();
        assert_eq!(result, Ok(7), "{max_mapped} mapped");
        assert!(plane.mapped_segments() <= max_mapped.max(1));
        let bytes = &region.bytes(&slot).unwrap()[..7];
        for (to, landing) in landings.into_iter().enumerate() {
            let slot = landing.close().unwrap();
            let found = theirs[to].bytes(&slot).unwrap();
            let whose = [0, 1, 2, 0, 0, 1, 2].map(|piece| piece == to);
            for (from, is_it) in whose.into_iter().enumerate() {
                let expected = if is_it { bytes[from] } else { 0 };
                assert_eq!(found[from], expected, "{from} of {to}");
            }
        }
    }
}
