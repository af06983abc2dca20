//! The crate held against a naive reader that compares every tensor with every other.

/// The oracles of the fuzz targets.
#[allow(dead_code, unreachable_pub, reason = "a part is used here")]
#[path = "../../fuzz/src"]
mod fuzz {
    pub mod case;
    pub mod manifest;
    pub mod naive;
}

use fuzz::manifest::check;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tensorwire::Limits;
use tensorwire::dtype::Generation;

/// Names that are the same, much alike, or in need of escapes.
const NAMES: &[&str] = &["a", r"\u0061", "ab", "latents", r"caf\u00e9", "é", ""];

const DTYPES: &[&str] = &[
    "bool",
    "int8",
    "float16",
    "bfloat16",
    "float64",
    "complex128",
];

/// An entry, mostly as it should be; the strange ones stand for all that the table has.
fn entry(list: bool) -> impl Strategy<Value = String> {
    let dims = vec(0_usize..5, 0..4);
    let offset = prop_oneof![
        8 => (0_u64..96).prop_map(|offset| offset.to_string()),
        4 => (0_u64..8).prop_map(|offset| (offset * 64).to_string()),
        1 => select(&["18446744073709551615", "-1", "1e1", "18446744073709551616"][..])
            .prop_map(str::to_string),
    ];
    let index = prop_oneof![
        20 => (0_u32..6).prop_map(move |index| list.then(|| index.to_string())),
        1 => Just(None),
        1 => select(&["-1", "0", "4097"][..]).prop_map(|index| Some(index.to_string())),
    ];
    let order = Just(vec![0, 1, 2, 3, 4]).prop_shuffle();
    let canonical = any::<bool>();
    (dims, offset, index, select(DTYPES), order, canonical).prop_map(
        |(dims, offset, index, dtype, order, canonical)| {
            let dims: Vec<_> = dims.iter().map(usize::to_string).collect();
            let mut members = vec![
                format!(r#""offset":{offset}"#),
                format!(r#""shape":[{}]"#, dims.join(",")),
                format!(r#""dtype":"{dtype}""#),
            ];
            members.extend(index.map(|index| format!(r#""list_index":{index}"#)));
            if !canonical {
                members.push(r#""new": {"a":[1, "x"]}"#.to_string());
                let mut shuffled: Vec<_> = order.iter().filter_map(|&at| members.get(at)).collect();
                shuffled.dedup();
                let shuffled: Vec<_> = shuffled.into_iter().cloned().collect();
                return format!("{{ {} }}", shuffled.join(" , "));
            }
            format!("{{{}}}", members.join(","))
        },
    )
}

fn field() -> impl Strategy<Value = String> {
    let entries = prop_oneof![
        6 => entry(false).prop_map(|entry| vec![entry]),
        6 => vec(entry(true), 1..5),
        1 => vec(entry(false), 0..3),
    ];
    (select(NAMES), entries)
        .prop_map(|(name, entries)| format!(r#""{name}":[{}]"#, entries.join(",")))
}

fn text() -> impl Strategy<Value = String> {
    vec(field(), 0..6).prop_map(|fields| format!("{{{}}}", fields.join(",")))
}

/// Plain fields side by side or overlapping by a little, so that many are accepted.
fn placed() -> impl Strategy<Value = String> {
    let step = prop_oneof![6 => 0_i64..4, 1 => -2_i64..0];
    vec((step, 0_i64..6), 0..12).prop_map(|places| {
        let mut end = 0;
        let mut entries = Vec::new();
        for (index, (step, len)) in places.into_iter().enumerate() {
            let offset = (end + step).max(0);
            end = offset + len;
            entries.push(format!(
                r#"{{"offset":{offset},"shape":[{len}],"dtype":"uint8","list_index":{index}}}"#
            ));
        }
        format!(r#"{{"l":[{}]}}"#, entries.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn verdict_and_result_are_those_of_a_naive_reader(text in text(), slot_len in 0_usize..1200) {
        check(&text, &Limits::new(), Generation::Extended, slot_len, 0x80);
        let tight = Limits::new().with_rank(2).with_list_index(3).with_descriptors(4);
        check(&text, &tight.with_tensor_bytes(300), Generation::Oldest, 1200, 0x40);
    }

    #[test]
    fn overlaps_are_those_that_a_naive_reader_finds(
        text in placed(),
        order in any::<u64>(),
        slot_len in 0_usize..80,
    ) {
        // The entries in another order on the wire.
        let mut entries: Vec<_> = text
            .trim_start_matches(r#"{"l":["#)
            .trim_end_matches("]}")
            .split_inclusive('}')
            .map(|entry| entry.trim_start_matches(',').to_string())
            .collect();
        if !entries.is_empty() {
            let middle = usize::try_from(order % 97).unwrap() % entries.len();
            entries.rotate_left(middle);
            entries[..middle].reverse();
        }
        let shuffled = format!(r#"{{"l":[{}]}}"#, entries.join(","));
        for text in [&text, &shuffled] {
            check(text, &Limits::new(), Generation::Extended, slot_len, 0);
            check(text, &Limits::new(), Generation::Extended, 80, 0x40);
        }
    }

    #[test]
    fn a_small_edit_changes_nothing_about_that(
        text in text(),
        at in any::<Index>(),
        inserted in select(&["", "{", "}", "[", "]", ",", ":", "\"", "\\", "-", "0", "9", "e1", " ", "\n", "NaN", "null"][..]),
        removed in 0_usize..2,
    ) {
        let mut edited = text;
        let at = at.index(edited.len());
        if edited.is_char_boundary(at) && edited.is_char_boundary(at + removed) {
            edited.replace_range(at..at + removed, inserted);
            check(&edited, &Limits::new(), Generation::Extended, 1200, 0x80);
        }
    }
}
