//! A manifest before it is written, and its slot.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::testing::choices::{Choose, noise};
use crate::testing::fields::{DTYPE, LIST_INDEX, SHAPE};
use crate::testing::tensors::tensors;
use crate::testing::text::{Members, Spelling};
use crate::testing::{Parameters, Tensor};
use crate::transfer::manifest::ALIGNMENT;

/// A manifest before it is written, and its slot.
pub(super) struct Draft {
    pub(super) spelling: Spelling,
    pub(super) slot: Vec<u8>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) offsets: Vec<usize>,
    /// In the order of the tensors.
    pub(super) entries: Vec<Members>,
    /// As it is quoted.
    pub(super) first_name: Option<String>,
    /// One more field, as it stands in the text.
    pub(super) field: Option<String>,
}

impl Draft {
    pub(super) fn generate(
        choices: &mut dyn Choose,
        parameters: &Parameters,
        filled: usize,
    ) -> Self {
        let spelling = Spelling::choose(choices, parameters);
        let tensors = tensors(choices, parameters, filled);
        let mut draft = Self {
            spelling,
            slot: Vec::new(),
            offsets: alloc::vec![0; tensors.len()],
            entries: Vec::new(),
            first_name: tensors
                .first()
                .map(|first| spelling.quoted(first.name(), choices)),
            field: None,
            tensors,
        };
        draft.place(choices, parameters);
        for (tensor, offset) in draft.tensors.iter().zip(&draft.offsets) {
            let dims = tensor.shape().iter().map(ToString::to_string);
            let dims: Vec<_> = dims.collect();
            let mut members = Members::default();
            members.push(OFFSET, offset.to_string());
            members.push(SHAPE, spelling.array(&dims, choices));
            let dtype = spelling.quoted(tensor.dtype().name(), choices);
            members.push(DTYPE, dtype);
            if let Some(index) = tensor.list_index() {
                members.push(LIST_INDEX, index.to_string());
            }
            draft.entries.push(members);
        }
        draft
    }

    /// Puts the tensors into the slot.
    fn place(&mut self, choices: &mut dyn Choose, parameters: &Parameters) {
        let mut order: Vec<_> = (0..self.tensors.len()).collect();
        let as_python = parameters.python_spelling() || !choices.one_in(2);
        let seed = if as_python { 0 } else { choices.up_to(0xff) };
        if !as_python {
            choices.shuffle(&mut order);
        }
        let mut gaps = noise(seed).map(|byte| if as_python { 0 } else { byte });
        for index in order {
            let Some(tensor) = self.tensors.get(index) else {
                continue;
            };
            let used = self.slot.len();
            let offset = if as_python {
                used.next_multiple_of(ALIGNMENT)
            } else {
                used.saturating_add(choices.up_to(64))
            };
            self.slot
                .extend(gaps.by_ref().take(offset.saturating_sub(used)));
            self.slot.extend(tensor.bytes());
            if let Some(place) = self.offsets.get_mut(index) {
                *place = offset;
            }
        }
    }

    /// The text; fields follow one another as the tensors do.
    pub(super) fn manifest(&self, choices: &mut dyn Choose) -> String {
        let mut fields = Members::default();
        let mut entries = Vec::new();
        for (index, (tensor, members)) in self.tensors.iter().zip(&self.entries).enumerate() {
            entries.push(members.of_schema(self.spelling, choices));
            let next = self.tensors.get(index.saturating_add(1));
            if next.is_none_or(|next| next.name() != tensor.name()) {
                fields.push(tensor.name(), self.spelling.array(&entries, choices));
                entries.clear();
            }
        }
        fields.as_they_are(self.spelling, choices)
    }
}

pub(super) const OFFSET: &str = "offset";
