//! A manifest is read as a naive reader reads it, and what is read is written and laid out again.
//!
//! ```text
//! byte 0    bits 0-2  which limit is made small, 0 for none
//!           bit  3    the slot's length is put right: where the last tensor ends
//!           bits 4-5  dtypes: oldest, with complex, all, all
//!           bit  6    the slot at an odd address
//!           bit  7    the manifest is part of a larger document
//! byte 1-2  length of the slot (little-endian)
//! rest      the text
//! ```

mod reader;

use std::collections::{BTreeMap, BTreeSet};

use tensorwire::dtype::Generation;
use tensorwire::error::{DecodeError, DecodeErrorKind};
use tensorwire::json::{Object, Value};
use tensorwire::transfer::manifest::{
    ALIGNMENT, Decoder, Entry, Field, Manifest, Plan, Storage, encode_into, encoded_len,
};
use tensorwire::{Limits, Options, TensorView};

use super::case::{Case, Frame};
use super::naive::Tensor;
use reader::{Placed, Refusal, naive_text, read};

/// The options byte for default options, before a length and a text.
pub const DEFAULT: u8 = b'0';

/// The bit that says that the slot is as long as it has to be.
pub const FITTING: u8 = 8;

/// What stands before a manifest that is part of a larger document.
const PREFIX: &str = "{\"request_id\":\"caf\\u00e9\",\n\"manifest\": ";

/// What [`run`] reads as this text, held against a slot of this length.
pub fn seed(flags: u8, slot_len: u16, text: &str) -> Vec<u8> {
    let [low, high] = slot_len.to_le_bytes();
    [&[flags, low, high], text.as_bytes()].concat()
}

pub fn run(data: &[u8]) {
    let Some((&[flags, low, high], text)) = data.split_first_chunk::<3>() else {
        return;
    };
    let Ok(text) = str::from_utf8(text) else {
        return;
    };
    let case = Case::read(&[flags & !FITTING]).unwrap();
    let mut slot_len = usize::from(u16::from_le_bytes([low, high]));
    if flags & FITTING != 0 {
        slot_len = fitting(text, &case).unwrap_or(slot_len);
    }
    check(text, &case.limits, case.generation, slot_len, flags);
}

/// Where the last tensor ends, if that is not too far for a test.
fn fitting(text: &str, case: &Case) -> Option<usize> {
    let placed = read(text, &case.limits, case.generation, u64::MAX.into()).ok()?;
    let end = placed.iter().map(Placed::end).max()?;
    usize::try_from(end).ok().filter(|end| *end <= 1 << 16)
}

/// Holds the crate against the naive reader.
pub fn check(text: &str, limits: &Limits, generation: Generation, slot_len: usize, flags: u8) {
    let Ok(Ok(object)) = Value::parse(text.as_bytes()).map(|value| value.as_object()) else {
        return;
    };
    let options = Options::new()
        .with_limits(*limits)
        .with_generation(generation);
    let naive = read(text, limits, generation, slot_len as u128);

    let mut decoder = Decoder::with_options(options);
    let verdict = decoder.decode(object, slot_len).map(drop);
    both_ways_agree(object, slot_len, options, verdict);
    let larger = format!("{PREFIX}{text}}}");
    if flags & 0x80 != 0
        && let Ok(value) = Value::parse(larger.as_bytes())
    {
        let members = value.as_object().unwrap();
        let part = members.field("manifest").unwrap().as_object().unwrap();
        let there = decoder.decode(part, slot_len).map(drop);
        let moved = verdict.map_err(|error| told(error, PREFIX.len()));
        assert_eq!(there.map_err(|error| told(error, 0)), moved);
    }
    match (decoder.decode(object, slot_len), naive) {
        (Ok(manifest), Ok(expected)) => {
            assert_eq!(manifest.slot_len(), slot_len);
            accepted(manifest, &expected, usize::from(flags >> 6 & 1));
        }
        (Err(error), Err(refusal)) => refused(error, &refusal, text),
        (ours, naive) => panic!("{ours:?} where a naive reader has {naive:?}"),
    }
}

/// An error as numbers, in a document in which the text starts at `base`.
fn told(error: DecodeError, base: usize) -> (DecodeErrorKind, usize, Option<usize>) {
    (error.kind(), base + error.offset(), error.descriptor())
}

/// Without the fast path, and in storage of a fixed size, the verdict is the same.
fn both_ways_agree(
    object: Object<'_>,
    slot_len: usize,
    options: Options,
    verdict: Result<(), DecodeError>,
) {
    let mut slow = Decoder::with_options(options.without_speculation());
    assert_eq!(slow.decode(object, slot_len).map(drop), verdict);
    let mut storage = Storage::<4>::new();
    match Manifest::decode_with(object, slot_len, &mut storage, &options) {
        Ok(manifest) => {
            assert_eq!(verdict, Ok(()));
            let slow = slow.decode(object, slot_len).unwrap();
            assert_eq!(manifest.used_len(), slow.used_len());
            assert_eq!(manifest.tensor_bytes(), slow.tensor_bytes());
            assert!(manifest.entries().map(shown).eq(slow.entries().map(shown)));
        }
        Err(error) if matches!(error.kind(), DecodeErrorKind::StorageFull { .. }) => {
            assert_eq!(error.kind(), DecodeErrorKind::StorageFull { capacity: 4 });
        }
        Err(error) => assert_eq!(verdict, Err(error)),
    }
}

fn shown(entry: Entry<'_>) -> String {
    format!("{entry:?}")
}

/// What holds for an error, given why a naive reader has no manifest.
fn refused(error: DecodeError, refusal: &Refusal, text: &str) {
    use DecodeErrorKind::{DuplicateField, DuplicateListIndex, MixedField, Overlap};

    assert!(error.offset() <= text.len(), "{error}");
    let offset = error.offset().to_string();
    assert!(error.to_string().ends_with(&offset), "{error}");
    match refusal {
        Refusal::Entries(kind, at) => assert_eq!((error.kind(), error.offset()), (*kind, *at)),
        Refusal::Fields => {
            assert_eq!(error.kind(), DuplicateField);
            assert!(text[error.offset()..].starts_with('"'));
            assert_eq!(error.descriptor(), None);
        }
        Refusal::Overlap { first, pairs } => {
            let Overlap { other, start, end } = error.kind() else {
                panic!("{error} where tensors overlap from {first} on");
            };
            assert_eq!(start as u64, *first);
            let pair = (other, error.descriptor().unwrap());
            assert!(pairs.contains(&(pair, start as u64, end as u64)), "{error}");
            assert!(text[error.offset()..].starts_with('{'));
        }
        Refusal::Schema(_) => assert!(
            !matches!(
                error.kind(),
                DuplicateField | DuplicateListIndex { .. } | MixedField | Overlap { .. }
            ),
            "{error} where a naive reader has {refusal:?}"
        ),
    }
}

/// What holds for a manifest: it says what a naive reader reads, and can be written and laid out again.
fn accepted(manifest: Manifest<'_, '_>, expected: &[Placed], shift: usize) {
    assert_eq!(manifest.len(), expected.len());
    assert_eq!(manifest.is_empty(), expected.is_empty());
    for (entry, placed) in manifest.entries().zip(expected) {
        assert_eq!(tensor(&entry), placed.tensor);
        assert_eq!(entry.offset() as u64, placed.offset);
        assert_eq!(entry.range().end as u128, placed.end());
    }
    let sum: u64 = expected.iter().map(|placed| placed.tensor.byte_len).sum();
    assert_eq!(manifest.tensor_bytes() as u64, sum);
    let used = expected.iter().map(Placed::end).max().unwrap_or_default();
    assert_eq!(manifest.used_len() as u128, used);

    let bytes: Vec<u8> = (0..manifest.slot_len())
        .map(|at| (at % 251) as u8)
        .collect();
    let slot = Frame::new(&bytes, shift);
    attached(manifest, expected, slot.as_ref());
    written(manifest, expected);
    laid_out(manifest, expected, slot.as_ref());
}

/// The tensors lie where the entries say, and are found by their names.
fn attached(manifest: Manifest<'_, '_>, expected: &[Placed], slot: &[u8]) {
    let tensors = manifest.attach(slot).unwrap();
    let longer = [slot, &[0]].concat();
    let error = manifest.attach(&longer).unwrap_err();
    assert!(matches!(error.kind(), DecodeErrorKind::SlotLength { .. }));

    assert_eq!(
        (tensors.len(), tensors.tensors().count()),
        (expected.len(), expected.len())
    );
    for (index, placed) in expected.iter().enumerate() {
        let view = tensors.get(index).unwrap();
        let range = manifest.entry(index).unwrap().range();
        // The very bytes of the slot.
        assert_eq!(view.bytes().as_ptr(), slot[range.clone()].as_ptr());
        assert_eq!(view.bytes().len(), range.len());
        let name = placed.tensor.name.as_str();
        match placed.tensor.list_index {
            None => {
                assert_eq!(manifest.position(name), Some(index));
                assert_eq!(tensors.tensor(name).unwrap().bytes(), view.bytes());
                assert!(tensors.list(name).is_none());
            }
            Some(list_index) => {
                assert!(manifest.position(name).is_none() && tensors.tensor(name).is_none());
                let list = tensors.list(name).unwrap();
                let list_index = usize::try_from(list_index).unwrap();
                assert_eq!(list.position(list_index), Some(index));
                assert_eq!(list.get(list_index).unwrap().bytes(), view.bytes());
            }
        }
    }
    assert!(tensors.get(expected.len()).is_none());
    assert!(manifest.entry(expected.len()).is_none());

    let mut names: BTreeMap<&str, BTreeSet<Option<u32>>> = BTreeMap::new();
    for Placed { tensor, .. } in expected {
        let indices = names.entry(&tensor.name).or_default();
        indices.insert(tensor.list_index);
    }
    assert_eq!(tensors.fields().count(), names.len());
    for (name, field) in tensors.fields() {
        let indices = &names[name.to_cow().unwrap().as_ref()];
        match field {
            Field::Tensor(_) => assert_eq!(*indices, BTreeSet::from([None])),
            Field::List(list) => {
                let last = indices.last().copied().flatten().unwrap();
                assert_eq!(list.len(), last as usize + 1);
                assert_eq!(
                    (list.present_len(), list.is_empty()),
                    (indices.len(), false)
                );
                let present = list.present().map(|(index, _)| Some(index as u32));
                assert!(present.eq(indices.iter().copied()));
                for (index, member) in list.iter().enumerate() {
                    assert_eq!(member.is_some(), indices.contains(&Some(index as u32)));
                }
            }
            _ => panic!("a field of a new kind"),
        }
    }
}

/// What is read is written as Python writes it, and read again.
fn written(manifest: Manifest<'_, '_>, expected: &[Placed]) {
    let offsets = expected.iter().map(|placed| placed.offset);
    let text = naive_text(expected.iter().map(|placed| &placed.tensor), offsets);
    let length = encoded_len(manifest.entries()).unwrap();
    let mut buffer = vec![0xa5; length];
    let again = encode_into(manifest.entries(), &mut buffer).unwrap();
    assert_eq!(str::from_utf8(again).unwrap(), text);

    let limits = Limits::new().with_metadata_bytes(usize::MAX);
    let mut decoder = Decoder::with_options(Options::new().with_limits(limits));
    let object = Value::parse(again).unwrap().as_object().unwrap();
    let again = decoder.decode(object, manifest.slot_len()).unwrap();
    assert!(again.entries().map(said).eq(manifest.entries().map(said)));
}

/// The tensors are laid out as Python lays them out, and are the same in their new slot.
fn laid_out(manifest: Manifest<'_, '_>, expected: &[Placed], slot: &[u8]) {
    let tensors = manifest.attach(slot).unwrap();
    let views: Vec<TensorView<'_>> = tensors.tensors().collect();
    let plan = Plan::new(&views).unwrap();
    let mut next: u64 = 0;
    let mut end: u64 = 0;
    let mut offsets = Vec::new();
    for Placed { tensor, .. } in expected {
        offsets.push(next);
        end = next + tensor.byte_len;
        next = end.div_ceil(ALIGNMENT as u64) * ALIGNMENT as u64;
    }
    assert_eq!(plan.slot_len() as u64, end);
    let planned = plan.entries().map(|entry| entry.offset() as u64);
    assert!(planned.eq(offsets.iter().copied()));

    let text = naive_text(
        expected.iter().map(|placed| &placed.tensor),
        offsets.into_iter(),
    );
    let mut buffer = vec![0xa5; plan.encoded_len()];
    assert_eq!(plan.encode_into(&mut buffer).unwrap(), text.as_bytes());
    let mut other = vec![0xa5; plan.slot_len() + 3];
    plan.store(&mut other).unwrap();
    let (stored, after) = other.split_at(plan.slot_len());
    assert_eq!(after, [0xa5; 3]);

    let limits = Limits::new().with_metadata_bytes(usize::MAX);
    let mut decoder = Decoder::with_options(Options::new().with_limits(limits));
    let object = Value::parse(&buffer).unwrap().as_object().unwrap();
    let again = decoder.decode(object, stored.len()).unwrap();
    assert_eq!(again.used_len(), stored.len());
    let again = again.attach(stored).unwrap();
    let bytes = |view: TensorView<'_>| view.bytes().to_vec();
    assert!(
        again
            .tensors()
            .map(bytes)
            .eq(views.iter().copied().map(bytes))
    );
    let payload: usize = views
        .iter()
        .map(|view| view.bytes().iter().filter(|byte| **byte != 0).count())
        .sum();
    let nonzero = stored.iter().filter(|byte| **byte != 0).count();
    assert_eq!(nonzero, payload, "gaps are zeros");
}

fn tensor(entry: &Entry<'_>) -> Tensor {
    let descriptor = entry.descriptor();
    Tensor {
        name: descriptor.name().to_cow().unwrap().into_owned(),
        list_index: descriptor.list_index(),
        dtype: descriptor.dtype().name().to_string(),
        shape: descriptor.shape().dims().map(|dim| dim as u64).collect(),
        byte_len: descriptor.byte_len() as u64,
    }
}

fn said(entry: Entry<'_>) -> (Tensor, usize) {
    (tensor(&entry), entry.offset())
}
