//! What is no message is refused, with its kind and where it goes wrong.

use super::schema::refusal;
use tensorwire::error::{DecodeErrorKind as Kind, SchemaKey, SyntaxError};
use tensorwire::json::ValueType;
use tensorwire::message::CONTROL_MARKER;
use tensorwire::transfer::Control;
use tensorwire::{Limits, Options};

/// (name, payload, kind, offset)
const MALFORMED: &[(&str, &[u8], Kind, usize)] = &[
    ("empty", b"", Kind::Syntax(SyntaxError::UnexpectedEnd), 0),
    (
        "an array",
        b" []",
        Kind::WrongType {
            expected: ValueType::Object,
            actual: ValueType::Array,
        },
        1,
    ),
    (
        "a string",
        br#""transfer_pushed""#,
        Kind::WrongType {
            expected: ValueType::Object,
            actual: ValueType::String,
        },
        0,
    ),
    ("a number", b"NaN", Kind::WrongType { expected: ValueType::Object, actual: ValueType::Number }, 0),
    ("no members", b"{}", Kind::MissingKey(SchemaKey::MsgType), 0),
    (
        "data behind it",
        br#"{"msg_type":"transfer_pushed","request_id":"r"} {}"#,
        Kind::TrailingData,
        48,
    ),
    (
        "a byte behind it",
        b"{\"msg_type\":\"transfer_pushed\",\"request_id\":\"r\"}\0",
        Kind::TrailingData,
        47,
    ),
    (
        "a byte order mark",
        b"\xef\xbb\xbf{}",
        Kind::Syntax(SyntaxError::UnexpectedByte { found: 0xef }),
        0,
    ),
    (
        "UTF-16",
        b"{\0\"\0m\0",
        Kind::Syntax(SyntaxError::UnexpectedByte { found: 0 }),
        1,
    ),
    (
        "a surrogate in raw bytes",
        b"{\"msg_type\":\"\xed\xa0\x80\"}",
        Kind::InvalidUtf8,
        13,
    ),
    (
        "a comma before the end",
        br#"{"msg_type":"transfer_pushed","request_id":"r",}"#,
        Kind::Syntax(SyntaxError::UnexpectedByte { found: b'}' }),
        47,
    ),
    (
        "no colon",
        br#"{"msg_type" "transfer_pushed"}"#,
        Kind::Syntax(SyntaxError::UnexpectedByte { found: b'"' }),
        12,
    ),
    (
        "a raw line break in the request",
        b"{\"msg_type\":\"transfer_pushed\",\"request_id\":\"\n\"}",
        Kind::Syntax(SyntaxError::ControlCharacter),
        44,
    ),
    (
        "an escape that is none in the type",
        br#"{"msg_type":"transfer_\pushed"}"#,
        Kind::Syntax(SyntaxError::InvalidEscape),
        22,
    ),
    (
        "an address with a leading zero",
        br#"{"msg_type":"transfer_push","dest_addr":01}"#,
        Kind::Syntax(SyntaxError::InvalidNumber),
        41,
    ),
    (
        "a fault in what no schema knows",
        br#"{"msg_type":"transfer_pushed","x":{"y":[1,{"z":tru]}},"request_id":"r"}"#,
        Kind::Syntax(SyntaxError::UnexpectedByte { found: b']' }),
        50,
    ),
    (
        "a fault before the type",
        br#"{"x":[01],"msg_type":"transfer_pushed"}"#,
        Kind::Syntax(SyntaxError::InvalidNumber),
        7,
    ),
    (
        "a fault in an unknown message",
        br#"{"msg_type":"x","y":{"z":}}"#,
        Kind::Syntax(SyntaxError::UnexpectedByte { found: b'}' }),
        25,
    ),
    (
        "NaN where no schema knows",
        br#"{"msg_type":"transfer_pushed","request_id":"r","x":[NaN]}"#,
        Kind::NonFinite,
        52,
    ),
    (
        "NaN before the type",
        br#"{"x":NaN,"msg_type":"transfer_pushed","request_id":"r"}"#,
        Kind::NonFinite,
        5,
    ),
    (
        "NaN in an unknown message",
        br#"{"msg_type":"x","y":-Infinity}"#,
        Kind::NonFinite,
        20,
    ),
    (
        "NaN in a manifest",
        br#"{"msg_type":"transfer_ready","manifest":{"x":NaN}}"#,
        Kind::NonFinite,
        45,
    ),
    (
        "NaN in a slot",
        br#"{"msg_type":"transfer_register","preallocated_slots":[{"x":NaN}]}"#,
        Kind::NonFinite,
        59,
    ),
    (
        "a wrong type before a fault",
        br#"{"msg_type":"transfer_pushed","request_id":7,"x":?}"#,
        Kind::WrongType { expected: ValueType::String, actual: ValueType::Number },
        43,
    ),
    (
        "a staged output without its slot",
        br#"{"msg_type":"transfer_done","request_id":"r","staged_for_decoder":true,"data_size":1,"manifest":{}}"#,
        Kind::MissingKey(SchemaKey::SessionId),
        0,
    ),
    (
        "a key of the other layout of another type",
        br#"{"msg_type":"transfer_done","request_id":"r","error":"x","pool_ptr":"1"}"#,
        Kind::WrongType { expected: ValueType::Number, actual: ValueType::String },
        68,
    ),
];

#[test]
fn what_is_no_message_is_refused_where_it_goes_wrong() {
    for &(name, payload, kind, offset) in MALFORMED {
        assert_eq!(refusal(payload), (kind, offset), "{name}");
    }
}

#[test]
fn the_frames_are_the_marker_and_the_payload() {
    let pushed: &[u8] = br#"{"msg_type":"transfer_pushed","request_id":"r"}"#;
    let refusal = |frames: &[&[u8]]| {
        let error = Control::from_frames(frames).unwrap_err();
        assert_eq!(error.offset(), 0);
        error.kind()
    };
    assert_eq!(refusal(&[]), Kind::NoFrames);
    assert_eq!(refusal(&[CONTROL_MARKER]), Kind::NoPayload);
    for first in [
        &b""[..],
        b"__transfer_",
        b"__transfer__\0",
        b"__TRANSFER__",
        pushed,
    ] {
        assert_eq!(refusal(&[first]), Kind::NotControlMessage);
        assert_eq!(refusal(&[first, pushed]), Kind::NotControlMessage);
    }
    assert_eq!(
        refusal(&[CONTROL_MARKER, b""]),
        Kind::Syntax(SyntaxError::UnexpectedEnd)
    );
    for rest in [&[][..], &[&b""[..]], &[b"{", b"__transfer__"]] {
        let frames = [&[CONTROL_MARKER, pushed], rest].concat();
        let control = Control::from_frames(&frames).unwrap();
        assert!(matches!(control, Control::Pushed(pushed) if pushed.request_id == "r"));
    }
}

#[test]
fn the_caps_and_the_dialect_are_those_of_the_options() {
    let ready = |manifest: &str, scalars: &str| {
        format!(
            r#"{{"msg_type":"transfer_ready","request_id":"r","manifest":{manifest},"slot_offset":1,"scalar_fields":{scalars}}}"#
        )
    };
    let kind = |text: &str, options: Options| {
        let result = Control::decode_with(text.as_bytes(), &options);
        result
            .map(drop)
            .map_err(|error| (error.kind(), error.offset()))
    };
    let limits = |limits| Options::new().with_limits(limits);
    let strict = Options::new().with_strict_json(true);

    let nan = ready("{}", r#"{"a":[NaN]}"#);
    assert_eq!(kind(&nan, Options::new()), Ok(()));
    assert_eq!(kind(&nan, strict), Err((Kind::NonFinite, 98)));
    let unknown = r#"{"msg_type":"x","scalar_fields":{"a":NaN}}"#;
    assert_eq!(kind(unknown, Options::new()), Ok(()));
    assert_eq!(kind(unknown, strict), Err((Kind::NonFinite, 37)));

    let (limit, actual) = (nan.len() - 1, nan.len());
    let bytes = |bytes| limits(Limits::new().with_metadata_bytes(bytes));
    assert_eq!(kind(&nan, bytes(actual)), Ok(()));
    let long = Kind::MetadataLimit { limit, actual };
    assert_eq!(kind(&nan, bytes(limit)), Err((long, 0)));

    let deep = ready(r#"{"a":[[]]}"#, "{}");
    let depth = |depth| limits(Limits::new().with_depth(depth));
    assert_eq!(kind(&deep, depth(4)), Ok(()));
    let limit = |limit| Kind::DepthLimit { limit };
    assert_eq!(kind(&deep, depth(3)), Err((limit(3), 63)));
    let inside = "[".repeat(126) + &"]".repeat(126);
    let deep = ready("{}", &format!(r#"{{"a":{inside}}}"#));
    assert_eq!(kind(&deep, Options::new()), Ok(()));
    let deep = ready("{}", &format!(r#"{{"a":[{inside}]}}"#));
    let at = deep.find("[[").unwrap() + 126;
    assert_eq!(kind(&deep, Options::new()), Err((limit(128), at)));
}
