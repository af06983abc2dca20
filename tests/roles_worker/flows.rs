//! What takes more than one message: bytes on the wire, order, lives, and what is held.

use std::sync::Arc;
use std::time::Duration;

use tensorwire::json::Value;
use tensorwire::message::{CONTROL_MARKER, NO_SCALARS, Scalar};
use tensorwire::transfer::message::{Abort, Alloc, Push};
use tensorwire::transfer::pool::{Pool, WindowTable};
use tensorwire::transfer::worker::{
    CallError, Ending, Event, Input, Outgoing, Output, ProtocolError, PushOrder, Received,
    Settings, Site, Step,
};
use tensorwire::transfer::{Control, Instance, Receiver, RequestId, Role, Sender};

use super::bed::{ADDRESS, BLOCK, Bed, MANIFEST, SECOND, object};
use super::sender::{THERE, push};

/// The messages to send, each with what it is in front.
fn sent(instance: &mut Instance) -> Vec<String> {
    let mut buffer = vec![0xa5; 7];
    std::iter::from_fn(|| {
        let outgoing = instance.poll_transmit(&mut buffer)?;
        let kind = match outgoing {
            Outgoing::Control => "control",
            Outgoing::Tensors => "tensors",
            other => panic!("{other:?}"),
        };
        Some(format!(
            "{kind} {}",
            String::from_utf8(buffer.clone()).unwrap()
        ))
    })
    .collect()
}

fn site(pool: &Pool) -> Site {
    Site::new("here", 4096, pool.clone(), "tcp://127.0.0.1:5571")
}

#[test]
fn messages_are_those_of_the_python_workers() {
    for (role, registered, staged, failed) in [
        (
            Role::Encoder,
            r#"control {"msg_type":"transfer_register","role":"encoder","session_id":"here","pool_ptr":4096,"pool_size":4096,"work_endpoint":"tcp://127.0.0.1:5571","preallocated_slots":[]}"#,
            r#"control {"msg_type":"transfer_staged","request_id":"r\u00e9","data_size":1024,"manifest":{"x":[{"offset":0,"shape":[2],"dtype":"float32"}]},"session_id":"here","pool_ptr":4096,"slot_offset":1024,"scalar_fields":{"seed":7}}"#,
            r#"tensors {"tensor_descriptors":[],"scalar_fields":{"request_id":"r\u00e9","_disagg_error":"no \"memory\""}}"#,
        ),
        (
            Role::PromptEncoder,
            r#"control {"msg_type":"transfer_register","role":"prompt_encoder","session_id":"here","pool_ptr":4096,"pool_size":4096,"work_endpoint":"tcp://127.0.0.1:5571","preallocated_slots":[]}"#,
            r#"control {"msg_type":"transfer_staged","request_id":"r\u00e9","data_size":1024,"manifest":{"x":[{"offset":0,"shape":[2],"dtype":"float32"}]},"session_id":"here","pool_ptr":4096,"slot_offset":1024,"scalar_fields":{"seed":7}}"#,
            r#"tensors {"tensor_descriptors":[],"scalar_fields":{"request_id":"r\u00e9","_disagg_error":"no \"memory\""}}"#,
        ),
        (
            Role::ImageEncoder,
            r#"control {"msg_type":"transfer_register","role":"image_encoder","session_id":"here","pool_ptr":4096,"pool_size":4096,"work_endpoint":"tcp://127.0.0.1:5571","preallocated_slots":[]}"#,
            r#"control {"msg_type":"transfer_staged","request_id":"r\u00e9","staged_for_decoder":false,"session_id":"here","pool_ptr":4096,"slot_offset":1024,"data_size":1024,"manifest":{"x":[{"offset":0,"shape":[2],"dtype":"float32"}]},"scalar_fields":{"seed":7}}"#,
            r#"control {"msg_type":"transfer_done","request_id":"r\u00e9","error":"no \"memory\""}"#,
        ),
        (
            Role::Denoiser,
            r#"control {"msg_type":"transfer_register","role":"denoiser","session_id":"here","pool_ptr":4096,"pool_size":4096,"work_endpoint":"tcp://127.0.0.1:5571","preallocated_slots":[]}"#,
            r#"control {"msg_type":"transfer_done","request_id":"r\u00e9","staged_for_decoder":true,"session_id":"here","pool_ptr":4096,"slot_offset":1024,"data_size":1024,"manifest":{"x":[{"offset":0,"shape":[2],"dtype":"float32"}]},"scalar_fields":{"seed":7}}"#,
            r#"control {"msg_type":"transfer_done","request_id":"r\u00e9","error":"no \"memory\""}"#,
        ),
        (
            Role::Decoder,
            r#"control {"msg_type":"transfer_register","role":"decoder","session_id":"here","pool_ptr":4096,"pool_size":4096,"work_endpoint":"tcp://127.0.0.1:5571","preallocated_slots":[]}"#,
            "",
            r#"tensors {"tensor_descriptors":[],"scalar_fields":{"request_id":"r\u00e9","error":"no \"memory\""}}"#,
        ),
    ] {
        let pool = Pool::with_windows(4096, BLOCK, Arc::new(WindowTable::new())).unwrap();
        for fails in [false, true] {
            let mut instance = Instance::new(role, site(&pool), Settings::new()).unwrap();
            assert_eq!(sent(&mut instance), [registered]);
            let job = if role.is_first() {
                let frames: [&[u8]; 2] = ["ré".as_bytes(), b"pickle"];
                let Input::Work { job, .. } = instance.handle_frames(&frames, SECOND).unwrap()
                else {
                    panic!("no work");
                };
                job
            } else {
                let alloc = Control::from(Alloc::new("ré", 8, "encoder"));
                instance.handle(&alloc, SECOND).unwrap();
                assert_eq!(
                    sent(&mut instance),
                    [
                        r#"control {"msg_type":"transfer_allocated","request_id":"r\u00e9","session_id":"here","pool_ptr":4096,"slot_offset":0,"slot_size":1024}"#
                    ]
                );
                let ready = format!(
                    r#"{{"msg_type":"transfer_ready","request_id":"r\u00E9","manifest":{MANIFEST},"slot_offset":0,"scalar_fields":{{}}}}"#
                );
                instance
                    .handle_frames(&[CONTROL_MARKER, ready.as_bytes()], SECOND)
                    .unwrap();
                let Some(Event::Ready(received)) = instance.poll_event() else {
                    panic!("not ready");
                };
                received.job().clone()
            };
            if fails {
                instance.fail(&job, "no \"memory\"", SECOND).unwrap();
                assert_eq!(sent(&mut instance), [failed]);
            } else if role == Role::Decoder {
                instance.finish(&job, SECOND).unwrap();
                assert!(sent(&mut instance).is_empty());
            } else {
                let _first = pool.allocate(8).unwrap();
                let slot = pool.allocate(8).unwrap();
                let output = Output::new(slot, 8, object(MANIFEST)).unwrap();
                let scalars = [("seed", Scalar::from(7)), ("_prealloc_slot_id", 3.into())];
                instance.stage(&job, output, &scalars, SECOND).unwrap();
                assert_eq!(sent(&mut instance), [staged]);
                let push = Control::from(Push::new("ré", "there", 1, 1024));
                instance.handle(&push, SECOND).unwrap();
                let order = instance.poll_push().unwrap();
                assert_eq!(
                    (&*order.session_id, order.address, order.len),
                    ("there", 1, 8)
                );
                instance.handle_pushed(&order.job, order.slot, Ok::<_, CallError>(8), SECOND);
                assert_eq!(
                    sent(&mut instance),
                    [r#"control {"msg_type":"transfer_pushed","request_id":"r\u00e9"}"#]
                );
            }
            assert_eq!(pool.stats().allocated_bytes(), 0, "{role}");
        }
    }
}

#[test]
fn a_decoder_without_room_says_so_in_the_form_that_frees_the_senders_place() {
    let mut bed = Bed::new(Role::Decoder);
    assert!(bed.alloc("r", 1 << 20).is_err());
    let [error] = &sent(&mut bed.instance)[..] else {
        panic!("not one message");
    };
    assert_eq!(
        error,
        r#"control {"msg_type":"transfer_done","request_id":"r","error":"slot of 1048576 bytes out of a pool with room for 2048"}"#
    );
}

#[test]
fn an_output_without_tensors_is_announced_and_pushed_without_a_push() {
    let mut bed = Bed::new(Role::Encoder);
    bed.work("r").unwrap();
    bed.stage_output(Output::empty()).unwrap();
    assert_eq!(
        sent(&mut bed.instance),
        [
            r#"control {"msg_type":"transfer_staged","request_id":"r","data_size":0,"manifest":{},"session_id":"here","pool_ptr":139637976727552,"slot_offset":0,"scalar_fields":{}}"#
        ]
    );
    bed.control(push(THERE, 0)).unwrap();
    assert!(bed.instance.poll_push().is_none());
    bed.look();
    assert_eq!(bed.log, " PUSHED moved");
}

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
fn a_preallocated_slot_whose_writer_never_ends_is_given_up() {
    let mut bed = Bed::new(Role::Denoiser);
    let id = bed.slot_id.to_string();
    let _writing = bed.table.begin_write(0, 8).unwrap();
    assert!(bed.ready(MANIFEST, 0, Some(&id)).is_err());
    bed.now += 60 * SECOND;
    bed.instance.handle_timeout(bed.now);
    bed.look();
    assert_eq!(bed.log, " ERROR");
    assert_eq!(bed.instance.poll_timeout(), None);
    let unknown = ProtocolError::SlotUnknown {
        slot_id: bed.slot_id,
    };
    assert_eq!(bed.ready(MANIFEST, 0, Some(&id)), Err(unknown));
}

#[test]
fn room_goes_to_those_who_wait_in_their_order() {
    let mut bed = Bed::new(Role::Denoiser);
    bed.fill_pool();
    bed.alloc("large", 2048).unwrap();
    bed.alloc("r", 8).unwrap();
    bed.alloc("small", 8).unwrap();
    // Room for a small one, which does not overtake.
    bed.ballast.remove(0);
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

#[test]
fn as_many_requests_as_are_taken_and_no_more() {
    let settings = Settings::new()
        .with_max_requests(2)
        .with_preallocated(1, BLOCK);
    let full = ProtocolError::Full { limit: 2 };
    let mut bed = Bed::with_settings(Role::Denoiser, settings);
    bed.alloc("a", 8).unwrap();
    bed.alloc("b", 8).unwrap();
    bed.look();
    bed.log.clear();
    assert_eq!(bed.alloc("c", 8), Err(full));
    let id = bed.slot_id.to_string();
    assert_eq!(bed.ready(MANIFEST, 0, Some(&id)), Err(full));
    bed.look();
    assert_eq!((bed.instance.len(), &*bed.log), (2, " ERROR ERROR"));

    let mut bed = Bed::with_settings(Role::Encoder, settings);
    bed.work("a").unwrap();
    bed.work("b").unwrap();
    assert_eq!(bed.work("c"), Err(full));
    bed.look();
    assert_eq!((bed.instance.len(), &*bed.log), (2, " ERROR"));
}

#[test]
fn refusals_that_nobody_fetches_do_not_pile_up() {
    let mut bed = Bed::with_settings(Role::Encoder, Settings::new().with_max_requests(1));
    for index in 0..10_000 {
        let id = index.to_string();
        assert!(bed.control(Push::new(&*id, "there", 0, 8)).is_err());
    }
    assert!((1..100).contains(&sent(&mut bed.instance).len()));
}

#[test]
fn frames_that_are_no_message_for_the_role_are_turned_away() {
    let long = "x".repeat(RequestId::MAX_LEN + 1);
    let too_long = ProtocolError::IdTooLong {
        len: long.len(),
        limit: RequestId::MAX_LEN,
    };
    let mut bed = Bed::new(Role::Encoder);
    let frames = |frames: &[&[u8]], bed: &mut Bed| {
        let frames: Vec<Vec<u8>> = frames.iter().map(|frame| frame.to_vec()).collect();
        bed.instance
            .handle_frames(&frames, SECOND)
            .map(|input| format!("{input:?}"))
    };
    assert_eq!(frames(&[], &mut bed), Err(ProtocolError::NoText));
    assert_eq!(frames(&[b"r"], &mut bed), Err(ProtocolError::NoText));
    assert_eq!(
        frames(&[b"\xff", b"pickle"], &mut bed),
        Err(ProtocolError::NoText)
    );
    assert_eq!(
        frames(&[long.as_bytes(), b"pickle"], &mut bed),
        Err(too_long)
    );
    // An id that looks like the start of a tensor message is one all the same.
    assert!(
        frames(&[b"{", b"1", b"pickle"], &mut bed)
            .unwrap()
            .starts_with("Work")
    );
    assert!(bed.control(Push::new(&*long, "there", 0, 8)).is_err());
    let invalid = frames(&[CONTROL_MARKER], &mut bed);
    assert!(matches!(invalid, Err(ProtocolError::Invalid(_))));
    assert!(bed.transmit().is_empty());

    let mut bed = Bed::new(Role::Denoiser);
    let role = Role::Denoiser;
    assert_eq!(
        frames(&[b"r", b"pickle"], &mut bed),
        Err(ProtocolError::NotOfRole { role })
    );
    assert_eq!(frames(&[b"{}"], &mut bed), Ok("Tensors".into()));
    assert_eq!(bed.alloc(&long, 8), Err(too_long));
    assert!(bed.transmit().is_empty());
}

#[test]
fn halves_of_other_roles_and_slots_that_are_not_there_are_refused() {
    let pool = Pool::new(1 << 20).unwrap();
    let settings = Settings::new().with_preallocated(2, 1 << 20);
    let role = Role::Decoder;
    let error = Sender::new(role, site(&pool), settings).unwrap_err();
    assert_eq!(error, CallError::NotOfRole { role });
    let role = Role::Encoder;
    let error = Receiver::new(role, site(&pool), settings).unwrap_err();
    assert_eq!(error, CallError::NotOfRole { role });
    let error = Instance::new(Role::Denoiser, site(&pool), settings).unwrap_err();
    assert!(matches!(error, CallError::Pool(_)), "{error}");
    assert_eq!(pool.stats().allocated_bytes(), 0);
}

#[test]
fn spellings_of_one_id_are_one_request() {
    let mut bed = Bed::new(Role::Encoder);
    let (escaped, surrogate) = (r#""\u0072""#, r#""\uDC80""#);
    bed.work("r").unwrap();
    bed.stage().unwrap();
    bed.look();
    let id = Value::parse(escaped.as_bytes()).unwrap().as_str().unwrap();
    bed.control(Push::new(id, "there", 0x1000, 8)).unwrap();
    assert_eq!(bed.step(), Step::Pushing);
    let id = Value::parse(surrogate.as_bytes())
        .unwrap()
        .as_str()
        .unwrap();
    assert!(bed.control(Push::new(id, "there", 0x1000, 8)).is_err());
    let [error] = &sent(&mut bed.instance)[..] else {
        panic!("not one message");
    };
    assert!(error.contains(r#""request_id":"\udc80""#), "{error}");
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

#[test]
fn machines_and_what_they_hand_out_go_to_any_thread() {
    fn is_send<T: Send>() {}
    is_send::<Instance>();
    is_send::<Received>();
    is_send::<Output>();
    is_send::<PushOrder>();
    is_send::<Event>();
}

#[test]
fn a_text_without_end_is_cut() {
    let mut bed = Bed::new(Role::Encoder);
    bed.work("r").unwrap();
    let job = bed.job.clone().unwrap();
    bed.instance
        .fail(&job, &"é".repeat(1 << 20), SECOND)
        .unwrap();
    let [error] = &bed.transmit()[..] else {
        panic!("not one message");
    };
    assert!(error.len() < 20_000);
}

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
