//! Each cap, at it and over it; storage and frames, counted.

use super::more::PLAIN;
use super::*;

/// Metadata of the descriptors with these members.
pub(crate) fn metadata_of(descriptors: &[String]) -> String {
    format!(r#"{{"tensor_descriptors":[{}]}}"#, descriptors.join(","))
}

pub(crate) fn descriptor(name: &str, shape: &str) -> String {
    format!(r#"{{"field_name":"{name}","shape":[{shape}],"dtype":"uint8","list_index":-1}}"#)
}

#[test]
fn each_cap_lets_pass_what_is_at_it_and_refuses_what_is_over_it() {
    // (what, caps, metadata at the cap, metadata over it, its verdict)
    let list = |shape: &str, index: &str| {
        format!(
            r#"{{"tensor_descriptors":[{{"field_name":"x","shape":[{shape}],"dtype":"uint8","list_index":{index}}}]}}"#
        )
    };
    let scalars = |text: &str| format!(r#"{{"tensor_descriptors":[],"scalar_fields":{text}}}"#);
    let names = |names: &[&str]| {
        metadata_of(
            &names
                .iter()
                .map(|name| descriptor(name, "3"))
                .collect::<Vec<_>>(),
        )
    };
    let second = 23 + descriptor("a", "3").len() + 1;
    let third = second + descriptor("a", "3").len() + 1;
    let limits = Limits::new();
    let max = usize::MAX;
    #[rustfmt::skip]
    let cases: Vec<(&str, Limits, String, String, Verdict)> = vec![
        ("metadata 25", limits.with_metadata_bytes(25),
            names(&[]), names(&[]) + " ", Reject(MetadataLimit { limit: 25, actual: 26 }, 0, None)),
        ("metadata, default", limits,
            names(&[]) + &" ".repeat((1 << 20) - 25), names(&[]) + &" ".repeat((1 << 20) - 24),
            Reject(MetadataLimit { limit: 1 << 20, actual: (1 << 20) + 1 }, 0, None)),
        ("descriptors 0", limits.with_descriptors(0),
            names(&[]), names(&["a"]), Reject(DescriptorLimit { limit: 0 }, 23, None)),
        ("descriptors 2", limits.with_descriptors(2),
            names(&["a", "b"]), names(&["a", "b", "c"]), Reject(DescriptorLimit { limit: 2 }, third, None)),
        ("rank 0", limits.with_rank(0),
            list("", "-1"), list("1", "-1"), Reject(RankLimit { limit: 0 }, 50, Some(0))),
        ("rank 2", limits.with_rank(2),
            list("1,1", "-1"), list("1,1,1", "-1"), Reject(RankLimit { limit: 2 }, 54, Some(0))),
        ("rank, default", limits,
            list(&["1"; 64].join(","), "-1"), list(&["1"; 65].join(","), "-1"),
            Reject(RankLimit { limit: 64 }, 50 + 128, Some(0))),
        ("depth 2", limits.with_depth(2),
            scalars(r#"{"a":1}"#), scalars(r#"{"a":[]}"#), Reject(DepthLimit { limit: 2 }, 46, None)),
        ("depth 4", limits.with_depth(4),
            scalars(r#"{"a":[{}]}"#), scalars(r#"{"a":[{"b":[]}]}"#), Reject(DepthLimit { limit: 4 }, 52, None)),
        ("depth, default", limits,
            scalars(&format!("{{\"a\":{}{}}}", "[".repeat(126), "]".repeat(126))),
            scalars(&format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127))),
            Reject(DepthLimit { limit: 128 }, 46 + 126, None)),
        ("depth over the most", limits.with_depth(max),
            scalars(&format!("{{\"a\":{}{}}}", "[".repeat(126), "]".repeat(126))),
            scalars(&format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127))),
            Reject(DepthLimit { limit: 128 }, 46 + 126, None)),
        ("depth of an unknown key", limits.with_depth(3),
            r#"{"a":[[]],"tensor_descriptors":[]}"#.into(), r#"{"a":[[[]]],"tensor_descriptors":[]}"#.into(),
            Reject(DepthLimit { limit: 3 }, 7, None)),
        ("depth in a descriptor", limits.with_depth(4),
            format!(r#"{{"tensor_descriptors":[{{"a":[],{PLAIN}}}]}}"#), format!(r#"{{"tensor_descriptors":[{{"a":[[]],{PLAIN}}}]}}"#),
            Reject(DepthLimit { limit: 4 }, 29, Some(0))),
        ("name 0", limits.with_name_bytes(0),
            names(&[""]), names(&["a"]), Reject(NameLimit { limit: 0, actual: 1 }, 37, Some(0))),
        ("name 2", limits.with_name_bytes(2),
            names(&["ab", "a"]), names(&["ab", "abc"]), Reject(NameLimit { limit: 2, actual: 3 }, second + 1 + 14, Some(1))),
        ("name 2, escaped", limits.with_name_bytes(2),
            names(&[r"\u00e9"]), names(&[r"\u20ac"]), Reject(NameLimit { limit: 2, actual: 3 }, 37, Some(0))),
        ("name 4, a pair", limits.with_name_bytes(4),
            names(&[r"\ud83d\ude00"]), names(&[r"\ud83d\ude00\n"]), Reject(NameLimit { limit: 4, actual: 5 }, 37, Some(0))),
        ("name 2, raw", limits.with_name_bytes(2),
            names(&["é"]), names(&["€"]), Reject(NameLimit { limit: 2, actual: 3 }, 37, Some(0))),
        ("name, default", limits,
            names(&[&"n".repeat(1024)]), names(&[&"n".repeat(1025)]), Reject(NameLimit { limit: 1024, actual: 1025 }, 37, Some(0))),
        ("list index 0", limits.with_list_index(0),
            list("1", "0"), list("1", "1"), Reject(ListIndexLimit { limit: 0 }, 82, Some(0))),
        ("list index 10", limits.with_list_index(10),
            list("1", "10"), list("1", "11"), Reject(ListIndexLimit { limit: 10 }, 82, Some(0))),
        ("list index, default", limits,
            list("1", "4096"), list("1", "4097"), Reject(ListIndexLimit { limit: 4096 }, 82, Some(0))),
        ("list index over the most", limits.with_list_index(max),
            list("1", "2147483647"), list("1", "2147483648"), Reject(ListIndexLimit { limit: 0x7fff_ffff }, 82, Some(0))),
        ("tensors 0", limits.with_tensor_bytes(0),
            list("0,5", "-1"), list("1", "-1"), Reject(TensorBytesLimit { limit: 0 }, 23, Some(0))),
        ("tensors 6", limits.with_tensor_bytes(6),
            names(&["a", "b"]), metadata_of(&[descriptor("a", "3"), descriptor("b", "4")]),
            Reject(TensorBytesLimit { limit: 6 }, second, Some(1))),
        ("tensors, unlimited", limits,
            metadata_of(&[descriptor("a", "9223372036854775807"), descriptor("b", "9223372036854775807"), descriptor("c", "1")]),
            metadata_of(&[descriptor("a", "9223372036854775807"), descriptor("b", "9223372036854775807"), descriptor("c", "2")]),
            Reject(TensorBytesLimit { limit: max }, 23 + 2 * (descriptor("a", "9223372036854775807").len() + 1), Some(2))),
    ];
    let mut storage = room();
    for (what, limits, at, over, verdict) in cases {
        let options = Options::new().with_limits(limits);
        let result = options.decode_metadata(at.as_bytes(), &mut storage);
        assert_eq!(Verdict::of(&result), Accept, "{what}, at it");
        let result = options.decode_metadata(over.as_bytes(), &mut storage);
        assert_eq!(Verdict::of(&result), verdict, "{what}, over it");
        // The same where Python's layout does not lead the way.
        let spaced = at.replacen("{\"field_name\"", "{ \"field_name\"", 1);
        if spaced.len() <= limits.metadata_bytes() {
            let result = options.decode_metadata(spaced.as_bytes(), &mut storage);
            assert_eq!(Verdict::of(&result), Accept, "{what}, spaced");
        }
    }
}

/// The four levels that the schema itself takes are not held against the cap.
#[test]
fn the_schema_is_never_too_deep() {
    let metadata = metadata_of(&[descriptor("x", "1")]);
    for depth in 0..5 {
        let options = Options::new().with_limits(Limits::new().with_depth(depth));
        let mut storage = room();
        let result = options.decode_metadata(metadata.as_bytes(), &mut storage);
        assert_eq!(Verdict::of(&result), Accept, "{depth}");
    }
}

#[test]
fn storage_takes_just_as_many_descriptors_as_it_has_room_for() {
    fn check<const N: usize>() {
        let mut storage = Storage::<N>::new();
        let mut descriptors: Vec<_> = (0..N).map(|i| descriptor(&i.to_string(), "")).collect();
        let full = metadata_of(&descriptors);
        let metadata = Options::new().decode_metadata(full.as_bytes(), &mut storage);
        assert_eq!(metadata.unwrap().len(), N);
        descriptors.push(descriptor("x", ""));
        let at = if N == 0 { 23 } else { full.len() - 2 + 1 };
        let over = metadata_of(&descriptors);
        let result = Options::new().decode_metadata(over.as_bytes(), &mut storage);
        let verdict = Reject(StorageFull { capacity: N }, at, None);
        assert_eq!(Verdict::of(&result), verdict);
        // The cap comes first where both are reached.
        let options = Options::new().with_limits(Limits::new().with_descriptors(N));
        let result = options.decode_metadata(over.as_bytes(), &mut storage);
        let verdict = Reject(DescriptorLimit { limit: N }, at, None);
        assert_eq!(Verdict::of(&result), verdict);
    }
    check::<0>();
    check::<1>();
    check::<2>();
    check::<17>();
}

#[test]
fn frames_are_counted_before_they_are_measured() {
    let metadata = metadata_of(&[descriptor("x", "2"), descriptor("y", "0")]);
    let second = 23 + descriptor("x", "2").len() + 1;
    let count = |actual| {
        let expected = 2;
        Reject(FrameCount { expected, actual }, 22, None)
    };
    let length = |expected, actual, at, index| {
        let kind = FrameLength { expected, actual };
        Reject(kind, at, Some(index))
    };
    #[rustfmt::skip]
    let cases: &[(&[&[u8]], Verdict)] = &[
        (&[], count(0)),
        (&[&[1, 2]], count(1)),
        (&[&[1]], count(1)),
        (&[&[1, 2], &[], &[]], count(3)),
        (&[&[1, 2], &[]], Accept),
        (&[&[], &[1, 2]], length(2, 0, 23, 0)),
        (&[&[1, 2, 3], &[]], length(2, 3, 23, 0)),
        (&[&[1, 2], &[1]], length(0, 1, second, 1)),
    ];
    let mut storage = room();
    for (payloads, verdict) in cases {
        let frames: Vec<&[u8]> = [&[metadata.as_bytes()], *payloads].concat();
        let result = Message::decode(&frames, &mut *storage);
        assert_eq!(Verdict::of(&result), *verdict, "{payloads:?}");
    }
    let none: [&[u8]; 0] = [];
    let result = Message::decode(&none, &mut *storage);
    assert_eq!(Verdict::of(&result), Reject(NoFrames, 0, None));
}
