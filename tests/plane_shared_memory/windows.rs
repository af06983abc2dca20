//! Windows, between processes: one writer at a time, and none when the owner looks.

use std::collections::BTreeMap;
use std::time::Instant;

use tensorwire::plane::{DataPlane, ErrorKind};

use crate::crashes::{is_written, state};
use crate::process::Process;
use crate::{Folder, MIB, PATIENCE, push, register};

#[test]
fn a_writer_that_takes_its_time_is_waited_for_and_its_block_given_to_nobody() {
    let folder = Folder::new();
    let mut plane = folder.plane();
    let region = register(&mut plane, 128 * MIB);
    let session = plane.session_id().to_owned();
    let segment = folder.segment(&session, 1);
    let len = (64 * MIB).to_string();
    let start = Instant::now();
    loop {
        assert!(
            start.elapsed() < PATIENCE,
            "no push was caught in the middle"
        );
        let landing = region.pool().allocate(64 * MIB).unwrap().open();
        let window = (landing.offset() / MIB) as u64;
        let address = region.address_of(landing.offset()).unwrap();
        let arguments = [&*session, &address.to_string(), &len, "once"];
        let mut writer = Process::start("pusher", &folder, &arguments);
        assert_eq!(writer.hear(), "ready");
        while state(&segment, window) < 2 && start.elapsed() < PATIENCE {}
        writer.signal("STOP");
        if !is_written(state(&segment, window)) {
            continue;
        }
        // It stands in the middle. Nobody else gets in, and the owner does not get it back.
        let mut third = folder.plane();
        let theirs = register(&mut third, MIB);
        let pushed = push(&mut third, &theirs, (1, 8), &session, address);
        assert_eq!(pushed, Err(ErrorKind::Busy));
        let landing = landing.close().unwrap_err().into_landing();
        let pushed = push(&mut third, &theirs, (1, 8), &session, address);
        assert_eq!(pushed, Err(ErrorKind::Closed));
        drop(landing);
        assert_eq!(region.pool().reclaim(), 0);
        let other = region.pool().allocate(64 * MIB).unwrap();
        assert_ne!((other.offset() / MIB) as u64, window);
        assert!(region.pool().allocate(1).is_err());

        writer.signal("CONT");
        // It was given up: the bytes are nowhere, and it says so.
        assert_eq!(writer.hear(), "Err(Closed)");
        assert_eq!(region.pool().reclaim(), 1);
        drop(other);
        assert_eq!(region.pool().stats().allocated_bytes(), 0);
        return;
    }
}

#[test]
fn processes_that_hammer_the_same_windows_never_mix_what_they_write() {
    const LEN: usize = 32 << 10;
    const ROUNDS: u64 = 400;
    let folder = Folder::new();
    let mut plane = folder.plane();
    let options = tensorwire::plane::RegionOptions::new(4 * LEN).with_min_block(LEN);
    let region = plane.register(options).unwrap();
    let session = plane.session_id().to_owned();
    let mut landings: Vec<_> = (0..3)
        .map(|_| Some(region.pool().allocate(LEN).unwrap().open()))
        .collect();
    let addresses: Vec<_> = landings
        .iter()
        .flatten()
        .map(|landing| region.address_of(landing.offset()).unwrap().to_string())
        .collect();
    let mut writers: Vec<_> = (1..=4)
        .map(|id: u64| {
            let mut arguments = vec![session.clone(), id.to_string(), LEN.to_string()];
            arguments.push(ROUNDS.to_string());
            arguments.extend_from_slice(&addresses);
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            Process::start("hammer", &folder, &arguments)
        })
        .collect();
    for writer in &mut writers {
        assert_eq!(writer.hear(), "ready");
    }
    let listeners: Vec<_> = writers
        .into_iter()
        .map(|mut writer| std::thread::spawn(move || writer.hear()))
        .collect();
    let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut looks, mut busy) = (0_u64, 0_u64);
    while listeners.iter().any(|listener| !listener.is_finished()) {
        for landing in &mut landings {
            let slot = match landing.take().unwrap().close() {
                Ok(slot) => slot,
                Err(error) => {
                    busy += 1;
                    *landing = Some(error.into_landing());
                    continue;
                }
            };
            // What one push wrote, all of it.
            let bytes = region.bytes(&slot).unwrap();
            assert!(
                bytes.chunks_exact(8).all(|word| *word == bytes[..8]),
                "mixed"
            );
            let value = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            *seen.entry(value >> 32).or_default() += 1;
            looks += 1;
            *landing = Some(slot.open());
        }
        // There are more processes than cores.
        std::thread::yield_now();
    }
    for listener in listeners {
        let said = listener.join().unwrap();
        let (done, refused) = said.split_once(' ').unwrap();
        assert_eq!(done, ROUNDS.to_string());
        eprintln!("{done} pushes, {refused} refused");
    }
    eprintln!("{looks} looks, {busy} times busy, by writer {seen:?}");
    seen.remove(&0);
    assert_eq!(seen.len(), 4, "{seen:?}");
    drop(landings);
    assert_eq!(region.pool().stats().allocated_bytes(), 0);
}
