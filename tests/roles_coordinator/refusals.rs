//! What is no message, no registration and no id.

use std::time::Duration;

use tensorwire::json::{Object, Value};
use tensorwire::message::{NO_TENSORS, Scalar, encode_to_vec};
use tensorwire::transfer::coordinator::{ProtocolError, RequestError, Settings};
use tensorwire::transfer::message::{Location, PreallocatedSlot, Register, Staged};
use tensorwire::transfer::{Control, RequestId, Role};

use super::script::{POOL, POOL_LEN, head, is_whole, play, sent, told};

#[test]
fn a_registration_is_taken_whole_or_not_at_all() {
    let mut head = head(1, Settings::new().with_max_slots(3));
    play(
        &mut head,
        r#"
        denoiser register 0 n 0+8 | =registered 1
        denoiser register 1 n 0+8 | !no denoiser takes work at this endpoint
        denoiser register 0 n 0+8 4+8 | !the slots at 0 and 4 overlap
        denoiser register 0 n 0+8 8+993 | !slot of 993 bytes at 8 reaches past its pool of 1000 bytes
        denoiser register 0 n 0+1 1+1 2+1 3+1 | !4 slots where 3 are kept
        "#,
    );
    let register = |role: &'static str, addr, session: &str| {
        let slots = [PreallocatedSlot::new(0, 8, 0, addr)];
        let mut message = Register::new(
            Role::Denoiser,
            session,
            POOL,
            POOL_LEN,
            "denoiser0",
            &slots[..],
        );
        message.role = role.into();
        Control::Register(message).to_vec()
    };
    let long = "s".repeat(RequestId::MAX_LEN + 1);
    for (payload, error) in [
        (
            register("decoder", POOL, "n"),
            ProtocolError::RoleMismatch {
                expected: Role::Denoiser,
                found: Role::Decoder,
            },
        ),
        (register("painter", POOL, "n"), ProtocolError::RoleUnknown),
        (
            register("denoiser", POOL + 1, "n"),
            ProtocolError::SlotAddress {
                addr: POOL + 1,
                expected: POOL,
            },
        ),
        (
            register("denoiser", POOL, &long),
            ProtocolError::TextTooLong {
                len: RequestId::MAX_LEN + 1,
                limit: RequestId::MAX_LEN,
            },
        ),
    ] {
        let control = Control::decode(&payload).unwrap();
        let before = format!("{head:?}");
        let result = head.handle_control(Role::Denoiser, &control, Duration::ZERO);
        assert_eq!(result, Err(error));
        assert_eq!(format!("{head:?}"), before);
    }
    // What was there before still is.
    assert_eq!(head.role_statistics(Role::Denoiser).unwrap().free_slots, 1);
    play(
        &mut head,
        "request r1 | encoder0 work r1
         encoder staged r1 8 | encoder0 push r1 8 1000 to n",
    );
}

#[test]
fn messages_for_workers_and_no_messages_are_refused() {
    let mut head = head(1, Settings::new());
    let id = RequestId::from("r1");
    head.handle_request(&id, b"work".to_vec(), Duration::ZERO)
        .unwrap();
    sent(&mut head, &mut Vec::new());
    let before = format!("{head:?}");
    let control = |json: &str| vec![b"__transfer__".to_vec(), json.as_bytes().to_vec()];
    let tensors =
        |scalars: &[(&str, Scalar<'_>)]| vec![encode_to_vec(NO_TENSORS, &scalars).unwrap()];
    for (frames, error) in [
        (
            control(r#"{"msg_type":"transfer_alloc","request_id":"r1","data_size":1}"#),
            "a message from the head node, not to it",
        ),
        (
            control(r#"{"msg_type":"transfer_register_ack"}"#),
            "a message from the head node, not to it",
        ),
        (
            control(r#"{"msg_type":"transfer_hello","request_id":"r1"}"#),
            "unknown message type",
        ),
        (
            vec![b"r1".to_vec(), b"\x80\x04".to_vec()],
            "neither a control message nor a tensor message",
        ),
        (Vec::new(), "neither a control message nor a tensor message"),
        (tensors(&[]), "a tensor message without a request_id"),
        (
            tensors(&[("request_id", Scalar::from(1))]),
            "a tensor message without a request_id",
        ),
        (
            tensors(&[("request_id", "r1".into())]),
            "a tensor message from the encoder without an error in it",
        ),
        (
            tensors(&[("request_id", "r1".into()), ("error", "".into())]),
            "a tensor message from the encoder without an error in it",
        ),
        (
            tensors(&[("request_id", "r2".into()), ("_disagg_error", "x".into())]),
            "unknown request",
        ),
    ] {
        let result = head.handle_frames(Role::Encoder, &frames, Duration::ZERO);
        assert_eq!(result.unwrap_err().to_string(), error);
        assert_eq!(format!("{head:?}"), before);
    }
    let json = control(r#"{"msg_type":"transfer_done","request_id":"r1""#);
    assert!(
        head.handle_frames(Role::Encoder, &json, Duration::ZERO)
            .is_err()
    );
    let result = head.handle_reply(Role::PromptEncoder, &id, None, Duration::ZERO);
    let role = Role::PromptEncoder;
    assert_eq!(result, Err(ProtocolError::RoleNotHere { role }));
    assert_eq!(format!("{head:?}"), before);
    let error = tensors(&[
        ("request_id", "r1".into()),
        ("_disagg_error", "no prompt".into()),
    ]);
    head.handle_frames(Role::Encoder, &error, Duration::ZERO)
        .unwrap();
    assert_eq!(
        told(&head.poll_event().unwrap()),
        "=failed r1: encoder error: no prompt"
    );
}

#[test]
fn ids_that_no_frame_can_carry_are_refused() {
    let mut head = head(1, Settings::new());
    let lone = Value::parse(br#""\ud800""#).unwrap().as_str().unwrap();
    let long = "r".repeat(RequestId::MAX_LEN + 1);
    for (id, error) in [
        (RequestId::from(""), RequestError::NoText),
        (RequestId::from(lone), RequestError::NoText),
        (
            RequestId::from(long.as_str()),
            RequestError::IdTooLong {
                len: RequestId::MAX_LEN + 1,
                limit: RequestId::MAX_LEN,
            },
        ),
    ] {
        let result = head.handle_request(&id, Vec::new(), Duration::ZERO);
        assert_eq!(result, Err(error));
        is_whole(&head);
    }
    // Other texts are carried as they are, and written into JSON as Python does.
    let id = RequestId::from("größe 1");
    head.handle_request(&id, Vec::new(), Duration::ZERO)
        .unwrap();
    let mut buffer = Vec::new();
    let work = head.poll_transmit(&mut buffer).unwrap();
    assert_eq!(work.frames()[0], "größe 1".as_bytes());
    let staged = Staged::new("größe 1", 8, Object::EMPTY, Location::new("s", 0, 0), None);
    head.handle_control(Role::Encoder, &Control::Staged(staged), Duration::ZERO)
        .unwrap();
    let alloc = head.poll_transmit(&mut buffer).unwrap();
    let expected = r#"{"msg_type":"transfer_alloc","request_id":"gr\u00f6\u00dfe 1","data_size":8,"source_role":"encoder"}"#;
    assert_eq!(alloc.frames(), [b"__transfer__", expected.as_bytes()]);
}
