//! Lives: of a request that begins anew, and of a worker that does.

use tensorwire::message::{CONTROL_MARKER, NO_SCALARS};
use tensorwire::transfer::message::{Abort, Alloc};
use tensorwire::transfer::worker::{CallError, Ending, Event, ProtocolError, Settings, Site, Step};
use tensorwire::transfer::{Instance, Role};

use super::bed::{ADDRESS, BLOCK, Bed, MANIFEST, SECOND, sent};
use super::sender::{THERE, push};

#[test]
fn another_life_of_a_request_is_another_job() {
    let mut bed = Bed::new(Role::Denoiser);
    let offset = bed.allocate();
    bed.ready(MANIFEST, offset, None).unwrap();
    bed.look();
    let (first, received) = (bed.job.take().unwrap(), bed.received.take().unwrap());
    bed.abort().unwrap();
    let id = bed.slot_id.to_string();
    bed.ready(MANIFEST, 0, Some(&id)).unwrap();
    bed.look();
    assert_ne!(bed.job.as_ref(), Some(&first));
    // Late answers and a late slot of the first life touch nothing of the second.
    let (output, error) = bed
        .instance
        .stage(&first, bed.output(), &NO_SCALARS, bed.now)
        .unwrap_err();
    assert_eq!(error, CallError::Over);
    drop(output);
    assert_eq!(bed.instance.fail(&first, "", bed.now), Err(CallError::Over));
    drop(received);
    bed.log.clear();
    bed.look();
    assert_eq!(
        (bed.step(), &*bed.log, bed.blocks()),
        (Step::Working, "", 0)
    );
    bed.received = None;
    bed.stage().unwrap();
    bed.look();
    assert_eq!(bed.log, " DONE");
}

#[test]
fn no_second_output_takes_the_place_of_one_that_is_announced() {
    let mut bed = Bed::new(Role::Encoder);
    bed.work("r").unwrap();
    bed.stage().unwrap();
    let step = Step::Staged;
    let duplicate = Err(ProtocolError::Duplicate { step });
    assert_eq!(bed.work("r"), duplicate);
    bed.control(push(THERE, 1024)).unwrap();
    bed.order = bed.instance.poll_push();
    let step = Step::Pushing;
    assert_eq!(bed.work("r"), Err(ProtocolError::Duplicate { step }));
    bed.pushed(Ok(8));
    bed.work("r").unwrap();

    // A middle role, by a copy of each message that begins a request.
    let mut bed = Bed::new(Role::Denoiser);
    bed.alloc("r", 8).unwrap();
    bed.ready(MANIFEST, BLOCK as u64, None).unwrap();
    bed.look();
    bed.received = None;
    bed.stage().unwrap();
    assert_eq!(bed.alloc("r", 8), duplicate);
    assert_eq!(bed.ready(MANIFEST, BLOCK as u64, None), duplicate);
}

#[test]
fn a_new_life_of_a_worker_believes_nothing_of_the_old_one() {
    let mut old = Bed::new(Role::Denoiser);
    let offset = old.allocate();
    let (id, pool) = (old.slot_id.to_string(), old.pool.clone());
    let settings = Settings::new().with_preallocated(1, BLOCK);
    drop(old);
    assert_eq!(pool.stats().allocated_bytes(), 0);

    for (name, address, generation) in [
        ("there", ADDRESS, 0),
        ("here", 4096, 0),
        ("here", ADDRESS, 1),
    ] {
        let site = Site::new(name, address, pool.clone(), "e").with_generation(generation);
        let mut new = Instance::new(Role::Denoiser, site, settings).unwrap();
        sent(&mut new);
        for scalars in ["{}".to_string(), format!(r#"{{"_prealloc_slot_id":{id}}}"#)] {
            let offset = if scalars == "{}" { offset } else { 0 };
            let ready = format!(
                r#"{{"msg_type":"transfer_ready","request_id":"r","manifest":{{}},"slot_offset":{offset},"scalar_fields":{scalars}}}"#
            );
            assert!(
                new.handle_frames(&[CONTROL_MARKER, ready.as_bytes()], SECOND)
                    .is_err()
            );
            assert!(new.poll_event().is_none());
            assert_eq!(sent(&mut new).len(), 1);
        }
        assert!(new.handle(&push(THERE, 8).into(), SECOND).is_err());
        assert_eq!(sent(&mut new).len(), 1);
        new.handle(&Alloc::new("r", 8, "encoder").into(), SECOND)
            .unwrap();
        assert_eq!(new.step("r".into()), Step::Allocated);
    }
}

#[test]
fn what_a_worker_answers_after_an_abort_is_over() {
    let mut bed = Bed::new(Role::Encoder);
    bed.work("r").unwrap();
    let payload = Abort::new("r", "t1", "").to_vec();
    bed.instance
        .handle_frames(&[CONTROL_MARKER, &payload], SECOND)
        .unwrap();
    let Some(Event::Over { job, ending }) = bed.instance.poll_event() else {
        panic!("not over");
    };
    assert_eq!((Some(&job), ending), (bed.job.as_ref(), Ending::Aborted));
    assert_eq!(bed.stage(), Err(CallError::Over));
    assert_eq!(bed.blocks(), 0);
}
