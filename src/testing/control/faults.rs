//! What can be wrong with a control message.

use alloc::format;
use alloc::vec::Vec;

use super::draft::{Draft, SLOT};
use super::kinds::{KINDS, Kind};
use crate::error::{DecodeErrorKind, SchemaKey, SyntaxError};
use crate::json::ValueType;
use crate::message::CONTROL_MARKER;
use crate::testing::choices::Choose;
use crate::testing::mutation::{
    CONTROL_CHARACTER, INVALID_ESCAPE, INVALID_NUMBER, INVALID_UTF8, NO_NUMBERS, NON_FINITE,
    UNEXPECTED_BYTE, bytes, note, note_nested, wrong_type,
};
use crate::testing::text::Members;

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
    /// A text, the manifest or the list of slots is of another type.
    FieldType,
    /// A number is past `u64::MAX`.
    IntegerOverflow,
    /// A number is a text, `null`, `true` or a list.
    IntegerType,
    /// `\x` within a string, or another escape that there is none of.
    InvalidEscape,
    /// A number with a leading zero, or without its last digits.
    InvalidNumber,
    /// A byte that is no UTF-8, within a string.
    InvalidUtf8,
    /// A key that this type of message, or a slot of it, has to have is not there.
    MissingKey,
    /// There is no frame at all.
    NoFrames,
    /// The payload is an array.
    NoObject,
    /// There is no second frame.
    NoPayload,
    /// `NaN` or `Infinity` outside the scalars.
    NonFinite,
    /// The first frame is not the marker.
    OtherMarker,
    /// A byte follows the payload.
    TrailingData,
    /// The payload lacks its last byte.
    Unclosed,
    /// A byte that cannot stand where it stands: `[1,]`, `True`.
    UnexpectedByte,
}

impl ControlMutation {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::NoFrames,
        Self::NoPayload,
        Self::BadInteger,
        Self::ControlCharacter,
        Self::Depth,
        Self::DuplicateKey,
        Self::FieldType,
        Self::IntegerOverflow,
        Self::IntegerType,
        Self::InvalidEscape,
        Self::InvalidNumber,
        Self::InvalidUtf8,
        Self::MissingKey,
        Self::NoObject,
        Self::NonFinite,
        Self::OtherMarker,
        Self::TrailingData,
        Self::Unclosed,
        Self::UnexpectedByte,
    ];

    /// The types of messages that this can be done to.
    pub(super) fn kinds(self) -> Vec<Kind> {
        let fits = |kind: &Kind| match self {
            Self::BadInteger | Self::IntegerOverflow | Self::IntegerType => {
                let mut keys = kind.demanded().iter();
                keys.any(|key| field_type(*key) == ValueType::Number)
            }
            Self::DuplicateKey | Self::FieldType | Self::MissingKey => !kind.demanded().is_empty(),
            _ => true,
        };
        KINDS.iter().copied().filter(fits).collect()
    }
}

impl Draft {
    /// The frames after a mutation, and what a decoder has to say of them.
    pub(super) fn mutated(
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

        let members = &mut self.members;
        match mutation {
            M::BadInteger => {
                self.set_number(choices.text(&["-1", "4.0", "1e2", "-0"]), choices);
                DecodeErrorKind::BadInteger
            }
            M::ControlCharacter => note(members, CONTROL_CHARACTER, choices),
            M::Depth => note_nested(members),
            M::DuplicateKey => {
                members.repeat(choices);
                DecodeErrorKind::DuplicateKey
            }
            M::FieldType => self.set_type(choices),
            M::IntegerOverflow => {
                self.set_number("18446744073709551616", choices);
                DecodeErrorKind::IntegerOverflow
            }
            M::IntegerType => {
                let (value, actual) = choices.of(NO_NUMBERS).unwrap_or(("[]", ValueType::Array));
                self.set_number(value, choices);
                wrong_type(ValueType::Number, actual)
            }
            M::InvalidEscape => note(members, INVALID_ESCAPE, choices),
            M::InvalidNumber => note(members, INVALID_NUMBER, choices),
            M::InvalidUtf8 => note(members, INVALID_UTF8, choices),
            M::MissingKey => self.remove(choices),
            M::NoFrames => DecodeErrorKind::NoFrames,
            M::NoObject => wrong_type(ValueType::Object, ValueType::Array),
            M::NoPayload => DecodeErrorKind::NoPayload,
            M::NonFinite => note(members, NON_FINITE, choices),
            M::OtherMarker => DecodeErrorKind::NotControlMessage,
            M::TrailingData => DecodeErrorKind::TrailingData,
            M::Unclosed => DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd),
            M::UnexpectedByte => note(members, UNEXPECTED_BYTE, choices),
        }
    }

    /// The keys that have to be there, of those that `fits`.
    fn demanded(&self, fits: impl Fn(&SchemaKey) -> bool) -> Vec<SchemaKey> {
        let keys = self.kind.demanded().iter().copied();
        keys.filter(fits).collect()
    }

    /// Gives a number another value.
    fn set_number(&mut self, value: &str, choices: &mut dyn Choose) {
        let keys = self.demanded(|key| field_type(*key) == ValueType::Number);
        if let Some(key) = choices.of(&keys) {
            self.members.set(key.name(), value);
        }
    }

    /// Gives what is no number a value of another type.
    fn set_type(&mut self, choices: &mut dyn Choose) -> DecodeErrorKind {
        let mut keys = self.demanded(|key| field_type(*key) != ValueType::Number);
        if self.kind == Kind::Register {
            keys.push(SchemaKey::PreallocatedSlots);
        }
        let key = choices.of(&keys).unwrap_or(SchemaKey::RequestId);
        let expected = field_type(key);
        let others = NO_TEXTS.iter().copied();
        let others: Vec<_> = others.filter(|&(_, actual)| actual != expected).collect();
        let (value, actual) = choices.of(&others).unwrap_or(("7", ValueType::Number));
        self.members.set(key.name(), value);
        wrong_type(expected, actual)
    }

    /// Takes a key out.
    fn remove(&mut self, choices: &mut dyn Choose) -> DecodeErrorKind {
        let mut keys = self.demanded(|_| true);
        keys.insert(0, SchemaKey::MsgType);
        if self.kind == Kind::Register {
            keys.extend(SLOT);
        }
        let key = choices.of(&keys).unwrap_or(SchemaKey::MsgType);
        if SLOT.contains(&key) {
            let mut slot = Members::default();
            for other in SLOT.iter().filter(|&&other| other != key) {
                slot.push(other.name(), "0");
            }
            let slot = slot.of_schema(self.spelling, choices);
            let slots = self.spelling.array(&[slot], choices);
            self.members.set(SchemaKey::PreallocatedSlots.name(), slots);
        } else {
            self.members.remove(key.name());
        }
        DecodeErrorKind::MissingKey(key)
    }
}

/// The type of a value by its key, of those that have to be there.
const fn field_type(key: SchemaKey) -> ValueType {
    match key {
        SchemaKey::DestSessionId
        | SchemaKey::RequestId
        | SchemaKey::Role
        | SchemaKey::SessionId => ValueType::String,
        SchemaKey::Manifest => ValueType::Object,
        SchemaKey::PreallocatedSlots => ValueType::Array,
        _ => ValueType::Number,
    }
}

/// Values that are no text, or no list.
const NO_TEXTS: &[(&str, ValueType)] = &[
    ("7", ValueType::Number),
    ("null", ValueType::Null),
    ("false", ValueType::Bool),
    ("[]", ValueType::Array),
    ("\"{}\"", ValueType::String),
];

/// Frames that come close to the marker.
const NO_MARKERS: &[&[u8]] = &[b"__transfer_", b"__transfer__\0", b"", b"__TRANSFER__"];
