//! Control messages.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::choices::Choose;
use super::draft::wrong_type;
use super::kinds::{KINDS, Kind, NUMBERED};
use super::mutation::{self, NO_UTF8, Needs, bytes, nested, note};
use super::shown::Shown;
use super::text::{Members, Spelling, scalars};
use super::{FilledSlot, Generated, Mismatch, NearlyValid, Parameters};
use crate::error::{DecodeErrorKind, SchemaKey, SyntaxError};
use crate::json::ValueType;
use crate::limits::Limits;
use crate::message::CONTROL_MARKER;
use crate::transfer::{Control, Role};

/// A valid control message: its frames, and what decoding them has to give.
///
/// Of every type that the protocol has, and of types that it does not have: those are a
/// [`Control::Unknown`].
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "arbitrary")] {
/// use arbitrary::{Arbitrary, Unstructured};
/// use tensorwire::testing::ControlMessage;
/// use tensorwire::transfer::Control;
///
/// let sent = ControlMessage::arbitrary(&mut Unstructured::new(b"\x02from a fuzzer"))?;
/// let frames = sent.frames();
/// sent.compare(&Control::from_frames(&frames)?)?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct ControlMessage {
    payload: Vec<u8>,
    msg_type: &'static str,
    request_id: Option<String>,
}

impl ControlMessage {
    /// Returns its two frames.
    #[must_use]
    pub fn frames(&self) -> [&[u8]; 2] {
        [CONTROL_MARKER, &self.payload]
    }

    /// Returns the second frame, which has all that is said.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Returns its type on the wire: `transfer_push`.
    #[must_use]
    pub const fn msg_type(&self) -> &'static str {
        self.msg_type
    }

    /// Returns the request that it is of, if it is of one.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Holds a decoded message against this one.
    ///
    /// # Errors
    ///
    /// [`Mismatch::MessageType`] or [`Mismatch::RequestId`]; what else a message says is for
    /// [`Control::to_vec`] to show.
    pub fn compare(&self, control: &Control<'_>) -> Result<(), Mismatch> {
        if control.msg_type() != self.msg_type {
            return Err(Mismatch::MessageType);
        }
        let same = match (control.request_id(), &self.request_id) {
            (Some(actual), Some(expected)) => actual == expected.as_str(),
            (None, None) => true,
            _ => false,
        };
        if same {
            Ok(())
        } else {
            Err(Mismatch::RequestId)
        }
    }
}

impl fmt::Debug for ControlMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlMessage")
            .field("payload", &Shown(&self.payload))
            .finish_non_exhaustive()
    }
}

/// What is wrong with a nearly valid control message.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum ControlMutation {
    /// A number is `-1`, `4.0`, `1e2` or `-0`.
    BadInteger,
    /// A raw line feed within a string.
    ControlCharacter,
    /// Values are nested one level deeper than the default cap.
    Depth,
    /// A key is there twice.
    DuplicateKey,
    /// A number is past `u64::MAX`.
    IntegerOverflow,
    /// A number is a text, `null`, or `true`.
    IntegerType,
    /// A byte that is no UTF-8, within a string.
    InvalidUtf8,
    /// `msg_type` or `request_id` is not there.
    MissingKey,
    /// There is no frame at all.
    NoFrames,
    /// The payload is an array.
    NoObject,
    /// There is no second frame.
    NoPayload,
    /// `NaN` outside the scalars.
    NonFinite,
    /// The first frame is not the marker.
    OtherMarker,
    /// A byte follows the payload.
    TrailingData,
    /// The payload lacks its last byte.
    Unclosed,
}

impl Generated for ControlMessage {
    type Mutation = ControlMutation;
    type ErrorKind = DecodeErrorKind;

    const MUTATIONS: &'static [ControlMutation] = &[
        ControlMutation::NoFrames,
        ControlMutation::NoPayload,
        ControlMutation::BadInteger,
        ControlMutation::ControlCharacter,
        ControlMutation::Depth,
        ControlMutation::DuplicateKey,
        ControlMutation::IntegerOverflow,
        ControlMutation::IntegerType,
        ControlMutation::InvalidUtf8,
        ControlMutation::MissingKey,
        ControlMutation::NoObject,
        ControlMutation::NonFinite,
        ControlMutation::OtherMarker,
        ControlMutation::TrailingData,
        ControlMutation::Unclosed,
    ];

    fn generate(choices: &mut dyn Choose, parameters: &Parameters) -> Self {
        let draft = Draft::generate(choices, parameters, KINDS);
        let spelling = draft.spelling;
        let request_id = draft.request_id.clone();
        let (before, after) = (spelling.white(choices), spelling.white(choices));
        let object = draft.members.of_schema(spelling, choices);
        Self {
            payload: [before, &object, after].concat().into_bytes(),
            msg_type: draft.msg_type,
            request_id,
        }
    }

    fn generate_nearly(choices: &mut dyn Choose, parameters: &Parameters) -> NearlyValid<Self> {
        let needs = |_| Needs::NOTHING;
        let chosen = mutation::choose(Self::MUTATIONS, needs, choices, parameters);
        let (mutation, parameters) =
            chosen.unwrap_or_else(|| (ControlMutation::NoFrames, parameters.clone()));
        // One of a request, with a number that it has to have.
        let draft = Draft::generate(choices, &parameters, NUMBERED);
        let (frames, kind) = draft.mutated(mutation, choices);
        NearlyValid::new(frames, mutation, kind)
    }
}

/// A control message before it is written.
struct Draft {
    msg_type: &'static str,
    request_id: Option<String>,
    members: Members,
    spelling: Spelling,
}

impl Draft {
    fn generate(choices: &mut dyn Choose, parameters: &Parameters, kinds: &[Kind]) -> Self {
        let spelling = Spelling::choose(choices, parameters);
        let kind = choices.of(kinds).unwrap_or(Kind::Pushed);
        let mut draft = Self {
            msg_type: kind.msg_type(),
            request_id: None,
            members: Members::default(),
            spelling,
        };
        let quoted = spelling.quoted(draft.msg_type, choices);
        draft.members.push(MSG_TYPE, quoted);
        if !matches!(kind, Kind::Register | Kind::RegisterAck) {
            draft.request(choices);
        }
        draft.rest(kind, choices, parameters);
        draft
    }

    /// What stands after the type and the request, in Python's order.
    fn rest(&mut self, kind: Kind, choices: &mut dyn Choose, parameters: &Parameters) {
        match kind {
            Kind::Alloc => {
                self.number("data_size", choices);
                let role = choices.of(Role::ALL).map_or("", Role::name);
                self.text("source_role", role, choices);
            }
            Kind::Allocated => {
                self.location(choices);
                self.number("slot_size", choices);
            }
            Kind::DoneFailed => self.text("error", choices.text(ERRORS), choices),
            Kind::DoneFinished => self.members.push("error", "null"),
            Kind::DoneStaged | Kind::StagedImage => {
                let for_decoder = kind == Kind::DoneStaged;
                self.members
                    .push("staged_for_decoder", for_decoder.to_string());
                self.location(choices);
                self.number("data_size", choices);
                self.manifest(choices, parameters);
                self.scalars(choices, parameters);
            }
            Kind::Push => {
                self.text("dest_session_id", choices.text(SESSIONS), choices);
                self.number("dest_addr", choices);
                self.number("transfer_size", choices);
            }
            Kind::Pushed | Kind::RegisterAck => {}
            Kind::Ready => {
                self.manifest(choices, parameters);
                self.number("slot_offset", choices);
                self.scalars(choices, parameters);
            }
            Kind::Register => {
                let role = choices.of(Role::ALL).map_or("", Role::name);
                self.text("role", role, choices);
                self.text("session_id", choices.text(SESSIONS), choices);
                self.number("pool_ptr", choices);
                self.number("pool_size", choices);
                self.text("work_endpoint", choices.text(ENDPOINTS), choices);
                let slots = 0..choices.up_to(3);
                let slots: Vec<_> = slots.map(|_| self.slot(choices)).collect();
                let slots = self.spelling.array(&slots, choices);
                self.members.push("preallocated_slots", slots);
            }
            Kind::Staged => {
                self.number("data_size", choices);
                self.manifest(choices, parameters);
                self.location(choices);
                // The oldest generation has none.
                if !choices.one_in(4) {
                    self.scalars(choices, parameters);
                }
            }
            Kind::Unknown => {
                self.text("transfer_id", choices.text(SESSIONS), choices);
                self.text("reason", choices.text(ERRORS), choices);
            }
        }
    }

    fn request(&mut self, choices: &mut dyn Choose) {
        let request = choices.text(REQUESTS);
        self.text("request_id", request, choices);
        self.request_id = Some(request.to_string());
    }

    fn text(&mut self, key: &str, text: &str, choices: &mut dyn Choose) {
        let quoted = self.spelling.quoted(text, choices);
        self.members.push(key, quoted);
    }

    fn number(&mut self, key: &str, choices: &mut dyn Choose) {
        self.members.push(key, number(choices));
    }

    fn location(&mut self, choices: &mut dyn Choose) {
        self.text("session_id", choices.text(SESSIONS), choices);
        self.number("pool_ptr", choices);
        self.number("slot_offset", choices);
    }

    fn manifest(&mut self, choices: &mut dyn Choose, parameters: &Parameters) {
        let slot = FilledSlot::generate(choices, parameters);
        self.members.push("manifest", slot.manifest());
    }

    fn scalars(&mut self, choices: &mut dyn Choose, parameters: &Parameters) {
        let scalars = scalars(choices, parameters, self.spelling);
        self.members.push("scalar_fields", scalars);
    }

    fn slot(&self, choices: &mut dyn Choose) -> String {
        let mut members = Members::default();
        for key in ["offset", "size", "slot_id", "addr"] {
            members.push(key, number(choices));
        }
        members.of_schema(self.spelling, choices)
    }

    /// The frames after a mutation, and what a decoder has to say of them.
    fn mutated(
        mut self,
        mutation: ControlMutation,
        choices: &mut dyn Choose,
    ) -> (Vec<Vec<u8>>, DecodeErrorKind) {
        let kind = self.mutate(mutation, choices);
        let mut payload = self.members.of_schema(self.spelling, choices);
        match mutation {
            ControlMutation::NoObject => payload = format!("[{payload}]"),
            ControlMutation::TrailingData => payload.push_str(choices.text(&["}", "{}", "0", ","])),
            ControlMutation::Unclosed => drop(payload.pop()),
            _ => {}
        }
        let marker = match mutation {
            ControlMutation::OtherMarker => choices.of(NO_MARKERS).unwrap_or_default(),
            _ => CONTROL_MARKER,
        };
        let payload = bytes(payload, mutation == ControlMutation::InvalidUtf8);
        let mut frames = alloc::vec![marker.to_vec(), payload];
        match mutation {
            ControlMutation::NoFrames => frames.clear(),
            ControlMutation::NoPayload => frames.truncate(1),
            _ => {}
        }
        (frames, kind)
    }

    /// Does to the payload what is done to it before it is written.
    fn mutate(&mut self, mutation: ControlMutation, choices: &mut dyn Choose) -> DecodeErrorKind {
        use ControlMutation as M;

        let mut noted = |value: &str, kind| {
            note(&mut self.members, value);
            kind
        };
        match mutation {
            M::BadInteger => {
                self.set_number(choices.text(&["-1", "4.0", "1e2", "-0"]));
                DecodeErrorKind::BadInteger
            }
            M::ControlCharacter => {
                let error = SyntaxError::ControlCharacter;
                noted("\"\n\"", DecodeErrorKind::Syntax(error))
            }
            M::Depth => {
                let limit = Limits::new().depth();
                noted(&nested(limit), DecodeErrorKind::DepthLimit { limit })
            }
            M::DuplicateKey => {
                self.members.repeat(choices);
                DecodeErrorKind::DuplicateKey
            }
            M::IntegerOverflow => {
                self.set_number("18446744073709551616");
                DecodeErrorKind::IntegerOverflow
            }
            M::IntegerType => {
                let (value, actual) = choices.of(NO_NUMBERS).unwrap_or(("[]", ValueType::Array));
                self.set_number(value);
                wrong_type(ValueType::Number, actual)
            }
            M::InvalidUtf8 => noted(&format!("\"{NO_UTF8}\""), DecodeErrorKind::InvalidUtf8),
            M::MissingKey => {
                let keys = [
                    (SchemaKey::MsgType, MSG_TYPE),
                    (SchemaKey::RequestId, "request_id"),
                ];
                let (key, name) = choices.of(&keys).unwrap_or((SchemaKey::MsgType, MSG_TYPE));
                self.members.remove(name);
                DecodeErrorKind::MissingKey(key)
            }
            M::NoFrames => DecodeErrorKind::NoFrames,
            M::NoObject => wrong_type(ValueType::Object, ValueType::Array),
            M::NoPayload => DecodeErrorKind::NoPayload,
            M::NonFinite => noted("NaN", DecodeErrorKind::NonFinite),
            M::OtherMarker => DecodeErrorKind::NotControlMessage,
            M::TrailingData => DecodeErrorKind::TrailingData,
            M::Unclosed => DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd),
        }
    }

    /// Gives the number of a message of [`NUMBERED`] another value.
    fn set_number(&mut self, value: &str) {
        for key in ["data_size", "slot_size", "transfer_size"] {
            self.members.set(key, value);
        }
    }
}

const MSG_TYPE: &str = "msg_type";
const REQUESTS: &[&str] = &["r1", "wan-test-001", "", "caf\u{e9}", "a\"b\\c\n"];
const SESSIONS: &[&str] = &["127.0.0.1:7001", "h:1", "", "\u{1f600}"];
const ENDPOINTS: &[&str] = &["tcp://127.0.0.1:5556", ""];
const ERRORS: &[&str] = &["out of memory", "", "line 1\nline 2", "\u{7f}"];

/// Texts that are no number.
const NO_NUMBERS: &[(&str, ValueType)] = &[
    ("\"4\"", ValueType::String),
    ("null", ValueType::Null),
    ("true", ValueType::Bool),
    ("[4]", ValueType::Array),
];

/// Frames that come close to the marker.
const NO_MARKERS: &[&[u8]] = &[b"__transfer_", b"__transfer__\0", b"", b"__TRANSFER__"];

/// An address, an offset or a length.
fn number(choices: &mut dyn Choose) -> &'static str {
    choices.text(&[
        "0",
        "1",
        "512",
        "1048576",
        "4294967296",
        "9223372036854775808",
        "18446744073709551615",
    ])
}
