//! What can be wrong with what describes one tensor, in a message or in a manifest.

use alloc::format;
use alloc::string::{String, ToString};

use super::choices::Choose;
use super::mutation::{NO_NUMBERS, wrong_type};
use crate::error::DecodeErrorKind;
use crate::json::ValueType;
use crate::limits::Limits;

/// A value that one of the keys cannot have, and what is wrong with it.
pub(super) struct Fault {
    pub(super) key: &'static str,
    pub(super) value: String,
    pub(super) kind: DecodeErrorKind,
}

impl Fault {
    pub(super) fn new(key: &'static str, value: impl Into<String>, kind: DecodeErrorKind) -> Self {
        Self {
            key,
            value: value.into(),
            kind,
        }
    }

    pub(super) fn bad_dim(choices: &mut dyn Choose) -> Self {
        let dim = choices.text(NO_LENGTHS);
        Self::new(SHAPE, format!("[{dim}]"), DecodeErrorKind::BadDim)
    }

    /// `lowest` is the first number that is none: -1, where that says that there is no list.
    pub(super) fn bad_list_index(lowest: &'static str, choices: &mut dyn Choose) -> Self {
        let index = choices.text(&[lowest, "0.0", "1e2", "-0", "null", "\"0\"", "false"]);
        Self::new(LIST_INDEX, index, DecodeErrorKind::BadListIndex)
    }

    pub(super) fn dim_overflow() -> Self {
        let dim = isize::MAX.unsigned_abs().saturating_add(1);
        Self::new(SHAPE, format!("[{dim}]"), DecodeErrorKind::DimOverflow)
    }

    pub(super) fn dim_type(choices: &mut dyn Choose) -> Self {
        let (dim, actual) = choices.of(NO_NUMBERS).unwrap_or(("null", ValueType::Null));
        let kind = wrong_type(ValueType::Number, actual);
        Self::new(SHAPE, format!("[{dim}]"), kind)
    }

    pub(super) fn field_type(choices: &mut dyn Choose) -> Self {
        let (key, value, expected, actual) = choices.of(WRONG_TYPES).unwrap_or(NO_SHAPE);
        Self::new(key, value, wrong_type(expected, actual))
    }

    pub(super) fn list_index() -> Self {
        let limit = Limits::new().list_index();
        let kind = DecodeErrorKind::ListIndexLimit { limit };
        Self::new(LIST_INDEX, limit.saturating_add(1).to_string(), kind)
    }

    /// A text between quotes that is no name.
    pub(super) fn lone_surrogate(key: &'static str, choices: &mut dyn Choose) -> Self {
        let name = choices.text(&["\"\\ud800\"", "\"a\\udfff\""]);
        Self::new(key, name, DecodeErrorKind::InvalidName)
    }

    /// The same of a text that is too long.
    pub(super) fn name_length(key: &'static str) -> Self {
        let limit = Limits::new().name_bytes();
        let actual = limit.saturating_add(1);
        let kind = DecodeErrorKind::NameLimit { limit, actual };
        Self::new(key, format!("\"{}\"", "n".repeat(actual)), kind)
    }

    pub(super) fn rank() -> Self {
        let limit = Limits::new().rank();
        let dims = alloc::vec!["1"; limit.saturating_add(1)];
        let kind = DecodeErrorKind::RankLimit { limit };
        Self::new(SHAPE, format!("[{}]", dims.join(",")), kind)
    }

    pub(super) fn shape_overflow(choices: &mut dyn Choose) -> Self {
        let half = (isize::MAX.unsigned_abs() >> 1).saturating_add(1);
        let shape = if choices.one_in(2) {
            format!("[{half},2]")
        } else {
            format!("[{half},0,{half}]")
        };
        Self::new(SHAPE, shape, DecodeErrorKind::ShapeOverflow)
    }

    pub(super) fn unknown_dtype(choices: &mut dyn Choose) -> Self {
        let dtype = choices.text(&["\"float31\"", "\"bf16\"", "\"\"", "\"torch.float32\""]);
        Self::new(DTYPE, dtype, DecodeErrorKind::UnknownDType)
    }
}

pub(super) const SHAPE: &str = "shape";
pub(super) const DTYPE: &str = "dtype";
pub(super) const LIST_INDEX: &str = "list_index";

/// Numbers that are no length, and no offset.
pub(super) const NO_LENGTHS: &[&str] = &["-1", "4.0", "1e2", "-0"];

/// Keys, values of another type than theirs, and both types.
const WRONG_TYPES: &[(&str, &str, ValueType, ValueType)] = &[
    NO_SHAPE,
    (SHAPE, "\"[2,3]\"", ValueType::Array, ValueType::String),
    (DTYPE, "null", ValueType::String, ValueType::Null),
    (DTYPE, "[\"int8\"]", ValueType::String, ValueType::Array),
];
const NO_SHAPE: (&str, &str, ValueType, ValueType) =
    (SHAPE, "6", ValueType::Array, ValueType::Number);
