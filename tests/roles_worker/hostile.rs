//! A head node that means ill: what piles up, what blocks others, what comes at a bad moment.

use tensorwire::message::CONTROL_MARKER;
use tensorwire::transfer::Role;
use tensorwire::transfer::message::Abort;
use tensorwire::transfer::worker::{ProtocolError, Settings, Step};

use super::bed::{BLOCK, Bed, MANIFEST, sent};

#[test]
fn what_nobody_takes_does_not_pile_up() {
    let settings = Settings::new()
        .with_max_requests(1)
        .with_preallocated(1, BLOCK);
    let abort = |bed: &mut Bed, id: &str| {
        let payload = Abort::new(id, "", "").to_vec();
        let frames = [CONTROL_MARKER, &payload];
        bed.instance.handle_frames(&frames, bed.now).unwrap();
    };

    // ALLOCATED, of requests that are given up at once.
    let mut bed = Bed::with_settings(Role::Denoiser, settings);
    let mut verdicts = Vec::new();
    for index in 0..1000 {
        let id = index.to_string();
        verdicts.extend(bed.alloc(&id, 8).err());
        abort(&mut bed, &id);
    }
    assert_eq!(verdicts.last(), Some(&ProtocolError::Backlog { limit: 68 }));
    assert!((1..100).contains(&sent(&mut bed.instance).len()));
    bed.allocate();

    // The same answer again and again.
    for _ in 0..1000 {
        bed.alloc("r", 8).unwrap();
    }
    assert!((1..100).contains(&sent(&mut bed.instance).len()));
    abort(&mut bed, "r");

    // Errors of those that wait for room.
    bed.fill_pool();
    for index in 0..1000 {
        let id = index.to_string();
        let _ = bed.alloc(&id, 8);
        abort(&mut bed, &id);
    }
    assert!((1..100).contains(&sent(&mut bed.instance).len()));

    // Events.
    let mut bed = Bed::with_settings(Role::Encoder, settings);
    for index in 0..1000 {
        let _ = bed.work(&index.to_string());
        abort(&mut bed, &index.to_string());
        sent(&mut bed.instance);
    }
    let events = std::iter::from_fn(|| bed.instance.poll_event());
    assert!((1..100).contains(&events.count()));
    bed.work("r").unwrap();
}

#[test]
fn what_never_fits_beside_the_preallocated_slots_keeps_nobody_waiting() {
    for (count, len, room) in [
        (0, 1, 4),
        (1, 1, 2),
        (2, 1, 2),
        (3, 1, 1),
        (4, 1, 0),
        (1, 2, 2),
        (2, 2, 0),
        (1, 4, 0),
    ] {
        let settings = Settings::new().with_preallocated(count, len * BLOCK);
        let mut bed = Bed::with_settings(Role::Denoiser, settings);
        let room = room * BLOCK;
        let needed = room as u64 + 1;
        let refused = ProtocolError::PoolTooSmall { needed, pool: room };
        assert_eq!(bed.alloc("big", needed), Err(refused), "{count} of {len}");
        if room > 0 {
            bed.alloc("r", room as u64).unwrap();
            assert_eq!(bed.step(), Step::Allocated);
        } else {
            // Not even no bytes, which take the smallest slot.
            let refused = ProtocolError::PoolTooSmall { needed: 0, pool: 0 };
            assert_eq!(bed.alloc("r", 0), Err(refused), "{count} of {len}");
        }
    }
}

#[test]
fn an_output_whose_slot_came_back_unseen_is_announced_before_anything_else() {
    let mut bed = Bed::new(Role::Denoiser);
    let id = bed.slot_id.to_string();
    bed.ready(MANIFEST, bed.slot_offset, Some(&id)).unwrap();
    bed.look();
    bed.stage().unwrap();
    // On another thread, say.
    drop(bed.received.take());
    let step = Step::Staged;
    let duplicate = Err(ProtocolError::Duplicate { step });
    assert_eq!(bed.alloc("r", 8), duplicate);
    assert_eq!((bed.step(), bed.instance.len()), (step, 1));
}
