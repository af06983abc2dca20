//! Slots: when they are open, who waits for them, and what is held.

use std::time::Duration;

use tensorwire::transfer::Role;
use tensorwire::transfer::worker::{CallError, ProtocolError, Step};

use super::bed::{BLOCK, Bed, MANIFEST, SECOND, sent};

#[test]
fn a_preallocated_slot_is_open_again_before_the_answer_is_sent() {
    for (role, fails) in [
        (Role::Denoiser, false),
        (Role::Denoiser, true),
        (Role::Decoder, true),
    ] {
        let mut bed = Bed::new(role);
        let id = bed.slot_id.to_string();
        bed.ready(MANIFEST, 0, Some(&id)).unwrap();
        bed.look();
        let received = bed.received.take().unwrap();
        assert_eq!(received.scalars().as_value().raw(), r#"{"seed":1}"#);
        assert_eq!(received.manifest().as_value().raw(), MANIFEST);
        assert_eq!(
            (received.slot().offset(), received.slot().len()),
            (0, BLOCK)
        );
        if fails {
            bed.fail().unwrap()
        } else {
            bed.stage().unwrap()
        }
        bed.look();
        assert_eq!((bed.step(), &*bed.log), (Step::Closing, " ready"));
        assert!(bed.table.begin_write(0, 8).is_err(), "written while read");
        // From the worker's own thread.
        std::thread::spawn(move || drop(received)).join().unwrap();
        let mut buffer = Vec::new();
        bed.instance.poll_transmit(&mut buffer).unwrap();
        assert!(
            bed.table.begin_write(0, 8).is_ok(),
            "still closed when the answer is sent"
        );
    }
}

#[test]
fn a_decoder_cannot_finish_while_it_holds_the_slot() {
    let mut bed = Bed::new(Role::Decoder);
    let id = bed.slot_id.to_string();
    bed.ready(MANIFEST, 0, Some(&id)).unwrap();
    bed.look();
    assert_eq!(bed.finish(), Err(CallError::NotGivenBack));
    bed.received = None;
    assert_eq!(bed.finish(), Ok(()));
    assert!(bed.table.begin_write(0, 8).is_ok());
    assert_eq!(bed.finish(), Err(CallError::Over));
}

#[test]
fn a_filled_slot_that_is_still_written_is_not_shown_to_anybody() {
    // The slow path: its block is freed when the writer is done.
    let mut bed = Bed::new(Role::Denoiser);
    let offset = bed.allocate();
    let writing = bed
        .table
        .begin_write(offset.try_into().unwrap(), 8)
        .unwrap();
    let slot_offset = offset.try_into().unwrap();
    let busy = ProtocolError::Busy { slot_offset };
    assert_eq!(bed.ready(MANIFEST, offset, None), Err(busy));
    assert_eq!((bed.step(), bed.blocks()), (Step::Ended, 1));
    drop(writing);
    bed.pool.reclaim();
    assert_eq!(bed.blocks(), 0);

    // The fast path: its request fails, but not before the slot is open again.
    let mut bed = Bed::new(Role::Denoiser);
    let id = bed.slot_id.to_string();
    let writing = bed.table.begin_write(0, 8).unwrap();
    let busy = ProtocolError::Busy { slot_offset: 0 };
    assert_eq!(bed.ready(MANIFEST, 0, Some(&id)), Err(busy));
    bed.look();
    assert_eq!(bed.log, "");
    let soon = bed.instance.poll_timeout().unwrap();
    assert!(soon <= bed.now + SECOND / 10);
    let in_use = ProtocolError::SlotInUse {
        slot_id: bed.slot_id,
    };
    assert_eq!(bed.ready(MANIFEST, 0, Some(&id)), Err(in_use));
    bed.look();
    assert_eq!(std::mem::take(&mut bed.log), " ERROR");
    drop(writing);
    bed.instance.handle_timeout(soon);
    assert!(bed.table.begin_write(0, 8).is_ok());
    bed.look();
    assert_eq!(std::mem::take(&mut bed.log), " ERROR");
    assert_eq!(bed.ready(MANIFEST, 0, Some(&id)), Ok(()));
}

#[test]
fn a_preallocated_slot_whose_writer_is_late_fails_its_request_and_is_not_lost() {
    let mut bed = Bed::new(Role::Denoiser);
    let id = bed.slot_id.to_string();
    let writing = bed.table.begin_write(0, 8).unwrap();
    assert!(bed.ready(MANIFEST, 0, Some(&id)).is_err());
    bed.now += 60 * SECOND;
    bed.instance.handle_timeout(bed.now);
    bed.look();
    assert_eq!(bed.log, " ERROR");
    assert_eq!(bed.instance.poll_timeout(), Some(bed.now + SECOND));
    let slot_id = bed.slot_id;
    let in_use = Err(ProtocolError::SlotInUse { slot_id });
    assert_eq!(bed.ready(MANIFEST, 0, Some(&id)), in_use);
    bed.look();
    bed.log.clear();

    // Hours later.
    drop(writing);
    bed.now += 10_000 * SECOND;
    bed.instance.handle_timeout(bed.now);
    bed.look();
    assert_eq!((&*bed.log, bed.instance.poll_timeout()), ("", None));
    bed.ready(MANIFEST, 0, Some(&id)).unwrap();
}

#[test]
fn room_goes_to_those_who_wait_in_their_order() {
    let mut bed = Bed::new(Role::Denoiser);
    bed.fill_pool();
    bed.alloc("large", 2048).unwrap();
    bed.alloc("r", 8).unwrap();
    bed.alloc("small", 8).unwrap();
    // Room for a small one, which does not overtake.
    drop(bed.ballast.remove(0));
    let steps = |bed: &Bed| ["large", "r", "small"].map(|id| bed.instance.step(id.into()));
    assert!(sent(&mut bed.instance).is_empty());
    assert_eq!(steps(&bed), [Step::Waiting; 3]);
    bed.ballast.clear();
    bed.look();
    assert_eq!(bed.log, " ALLOCATED ALLOCATED");
    assert_eq!(
        steps(&bed),
        [Step::Allocated, Step::Allocated, Step::Waiting]
    );
    // An aborted one makes room for the next.
    bed.abort().unwrap();
    bed.look();
    assert_eq!(bed.log, " ALLOCATED ALLOCATED ALLOCATED");
    assert_eq!(steps(&bed)[2], Step::Allocated);
}

#[test]
fn who_waits_for_room_is_called_again_soon_and_not_for_ever() {
    let mut bed = Bed::new(Role::Denoiser);
    bed.fill_pool();
    bed.alloc("r", 8).unwrap();
    let mut calls = 0;
    while let Some(timeout) = bed.instance.poll_timeout() {
        assert!(timeout > bed.now && timeout <= bed.now + Duration::from_millis(100));
        bed.now = timeout;
        bed.instance.handle_timeout(bed.now);
        calls += 1;
    }
    assert!(calls > 100, "{calls}");
    assert_eq!(bed.now, 11 * SECOND);
    bed.look();
    assert_eq!((bed.step(), &*bed.log), (Step::Ended, " ERROR"));
}

#[test]
fn a_machine_that_is_dropped_leaves_nothing_behind() {
    let mut bed = Bed::new(Role::Denoiser);
    let id = bed.slot_id.to_string();
    bed.ready(MANIFEST, 0, Some(&id)).unwrap();
    bed.look();
    bed.alloc("other", 8).unwrap();
    let (received, pool) = (bed.received.take().unwrap(), bed.pool.clone());
    drop(bed);
    assert_eq!(pool.stats().allocated_bytes(), BLOCK);
    drop(received);
    assert_eq!(pool.stats().allocated_bytes(), 0);
}
