//! What can be wrong with a manifest.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::draft::{Draft, OFFSET};
use crate::error::{DecodeErrorKind, SchemaKey};
use crate::json::ValueType;
use crate::testing::choices::Choose;
use crate::testing::fields::{DTYPE, Fault, NO_LENGTHS, SHAPE};
use crate::testing::mutation::{NO_NUMBERS, Needs, wrong_type};
use crate::testing::tensors::unique;

/// What is wrong with a nearly valid manifest.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum SlotMutation {
    /// A dimension is `-1`, `4.0`, `1e2` or `-0`.
    BadDim,
    /// A `list_index` is negative, or no integer: a text, `null`, `false`.
    BadListIndex,
    /// An offset is `-1`, `4.0`, `1e2` or `-0`.
    BadOffset,
    /// A dimension is past `isize::MAX`.
    DimOverflow,
    /// A dimension is `true`, `null`, a text, or a list.
    DimType,
    /// An entry has one of its keys twice.
    DuplicateKey,
    /// Two members of a list have the same index.
    DuplicateListIndex,
    /// A field is there twice.
    DuplicateName,
    /// The entries of a field are an object.
    EntriesNoArray,
    /// An entry is an array.
    EntryNoObject,
    /// A shape or a dtype is of another type.
    FieldType,
    /// A `list_index` of one more than the default cap.
    ListIndex,
    /// A field name is half of a surrogate pair.
    LoneSurrogate,
    /// An entry lacks its offset, its shape or its dtype.
    MissingKey,
    /// Of the entries of a field, one has a `list_index` and one has none.
    MixedName,
    /// A name is a byte longer than the default cap.
    NameLength,
    /// An offset is past `u64::MAX`.
    OffsetOverflow,
    /// An offset is `true`, `null`, a text, or a list.
    OffsetType,
    /// A tensor starts at the end of the slot.
    OutOfSlot,
    /// Two tensors start at the same byte.
    Overlap,
    /// One dimension more than the default cap.
    Rank,
    /// A tensor of more bytes than there are addresses, even if one of its dimensions is 0.
    ShapeOverflow,
    /// A dtype that nobody knows.
    UnknownDType,
}

impl SlotMutation {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::EntriesNoArray,
        Self::BadDim,
        Self::BadListIndex,
        Self::BadOffset,
        Self::DimOverflow,
        Self::DimType,
        Self::DuplicateKey,
        Self::DuplicateListIndex,
        Self::DuplicateName,
        Self::EntryNoObject,
        Self::FieldType,
        Self::ListIndex,
        Self::LoneSurrogate,
        Self::MissingKey,
        Self::MixedName,
        Self::NameLength,
        Self::OffsetOverflow,
        Self::OffsetType,
        Self::OutOfSlot,
        Self::Overlap,
        Self::Rank,
        Self::ShapeOverflow,
        Self::UnknownDType,
    ];

    pub(super) const fn needs(self) -> Needs {
        match self {
            Self::Overlap => Needs::filled(2),
            Self::DuplicateListIndex | Self::MixedName => Needs {
                filled: 0,
                spare_tensors: 2,
                spare_bytes: 0,
            },
            Self::EntriesNoArray | Self::EntryNoObject | Self::LoneSurrogate | Self::NameLength => {
                Needs::NOTHING
            }
            _ => Needs::filled(1),
        }
    }
}

impl Draft {
    /// The frames after a mutation, and what a decoder has to say of them.
    pub(super) fn mutated(
        mut self,
        mutation: SlotMutation,
        choices: &mut dyn Choose,
    ) -> (Vec<Vec<u8>>, DecodeErrorKind) {
        let kind = self.mutate(mutation, choices);
        let mut manifest = self.manifest(choices);
        if let Some(field) = self.field {
            manifest.pop();
            let comma = if manifest.ends_with('{') { "" } else { "," };
            manifest = [&manifest, comma, &field, "}"].concat();
        }
        (alloc::vec![manifest.into_bytes(), self.slot], kind)
    }

    fn mutate(&mut self, mutation: SlotMutation, choices: &mut dyn Choose) -> DecodeErrorKind {
        use SlotMutation as M;

        match mutation {
            M::BadDim => self.set_first(Fault::bad_dim(choices)),
            M::BadListIndex => self.set_first(Fault::bad_list_index("-1", choices)),
            M::BadOffset => {
                let offset = choices.text(NO_LENGTHS);
                self.set_first(Fault::new(OFFSET, offset, DecodeErrorKind::BadInteger))
            }
            M::DimOverflow => self.set_first(Fault::dim_overflow()),
            M::DimType => self.set_first(Fault::dim_type(choices)),
            M::DuplicateKey => {
                if let Some(first) = self.entries.first_mut() {
                    first.repeat(choices);
                }
                DecodeErrorKind::DuplicateKey
            }
            M::DuplicateListIndex => {
                self.field = Some(self.twins([",\"list_index\":3"; 2]));
                DecodeErrorKind::DuplicateListIndex { list_index: 3 }
            }
            M::DuplicateName => {
                self.field = self.first_name.as_deref().map(absent);
                DecodeErrorKind::DuplicateField
            }
            M::EntriesNoArray => {
                self.field = Some("\"note\":{}".to_string());
                wrong_type(ValueType::Array, ValueType::Object)
            }
            M::EntryNoObject => {
                self.field = Some("\"note\":[[]]".to_string());
                wrong_type(ValueType::Object, ValueType::Array)
            }
            M::FieldType => self.set_first(Fault::field_type(choices)),
            M::ListIndex => self.set_first(Fault::list_index()),
            M::LoneSurrogate => self.name(&Fault::lone_surrogate(NO_KEY, choices)),
            M::MissingKey => {
                let (key, name) = choices.of(REQUIRED).unwrap_or((SchemaKey::Offset, OFFSET));
                if let Some(first) = self.entries.first_mut() {
                    first.remove(name);
                }
                DecodeErrorKind::MissingKey(key)
            }
            M::MixedName => {
                self.field = Some(self.twins([",\"list_index\":0", ""]));
                DecodeErrorKind::MixedField
            }
            M::NameLength => self.name(&Fault::name_length(NO_KEY)),
            M::OffsetOverflow => {
                let kind = DecodeErrorKind::IntegerOverflow;
                self.set_first(Fault::new(OFFSET, "18446744073709551616", kind))
            }
            M::OffsetType => {
                let (offset, actual) = choices.of(NO_NUMBERS).unwrap_or(("null", ValueType::Null));
                let kind = wrong_type(ValueType::Number, actual);
                self.set_first(Fault::new(OFFSET, offset, kind))
            }
            M::OutOfSlot => {
                let slot_len = self.slot.len();
                let kind = DecodeErrorKind::OutOfSlot {
                    offset: u64::try_from(slot_len).unwrap_or(u64::MAX),
                    byte_len: self.byte_len(0),
                    slot_len,
                };
                self.set_first(Fault::new(OFFSET, slot_len.to_string(), kind))
            }
            M::Overlap => self.overlap(),
            M::Rank => self.set_first(Fault::rank()),
            M::ShapeOverflow => self.set_first(Fault::shape_overflow(choices)),
            M::UnknownDType => self.set_first(Fault::unknown_dtype(choices)),
        }
    }

    /// Adds a field without entries, of a name that is none.
    fn name(&mut self, fault: &Fault) -> DecodeErrorKind {
        self.field = Some(absent(&fault.value));
        fault.kind
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
        let kind = DecodeErrorKind::Overlap {
            other: 0,
            start,
            end: start.saturating_add(self.byte_len(moved)),
        };
        self.set(moved, Fault::new(OFFSET, start.to_string(), kind))
    }

    fn byte_len(&self, index: usize) -> usize {
        let tensor = self.tensors.get(index);
        tensor.map_or(0, |tensor| tensor.bytes().len())
    }

    fn set_first(&mut self, fault: Fault) -> DecodeErrorKind {
        self.set(0, fault)
    }

    /// Gives a key of an entry another value, or puts it there.
    fn set(&mut self, index: usize, fault: Fault) -> DecodeErrorKind {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.remove(fault.key);
            entry.push(fault.key, fault.value);
        }
        fault.kind
    }
}

/// A field without entries.
fn absent(name: &str) -> String {
    [name, ":[]"].concat()
}

/// Where the fault is in a name, which is no value.
const NO_KEY: &str = "";

/// The keys that an entry has to have.
const REQUIRED: &[(SchemaKey, &str)] = &[
    (SchemaKey::Offset, OFFSET),
    (SchemaKey::Shape, SHAPE),
    (SchemaKey::DType, DTYPE),
];
