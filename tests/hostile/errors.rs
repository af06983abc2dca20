//! What errors say, and that decoding looks at each byte once.

use std::cell::Cell;

use super::caps::{descriptor, metadata_of};
use super::more::{END, own_cases, shown};
use super::*;

/// A frame that counts how often it is looked at.
struct Watched<'a> {
    bytes: &'a [u8],
    looks: &'a Cell<usize>,
}

impl AsRef<[u8]> for Watched<'_> {
    fn as_ref(&self) -> &[u8] {
        self.looks.set(self.looks.get() + 1);
        self.bytes
    }
}

#[test]
fn decoding_looks_at_each_frame_once() {
    const COUNT: usize = 1000;
    let descriptors: Vec<_> = (0..COUNT)
        .map(|index| descriptor(&format!("{:03}", COUNT - index), "1"))
        .collect();
    let metadata = metadata_of(&descriptors);
    let looks = Cell::new(0);
    let watched = |bytes| Watched {
        bytes,
        looks: &looks,
    };
    let mut frames = vec![watched(metadata.as_bytes())];
    frames.extend((0..COUNT).map(|_| watched(&[7])));
    let mut storage = Box::<Storage<COUNT>>::default();
    Message::decode(&frames, &mut *storage).unwrap();
    assert_eq!(looks.get(), 1 + COUNT);
}

/// A message in Python's layout with whatever can be in one.
const EVERYTHING: &str = r#"{"tensor_descriptors":[{"field_name":"latents","shape":[1,16],"dtype":"bfloat16","list_index":-1},{"field_name":"caf\u00e9","shape":[],"dtype":"bool","list_index":12}],"scalar_fields":{"a\n":[1,-2.5e+10,NaN,-Infinity,null],"b":{"c":true,"d":false,"e":{},"f":[]},"g":"\ud83d\ude00"}}"#;

#[test]
fn every_strict_prefix_ends_too_early() {
    let mut storage = room();
    for length in 0..EVERYTHING.len() {
        let prefix = &EVERYTHING.as_bytes()[..length];
        let error = Options::new()
            .decode_metadata(prefix, &mut storage)
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.offset()),
            (END, length),
            "{}",
            shown(prefix)
        );
    }
    assert!(
        Options::new()
            .decode_metadata(EVERYTHING.as_bytes(), &mut storage)
            .is_ok()
    );
}

/// Every message with one byte of it changed, left out or doubled.
pub(crate) fn mutations() -> impl Iterator<Item = Vec<u8>> {
    const BYTES: &[u8] = b"\0 \n\"\\,:[]{}-+.019eENIaftnu/x\x7f\x80\xc3\xed\xf4\xff";
    let whole = EVERYTHING.as_bytes();
    (0..whole.len()).flat_map(move |at| {
        let changed = BYTES.iter().map(move |&byte| {
            let mut mutation = whole.to_vec();
            mutation[at] = byte;
            mutation
        });
        let inserted = BYTES.iter().map(move |&byte| {
            let mut mutation = whole.to_vec();
            mutation.insert(at, byte);
            mutation
        });
        let removed = [[&whole[..at], &whole[at + 1..]].concat()];
        changed.chain(inserted).chain(removed)
    })
}

#[test]
fn errors_lie_inside_the_frame_and_are_safe_to_log() {
    let mut storage = room();
    let mut errors = Vec::new();
    let own = own_cases().into_iter().map(|(metadata, _)| metadata);
    for metadata in own.chain(mutations()) {
        if let Err(error) = Options::new().decode_metadata(&metadata, &mut storage) {
            assert!(error.offset() <= metadata.len(), "{}", shown(&metadata));
            errors.push(error);
        }
    }
    assert!(errors.len() > 10_000);
    for error in errors {
        let text = error.to_string();
        assert!(text.len() <= 100, "{text}");
        assert!(
            text.bytes().all(|byte| matches!(byte, b' '..=b'~')),
            "{text}"
        );
        assert!(!text.ends_with('.'), "{text}");
        assert!(
            text.ends_with(&format!("at byte {}", error.offset())),
            "{text}"
        );
    }
}

#[test]
fn errors_are_small_and_copied() {
    fn copied<T: Copy + Send + Sync + 'static>() -> usize {
        size_of::<T>()
    }
    assert!(copied::<DecodeError>() <= 48);
    assert!(copied::<tensorwire::error::ValueError>() <= 48);
    assert!(copied::<tensorwire::error::EncodeError>() <= 48);
    assert!(copied::<CastError>() <= 48);
}
