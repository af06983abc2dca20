//! Every key of every message: missing, twice, of another type, out of range, spelled otherwise.

use tensorwire::error::{DecodeErrorKind as Kind, SchemaKey, SyntaxError};
use tensorwire::json::ValueType;
use tensorwire::transfer::Control;

/// What a key holds.
#[derive(Clone, Copy, PartialEq)]
enum Holds {
    Bool,
    Error,
    Number,
    Object,
    Slots,
    Text,
}

/// (type, its keys: (key, what it holds, what is missing without it), in any order)
struct Schema(
    &'static str,
    &'static [(&'static str, Holds, Option<SchemaKey>)],
);

const REQUEST: (&str, Holds, Option<SchemaKey>) =
    ("request_id", Holds::Text, Some(SchemaKey::RequestId));
const SESSION: (&str, Holds, Option<SchemaKey>) =
    ("session_id", Holds::Text, Some(SchemaKey::SessionId));
const POOL: (&str, Holds, Option<SchemaKey>) =
    ("pool_ptr", Holds::Number, Some(SchemaKey::PoolPtr));
const OFFSET: (&str, Holds, Option<SchemaKey>) =
    ("slot_offset", Holds::Number, Some(SchemaKey::SlotOffset));
const SIZE: (&str, Holds, Option<SchemaKey>) =
    ("data_size", Holds::Number, Some(SchemaKey::DataSize));
const MANIFEST: (&str, Holds, Option<SchemaKey>) =
    ("manifest", Holds::Object, Some(SchemaKey::Manifest));
const SCALARS: (&str, Holds, Option<SchemaKey>) = ("scalar_fields", Holds::Object, None);

const SCHEMAS: &[Schema] = &[
    Schema(
        "transfer_alloc",
        &[REQUEST, SIZE, ("source_role", Holds::Text, None)],
    ),
    Schema(
        "transfer_allocated",
        &[
            REQUEST,
            SESSION,
            POOL,
            OFFSET,
            ("slot_size", Holds::Number, Some(SchemaKey::SlotSize)),
        ],
    ),
    Schema("transfer_done", &[REQUEST, ("error", Holds::Error, None)]),
    Schema(
        "transfer_done",
        &[
            REQUEST,
            ("staged_for_decoder", Holds::Bool, None),
            SESSION,
            POOL,
            OFFSET,
            SIZE,
            MANIFEST,
            SCALARS,
        ],
    ),
    Schema(
        "transfer_push",
        &[
            REQUEST,
            (
                "dest_session_id",
                Holds::Text,
                Some(SchemaKey::DestSessionId),
            ),
            ("dest_addr", Holds::Number, Some(SchemaKey::DestAddr)),
            (
                "transfer_size",
                Holds::Number,
                Some(SchemaKey::TransferSize),
            ),
        ],
    ),
    Schema("transfer_pushed", &[REQUEST]),
    Schema("transfer_ready", &[REQUEST, MANIFEST, OFFSET, SCALARS]),
    Schema(
        "transfer_register",
        &[
            ("role", Holds::Text, Some(SchemaKey::Role)),
            SESSION,
            POOL,
            ("pool_size", Holds::Number, Some(SchemaKey::PoolSize)),
            ("work_endpoint", Holds::Text, None),
            ("preallocated_slots", Holds::Slots, None),
        ],
    ),
    Schema("transfer_register_ack", &[]),
    Schema(
        "transfer_staged",
        &[REQUEST, SIZE, MANIFEST, SESSION, POOL, OFFSET, SCALARS],
    ),
    Schema(
        "transfer_staged",
        &[
            REQUEST,
            ("staged_for_decoder", Holds::Bool, None),
            SESSION,
            POOL,
            OFFSET,
            SIZE,
            MANIFEST,
            SCALARS,
        ],
    ),
    Schema("transfer_of_a_newer_peer", &[]),
];

const SLOT: &str = r#"{"offset":0,"size":1,"slot_id":2,"addr":18446744073709551615}"#;

impl Holds {
    fn sample(self) -> String {
        match self {
            Self::Bool => "true".into(),
            Self::Error => "null".into(),
            Self::Number => "18446744073709551615".into(),
            Self::Object => r#"{"a":[{"b":null}]}"#.into(),
            Self::Slots => format!("[{SLOT},{SLOT}]"),
            Self::Text => r#""caf\u00e9""#.into(),
        }
    }

    const fn value_type(self) -> ValueType {
        match self {
            Self::Bool => ValueType::Bool,
            Self::Number => ValueType::Number,
            Self::Object => ValueType::Object,
            Self::Slots => ValueType::Array,
            Self::Error | Self::Text => ValueType::String,
        }
    }
}

impl Schema {
    /// The members of a whole message, its type first.
    fn members(&self) -> Vec<(String, String)> {
        let msg_type = ("msg_type".to_string(), format!("\"{}\"", self.0));
        let rest = self.1.iter();
        let rest = rest.map(|(key, holds, _)| ((*key).to_string(), holds.sample()));
        std::iter::once(msg_type).chain(rest).collect()
    }
}

/// A payload, and where the value of each member starts.
fn payload(members: &[(String, String)]) -> (String, Vec<usize>) {
    let mut text = String::new();
    let mut offsets = Vec::new();
    for (key, value) in members {
        text += if text.is_empty() { "{\"" } else { ",\"" };
        text += key;
        text += "\":";
        offsets.push(text.len());
        text += value;
    }
    (text + "}", offsets)
}

/// What is wrong with a payload, and where.
pub(crate) fn refusal(payload: &[u8]) -> (Kind, usize) {
    let error = Control::decode(payload);
    let error = error
        .err()
        .unwrap_or_else(|| panic!("{} is read", payload.escape_ascii()));
    (error.kind(), error.offset())
}

const OF_EACH_TYPE: &[(ValueType, &str)] = &[
    (ValueType::Array, "[]"),
    (ValueType::Bool, "true"),
    (ValueType::Bool, "false"),
    (ValueType::Null, "null"),
    (ValueType::Number, "0"),
    (ValueType::Object, "{}"),
    (ValueType::String, "\"\""),
];

#[test]
fn every_whole_message_is_read() {
    for schema in SCHEMAS {
        let (text, _) = payload(&schema.members());
        let control = Control::decode(text.as_bytes()).unwrap();
        assert!(control.msg_type() == schema.0);
        assert!(control.extras().is_empty());
        assert_eq!(control.to_vec(), text.as_bytes());
    }
}

#[test]
fn a_key_that_is_not_there_is_named() {
    let mut refused = 0;
    for schema in SCHEMAS {
        for (index, (key, _, missing)) in schema.1.iter().enumerate() {
            let mut members = schema.members();
            members.remove(index + 1);
            let (text, _) = payload(&members);
            // White space before the object moves it.
            let text = format!(" \n{text}");
            match missing {
                Some(missing) => {
                    assert_eq!(missing.to_string(), *key);
                    let expected = (Kind::MissingKey(*missing), 2);
                    assert_eq!(refusal(text.as_bytes()), expected, "{text}");
                    refused += 1;
                }
                None => assert!(Control::decode(text.as_bytes()).is_ok(), "{text}"),
            }
        }
        let (text, _) = payload(&schema.members()[1..]);
        let text = if text == "}" { "{}" } else { &text };
        let expected = (Kind::MissingKey(SchemaKey::MsgType), 0);
        assert_eq!(refusal(text.as_bytes()), expected, "{text}");
    }
    assert_eq!(refused, 38);
}

#[test]
fn a_value_of_another_type_is_refused_where_it_stands() {
    for schema in SCHEMAS {
        let keys = schema.1.iter().map(|(_, holds, _)| *holds);
        for (index, holds) in std::iter::once(Holds::Text).chain(keys).enumerate() {
            for &(actual, sample) in OF_EACH_TYPE {
                let expected = holds.value_type();
                if actual == expected || holds == Holds::Error && actual == ValueType::Null {
                    continue;
                }
                let mut members = schema.members();
                members[index].1 = sample.into();
                let (text, offsets) = payload(&members);
                let kind = Kind::WrongType { expected, actual };
                assert_eq!(refusal(text.as_bytes()), (kind, offsets[index]), "{text}");
            }
        }
    }
}

/// (number, why it is none)
const NUMBERS: &[(&str, Kind)] = &[
    ("-1", Kind::BadInteger),
    ("-0", Kind::BadInteger),
    ("4.0", Kind::BadInteger),
    ("1e2", Kind::BadInteger),
    ("1E400", Kind::BadInteger),
    ("NaN", Kind::BadInteger),
    ("Infinity", Kind::BadInteger),
    ("-Infinity", Kind::BadInteger),
    ("18446744073709551616", Kind::IntegerOverflow),
    (
        "99999999999999999999999999999999999999999",
        Kind::IntegerOverflow,
    ),
];

#[test]
fn a_number_that_is_no_u64_is_refused_where_it_stands() {
    for schema in SCHEMAS {
        for (index, (_, holds, _)) in schema.1.iter().enumerate() {
            if *holds != Holds::Number {
                continue;
            }
            for &(number, kind) in NUMBERS {
                let mut members = schema.members();
                members[index + 1].1 = number.into();
                let (text, offsets) = payload(&members);
                assert_eq!(
                    refusal(text.as_bytes()),
                    (kind, offsets[index + 1]),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn a_key_twice_is_refused_at_the_second_in_whatever_spelling() {
    for schema in SCHEMAS {
        let members = schema.members();
        for (key, value) in &members {
            let escaped = format!("\\u{:04x}{}", u32::from(key.as_bytes()[0]), &key[1..]);
            for spelling in [key, &escaped] {
                let mut twice = members.clone();
                twice.push((spelling.clone(), value.clone()));
                let (text, offsets) = payload(&twice);
                let at = offsets.last().unwrap() - spelling.len() - "\"\":".len();
                assert_eq!(refusal(text.as_bytes()), (Kind::DuplicateKey, at), "{text}");
            }
        }
    }
}

#[test]
fn a_slot_is_checked_as_a_message_is() {
    let list = |slots: &str| {
        let head = r#"{"msg_type":"transfer_register","role":"","session_id":"","pool_ptr":0,"pool_size":0,"preallocated_slots":"#;
        (format!("{head}{slots}}}"), head.len())
    };
    let keys = [
        ("offset", SchemaKey::Offset),
        ("size", SchemaKey::Size),
        ("slot_id", SchemaKey::SlotId),
        ("addr", SchemaKey::Addr),
    ];
    for (key, missing) in keys {
        let members = |keep: &dyn Fn(&str) -> bool| -> Vec<(String, String)> {
            let members = keys.iter().filter(|(name, _)| keep(name));
            members
                .map(|(name, _)| ((*name).to_string(), "1".to_string()))
                .collect()
        };
        let (slot, _) = payload(&members(&|name| name != key));
        let (text, at) = list(&format!("[{SLOT}, {slot}]"));
        let at = at + SLOT.len() + "[, ".len();
        assert_eq!(
            refusal(text.as_bytes()),
            (Kind::MissingKey(missing), at),
            "{text}"
        );

        let mut twice = members(&|_| true);
        twice.push((key.into(), "1".into()));
        let (slot, offsets) = payload(&twice);
        let (text, at) = list(&format!("[{slot}]"));
        let at = at + 1 + offsets[4] - key.len() - "\"\":".len();
        assert_eq!(refusal(text.as_bytes()), (Kind::DuplicateKey, at), "{text}");

        let expected = ValueType::Number;
        let types = OF_EACH_TYPE
            .iter()
            .filter(|(actual, _)| *actual != expected);
        let types = types.map(|&(actual, sample)| (sample, Kind::WrongType { expected, actual }));
        for (value, kind) in types.chain(NUMBERS.iter().copied()) {
            let mut wrong = members(&|_| true);
            let index = wrong.iter().position(|(name, _)| name == key).unwrap();
            wrong[index].1 = value.into();
            let (slot, offsets) = payload(&wrong);
            let (text, at) = list(&format!("[{slot}]"));
            assert_eq!(
                refusal(text.as_bytes()),
                (kind, at + 1 + offsets[index]),
                "{text}"
            );
        }
    }
    for &(actual, sample) in OF_EACH_TYPE {
        if actual != ValueType::Object {
            let (text, at) = list(&format!("[{sample}]"));
            let expected = ValueType::Object;
            let kind = Kind::WrongType { expected, actual };
            assert_eq!(refusal(text.as_bytes()), (kind, at + 1), "{text}");
        }
    }
}

#[test]
fn a_payload_cut_short_ends_too_early() {
    let end = Kind::Syntax(SyntaxError::UnexpectedEnd);
    for schema in SCHEMAS {
        let (text, _) = payload(&schema.members());
        for length in 0..text.len() {
            let expected = (end, length);
            assert_eq!(refusal(&text.as_bytes()[..length]), expected, "{text}");
        }
    }
}

#[test]
fn keys_in_any_order_spelling_and_spacing_say_the_same() {
    for schema in SCHEMAS {
        let (expected, _) = payload(&schema.members());
        let mut members = schema.members();
        for _ in 0..members.len() {
            members.rotate_left(1);
            for reversed in [false, true] {
                let mut members = members.clone();
                if reversed {
                    members.reverse();
                }
                let plain = payload(&members).0;
                for (key, _) in &mut members {
                    let last = key.pop().unwrap();
                    *key += &format!("\\u{:04X}", u32::from(last));
                }
                let escaped = payload(&members).0;
                let spaced: String = members
                    .iter()
                    .map(|(key, value)| format!("\t\"{key}\" : {value}\r\n"))
                    .collect::<Vec<_>>()
                    .join(" , ");
                for text in [plain, escaped, format!(" {{ {spaced} }} \n")] {
                    let control = Control::decode(text.as_bytes()).unwrap();
                    let written = String::from_utf8(control.to_vec()).unwrap();
                    assert_eq!(written, expected, "{text}");
                }
            }
        }
        // The type itself may be escaped.
        let mut members = schema.members();
        members[0].1 = members[0].1.replacen('t', "\\u0074", 1);
        let control = payload(&members).0;
        let control = Control::decode(control.as_bytes()).unwrap();
        assert_eq!(control.to_vec(), expected.as_bytes());
    }
}
