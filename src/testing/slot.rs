//! Slots of a transfer, and their manifests.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::choices::{Choose, noise};
use super::draft::{DTYPE, LIST_INDEX, SHAPE, wrong_type};
use super::mutation::{self, Needs};
use super::shown::Shown;
use super::tensors::{tensors, unique};
use super::text::{Members, Spelling};
use super::{Generated, Mismatch, NearlyValid, Parameters, Tensor, mismatch};
use crate::error::{DecodeErrorKind, SchemaKey};
use crate::json::ValueType;
use crate::transfer::manifest::{ALIGNMENT, Tensors};

/// A valid manifest, and the bytes of the slot that it is of.
///
/// The tensors lie where Python puts them, or elsewhere: in any order, at odd offsets, with
/// gaps that are not zeros. Besides the payload a slot has at most 512 bytes per tensor.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "arbitrary")] {
/// use arbitrary::{Arbitrary, Unstructured};
/// use tensorwire::json::Value;
/// use tensorwire::testing::FilledSlot;
/// use tensorwire::transfer::manifest::Decoder;
///
/// let sent = FilledSlot::arbitrary(&mut Unstructured::new(b"\x04from a fuzzer"))?;
/// // Elsewhere it is a part of a control message.
/// let object = Value::parse(sent.manifest().as_bytes())?.as_object()?;
/// let mut decoder = Decoder::new();
/// let manifest = decoder.decode(object, sent.slot().len())?;
/// sent.compare(&manifest.attach(sent.slot())?)?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct FilledSlot {
    manifest: String,
    slot: Vec<u8>,
    tensors: Vec<Tensor>,
    offsets: Vec<usize>,
}

impl FilledSlot {
    /// Returns the manifest: the text of a JSON object.
    #[must_use]
    pub fn manifest(&self) -> &str {
        &self.manifest
    }

    /// Returns the bytes of the slot.
    #[must_use]
    pub fn slot(&self) -> &[u8] {
        &self.slot
    }

    /// Returns the tensors, in wire order.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns where each of them starts, in bytes from the start of the slot.
    #[must_use]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Holds the tensors of a decoded manifest against these.
    ///
    /// # Errors
    ///
    /// The first [`Mismatch`].
    pub fn compare(&self, tensors: &Tensors<'_, '_>) -> Result<(), Mismatch> {
        let views = (0..tensors.len()).map(|index| tensors.get(index));
        let views: Vec<_> = views.flatten().collect();
        mismatch::tensors(&self.tensors, views.into_iter())?;
        for (index, &offset) in self.offsets.iter().enumerate() {
            let entry = tensors.manifest().entry(index);
            if entry.is_none_or(|entry| entry.offset() != offset) {
                return Err(Mismatch::Offset(index));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for FilledSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilledSlot")
            .field("manifest", &self.manifest)
            .field("offsets", &self.offsets)
            .field("slot", &Shown(&self.slot))
            .finish_non_exhaustive()
    }
}

/// What is wrong with a nearly valid manifest.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum SlotMutation {
    /// A dimension is `-1`, `4.0`, `1e2` or `-0`.
    BadDim,
    /// An offset is `-1`, `4.0`, `1e2` or `-0`.
    BadOffset,
    /// An entry has one of its keys twice.
    DuplicateKey,
    /// Two members of a list have the same index.
    DuplicateListIndex,
    /// A field is there twice.
    DuplicateName,
    /// The entries of a field are an object.
    EntriesNoArray,
    /// An entry lacks its offset, its shape or its dtype.
    MissingKey,
    /// Of the entries of a field, one has a `list_index` and one has none.
    MixedName,
    /// An offset is past `u64::MAX`.
    OffsetOverflow,
    /// A tensor starts at the end of the slot.
    OutOfSlot,
    /// Two tensors start at the same byte.
    Overlap,
    /// A dtype that nobody knows.
    UnknownDType,
}

impl SlotMutation {
    const fn needs(self) -> Needs {
        match self {
            Self::Overlap => Needs::filled(2),
            Self::DuplicateListIndex | Self::MixedName => Needs {
                filled: 0,
                spare_tensors: 2,
                spare_bytes: 0,
            },
            Self::EntriesNoArray => Needs::NOTHING,
            Self::BadDim
            | Self::BadOffset
            | Self::DuplicateKey
            | Self::DuplicateName
            | Self::MissingKey
            | Self::OffsetOverflow
            | Self::OutOfSlot
            | Self::UnknownDType => Needs::filled(1),
        }
    }
}

impl Generated for FilledSlot {
    type Mutation = SlotMutation;
    type ErrorKind = DecodeErrorKind;

    const MUTATIONS: &'static [SlotMutation] = &[
        SlotMutation::EntriesNoArray,
        SlotMutation::BadDim,
        SlotMutation::BadOffset,
        SlotMutation::DuplicateKey,
        SlotMutation::DuplicateListIndex,
        SlotMutation::DuplicateName,
        SlotMutation::MissingKey,
        SlotMutation::MixedName,
        SlotMutation::OffsetOverflow,
        SlotMutation::OutOfSlot,
        SlotMutation::Overlap,
        SlotMutation::UnknownDType,
    ];

    fn generate(choices: &mut dyn Choose, parameters: &Parameters) -> Self {
        let draft = Draft::generate(choices, parameters, 0);
        let manifest = draft.manifest(choices);
        Self {
            manifest,
            slot: draft.slot,
            tensors: draft.tensors,
            offsets: draft.offsets,
        }
    }

    fn generate_nearly(choices: &mut dyn Choose, parameters: &Parameters) -> NearlyValid<Self> {
        let needs = SlotMutation::needs;
        let chosen = mutation::choose(Self::MUTATIONS, needs, choices, parameters);
        let (mutation, parameters) =
            chosen.unwrap_or_else(|| (SlotMutation::EntriesNoArray, parameters.clone()));
        let mut draft = Draft::generate(choices, &parameters, mutation.needs().filled);
        let kind = draft.mutate(mutation, choices);
        let mut manifest = draft.manifest(choices);
        let field = match mutation {
            SlotMutation::EntriesNoArray => Some("\"note\":{}".to_string()),
            SlotMutation::DuplicateListIndex => Some(draft.twins([",\"list_index\":3"; 2])),
            SlotMutation::MixedName => Some(draft.twins([",\"list_index\":0", ""])),
            SlotMutation::DuplicateName => draft
                .first_name
                .as_deref()
                .map(|name| [name, ":[]"].concat()),
            _ => None,
        };
        if let Some(field) = field {
            manifest.pop();
            let comma = if manifest.ends_with('{') { "" } else { "," };
            manifest = [&manifest, comma, &field, "}"].concat();
        }
        let frames = alloc::vec![manifest.into_bytes(), draft.slot];
        NearlyValid::new(frames, mutation, kind)
    }
}

/// A manifest before it is written, and its slot.
struct Draft {
    spelling: Spelling,
    slot: Vec<u8>,
    tensors: Vec<Tensor>,
    offsets: Vec<usize>,
    /// In the order of the tensors.
    entries: Vec<Members>,
    /// As it is quoted.
    first_name: Option<String>,
}

impl Draft {
    fn generate(choices: &mut dyn Choose, parameters: &Parameters, filled: usize) -> Self {
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
    fn manifest(&self, choices: &mut dyn Choose) -> String {
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

    fn mutate(&mut self, mutation: SlotMutation, choices: &mut dyn Choose) -> DecodeErrorKind {
        let bad = choices.text(&["-1", "4.0", "1e2", "-0"]);
        match mutation {
            SlotMutation::BadDim => {
                self.set(0, SHAPE, &["[", bad, "]"].concat());
                DecodeErrorKind::BadDim
            }
            SlotMutation::BadOffset => {
                self.set(0, OFFSET, bad);
                DecodeErrorKind::BadInteger
            }
            SlotMutation::DuplicateKey => {
                if let Some(first) = self.entries.first_mut() {
                    first.repeat(choices);
                }
                DecodeErrorKind::DuplicateKey
            }
            SlotMutation::DuplicateListIndex => {
                DecodeErrorKind::DuplicateListIndex { list_index: 3 }
            }
            SlotMutation::DuplicateName => DecodeErrorKind::DuplicateField,
            SlotMutation::EntriesNoArray => wrong_type(ValueType::Array, ValueType::Object),
            SlotMutation::MissingKey => {
                let (key, name) = choices.of(REQUIRED).unwrap_or((SchemaKey::Offset, OFFSET));
                if let Some(first) = self.entries.first_mut() {
                    first.remove(name);
                }
                DecodeErrorKind::MissingKey(key)
            }
            SlotMutation::MixedName => DecodeErrorKind::MixedField,
            SlotMutation::OffsetOverflow => {
                self.set(0, OFFSET, "18446744073709551616");
                DecodeErrorKind::IntegerOverflow
            }
            SlotMutation::OutOfSlot => {
                let slot_len = self.slot.len();
                self.set(0, OFFSET, &slot_len.to_string());
                DecodeErrorKind::OutOfSlot {
                    offset: u64::try_from(slot_len).unwrap_or(u64::MAX),
                    byte_len: self.byte_len(0),
                    slot_len,
                }
            }
            SlotMutation::Overlap => self.overlap(),
            SlotMutation::UnknownDType => {
                self.set(0, DTYPE, choices.text(&["\"float31\"", "\"bf16\"", "\"\""]));
                DecodeErrorKind::UnknownDType
            }
        }
    }

    /// A field of two empty tensors, by what stands last in their entries, that no other has the name of.
    fn twins(&self, ends: [&str; 2]) -> String {
        let names = self.tensors.iter().map(|tensor| tensor.name().to_string());
        let name = unique("twin".to_string(), &names.collect());
        let [first, second] =
            ends.map(|end| format!("{{\"offset\":0,\"shape\":[0],\"dtype\":\"bool\"{end}}}"));
        format!("\"{name}\":[{first},{second}]")
    }

    /// Puts the smaller of the first two where the larger one is, so that it overlaps nothing else.
    fn overlap(&mut self) -> DecodeErrorKind {
        let (moved, stays) = if self.byte_len(0) < self.byte_len(1) {
            (0, 1)
        } else {
            (1, 0)
        };
        let start = self.offsets.get(stays).copied().unwrap_or_default();
        self.set(moved, OFFSET, &start.to_string());
        DecodeErrorKind::Overlap {
            other: 0,
            start,
            end: start.saturating_add(self.byte_len(moved)),
        }
    }

    fn byte_len(&self, index: usize) -> usize {
        let tensor = self.tensors.get(index);
        tensor.map_or(0, |tensor| tensor.bytes().len())
    }

    fn set(&mut self, index: usize, key: &str, value: &str) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.set(key, value);
        }
    }
}

const OFFSET: &str = "offset";

/// The keys that an entry has to have.
const REQUIRED: &[(SchemaKey, &str)] = &[
    (SchemaKey::Offset, OFFSET),
    (SchemaKey::Shape, SHAPE),
    (SchemaKey::DType, DTYPE),
];
