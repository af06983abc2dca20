//! What is written for a payload, put together as plainly as it goes.

use tensorwire::Limits;

use super::super::naive::{self, Json, Node, is};

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
pub(super) fn model(payload: &[u8], limits: &Limits, strict: bool) -> Option<String> {
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

/// A string as Python's `json.dumps` writes it, lone surrogates too.
fn quoted(points: &[u32]) -> String {
    let parts = points.iter().map(|&point| match char::from_u32(point) {
        Some(c) => {
            let text = naive::quoted(c.encode_utf8(&mut [0; 4]));
            text[1..text.len() - 1].to_string()
        }
        None => format!("\\u{point:04x}"),
    });
    format!("\"{}\"", parts.collect::<String>())
}
