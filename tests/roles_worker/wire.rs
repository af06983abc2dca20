//! What goes over the wire: the bytes, and the names of requests.

use std::sync::Arc;

use tensorwire::json::Value;
use tensorwire::message::{CONTROL_MARKER, Scalar};
use tensorwire::transfer::message::{Alloc, Push};
use tensorwire::transfer::pool::{Pool, WindowTable};
use tensorwire::transfer::worker::{CallError, Event, Input, Output, Settings, Step};
use tensorwire::transfer::{Control, Instance, Role};

use super::bed::{BLOCK, Bed, MANIFEST, SECOND, object, sent, site};
use super::sender::{THERE, push};

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
