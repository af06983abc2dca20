//! Messages put together from parts, and what is read of them again.

use super::{IntoVec, object};
use tensorwire::json::{Object, Value};
use tensorwire::transfer::message::{
    Abort, Alloc, Allocated, Done, Extras, Location, Outcome, PreallocatedSlot, PreallocatedSlots,
    Push, Pushed, Ready, Register, RegisterAck, Staged, Unknown,
};
use tensorwire::transfer::{Control, Role};

const SLOTS: [PreallocatedSlot; 2] = [
    PreallocatedSlot::new(0, 1 << 20, 0, u64::MAX - (1 << 21)),
    PreallocatedSlot::new(1 << 20, 1 << 20, 7, u64::MAX),
];

/// The same, as a peer may write it.
const SPACED_SLOTS: &str = r#"[ {"slot_id":0,"\u006fffset":0,"addr":18446744073707454463,"size":1048576} ,
    {"offset":1048576,"size":1048576,"slot_id":7,"addr":18446744073709551615,"node":{"x":[null]}}]"#;

fn location() -> Location<'static> {
    Location::new("h:1", 1 << 63, 512)
}

fn staged() -> Staged<'static> {
    Staged::new(
        "é",
        8,
        object(r#"{"x":[]}"#),
        location(),
        object(r#"{"cfg":NaN}"#),
    )
}

fn text(message: impl IntoVec) -> String {
    String::from_utf8(message.into_vec()).unwrap()
}

#[test]
fn every_type_is_written_with_its_keys_in_python_order() {
    let ready = Ready::new("r", Object::EMPTY, 512, object(r#"{"seed":1}"#));
    let slots = PreallocatedSlots::from(&SLOTS);
    for (written, expected) in [
        (
            text(Alloc::new("r", 8, "encoder")),
            r#"{"msg_type":"transfer_alloc","request_id":"r","data_size":8,"source_role":"encoder"}"#,
        ),
        (
            text(Allocated::new("r", location(), 1 << 20)),
            r#"{"msg_type":"transfer_allocated","request_id":"r","session_id":"h:1","pool_ptr":9223372036854775808,"slot_offset":512,"slot_size":1048576}"#,
        ),
        (
            text(Done::finished("r")),
            r#"{"msg_type":"transfer_done","request_id":"r","error":null}"#,
        ),
        (
            text(Done::failed("r", "out of \"memory\"\n")),
            r#"{"msg_type":"transfer_done","request_id":"r","error":"out of \"memory\"\n"}"#,
        ),
        (
            text(Done::staged(staged())),
            r#"{"msg_type":"transfer_done","request_id":"\u00e9","staged_for_decoder":true,"session_id":"h:1","pool_ptr":9223372036854775808,"slot_offset":512,"data_size":8,"manifest":{"x":[]},"scalar_fields":{"cfg":NaN}}"#,
        ),
        (
            // The request is the message's, not that of the output in it.
            text(Done::new(
                "r",
                Outcome::Staged(staged().with_staged_for_decoder(false)),
            )),
            r#"{"msg_type":"transfer_done","request_id":"r","staged_for_decoder":true,"session_id":"h:1","pool_ptr":9223372036854775808,"slot_offset":512,"data_size":8,"manifest":{"x":[]},"scalar_fields":{"cfg":NaN}}"#,
        ),
        (
            text(Push::new("r", "h:2", u64::MAX, 0)),
            r#"{"msg_type":"transfer_push","request_id":"r","dest_session_id":"h:2","dest_addr":18446744073709551615,"transfer_size":0}"#,
        ),
        (
            text(Pushed::new("\u{7f}😀")),
            r#"{"msg_type":"transfer_pushed","request_id":"\u007f\ud83d\ude00"}"#,
        ),
        (
            text(ready),
            r#"{"msg_type":"transfer_ready","request_id":"r","manifest":{},"slot_offset":512,"scalar_fields":{"seed":1}}"#,
        ),
        (
            text(ready.with_preallocated_slot(7)),
            r#"{"msg_type":"transfer_ready","request_id":"r","manifest":{},"slot_offset":512,"scalar_fields":{"seed":1,"_prealloc_slot_id":7}}"#,
        ),
        (
            text(Ready::new("r", Object::EMPTY, 0, Object::EMPTY).with_preallocated_slot(0)),
            r#"{"msg_type":"transfer_ready","request_id":"r","manifest":{},"slot_offset":0,"scalar_fields":{"_prealloc_slot_id":0}}"#,
        ),
        (
            text(Register::new(
                Role::Decoder,
                "h:1",
                1,
                2,
                "tcp://h:3",
                slots,
            )),
            r#"{"msg_type":"transfer_register","role":"decoder","session_id":"h:1","pool_ptr":1,"pool_size":2,"work_endpoint":"tcp://h:3","preallocated_slots":[{"offset":0,"size":1048576,"slot_id":0,"addr":18446744073707454463},{"offset":1048576,"size":1048576,"slot_id":7,"addr":18446744073709551615}]}"#,
        ),
        (
            text(Register::new(
                Role::Encoder,
                "",
                0,
                0,
                "",
                PreallocatedSlots::EMPTY,
            )),
            r#"{"msg_type":"transfer_register","role":"encoder","session_id":"","pool_ptr":0,"pool_size":0,"work_endpoint":"","preallocated_slots":[]}"#,
        ),
        (
            text(RegisterAck::new()),
            r#"{"msg_type":"transfer_register_ack"}"#,
        ),
        (
            text(staged()),
            r#"{"msg_type":"transfer_staged","request_id":"\u00e9","data_size":8,"manifest":{"x":[]},"session_id":"h:1","pool_ptr":9223372036854775808,"slot_offset":512,"scalar_fields":{"cfg":NaN}}"#,
        ),
        (
            text(Staged::new("r", 8, Object::EMPTY, location(), None)),
            r#"{"msg_type":"transfer_staged","request_id":"r","data_size":8,"manifest":{},"session_id":"h:1","pool_ptr":9223372036854775808,"slot_offset":512}"#,
        ),
        (
            text(staged().with_staged_for_decoder(false)),
            r#"{"msg_type":"transfer_staged","request_id":"\u00e9","staged_for_decoder":false,"session_id":"h:1","pool_ptr":9223372036854775808,"slot_offset":512,"data_size":8,"manifest":{"x":[]},"scalar_fields":{"cfg":NaN}}"#,
        ),
        (
            text(Unknown::new("transfer_x", object(r#"{"a":1,"msg_type":0,"b":2}"#)).unwrap()),
            r#"{"msg_type":"transfer_x","a":1,"b":2}"#,
        ),
        (
            String::from_utf8(Abort::new("r", "t", "late").to_vec()).unwrap(),
            r#"{"msg_type":"transfer_abort","request_id":"r","transfer_id":"t","reason":"late"}"#,
        ),
    ] {
        assert_eq!(written, expected);
        let read = Control::decode(written.as_bytes()).unwrap();
        assert_eq!(text(read), expected);
    }
    // Each type that has a name has a struct.
    for name in ["transfer_alloc", "transfer_register_ack", "transfer_staged"] {
        assert!(Unknown::new(name, Object::EMPTY).is_none(), "{name}");
    }
}

#[test]
fn keys_of_newer_peers_are_read_and_written_after_the_others() {
    let payload = br#"{"node":"n", "msg_type":"transfer_push","request_id":"r","edge_id":"a->b","dest_session_id":"h","dest_addr":1,"x":1,"transfer_size":2,"x":[ 2 ],"\u00e9":{"y":null},"scalar_fields":NaN}"#;
    let push = Control::decode(payload).unwrap();
    assert!(push.extra("edge_id").unwrap().as_str().unwrap() == "a->b");
    assert_eq!(push.extra("x").unwrap().raw(), "[ 2 ]");
    assert_eq!(push.extra("é").unwrap().raw(), r#"{"y":null}"#);
    for key in ["msg_type", "request_id", "dest_addr", "absent"] {
        assert!(push.extra(key).is_none(), "{key}");
    }
    let expected = r#"{"msg_type":"transfer_push","request_id":"r","dest_session_id":"h","dest_addr":1,"transfer_size":2,"node":"n","edge_id":"a->b","x":1,"x":[ 2 ],"\u00e9":{"y":null},"scalar_fields":NaN}"#;
    assert_eq!(text(push), expected);
    assert!(!push.extras().is_empty() && Extras::NONE.is_empty());

    // The caller's own; what the schema knows is not written twice.
    let mut pushed = Pushed::new("r");
    pushed.extras = object(r#"{"request_id":"other","n":1,"msg_type":0}"#).into();
    let expected = r#"{"msg_type":"transfer_pushed","request_id":"r","n":1}"#;
    assert_eq!(text(pushed), expected);
    // And those of another message lose what is known here.
    let Control::Push(push) = push else {
        panic!("a push")
    };
    let mut alloc = Alloc::new("r", 1, "");
    alloc.extras = push.extras;
    assert!(text(alloc).ends_with(r#","source_role":"","node":"n","edge_id":"a->b","x":1,"x":[ 2 ],"\u00e9":{"y":null},"scalar_fields":NaN}"#));
}

#[test]
fn a_finished_request_is_of_the_layout_that_its_error_and_its_staging_say() {
    let at = r#""session_id":"s","pool_ptr":1,"slot_offset":2,"data_size":3,"manifest":{}"#;
    let done = |rest: &str| format!(r#"{{"msg_type":"transfer_done","request_id":"r"{rest}}}"#);
    // (what follows the request, its outcome, what is written after the request)
    let both = format!(r#","staged_for_decoder":true,{at}"#);
    let plain = r#","error":null"#;
    for (rest, outcome, written) in [
        (String::new(), "finished", plain.to_string()),
        (plain.into(), "finished", plain.into()),
        (r#","error":"""#.into(), "failed", r#","error":"""#.into()),
        (r#","error":"x""#.into(), "failed", r#","error":"x""#.into()),
        (both.clone(), "staged", both.clone()),
        (
            format!(r#","scalar_fields":{{}}{both}"#),
            "staged",
            format!(r#"{both},"scalar_fields":{{}}"#),
        ),
        (format!("{plain}{both}"), "staged", format!("{both}{plain}")),
        (
            format!(r#","error":"x"{both}"#),
            "failed",
            format!(r#","error":"x"{both}"#),
        ),
        (
            format!(r#"{both},"error":"x""#),
            "failed",
            format!(r#","error":"x"{both}"#),
        ),
        (
            r#","staged_for_decoder":false"#.into(),
            "finished",
            r#","error":null,"staged_for_decoder":false"#.into(),
        ),
        (format!(",{at}"), "finished", format!("{plain},{at}")),
    ] {
        let payload = done(&rest);
        let control = Control::decode(payload.as_bytes()).unwrap();
        let Control::Done(read) = control else {
            panic!("{payload}")
        };
        let actual = match read.outcome {
            Outcome::Failed(_) => "failed",
            Outcome::Finished => "finished",
            Outcome::Staged(staged) => {
                assert_eq!(staged.location, Location::new("s", 1, 2));
                assert_eq!((staged.data_size, staged.location.address()), (3, Some(3)));
                "staged"
            }
            _ => "",
        };
        assert_eq!(actual, outcome, "{rest}");
        assert_eq!(text(control), done(&written), "{rest}");
    }
}

#[test]
fn optional_keys_have_python_defaults() {
    let read = |payload: &'static str| Control::decode(payload.as_bytes()).unwrap();
    let Control::Alloc(alloc) =
        read(r#"{"msg_type":"transfer_alloc","request_id":"r","data_size":0}"#)
    else {
        panic!("alloc")
    };
    assert!(alloc.source_role == "");
    let Control::Register(register) = read(
        r#"{"msg_type":"transfer_register","role":"DECODER","session_id":"s","pool_ptr":0,"pool_size":0}"#,
    ) else {
        panic!("register")
    };
    assert!(register.work_endpoint == "" && register.preallocated_slots.is_empty());
    assert_eq!(Role::from_text(register.role), Some(Role::Decoder));
    let Control::Ready(ready) =
        read(r#"{"msg_type":"transfer_ready","request_id":"r","manifest":{},"slot_offset":0}"#)
    else {
        panic!("ready")
    };
    assert!(ready.scalar_fields.is_empty() && ready.preallocated_slot.is_none());
}

#[test]
fn the_slot_of_the_fast_path_is_read_from_the_scalars_and_set_as_python_sets_it() {
    // (scalars, the slot read, what is written with slot 5)
    for (scalars, slot, written) in [
        ("{}", None, r#"{"_prealloc_slot_id":5}"#),
        (
            r#"{"_prealloc_slot_id":3}"#,
            Some(3),
            r#"{"_prealloc_slot_id":5}"#,
        ),
        (
            r#"{"_prealloc_slot_id":null,"b":NaN}"#,
            None,
            r#"{"_prealloc_slot_id":5,"b":NaN}"#,
        ),
        (
            r#"{"a":[ 1],"\u005fprealloc_slot_id":18446744073709551615,"b":1}"#,
            Some(u64::MAX),
            r#"{"a":[ 1],"_prealloc_slot_id":5,"b":1}"#,
        ),
        (
            r#"{"_prealloc_slot_id":1,"_prealloc_slot_id":2}"#,
            Some(2),
            r#"{"_prealloc_slot_id":5,"_prealloc_slot_id":5}"#,
        ),
        (
            r#"{"_prealloc_slot_id":1,"_prealloc_slot_id":"x"}"#,
            None,
            r#"{"_prealloc_slot_id":5,"_prealloc_slot_id":5}"#,
        ),
    ] {
        let head = r#"{"msg_type":"transfer_ready","request_id":"r","manifest":{},"slot_offset":1,"scalar_fields":"#;
        let payload = format!("{head}{scalars}}}");
        let Control::Ready(ready) = Control::decode(payload.as_bytes()).unwrap() else {
            panic!("{payload}")
        };
        assert_eq!(ready.preallocated_slot, slot, "{scalars}");
        assert_eq!(ready.scalar_fields.as_value().raw(), scalars);
        let set = text(ready.with_preallocated_slot(5));
        assert_eq!(set, format!("{head}{written}}}"), "{scalars}");
    }
}

#[test]
fn received_slots_and_the_callers_are_the_same() {
    let payload = format!(
        r#"{{"msg_type":"transfer_register","role":"decoder","session_id":"s","pool_ptr":0,"pool_size":0,"work_endpoint":"","preallocated_slots":{SPACED_SLOTS}}}"#
    );
    let control = Control::decode(payload.as_bytes()).unwrap();
    let Control::Register(register) = control else {
        panic!("{payload}")
    };
    let received = register.preallocated_slots;
    assert_eq!(received, PreallocatedSlots::from(&SLOTS));
    assert_ne!(received, PreallocatedSlots::from(&SLOTS[..1]));
    assert_ne!(received, PreallocatedSlots::EMPTY);
    assert_eq!((received.len(), received.iter().len()), (2, 2));
    let mut slots = received.into_iter();
    assert_eq!((slots.next(), slots.len()), (Some(SLOTS[0]), 1));
    assert_eq!((slots.next(), slots.len()), (Some(SLOTS[1]), 0));
    assert_eq!((slots.next(), slots.next()), (None, None));
    assert_eq!(format!("{received:?}"), format!("{SLOTS:?}"));
    // Written as it stands.
    assert_eq!(text(control), payload);
}

#[test]
fn an_abort_is_read_from_an_unknown_message_that_is_one() {
    let abort = |payload: &'static str| match Control::decode(payload.as_bytes()).unwrap() {
        Control::Unknown(unknown) => unknown.abort(),
        other => panic!("{other:?}"),
    };
    let whole = abort(
        r#"{"reason":"x","msg_type":"transfer_\u0061bort","request_id":"\ud800","transfer_id":"t"}"#,
    );
    let whole = whole.unwrap();
    assert!(whole.transfer_id == "t" && whole.reason == "x");
    assert_eq!(whole.request_id.raw(), r"\ud800");
    let least = abort(r#"{"msg_type":"transfer_abort","request_id":"r","reason":7}"#);
    assert_eq!(least, Some(Abort::new("r", "", "")));
    for payload in [
        r#"{"msg_type":"transfer_abort"}"#,
        r#"{"msg_type":"transfer_abort","request_id":1}"#,
        r#"{"msg_type":"transfer_aborted","request_id":"r"}"#,
    ] {
        assert_eq!(abort(payload), None, "{payload}");
    }
}

#[test]
fn the_request_is_known_of_all_but_registrations() {
    let id = |payload: &'static str| {
        let control = Control::decode(payload.as_bytes()).unwrap();
        control.request_id().map(|id| id.to_string())
    };
    let some = Some("r".to_string());
    assert_eq!(
        id(r#"{"msg_type":"transfer_pushed","request_id":"r"}"#),
        some
    );
    assert_eq!(id(r#"{"msg_type":"","request_id":"r"}"#), some);
    assert_eq!(
        id(r#"{"msg_type":"transfer_register_ack","request_id":"r"}"#),
        some
    );
    assert_eq!(id(r#"{"msg_type":"","request_id":1}"#), None);
    let register = r#"{"msg_type":"transfer_register","role":"","session_id":"","pool_ptr":0,"pool_size":0,"request_id":"r"}"#;
    assert_eq!(id(register), None);
}

#[test]
fn an_address_that_is_no_number_is_none() {
    assert_eq!(Location::new("s", u64::MAX, 1).address(), None);
    assert_eq!(Location::new("s", u64::MAX, 0).address(), Some(u64::MAX));
}

#[test]
fn values_know_where_in_the_payload_they_stand() {
    let payload = br#"{"msg_type":"transfer_pushed","request_id":"\ud800","x":[7]}"#;
    let control = Control::decode(payload).unwrap();
    let id = control.request_id().unwrap();
    assert_eq!(id.decoded_len().unwrap_err().offset(), 43);
    assert_eq!(control.extra("x").map(|x: Value<'_>| x.offset()), Some(56));
}
