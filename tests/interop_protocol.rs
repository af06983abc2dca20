//! The Python side's own `transport/protocol.py` and this crate exchange control messages, both ways.
//!
//! ```text
//!   Python   ---->  read, every field held against Python's account of it, written again
//!   Python   <----  every message, and Python's account and its own writing of it are checked
//! ```
//!
//! `tests/interop/setup.sh` gets what it needs and names it in two variables;
//! without them the tests say so in a line that begins with `SKIP`, and pass.

#![cfg(all(feature = "zmq", unix))]

/// The oracles of the fuzz targets.
#[allow(dead_code, unreachable_pub, reason = "a part is used here")]
#[path = "../fuzz/src"]
mod fuzz {
    pub mod check;
    pub mod naive;
    pub mod transfer_message;
}
#[path = "common/peer.rs"]
mod peer;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value as Account, json};

use fuzz::transfer_message::{Field, fields};
use peer::Peer;
use tensorwire::json::{Str, Value, ValueType};
use tensorwire::message::CONTROL_MARKER;
use tensorwire::transfer::message::{
    Abort, Alloc, Allocated, Done, Location, PreallocatedSlot, PreallocatedSlots, Push, Pushed,
    Ready, Register, RegisterAck, Staged, Unknown,
};
use tensorwire::transfer::{Control, Role};
use tensorwire::transport::{Frames, RecvFrames, SendFrames, zmq};

/// How many messages Python makes up, and how many are made up here.
const MESSAGES: usize = 2600;

#[test]
fn python_and_this_crate_read_each_others_messages_over_tcp() {
    exchange("tcp://127.0.0.1:*", "tcp://127.0.0.1:*", 1);
}

#[test]
fn python_and_this_crate_read_each_others_messages_over_ipc() {
    let endpoint = |name: &str| {
        let name = format!("tensorwire-protocol-{}-{name}", std::process::id());
        format!("ipc://{}", std::env::temp_dir().join(name).display())
    };
    exchange(&endpoint("in"), &endpoint("out"), 2);
}

fn exchange(there: &str, back: &str, seed: u64) {
    let Some((python, protocol)) = python() else {
        return;
    };
    let context = zmq::Context::new();
    let push = context.push().linger(Duration::from_secs(1));
    let mut push = push.send_timeout(Some(PATIENCE)).open().unwrap();
    let pull = context.pull().recv_timeout(Some(PATIENCE));
    let mut pull = pull.open().unwrap();
    let endpoints = [push.bind(there).unwrap(), pull.bind(back).unwrap()].map(str::to_owned);
    let child = Command::new(python)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/interop/protocol_peer.py"
        ))
        .arg(PATIENCE.as_millis().to_string())
        .arg(protocol)
        .args(endpoints)
        .args([seed.to_string(), MESSAGES.to_string()])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut peer = Peer(child);

    let mut seen = Seen::default();
    for number in 0..MESSAGES {
        let message = pull.recv().unwrap();
        let [marker, payload, account] = [0, 1, 2].map(|index| message.frame(index).unwrap());
        assert_eq!(marker, CONTROL_MARKER);
        let control = Control::from_frames(message.frames()).unwrap();
        let expected: Account = serde_json::from_slice(account).unwrap();
        let shown = || format!("message {number}: {}", payload.escape_ascii());
        assert_eq!(account_of(&control), expected, "{}", shown());
        assert!(control.to_vec() == payload, "{}", shown());
        seen.count(payload);
    }
    seen.expect_everything();

    let mut random = Random(seed);
    for number in 0..MESSAGES {
        let texts = Texts::new(&mut random);
        let payload = texts.payload(number, &mut random);
        let control = Control::decode(&payload).unwrap();
        push.send(&[CONTROL_MARKER, &payload]).unwrap();
        let answer = pull.recv().unwrap();
        let shown = || format!("message {number}: {}", payload.escape_ascii());
        let account: Account = serde_json::from_slice(answer.frame(0).unwrap()).unwrap();
        assert_eq!(account, account_of(&control), "{}", shown());
        assert!(answer.frame(1).unwrap() == payload, "{}", shown());
        let of_class = answer.frame(2).unwrap();
        let has_class = texts.has_class(number);
        let expected = if has_class { payload.as_slice() } else { &[] };
        assert!(of_class == expected, "{}", shown());
    }
    // What it does not take for a control message.
    let work: &[&[u8]] = &[b"request-1", b"\x80\x04"];
    for frames in [work, &[CONTROL_MARKER], &[b"__transfer__ ", b"{}"]] {
        assert!(Control::from_frames(frames).is_err());
        push.send(frames).unwrap();
        assert_eq!(pull.recv().unwrap().frame(0), Some(&b"not control"[..]));
    }
    push.send(&[b"stop"]).unwrap();
    assert_eq!(pull.recv().unwrap().frame(0), Some(&b"stopped"[..]));
    peer.finish(PATIENCE);
}

/// What came, so that the random values leave nothing out.
#[derive(Default)]
struct Seen {
    past_i64: usize,
    surrogates: usize,
    tokens: usize,
}

impl Seen {
    fn count(&mut self, payload: &[u8]) {
        let text = str::from_utf8(payload).unwrap();
        self.past_i64 += usize::from(text.contains(":18446744073709551615"));
        self.surrogates += usize::from(text.contains(r#""request_id":"\ud800""#));
        self.tokens += usize::from(text.contains("NaN") && text.contains("scalar_fields"));
    }

    fn expect_everything(&self) {
        let least = [self.past_i64, self.surrogates, self.tokens]
            .into_iter()
            .min();
        assert!(least > Some(20), "{least:?}");
    }
}

// ---- accounts ----

/// What the peer says of a message with these fields.
fn account_of(control: &Control<'_>) -> Account {
    let mut account = Map::new();
    account.insert("msg_type".into(), text(control.msg_type()));
    for (key, field) in fields(control) {
        let field = match field {
            Field::Bool(value) => json!(value),
            Field::Null => Account::Null,
            Field::Number(number) => json!(number.to_string()),
            Field::Object(text) => json!({"json": text}),
            Field::Slots(slots) => slots.iter().map(slot).collect(),
            Field::Text(points) => json!(points),
        };
        account.insert(key.into(), field);
    }
    if let Control::Ready(ready) = control {
        let scalars = ready.scalar_fields.as_value().raw();
        account.insert("scalar_fields".into(), json!({"json": scalars}));
    }
    for (key, value) in control.extras().iter() {
        account.insert(key.to_string(), value_of(value));
    }
    account.into()
}

fn text(text: Str<'_>) -> Account {
    text.code_points().collect::<Vec<_>>().into()
}

fn slot(slot: &PreallocatedSlot) -> Account {
    let numbers = [slot.offset, slot.size, slot.slot_id, slot.addr];
    json!(numbers.map(|number| number.to_string()))
}

fn value_of(value: Value<'_>) -> Account {
    match value.value_type() {
        ValueType::String => text(value.as_str().unwrap()),
        ValueType::Number => json!(value.raw()),
        ValueType::Bool => json!(value.as_bool().unwrap()),
        ValueType::Object => json!({"json": value.raw()}),
        _ => Account::Null,
    }
}

// ---- messages of our own ----

/// Numbers that look random, the same for one seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.next() % from.len() as u64) as usize]
    }

    fn number(&mut self) -> u64 {
        let any = self.next();
        self.pick(&[0, 1, 512, (1 << 53) + 1, 1 << 63, u64::MAX, any])
    }

    /// A string in JSON, at times with lone surrogates, which no `str` holds.
    fn quoted(&mut self) -> String {
        let mut quoted = String::from("\"");
        for _ in 0..self.next() % 10 {
            let unit = match self.next() % 5 {
                0 => 0xd800 + self.next() % 0x800,
                1 => self.next() % 0x1_0000,
                _ => 0x20 + self.next() % 0x5f,
            };
            quoted += &format!("\\u{unit:04X}");
        }
        quoted + "\""
    }
}

/// Objects as Python writes them, keys once.
const OBJECTS: &[&str] = &[
    "{}",
    r#"{"seed":42,"cfg":7.5,"\u00e9":[1,{"a":null}]}"#,
    r#"{"nan":NaN,"inf":[Infinity,-Infinity],"lone":"\ud800","\udc00":1e-05}"#,
    r#"{"huge":123456789012345678901234567890,"pool":18446744073709551615,"zero":-0.0}"#,
];

/// Such as the Python side writes for a manifest, and stranger ones.
const MANIFESTS: &[&str] = &[
    "{}",
    r#"{"latents":[{"offset":0,"shape":[1,16],"dtype":"bfloat16"}]}"#,
    r#"{"\u00e9":[{"offset":512,"shape":[],"dtype":"float32","list_index":1}],"\ud83d\ude00":[]}"#,
];

/// The texts of one message, in JSON.
struct Texts {
    strings: [String; 4],
    manifest: &'static str,
    scalars: &'static str,
}

/// What `payload` takes turns at.
const KINDS: usize = 17;

impl Texts {
    fn new(random: &mut Random) -> Self {
        Self {
            strings: std::array::from_fn(|_| random.quoted()),
            manifest: random.pick(MANIFESTS),
            scalars: random.pick(OBJECTS),
        }
    }

    /// Whether the peer has a dataclass with just these keys.
    const fn has_class(&self, number: usize) -> bool {
        !matches!(number % KINDS, 4 | 10..=15)
    }

    fn payload(&self, number: usize, random: &mut Random) -> Vec<u8> {
        let [id, session, endpoint, other] = self.strings.each_ref().map(|text| {
            let value = Value::parse(text.as_bytes()).unwrap();
            value.as_str().unwrap()
        });
        let object =
            |text: &'static str| Value::parse(text.as_bytes()).unwrap().as_object().unwrap();
        let (manifest, scalars) = (object(self.manifest), object(self.scalars));
        let at = Location::new(session, random.number(), random.number());
        let staged = Staged::new(id, random.number(), manifest, at, scalars);
        let ready = Ready::new(id, manifest, random.number(), scalars);
        let slots: Vec<_> = (0..random.next() % 4)
            .map(|_| {
                let [offset, size, slot_id, addr] = std::array::from_fn(|_| random.number());
                PreallocatedSlot::new(offset, size, slot_id, addr)
            })
            .collect();
        let mut push = Push::new(id, session, random.number(), random.number());
        let control: Control<'_> = match number % KINDS {
            0 => Alloc::new(id, random.number(), other).into(),
            1 => Allocated::new(id, at, random.number()).into(),
            2 => Done::finished(id).into(),
            3 => Done::failed(id, other).into(),
            4 => Done::staged(staged).into(),
            5 => push.into(),
            6 => Pushed::new(id).into(),
            7 => ready.into(),
            8 => ready.with_preallocated_slot(random.number()).into(),
            9 => {
                let role = random.pick(Role::ALL);
                let (pool, size) = (random.number(), random.number());
                Register::new(role, session, pool, size, endpoint, &slots).into()
            }
            10 => staged.with_staged_for_decoder(false).into(),
            11 => Staged::new(id, 1, manifest, at, None).into(),
            12 => {
                push.extras = object(r#"{"edge_id":"a->b","fanout_total":2,"node":null}"#).into();
                push.into()
            }
            13 => RegisterAck::new().into(),
            14 => return Abort::new(id, session, other).to_vec(),
            15 => {
                // Tokens stand in what is called scalars alone.
                let members = object(r#"{"scalar_fields":{"b":NaN},"n":18446744073709551615}"#);
                Unknown::new("transfer_x", members).unwrap().into()
            }
            _ => {
                let (pool, size) = (random.number(), random.number());
                let none = PreallocatedSlots::EMPTY;
                Register::new(Role::Encoder, session, pool, size, "", none).into()
            }
        };
        control.to_vec()
    }
}

// ---- the process ----

/// The interpreter, and the protocol of the release; `None`, said aloud, if `setup.sh` was not run or
/// found nothing.
fn python() -> Option<(PathBuf, PathBuf)> {
    let interpreter = std::env::var_os("TENSORWIRE_PYTHON");
    let codec = std::env::var_os("TENSORWIRE_CODEC");
    let both = interpreter.zip(codec);
    let Some((interpreter, codec)) = both else {
        let reason =
            "TENSORWIRE_PYTHON and TENSORWIRE_CODEC are not set, see tests/interop/setup.sh";
        // Not `eprintln!`, which the harness captures.
        let mut stderr = std::io::stderr();
        writeln!(
            stderr,
            "SKIP: interop with Python's control messages: {reason}"
        )
        .unwrap();
        return None;
    };
    let protocol = Path::new(&codec).with_file_name("protocol.py");
    assert!(protocol.exists(), "{}", protocol.display());
    Some((interpreter.into(), protocol))
}

/// How long any one thing may take; the start of Python is the slowest.
const PATIENCE: Duration = Duration::from_secs(60);
