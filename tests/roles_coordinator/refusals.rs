//! What is no message, no registration and no id.

use std::time::Duration;

use tensorwire::json::{Object, Value};
use tensorwire::message::{NO_TENSORS, Scalar, encode_to_vec};
use tensorwire::transfer::coordinator::{ProtocolError, RequestError, Settings};
use tensorwire::transfer::message::{Location, PreallocatedSlot, Push, Register, Staged};
use tensorwire::transfer::{Control, RequestId, Role};
use tensorwire::{Limits, Options};

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
        (register("painter", POOL, "n"), ProtocolError::UnknownRole),
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

#[test]
fn no_request_is_named_as_the_marker_of_control_messages() {
    // To a worker, this work would be a message of ours.
    let mut head = head(1, Settings::new());
    let work = Control::from(Push::new("another", "elsewhere", 0, 8)).to_vec();
    let id = RequestId::from("__transfer__");
    let refused = head.handle_request(&id, work, Duration::ZERO);
    assert_eq!(refused, Err(RequestError::Reserved));
    is_whole(&head);
    play(
        &mut head,
        "request __transfer__1 | encoder0 work __transfer__1",
    );
}

#[test]
fn an_id_leaves_room_for_the_numbers_of_its_attempts() {
    for (retries, limit) in [(0, 1024), (1, 1013)] {
        let mut head = head(1, Settings::new().with_retries(retries));
        let long = "x".repeat(limit + 1);
        let mut request = |id: &str| head.handle_request(&id.into(), Vec::new(), Duration::ZERO);
        let too_long = RequestError::IdTooLong {
            len: limit + 1,
            limit,
        };
        assert_eq!(request(&long), Err(too_long));
        assert_eq!(request(&long[1..]), Ok(()));
    }
}

#[test]
fn a_receiver_gives_away_its_own_pool_alone() {
    let mut head = head(2, Settings::new());
    play(
        &mut head,
        "denoiser register 0 n0 | =registered 0
         denoiser register 1 denoiser-session | =registered 0
         request r1 | encoder0 work r1
         request r2 | encoder1 work r2
         encoder staged r1 8 | denoiser0 alloc r1 8 from encoder
         denoiser allocated r1 0 8 | !slot in another pool than the denoiser registered
         encoder staged r2 8 | denoiser1 alloc r2 8 from encoder
         denoiser allocated r2 0 8 | encoder1 push r2 8 1000 to denoiser-session",
    );
}

#[test]
fn those_that_are_over_and_not_answered_are_bounded_too() {
    let mut head = head(1, Settings::new().with_max_requests(4));
    for index in 0..100 {
        let id = RequestId::from(&*format!("r{index}"));
        let taken = head.handle_request(&id, b"work".to_vec(), Duration::ZERO);
        assert_eq!(taken.is_ok(), index < 8, "{index}");
        assert_eq!(head.cancel(&id, Duration::ZERO), index < 8);
    }
    assert_eq!(head.statistics().active, 0);
    while head.poll_event().is_some() {}
    sent(&mut head, &mut Vec::new());
    head.handle_timeout(Duration::from_secs(600));
    is_whole(&head);
    play(&mut head, "request r1 | encoder0 work r1");
}

#[test]
fn larger_messages_are_read_where_that_is_allowed() {
    let image = "A".repeat(2 << 20);
    let scalars = format!(r#"{{"image_path":["{image}"]}}"#);
    let scalars = Value::parse(scalars.as_bytes()).unwrap();
    let scalars = scalars.as_object().unwrap();
    let manifest = Value::parse(b"{}").unwrap().as_object().unwrap();
    let staged = Staged::new("r1", 8, manifest, Location::new("e", 0, 0), scalars);
    let frames = [b"__transfer__".to_vec(), Control::from(staged).to_vec()];
    let larger = Options::new().with_limits(Limits::new().with_metadata_bytes(4 << 20));
    for (options, is_read) in [(Options::new(), false), (larger, true)] {
        let mut head = head(1, Settings::new().with_options(options));
        play(&mut head, "request r1 | encoder0 work r1");
        let result = head.handle_frames(Role::Encoder, &frames, Duration::ZERO);
        assert_eq!(result.is_ok(), is_read, "{result:?}");
    }
}

/// (tensor message of the encoder, what comes of it)
const RESULTS: &[(&str, &str)] = &[
    (
        r#"{"tensor_descriptors":[{"field_name":"x","shape":[1],"dtype":"int3","list_index":-1}],"scalar_fields":{"request_id":"r1"}}"#,
        "encoder error: invalid result: ",
    ),
    (
        r#"{"tensor_descriptors":3,"scalar_fields":{"seed":NaN,"request_id":"r1"}}"#,
        "encoder error: invalid result: ",
    ),
    (
        r#"{"tensor_descriptors":[],"scalar_fields":{"request_id":"r1","error":["a",1]}}"#,
        "encoder error: [\"a\",1]",
    ),
    (
        r#"{"tensor_descriptors":[],"scalar_fields":{"request_id":"r1","_disagg_error":null,"error":7}}"#,
        "encoder error: 7",
    ),
    (
        r#"{"tensor_descriptors":[],"scalar_fields":{"request_id":"r1","error":0,"_disagg_error":{}}}"#,
        "",
    ),
    (
        r#"{"tensor_descriptors":3,"scalar_fields":{"request_id":"r2"}}"#,
        "",
    ),
    (
        r#"{"tensor_descriptors":3,"scalar_fields":{"request_id":7}}"#,
        "",
    ),
    (r#"{"tensor_descriptors":3,"#, ""),
];

#[test]
fn a_result_that_is_none_ends_its_request_as_it_does_with_python() {
    for (metadata, expected) in RESULTS {
        let mut head = head(1, Settings::new());
        play(&mut head, "request r1 | encoder0 work r1");
        let result = head.handle_frames(Role::Encoder, &[metadata.as_bytes()], Duration::ZERO);
        let event = head.poll_event().map(|event| told(&event));
        let event = event.unwrap_or_default();
        if expected.is_empty() {
            assert!(result.is_err() && event.is_empty(), "{metadata}");
        } else {
            assert!(result.is_ok(), "{metadata}: {result:?}");
            let expected = format!("=failed r1: {expected}");
            assert!(event.starts_with(&expected), "{event}");
            is_whole(&head);
        }
    }
}
