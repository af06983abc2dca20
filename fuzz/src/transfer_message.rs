//! Control messages against a model of them, and against serde_json where that reads them.
//!
//! The first byte says how: its low bits are caps, bit 3 strict JSON; the rest is the payload.

mod model;

use tensorwire::error::EncodeError;
use tensorwire::transfer::Control;
use tensorwire::transfer::message::{Location, Outcome, PreallocatedSlot, Staged};
use tensorwire::{Limits, Options};

use super::check;
use model::model;

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
