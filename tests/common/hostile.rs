//! The recorded hostile messages, and the verdict on each.

use tensorwire::error::{DecodeErrorKind, SchemaKey, SyntaxError};
use tensorwire::json::ValueType;

use DecodeErrorKind::*;
use Verdict::{Accept, Reject};

/// What is to become of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Accept,
    /// The kind, the offset, and the descriptor that it is about.
    Reject(DecodeErrorKind, usize, Option<usize>),
}

impl Verdict {
    pub(crate) fn of<T>(result: &Result<T, tensorwire::error::DecodeError>) -> Self {
        match result {
            Ok(_) => Accept,
            Err(error) => Reject(error.kind(), error.offset(), error.descriptor()),
        }
    }
}

/// The message of a recorded case: what its list begins with is its description.
pub(crate) fn message(case: &serde_json::Value) -> Vec<Vec<u8>> {
    let mut frames = super::frames(case);
    let description = frames.remove(0);
    let expected = case["description"].as_str().unwrap();
    assert_eq!(str::from_utf8(&description).unwrap().trim_end(), expected);
    frames
}

const fn wrong_type(expected: ValueType, actual: ValueType) -> DecodeErrorKind {
    WrongType { expected, actual }
}

const fn frame_count(expected: usize, actual: usize) -> DecodeErrorKind {
    FrameCount { expected, actual }
}

const fn frame_length(expected: usize, actual: usize) -> DecodeErrorKind {
    FrameLength { expected, actual }
}

const fn unexpected(found: u8) -> DecodeErrorKind {
    Syntax(SyntaxError::UnexpectedByte { found })
}

// Most cases have one descriptor, named `x`. This is where its parts start.

/// `{"tensor_descriptors":` stands before it.
const LIST: usize = 22;
const FIRST: usize = LIST + 1;
/// The value of `field_name`.
const NAME: usize = FIRST + r#"{"field_name":"#.len();
/// The value of `shape`.
const SHAPE: usize = NAME + r#""x","shape":"#.len();
/// The first dimension.
const DIM: usize = SHAPE + 1;
/// The value of `dtype`, after the shape `[1]`.
const DTYPE: usize = DIM + r#"1],"dtype":"#.len();
/// The value of `list_index`, after the dtype `float32`.
const LIST_INDEX: usize = DTYPE + r#""float32","list_index":"#.len();
/// The second descriptor, if the first has the shape `[1]` and no `list_index`.
const SECOND: usize = DTYPE + r#""float32"},"#.len();
/// The value of `scalar_fields`, after an empty list of descriptors.
const SCALARS: usize = LIST + r#"[],"scalar_fields":"#.len();

/// Every recorded case in order: its id, and the verdict with the default options.
#[rustfmt::skip]
pub(crate) const CASES: &[(&str, Verdict)] = &[
    ("E02", Reject(Syntax(SyntaxError::UnexpectedEnd), 0, None)),
    ("E04", Reject(wrong_type(ValueType::Object, ValueType::Null), 0, None)),
    ("E05", Reject(wrong_type(ValueType::Object, ValueType::Array), 0, None)),
    ("E06", Reject(wrong_type(ValueType::Object, ValueType::Number), 0, None)),
    ("E07", Reject(wrong_type(ValueType::Object, ValueType::String), 0, None)),
    ("E09", Accept),
    ("E10", Reject(wrong_type(ValueType::Object, ValueType::Null), SCALARS, None)),
    ("E11", Reject(wrong_type(ValueType::Object, ValueType::Array), SCALARS, None)),
    ("E12", Reject(wrong_type(ValueType::Array, ValueType::Null), LIST, None)),
    ("E13", Reject(wrong_type(ValueType::Array, ValueType::Object), LIST, None)),
    ("E14", Reject(wrong_type(ValueType::Array, ValueType::Object), LIST, None)),
    ("E16", Accept),
    // The second key, after `"shape":[9],`.
    ("E18", Reject(DuplicateKey, 53, Some(0))),
    ("E19", Reject(TrailingData, 44, None)),
    ("E21", Accept),
    ("E23", Reject(unexpected(0xef), 0, None)),
    // UTF-16 of ASCII text is UTF-8 with a NUL at every other byte.
    ("E24", Reject(unexpected(0), 1, None)),
    ("E25", Reject(InvalidUtf8, 0, None)),
    ("E26", Reject(unexpected(0), 0, None)),
    ("E27", Accept),
    ("E28", Reject(InvalidName, NAME, Some(0))),
    ("E30", Reject(InvalidUtf8, NAME + 1, None)),
    ("E31", Reject(InvalidUtf8, NAME + 1, None)),
    ("E32", Accept),
    ("E33", Reject(Syntax(SyntaxError::ControlCharacter), NAME + 2, Some(0))),
    // The first bracket is level 3, behind `{"a":`; the one refused is level 129.
    ("E35", Reject(DepthLimit { limit: 128 }, SCALARS + 5 + 126, None)),
    // Level 129, of five bytes each.
    ("E36b", Reject(DepthLimit { limit: 128 }, 5 * 128, None)),
    ("E37", Accept),
    ("E38", Accept),
    ("E39", Accept),
    ("E40", Accept),
    ("E42", Reject(unexpected(b'}'), 44, None)),
    ("E44", Reject(Syntax(SyntaxError::UnexpectedEnd), 45, Some(0))),
    ("E45", Reject(frame_count(3, 1), LIST, None)),
    ("E46", Reject(frame_count(1, 2), LIST, None)),
    ("E47", Reject(frame_count(1, 2), LIST, None)),
    ("E49", Reject(ControlMessage, 0, None)),
    ("E50", Reject(unexpected(0x0b), 1, None)),
    // At the backslash, behind `{"a":"`.
    ("E51", Reject(Syntax(SyntaxError::InvalidEscape), SCALARS + 6, None)),
    ("E52", Reject(Syntax(SyntaxError::InvalidEscape), SCALARS + 6, None)),
    ("E53", Reject(Syntax(SyntaxError::InvalidEscape), SCALARS + 6, None)),
    ("D01", Reject(BadDim, DIM, Some(0))),
    ("D02", Reject(BadDim, DIM, Some(0))),
    ("D03", Reject(BadDim, DIM, Some(0))),
    ("D04b", Reject(BadDim, DIM, Some(0))),
    ("D05", Accept),
    ("D07", Reject(frame_length(0, 4), FIRST, Some(0))),
    ("D08", Reject(frame_length(4, 0), FIRST, Some(0))),
    ("D09", Accept),
    ("D10b", Reject(frame_length(4, 0), FIRST, Some(0))),
    ("D11", Reject(BadDim, DIM, Some(0))),
    ("D13", Reject(BadDim, DIM, Some(0))),
    ("D14", Reject(DimOverflow, DIM, Some(0))),
    ("D15", Reject(DimOverflow, DIM, Some(0))),
    ("D16", Reject(DimOverflow, DIM, Some(0))),
    ("D17", Reject(ShapeOverflow, DIM, Some(0))),
    ("D17b", Reject(ShapeOverflow, DIM, Some(0))),
    ("D18", Reject(ShapeOverflow, DIM, Some(0))),
    ("D20", Reject(ShapeOverflow, DIM, Some(0))),
    ("D20b", Reject(ShapeOverflow, DIM, Some(0))),
    ("D21", Reject(ShapeOverflow, DIM, Some(0))),
    ("D21b", Reject(ShapeOverflow, DIM, Some(0))),
    ("D22", Reject(wrong_type(ValueType::Number, ValueType::Bool), DIM, Some(0))),
    ("D23", Reject(wrong_type(ValueType::Number, ValueType::Null), DIM, Some(0))),
    ("D24", Reject(wrong_type(ValueType::Number, ValueType::String), DIM, Some(0))),
    ("D26", Reject(wrong_type(ValueType::Array, ValueType::Null), SHAPE, Some(0))),
    ("D28", Reject(wrong_type(ValueType::Array, ValueType::String), SHAPE, Some(0))),
    ("D29", Reject(wrong_type(ValueType::Array, ValueType::Object), SHAPE, Some(0))),
    ("D29b", Reject(wrong_type(ValueType::Array, ValueType::Bool), SHAPE, Some(0))),
    // At the digit behind the zero.
    ("D30", Reject(Syntax(SyntaxError::InvalidNumber), DIM + 1, Some(0))),
    ("D31b", Reject(BadDim, DIM, Some(0))),
    ("D32", Reject(frame_length(8, 4), FIRST, Some(0))),
    ("D34", Reject(frame_length(4, 3), FIRST, Some(0))),
    ("D35", Reject(frame_length(4, 8), FIRST, Some(0))),
    ("D36", Accept),
    ("D37", Accept),
    // At dimension 65, of two bytes each.
    ("D39", Reject(RankLimit { limit: 64 }, DIM + 2 * 64, Some(0))),
    ("D39b", Reject(MetadataLimit { limit: 1 << 20, actual: 2_000_090 }, 0, None)),
    ("D40a", Reject(frame_length(2, 4), FIRST, Some(0))),
    ("D40b", Accept),
    ("D40c", Reject(frame_length(8, 4), FIRST, Some(0))),
    ("D40e", Reject(frame_length(8, 4), FIRST, Some(0))),
    ("D40g", Reject(UnknownDType, DTYPE, Some(0))),
    ("D40h", Reject(UnknownDType, DTYPE, Some(0))),
    ("D40i", Reject(UnknownDType, DTYPE, Some(0))),
    ("D40j", Reject(UnknownDType, DTYPE, Some(0))),
    ("D40k", Reject(UnknownDType, DTYPE, Some(0))),
    ("D40l", Reject(wrong_type(ValueType::String, ValueType::Null), DTYPE, Some(0))),
    ("D40n", Reject(wrong_type(ValueType::String, ValueType::Array), DTYPE, Some(0))),
    ("D41", Accept),
    ("D42", Reject(frame_length(2, 1), FIRST, Some(0))),
    ("D43", Accept),
    ("D45", Reject(MissingKey(SchemaKey::Shape), FIRST, Some(0))),
    ("D47", Reject(wrong_type(ValueType::String, ValueType::Null), NAME, Some(0))),
    ("D48", Reject(wrong_type(ValueType::String, ValueType::Number), NAME, Some(0))),
    ("D49", Reject(wrong_type(ValueType::String, ValueType::Array), NAME, Some(0))),
    ("D51", Accept),
    ("D53", Reject(wrong_type(ValueType::Object, ValueType::Array), FIRST, Some(0))),
    ("D54", Reject(wrong_type(ValueType::Object, ValueType::String), FIRST, Some(0))),
    ("D55", Reject(DuplicateField, SECOND, Some(1))),
    ("L01", Accept),
    ("L02", Reject(BadListIndex, LIST_INDEX, Some(0))),
    ("L03", Reject(BadListIndex, LIST_INDEX, Some(0))),
    ("L05", Reject(BadListIndex, LIST_INDEX, Some(0))),
    ("L07", Reject(BadListIndex, LIST_INDEX, Some(0))),
    ("L07b", Reject(BadListIndex, LIST_INDEX, Some(0))),
    ("L07c", Reject(BadListIndex, LIST_INDEX, Some(0))),
    ("L07e", Reject(BadListIndex, LIST_INDEX, Some(0))),
    ("L08", Reject(ListIndexLimit { limit: 4096 }, LIST_INDEX, Some(0))),
    ("L09", Reject(ListIndexLimit { limit: 4096 }, LIST_INDEX, Some(0))),
    ("L11", Reject(ListIndexLimit { limit: 4096 }, LIST_INDEX, Some(0))),
    // `0},` closes the first.
    ("L13", Reject(DuplicateListIndex { list_index: 0 }, LIST_INDEX + 3, Some(1))),
    ("L14", Accept),
    ("L15", Accept),
    ("L16", Reject(DuplicateField, SECOND, Some(1))),
    ("L17", Reject(MixedField, LIST_INDEX + 3, Some(1))),
    ("L18", Reject(MixedField, SECOND, Some(1))),
    ("L20", Accept),
];

/// What the oldest generation of peers makes of the newer dtypes.
pub(crate) const OLDEST: &[(&str, Verdict)] = &[
    ("D40a", Reject(UnknownDType, DTYPE, Some(0))),
    ("D40b", Reject(UnknownDType, DTYPE, Some(0))),
    ("D40c", Reject(UnknownDType, DTYPE, Some(0))),
    ("D40e", Reject(UnknownDType, DTYPE, Some(0))),
];

/// What strict JSON makes of Python's tokens.
pub(crate) const STRICT: &[(&str, Verdict)] = &[("E27", Reject(NonFinite, SCALARS + 5, None))];

/// The verdict on a case where `changes` differ from the default options.
pub(crate) fn verdict(changes: &[(&str, Verdict)], id: &str) -> Verdict {
    let find = |table: &[(&str, Verdict)]| {
        let case = table.iter().find(|(name, _)| *name == id);
        case.map(|&(_, verdict)| verdict)
    };
    find(changes).or_else(|| find(CASES)).unwrap()
}
