//! What a mutation asks of the message that it is done to.

use alloc::string::String;
use alloc::vec::Vec;

use super::Parameters;
use super::choices::Choose;
use super::text::Members;
use crate::error::{DecodeErrorKind, SyntaxError};
use crate::json::ValueType;
use crate::limits::Limits;

/// What has to be in a message, and what has to be left free, for a mutation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// Tensors that have elements, the first of the message.
    pub(super) filled: usize,
    /// Tensors that the mutation adds, empty ones of rank 1.
    pub(super) spare_tensors: usize,
    /// Bytes of payload that it adds.
    pub(super) spare_bytes: usize,
}

impl Needs {
    pub(super) const NOTHING: Self = Self {
        filled: 0,
        spare_tensors: 0,
        spare_bytes: 0,
    };

    /// Tensors that have elements.
    pub(super) const fn filled(filled: usize) -> Self {
        Self {
            filled,
            ..Self::NOTHING
        }
    }

    /// The parameters of the message that is mutated; `None` if they leave no room for the mutation.
    pub(super) fn within(self, parameters: &Parameters) -> Option<Parameters> {
        let tensors = parameters.tensors().checked_sub(self.spare_tensors)?;
        let bytes = parameters.bytes().checked_sub(self.spare_bytes)?;
        let has_rank = self.spare_tensors == 0 || parameters.rank() > 0;
        let filled = self.filled.checked_mul(parameters.least_size());
        // The least size of no dtypes is no number to multiply; nor is it needed.
        let fits = self.filled == 0 || filled.is_some_and(|filled| filled <= bytes);
        (has_rank && fits && self.filled <= tensors)
            .then(|| parameters.clone().with_tensors(tensors).with_bytes(bytes))
    }
}

/// One of the mutations that the parameters leave room for, with what they leave for the message.
///
/// `always` is one that needs nothing, which every kind of message has: it is taken if there is no other.
pub(super) fn choose<M: Copy>(
    (all, always): (&[M], M),
    needs: impl Fn(M) -> Needs,
    choices: &mut dyn Choose,
    parameters: &Parameters,
) -> (M, Parameters) {
    let possible = all.iter().filter_map(|&mutation| {
        let parameters = needs(mutation).within(parameters)?;
        Some((mutation, parameters))
    });
    let possible: Vec<_> = possible.collect();
    let index = choices.up_to(possible.len().saturating_sub(1));
    let chosen = possible.into_iter().nth(index);
    chosen.unwrap_or_else(|| (always, parameters.clone()))
}

/// Puts in a member that no schema knows, with one of these values, and says what is wrong with it.
pub(super) fn note(
    members: &mut Members,
    faults: &[(&str, DecodeErrorKind)],
    choices: &mut dyn Choose,
) -> DecodeErrorKind {
    let (value, kind) = choices
        .of(faults)
        .unwrap_or(("NaN", DecodeErrorKind::NonFinite));
    members.0.insert(0, (NOTE.into(), value.into()));
    kind
}

/// Puts in a member that no schema knows, nested one level deeper than the default cap.
pub(super) fn note_nested(members: &mut Members) -> DecodeErrorKind {
    let limit = Limits::new().depth();
    // The object that the member is of is a level, too.
    let (open, close) = ("[".repeat(limit), "]".repeat(limit));
    members.0.insert(0, (NOTE.into(), [open, close].concat()));
    DecodeErrorKind::DepthLimit { limit }
}

const NOTE: &str = "note";

/// What stands in a text for a byte that is no UTF-8.
const NO_UTF8: char = '\u{e000}';

/// The bytes of a text; one [`NO_UTF8`] becomes what it stands for, where that is asked for.
pub(super) fn bytes(text: String, is_bad: bool) -> Vec<u8> {
    match text.split_once(NO_UTF8) {
        Some((before, after)) if is_bad => [before.as_bytes(), &[0xff], after.as_bytes()].concat(),
        _ => text.into_bytes(),
    }
}

pub(super) const fn wrong_type(expected: ValueType, actual: ValueType) -> DecodeErrorKind {
    DecodeErrorKind::WrongType { expected, actual }
}

const fn syntax(error: SyntaxError) -> DecodeErrorKind {
    DecodeErrorKind::Syntax(error)
}

const fn unexpected(found: u8) -> DecodeErrorKind {
    syntax(SyntaxError::UnexpectedByte { found })
}

/// Values that hold a fault of the JSON text, and what it is.
pub(super) const CONTROL_CHARACTER: &[(&str, DecodeErrorKind)] =
    &[("\"\n\"", syntax(SyntaxError::ControlCharacter))];
pub(super) const INVALID_ESCAPE: &[(&str, DecodeErrorKind)] = &[
    ("\"\\x\"", syntax(SyntaxError::InvalidEscape)),
    ("\"\\u12g4\"", syntax(SyntaxError::InvalidEscape)),
];
pub(super) const INVALID_NUMBER: &[(&str, DecodeErrorKind)] = &[
    ("01", syntax(SyntaxError::InvalidNumber)),
    ("1.", syntax(SyntaxError::InvalidNumber)),
    ("-", syntax(SyntaxError::InvalidNumber)),
    ("1e", syntax(SyntaxError::InvalidNumber)),
];
pub(super) const INVALID_UTF8: &[(&str, DecodeErrorKind)] =
    &[("\"\u{e000}\"", DecodeErrorKind::InvalidUtf8)];
pub(super) const NON_FINITE: &[(&str, DecodeErrorKind)] = &[
    ("NaN", DecodeErrorKind::NonFinite),
    ("Infinity", DecodeErrorKind::NonFinite),
    ("-Infinity", DecodeErrorKind::NonFinite),
];
pub(super) const UNEXPECTED_BYTE: &[(&str, DecodeErrorKind)] = &[
    ("[1,]", unexpected(b']')),
    ("[1 2]", unexpected(b'2')),
    ("True", unexpected(b'T')),
    ("{a:1}", unexpected(b'a')),
    ("'x'", unexpected(b'\'')),
];

/// Values that are no number.
pub(super) const NO_NUMBERS: &[(&str, ValueType)] = &[
    ("true", ValueType::Bool),
    ("null", ValueType::Null),
    ("\"4\"", ValueType::String),
    ("[4]", ValueType::Array),
];
