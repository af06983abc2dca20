//! What holds for every message and for any bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index as Any;
use tensorwire::bundle::{Bundle, HEADER_LEN, Index, encoded_len, lend};

use crate::{bundle_of, frames_of};

fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let length = prop_oneof![Just(0), Just(64), 1_usize..200];
    let frame = (length, any::<u8>()).prop_flat_map(|(length, value)| {
        prop_oneof![Just(vec![value; length]), vec(any::<u8>(), length)]
    });
    vec(frame, 1..12)
}

/// Asserts that bytes decode to what encodes to them, or fail in bounds, both ways to read alike.
fn check(bytes: &[u8]) {
    let whole = Bundle::decode(bytes);
    let copied = Index::len_from_header(&bytes[..bytes.len().min(HEADER_LEN)], bytes.len())
        .and_then(|length| Index::decode(&bytes[..length], bytes.len()))
        .and_then(|index| index.check_padding(bytes).map(|()| index));
    match whole {
        Ok(bundle) => {
            assert!(bundle_of(&bundle.frames().collect::<Vec<_>>()) == bytes);
            assert!(copied.unwrap().ranges().eq(bundle.index().ranges()));
        }
        Err(error) => {
            assert!(error.offset() <= bytes.len());
            assert_eq!(copied.unwrap_err(), error);
        }
    }
}

proptest! {
    #[test]
    fn frames_come_back_as_they_were(frames in frames()) {
        let bytes = bundle_of(&frames);
        prop_assert_eq!(frames_of(&bytes).unwrap(), frames);
        check(&bytes);
    }

    #[test]
    fn a_lent_place_is_a_frame(frames in frames(), spare in 0_usize..100) {
        let lengths = frames.iter().map(Vec::len);
        let total = encoded_len(lengths.clone()).unwrap();
        let mut buffer = vec![0xa5; total + spare];
        for (place, frame) in lend(lengths, &mut buffer).unwrap().zip(&frames) {
            place.copy_from_slice(frame);
        }
        prop_assert!(buffer[..total] == bundle_of(&frames));
        prop_assert!(buffer[total..].iter().all(|byte| *byte == 0xa5));
    }

    #[test]
    fn any_bytes_decode_or_fail_in_bounds(bytes in vec(any::<u8>(), 0..400)) {
        check(&bytes);
    }

    #[test]
    fn edited_bundles_decode_or_fail_in_bounds(
        frames in frames(),
        edits in vec((any::<Any>(), any::<u8>()), 0..4),
        numbers in vec((any::<Any>(), prop_oneof![0_u64..2048, any::<u64>()]), 0..2),
        length in any::<Any>(),
        cut in prop::bool::weighted(0.2),
    ) {
        let mut bytes = bundle_of(&frames);
        let fields = frames.len() * 2 + 1;
        for (field, number) in numbers {
            let at = 16 + 8 * field.index(fields);
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cut {
            bytes.resize(length.index(bytes.len() + 64), 0);
            // With the new length in the header it goes further.
            if bytes.len() >= HEADER_LEN {
                check(&bytes);
                let total = bytes.len() as u64;
                bytes[16..24].copy_from_slice(&total.to_le_bytes());
            }
        }
        check(&bytes);
    }
}
