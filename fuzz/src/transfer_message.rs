//! Control messages against a model of them, and against serde_json where that reads them.
//!
//! The first byte says how: its low bits are caps, bit 3 strict JSON; the rest is the payload.

use tensorwire::error::EncodeError;
use tensorwire::transfer::Control;
use tensorwire::transfer::message::{Location, Outcome, PreallocatedSlot, Staged};
use tensorwire::{Limits, Options};

use super::check;
use super::naive::{Json, Node};

pub fn run(data: &[u8]) {
    let Some((&flags, payload)) = data.split_first() else {
        return;
    };
    let limits = match flags & 7 {
        1 => Limits::new().with_metadata_bytes(128),
        2 => Limits::new().with_depth(1),
        3 => Limits::new().with_depth(3),
        4 => Limits::new().with_depth(5),
        _ => Limits::new(),
    };
    let strict = flags & 8 != 0;
    let options = Options::new().with_limits(limits);
    let options = options.with_strict_json(strict);
    let result = Control::decode_with(payload, &options);
    let expected = model(payload, &limits, strict);
    let control = match result {
        Ok(control) => control,
        Err(error) => {
            check::error(error, &[payload]);
            assert_eq!(expected, None, "{error}");
            return;
        }
    };
    let encoded = control.to_vec();
    assert_eq!(Some(str::from_utf8(&encoded).unwrap()), expected.as_deref());
    assert_eq!(control.encoded_len(), encoded.len());
    for capacity in [0, encoded.len() / 2, encoded.len() - 1] {
        let mut buffer = vec![0xa5; capacity];
        let needed = encoded.len();
        let error = control.encode_into(&mut buffer).unwrap_err();
        assert_eq!(error, EncodeError::BufferTooSmall { needed, capacity });
        assert!(buffer.iter().all(|&byte| byte == 0));
    }

    // Escapes make a payload longer, so the caps of the case may not hold now.
    let again = Control::decode(&encoded).unwrap();
    assert_eq!(again.to_vec(), encoded);
    assert_eq!(fields(&again), fields(&control));
    assert_eq!(again.msg_type(), control.msg_type());
    assert_eq!(again.request_id(), control.request_id());
    let names = |control: &Control<'_>| control.extras().iter().count();
    assert_eq!(names(&again), names(&control));
    assert_eq!(control.extras().is_empty(), names(&control) == 0);
    if let Control::Unknown(unknown) = control
        && let Some(abort) = unknown.abort()
    {
        let payload = abort.to_vec();
        let Ok(Control::Unknown(again)) = Control::decode(&payload) else {
            panic!("an abort is no abort");
        };
        assert_eq!(again.abort(), Some(abort));
    }
    against_serde(payload, &encoded, &control);
}

/// Whatever serde_json reads from the payload it reads from what is written, and reads the fields as we do.
fn against_serde(payload: &[u8], encoded: &[u8], control: &Control<'_>) {
    use serde_json::Value;

    let Ok(before) = serde_json::from_slice::<Value>(payload) else {
        return;
    };
    let after: Value = serde_json::from_slice(encoded).unwrap();
    let (before, after) = (before.as_object().unwrap(), after.as_object().unwrap());
    for (key, value) in before {
        // The number of a slot is the integer 0 here, and a float to serde_json.
        let minus = key == "scalar_fields" && value["_prealloc_slot_id"].is_f64();
        assert!(minus || after[key] == *value, "{key}");
    }
    for (key, value) in after {
        let default = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        assert!(before.contains_key(key) || default, "{key}");
    }
    for (key, field) in fields(control) {
        assert!(field.is(&after[key]), "{key}");
    }
}

/// A field, in memory of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    Bool(bool),
    Null,
    Number(u64),
    /// Its text.
    Object(String),
    Slots(Vec<PreallocatedSlot>),
    /// Its code points.
    Text(Vec<u32>),
}

impl Field {
    /// Whether serde_json reads the same.
    pub fn is(&self, value: &serde_json::Value) -> bool {
        match self {
            Self::Bool(field) => value.as_bool() == Some(*field),
            Self::Null => value.is_null(),
            Self::Number(field) => value.as_u64() == Some(*field),
            Self::Object(text) => {
                serde_json::from_str::<serde_json::Value>(text).is_ok_and(|read| *value == read)
            }
            Self::Slots(slots) => {
                let number = |slot: &serde_json::Value, key: &str| slot[key].as_u64().unwrap();
                let read = value.as_array().unwrap().iter().map(|slot| {
                    let [offset, size] = ["offset", "size"].map(|key| number(slot, key));
                    let [id, addr] = ["slot_id", "addr"].map(|key| number(slot, key));
                    PreallocatedSlot::new(offset, size, id, addr)
                });
                read.eq(slots.iter().copied())
            }
            Self::Text(points) => value
                .as_str()
                .is_some_and(|text| text.chars().map(u32::from).eq(points.iter().copied())),
        }
    }
}

/// All fields of a message by their keys.
pub fn fields(control: &Control<'_>) -> Vec<(&'static str, Field)> {
    use tensorwire::json::{Object, Str};

    let text = |key, text: Str<'_>| (key, Field::Text(text.code_points().collect()));
    let object = |key, object: Object<'_>| (key, Field::Object(object.as_value().raw().into()));
    let number = |key, number| (key, Field::Number(number));
    let location = |location: &Location<'_>| {
        vec![
            text("session_id", location.session_id),
            number("pool_ptr", location.pool_ptr),
            number("slot_offset", location.slot_offset),
        ]
    };
    let staged = |staged: &Staged<'_>| {
        let mut fields = location(&staged.location);
        fields.push(number("data_size", staged.data_size));
        fields.push(object("manifest", staged.manifest));
        fields.extend(staged.scalar_fields.map(|x| object("scalar_fields", x)));
        let for_decoder = staged.staged_for_decoder;
        fields.extend(for_decoder.map(|x| ("staged_for_decoder", Field::Bool(x))));
        fields
    };
    let request = |id| vec![text("request_id", id)];
    match control {
        Control::Alloc(alloc) => {
            let mut fields = request(alloc.request_id);
            fields.push(number("data_size", alloc.data_size));
            fields.push(text("source_role", alloc.source_role));
            fields
        }
        Control::Allocated(allocated) => {
            let mut fields = request(allocated.request_id);
            fields.extend(location(&allocated.location));
            fields.push(number("slot_size", allocated.slot_size));
            fields
        }
        Control::Done(done) => {
            let mut fields = request(done.request_id);
            match &done.outcome {
                Outcome::Failed(error) => fields.push(text("error", *error)),
                Outcome::Finished => fields.push(("error", Field::Null)),
                Outcome::Staged(output) => {
                    assert_eq!(output.staged_for_decoder, Some(true));
                    assert_eq!(output.request_id, done.request_id);
                    fields.extend(staged(output));
                }
                _ => panic!("another outcome"),
            }
            fields
        }
        Control::Push(push) => {
            let mut fields = request(push.request_id);
            fields.push(text("dest_session_id", push.dest_session_id));
            fields.push(number("dest_addr", push.dest_addr));
            fields.push(number("transfer_size", push.transfer_size));
            fields
        }
        Control::Pushed(pushed) => request(pushed.request_id),
        Control::Ready(ready) => {
            let mut fields = request(ready.request_id);
            fields.push(object("manifest", ready.manifest));
            fields.push(number("slot_offset", ready.slot_offset));
            if ready.preallocated_slot.is_none() {
                fields.push(object("scalar_fields", ready.scalar_fields));
            }
            fields
        }
        Control::Register(register) => vec![
            text("role", register.role),
            text("session_id", register.session_id),
            number("pool_ptr", register.pool_ptr),
            number("pool_size", register.pool_size),
            text("work_endpoint", register.work_endpoint),
            (
                "preallocated_slots",
                Field::Slots(register.preallocated_slots.iter().collect()),
            ),
        ],
        Control::Staged(output) => [request(output.request_id), staged(output)].concat(),
        _ => Vec::new(),
    }
}

// ---- the model ----

/// The type of a key's value, and what is written where the key is absent.
#[derive(Clone, Copy)]
enum Kind {
    Bool,
    /// A text or null, which is the default.
    Error,
    Number,
    Object,
    Scalars(Option<&'static str>),
    Slots,
    Text(Option<&'static str>),
}

const REQUEST: (&str, Kind) = ("request_id", Kind::Text(None));
const SESSION: (&str, Kind) = ("session_id", Kind::Text(None));
const POOL: (&str, Kind) = ("pool_ptr", Kind::Number);
const OFFSET: (&str, Kind) = ("slot_offset", Kind::Number);
const SIZE: (&str, Kind) = ("data_size", Kind::Number);
const MANIFEST: (&str, Kind) = ("manifest", Kind::Object);
/// Not written where it was not read.
const SCALARS: (&str, Kind) = ("scalar_fields", Kind::Scalars(None));
const FOR_DECODER: (&str, Kind) = ("staged_for_decoder", Kind::Bool);
const ERROR: (&str, Kind) = ("error", Kind::Error);

/// The layout of an output that a role in the middle has staged.
const RESULT: &[(&str, Kind)] = &[
    REQUEST,
    FOR_DECODER,
    SESSION,
    POOL,
    OFFSET,
    SIZE,
    MANIFEST,
    SCALARS,
];

/// (type, keys in the order written)
const LAYOUTS: &[(&str, &[(&str, Kind)])] = &[
    (
        "transfer_alloc",
        &[REQUEST, SIZE, ("source_role", Kind::Text(Some("\"\"")))],
    ),
    (
        "transfer_allocated",
        &[REQUEST, SESSION, POOL, OFFSET, ("slot_size", Kind::Number)],
    ),
    ("transfer_done", &[REQUEST, ERROR]),
    (
        "transfer_push",
        &[
            REQUEST,
            ("dest_session_id", Kind::Text(None)),
            ("dest_addr", Kind::Number),
            ("transfer_size", Kind::Number),
        ],
    ),
    ("transfer_pushed", &[REQUEST]),
    (
        "transfer_ready",
        &[
            REQUEST,
            MANIFEST,
            OFFSET,
            ("scalar_fields", Kind::Scalars(Some("{}"))),
        ],
    ),
    (
        "transfer_register",
        &[
            ("role", Kind::Text(None)),
            SESSION,
            POOL,
            ("pool_size", Kind::Number),
            ("work_endpoint", Kind::Text(Some("\"\""))),
            ("preallocated_slots", Kind::Slots),
        ],
    ),
    ("transfer_register_ack", &[]),
    (
        "transfer_staged",
        &[REQUEST, SIZE, MANIFEST, SESSION, POOL, OFFSET, SCALARS],
    ),
];

/// Deeper than any limit, shallow enough for the stack.
const PARSE_DEPTH: usize = 200;

/// What is written for a payload, or `None` if it is no message.
pub fn model(payload: &[u8], limits: &Limits, strict: bool) -> Option<String> {
    (payload.len() <= limits.metadata_bytes()).then_some(())?;
    let text = str::from_utf8(payload).ok()?;
    let document = Node::parse(text, PARSE_DEPTH)?;
    let Json::Object(members) = &document.json else {
        return None;
    };
    let mut types = members.iter().filter(|(key, _)| is(key, "msg_type"));
    let (Json::Str(msg_type), None) = (&types.next()?.1.json, types.next()) else {
        return None;
    };
    let layout = LAYOUTS.iter().find(|(name, _)| is(msg_type, name));
    let written = layout.map_or(&[][..], |(_, layout)| layout);

    // Whatever is known of the type is checked, whichever layout it is of.
    let two = written
        .iter()
        .any(|(key, _)| ["error", "data_size"].contains(key));
    let two = two && !is(msg_type, "transfer_alloc");
    let known = [written, if two { RESULT } else { &[] }].concat();
    let find = |key: &str| members.iter().find(|(name, _)| is(name, key));
    for (index, (key, node)) in members.iter().enumerate() {
        if is(key, "msg_type") {
            continue;
        }
        let scalars = is(key, "scalar_fields");
        let Some((name, kind)) = known.iter().find(|(name, _)| is(key, name)) else {
            deep_enough(node, 1, limits)?;
            (node.is_strict() || scalars && !strict).then_some(())?;
            continue;
        };
        let second = members[..index].iter().any(|(key, _)| is(key, name));
        (!second).then_some(())?;
        holds(*kind, node, limits, strict)?;
    }

    let for_decoder =
        find("staged_for_decoder").map(|(_, node)| matches!(node.json, Json::Bool(true)));
    let failed = find("error").is_some_and(|(_, node)| matches!(node.json, Json::Str(_)));
    let written = match for_decoder {
        Some(true) if is(msg_type, "transfer_done") && !failed => RESULT,
        Some(_) if is(msg_type, "transfer_staged") => RESULT,
        _ => written,
    };
    let mut out = format!(r#"{{"msg_type":{}"#, quoted(msg_type));
    for (key, kind) in written {
        let value = match (find(key), kind) {
            (Some((_, node)), _) => value(is(msg_type, "transfer_ready"), *kind, node),
            (None, Kind::Error) => "null".into(),
            (None, Kind::Slots) => "[]".into(),
            (None, Kind::Text(Some(default)) | Kind::Scalars(Some(default))) => (*default).into(),
            (None, Kind::Scalars(None)) => continue,
            (None, _) => return None,
        };
        out += &format!(r#","{key}":{value}"#);
    }
    for (key, node) in members {
        let known = written.iter().any(|(name, _)| is(key, name));
        if !known && !is(key, "msg_type") {
            out += &format!(",{}:{}", quoted(key), node.raw);
        }
    }
    Some(out + "}")
}

/// Whether the value of a known key is one.
fn holds(kind: Kind, node: &Node<'_>, limits: &Limits, strict: bool) -> Option<()> {
    let good = match (kind, &node.json) {
        (Kind::Bool, Json::Bool(_))
        | (Kind::Error, Json::Str(_) | Json::Null)
        | (Kind::Text(_), Json::Str(_)) => true,
        (Kind::Number, _) => number(node).is_some(),
        (Kind::Object, Json::Object(_)) => node.is_strict(),
        (Kind::Scalars(_), Json::Object(_)) => !strict || node.is_strict(),
        (Kind::Slots, Json::Array(slots)) => {
            return slots.iter().try_for_each(|slot| slot_holds(slot, limits));
        }
        _ => false,
    };
    good.then_some(())?;
    deep_enough(node, 1, limits)
}

fn slot_holds(slot: &Node<'_>, limits: &Limits) -> Option<()> {
    let Json::Object(members) = &slot.json else {
        return None;
    };
    let names = ["offset", "size", "slot_id", "addr"];
    for name in names {
        let mut found = members.iter().filter(|(key, _)| is(key, name));
        number(&found.next()?.1)?;
        found.next().is_none().then_some(())?;
    }
    let mut unknown = members
        .iter()
        .filter(|(key, _)| !names.iter().any(|name| is(key, name)));
    unknown.try_for_each(|(_, node)| {
        node.is_strict().then_some(())?;
        deep_enough(node, 3, limits)
    })
}

/// Whether `node`, inside `levels` others, is nested no deeper than allowed.
fn deep_enough(node: &Node<'_>, levels: usize, limits: &Limits) -> Option<()> {
    (node.depth() == 0 || levels + node.depth() <= limits.depth()).then_some(())
}

fn number(node: &Node<'_>) -> Option<u64> {
    let plain = node.raw.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| node.raw.parse().ok())?
}

/// What is written for a value that was read.
fn value(ready: bool, kind: Kind, node: &Node<'_>) -> String {
    match (&node.json, kind) {
        (Json::Str(points), _) => quoted(points),
        (Json::Object(members), Kind::Scalars(_)) if ready => {
            let slot = |key: &[u32]| is(key, "_prealloc_slot_id");
            let last = members.iter().rev().find(|(key, _)| slot(key));
            let id = last.and_then(|(_, node)| match node.raw {
                "-0" => Some(0),
                _ => number(node),
            });
            let Some(id) = id else {
                return node.raw.into();
            };
            let members = members.iter().map(|(key, node)| {
                let text = if slot(key) {
                    id.to_string()
                } else {
                    node.raw.into()
                };
                format!("{}:{text}", quoted(key))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        _ => node.raw.into(),
    }
}

fn is(points: &[u32], text: &str) -> bool {
    text.chars().map(u32::from).eq(points.iter().copied())
}

/// A string as Python's `json.dumps` writes it, lone surrogates too.
fn quoted(points: &[u32]) -> String {
    let parts = points.iter().map(|&point| match char::from_u32(point) {
        Some(c) => {
            let text = super::naive::quoted(c.encode_utf8(&mut [0; 4]));
            text[1..text.len() - 1].to_string()
        }
        None => format!("\\u{point:04x}"),
    });
    format!("\"{}\"", parts.collect::<String>())
}
