//! The general way alone, held against the one that tries Python's layout first.

use super::errors::mutations;
use super::more::{own_cases, shown};
use super::*;

fn compare(options: &Options, metadata: &[u8]) -> Verdict {
    let (mut fast, mut slow) = (room(), room());
    let fast = options.decode_metadata(metadata, &mut fast);
    let slow = options
        .without_speculation()
        .decode_metadata(metadata, &mut slow);
    let verdict = Verdict::of(&fast);
    assert_eq!(verdict, Verdict::of(&slow), "{}", shown(metadata));
    if let (Ok(fast), Ok(slow)) = (fast, slow) {
        assert_eq!(fast.tensor_bytes(), slow.tensor_bytes());
        assert_eq!(
            fast.scalars().as_value().raw(),
            slow.scalars().as_value().raw()
        );
        assert_eq!(fast.len(), slow.len());
        for (a, b) in fast.descriptors().zip(slow.descriptors()) {
            assert!(a.name() == b.name() && a.name().raw() == b.name().raw());
            assert_eq!(a.list_index(), b.list_index());
            assert_eq!(a.dtype(), b.dtype());
            assert_eq!((a.shape(), a.byte_len()), (b.shape(), b.byte_len()));
            assert_eq!(a.element_count(), b.element_count());
        }
    }
    verdict
}

#[test]
fn both_ways_give_one_verdict_on_every_recorded_message() {
    for (mode, options, changes) in MODES {
        for (case, (id, _)) in lines("hostile.jsonl").iter().zip(CASES) {
            let frames = hostile::message(case);
            let (mut storage, mut other) = (room(), room());
            let fast = options.decode(&frames, &mut *storage);
            let slow = options.without_speculation();
            let slow = slow.decode(&frames, &mut *other);
            assert_eq!(Verdict::of(&fast), Verdict::of(&slow), "{id} {mode}");
            assert_eq!(Verdict::of(&slow), verdict(changes, id), "{id} {mode}");
            compare(options, &frames[0]);
        }
    }
}

#[test]
fn both_ways_give_one_verdict_on_more_of_the_same_kinds() {
    let tight = Limits::new()
        .with_rank(1)
        .with_name_bytes(4)
        .with_list_index(5)
        .with_tensor_bytes(8)
        .with_depth(5);
    for (metadata, expected) in own_cases() {
        assert_eq!(compare(&Options::new(), &metadata), expected);
        compare(&Options::new().with_limits(tight), &metadata);
    }
}

#[test]
fn both_ways_give_one_verdict_on_every_mutation() {
    let tight = Limits::new().with_list_index(12).with_name_bytes(7);
    let tight = tight.with_rank(2).with_tensor_bytes(33);
    let mut accepted = 0;
    for metadata in mutations() {
        accepted += usize::from(compare(&Options::new(), &metadata) == Accept);
        compare(&Options::new().with_limits(tight), &metadata);
    }
    assert!(accepted > 1000, "{accepted}");
}
