//! Whatever is dropped first, while copies are under way.

use crate::common::{sources, upload_all, variety};
use crate::simulated;
use crate::{Bed, Laid};

/// Numbers below `limit` that look like chance.
fn shuffled<T>(mut items: Vec<T>, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for last in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        items.swap(last, (state >> 33) as usize % (last + 1));
    }
    items
}

#[test]
fn in_any_order_nothing_is_unpinned_or_freed_that_a_copy_uses() {
    let name = "order::in_any_order_nothing_is_unpinned_or_freed_that_a_copy_uses";
    simulated::test(name, || {
        let laid = Laid::planned(variety(1));
        let manifest = laid.manifest();
        for seed in 0..60 {
            let bed = Bed::new();
            let slot = laid.put(&bed.region);
            let (loaded, loading) = bed.load(slot, &manifest).unwrap();
            let uploaded = upload_all(&bed.cuda, &bed.stream, &laid.given[..6]);
            let storing = bed.pinned.store(sources(&uploaded), &bed.stream).unwrap();
            let from_loaded: Vec<_> = loaded.iter().map(Into::into).collect();
            let again = bed.pinned.store(from_loaded, &bed.stream).unwrap();
            let Bed {
                pinned,
                region,
                plane,
                hub,
                cuda,
                stream,
            } = bed;
            let items: Vec<Box<dyn FnOnce()>> = vec![
                Box::new(move || drop(pinned)),
                Box::new(move || drop(region)),
                Box::new(move || drop(plane)),
                Box::new(move || drop(hub)),
                Box::new(move || drop(cuda)),
                Box::new(move || drop(stream)),
                Box::new(move || drop(loaded)),
                Box::new(move || drop(loading)),
                Box::new(move || drop(uploaded)),
                Box::new(move || drop(storing)),
                Box::new(move || drop(again)),
            ];
            shuffled(items, seed).into_iter().for_each(|drop| drop());
            if simulated::scripted() {
                assert_eq!(simulated::violations(), [""; 0], "order {seed}");
                assert_eq!(simulated::live().registered, 0, "order {seed}");
            }
        }
    });
}
