//! Control messages that the Python side wrote are read as it meant them, and written as it wrote them.

#![cfg(feature = "alloc")]

#[path = "../common/mod.rs"]
mod common;
/// The oracles of the fuzz targets.
#[allow(dead_code, unreachable_pub, reason = "a part is used here")]
#[path = "../../fuzz/src"]
mod fuzz {
    pub mod check;
    pub mod naive;
    pub mod transfer_message;
}
mod malformed;
mod parts;
mod properties;
mod schema;

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use common::{frames, lines};
use fuzz::transfer_message::{Field, fields};
use tensorwire::error::EncodeError;
use tensorwire::json::{Object, Value};
use tensorwire::message::CONTROL_MARKER;
use tensorwire::transfer::message::{
    Alloc, Allocated, Done, Location, PreallocatedSlot, Push, Pushed, Ready, Register, Staged,
};
use tensorwire::transfer::{Control, Role};

/// The members of a recorded payload, each as text: serde_json reads all but the
/// scalars, which are Python's and come last.
fn members(payload: &str) -> BTreeMap<String, String> {
    let (head, scalars) = match payload.split_once(r#","scalar_fields":"#) {
        Some((head, scalars)) => (format!("{head}}}"), scalars.strip_suffix('}')),
        None => (payload.to_string(), None),
    };
    let read: BTreeMap<String, &RawValue> = serde_json::from_str(&head).unwrap();
    let texts = read
        .iter()
        .map(|(key, value)| (key.clone(), value.get().to_string()));
    let scalars = scalars.map(|text| ("scalar_fields".to_string(), text.to_string()));
    texts.chain(scalars).collect()
}

/// (name, payload) of every recorded message.
fn recorded() -> Vec<(String, String)> {
    let messages = lines("transfer.jsonl");
    assert_eq!(messages.len(), 363);
    let message = |line: &serde_json::Value| {
        let [marker, payload] = <[_; 2]>::try_from(frames(line)).unwrap();
        assert_eq!(marker, CONTROL_MARKER);
        let name = line["name"].as_str().unwrap();
        (name.to_string(), String::from_utf8(payload).unwrap())
    };
    messages.iter().map(message).collect()
}

fn object(text: &str) -> Object<'_> {
    Value::parse(text.as_bytes()).unwrap().as_object().unwrap()
}

#[test]
fn every_recorded_message_is_written_again_byte_for_byte() {
    for line in lines("transfer.jsonl") {
        let name = line["name"].as_str().unwrap();
        let frames = frames(&line);
        let control = Control::from_frames(&frames).unwrap();
        assert!(control.msg_type() == line["msg_type"].as_str().unwrap());
        let payload = frames[1].as_slice();
        assert_eq!(control.encoded_len(), payload.len(), "{name}");
        assert_eq!(control.to_vec(), payload, "{name}");

        let mut buffer = vec![0xa5; payload.len() + 3];
        assert_eq!(control.encode_into(&mut buffer).unwrap(), payload, "{name}");
        assert_eq!(buffer[payload.len()..], [0xa5; 3], "{name}");
        let (needed, capacity) = (payload.len(), payload.len() - 1);
        let mut buffer = vec![0xa5; capacity];
        let error = control.encode_into(&mut buffer).unwrap_err();
        assert_eq!(error, EncodeError::BufferTooSmall { needed, capacity });
        assert!(buffer.iter().all(|&byte| byte == 0), "{name}");
    }
}

#[test]
fn every_field_is_what_serde_json_reads() {
    let mut seen = BTreeMap::new();
    for (name, payload) in recorded() {
        let control = Control::decode(payload.as_bytes()).unwrap();
        let mut members = members(&payload);
        let msg_type: String = serde_json::from_str(&members.remove("msg_type").unwrap()).unwrap();
        assert!(control.msg_type() == msg_type.as_str(), "{name}");
        for (key, field) in fields(&control) {
            let text = members.remove(key).unwrap_or_else(|| "null".into());
            // Scalars are Python's, and compared as the text that they are.
            let same = match &field {
                Field::Object(read) if key == "scalar_fields" => *read == text,
                _ => field.is(&serde_json::from_str(&text).unwrap()),
            };
            assert!(same, "{name} {key}");
        }
        if let Control::Ready(ready) = control {
            let text = members.remove("scalar_fields");
            let text = text.unwrap_or_else(|| ready.scalar_fields.as_value().raw().into());
            assert_eq!(ready.scalar_fields.as_value().raw(), text, "{name}");
        }
        // What is left no schema knows.
        assert_eq!(control.extras().iter().count(), members.len(), "{name}");
        for (key, text) in members {
            assert_eq!(control.extra(&key).unwrap().raw(), text, "{name} {key}");
        }
        *seen.entry(msg_type).or_insert(0) += 1;
    }
    let counts: Vec<_> = seen.values().copied().collect();
    assert_eq!(counts, [1, 40, 40, 80, 41, 40, 40, 40, 41], "{seen:?}");
}

#[test]
fn numbers_past_the_signed_ones_are_what_serde_json_reads() {
    let max = u64::MAX;
    let half = 1_u64 << 63;
    let staged = Staged::new(
        "r",
        max,
        Object::EMPTY,
        Location::new("s", half, max - 1),
        None,
    );
    let slots = [PreallocatedSlot::new(half, half + 1, max - 1, max)];
    for control in [
        Control::from(Alloc::new("r", half, "")),
        Allocated::new("r", Location::new("s", max, half), max - 2).into(),
        Done::staged(staged).into(),
        Push::new("r", "s", max, half).into(),
        Ready::new("r", Object::EMPTY, max, Object::EMPTY).into(),
        Register::new(Role::Denoiser, "s", half, max, "", &slots).into(),
        staged.into(),
    ] {
        let payload = control.to_vec();
        let read: serde_json::Value = serde_json::from_slice(&payload).unwrap();
        let control = Control::decode(&payload).unwrap();
        let mut large = 0;
        for (key, field) in fields(&control) {
            assert!(field.is(&read[key]), "{key} of {read}");
            large += usize::from(!matches!(field, Field::Text(_) | Field::Object(_)));
        }
        assert!(large > 0);
    }
}

#[test]
fn every_recorded_message_is_built_again_from_its_parts() {
    for (name, payload) in recorded() {
        let members = members(&payload);
        let raw = |key: &str| members[key].as_str();
        let text = |key: &str| serde_json::from_str::<String>(raw(key)).unwrap();
        let number = |key: &str| raw(key).parse::<u64>().unwrap();
        let msg_type = text("msg_type");
        if msg_type == "transfer_abort" || name == "dag-push" {
            continue;
        }
        let id = if msg_type == "transfer_register" {
            String::new()
        } else {
            text("request_id")
        };
        let has = |key: &str| members.contains_key(key);
        let session = if has("session_id") {
            text("session_id")
        } else {
            String::new()
        };
        let at = || Location::new(&session, number("pool_ptr"), number("slot_offset"));
        let staged = || {
            let scalars = members.get("scalar_fields").map(|text| object(text));
            let manifest = object(raw("manifest"));
            Staged::new(&id, number("data_size"), manifest, at(), scalars)
        };
        let built = match msg_type.as_str() {
            "transfer_alloc" => {
                Alloc::new(&id, number("data_size"), &text("source_role")).into_vec()
            }
            "transfer_allocated" => Allocated::new(&id, at(), number("slot_size")).into_vec(),
            "transfer_done" if has("staged_for_decoder") => Done::staged(staged()).into_vec(),
            "transfer_done" => {
                match serde_json::from_str::<Option<String>>(raw("error")).unwrap() {
                    Some(error) => Done::failed(&id, &error).into_vec(),
                    None => Done::finished(&id).into_vec(),
                }
            }
            "transfer_push" => {
                let (addr, size) = (number("dest_addr"), number("transfer_size"));
                Push::new(&id, &text("dest_session_id"), addr, size).into_vec()
            }
            "transfer_pushed" => Pushed::new(&id).into_vec(),
            "transfer_ready" => {
                let [manifest, scalars] = ["manifest", "scalar_fields"].map(|key| object(raw(key)));
                Ready::new(&id, manifest, number("slot_offset"), scalars).into_vec()
            }
            "transfer_register" => {
                let slots: Vec<BTreeMap<String, u64>> =
                    serde_json::from_str(raw("preallocated_slots")).unwrap();
                let slots: Vec<_> = slots
                    .iter()
                    .map(|slot| {
                        let [offset, size] = ["offset", "size"].map(|key| slot[key]);
                        PreallocatedSlot::new(offset, size, slot["slot_id"], slot["addr"])
                    })
                    .collect();
                let role = Role::from_name(&text("role")).unwrap();
                let [pool, size] = ["pool_ptr", "pool_size"].map(number);
                let endpoint = text("work_endpoint");
                Register::new(role, &session, pool, size, &endpoint, &slots).into_vec()
            }
            "transfer_staged" => staged().into_vec(),
            _ => panic!("{name}: {msg_type}"),
        };
        assert_eq!(String::from_utf8(built).unwrap(), payload, "{name}");
    }
}

/// A message as its payload.
trait IntoVec {
    fn into_vec(self) -> Vec<u8>;
}

impl<'a, T: Into<Control<'a>>> IntoVec for T {
    fn into_vec(self) -> Vec<u8> {
        self.into().to_vec()
    }
}
