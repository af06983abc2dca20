//! Control messages, read and written.

use super::{common, none, on_a_small_stack, show};
use tensorwire::Options;
use tensorwire::error::DecodeErrorKind;
use tensorwire::json::Object;
use tensorwire::transfer::message::{
    Abort, Alloc, Allocated, Done, Location, Outcome, PreallocatedSlot, Push, Pushed, Ready,
    Register, RegisterAck, Staged, Unknown,
};
use tensorwire::transfer::{Control, Role};

/// One of each type and layout, made and written without memory.
fn written(which: usize, buffer: &mut [u8]) -> Option<&mut [u8]> {
    let slots = [PreallocatedSlot::new(0, 1, 2, u64::MAX); 3];
    let at = Location::new("session", u64::MAX, 512);
    let staged = Staged::new("caf\u{e9}", 1 << 20, Object::EMPTY, at, Object::EMPTY);
    let control = match which {
        0 => Alloc::new("r", 1, "encoder").into(),
        1 => Allocated::new("r", at, 1 << 20).into(),
        2 => Done::failed("r", "\u{1f600}").into(),
        3 => Done::finished("r").into(),
        4 => Done::staged(staged).into(),
        5 => Push::new("r", "session", u64::MAX, 1).into(),
        6 => Pushed::new("r").into(),
        7 => Ready::new("r", Object::EMPTY, 0, Object::EMPTY).into(),
        8 => {
            let ready = Ready::new("r", Object::EMPTY, 0, Object::EMPTY);
            ready.with_preallocated_slot(7).into()
        }
        9 => Register::new(Role::Decoder, "session", 1, 2, "tcp://h:1", &slots).into(),
        10 => RegisterAck::new().into(),
        11 => staged.into(),
        12 => staged.with_staged_for_decoder(false).into(),
        13 => Unknown::new("transfer_x", Object::EMPTY)?.into(),
        14 => return Abort::new("r", "t", "late").encode_into(buffer).ok(),
        _ => return None,
    };
    let control: Control<'_> = control;
    assert!(control.encode_into(&mut []).is_err());
    let length = control.encoded_len();
    let payload = control.encode_into(buffer).ok()?;
    assert_eq!(payload.len(), length);
    Some(payload)
}

/// Reads whatever there is in a message.
fn read(control: &Control<'_>) {
    let id = control.request_id();
    assert!(id.is_none_or(|id| id.code_points().count() <= 512));
    assert!(control.extra("no such key").is_none());
    assert_eq!(
        control.extras().is_empty(),
        control.extras().iter().count() == 0
    );
    match control {
        Control::Done(done) => {
            if let Outcome::Staged(staged) = done.outcome {
                let _ = staged.location.address();
            }
        }
        Control::Register(register) => {
            let slots = register.preallocated_slots;
            assert_eq!(slots.iter().count(), slots.len());
            assert!(Role::from_text(register.role).is_some());
        }
        Control::Unknown(unknown) => drop(unknown.abort()),
        _ => {}
    }
}

#[test]
fn control_messages_are_made_written_and_read_without_allocating() {
    let mut buffer = [0; 512];
    let mut count = 0;
    while let Some(payload) = none(|| written(count, &mut buffer).map(|payload| payload.len())) {
        none(|| {
            let payload = &buffer[..payload];
            let control = Control::decode(payload).unwrap();
            read(&control);
            let mut again = [0; 512];
            assert_eq!(control.encode_into(&mut again).unwrap(), payload);
        });
        count += 1;
    }
    assert_eq!(count, 15);
}

#[test]
fn no_recorded_control_message_makes_anything_allocate() {
    let mut buffer = vec![0; 1 << 16];
    let strict = Options::new().with_strict_json(true);
    for line in common::lines("transfer.jsonl") {
        let frames = common::frames(&line);
        none(|| {
            let control = Control::from_frames(&frames).unwrap();
            read(&control);
            assert_eq!(control.encode_into(&mut buffer).unwrap(), frames[1]);
            let _ = Control::from_frames_with(&frames, &strict);
        });
        // Cut short, it is refused just as quietly.
        for length in (0..frames[1].len()).step_by(7) {
            none(|| {
                let error = Control::decode(&frames[1][..length]).unwrap_err();
                assert!(show(error) > 0);
            });
        }
    }
}

#[test]
fn refusing_a_control_message_and_saying_why_does_not_allocate() {
    let push = |rest: &str| {
        format!(r#"{{"msg_type":"transfer_push","request_id":"r","dest_session_id":"s",{rest}}}"#)
    };
    let faults = [
        push(r#""dest_addr":18446744073709551616"#),
        push(r#""dest_addr":-1"#),
        push(r#""dest_addr":1,"\u0064est_addr":1"#),
        push(r#""dest_addr":1"#),
        push(r#""dest_addr":null"#),
        push(r#""x":NaN"#),
        push(r#""x":tru"#),
        "[]".into(),
        "{}".into(),
        String::new(),
    ];
    for fault in &faults {
        none(|| {
            let error = Control::decode(fault.as_bytes()).unwrap_err();
            assert!(show(error) > 0 && show(error.kind()) > 0);
        });
    }
    none(|| {
        for frames in [&[][..], &[&b"__transfer__"[..]], &[b"x", b"{}"]] {
            assert!(show(Control::from_frames(frames).unwrap_err()) > 0);
        }
    });
}

#[test]
fn control_messages_fit_on_a_stack_of_32_kib() {
    let head = r#"{"msg_type":"transfer_ready","request_id":"r","slot_offset":1,"manifest":"#;
    let deep = format!("{head}{}", r#"{"a":["#.repeat(100_000));
    let slots = r#"{"offset":0,"size":1,"slot_id":2,"addr":3},"#.repeat(20_000);
    let slots = format!(
        r#"{{"msg_type":"transfer_register","role":"decoder","session_id":"","pool_ptr":0,"pool_size":0,"preallocated_slots":[{}]}}"#,
        slots.trim_end_matches(',')
    );
    on_a_small_stack(move || {
        let error = Control::decode(deep.as_bytes()).unwrap_err();
        let limit = 128;
        assert_eq!(error.kind(), DecodeErrorKind::DepthLimit { limit });
        read(&Control::decode(slots.as_bytes()).unwrap());
        let mut buffer = [0; 512];
        for which in 0..15 {
            let payload = written(which, &mut buffer).unwrap();
            read(&Control::decode(payload).unwrap());
        }
    });
}
