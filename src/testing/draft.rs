//! A tensor message before it is written, and what can be done to it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::choices::Choose;
use super::fields::{DTYPE, Fault, LIST_INDEX, SHAPE};
use super::mutation::{
    CONTROL_CHARACTER, INVALID_ESCAPE, INVALID_NUMBER, INVALID_UTF8, NON_FINITE, UNEXPECTED_BYTE,
    bytes, note, note_nested, wrong_type,
};
use super::tensors::{tensors, unique};
use super::text::{Members, Spelling, scalars};
use super::{MessageMutation, Parameters, Tensor};
use crate::dtype::DType;
use crate::error::{DecodeErrorKind, SchemaKey, SyntaxError};
use crate::json::ValueType;
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
        choices.turn();
        let scalars = scalars(choices, parameters, spelling);
        choices.turn();
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
            MessageMutation::NoDescriptors => {
                metadata = self.members.of_schema(self.spelling, choices);
            }
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

        let count = self.tensors.len();
        let length = self.tensors.first().map_or(0, |first| first.bytes().len());
        match mutation {
            M::BadDim => self.set_first(Fault::bad_dim(choices)),
            M::BadListIndex => self.set_first(Fault::bad_list_index("-2", choices)),
            M::ControlCharacter => note(&mut self.members, CONTROL_CHARACTER, choices),
            M::ControlMarker => DecodeErrorKind::ControlMessage,
            M::DescriptorNoObject => {
                self.members.push(DESCRIPTORS, "[[]]");
                wrong_type(ValueType::Object, ValueType::Array)
            }
            M::Depth => note_nested(&mut self.members),
            M::DescriptorsNoArray => {
                self.members.push(DESCRIPTORS, "{}");
                wrong_type(ValueType::Array, ValueType::Object)
            }
            M::DimOverflow => self.set_first(Fault::dim_overflow()),
            M::DimType => self.set_first(Fault::dim_type(choices)),
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
            M::FieldType if choices.one_in(3) => {
                let kind = wrong_type(ValueType::String, ValueType::Null);
                self.set_first(Fault::new(NAME, "null", kind))
            }
            M::FieldType => self.set_first(Fault::field_type(choices)),
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
            M::InvalidEscape => note(&mut self.members, INVALID_ESCAPE, choices),
            M::InvalidNumber => note(&mut self.members, INVALID_NUMBER, choices),
            M::InvalidUtf8 => note(&mut self.members, INVALID_UTF8, choices),
            M::ListIndex => self.set_first(Fault::list_index()),
            M::LoneSurrogate => self.set_first(Fault::lone_surrogate(NAME, choices)),
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
            M::NameLength => self.set_first(Fault::name_length(NAME)),
            M::NoDescriptors => DecodeErrorKind::MissingKey(SchemaKey::TensorDescriptors),
            M::NoFrames => DecodeErrorKind::NoFrames,
            M::NoObject => wrong_type(ValueType::Object, ValueType::Array),
            M::NonFinite => note(&mut self.members, NON_FINITE, choices),
            M::Rank => self.set_first(Fault::rank()),
            M::ScalarsNoObject => {
                self.members.remove(SCALARS);
                self.members.push(SCALARS, "[]");
                wrong_type(ValueType::Object, ValueType::Array)
            }
            M::ShapeOverflow => self.set_first(Fault::shape_overflow(choices)),
            M::TrailingData => DecodeErrorKind::TrailingData,
            M::Unclosed => DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd),
            M::UnexpectedByte => note(&mut self.members, UNEXPECTED_BYTE, choices),
            M::UnknownDType => self.set_first(Fault::unknown_dtype(choices)),
        }
    }

    /// Gives a key of the first descriptor another value, or puts it there.
    fn set_first(&mut self, fault: Fault) -> DecodeErrorKind {
        if let Some(first) = self.descriptors.first_mut() {
            first.remove(fault.key);
            first.push(fault.key, fault.value);
        }
        fault.kind
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

const DESCRIPTORS: &str = "tensor_descriptors";
const SCALARS: &str = "scalar_fields";
const NAME: &str = "field_name";

/// The keys that a descriptor has to have.
const REQUIRED: &[(SchemaKey, &str)] = &[
    (SchemaKey::FieldName, NAME),
    (SchemaKey::Shape, SHAPE),
    (SchemaKey::DType, DTYPE),
];
