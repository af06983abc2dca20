//! More, longer or deeper than a reader wants.

#[cfg(feature = "alloc")]
use super::conflicts::overlap;
use super::malformed::SLOT;
use super::*;
use tensorwire::error::DecodeErrorKind::*;

/// (limits, text with a `^` at what is over them, kind, entry)
const LIMITED: &[(Limits, &str, DecodeErrorKind, Option<usize>)] = &[
    (
        Limits::new().with_metadata_bytes(46),
        r#"^{"x":[{"offset":0,"shape":[1],"dtype":"bool"}]}"#,
        MetadataLimit {
            limit: 46,
            actual: 47,
        },
        None,
    ),
    (
        Limits::new().with_descriptors(1),
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"}],"y":[],"z":[^{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DescriptorLimit { limit: 1 },
        None,
    ),
    (
        Limits::new().with_rank(2),
        r#"{"x":[{"offset":0,"shape":[1,1,^1],"dtype":"bool"}]}"#,
        RankLimit { limit: 2 },
        Some(0),
    ),
    (
        Limits::new().with_name_bytes(4),
        r#"{"four":[],^"caf\u00e9":[]}"#,
        NameLimit {
            limit: 4,
            actual: 5,
        },
        None,
    ),
    (
        Limits::new().with_list_index(1),
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":1},{"offset":1,"shape":[1],"dtype":"bool","list_index":^2}]}"#,
        ListIndexLimit { limit: 1 },
        Some(1),
    ),
    (
        Limits::new().with_tensor_bytes(3),
        r#"{"x":[{"offset":0,"shape":[3],"dtype":"bool"}],"y":[^{"offset":9,"shape":[1],"dtype":"bool"}]}"#,
        TensorBytesLimit { limit: 3 },
        Some(1),
    ),
    (
        Limits::new().with_depth(5),
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","new":[[]]},{"offset":1,"new":[[^[]]]}]}"#,
        DepthLimit { limit: 5 },
        Some(1),
    ),
];

#[test]
fn each_cap_refuses_what_is_over_it() {
    let mut storage = room();
    for (limits, marked, kind, entry) in LIMITED {
        let offset = marked.find('^').unwrap();
        let text = marked.replace('^', "");
        let result = Manifest::decode(object(&text), SLOT, &mut storage, limits);
        let error = result.unwrap_err();
        let told = (error.kind(), error.offset(), error.descriptor());
        assert_eq!(told, (*kind, offset, *entry), "{marked}: {error}");
    }
    let text = r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"}],"y":[{"offset":1,"shape":[1],"dtype":"bool"}]}"#;
    let small = Manifest::decode(object(text), SLOT, &mut Storage::<1>::new(), &Limits::new())
        .map(|manifest| manifest.len());
    assert_eq!(small.unwrap_err().kind(), StorageFull { capacity: 1 });
    let none = Manifest::decode(object("{}"), 0, &mut Storage::<0>::new(), &Limits::new())
        .map(|manifest| manifest.len());
    assert_eq!(none, Ok(0));
}

/// The manifest, a field, an entry and a shape are four levels, which the cap does not count.
#[test]
fn the_levels_of_a_manifest_itself_always_pass() {
    let mut storage = room();
    let shallow = Limits::new().with_depth(0);
    let text = r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","new":0}]}"#;
    let manifest = Manifest::decode(object(text), SLOT, &mut storage, &shallow);
    assert_eq!(manifest.map(|manifest| manifest.len()), Ok(1));
    let text = text.replace(r#""new":0"#, r#""new":[]"#);
    for (depth, expected) in [(3, Some(DepthLimit { limit: 3 })), (4, None)] {
        let limits = Limits::new().with_depth(depth);
        let error = Manifest::decode(object(&text), SLOT, &mut storage, &limits).err();
        assert_eq!(error.map(|error| error.kind()), expected);
    }
}

/// A list of this many members, in descending order of offsets and of indices.
#[cfg(feature = "alloc")]
fn descending(count: usize, overlap: usize) -> String {
    let mut text = String::from(r#"{"l":["#);
    for at in (0..count).rev() {
        let comma = if at + 1 == count { "" } else { "," };
        let offset = at * 2;
        let shape = 2 + if at == 0 { overlap } else { 0 };
        text += &format!(
            r#"{comma}{{"offset":{offset},"shape":[{shape}],"dtype":"int8","list_index":{at}}}"#
        );
    }
    text + "]}"
}

#[cfg(feature = "alloc")]
#[test]
fn a_hundred_thousand_entries_are_refused_or_sorted() {
    use tensorwire::Options;
    use tensorwire::transfer::manifest::Decoder;

    const COUNT: usize = 100_000;
    let (text, overlapping) = (descending(COUNT, 0), descending(COUNT, 1));
    let text = object(&text);
    let limits = Limits::new()
        .with_metadata_bytes(1 << 24)
        .with_list_index(COUNT);
    let refused = Decoder::with_options(Options::new().with_limits(limits))
        .decode(text, 2 * COUNT)
        .map(drop);
    assert_eq!(refused.unwrap_err().kind(), DescriptorLimit { limit: 4096 });

    let limits = limits.with_descriptors(COUNT);
    let mut decoder = Decoder::with_options(Options::new().with_limits(limits));
    let manifest = decoder.decode(text, 2 * COUNT).unwrap();
    assert_eq!((manifest.len(), manifest.used_len()), (COUNT, 2 * COUNT));
    let slot = vec![7; 2 * COUNT];
    let list = manifest.attach(&slot).unwrap().list("l").unwrap();
    assert_eq!((list.len(), list.present_len()), (COUNT, COUNT));
    assert!((0..COUNT).all(|at| list.position(at) == Some(COUNT - 1 - at)));

    let error = decoder.decode(object(&overlapping), 2 * COUNT).unwrap_err();
    assert_eq!(error.kind(), overlap(COUNT - 2, 2, 3));
    assert_eq!(error.descriptor(), Some(COUNT - 1));
}

/// Fields whose names differ in the last byte alone, or in their spelling.
#[cfg(feature = "alloc")]
#[test]
fn names_that_are_much_alike_are_told_apart() {
    use tensorwire::transfer::manifest::Decoder;

    let name = "n".repeat(200);
    let field = |at: usize, spelled: &str| {
        format!(r#""{name}{spelled}":[{{"offset":{at},"shape":[1],"dtype":"int8"}}]"#)
    };
    let plain: Vec<_> = (0..2000).map(|at| field(at, &format!("{at:04}"))).collect();
    let text = format!("{{{}}}", plain.join(","));
    let mut decoder = Decoder::new();
    let manifest = decoder.decode(object(&text), 2000).unwrap();
    assert!((0..2000).all(|at| manifest.position(&format!("{name}{at:04}")) == Some(at)));

    let mut twice = plain;
    twice.push(field(2000, r"\u0031999"));
    let text = format!("{{{}}}", twice.join(","));
    let error = decoder.decode(object(&text), 2001).unwrap_err();
    let at = text.rfind(&format!("\"{name}\\")).unwrap();
    assert_eq!((error.kind(), error.offset()), (DuplicateField, at));
}
