//! A tensor message before it is written, and what can be done to it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::choices::Choose;
use super::mutation::{NO_UTF8, bytes, nested, note};
use super::tensors::{tensors, unique};
use super::text::{Members, Spelling, scalars};
use super::{MessageMutation, Parameters, Tensor};
use crate::dtype::DType;
use crate::error::{DecodeErrorKind, SchemaKey, SyntaxError};
use crate::json::ValueType;
use crate::limits::Limits;
use crate::message::CONTROL_MARKER;

/// A tensor message before it is written.
pub(super) struct Draft {
    pub(super) tensors: Vec<Tensor>,
    pub(super) scalars: String,
    spelling: Spelling,
    descriptors: Vec<Members>,
    /// Those of the metadata, but for the descriptors.
    members: Members,
}

impl Draft {
    pub(super) fn generate(
        choices: &mut dyn Choose,
        parameters: &Parameters,
        filled: usize,
    ) -> Self {
        let spelling = Spelling::choose(choices, parameters);
        let mut tensors = tensors(choices, parameters, filled);
        // Those that have to have elements stay in front.
        if let Some((_, rest)) = tensors.split_at_mut_checked(filled)
            && choices.one_in(3)
        {
            choices.shuffle(rest);
        }
        let scalars = scalars(choices, parameters, spelling);
        let mut members = Members::default();
        if scalars != "{}" || !spelling.other_keys {
            members.push(SCALARS, scalars.clone());
        }
        let mut draft = Self {
            descriptors: Vec::new(),
            tensors,
            scalars,
            spelling,
            members,
        };
        for tensor in &draft.tensors {
            let descriptor = draft.descriptor(tensor, choices);
            draft.descriptors.push(descriptor);
        }
        draft
    }

    /// What describes a tensor, in Python's order.
    fn descriptor(&self, tensor: &Tensor, choices: &mut dyn Choose) -> Members {
        let dims = tensor.shape().iter().map(ToString::to_string);
        let dims: Vec<_> = dims.collect();
        let mut members = Members::default();
        let name = self.spelling.quoted(tensor.name(), choices);
        members.push(NAME, name);
        members.push(SHAPE, self.spelling.array(&dims, choices));
        let dtype = self.spelling.quoted(tensor.dtype().name(), choices);
        members.push(DTYPE, dtype);
        match tensor.list_index() {
            Some(index) => members.push(LIST_INDEX, index.to_string()),
            None if self.spelling.other_keys => {}
            None => members.push(LIST_INDEX, "-1"),
        }
        members
    }

    pub(super) fn metadata(&self, choices: &mut dyn Choose) -> String {
        let spelling = self.spelling;
        let descriptors = self.descriptors.iter();
        let descriptors = descriptors.map(|members| members.of_schema(spelling, choices));
        let descriptors: Vec<_> = descriptors.collect();
        let mut members = self.members.clone();
        if members.0.iter().all(|(key, _)| key != DESCRIPTORS) {
            let array = spelling.array(&descriptors, choices);
            members.0.insert(0, (DESCRIPTORS.to_string(), array));
        }
        let object = members.of_schema(spelling, choices);
        let (before, after) = (spelling.white(choices), spelling.white(choices));
        [before, &object, after].concat()
    }

    /// The frames after a mutation, and what a decoder has to say of them.
    pub(super) fn mutated(
        mut self,
        mutation: MessageMutation,
        choices: &mut dyn Choose,
    ) -> (Vec<Vec<u8>>, DecodeErrorKind) {
        let kind = self.mutate(mutation, choices);
        let mut metadata = self.metadata(choices);
        match mutation {
            MessageMutation::NoFrames => return (Vec::new(), kind),
            MessageMutation::NoObject => metadata = format!("[{metadata}]"),
            MessageMutation::TrailingData => {
                metadata.push_str(choices.text(&["}", "{}", "0", ","]));
            }
            MessageMutation::Unclosed => {
                metadata.truncate(metadata.trim_end().len().saturating_sub(1));
            }
            _ => {}
        }
        let mut frames = alloc::vec![bytes(metadata, mutation == MessageMutation::InvalidUtf8)];
        if mutation == MessageMutation::ControlMarker {
            frames = alloc::vec![CONTROL_MARKER.to_vec()];
        }
        let payloads = self.tensors.iter().map(|tensor| tensor.bytes().to_vec());
        frames.extend(payloads);
        match mutation {
            MessageMutation::FrameExtra => frames.push(Vec::new()),
            MessageMutation::FrameMissing => drop(frames.pop()),
            MessageMutation::FrameLonger => first_payload(&mut frames, |frame| frame.push(0)),
            MessageMutation::FrameShorter => first_payload(&mut frames, |frame| {
                frame.pop();
            }),
            _ => {}
        }
        (frames, kind)
    }

    /// Does to the metadata what is done to it before it is written.
    fn mutate(&mut self, mutation: MessageMutation, choices: &mut dyn Choose) -> DecodeErrorKind {
        use MessageMutation as M;

        let limits = Limits::new();
        let count = self.tensors.len();
        let length = self.tensors.first().map_or(0, |first| first.bytes().len());
        match mutation {
            M::BadDim => {
                let dim = choices.text(&["[-1]", "[4.0]", "[1e2]", "[-0]"]);
                self.set_first(SHAPE, dim);
                DecodeErrorKind::BadDim
            }
            M::BadListIndex => {
                let index = choices.text(&["-2", "0.0", "1e2", "-0"]);
                self.set_first(LIST_INDEX, index);
                DecodeErrorKind::BadListIndex
            }
            M::ControlCharacter => self.noted("\"\n\"", SyntaxError::ControlCharacter),
            M::ControlMarker => DecodeErrorKind::ControlMessage,
            M::Depth => {
                note(&mut self.members, &nested(limits.depth()));
                DecodeErrorKind::DepthLimit {
                    limit: limits.depth(),
                }
            }
            M::DescriptorsNoArray => {
                self.members.push(DESCRIPTORS, "{}");
                wrong_type(ValueType::Array, ValueType::Object)
            }
            M::DimOverflow => {
                self.set_first(SHAPE, "[9223372036854775808]");
                DecodeErrorKind::DimOverflow
            }
            M::DimType => {
                let (dim, actual) = choices
                    .of(NO_NUMBERS)
                    .unwrap_or(("[null]", ValueType::Null));
                self.set_first(SHAPE, dim);
                wrong_type(ValueType::Number, actual)
            }
            M::DuplicateKey => {
                if let Some(first) = self.descriptors.first_mut() {
                    first.repeat(choices);
                }
                DecodeErrorKind::DuplicateKey
            }
            M::DuplicateListIndex => {
                self.add_namesakes([Some(3), Some(3)], choices);
                DecodeErrorKind::DuplicateListIndex { list_index: 3 }
            }
            M::DuplicateName => {
                self.add_namesakes([None, None], choices);
                DecodeErrorKind::DuplicateField
            }
            M::FrameExtra => DecodeErrorKind::FrameCount {
                expected: count,
                actual: count.saturating_add(1),
            },
            M::FrameLonger => DecodeErrorKind::FrameLength {
                expected: length,
                actual: length.saturating_add(1),
            },
            M::FrameMissing => DecodeErrorKind::FrameCount {
                expected: count,
                actual: count.saturating_sub(1),
            },
            M::FrameShorter => DecodeErrorKind::FrameLength {
                expected: length,
                actual: length.saturating_sub(1),
            },
            M::InvalidEscape => self.noted("\"\\x\"", SyntaxError::InvalidEscape),
            M::InvalidNumber => self.noted("01", SyntaxError::InvalidNumber),
            M::InvalidUtf8 => {
                note(&mut self.members, &format!("\"{NO_UTF8}\""));
                DecodeErrorKind::InvalidUtf8
            }
            M::ListIndex => {
                let limit = limits.list_index();
                self.set_first(LIST_INDEX, &limit.saturating_add(1).to_string());
                DecodeErrorKind::ListIndexLimit { limit }
            }
            M::LoneSurrogate => {
                self.set_first(NAME, choices.text(&["\"\\ud800\"", "\"a\\udfff\""]));
                DecodeErrorKind::InvalidName
            }
            M::MissingKey => {
                let (key, name) = choices.of(REQUIRED).unwrap_or((SchemaKey::Shape, SHAPE));
                if let Some(first) = self.descriptors.first_mut() {
                    first.remove(name);
                }
                DecodeErrorKind::MissingKey(key)
            }
            M::MixedName => {
                self.add_namesakes([None, Some(0)], choices);
                DecodeErrorKind::MixedField
            }
            M::NameLength => {
                let limit = limits.name_bytes();
                let actual = limit.saturating_add(1);
                self.set_first(NAME, &format!("\"{}\"", "n".repeat(actual)));
                DecodeErrorKind::NameLimit { limit, actual }
            }
            M::NoFrames => DecodeErrorKind::NoFrames,
            M::NoObject => wrong_type(ValueType::Object, ValueType::Array),
            M::NonFinite => {
                note(&mut self.members, "NaN");
                DecodeErrorKind::NonFinite
            }
            M::Rank => {
                let limit = limits.rank();
                let dims = alloc::vec!["1"; limit.saturating_add(1)];
                self.set_first(SHAPE, &format!("[{}]", dims.join(",")));
                DecodeErrorKind::RankLimit { limit }
            }
            M::ScalarsNoObject => {
                self.members.remove(SCALARS);
                self.members.push(SCALARS, "[]");
                wrong_type(ValueType::Object, ValueType::Array)
            }
            M::ShapeOverflow => {
                self.set_first(SHAPE, "[4294967296,0,4294967296]");
                DecodeErrorKind::ShapeOverflow
            }
            M::TrailingData => DecodeErrorKind::TrailingData,
            M::Unclosed => DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd),
            M::UnknownDType => {
                let dtype = choices.text(&["\"float31\"", "\"bf16\"", "\"\"", "\"torch.float32\""]);
                self.set_first(DTYPE, dtype);
                DecodeErrorKind::UnknownDType
            }
        }
    }

    fn noted(&mut self, value: &str, error: SyntaxError) -> DecodeErrorKind {
        note(&mut self.members, value);
        DecodeErrorKind::Syntax(error)
    }

    /// Gives a key of the first descriptor another value, or puts it there.
    fn set_first(&mut self, key: &str, value: &str) {
        if let Some(first) = self.descriptors.first_mut() {
            first.remove(key);
            first.push(key, value);
        }
    }

    /// Adds two empty tensors of one name that no other has.
    fn add_namesakes(&mut self, list_indices: [Option<u32>; 2], choices: &mut dyn Choose) {
        let names = self.tensors.iter().map(|tensor| tensor.name().to_string());
        let name = unique("twin".to_string(), &names.collect());
        for list_index in list_indices {
            let tensor = Tensor::empty(name.clone(), list_index, DType::Float32);
            let tensor = tensor.with_shape(alloc::vec![0]);
            let descriptor = self.descriptor(&tensor, choices);
            self.descriptors.push(descriptor);
            self.tensors.push(tensor);
        }
    }
}

/// Changes the first frame after the metadata.
fn first_payload(frames: &mut [Vec<u8>], change: impl FnOnce(&mut Vec<u8>)) {
    if let Some(frame) = frames.get_mut(1) {
        change(frame);
    }
}

pub(super) const fn wrong_type(expected: ValueType, actual: ValueType) -> DecodeErrorKind {
    DecodeErrorKind::WrongType { expected, actual }
}

const DESCRIPTORS: &str = "tensor_descriptors";
const SCALARS: &str = "scalar_fields";
const NAME: &str = "field_name";
pub(super) const SHAPE: &str = "shape";
pub(super) const DTYPE: &str = "dtype";
pub(super) const LIST_INDEX: &str = "list_index";

/// The keys that a descriptor has to have.
const REQUIRED: &[(SchemaKey, &str)] = &[
    (SchemaKey::FieldName, NAME),
    (SchemaKey::Shape, SHAPE),
    (SchemaKey::DType, DTYPE),
];

/// Shapes of what is no number.
const NO_NUMBERS: &[(&str, ValueType)] = &[
    ("[true]", ValueType::Bool),
    ("[null]", ValueType::Null),
    ("[\"4\"]", ValueType::String),
    ("[[4]]", ValueType::Array),
];
