//! What comes over the wire: session ids and addresses.

use tensorwire::plane::{DataPlane, ErrorKind};

use crate::{Folder, MIB, Numbers, base, filled, push, push_slot, register};

#[test]
fn what_is_no_session_is_unknown() {
    let folder = Folder::new();
    let (mut plane, mut peer) = (folder.plane(), folder.plane());
    let region = register(&mut plane, MIB);
    let theirs = register(&mut peer, MIB);
    let _landing = theirs.pool().allocate(MIB).unwrap().open();
    let address = theirs.base();
    let session = peer.session_id().to_owned();
    assert_eq!(push(&mut plane, &region, (1, 1), &session, address), Ok(1));

    // What a path would reach is there: the file of the peer.
    let file = folder.segment(&session, 1);
    let digits = &session["shm-1-".len()..];
    let folder_name = folder.0.file_name().unwrap().to_str().unwrap();
    let long = "f".repeat(100_000);
    for name in [
        "",
        "/",
        ".",
        "..",
        "\0",
        digits,
        file.to_str().unwrap(),
        &format!("../{folder_name}/{session}"),
        &format!("./{session}"),
        &format!("/{session}"),
        &format!("{session}/"),
        &format!("{session}\0"),
        &format!("{session}/../{session}"),
        &format!("{session}-00000001"),
        &session[..session.len() - 1],
        &session.to_uppercase(),
        &session.replace("shm-1", "shm-2"),
        &session.replace("shm-1", "shm-01"),
        "shm-1-../../../../../../../../../etc",
        "shm-1-8/../../../../../../etc/passwd",
        "shm-1-8\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        &long,
        &format!("shm-1-{long}"),
        &format!("{session}{long}"),
        // Well-formed, and of nobody.
        "shm-1-80000000000000000000000000000000",
    ] {
        let pushed = push(&mut plane, &region, (1, 1), name, address);
        assert_eq!(pushed, Err(ErrorKind::UnknownSession), "{name:.60?}");
    }
    // Who knows half of a name does not get at what has it.
    let half = format!("{}{}", &session[..session.len() - 16], "0".repeat(16));
    let pushed = push(&mut plane, &region, (1, 1), &half, address);
    assert_eq!(pushed, Err(ErrorKind::OutOfBounds { address, len: 1 }));
    assert_eq!(push(&mut plane, &region, (1, 1), &session, address), Ok(1));
}

#[test]
fn nothing_is_written_outside_of_an_open_window() {
    let folder = Folder::new();
    let (mut plane, mut peer) = (folder.plane(), folder.plane());
    let region = register(&mut plane, 4 * MIB);
    let theirs = register(&mut peer, 16 * MIB);
    let session = peer.session_id().to_owned();
    // Closed, open of two blocks, closed, open of one.
    let taken: Vec<_> = [MIB, MIB, 2 * MIB, MIB, MIB, 2 * MIB]
        .iter()
        .map(|&len| theirs.pool().allocate(len).unwrap())
        .collect();
    let offsets: Vec<_> = taken.iter().map(|slot| slot.offset() / MIB).collect();
    assert_eq!(offsets, [0, 1, 2, 4, 5, 6]);
    let mut slots = Vec::new();
    let mut landings = Vec::new();
    for (slot, is_open) in taken
        .into_iter()
        .zip([false, false, true, false, true, false])
    {
        if is_open {
            landings.push(slot.open());
        } else {
            slots.push(slot);
        }
    }
    let base = theirs.base();
    let mib = MIB as u64;
    let end = base + 16 * mib;
    let out = |address, len| Err(ErrorKind::OutOfBounds { address, len });
    let past = |len, room| Err(ErrorKind::PastWindow { len, room });
    let closed = Err(ErrorKind::Closed);
    for (address, len, expected) in [
        (base + 2 * mib, 2 * mib, Ok(2 * mib)),
        (base + 3 * mib, mib, Ok(mib)),
        (base + 4 * mib - 1, 1, Ok(1)),
        (base + 2 * mib + 1, 2 * mib - 1, Ok(2 * mib - 1)),
        (base + 2 * mib, 0, Ok(0)),
        (base + 5 * mib, mib, Ok(mib)),
        // Over the end of the window, by a byte and far.
        (base + 2 * mib, 2 * mib + 1, past(2 * mib + 1, 2 * mib)),
        (base + 3 * mib, mib + 1, past(mib + 1, mib)),
        (base + 5 * mib + 7, mib, past(mib, mib - 7)),
        // Closed ones, before, between and behind.
        (base, 1, closed),
        (base + 2 * mib - 1, 1, closed),
        (base + 2 * mib - 1, 2, closed),
        (base + 4 * mib, 1, closed),
        (base + 4 * mib, 0, closed),
        (base + 6 * mib, 1, closed),
        (end - 1, 1, closed),
        (end, 0, closed),
        // Outside of the pool, also so that a sum would wrap.
        (end, 1, out(end, 1)),
        (end - 1, 2, out(end - 1, 2)),
        (base - 1, 1, out(base - 1, 1)),
        (0, 1, out(0, 1)),
        (2 * mib, 1, out(2 * mib, 1)),
        (2 << 44, 1, out(2 << 44, 1)),
        (1 << 63, 1, out(1 << 63, 1)),
        (u64::MAX, 1, out(u64::MAX, 1)),
        (u64::MAX, 0, out(u64::MAX, 0)),
        (u64::MAX - mib + 1, mib, out(u64::MAX - mib + 1, mib)),
        (base.wrapping_neg(), 1, out(base.wrapping_neg(), 1)),
    ] {
        let before = plane.copied_bytes();
        let slot = filled(&region, (len as usize).max(1), 1);
        let (_slot, pushed) = push_slot(&mut plane, slot, len as usize, &session, address);
        assert_eq!(pushed, expected, "{len} bytes at {address:#x}");
        assert_eq!(plane.copied_bytes() - before, expected.unwrap_or(0));
    }
    for slot in &slots {
        let bytes = theirs.bytes(slot).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 0), "{slot:?}");
    }
}

#[test]
fn any_address_is_refused_or_inside() {
    let folder = Folder::new();
    let (mut plane, mut peer) = (folder.plane(), folder.plane());
    let region = register(&mut plane, MIB);
    let theirs = register(&mut peer, 4 * MIB);
    let session = peer.session_id().to_owned();
    let landing = theirs.pool().allocate(MIB).unwrap().open();
    let window = theirs.address_of(landing.offset()).unwrap();
    let mut numbers = Numbers(11);
    let (mut slot, mut hits) = (region.pool().allocate(MIB).unwrap(), 0);
    for _ in 0..20_000 {
        let next = base(&session, 2);
        let near = [0, theirs.base(), next, 1 << 63, u64::MAX][numbers.below(5)];
        let address = near.wrapping_add(numbers.next() >> numbers.below(64));
        let len = numbers.below(MIB + 1) >> numbers.below(20);
        let end = address.checked_add(len as u64);
        let inside = end.is_some_and(|end| end <= window + MIB as u64);
        let inside = inside && (window..window + MIB as u64).contains(&address);
        let pushed;
        (slot, pushed) = push_slot(&mut plane, slot, len, &session, address);
        assert_eq!(pushed.is_ok(), inside, "{len} bytes at {address:#x}");
        hits += usize::from(inside);
    }
    assert!((10..19_990).contains(&hits), "{hits}");
    drop(landing);
}
